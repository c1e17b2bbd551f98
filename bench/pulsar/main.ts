/**
 * isthmus between two scalable topics beside Pulsar's own geo-replicator between two classic topics, on the same two
 * brokers in one run: entries and bytes a second while a backlog is drained, and the CPU time of every process.
 * `--rounds N`: rounds of each load that count, default 3. `--mib N`: the size of a backlog of 26 KB batches, default
 * 128, and the others in proportion. `--only TEXT`: the loads whose name holds the text. `--profile FOLDER`: where a CPU
 * profile of isthmus is written.
 */
import { parseArgs } from 'node:util';
import { type ContestOptions, contest, type Load } from './contest.js';
import { tableOf } from './table.js';

/** By size of backlog in relation to `--mib`. The first one also has the compilers of all processes do their work. */
const LOADS: readonly Load[] = [
  { name: '1 KiB singles', batch: 1, mib: 0.25 },
  { name: '26 KB batches', batch: 25, mib: 1 },
  { name: '100 KB batches', batch: 97, mib: 1.5 },
];

const EXPLANATION = `Both drained equal backlogs that were written while the destination was down, one after the other, in an order that
changes with the round; a round before the first is not counted. Measured from the first to the last entry stored at the
destination, at ten looks a second. Medians of the rounds; CPU seconds, user and system, are for one backlog.
A ratio is isthmus over Pulsar's own: above 1 is better for rates, below 1 for CPU.`;

function options(): Pick<ContestOptions, 'loads' | 'rounds' | 'profileFolder'> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      mib: { type: 'string', default: '128' },
      only: { type: 'string', default: '' },
      profile: { type: 'string' },
    },
  });
  const { only, profile: profileFolder } = values;
  const size = count('mib', values.mib);
  const loads = LOADS.filter(({ name }) => name.includes(only)).map((load) => ({ ...load, mib: load.mib * size }));
  if (loads.length === 0)
    throw new Error(`--only ${only}: it is in none of ${LOADS.map(({ name }) => name).join(', ')}`);
  return { loads, rounds: count('rounds', values.rounds), profileFolder };
}

function count(name: string, value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 1 && number <= 10_000) return number;
  throw new Error(`--${name} ${value}: a whole number from 1 to 10000`);
}

const closers: (() => Promise<void>)[] = [];
let isStopping = false;

async function close(): Promise<void> {
  for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer();
}

/** What is started and not known here yet ends with this process. */
function stop(): void {
  if (isStopping) return;
  isStopping = true;
  console.log('stopping');
  void close().finally(() => process.exit(130));
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
try {
  const results = await contest({ ...options(), closers, say: (text) => console.log(text) });
  console.log(`\n${tableOf(results)}\n\n${EXPLANATION}`);
} catch (error) {
  // Whatever fails while all is being stopped, fails for that.
  if (!isStopping) console.error(error);
  process.exitCode = 1;
}
if (!isStopping) await close();
