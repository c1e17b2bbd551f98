/**
 * `simulate`: worlds of whole clusters by seed. Real controllers, replicators and stores of cursors run on a virtual clock,
 * with hosts of both kinds, a network that loses, doubles and delays, disks that fail a write, processes that die between
 * any two effects, and clocks that jump. The invariants of replication and the theorem of convergence are checked after
 * every step; a schedule that breaks one is made as short as it gets, and can be run again by itself.
 */
import fc from 'fast-check';
import { stepController } from '../convergence/index.js';
import type { Codecs } from '../entry/index.js';
import { IsthmusError, messageOf, show } from '../errors.js';
import { BrokenInvariant } from './convergence-invariants.js';
import { MAX_CLUSTERS } from './replication-world.js';
import { type SimulationFailure, shortened } from './simulation-failure.js';
import {
  arbSimulationSchedule,
  isFault,
  runSimulation,
  type SettledWorld,
  SIMULATION_FAULTS,
  type SimulationFault,
  type SimulationSchedule,
  type SimulationScheduleOptions,
  type SimulationSettings,
} from './simulation-schedule.js';

export interface SimulateOptions extends SimulationScheduleOptions {
  /** How many worlds, or the seeds of just these; default 100. A seed is a safe integer. */
  readonly seeds?: number | readonly number[];
  /** The first seed, when `seeds` is a number; default 1. */
  readonly firstSeed?: number;
  /** Producers compress with these; default none. */
  readonly codecs?: Codecs;
  /** What is wrong in these worlds: to see that it is caught. */
  readonly mutant?: SimulationMutant;
  /** Makes the schedule that breaks an invariant as short as it gets; default true. */
  readonly shrinks?: boolean;
  /** Told after every world. */
  readonly onWorld?: (report: SimulationReport) => void;
}

/** A fault in the machines or hosts themselves. A simulator that does not catch it is worthless. */
export interface SimulationMutant {
  /** The rule of the controllers in the place of the real one. */
  readonly step?: (real: typeof stepController) => typeof stepController;
  /** Segments begin before their parents are drained. */
  readonly isParentGateDropped?: boolean;
  /** Changes something before the first world; what it returns takes that back behind the last. */
  readonly install?: () => () => void;
}

export interface SimulationReport {
  /** The worlds that have run to their end, one schedule each. */
  readonly schedules: number;
  /** What happened in them, all together. */
  readonly happenings: number;
  /** Callbacks of their virtual clocks; after each the invariants were checked. */
  readonly steps: number;
  /** How often each kind of fault happened. */
  readonly faults: ReadonlyMap<SimulationFault, number>;
  /** What was seen to happen in the worlds, and how often. */
  readonly counts: ReadonlyMap<string, number>;
  /** The first world that broke an invariant; there is none behind it. */
  readonly failure?: SimulationFailure;
}

/**
 * Runs worlds until one breaks an invariant or all have settled. The same seed and options always give the same world.
 * Throws `invalidArgument` on options out of their ranges; a broken invariant is a value.
 */
export function simulate(options: SimulateOptions = {}): SimulationReport {
  const seeds = seedsOf(options);
  checkOptions(options);
  const { mutant = {}, codecs = {}, onWorld, shrinks = true } = options;
  const settings = {
    codecs,
    ...(mutant.isParentGateDropped === undefined ? {} : { isParentGateDropped: mutant.isParentGateDropped }),
    ...(mutant.step === undefined ? {} : { step: mutant.step(stepController) }),
  };
  const schedules = arbSimulationSchedule(options);
  const tally = new Tally();
  const takeBack = mutant.install?.();
  try {
    for (const seed of seeds) {
      const [schedule] = fc.sample(schedules, { seed, numRuns: 1 }) as [SimulationSchedule];
      const broken = breakOf(schedule, settings, (world) => tally.add(schedule, world));
      if (broken !== undefined) {
        const isSame = (other: SimulationSchedule) => {
          const again = breakOf(other, settings);
          return again?.invariant === broken.invariant ? again.message : undefined;
        };
        const shortest = shrinks ? shortened(schedule, broken.message, isSame) : { schedule, message: broken.message };
        return tally.report({ seed, ...broken, schedule, shortest });
      }
      onWorld?.(tally.report());
    }
  } finally {
    takeBack?.();
  }
  return tally.report();
}

/** The invariant that a schedule breaks, and what is seen; undefined when its world settles. */
function breakOf(
  schedule: SimulationSchedule,
  settings: SimulationSettings,
  onSettled: (world: SettledWorld) => void = () => undefined,
): { readonly invariant: string; readonly message: string } | undefined {
  try {
    onSettled(runSimulation(schedule, settings));
    return undefined;
  } catch (error) {
    const message = messageOf(error);
    if (error instanceof BrokenInvariant) return { invariant: message.split(':')[0] ?? '', message };
    // A lane refuses what would overtake.
    return { invariant: message.startsWith('a send at') ? 'order' : 'error', message };
  }
}

function seedsOf({ seeds = 100, firstSeed = 1 }: SimulateOptions): readonly number[] {
  if (typeof seeds !== 'number') {
    const wrong = seeds.find((seed) => !Number.isSafeInteger(seed));
    if (wrong === undefined) return seeds;
    throw new IsthmusError('invalidArgument', `a seed is ${show(wrong)}: seeds are safe integers`);
  }
  requireInteger('seeds', seeds, 1, Number.MAX_SAFE_INTEGER);
  requireInteger('firstSeed', firstSeed, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - seeds);
  return Array.from({ length: seeds }, (_, i) => firstSeed + i);
}

function checkOptions({ clusters = 2, steps = 0, faults = [] }: SimulateOptions): void {
  requireInteger('clusters', clusters, 2, MAX_CLUSTERS);
  requireInteger('steps', steps, 0, 10_000);
  const unknown = faults.find((fault) => !isFault(fault));
  if (unknown === undefined) return;
  throw new IsthmusError('invalidArgument', `${show(unknown)} is no fault: they are ${SIMULATION_FAULTS.join(', ')}`);
}

function requireInteger(name: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new IsthmusError('invalidArgument', `${name} is ${show(value)}: it is an integer of ${least} to ${most}`);
}

/** Adds up what worlds have seen. */
class Tally {
  private schedules = 0;
  private happenings = 0;
  private steps = 0;
  private readonly faults = new Map<SimulationFault, number>();
  private readonly counts = new Map<string, number>();

  add({ happenings }: SimulationSchedule, { steps, counts }: SettledWorld): void {
    this.schedules++;
    this.happenings += happenings.length;
    this.steps += steps;
    for (const { type } of happenings) if (isFault(type)) this.faults.set(type, (this.faults.get(type) ?? 0) + 1);
    for (const [what, times] of counts) this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  report(failure?: SimulationFailure): SimulationReport {
    const { schedules, happenings, steps, faults, counts } = this;
    return { schedules, happenings, steps, faults, counts, ...(failure === undefined ? {} : { failure }) };
  }
}
