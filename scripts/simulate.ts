/**
 * Simulated worlds of replication by seed: `npm run simulate -- --seeds N --first S --clusters M`. Half of the worlds
 * have remotes with dedup windows, half of them remotes that are read back. A violation is shrunk and printed.
 */
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { defaultCodecs } from '../src/entry/index.js';
import { arbReplicationSchedule, runReplicationSchedule } from '../src/testing/replication-schedule.js';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20000' },
    first: { type: 'string', default: '1' },
    clusters: { type: 'string', default: '2' },
  },
});
const [seeds, first, clusters] = [values.seeds, values.first, values.clusters].map(Number) as [number, number, number];
if (![seeds, first, clusters].every(Number.isSafeInteger) || clusters < 2 || clusters > 3) {
  throw new Error('--seeds and --first are integers, --clusters is 2 or 3');
}
const codecs = await defaultCodecs();
const schedules = arbReplicationSchedule({ clusters });
const counts = new Map<string, number>();
const begun = performance.now();
let happenings = 0;
let shownAt = 0;

for (let seed = first; seed < first + seeds; seed++) {
  const dedup = seed % 2 === 0 ? 'window' : 'readBack';
  const details = fc.check(
    fc.property(schedules, (schedule) => {
      const world = runReplicationSchedule(schedule, { dedup, codecs });
      happenings += schedule.happenings.length;
      for (const [what, times] of world.counts) counts.set(what, (counts.get(what) ?? 0) + times);
    }),
    { seed, numRuns: 1 },
  );
  if (details.failed) {
    const [schedule] = details.counterexample ?? [];
    console.log(`\nseed ${seed}, ${dedup}: ${String(details.errorInstance)}\n${JSON.stringify(schedule)}`);
    process.exit(1);
  }
  show(seed - first + 1, false);
}
show(seeds, true);
for (const [what, times] of [...counts].sort()) console.log(`${String(times).padStart(10)}  ${what}`);
console.log(`${seeds} seeds, no violation`);

function show(done: number, isLast: boolean): void {
  const now = performance.now();
  if (!isLast && now - shownAt < (process.stdout.isTTY ? 200 : 20_000)) return;
  shownAt = now;
  const rate = Math.round((done * 1000) / (now - begun));
  const line = `${done} of ${seeds} seeds, ${happenings} happenings, ${rate} seeds per second`;
  if (process.stdout.isTTY && !isLast) process.stdout.write(`\r${line}`);
  else console.log(line);
}
