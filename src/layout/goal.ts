/**
 * What a layout was meant to be while a plan of operations is under way (C22). A host that halves buckets on a
 * split and adds them up on a merge passes through lists that nobody asked for; a leader that finds such a layout
 * reads the intended lists from the lineage, in the sense of C3: a split hands the list on, a merge unites the lists.
 */
import { equalRanges, unionBoundaries } from '../ring/index.js';
import { requireShape } from './checks.js';
import { isLegacy, type Layout, type Segment } from './segment.js';
import type { Shape } from './shape.js';

/**
 * The bucket list that each segment was meant to have. A rollover (one parent of the same range), a root, and a
 * segment any of whose parents may have been pruned has its own; a split child its parent's; a merged segment the
 * union of its parents'.
 */
export function goalSplits(layout: Layout): ReadonlyMap<number, readonly number[]> {
  const goals = new Map<number, readonly number[]>();
  // Ids ascend from parents to children, so every parent's goal is known in time.
  for (const segment of [...layout.segments.values()].sort((a, b) => a.segmentId - b.segmentId)) {
    goals.set(segment.segmentId, goalOf(layout, segment, goals));
  }
  return goals;
}

function goalOf(layout: Layout, segment: Segment, goals: ReadonlyMap<number, readonly number[]>): readonly number[] {
  const parents = segment.parentIds.map((id) => layout.segments.get(id) as Segment);
  const [first] = parents;
  if (first === undefined || parents.some(isLegacy) || !coversAll(parents, segment)) return segment.entryBucketSplits;
  if (parents.length === 1 && equalRanges(first.range, segment.range)) return segment.entryBucketSplits;
  return parents
    .map((parent) => goals.get(parent.segmentId) as readonly number[])
    .reduce((union, splits) => unionBoundaries(union, splits));
}

/** False when a parent is missing: what is left of the parents does not reach over the whole segment. */
function coversAll(parents: readonly Segment[], { range }: Segment): boolean {
  let next = range.start;
  for (const parent of [...parents].sort((a, b) => a.range.start - b.range.start)) {
    if (parent.range.start > next) return false;
    next = Math.max(next, parent.range.end + 1);
  }
  return next > range.end;
}

/** The active ranges with the bucket lists that they were meant to have. Throws `invalidOperation` for several legacy ones. */
export function goalShape(layout: Layout): Shape {
  requireShape(layout);
  const goals = goalSplits(layout);
  const cells = layout.active.map(({ segmentId, range }) => ({
    range,
    entryBucketSplits: goals.get(segmentId) as readonly number[],
  }));
  return { cells };
}
