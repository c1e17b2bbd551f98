/**
 * What must hold after every step of a controller and every write of a layout, asked from outside and by brute
 * force: nothing of the machine's own sweeps is used to judge it.
 */
import {
  type BucketMarks,
  type ColdMarks,
  type ControllerState,
  joinedBase,
  type PeerState,
  statedShape,
} from '../convergence/index.js';
import {
  boundariesOf,
  type Cell,
  equalShapes,
  formatLayout,
  type Layout,
  parseLayout,
  parseShape,
  planOperations,
  type Shape,
  shapeOf,
  siblingBoundaries,
} from '../layout/index.js';
import { covers, formatRange, type HashRange } from '../ring/index.js';

/** A rule that a simulated world has broken. The message tells the time, the cluster and the rule. */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

/** A written layout is valid, follows on the one before it, and is not the same again (C4, C6). */
export function checkWrite(before: Layout, after: Layout): string | undefined {
  const again = parseLayout(JSON.parse(JSON.stringify(formatLayout(after))));
  if (!equalShapes(shapeOf(again), shapeOf(after))) return 'the record of a layout does not give it back';
  if (after.epoch !== before.epoch + 1) return `the epoch went from ${before.epoch} to ${after.epoch}`;
  return equalShapes(shapeOf(before), shapeOf(after)) ? 'the epoch advanced without a change' : undefined;
}

/** A state that is told is a shape, and marks only siblings of it and buckets that it has (C11). */
export function checkStatement({ shape, base, coldMarks }: PeerState): string | undefined {
  parseShape(shape);
  if (coldMarks === undefined) return undefined;
  const siblings = new Set(siblingBoundaries(shape, base));
  const stray = coldMarks.segments.find((boundary) => !siblings.has(boundary));
  if (stray !== undefined) return `the state marks ${stray.toString(16)}, which lies between no siblings`;
  const mark = coldMarks.buckets.find(({ range, boundaries }) =>
    shape.cells.some((cell) => covers(cell.range, range) && !includesAll(cell.entryBucketSplits, boundaries)),
  );
  return mark === undefined ? undefined : `the state marks buckets of ${formatRange(mark.range)} that it has not`;
}

/**
 * Nothing that anybody demands is removed (C9): whatever `after` lacks of `before` is marked here, and every peer is
 * heard and has let it go. `state` is the controller as it decided.
 */
export function checkRemoval(state: ControllerState, before: Shape, after: Shape): string | undefined {
  const removed = boundariesOf(before).filter((boundary) => !boundariesOf(after).includes(boundary));
  for (const boundary of removed) {
    const holder = holderOf(state, boundary);
    if (holder !== undefined) return `${boundary.toString(16)} was removed, and ${holder}`;
  }
  for (const [range, own, next] of overlaps(before, after)) {
    for (const boundary of own.entryBucketSplits) {
      if (next.entryBucketSplits.includes(boundary)) continue;
      const holder = bucketHolderOf(state, range, boundary);
      if (holder === undefined) continue;
      return `bucket boundary ${boundary.toString(16)} of ${formatRange(range)} was removed, and ${holder}`;
    }
  }
  return undefined;
}

/**
 * The same of what a cluster states while the next operation of a plan is asked for (C22), by a turn in which nobody else
 * has changed the layout. The decision begins from what was stated before. Only where nothing was left to do for that may
 * the plan have ended short of it, and the decision have begun from the layout as reached. Which of the two it was cannot
 * be seen, and they differ: what a goal has let go, and the marks with it, a host still has where it cannot cut.
 */
export function checkPlan(before: ControllerState, after: ControllerState): string | undefined {
  const { layout, options } = after;
  if (options.operations === undefined) return 'an operation is asked for on a host that has none';
  const [stated, next] = [statedShape(before), statedShape(after)];
  const complaint = checkRemoval(after, stated, next);
  if (complaint === undefined) return undefined;
  const { operations } = planOperations(layout, stated, options.operations, { base: joinedBase(after) });
  return operations.length > 0 ? complaint : checkRemoval(after, shapeOf(layout), next);
}

/** Who holds on to a segment boundary, in words; undefined when everybody has let it go. */
function holderOf(state: ControllerState, boundary: number): string | undefined {
  if (!marksOf(state).some(({ segments }) => segments.includes(boundary))) return 'it has no mark';
  return peerThat(state, ({ shape, coldMarks }) => {
    return boundariesOf(shape).includes(boundary) && !coldMarks?.segments.includes(boundary);
  });
}

function bucketHolderOf(state: ControllerState, range: HashRange, boundary: number): string | undefined {
  if (!marksOf(state).some(({ buckets }) => isCold(buckets, range, boundary))) return 'it has no mark';
  return peerThat(state, ({ shape, coldMarks }) =>
    [...overlaps(shape, { cells: [{ range, entryBucketSplits: [] }] })].some(
      ([shared, cell]) =>
        cell.entryBucketSplits.includes(boundary) && !isCold(coldMarks?.buckets ?? [], shared, boundary),
    ),
  );
}

function peerThat({ peers }: ControllerState, demands: (state: PeerState) => boolean): string | undefined {
  for (const { cluster, state, unsupported } of peers.values()) {
    if (unsupported) continue;
    if (state === undefined) return `${cluster} is not heard`;
    if (demands(state)) return `${cluster} demands it`;
  }
  return undefined;
}

function marksOf({ policyMarks, manualMarks }: ControllerState): ColdMarks[] {
  return policyMarks === undefined ? [manualMarks] : [policyMarks, manualMarks];
}

/** At every point of a range, by one mark or by several that meet. */
function isCold(marks: readonly BucketMarks[], range: HashRange, boundary: number): boolean {
  let next = range.start;
  for (const mark of marks) {
    if (mark.range.start <= next && mark.boundaries.includes(boundary)) next = Math.max(next, mark.range.end + 1);
  }
  return next > range.end;
}

/** Every range on which one cell of each shape lies, with both. */
function* overlaps(a: Shape, b: Shape): Generator<readonly [HashRange, Cell, Cell]> {
  for (const own of a.cells) {
    for (const other of b.cells) {
      const start = Math.max(own.range.start, other.range.start);
      const end = Math.min(own.range.end, other.range.end);
      if (start <= end) yield [{ start, end }, own, other];
    }
  }
}

function includesAll(list: readonly number[], boundaries: readonly number[]): boolean {
  return boundaries.every((boundary) => list.includes(boundary));
}
