/**
 * What happens to the controllers of a world of clusters: operators, policies, crashes, elections, stores and links that
 * fail, members that leave. What happens to topics and replicators is that of the world of replication.
 */
import { joinedBase, type ManualOperation, statedShape } from '../convergence/index.js';
import { IsthmusError } from '../errors.js';
import { boundariesOf, type Segment, shapeOf, siblingBoundaries } from '../layout/index.js';
import { equalWidthSplits } from '../ring/index.js';
import type { ClusterWorld } from './cluster-world.js';
import type { WorldPolicy } from './convergence-world.js';

/** What operators and policies ask for, and how often. */
export const REQUESTS = {
  askSplit: 6,
  askRebucket: 2,
  askFewerBuckets: 1,
  askMerge: 3,
  withdraw: 1,
  hot: 2,
  cold: 4,
  coldBuckets: 2,
  evaluate: 3,
};

/** What befalls controllers, their stores and the links between them. */
export const CONTROLLER_FAULTS = {
  leaderCrash: 2,
  elect: 3,
  retire: 1,
  changeFailsBefore: 2,
  changeFailsAfter: 2,
  partition: 2,
  heal: 2,
  leave: 1,
  rejoin: 2,
  unsupported: 1,
  supported: 1,
  leaderClock: 1,
};

export type ControllerHappeningType = keyof typeof REQUESTS | keyof typeof CONTROLLER_FAULTS;

const LISTS = [1, 2, 3, 4, 6].map(equalWidthSplits);

/** More are not asked for: links and lanes multiply with them. */
const MAX_SEGMENTS = 5;

/** Lets one thing happen on a cluster. `pick` chooses among what there is then. */
export function happenToController(
  world: ClusterWorld,
  { type, at, pick }: { readonly type: ControllerHappeningType; readonly at: number; readonly pick: number },
): void {
  const { controllers } = world;
  const { clusters } = controllers;
  const cluster = picked(clusters, at);
  const { active } = controllers.layout(cluster);
  const segment = picked(active, pick);
  world.replication.count(type);
  switch (type) {
    case 'askSplit':
      if (active.length < MAX_SEGMENTS) ask(world, cluster, splitOf(segment, pick));
      return;
    case 'askRebucket': {
      const splits = [...new Set([...segment.entryBucketSplits, ...picked(LISTS, pick)])].sort((a, b) => a - b);
      return ask(world, cluster, { type: 'rebucket', segmentId: segment.segmentId, splits });
    }
    case 'askFewerBuckets':
      return ask(world, cluster, { type: 'rebucket', segmentId: segment.segmentId, splits: picked(LISTS, pick) });
    case 'askMerge': {
      const boundaries = boundariesOf(shapeOf(controllers.layout(cluster)));
      if (boundaries.length > 0) ask(world, cluster, { type: 'merge', boundary: picked(boundaries, pick) });
      return;
    }
    case 'withdraw':
      return ask(world, cluster, { type: 'withdraw', range: segment.range });
    case 'hot':
      if (active.length >= MAX_SEGMENTS) return;
      return world.evaluateWith(cluster, { type: 'split', segmentId: segment.segmentId, reason: 'hot' });
    case 'cold':
      return world.setPolicy(cluster, coldWhere(pick, undefined));
    case 'coldBuckets':
      return world.setPolicy(cluster, coldWhere(pick, 1 + (pick % 4)));
    case 'evaluate':
      return controllers.evaluate(cluster);
    default:
      return fail(world, type, cluster, at, pick);
  }
}

function fail(
  { controllers }: ClusterWorld,
  type: keyof typeof CONTROLLER_FAULTS,
  cluster: string,
  at: number,
  pick: number,
): void {
  const { clusters } = controllers;
  switch (type) {
    case 'leaderCrash':
      return controllers.crash(cluster);
    case 'elect':
      return controllers.elect(cluster);
    case 'retire':
      return controllers.retire(cluster);
    case 'changeFailsBefore':
      return controllers.failNextChange(cluster, 'before');
    case 'changeFailsAfter':
      return controllers.failNextChange(cluster, 'after');
    case 'partition':
      return controllers.network.partition(cluster, picked(clusters, at + 1 + (pick % (clusters.length - 1))));
    case 'heal':
      return controllers.network.healAll();
    case 'leave':
      for (const name of clusters) {
        const others = clusters.filter((member) => member !== cluster);
        controllers.setMembers(name, name === cluster ? [cluster] : others);
      }
      return;
    case 'rejoin':
      return controllers.setMembers(cluster, clusters);
    case 'unsupported':
      return controllers.setSupported(cluster, false);
    case 'supported':
      return controllers.setSupported(cluster, true);
    case 'leaderClock':
      return controllers.jump(cluster, (pick - 40) * 10);
  }
}

/** An operator asks; what is refused as invalid is passed over. */
function ask({ controllers }: ClusterWorld, cluster: string, operation: ManualOperation): void {
  try {
    controllers.operate(cluster, operation);
  } catch (error) {
    if (!(error instanceof IsthmusError)) throw error;
  }
}

/** Mostly at the midpoint, where every host can cut. */
function splitOf({ segmentId, range }: Segment, pick: number): ManualOperation {
  if (pick % 10 !== 9) return { type: 'split', segmentId };
  return { type: 'split', segmentId, at: [range.start + 1 + ((pick * 1234) % (range.end - range.start + 1))] };
}

/** A policy that holds some boundaries for cold, always the same ones, and buckets beyond a number. */
function coldWhere(pick: number, buckets: number | undefined): WorldPolicy {
  return (state) => {
    const { cells } = statedShape(state);
    const segments = siblingBoundaries({ cells }, joinedBase(state)).filter((b) => (b >> (pick % 8)) % 3 !== 0);
    const kept = buckets === undefined ? undefined : equalWidthSplits(buckets);
    const marks = cells.map(({ range, entryBucketSplits }) => {
      return { range, boundaries: entryBucketSplits.filter((b) => kept !== undefined && !kept.includes(b)) };
    });
    return { coldMarks: { segments, buckets: marks.filter(({ boundaries }) => boundaries.length > 0) } };
  };
}

function picked<T>(list: readonly T[], pick: number): T {
  return list[pick % list.length] as T;
}
