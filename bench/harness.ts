/**
 * Ratios that can be trusted on a noisy machine: candidates take turns, round by round, each for about the same time,
 * and medians are compared. Nothing here asserts a time.
 */

/** Something to be timed: runs its operation `iterations` times, or asks somebody else to and returns the nanoseconds of one. */
export interface Candidate {
  readonly name: string;
  run(iterations: number): number | undefined | Promise<number>;
}

export interface Timing {
  readonly name: string;
  /** Nanoseconds of one operation. */
  readonly medianNs: number;
}

export interface MeasureOptions {
  readonly rounds?: number;
  /** How long one candidate runs in one round. */
  readonly roundMs?: number;
}

/** Times candidates in turns. */
export async function measure(
  candidates: readonly Candidate[],
  { rounds = 7, roundMs = 150 }: MeasureOptions = {},
): Promise<Timing[]> {
  const iterations: number[] = [];
  for (const candidate of candidates) iterations.push(await calibrate(candidate, roundMs));
  const samples: number[][] = candidates.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, candidate] of candidates.entries()) {
      samples[i]?.push(await time(candidate, iterations[i] ?? 1));
    }
  }
  return candidates.map(({ name }, i) => ({ name, medianNs: median(samples[i] ?? []) }));
}

/** Long enough for the compilers of either side to have done their work. */
const WARM_UP_MS = 1500;

/** Warms a candidate up and finds how many iterations fill a round. */
async function calibrate(candidate: Candidate, roundMs: number): Promise<number> {
  let iterations = 1;
  for (let spentMs = 0; ; ) {
    const ms = ((await time(candidate, iterations)) * iterations) / 1e6;
    spentMs += ms;
    if (ms >= roundMs / 2 && spentMs >= WARM_UP_MS) return Math.max(1, Math.round((iterations * roundMs) / ms));
    if (ms < roundMs / 2) iterations *= 2;
  }
}

async function time(candidate: Candidate, iterations: number): Promise<number> {
  const begun = process.hrtime.bigint();
  const told = await candidate.run(iterations);
  return told ?? Number(process.hrtime.bigint() - begun) / iterations;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** One line of the table. */
export interface Row {
  readonly measure: string;
  readonly against: string;
  /** What is measured; default nanoseconds. */
  readonly unit?: 'bytes';
  /** What isthmus takes, in nanoseconds. */
  readonly ns: number;
  /** What the other takes. */
  readonly otherNs: number;
  /** The larger is better or the smaller, as the goal says. */
  readonly ratio: number;
  readonly goal: string;
  readonly met: boolean;
}

/** A row whose goal is to be so many times faster than the other. */
export function fasterThan(measure: string, against: string, ns: number, otherNs: number, goal: number): Row {
  const ratio = otherNs / ns;
  return { measure, against, ns, otherNs, ratio, goal: `${goal}x faster`, met: ratio >= goal };
}

/** A row whose goal is to cost at most so many times the other. */
export function atMost(measure: string, against: string, ns: number, otherNs: number, goal: number): Row {
  const ratio = ns / otherNs;
  return { measure, against, ns, otherNs, ratio, goal: `at most ${goal}x`, met: ratio <= goal };
}

export function printRows(rows: readonly Row[]): void {
  const lines = [
    ['measure', 'isthmus', 'against', '', 'ratio', 'goal', ''],
    ...rows.map(({ measure, against, unit, ns, otherNs, ratio, goal, met }) => [
      measure,
      unit === 'bytes' ? megabytes(ns) : duration(ns),
      against,
      unit === 'bytes' ? megabytes(otherNs) : duration(otherNs),
      ratio.toFixed(2),
      goal,
      met ? 'met' : 'not met',
    ]),
  ];
  const widths = lines[0]?.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0))) ?? [];
  for (const line of lines)
    console.log(
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

function duration(ns: number): string {
  if (ns < 1e3) return `${ns.toFixed(0)} ns`;
  return ns < 1e6 ? `${(ns / 1e3).toFixed(2)} us` : `${(ns / 1e6).toFixed(2)} ms`;
}
