/**
 * Where layouts are put together: the list of active segments is always derived here, and `replaceSegments` is the
 * one mutation from which split, merge, rebucket and the fold are made (C5). It seals what is replaced, gives the
 * new segments the next ids in ascending range order (C8), and advances the epoch by one.
 */
import { IsthmusError } from '../errors.js';
import type { HashRange } from '../ring/index.js';
import { checkTime } from './checks.js';
import { isLegacy, type Layout, type Segment } from './segment.js';

/** A segment to be created: what the mutation does not decide by itself. */
export interface NewSegment {
  readonly range: HashRange;
  readonly entryBucketSplits: readonly number[];
  /** The active segments that it replaces, in the order that the record is to keep. */
  readonly parentIds: readonly number[];
}

function byRange(a: Segment, b: Segment): number {
  return isLegacy(a) && isLegacy(b) ? a.segmentId - b.segmentId : a.range.start - b.range.start;
}

/** A layout from its stored members; the active segments follow from them. */
export function assembleLayout(members: Omit<Layout, 'active'>): Layout {
  const active = [...members.segments.values()].filter((segment) => segment.state === 'active').sort(byRange);
  return { ...members, active };
}

/** An active segment as it is born. */
export function bornSegment(segmentId: number, from: NewSegment, epoch: number, nowMs: number): Segment {
  return {
    segmentId,
    range: from.range,
    state: 'active',
    parentIds: from.parentIds,
    childIds: [],
    entryBucketSplits: from.entryBucketSplits,
    createdAtEpoch: epoch,
    sealedAtEpoch: -1,
    createdAtMs: nowMs,
    sealedAtMs: -1,
  };
}

/**
 * Seals every parent that `created` names and adds the created segments, all under one new epoch. `created` is in
 * ascending range order and covers exactly the ranges of its parents; callers have checked that.
 */
export function replaceSegments(
  layout: Layout,
  created: readonly NewSegment[],
  nowMs: number,
  base: readonly number[] | undefined = layout.base,
): Layout {
  checkTime(nowMs);
  const epoch = layout.epoch + 1;
  const nextSegmentId = layout.nextSegmentId + created.length;
  if (!Number.isSafeInteger(epoch) || !Number.isSafeInteger(nextSegmentId)) {
    throw new IsthmusError(
      'invalidOperation',
      `epoch ${epoch} or segment id ${nextSegmentId} leaves the safe integers`,
    );
  }
  const segments = new Map(layout.segments);
  const childIds = new Map<number, number[]>();
  created.forEach((from, i) => {
    const segmentId = layout.nextSegmentId + i;
    segments.set(segmentId, bornSegment(segmentId, from, epoch, nowMs));
    for (const parentId of from.parentIds) {
      const siblings = childIds.get(parentId);
      if (siblings === undefined) childIds.set(parentId, [segmentId]);
      else siblings.push(segmentId);
    }
  });
  for (const [parentId, children] of childIds) {
    const parent = segments.get(parentId) as Segment;
    segments.set(parentId, {
      ...parent,
      state: 'sealed',
      childIds: children,
      sealedAtEpoch: epoch,
      sealedAtMs: nowMs,
    });
  }
  return assembleLayout({ ...layout, epoch, nextSegmentId, segments, ...(base === undefined ? {} : { base }) });
}
