/**
 * The one decision of convergence (C5b): the local shape, joined with every boundary that a peer demands, less every
 * boundary that the merge rule lets go. A peer demands a boundary when its shape has it and its marks do not call it
 * cold (C7); what is demanded cannot be removed, so adding and removing never meet.
 *
 * Every sweep goes over sorted lists from left to right: the cost is linear in the cells, times the peers.
 */
import {
  boundariesOf,
  type Cell,
  equalShapes,
  equalWidthCount,
  isEqualWidth,
  type Shape,
  siblingBoundaries,
} from '../layout/index.js';
import { equalWidthSplits, type HashRange, overlaps, RING_END, unionBoundaries } from '../ring/index.js';
import { both, MarkSweep, without } from './marks.js';
import { type BucketMarks, type ColdMarks, NO_MARKS, type PeerState } from './peer-state.js';

/** The bucket limit of a Pulsar broker, which is the default here. */
export const DEFAULT_BUCKET_LIMIT = 1024;

export interface NextShapeInput {
  /** The cluster's own shape. */
  readonly local: Shape;
  /** The cluster's own marks; nothing is removed without one of them (C9, C21). */
  readonly localMarks: ColdMarks;
  /** The base grid as the cluster knows it (C10). */
  readonly base?: readonly number[] | undefined;
  /** The latest state of every peer that was heard. */
  readonly peers: readonly Pick<PeerState, 'cluster' | 'shape' | 'base' | 'coldMarks' | 'equalWidth'>[];
  /** Clusters of the replication set that were not heard yet: while there is one, nothing is removed (C9). */
  readonly unheard: readonly string[];
  /** The most cells that demands may lead to (C20). */
  readonly foldLimit: number;
  /** The most buckets of a cell that demands may lead to; default 1,024. */
  readonly bucketLimit?: number | undefined;
  /** The cluster itself can only make equal-width buckets (C22). */
  readonly equalWidth?: boolean | undefined;
}

/** Boundaries by which two shapes differ. */
export interface ShapeDifference {
  readonly segments: readonly number[];
  readonly buckets: readonly BucketMarks[];
}

export interface NextShape {
  /** The local shape itself when nothing changes. */
  readonly shape: Shape;
  /** The base grid joined with the peers'; empty when there is none. */
  readonly base: readonly number[];
  readonly added: ShapeDifference;
  readonly removed: ShapeDifference;
  /** Peers whose demands do not fit the limits (C20); their states count for the merge rule all the same. */
  readonly leftOut: readonly string[];
}

/** Computes the shape that a cluster takes next. The same input in any order of peers gives the same result. */
export function nextShape(input: NextShapeInput): NextShape {
  const peers = [...input.peers].sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  const base = peers.reduce<readonly number[]>(
    (joined, peer) => unionBoundaries(joined, peer.base ?? []),
    input.base ?? [],
  );
  // Who cannot fit by itself is left out before anything is joined: a join of two such states may be huge (C21).
  const possible = peers.filter((peer) => !isBeyondLimits(peer, input));
  let taken: readonly Peer[] = possible;
  let shape = fold(input, peers, taken, base);
  if (!fits(shape, input)) {
    taken = [];
    const alone = fold(input, peers, taken, base);
    shape = alone;
    for (const peer of possible) {
      const candidate = fold(input, peers, [...taken, peer], base);
      if (!fits(candidate, input, alone)) continue;
      taken = [...taken, peer];
      shape = candidate;
    }
  }
  const leftOut = peers.filter((peer) => !taken.includes(peer)).map(({ cluster }) => cluster);
  if (equalShapes(shape, input.local)) shape = input.local;
  return { shape, base, ...difference(input.local, shape), leftOut };
}

type Peer = NextShapeInput['peers'][number];

/** True for a peer whose demands alone are more than the limits, and more than the local shape has already. */
function isBeyondLimits(peer: Peer, { local, foldLimit, bucketLimit = DEFAULT_BUCKET_LIMIT }: NextShapeInput): boolean {
  if (demandedBoundaries(peer).length >= Math.max(foldLimit, local.cells.length)) return true;
  const longest = local.cells.reduce((most, { entryBucketSplits }) => Math.max(most, entryBucketSplits.length), 0);
  const sweep = new DemandSweep(peer);
  return peer.shape.cells.some(({ range }) => {
    const { length } = sweep.demandedOn(range);
    return length >= bucketLimit && length > longest;
  });
}

/** The local shape with the demands of `taken`, less what `peers` let go. */
function fold(input: NextShapeInput, peers: readonly Peer[], taken: readonly Peer[], base: readonly number[]): Shape {
  const { local, unheard } = input;
  const localMarks = unheard.length === 0 ? input.localMarks : NO_MARKS;
  const boundaries = taken.reduce(
    (joined, peer) => unionBoundaries(joined, demandedBoundaries(peer)),
    boundariesOf(local) as readonly number[],
  );
  // A peer that is left out adds nothing, but what it has and does not call cold is not taken from it (C9).
  const cells = joinBuckets(local, localMarks, boundaries, peers, taken);
  const removed = removableBoundaries(localMarks, boundaries, cells, peers, base);
  const merged = removed.length === 0 ? cells : mergeAt(cells, removed);
  const equalWidth = input.equalWidth === true || peers.some((peer) => peer.equalWidth === true);
  return { cells: equalWidth ? roundUp(merged, input.bucketLimit ?? DEFAULT_BUCKET_LIMIT) : merged };
}

function demandedBoundaries({ shape, coldMarks }: Peer): readonly number[] {
  return without(boundariesOf(shape), coldMarks?.segments ?? []);
}

/** The cells between the joined boundaries, each with the bucket boundaries that are demanded on it or not let go. */
function joinBuckets(
  local: Shape,
  localMarks: ColdMarks,
  boundaries: readonly number[],
  peers: readonly Peer[],
  taken: readonly Peer[],
): Cell[] {
  const ownCold = new MarkSweep(localMarks.buckets);
  const demands = peers.map((peer) => ({ sweep: new DemandSweep(peer), isTaken: taken.includes(peer) }));
  let i = 0;
  return [0, ...boundaries].map((start, index) => {
    const range = { start, end: (boundaries[index] ?? RING_END + 1) - 1 };
    while ((local.cells[i] as Cell).range.end < start) i++;
    const own = local.cells[i] as Cell;
    let added: readonly number[] = [];
    let cold = both(ownCold.coldOver(range), own.entryBucketSplits);
    for (const { sweep, isTaken } of demands) {
      if (!isTaken && cold.length === 0) continue;
      const demanded = sweep.demandedOn(range);
      cold = without(cold, demanded);
      if (isTaken) added = unionBoundaries(added, demanded);
    }
    const entryBucketSplits = unionBoundaries(without(own.entryBucketSplits, cold), added);
    const isOwn =
      own.range.start === start && own.range.end === range.end && entryBucketSplits === own.entryBucketSplits;
    return isOwn ? own : { range, entryBucketSplits };
  });
}

/** Reads a peer's bucket demands from left to right. */
class DemandSweep {
  private at = 0;
  private readonly cold: MarkSweep | undefined;

  constructor(private readonly peer: Peer) {
    const marks = peer.coldMarks?.buckets ?? [];
    this.cold = marks.length === 0 ? undefined : new MarkSweep(marks);
  }

  /** What the peer demands at any point of `range`. */
  demandedOn(range: HashRange): readonly number[] {
    const { cells } = this.peer.shape;
    while ((cells[this.at] as Cell).range.end < range.start) this.at++;
    let demanded: readonly number[] = [];
    for (let i = this.at; i < cells.length && (cells[i] as Cell).range.start <= range.end; i++) {
      const { range: own, entryBucketSplits } = cells[i] as Cell;
      const shared = { start: Math.max(own.start, range.start), end: Math.min(own.end, range.end) };
      const here = this.cold === undefined ? entryBucketSplits : without(entryBucketSplits, this.cold.coldOver(shared));
      demanded = unionBoundaries(demanded, here);
    }
    return demanded;
  }
}

/** Marked cold here, between siblings of the joined shape, and demanded by nobody (C9, C10). */
function removableBoundaries(
  localMarks: ColdMarks,
  boundaries: readonly number[],
  cells: readonly Cell[],
  peers: readonly Peer[],
  base: readonly number[],
): readonly number[] {
  if (localMarks.segments.length === 0) return [];
  const cold = peers.reduce(
    (left, peer) => (left.length === 0 ? left : without(left, demandedBoundaries(peer))),
    both(localMarks.segments, boundaries),
  );
  return cold.length === 0 ? cold : both(cold, siblingBoundaries({ cells }, base));
}

/** Merges the two cells beside each of these boundaries; a merged cell has the bucket boundaries of both (C13). */
export function mergeAt(cells: readonly Cell[], removed: readonly number[]): Cell[] {
  const gone = new Set(removed);
  const merged: Cell[] = [];
  for (const cell of cells) {
    const left = gone.has(cell.range.start) ? merged.pop() : undefined;
    merged.push(
      left === undefined
        ? cell
        : {
            range: { start: left.range.start, end: cell.range.end },
            entryBucketSplits: unionBoundaries(left.entryBucketSplits, cell.entryBucketSplits),
          },
    );
  }
  return merged;
}

/** Each bucket list as the smallest equal-width list that holds it; one that no list within the limit holds stays (C22). */
function roundUp(cells: readonly Cell[], limit: number): Cell[] {
  const rounded = new Map<readonly number[], readonly number[]>();
  return cells.map((cell) => {
    const splits = cell.entryBucketSplits;
    if (splits.length === 0) return cell;
    let list = rounded.get(splits);
    if (list === undefined) {
      const count = isEqualWidth(splits) ? undefined : equalWidthCount(splits, limit);
      list = count === undefined ? splits : equalWidthSplits(count);
      rounded.set(splits, list);
    }
    return list === splits ? cell : { range: cell.range, entryBucketSplits: list };
  });
}

/** Whether a shape is within the limits, or at least no further beyond them than the cluster is by itself. */
function fits(shape: Shape, { local, foldLimit, bucketLimit = DEFAULT_BUCKET_LIMIT }: NextShapeInput, alone = local) {
  if (shape.cells.length > foldLimit && shape.cells.length > alone.cells.length) return false;
  let i = 0;
  return shape.cells.every(({ range, entryBucketSplits }) => {
    while ((alone.cells[i] as Cell).range.end < range.start) i++;
    return (
      entryBucketSplits.length < bucketLimit ||
      entryBucketSplits.length <= (alone.cells[i] as Cell).entryBucketSplits.length
    );
  });
}

/** The shape with these boundaries: new cells inherit their lists, and a list joins those of all cells in its range. */
export function withAdded(shape: Shape, { segments, buckets }: ShapeDifference): Shape {
  const starts = [0, ...unionBoundaries(boundariesOf(shape), segments)];
  let i = 0;
  const cells = starts.map((start, index) => {
    const range = { start, end: (starts[index + 1] ?? RING_END + 1) - 1 };
    while ((shape.cells[i] as Cell).range.end < start) i++;
    const entryBucketSplits = buckets
      .filter((added) => overlaps(added.range, range))
      .reduce((list, added) => unionBoundaries(list, added.boundaries), (shape.cells[i] as Cell).entryBucketSplits);
    return { range, entryBucketSplits };
  });
  return equalShapes({ cells }, shape) ? shape : { cells };
}

/** What `after` has that `before` lacks, and the reverse, on both rings. */
function difference(before: Shape, after: Shape): { added: ShapeDifference; removed: ShapeDifference } {
  const none = { segments: [], buckets: [] };
  if (before === after) return { added: none, removed: none };
  const added: BucketMarks[] = [];
  const removed: BucketMarks[] = [];
  for (let start = 0, i = 0, j = 0; start <= RING_END; ) {
    const x = before.cells[i] as Cell;
    const y = after.cells[j] as Cell;
    const range = { start, end: Math.min(x.range.end, y.range.end) };
    const more = without(y.entryBucketSplits, x.entryBucketSplits);
    const fewer = without(x.entryBucketSplits, y.entryBucketSplits);
    if (more.length > 0) added.push({ range, boundaries: more });
    if (fewer.length > 0) removed.push({ range, boundaries: fewer });
    if (x.range.end === range.end) i++;
    if (y.range.end === range.end) j++;
    start = range.end + 1;
  }
  const old = boundariesOf(before);
  const now = boundariesOf(after);
  return {
    added: { segments: without(now, old), buckets: added },
    removed: { segments: without(old, now), buckets: removed },
  };
}
