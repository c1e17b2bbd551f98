/**
 * One backlog, replicated and watched: how much the destination has stored when, and what CPU time the processes had
 * used by then. What is measured lies between the first entry that was seen stored and the last one, so that neither
 * starting, connecting nor looking up counts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from './cpu.js';
import type { Stored, Way } from './ways.js';

/** The processes that take part, by name. */
export type Processes = Readonly<Record<string, number | undefined>>;

export interface Drain {
  readonly entries: number;
  readonly bytes: number;
  /** How long what follows was measured. */
  readonly seconds: number;
  readonly entriesPerSecond: number;
  readonly bytesPerSecond: number;
  /** Seconds by process, for the whole backlog; undefined where unknown. */
  readonly cpu: Readonly<Record<string, number | undefined>>;
}

interface Sample extends Stored {
  readonly atMs: number;
  readonly cpu: readonly (number | undefined)[];
}

const LOOK_MS = 100;
/** So long nothing is stored any more before it is over, and before it has failed. */
const QUIET_MS = 1_000;
const STUCK_MS = 90_000;

export interface DrainOptions {
  readonly way: Way;
  readonly topic: string;
  readonly written: Stored;
  readonly processes: Processes;
}

/** Rejects when the replication does not come to its end, or stores more than was written. */
export async function drain({ way, topic, written, processes }: DrainOptions): Promise<Drain> {
  await way.begin(topic);
  const pids = Object.values(processes);
  const samples: Sample[] = [];
  let grownAtMs = performance.now();
  for (;;) {
    const sample = await look(way, topic, pids);
    if (sample.bytes !== samples.at(-1)?.bytes) grownAtMs = sample.atMs;
    samples.push(sample);
    const quietMs = sample.atMs - grownAtMs;
    if (quietMs >= QUIET_MS && sample.entries >= written.entries && (await way.backlog(topic)) === 0) break;
    if (quietMs >= STUCK_MS) {
      throw new Error(`${way.name}: ${topic} stands at ${sample.entries} of ${written.entries} entries`);
    }
    await sleep(Math.max(0, LOOK_MS - (performance.now() - sample.atMs)));
  }
  return outcome(samples, written, processes);
}

/** Of a look, its middle is the time. */
async function look(way: Way, topic: string, pids: readonly (number | undefined)[]): Promise<Sample> {
  const begunMs = performance.now();
  const [stored, ...cpu] = await Promise.all([way.stored(topic), ...pids.map(cpuSeconds)]);
  return { ...stored, atMs: (begunMs + performance.now()) / 2, cpu };
}

function outcome(samples: readonly Sample[], written: Stored, processes: Processes): Drain {
  const last = samples.at(-1);
  // A marker of the replicator is smaller than an entry.
  const from = samples.find(({ bytes }) => bytes >= written.bytes / written.entries);
  const to = samples.find(({ bytes }) => bytes === last?.bytes);
  if (from === undefined || to === undefined || to.atMs <= from.atMs) {
    throw new Error('the backlog was stored before it could be watched: choose a larger one');
  }
  const seconds = (to.atMs - from.atMs) / 1_000;
  const [entries, bytes] = [to.entries - from.entries, to.bytes - from.bytes];
  const cpu = Object.keys(processes).map((name, i) => {
    const [begun, ended] = [from.cpu[i], to.cpu[i]];
    const spent = begun === undefined || ended === undefined ? undefined : ended - begun;
    // What was stored at the first look was paid for before it.
    return [name, spent === undefined ? undefined : (spent * written.bytes) / bytes] as const;
  });
  return {
    entries: written.entries,
    bytes: written.bytes,
    seconds,
    entriesPerSecond: entries / seconds,
    bytesPerSecond: bytes / seconds,
    cpu: Object.fromEntries(cpu),
  };
}
