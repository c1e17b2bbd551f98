/**
 * The plan for a host that cannot apply a shape in one mutation (C22), such as an unmodified Pulsar broker: it
 * splits a segment at its midpoint and halves its buckets, merges two neighbours and adds their buckets up, and
 * rebuckets to equal widths. The plan first merges away what the target does not have, then splits, then puts the
 * bucket lists right.
 *
 * Midpoints of a cell are not always boundaries of the target: a cell that came from neighbours which are no
 * siblings cannot be cut as it should be. It is repaired: merged up to the smallest interval of the target's split
 * tree that midpoints can cut, and cut again from there. Every repair leaves at least one boundary more than it
 * found and none fewer, so planning ends. What no such interval gives is reported as unreachable and left alone.
 *
 * A plan is a function of the boundaries that stand, so that a plan made anew after any step is the rest of the
 * first one as far as the host did what was expected of it.
 */
import { IsthmusError, show } from '../errors.js';
import { equalBoundaries, equalWidthSplits, type HashRange, RING_END } from '../ring/index.js';
import { requireShape } from './checks.js';
import { equalWidthCount, isEqualWidth } from './equal-width.js';
import { type Operation, PlannedHost, plannedSplits } from './planned-host.js';
import type { Layout } from './segment.js';
import { boundariesOf, type Cell, checkShape, type Shape } from './shape.js';
import { type SplitNode, splitTree } from './split-tree.js';

/** What a host's layout operations can do. */
export interface HostCapabilities {
  /** A split takes the boundaries at which it cuts; else it cuts at the midpoint. */
  readonly explicitBoundary: boolean;
  /** A rebucket takes a list of boundaries; else it takes a count of equal-width buckets. */
  readonly unequalBuckets: boolean;
  /** The most buckets of one segment that the host accepts, 1..65536. */
  readonly maxBuckets: number;
}

/** What the host cannot be brought to. `range` is that of the segment as it is after the plan. */
export type Unreachable =
  /** The target cuts the segment at these boundaries, and no split gets there. */
  | { readonly type: 'boundaries'; readonly range: HashRange; readonly boundaries: readonly number[] }
  /** The target's bucket list is not equal-width, or longer than the host accepts. */
  | {
      readonly type: 'buckets';
      readonly range: HashRange;
      readonly entryBucketSplits: readonly number[];
      readonly reason: 'unequal' | 'tooMany';
    };

export interface OperationPlan {
  /** In order. Ids of segments that do not exist yet are those that the layout will give them. */
  readonly operations: readonly Operation[];
  /** In range order; empty when the plan ends at the target. */
  readonly unreachable: readonly Unreachable[];
}

/**
 * The operations that bring `layout` to `target`, as far as the host can go; none when it is there. `base` is the
 * joined base grid (C10), by default the layout's own. Throws `invalidShape`, `invalidArgument` for capabilities out
 * of range, and `invalidOperation` while several legacy segments are active.
 */
export function planOperations(
  layout: Layout,
  target: Shape,
  capabilities: HostCapabilities,
  options: { readonly base?: readonly number[] } = {},
): OperationPlan {
  checkShape(target);
  requireShape(layout);
  const { maxBuckets } = capabilities;
  if (!Number.isInteger(maxBuckets) || maxBuckets < 1 || maxBuckets > RING_END + 1) {
    throw new IsthmusError('invalidArgument', `maxBuckets is ${show(maxBuckets)}: must be an integer of 1..65536`);
  }
  const wanted = boundariesOf(target);
  const host = new PlannedHost(layout);
  host.mergeExcept(new Set(wanted));
  if (capabilities.explicitBoundary) host.splitAt(wanted);
  else reachByMidpoints(host, wanted, options.base ?? layout.base);
  const unreachable = settleBuckets(host, target, capabilities);
  return { operations: host.operations, unreachable };
}

/**
 * Merges and splits until nothing of `wanted` is in reach any more. A split may make the end that a further repair
 * needs, so that splitting pauses there: no split is made while there is a cell that can be repaired.
 */
function reachByMidpoints(host: PlannedHost, wanted: readonly number[], base: readonly number[] | undefined): void {
  const isWanted = new Set(wanted);
  const tree = splitTree(wanted, base);
  let awaited: ReadonlySet<number>;
  do {
    const standing = host.boundaries();
    const cuts = host.midpointCuts(isWanted);
    const stuck = new Set(wanted.filter((boundary) => !standing.has(boundary) && !cuts.has(boundary)));
    for (const { first, end } of repairIntervals(tree, wanted, standing, stuck)) {
      for (const boundary of wanted.slice(first, end)) standing.delete(boundary);
    }
    host.mergeExcept(standing);
    awaited = endsOfRepairs(tree, stuck);
  } while (host.splitAtMidpoints(isWanted, awaited));
}

/**
 * For every stuck boundary the smallest interval of the tree from which midpoints make it, together with all
 * boundaries that stand inside: the interval's ends stand, and the part of the tree below it that midpoints can cut
 * holds them. One may lie inside another.
 */
function repairIntervals(
  tree: readonly SplitNode[],
  wanted: readonly number[],
  standing: ReadonlySet<number>,
  stuck: ReadonlySet<number>,
): SplitNode[] {
  if (stuck.size === 0) return [];
  const standingBefore = [0];
  wanted.forEach((boundary, i) => {
    standingBefore.push((standingBefore[i] as number) + (standing.has(boundary) ? 1 : 0));
  });
  const remade = remadeByMidpoints(tree, standing);
  const isEnd = (boundary: number) => boundary === 0 || boundary === RING_END + 1 || standing.has(boundary);
  const canCut = (i: number) => {
    const { range, first, end } = tree[i] as SplitNode;
    const inside = (standingBefore[end] as number) - (standingBefore[first] as number);
    return remade[i] === inside && isEnd(range.start) && isEnd(range.end + 1);
  };

  const chosen = new Set<number>();
  tree.forEach((node, own) => {
    const smallest = stuck.has(node.root) ? intervalsMaking(tree, own).find(canCut) : undefined;
    if (smallest !== undefined) chosen.add(smallest);
  });
  return [...chosen].map((i) => tree[i] as SplitNode);
}

/** The nodes from which midpoint splits alone make the root of node `own`, the smallest first. At most sixteen. */
function intervalsMaking(tree: readonly SplitNode[], own: number): number[] {
  const intervals: number[] = [];
  for (let i = own, node = tree[own]; node?.atMidpoint; i = node.parent, node = tree[i]) intervals.push(i);
  return intervals;
}

/** The boundaries that an interval must begin or end with to repair a stuck one. */
function endsOfRepairs(tree: readonly SplitNode[], stuck: ReadonlySet<number>): ReadonlySet<number> {
  const ends = new Set<number>();
  tree.forEach((node, own) => {
    if (!stuck.has(node.root)) return;
    for (const i of intervalsMaking(tree, own)) {
      const { range } = tree[i] as SplitNode;
      ends.add(range.start).add(range.end + 1);
    }
  });
  return ends;
}

/** For each node, how many of the standing boundaries inside it midpoint splits of its range would make again. */
function remadeByMidpoints(tree: readonly SplitNode[], standing: ReadonlySet<number>): readonly number[] {
  const remade = tree.map((node): number => (node.atMidpoint && standing.has(node.root) ? 1 : 0));
  for (let i = tree.length - 1; i >= 0; i--) {
    const { parent } = tree[i] as SplitNode;
    if (tree[parent]?.atMidpoint) remade[parent] = (remade[parent] as number) + (remade[i] as number);
  }
  return remade;
}

/** Rebuckets what the splits and merges left wrong, and lists what the plan does not reach. */
function settleBuckets(host: PlannedHost, target: Shape, capabilities: HostCapabilities): Unreachable[] {
  const unreachable: Unreachable[] = [];
  let next = 0;
  host.segments.forEach((segment, index) => {
    const { range } = segment;
    const { entryBucketSplits } = target.cells[next] as Cell;
    const boundaries: number[] = [];
    for (next++; next < target.cells.length; next++) {
      const { start } = (target.cells[next] as Cell).range;
      if (start > range.end) break;
      boundaries.push(start);
    }
    const present = plannedSplits(segment);
    const obstacle = boundaries.length > 0 ? undefined : obstacleTo(entryBucketSplits, present, capabilities);
    if (boundaries.length > 0) unreachable.push({ type: 'boundaries', range, boundaries });
    if (obstacle !== undefined) unreachable.push({ type: 'buckets', range, entryBucketSplits, reason: obstacle });
    const isReached = boundaries.length === 0 && obstacle === undefined;
    const splits = isReached ? entryBucketSplits : ownSplits(segment.goal, present, capabilities);
    if (!equalBoundaries(splits, present)) host.rebucket(index, splits, capabilities.unequalBuckets);
  });
  return unreachable;
}

/** Why the host cannot give this bucket list to a segment that has `present`; undefined when it can. */
function obstacleTo(splits: readonly number[], present: readonly number[], capabilities: HostCapabilities) {
  if (equalBoundaries(splits, present)) return undefined;
  if (splits.length >= capabilities.maxBuckets) return 'tooMany';
  return capabilities.unequalBuckets || isEqualWidth(splits) ? undefined : 'unequal';
}

/**
 * The list that a segment out of the target's reach keeps: the one it was meant to have before the host halved or
 * summed it, rounded up to what the host can make; where there is no such list, what the host gave it.
 */
function ownSplits(goal: readonly number[], present: readonly number[], capabilities: HostCapabilities) {
  if (obstacleTo(goal, present, capabilities) === undefined) return goal;
  const buckets = capabilities.unequalBuckets ? undefined : equalWidthCount(goal, capabilities.maxBuckets);
  return buckets === undefined ? present : equalWidthSplits(buckets);
}
