/**
 * The host of a plan, played through in advance: the active segments as they will be after each operation, with the
 * ids that the layout will give them. A split halves the buckets, a merge adds them up, as an unmodified Pulsar
 * broker does; next to that it keeps the list that each segment is meant to have (C3).
 */
import { equalWidthSplits, type HashRange, midpoint, unionBoundaries } from '../ring/index.js';
import { goalSplits } from './goal.js';
import { dividedCount, summedCount } from './mutate.js';
import type { Layout } from './segment.js';

/** One layout operation of a host. Each is an epoch of its own and gives new segments the next ids in range order. */
export type Operation =
  /** At the midpoint, or at the boundaries `at` where the host takes them. */
  | { readonly type: 'split'; readonly segmentId: number; readonly at?: readonly number[] }
  | { readonly type: 'merge'; readonly leftId: number; readonly rightId: number }
  /** To `buckets` equal-width buckets, or to `splits` where the host takes them. */
  | {
      readonly type: 'rebucket';
      readonly segmentId: number;
      readonly buckets: number;
      readonly splits?: readonly number[];
    };

/** An active segment as the plan expects it. */
export interface PlannedSegment {
  readonly segmentId: number;
  readonly range: HashRange;
  /** As the host will have made it: a list, or a count of equal-width buckets. */
  readonly buckets: number | readonly number[];
  /** As it is meant to be where the target says nothing. */
  readonly goal: readonly number[];
}

/** The bucket list that the host will have given the segment. */
export function plannedSplits({ buckets }: PlannedSegment): readonly number[] {
  return typeof buckets === 'number' ? equalWidthSplits(buckets) : buckets;
}

function countOf({ buckets }: PlannedSegment): number {
  return typeof buckets === 'number' ? buckets : buckets.length + 1;
}

export class PlannedHost {
  readonly operations: Operation[] = [];
  /** In range order. */
  segments: PlannedSegment[];
  #nextSegmentId: number;

  constructor(layout: Layout) {
    const goals = goalSplits(layout);
    this.segments = layout.active.map(({ segmentId, range, entryBucketSplits }) => ({
      segmentId,
      range,
      buckets: entryBucketSplits,
      goal: goals.get(segmentId) ?? entryBucketSplits,
    }));
    this.#nextSegmentId = layout.nextSegmentId;
  }

  /** The boundaries between the segments. */
  boundaries(): Set<number> {
    return new Set(this.segments.slice(1).map((segment) => segment.range.start));
  }

  /** Every wanted boundary that midpoint splits of the segments would make, none but wanted ones on the way. */
  midpointCuts(isWanted: ReadonlySet<number>): Set<number> {
    const cuts = new Set<number>();
    const pending = this.segments.map((segment) => segment.range);
    for (let range = pending.pop(); range !== undefined; range = pending.pop()) {
      const middle = wantedMidpoint(range, isWanted);
      if (middle === undefined) continue;
      cuts.add(middle);
      pending.push({ start: range.start, end: middle - 1 }, { start: middle, end: range.end });
    }
    return cuts;
  }

  /** Merges neighbours, from the left, across every boundary that is not in `kept`. */
  mergeExcept(kept: ReadonlySet<number>): void {
    const merged: PlannedSegment[] = [];
    for (const segment of this.segments) {
      const left = kept.has(segment.range.start) ? undefined : merged.pop();
      merged.push(left === undefined ? segment : this.#merge(left, segment));
    }
    this.segments = merged;
  }

  /**
   * Splits at wanted midpoints, from the left, as far as that goes or until one of `awaited` has been made. False
   * when there was nothing to split.
   */
  splitAtMidpoints(isWanted: ReadonlySet<number>, awaited: ReadonlySet<number>): boolean {
    const done: PlannedSegment[] = [];
    const pending = [...this.segments].reverse();
    let isAwaited = false;
    for (let segment = pending.pop(); segment !== undefined; segment = pending.pop()) {
      const middle = isAwaited ? undefined : wantedMidpoint(segment.range, isWanted);
      if (middle === undefined) {
        done.push(segment);
        continue;
      }
      this.operations.push({ type: 'split', segmentId: segment.segmentId });
      pending.push(...this.#children(segment, [middle]).reverse());
      isAwaited = awaited.has(middle);
    }
    const hasSplit = done.length > this.segments.length;
    this.segments = done;
    return hasSplit;
  }

  /** Splits every segment at those of the ascending `boundaries` that lie inside it, in one operation each. */
  splitAt(boundaries: readonly number[]): void {
    let next = 0;
    this.segments = this.segments.flatMap((segment) => {
      const at: number[] = [];
      for (; next < boundaries.length; next++) {
        const boundary = boundaries[next] as number;
        if (boundary > segment.range.end) break;
        if (boundary > segment.range.start) at.push(boundary);
      }
      if (at.length === 0) return [segment];
      this.operations.push({ type: 'split', segmentId: segment.segmentId, at });
      return this.#children(segment, at);
    });
  }

  /** Gives segment number `index` another bucket list; `explicit` says whether the host takes lists or counts. */
  rebucket(index: number, splits: readonly number[], explicit: boolean): void {
    const segment = this.segments[index] as PlannedSegment;
    const { segmentId } = segment;
    this.operations.push({
      type: 'rebucket',
      segmentId,
      buckets: splits.length + 1,
      ...(explicit ? { splits } : {}),
    });
    this.segments[index] = {
      segmentId: this.#nextSegmentId++,
      range: segment.range,
      buckets: splits,
      goal: splits,
    };
  }

  #children(segment: PlannedSegment, at: readonly number[]): PlannedSegment[] {
    const { range, goal } = segment;
    const buckets = dividedCount(countOf(segment));
    return [range.start, ...at].map((start, i) => ({
      segmentId: this.#nextSegmentId++,
      range: { start, end: (at[i] ?? range.end + 1) - 1 },
      buckets,
      goal,
    }));
  }

  #merge(left: PlannedSegment, right: PlannedSegment): PlannedSegment {
    this.operations.push({ type: 'merge', leftId: left.segmentId, rightId: right.segmentId });
    return {
      segmentId: this.#nextSegmentId++,
      range: { start: left.range.start, end: right.range.end },
      buckets: summedCount(countOf(left), countOf(right)),
      goal: unionBoundaries(left.goal, right.goal),
    };
  }
}

function wantedMidpoint(range: HashRange, isWanted: ReadonlySet<number>): number | undefined {
  if (range.start === range.end) return undefined;
  const middle = midpoint(range);
  return isWanted.has(middle) ? middle : undefined;
}
