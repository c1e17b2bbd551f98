/**
 * A schedule that breaks an invariant, and how it is made as short as it gets: happenings are left out by halves,
 * quarters and so on down to single ones (delta debugging), then what is left and the world itself are made plain.
 */
import type { SimulationHappening, SimulationSchedule } from './simulation-schedule.js';

/** The first world of a simulation that broke an invariant. */
export interface SimulationFailure {
  readonly seed: number;
  /**
   * The invariant that was broken: `loss`, `order`, `affinity`, `loops`, `duplicates`, `verbatim`, `cursor`, `drained`,
   * `checkpoint`, `budget`, `progress`, `garbage`, `convergence`, `theorem`, or `error` for what a machine threw.
   */
  readonly invariant: string;
  /** What was seen. */
  readonly message: string;
  /** The schedule of the seed. */
  readonly schedule: SimulationSchedule;
  /** A shorter one that breaks the same invariant, and what is seen then. */
  readonly shortest: { readonly schedule: SimulationSchedule; readonly message: string };
}

/** The most schedules that are tried. */
const MAX_TRIES = 600;

/** What is seen when a schedule breaks the same invariant again; undefined when it does not. */
type Trial = (schedule: SimulationSchedule) => string | undefined;

/** The shortest schedule that was found to break the same invariant, and what is seen then. */
export function shortened(schedule: SimulationSchedule, message: string, trial: Trial): SimulationFailure['shortest'] {
  let best = { schedule, message };
  let tries = 0;
  const accepts = (change: Partial<SimulationSchedule>): boolean => {
    if (++tries > MAX_TRIES) return false;
    const candidate = { ...best.schedule, ...change };
    const seen = trial(candidate);
    if (seen !== undefined) best = { schedule: candidate, message: seen };
    return seen !== undefined;
  };
  const leaveOut = (size: number): void => {
    for (let at = 0; at < best.schedule.happenings.length; ) {
      const { happenings } = best.schedule;
      if (!accepts({ happenings: [...happenings.slice(0, at), ...happenings.slice(at + size)] })) at += size;
    }
  };
  for (let size = Math.ceil(schedule.happenings.length / 2); size > 1; size = Math.ceil(size / 2)) leaveOut(size);
  leaveOut(1);
  for (const change of plainer(best.schedule)) accepts(change);
  best.schedule.happenings.forEach(({ afterMs, pick }, i) => {
    const change = (part: Partial<SimulationHappening>) => ({
      happenings: best.schedule.happenings.map((happening, j) => (i === j ? { ...happening, ...part } : happening)),
    });
    if (afterMs > 0) accepts(change({ afterMs: 0 }));
    if (pick > 0) accepts(change({ pick: 0 }));
  });
  // In a plainer world less may be enough.
  leaveOut(1);
  return best;
}

/** What a plain world has, one by one. */
function plainer(schedule: SimulationSchedule): Partial<SimulationSchedule>[] {
  const ones = schedule.segments.map(() => 1);
  const plain: SimulationSchedule = {
    ...schedule,
    segments: ones,
    buckets: ones,
    hosts: schedule.hosts.map(() => 'atomic'),
    directions: 'first',
    failStop: true,
    tellsRanges: true,
    tellsTogether: false,
    tellsWatermarks: true,
    begunMs: 0,
    delayMs: 3,
    ttlMs: 0,
  };
  return Object.entries(plain)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(schedule[name as keyof SimulationSchedule]))
    .map(([name, value]) => ({ [name]: value }));
}

/** A failure as a reader wants it: what is broken, in which world, by which few happenings, and how to see it again. */
export function describeFailure({ seed, invariant, schedule, shortest }: SimulationFailure): string {
  const { happenings, ...world } = shortest.schedule;
  const lines = happenings.map(({ type, at, pick, afterMs }) => {
    return `  ${`+${afterMs} ms`.padStart(8)}  ${type.padEnd(18)} at ${at}, pick ${pick}`;
  });
  return [
    `seed ${seed} breaks ${invariant}: ${shortest.message}`,
    `in a world of ${Object.entries(world)
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(', ')},`,
    `${happenings.length} of ${schedule.happenings.length} happenings are enough:`,
    ...lines,
    `again: runSimulation(${JSON.stringify(shortest.schedule)}, { codecs })`,
  ].join('\n');
}
