/**
 * The layout operations of one cluster on its own: split, merge, rebucket, prune. Each is one epoch. On a
 * replicated topic the two axes are independent (C3): a split hands on the parent's buckets, a merge unites them.
 * The classic policies, `divide` and `sum`, do what an unmodified Pulsar broker does.
 */
import { IsthmusError, show } from '../errors.js';
import { equalBoundaries, equalWidthSplits, formatRange, midpoint, RING_END, unionBoundaries } from '../ring/index.js';
import { assembleLayout, replaceSegments } from './assemble.js';
import { readBoundaries, requireActive } from './checks.js';
import type { Layout, Segment } from './segment.js';

export interface SplitOptions {
  /** Where to cut: strictly ascending boundaries inside the segment. The midpoint alone by default. */
  readonly at?: readonly number[];
  /** `inherit` (default): each child has the parent's buckets. `divide`: equal-width, half as many, at least one. */
  readonly bucketPolicy?: 'inherit' | 'divide';
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

export interface MergeOptions {
  /** `union` (default): every bucket boundary of either. `sum`: equal-width, as many as both together. */
  readonly bucketPolicy?: 'union' | 'sum';
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/** How many equal-width buckets each child has after a broker's split of a segment with `buckets`. */
export function dividedCount(buckets: number): number {
  return Math.max(1, Math.floor(buckets / 2));
}

/** How many equal-width buckets a broker's merge gives. More than hashes there cannot be. */
export function summedCount(a: number, b: number): number {
  return Math.min(a + b, RING_END + 1);
}

/**
 * Replaces an active segment by children that it is cut into. Throws `invalidOperation` when the segment cannot be
 * cut there, `invalidArgument` when `at` is not a boundary list.
 */
export function splitSegment(layout: Layout, segmentId: number, options: SplitOptions): Layout {
  const parent = requireActive(layout, segmentId);
  const at = options.at === undefined ? [midpointOf(parent)] : cutsInside(parent, options.at);
  const entryBucketSplits =
    options.bucketPolicy === 'divide'
      ? equalWidthSplits(dividedCount(parent.entryBucketSplits.length + 1))
      : parent.entryBucketSplits;
  const starts = [parent.range.start, ...at];
  const children = starts.map((start, i) => ({
    range: { start, end: (starts[i + 1] ?? parent.range.end + 1) - 1 },
    entryBucketSplits,
    parentIds: [segmentId],
  }));
  return replaceSegments(layout, children, options.nowMs);
}

function midpointOf({ segmentId, range }: Segment): number {
  if (range.start < range.end) return midpoint(range);
  throw new IsthmusError(
    'invalidOperation',
    `segment ${segmentId} holds one hash (${formatRange(range)}) and cannot be split`,
  );
}

function cutsInside({ segmentId, range }: Segment, at: readonly number[]): readonly number[] {
  const cuts = readBoundaries(at, 'at', 'invalidArgument');
  const outside = cuts.find((cut) => cut <= range.start || cut > range.end);
  if (cuts.length > 0 && outside === undefined) return cuts;
  throw new IsthmusError(
    'invalidOperation',
    `at is ${show(at)}: segment ${segmentId} is cut at one or more boundaries inside ${formatRange(range)}`,
  );
}

/**
 * Replaces two adjacent active segments by one. The parents are recorded in the order given, as Pulsar does.
 * Whether they are siblings is not asked here (C10, C11). Throws `invalidOperation`.
 */
export function mergeSegments(layout: Layout, leftId: number, rightId: number, options: MergeOptions): Layout {
  const a = requireActive(layout, leftId);
  const b = requireActive(layout, rightId);
  if (a.range.end + 1 !== b.range.start && b.range.end + 1 !== a.range.start) {
    throw new IsthmusError(
      'invalidOperation',
      `segments ${leftId} (${formatRange(a.range)}) and ${rightId} (${formatRange(b.range)}) are not adjacent`,
    );
  }
  const entryBucketSplits =
    options.bucketPolicy === 'sum'
      ? equalWidthSplits(summedCount(a.entryBucketSplits.length + 1, b.entryBucketSplits.length + 1))
      : unionBoundaries(a.entryBucketSplits, b.entryBucketSplits);
  const merged = {
    range: { start: Math.min(a.range.start, b.range.start), end: Math.max(a.range.end, b.range.end) },
    entryBucketSplits,
    parentIds: [leftId, rightId],
  };
  return replaceSegments(layout, [merged], options.nowMs);
}

/**
 * Replaces an active segment by one of the same range with other bucket boundaries: a segment's own never change.
 * Throws `invalidArgument` when `splits` is no boundary list, `invalidOperation` when the segment has it already.
 */
export function rebucketSegment(
  layout: Layout,
  segmentId: number,
  splits: readonly number[],
  options: { readonly nowMs: number },
): Layout {
  const parent = requireActive(layout, segmentId);
  const entryBucketSplits = readBoundaries(splits, 'splits', 'invalidArgument');
  if (equalBoundaries(entryBucketSplits, parent.entryBucketSplits)) {
    throw new IsthmusError(
      'invalidOperation',
      `segment ${segmentId} already has the bucket boundaries ${show(splits)}`,
    );
  }
  return replaceSegments(layout, [{ range: parent.range, entryBucketSplits, parentIds: [segmentId] }], options.nowMs);
}

/**
 * Replaces active segments by ones of the same range and the same buckets, in one mutation: for segments that stopped
 * taking writes although the record calls them active. Throws `invalidOperation`.
 */
export function rolloverSegments(
  layout: Layout,
  segmentIds: readonly number[],
  options: { readonly nowMs: number },
): Layout {
  const created = segmentIds
    .map((segmentId) => requireActive(layout, segmentId))
    .sort((a, b) => a.range.start - b.range.start)
    .map(({ segmentId, range, entryBucketSplits }) => ({ range, entryBucketSplits, parentIds: [segmentId] }));
  return created.length === 0 ? layout : replaceSegments(layout, created, options.nowMs);
}

/**
 * Forgets a sealed segment: it leaves the record, and the lists of its parents and children. Whether it has
 * drained is the caller's to know. The base stays, though the segments that proved it go (C10). Throws
 * `invalidOperation`.
 */
export function pruneSegment(layout: Layout, segmentId: number): Layout {
  const pruned = layout.segments.get(segmentId);
  if (pruned === undefined || pruned.state === 'active') {
    const why = pruned === undefined ? 'does not exist in this layout' : 'is active: only sealed segments are pruned';
    throw new IsthmusError('invalidOperation', `segment ${show(segmentId)} ${why}`);
  }
  if (!Number.isSafeInteger(layout.epoch + 1)) {
    throw new IsthmusError('invalidOperation', `epoch ${layout.epoch} is the last safe integer`);
  }
  const others = (ids: readonly number[]) => ids.filter((id) => id !== segmentId);
  const segments = new Map(layout.segments);
  segments.delete(segmentId);
  for (const id of pruned.childIds) {
    const child = segments.get(id) as Segment;
    segments.set(id, { ...child, parentIds: others(child.parentIds) });
  }
  for (const id of pruned.parentIds) {
    const parent = segments.get(id) as Segment;
    segments.set(id, { ...parent, childIds: others(parent.childIds) });
  }
  return assembleLayout({ ...layout, epoch: layout.epoch + 1, segments });
}
