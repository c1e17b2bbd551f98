/** The goal of a host that is brought to a shape step by step (C22), when others change its layout on the way. */
import { boundariesOf, joinShapes, type Layout, type Operation, type Shape, shapeOf } from '../layout/index.js';
import { equalRanges } from '../ring/index.js';
import { without } from './marks.js';
import { mergeAt } from './next-shape.js';

/**
 * The goal after somebody else has changed the layout on the way: what they cut is cut, what they merged is merged
 * with the lists of both, and bucket boundaries that they made are made (C22). A merge of the plan itself, which may
 * be on the way to a cut of its range, is none of theirs.
 */
export function alteredGoal(goal: Shape, before: Layout, after: Layout, own: Operation | undefined): Shape {
  const ownMerge = own?.type === 'merge' ? before.segments.get(own.rightId)?.range.start : undefined;
  const was = boundariesOf(shapeOf(before)).filter((boundary) => boundary !== ownMerge);
  const merged = mergeAt(goal.cells, without(was, boundariesOf(shapeOf(after))));
  return joinShapes({ cells: merged }, madeSince(before, after));
}

/** The active ranges with the lists that somebody made since; the others without any, so that they add nothing to a join. */
function madeSince(before: Layout, after: Layout): Shape {
  return {
    cells: after.active.map((segment) => {
      const [parentId, another] = segment.parentIds;
      const parent = another === undefined && parentId !== undefined ? after.segments.get(parentId) : undefined;
      // A split halves and a merge sums on such hosts: only a rollover states a list.
      const isNew = segment.segmentId >= before.nextSegmentId;
      const isRollover = parent !== undefined && equalRanges(parent.range, segment.range);
      return { range: segment.range, entryBucketSplits: isNew && isRollover ? segment.entryBucketSplits : [] };
    }),
  };
}
