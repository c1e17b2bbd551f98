/**
 * The theorem of convergence, asked of a world at rest: every cluster has the join of what each demands, as far as its
 * host can go. The join is made here from the statements alone, by unions, and shares nothing with the machine's own
 * sweeps.
 */
import { type ControllerState, controllerStatus, joinedBase, statedShape } from '../convergence/index.js';
import {
  boundariesOf,
  equalShapes,
  equalWidthCount,
  isEqualWidth,
  planOperations,
  type Shape,
  shapeOf,
} from '../layout/index.js';
import { equalWidthSplits, formatRange, overlaps, RING_END } from '../ring/index.js';
import { type ConvergenceWorld, PULSAR_OPERATIONS } from './convergence-world.js';

/** What is wrong with a world at rest, in words; undefined when the theorem holds. Needs a leader everywhere. */
export function checkTheorem(world: ConvergenceWorld): string | undefined {
  const join = joinOfDemands(world);
  const expected = world.clusters.some((cluster) => world.hostOf(cluster) === 'plan') ? rounded(join) : join;
  for (const cluster of world.clusters) {
    const complaint = checkCluster(world, cluster, expected);
    if (complaint !== undefined) return `${cluster} ${complaint}`;
  }
  return undefined;
}

function checkCluster(world: ConvergenceWorld, cluster: string, expected: Shape): string | undefined {
  const state = stateOf(world, cluster);
  const { isChanging, goal, wish, waiting, layout } = state;
  if (isChanging || goal !== undefined || wish !== undefined) return 'still wants a change';
  if (waiting.length > 0) return 'owes an answer';
  if (layout !== world.layout(cluster)) return 'does not know the layout that is stored';
  const isPlan = world.hostOf(cluster) === 'plan';
  const plan = planOperations(layout, expected, PULSAR_OPERATIONS, { base: joinedBase(state) });
  const [next] = isPlan ? plan.operations : [];
  if (next !== undefined) return `could still do a ${next.type}`;
  const isReachable = !isPlan || plan.unreachable.length === 0;
  if (isReachable && !equalShapes(shapeOf(layout), expected)) {
    return `rests on ${inShort(shapeOf(layout))}, and all demand ${inShort(expected)}`;
  }
  for (const peer of controllerStatus(state, world.clock.nowMs).peers) {
    if (peer.condition !== 'heard') return `has ${peer.cluster} for ${peer.condition}`;
    if (peer.ackedEpoch !== layout.epoch) return `is not acknowledged by ${peer.cluster}`;
  }
  return undefined;
}

function stateOf(world: ConvergenceWorld, cluster: string): ControllerState {
  const state = world.state(cluster);
  if (state === undefined) throw new Error(`nobody leads ${cluster}`);
  return state;
}

/** What each demands, joined: boundaries that are not cold to all who have them, and the lists of the cells in between. */
function joinOfDemands(world: ConvergenceWorld): Shape {
  const demands = world.clusters.map((cluster) => {
    const state = stateOf(world, cluster);
    const { segments, buckets } = controllerStatus(state, world.clock.nowMs).coldMarks;
    const shape = statedShape(state);
    const lists = shape.cells.map(({ range, entryBucketSplits }) => {
      const cold = buckets.flatMap((mark) => (overlaps(mark.range, range) ? mark.boundaries : []));
      return { range, list: entryBucketSplits.filter((boundary) => !cold.includes(boundary)) };
    });
    return { boundaries: boundariesOf(shape).filter((boundary) => !segments.includes(boundary)), lists };
  });
  const starts = union([[0], ...demands.map(({ boundaries }) => boundaries)]);
  return {
    cells: starts.map((start, i) => {
      const range = { start, end: (starts[i + 1] ?? RING_END + 1) - 1 };
      const lists = demands.flatMap((demand) => demand.lists.filter((own) => overlaps(own.range, range)));
      return { range, entryBucketSplits: union(lists.map(({ list }) => list)) };
    }),
  };
}

function union(lists: readonly (readonly number[])[]): number[] {
  return [...new Set(lists.flat())].sort((a, b) => a - b);
}

/** The shape with every bucket list rounded up to equal widths, where there is such a list (C22). */
function rounded(shape: Shape): Shape {
  return {
    cells: shape.cells.map(({ range, entryBucketSplits }) => {
      const buckets = equalWidthCount(entryBucketSplits, PULSAR_OPERATIONS.maxBuckets);
      return { range, entryBucketSplits: buckets === undefined ? entryBucketSplits : equalWidthSplits(buckets) };
    }),
  };
}

/** A shape in one line: the first hash of each cell and its number of buckets, or their boundaries. */
export function inShort(shape: Shape): string {
  const cells = shape.cells.map(({ range, entryBucketSplits: list }) => {
    const buckets = isEqualWidth(list) ? `${list.length + 1}` : `(${list.map((b) => b.toString(16)).join(' ')})`;
    return `${formatRange(range)}/${buckets}`;
  });
  return cells.join(' ');
}
