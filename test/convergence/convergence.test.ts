/**
 * The theorem of the issue: whatever clusters do, and whatever becomes of their messages and leaders, once policies
 * stop and all can talk again they rest on one shape, the join of what each demands.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinedBase, statedShape } from '../../src/convergence/index.js';
import { without } from '../../src/convergence/marks.js';
import {
  boundariesOf,
  createLayout,
  equalShapes,
  equalWidthCount,
  isEqualWidth,
  joinShapes,
  type Layout,
  mergeSegments,
  planOperations,
  rebucketSegment,
  type Segment,
  type Shape,
  shapeOf,
  siblingBoundaries,
  splitSegment,
} from '../../src/layout/index.js';
import { equalBoundaries, equalWidthSplits, overlaps } from '../../src/ring/index.js';
import { ConvergenceWorld, PULSAR_OPERATIONS, type WorldPolicy } from '../../src/testing/convergence-world.js';
import { NO_FAULTS } from '../../src/testing/lossy-network.js';

const nowMs = 1_700_000_000_000;

/** What happens in a world. `pick` chooses among what there is then. */
type Happening = { readonly type: string; readonly at: number; readonly other: number; readonly pick: number };

interface Schedule {
  readonly seed: number;
  readonly hosts: readonly ('atomic' | 'plan')[];
  readonly segments: number;
  readonly strangers: boolean;
  readonly happenings: readonly Happening[];
}

const WEIGHTS = {
  split: 8,
  rebucket: 3,
  cold: 6,
  coldBuckets: 2,
  merge: 3,
  rebucketDown: 2,
  withdraw: 1,
  evaluate: 4,
  crash: 2,
  elect: 3,
  retire: 1,
  interfere: 2,
  failBefore: 1,
  failAfter: 1,
  partition: 2,
  heal: 2,
  leave: 1,
  rejoin: 2,
  unsupported: 1,
  supported: 1,
  advance: 10,
};

function arbHappening(): fc.Arbitrary<Happening> {
  const types = Object.entries(WEIGHTS).map(([type, weight]) => ({ weight, arbitrary: fc.constant(type) }));
  const small = fc.nat({ max: 30 });
  return fc.record({ type: fc.oneof(...types), at: fc.nat({ max: 5 }), other: fc.nat({ max: 5 }), pick: small });
}

function arbSchedule(hosts: fc.Arbitrary<('atomic' | 'plan')[]>): fc.Arbitrary<Schedule> {
  return fc.record({
    seed: fc.integer(),
    hosts,
    segments: fc.constantFrom(1, 1, 2, 3, 4, 5),
    strangers: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    happenings: fc.array(arbHappening(), { maxLength: 60 }),
  });
}

const FAULTS = { lossRate: 0.2, duplicateRate: 0.2, delayMs: [1, 400] } as const;

/** A policy that holds some boundaries for cold, always the same ones. */
function coldWhere(isCold: (boundary: number) => boolean, keepBuckets = 65_536): WorldPolicy {
  return (state) => {
    const shape = statedShape(state);
    const segments = siblingBoundaries(shape, joinedBase(state)).filter(isCold);
    const kept = equalWidthSplits(keepBuckets);
    const buckets = shape.cells.flatMap(({ range, entryBucketSplits }) => {
      const boundaries = keepBuckets === 65_536 ? [] : without(entryBucketSplits, kept);
      return boundaries.length === 0 ? [] : [{ range, boundaries }];
    });
    return { coldMarks: { segments, buckets } };
  };
}

function picked<T>(list: readonly T[], pick: number): T {
  return list[pick % list.length] as T;
}

function worldOf({ seed, hosts, segments, strangers }: Schedule): ConvergenceWorld {
  const isMixed = hosts.includes('plan');
  const world = new ConvergenceWorld({
    seed,
    clusters: hosts.map((host, i) => ({
      cluster: 'abcdef'[i] as string,
      host,
      layout: createLayout({ segments: strangers ? 1 + ((segments + i) % (isMixed ? 4 : 5)) : segments, nowMs }),
    })),
    faults: FAULTS,
    hostDelayMs: [0, 50],
    unseenRate: 0.3,
  });
  for (const cluster of world.clusters) world.elect(cluster);
  return world;
}

/** Anything that the machine refuses as invalid is passed over. */
function attempt(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
}

function happen(world: ConvergenceWorld, { type, at, other, pick }: Happening, isMixed: boolean): void {
  const { clusters } = world;
  const cluster = picked(clusters, at);
  const peer = picked(clusters, at + 1 + (other % Math.max(1, clusters.length - 1)));
  const state = world.state(cluster);
  const layout = world.layout(cluster);
  const segment = picked(layout.active, pick);
  const lists = [1, 2, 3, 4, 6, 8].map(equalWidthSplits);
  switch (type) {
    case 'split': {
      const cut = segment.range.start + 1 + ((pick * 1234) % (segment.range.end - segment.range.start || 1));
      const at = pick % 10 === 9 && cut <= segment.range.end ? { at: [cut] } : {};
      if (layout.active.length > 12) return;
      return attempt(() => world.operate(cluster, { type: 'split', segmentId: segment.segmentId, ...at }));
    }
    case 'rebucket': {
      const list = !isMixed && pick % 5 === 0 ? [0x1234] : picked(lists, pick);
      const splits = [...new Set([...segment.entryBucketSplits, ...list])].sort((a, b) => a - b);
      return attempt(() => world.operate(cluster, { type: 'rebucket', segmentId: segment.segmentId, splits }));
    }
    case 'rebucketDown': {
      const operation = { type: 'rebucket', segmentId: segment.segmentId, splits: picked(lists, pick) } as const;
      return attempt(() => world.operate(cluster, operation));
    }
    case 'cold':
      world.setPolicy(cluster, coldWhere((boundary) => (boundary >> (pick % 8)) % 3 !== 0));
      return world.evaluate(cluster);
    case 'coldBuckets':
      world.setPolicy(cluster, coldWhere(() => pick % 2 === 0, 1 + (pick % 4)));
      return world.evaluate(cluster);
    case 'merge': {
      if (state === undefined) return;
      const siblings = siblingBoundaries(statedShape(state), joinedBase(state));
      if (siblings.length === 0) return;
      return world.operate(cluster, { type: 'merge', boundary: picked(siblings, pick) });
    }
    case 'withdraw': {
      const marks = state?.manualMarks.segments ?? [];
      if (marks.length > 0) world.operate(cluster, { type: 'withdraw', boundary: picked(marks, pick) });
      return world.operate(cluster, { type: 'withdraw', range: segment.range });
    }
    case 'evaluate':
      return world.evaluate(cluster);
    case 'crash':
      return world.crash(cluster);
    case 'elect':
      return world.elect(cluster);
    case 'retire':
      return world.retire(cluster);
    case 'interfere':
      return attempt(() => world.interfere(cluster, (stored) => interference(stored, pick, isMixed)));
    case 'failBefore':
      return world.failNextChange(cluster, 'before');
    case 'failAfter':
      return world.failNextChange(cluster, 'after');
    case 'partition':
      return world.network.partition(cluster, peer);
    case 'heal':
      return world.network.healAll();
    case 'leave':
      for (const name of clusters) {
        world.setMembers(name, name === cluster ? [cluster] : clusters.filter((member) => member !== cluster));
      }
      return;
    case 'rejoin':
      return world.setMembers(cluster, clusters);
    case 'unsupported':
      return world.setSupported(cluster, false);
    case 'supported':
      return world.setSupported(cluster, true);
    default:
      world.clock.advance(50 + 400 * pick);
  }
}

/** What an operator does to the stored layout behind the controller's back. */
function interference(layout: Layout, pick: number, isMixed: boolean): Layout {
  const { segmentId } = picked(layout.active, pick);
  const classic = isMixed ? ({ bucketPolicy: 'divide' } as const) : {};
  if (pick % 3 === 0 && layout.active.length <= 12) return splitSegment(layout, segmentId, { ...classic, nowMs });
  if (pick % 3 === 1) return rebucketSegment(layout, segmentId, equalWidthSplits(1 + (pick % 8)), { nowMs });
  if (layout.active.length === 1) return splitSegment(layout, segmentId, { ...classic, nowMs });
  const left = picked(layout.active.slice(0, -1), pick);
  const right = layout.active[layout.active.indexOf(left) + 1] as Segment;
  return mergeSegments(layout, left.segmentId, right.segmentId, { bucketPolicy: isMixed ? 'sum' : 'union', nowMs });
}

/** Links heal, hosts work, everybody leads once and knows all members; messages take 10 ms, so that a round takes 20. */
function calm(world: ConvergenceWorld): void {
  const { network, clusters } = world;
  network.healAll();
  network.faults = NO_FAULTS;
  world.hostDelayMs = [0, 0];
  world.unseenRate = 0;
  world.forgetFailures();
  for (const cluster of clusters) {
    world.setSupported(cluster, true);
    if (world.state(cluster) === undefined) world.elect(cluster);
    world.retire(cluster);
    world.setMembers(cluster, clusters);
  }
  world.forgetCounts();
  // Marks are settled by one last evaluation; from here on they can only fall.
  for (const cluster of clusters) world.evaluate(cluster);
}

function rest(world: ConvergenceWorld): void {
  world.settle({ quietMs: 200_000, limitMs: 3_600_000 });
}

/** What each demands, joined: the boundaries that are not cold to all who have them, and the lists of the cells in between. */
function joinOfDemands(world: ConvergenceWorld): Shape {
  const demands = world.clusters.map((cluster) => {
    const state = world.state(cluster);
    if (state === undefined) throw new Error(`nobody leads ${cluster}`);
    const shape = statedShape(state);
    const marks = [state.manualMarks, ...(state.policyMarks === undefined ? [] : [state.policyMarks])];
    const cold = new Set(marks.flatMap(({ segments }) => segments));
    const lists = shape.cells.map(({ range, entryBucketSplits }) => ({
      range,
      list: marks
        .flatMap(({ buckets }) => buckets.filter((mark) => overlaps(mark.range, range)))
        .reduce((left, { boundaries }) => without(left, boundaries), entryBucketSplits),
    }));
    return { boundaries: boundariesOf(shape).filter((boundary) => !cold.has(boundary)), lists };
  });
  const starts = [...new Set([0, ...demands.flatMap(({ boundaries }) => boundaries)])].sort((a, b) => a - b);
  return {
    cells: starts.map((start, i) => {
      const range = { start, end: (starts[i + 1] ?? 0x10000) - 1 };
      const lists = demands.flatMap((demand) => demand.lists.filter((own) => overlaps(own.range, range)));
      const union = [...new Set(lists.flatMap(({ list }) => list))].sort((a, b) => a - b);
      return { range, entryBucketSplits: union };
    }),
  };
}

function inShort(shape: Shape): string {
  return shape.cells
    .map(({ range, entryBucketSplits: list }) => {
      const buckets = isEqualWidth(list) ? `${list.length + 1}` : `(${list.map((b) => b.toString(16)).join(' ')})`;
      return `${range.start.toString(16)}/${buckets}`;
    })
    .join(' ');
}

function rounded(shape: Shape): Shape {
  return {
    cells: shape.cells.map(({ range, entryBucketSplits }) => {
      const buckets = equalWidthCount(entryBucketSplits, 1024);
      return { range, entryBucketSplits: buckets === undefined ? entryBucketSplits : equalWidthSplits(buckets) };
    }),
  };
}

/** All at rest on the join of what each demands, as far as their hosts can go. */
function expectConverged(world: ConvergenceWorld, { hosts }: Schedule): void {
  const { clusters } = world;
  const join = joinOfDemands(world);
  const expected = hosts.includes('plan') ? rounded(join) : join;
  clusters.forEach((cluster, i) => {
    const state = world.state(cluster);
    expect(state?.isChanging).toBe(false);
    expect(state?.goal).toBe(undefined);
    expect(state?.waiting).toEqual([]);
    const shape = shapeOf(world.layout(cluster));
    if (hosts[i] === 'atomic') return expect(inShort(shape), cluster).toBe(inShort(expected));
    const base = state === undefined ? [] : joinedBase(state);
    const plan = planOperations(world.layout(cluster), expected, PULSAR_OPERATIONS, { base });
    expect(plan.operations, cluster).toEqual([]);
    if (plan.unreachable.length === 0) expect(inShort(shape), cluster).toBe(inShort(expected));
  });
}

function distinctBoundaries(world: ConvergenceWorld): number {
  const all = world.clusters.map((cluster) => shapeOf(world.layout(cluster)));
  const [first, ...others] = all as [Shape, ...Shape[]];
  const join = others.reduce((joined, shape) => joinShapes(joined, shape), first);
  const buckets = join.cells.reduce((sum, { entryBucketSplits }) => sum + entryBucketSplits.length, 0);
  return boundariesOf(join).length + buckets;
}

const atomicHosts = fc.array(fc.constant('atomic' as const), { minLength: 2, maxLength: 6 });
const mixedHosts = fc.array(fc.constantFrom('atomic' as const, 'plan' as const), { minLength: 2, maxLength: 4 });

const seen = { hops: 0, changes: 0, most: 0, ratio: 0 };

function run(schedule: Schedule): ConvergenceWorld {
  const world = worldOf(schedule);
  const isMixed = schedule.hosts.includes('plan');
  for (const happening of schedule.happenings) happen(world, happening, isMixed);
  calm(world);
  const distinct = distinctBoundaries(world);
  rest(world);
  for (const cluster of world.clusters) {
    const { shapeChanges, most } = world.counts(cluster);
    seen.changes = Math.max(seen.changes, shapeChanges);
    seen.most = Math.max(seen.most, most);
    seen.ratio = Math.max(seen.ratio, shapeChanges / Math.max(1, distinct));
  }
  seen.hops = Math.max(seen.hops, world.hops);
  return world;
}

const RUNS = Number(process.env.RUNS ?? 100);

describe('convergence', () => {
  it('atomic hosts', () => {
    fc.assert(
      fc.property(arbSchedule(atomicHosts), (schedule) => {
        expectConverged(run(schedule), schedule);
      }),
      { numRuns: RUNS },
    );
    console.log(seen);
  }, 600000);

  it('mixed hosts', () => {
    fc.assert(
      fc.property(arbSchedule(mixedHosts), (schedule) => {
        expectConverged(run(schedule), schedule);
      }),
      { numRuns: RUNS },
    );
    console.log(seen);
  }, 600000);
});
