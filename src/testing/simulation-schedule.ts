/**
 * Random schedules for a simulated world of whole clusters: what kind of world, and what happens in it when. One schedule
 * always takes the same course, and runs again by itself.
 */
import fc from 'fast-check';
import type { stepController } from '../convergence/index.js';
import type { Codecs } from '../entry/index.js';
import { CONTROLLER_FAULTS, type ControllerHappeningType, happenToController, REQUESTS } from './cluster-happenings.js';
import { ClusterWorld } from './cluster-world.js';
import { FAULTS, type HappeningType, happen, LAST_MS, WRITES } from './replication-schedule.js';

/** Changes that others make behind the controllers' backs, and what stores let go. */
const CHANGES = { split: 1, merge: 1, rebucket: 1, rollover: 1, sealEarly: 2, coarsen: 1, prune: 3, trim: 2 };

/** Every kind of fault that a simulation may contain. */
export const SIMULATION_FAULTS = Object.freeze([
  // Replicators, their connections and their stores.
  ...(['crash', 'cut', 'stall', 'sealInFlight', 'tear', 'refuse', 'once', 'takeover', 'endOld', 'restart'] as const),
  ...(['pause', 'resume', 'reject', 'skip', 'evict', 'clock', 'forgetAcks', 'losePin'] as const),
  // Controllers, their stores and the links between them.
  ...(['leaderCrash', 'elect', 'retire', 'changeFailsBefore', 'changeFailsAfter', 'partition', 'heal'] as const),
  ...(['leave', 'rejoin', 'unsupported', 'supported', 'leaderClock'] as const),
]);

/** A kind of fault. */
export type SimulationFault = (typeof SIMULATION_FAULTS)[number];

const FAULT_WEIGHTS: Readonly<Record<SimulationFault, number>> = { ...FAULTS, ...CONTROLLER_FAULTS };

/** True for the name of a kind of fault. */
export function isFault(type: string): type is SimulationFault {
  return Object.hasOwn(FAULT_WEIGHTS, type);
}

/** One thing that happens. */
export interface SimulationHappening {
  /** The kind of an entry that is written, of a change or a request, or of a fault. */
  readonly type: string;
  /** The number of the cluster it happens on, or of the direction whose replicator it happens to; any is taken round. */
  readonly at: number;
  /** Chooses among what there is then. */
  readonly pick: number;
  /** How much time passes before it, in milliseconds. */
  readonly afterMs: number;
}

/** The course of one simulated world. */
export interface SimulationSchedule {
  /** For what the network, hosts and processes do by chance. */
  readonly seed: number;
  /** By cluster: how many segments and buckets its topic begins with, and how its host is changed. */
  readonly segments: readonly number[];
  readonly buckets: readonly number[];
  readonly hosts: readonly ('atomic' | 'plan')[];
  /** How destinations recognise what they have: by dedup windows, or they are read back (R15). */
  readonly remotes: 'window' | 'readBack';
  /** All clusters replicate to each other, or the first to the others. */
  readonly directions: 'all' | 'first';
  readonly failStop: boolean;
  readonly tellsRanges: boolean;
  readonly tellsTogether: boolean;
  readonly tellsWatermarks: boolean;
  /** How long all has been running when the first thing happens. */
  readonly begunMs: number;
  /** The longest that a message between replicator and cluster takes. */
  readonly delayMs: number;
  /** 0: nothing expires. */
  readonly ttlMs: number;
  readonly happenings: readonly SimulationHappening[];
}

export interface SimulationScheduleOptions {
  /** 2..6, default 2. */
  readonly clusters?: number;
  /** The most happenings, default 60. */
  readonly steps?: number;
  /** What may go wrong; default everything. */
  readonly faults?: readonly SimulationFault[];
  /** Default `mixed`. */
  readonly hosts?: 'atomic' | 'plan' | 'mixed';
  /** Default `mixed`. */
  readonly remotes?: SimulationSchedule['remotes'] | 'mixed';
}

/** Schedules of worlds; they shrink to few happenings in a plain world. */
export function arbSimulationSchedule(options: SimulationScheduleOptions = {}): fc.Arbitrary<SimulationSchedule> {
  const { clusters = 2, steps = 60, faults = SIMULATION_FAULTS, hosts = 'mixed', remotes = 'mixed' } = options;
  const counts = (max: number) => fc.array(fc.integer({ min: 1, max }), { minLength: clusters, maxLength: clusters });
  const kinds = hosts === 'mixed' ? (['atomic', 'atomic', 'plan'] as const) : [hosts];
  return fc.record({
    seed: fc.integer(),
    segments: counts(3),
    buckets: counts(4),
    hosts: fc.array(fc.constantFrom(...kinds), { minLength: clusters, maxLength: clusters }),
    remotes: remotes === 'mixed' ? fc.constantFrom('window' as const, 'readBack' as const) : fc.constant(remotes),
    directions: fc.constantFrom('first' as const, 'all' as const),
    failStop: fc.boolean(),
    tellsRanges: fc.boolean(),
    tellsTogether: fc.boolean(),
    tellsWatermarks: fc.boolean(),
    begunMs: fc.constantFrom(0, 60, 300),
    delayMs: fc.constantFrom(12, 3, 40),
    ttlMs: fc.constantFrom(0, 0, 0, 400),
    happenings: fc.array(arbHappening(faults, clusters), { maxLength: steps, size: 'max' }),
  });
}

function arbHappening(faults: readonly SimulationFault[], clusters: number): fc.Arbitrary<SimulationHappening> {
  const allowed = faults.map((fault) => [fault, FAULT_WEIGHTS[fault]] as const);
  const weights = [...Object.entries({ ...WRITES, ...CHANGES, ...REQUESTS }), ...allowed];
  return fc.record({
    type: fc.oneof(...weights.map(([type, weight]) => ({ weight, arbitrary: fc.constant(type) }))),
    at: fc.nat({ max: clusters * (clusters - 1) * 3 - 1 }),
    pick: fc.nat({ max: 99 }),
    afterMs: fc.oneof(
      { weight: 8, arbitrary: fc.nat({ max: 6 }) },
      { weight: 3, arbitrary: fc.nat({ max: 40 }) },
      { weight: 1, arbitrary: fc.nat({ max: 400 }) },
    ),
  });
}

/** What a schedule is run with. */
export interface SimulationSettings {
  /** Producers compress with these; default none. */
  readonly codecs?: Codecs;
  /** The rule of the controllers; default the real one. */
  readonly step?: typeof stepController;
  /** Segments begin before their parents are drained: for tests of the simulation itself. */
  readonly isParentGateDropped?: boolean;
  /** Told what replicators hear and do, one line each. */
  readonly onTrace?: (line: string) => void;
}

/** A world that has settled. */
export interface SettledWorld {
  /** What was seen to happen in it, and how often. */
  readonly counts: ReadonlyMap<string, number>;
  /** Callbacks of its virtual clock; after each the invariants were checked. */
  readonly steps: number;
}

/** Lets a schedule happen to its end, and everything settle. Throws `BrokenInvariant`. */
export function runSimulation(schedule: SimulationSchedule, settings: SimulationSettings = {}): SettledWorld {
  const { segments, buckets, remotes, delayMs, ttlMs, begunMs, happenings, ...kind } = schedule;
  const world = new ClusterWorld({
    ...kind,
    clusters: segments.map((count, i) => ({ segments: count, buckets: buckets[i] ?? 1 })),
    dedup: remotes,
    delayMs: [1, delayMs],
    options: { ttlMs },
    codecs: {},
    ...settings,
  });
  const { replication } = world;
  replication.advance(begunMs);
  for (const { type, at, pick, afterMs } of happenings) {
    replication.advance(afterMs);
    if (isControllers(type)) happenToController(world, { type, at, pick });
    else happen(replication, { type: type as HappeningType, at, pick }, { ttlMs });
  }
  replication.advance(LAST_MS);
  world.calm();
  world.settle();
  world.checkVerbatim();
  replication.collectGarbage();
  // Pruning tells of new epochs, and changes no shape.
  world.settle();
  return { counts: world.counts, steps: replication.clock.steps };
}

function isControllers(type: string): type is ControllerHappeningType {
  return Object.hasOwn(REQUESTS, type) || Object.hasOwn(CONTROLLER_FAULTS, type);
}
