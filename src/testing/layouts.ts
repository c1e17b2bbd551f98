/**
 * Random layouts and shapes for property tests. Everything is generated valid, nothing is filtered, and a failure
 * shrinks to few segments at round boundaries. A layout is the outcome of a history of operations on a first one,
 * so its lineage, epochs and ids are such as a cluster really reaches.
 */
import fc from 'fast-check';
import {
  applyShape,
  createLayout,
  isLegacy,
  type Layout,
  mergeSegments,
  pruneSegment,
  rebucketSegment,
  type Segment,
  type Shape,
  splitSegment,
} from '../layout/index.js';
import { equalBoundaries, equalWidthSplits, formatRange, RING_END } from '../ring/index.js';

/** The time of every arbitrary layout's operations: what they say does not depend on a clock. */
const NOW_MS = 1_700_000_000_000;

/** A boundary of either ring: mostly a cut of a coarse grid, so that lists meet, else anything of 1..0xFFFF. */
function arbBoundary(): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 15 }).map((i) => i * 0x1000) },
    { weight: 1, arbitrary: fc.constantFrom(1, 0x5555, 0xaaaa, RING_END) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: RING_END }) },
  );
}

/** Up to `maxLength` boundaries, strictly ascending in 1..0xFFFF. */
function arbBoundaries(maxLength: number): fc.Arbitrary<number[]> {
  return fc.uniqueArray(arbBoundary(), { maxLength }).map((boundaries) => boundaries.sort((a, b) => a - b));
}

/** A bucket list: equal-width for 1 to 8 buckets, or up to four boundaries anywhere. */
export function arbBucketSplits(): fc.Arbitrary<readonly number[]> {
  return fc.oneof(fc.integer({ min: 1, max: 8 }).map(equalWidthSplits), arbBoundaries(4));
}

export interface ShapeArbitraryOptions {
  /** The most cells, 6 by default. */
  readonly maxCells?: number;
}

/** A shape: cells that tile the ring, each with a bucket list. */
export function arbShape({ maxCells = 6 }: ShapeArbitraryOptions = {}): fc.Arbitrary<Shape> {
  const later = fc.uniqueArray(fc.record({ start: arbBoundary(), splits: arbBucketSplits() }), {
    maxLength: maxCells - 1,
    selector: (cell) => cell.start,
  });
  return fc.tuple(arbBucketSplits(), later).map(([splits, cells]) => tiled([{ start: 0, splits }, ...cells]));
}

function tiled(cells: { readonly start: number; readonly splits: readonly number[] }[]): Shape {
  cells.sort((a, b) => a.start - b.start);
  return {
    cells: cells.map(({ start, splits }, i) => ({
      range: { start, end: (cells[i + 1]?.start ?? RING_END + 1) - 1 },
      entryBucketSplits: splits,
    })),
  };
}

/** One event in a layout's history. `pick` chooses among the segments that there are then. */
export type LayoutStep =
  | { readonly type: 'split' | 'merge' | 'prune'; readonly pick: number; readonly classic: boolean }
  | { readonly type: 'rebucket'; readonly pick: number; readonly splits: readonly number[] }
  | { readonly type: 'applyShape'; readonly shape: Shape };

/** How a layout came to be; readable where the layout itself is long. */
export interface LayoutHistory {
  readonly segments: number;
  readonly steps: readonly LayoutStep[];
}

export interface LayoutArbitraryOptions {
  /** The most operations after creation, 8 by default. */
  readonly maxSteps?: number;
  /** Only the operations of a host without a fold: split at midpoints, merge, rebucket to equal widths, prune. */
  readonly planHost?: boolean;
}

/** A random history of operations. */
export function arbLayoutHistory(options: LayoutArbitraryOptions = {}): fc.Arbitrary<LayoutHistory> {
  const { maxSteps = 8, planHost = false } = options;
  const pick = fc.nat({ max: 15 });
  const splits = planHost ? fc.integer({ min: 1, max: 8 }).map(equalWidthSplits) : arbBucketSplits();
  const moves = fc.record({
    type: fc.constantFrom('split' as const, 'merge' as const, 'prune' as const),
    pick,
    classic: planHost ? fc.constant(true) : fc.boolean(),
  });
  const rebuckets = fc.record({ type: fc.constant('rebucket' as const), pick, splits });
  const folds = fc.record({ type: fc.constant('applyShape' as const), shape: arbShape() });
  const step: fc.Arbitrary<LayoutStep> = planHost
    ? fc.oneof({ weight: 3, arbitrary: moves }, { weight: 1, arbitrary: rebuckets })
    : fc.oneof({ weight: 4, arbitrary: moves }, { weight: 1, arbitrary: rebuckets }, { weight: 1, arbitrary: folds });
  return fc.record({ segments: fc.integer({ min: 1, max: 7 }), steps: fc.array(step, { maxLength: maxSteps }) });
}

/** A layout that random operations have led to. Prints as one line. */
export function arbLayout(options?: LayoutArbitraryOptions): fc.Arbitrary<Layout> {
  return arbLayoutHistory(options).map((history) => {
    const layout = layoutAfter(history);
    return printedAs(layout, `layout(epoch ${layout.epoch}: ${describeSegments([...layout.segments.values()])})`);
  });
}

/** A value that fast-check prints as this text. Not enumerable, so that comparing and copying it sees its fields alone. */
export function printedAs<T extends object>(value: T, text: string): T {
  return Object.defineProperty(value, fc.toStringMethod, { value: () => text });
}

/** Segments in one line: ids, ranges, bucket boundaries, and what is special about them. */
export function describeSegments(segments: readonly Segment[]): string {
  const lines = segments.map((segment) => {
    const splits = segment.entryBucketSplits.map((split) => split.toString(16)).join(' ');
    const kind = `${isLegacy(segment) ? ' legacy' : ''}${segment.state === 'sealed' ? ' sealed' : ''}`;
    return `${segment.segmentId}=${formatRange(segment.range)}[${splits}]${kind}`;
  });
  return lines.join(', ');
}

/** The layout that a history leads to. A step that its layout cannot take is passed over. */
export function layoutAfter(history: LayoutHistory): Layout {
  return history.steps.reduce(afterStep, createLayout({ segments: history.segments, nowMs: NOW_MS }));
}

function afterStep(layout: Layout, step: LayoutStep): Layout {
  switch (step.type) {
    case 'split': {
      const { segmentId, range } = picked(layout.active, step.pick);
      const bucketPolicy = step.classic ? 'divide' : 'inherit';
      return range.start === range.end ? layout : splitSegment(layout, segmentId, { bucketPolicy, nowMs: NOW_MS });
    }
    case 'merge': {
      if (layout.active.length === 1) return layout;
      const left = picked(layout.active.slice(0, -1), step.pick);
      const right = layout.active[layout.active.indexOf(left) + 1] as Segment;
      const bucketPolicy = step.classic ? 'sum' : 'union';
      return mergeSegments(layout, left.segmentId, right.segmentId, { bucketPolicy, nowMs: NOW_MS });
    }
    case 'rebucket': {
      const { segmentId, entryBucketSplits } = picked(layout.active, step.pick);
      if (equalBoundaries(entryBucketSplits, step.splits)) return layout;
      return rebucketSegment(layout, segmentId, step.splits, { nowMs: NOW_MS });
    }
    case 'prune': {
      const roots = [...layout.segments.values()].filter((s) => s.state === 'sealed' && s.parentIds.length === 0);
      return roots.length === 0 ? layout : pruneSegment(layout, picked(roots, step.pick).segmentId);
    }
    case 'applyShape':
      return applyShape(layout, step.shape, { nowMs: NOW_MS });
  }
}

function picked(segments: readonly Segment[], pick: number): Segment {
  return segments[pick % segments.length] as Segment;
}
