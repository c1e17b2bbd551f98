/**
 * Simulated worlds by seed: `npm run simulate -- --seeds N --first S --clusters M`, and `--hosts`, `--remotes`, `--steps`,
 * `--faults crash,cut` as the options of `simulate` say. A world that breaks an invariant is made short and printed.
 * `--world replication` runs replicators alone, over layouts that change at random; their topics may begin as classic ones.
 */
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { defaultCodecs } from '../src/entry/index.js';
import {
  describeFailure,
  type SimulateOptions,
  type SimulationFault,
  type SimulationReport,
  simulate,
} from '../src/testing/index.js';
import { arbReplicationSchedule, runReplicationSchedule } from '../src/testing/replication-schedule.js';

const { values } = parseArgs({
  options: {
    world: { type: 'string', default: 'clusters' },
    seeds: { type: 'string', default: '20000' },
    first: { type: 'string', default: '1' },
    clusters: { type: 'string', default: '2' },
    steps: { type: 'string', default: '60' },
    hosts: { type: 'string', default: 'mixed' },
    remotes: { type: 'string', default: 'mixed' },
    faults: { type: 'string' },
  },
});
const [seeds, firstSeed, clusters, steps] = [values.seeds, values.first, values.clusters, values.steps].map(Number) as [
  number,
  number,
  number,
  number,
];
const codecs = await defaultCodecs();
const begun = performance.now();
let shownAt = begun;

if (values.world === 'replication') simulateReplication();
else if (values.world === 'clusters') simulateClusters();
else throw new Error(`--world is ${values.world}: it is clusters or replication`);

function simulateClusters(): void {
  const report = simulate({
    seeds,
    firstSeed,
    clusters,
    steps,
    codecs,
    hosts: values.hosts as NonNullable<SimulateOptions['hosts']>,
    remotes: values.remotes as NonNullable<SimulateOptions['remotes']>,
    ...(values.faults === undefined ? {} : { faults: values.faults.split(',').filter(Boolean) as SimulationFault[] }),
    onWorld: (soFar) => show(soFar, false),
  });
  show(report, true);
  printCounts('faults', report.faults);
  printCounts('seen', report.counts);
  if (report.failure === undefined) return console.log(`${report.schedules} seeds, no violation`);
  console.log(`\n${describeFailure(report.failure)}`);
  process.exitCode = 1;
}

/** Half of the worlds have remotes with dedup windows, half of them remotes that are read back. */
function simulateReplication(): void {
  const schedules = arbReplicationSchedule({ clusters, maxHappenings: steps });
  const counts = new Map<string, number>();
  const sum = { schedules: 0, happenings: 0, steps: 0 };
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const dedup = seed % 2 === 0 ? 'window' : 'readBack';
    const details = fc.check(
      fc.property(schedules, (schedule) => {
        const world = runReplicationSchedule(schedule, { dedup, codecs });
        sum.happenings += schedule.happenings.length;
        sum.steps += world.clock.steps;
        for (const [what, times] of world.counts) counts.set(what, (counts.get(what) ?? 0) + times);
      }),
      { seed, numRuns: 1 },
    );
    if (details.failed) {
      const [schedule] = details.counterexample ?? [];
      console.log(`\nseed ${seed}, ${dedup}: ${String(details.errorInstance)}\n${JSON.stringify(schedule)}`);
      process.exit(1);
    }
    sum.schedules++;
    show(sum, false);
  }
  show(sum, true);
  printCounts('seen', counts);
  console.log(`${seeds} seeds, no violation`);
}

function show(
  { schedules, happenings, steps: ran }: Pick<SimulationReport, 'schedules' | 'happenings' | 'steps'>,
  isLast: boolean,
): void {
  const now = performance.now();
  if (!isLast && now - shownAt < (process.stdout.isTTY ? 200 : 20_000)) return;
  shownAt = now;
  const rate = ((schedules * 1000) / (now - begun)).toFixed(1);
  const line = `${schedules} of ${seeds} schedules, ${happenings} happenings, ${ran} steps, ${rate} seeds per second`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}${isLast ? '\n' : ''}`);
  else console.log(line);
}

function printCounts(title: string, counts: ReadonlyMap<string, number>): void {
  console.log(`${title}:`);
  for (const [what, times] of [...counts].sort()) console.log(`${String(times).padStart(10)}  ${what}`);
}
