/**
 * Steps that scenarios on real clusters share: writing and reading with Pulsar's own clients, and what must be equal on
 * both sides.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { StatusDocument } from '../../examples/pulsar-replicator/status/index.js';
import type { RawEntry } from './java-client.js';
import type { ReplicatorProcess } from './replicator.js';
import { CHECK, expectOk, type Side, type Stage } from './stage.js';

/** How long nothing may come before a reader has read all. */
export const QUIET_MS = 4_000;
/** One direction is enough where nothing else is said. */
export const FORTH = { directions: [['a', 'b']] } as const;

export interface Load {
  readonly count: number;
  readonly seed: number;
  readonly ratePerSecond?: number;
  readonly keys?: number;
  /** Where what was stored is noted down; default `written-<topic>-<cluster>`. */
  readonly tally?: string;
}

/** Writes with the Java client, and gives the name of the tally. */
export async function write(side: Side, topic: string, load: Load): Promise<string> {
  const { tally = `written-${topic}-${side.broker.name}` } = load;
  const producer = await side.java.producer(`topic://${topic}`, { compression: load.seed % 2 === 0 ? 'zstd' : 'lz4' });
  const name = `${side.broker.name}-${load.seed}`;
  const { stored, failed, error } = await producer.generate({ ...load, name, keyPrefix: side.broker.name, tally });
  expect({ stored, failed, error }).toEqual({ stored: load.count, failed: 0, error: '' });
  await producer.close();
  return tally;
}

/** Reads the messages of a side, so many different ones, with Pulsar's own consumer, which keeps the order of keys. */
export async function read({ java }: Pick<Stage, 'java'>, side: Side, topic: string, count: number): Promise<string> {
  const tally = `read-${topic}-${side.broker.name}-${Math.random()}`;
  const consumer = await side.java.streamConsumer(`topic://${topic}`, CHECK);
  await consumer.read({ count, tally });
  // What is there twice comes behind what is awaited, or before.
  const endMs = Date.now() + 60_000;
  do await consumer.read({ quietMs: QUIET_MS, tally });
  while ((await java.tally(tally)).distinct < count && Date.now() < endMs);
  await consumer.close();
  return tally;
}

/** Both sides hold the same, all of what was written in its order, and nothing more often than where it was written. */
export async function expectEqual(
  stage: Pick<Stage, 'a' | 'b' | 'java'>,
  topic: string,
  written: readonly string[],
  count: number,
): Promise<void> {
  const [left, right] = await Promise.all([read(stage, stage.a, topic, count), read(stage, stage.b, topic, count)]);
  for (const tally of written) {
    for (const side of [left, right]) {
      const { missing, orderBreaks, examples } = await stage.java.compare(tally, side);
      expect({ side, missing, orderBreaks, examples: missing + orderBreaks > 0 ? examples : {} }).toEqual({
        side,
        missing: 0,
        orderBreaks: 0,
        examples: {},
      });
    }
  }
  const { missing, extra, orderBreaks, duplicatesLeft, duplicatesRight } = await stage.java.compare(left, right);
  expect({ missing, extra, orderBreaks }).toEqual({ missing: 0, extra: 0, orderBreaks: 0 });
  // A producer of 5.0.1 may itself store something twice, when its connection is slow; then it is so on both sides.
  expect(duplicatesRight).toBe(duplicatesLeft);
  for (const tally of [...written, left, right]) await stage.java.forget(tally);
}

/**
 * Waits until nothing is left to be replicated: the process has begun with each segment that is not another's, and the
 * source's own statistics agree, since what a status tells of them may be seconds old.
 */
export async function settle(
  stage: Pick<Stage, 'a' | 'b'>,
  topic: string,
  replicator: ReplicatorProcess,
  directions: readonly (readonly ['a' | 'b', 'a' | 'b'])[] = FORTH.directions,
): Promise<void> {
  for (const [from, to] of directions) {
    await replicator.until(`everything is read from ${from}`, (status) => isIdle(status, from), 120_000);
    const backlogs = () => backlogsOf(stage[from], topic, `isthmus.${to}`);
    const isAcknowledged = async () => [...(await backlogs())].every(([, backlog]) => backlog === 0);
    await waitFor(`everything is acknowledged on ${from}`, isAcknowledged).catch(async (error: unknown) => {
      const left = JSON.stringify({ backlogs: [...(await backlogs())], status: await replicator.status() });
      throw new Error(`${error}\n${left}\n${replicator.log.slice(-4_000)}`);
    });
  }
}

export const BOTH = [
  ['a', 'b'],
  ['b', 'a'],
] as const;

function isIdle({ topics }: StatusDocument, cluster: string): boolean {
  const segments = topics.flatMap(({ directions }) => directions.filter(({ from }) => from === cluster));
  const lines = segments.flatMap((direction) => direction.segments);
  const isDone = ({ state, unsettledEntries, owner }: (typeof lines)[number]) =>
    owner === 'other' || state === 'drained' || (state === 'running' && unsettledEntries === 0);
  return lines.length > 0 && lines.every(isDone);
}

/** Entries not acknowledged, by segment. */
export async function backlogsOf(
  side: Pick<Side, 'admin' | 'broker'>,
  topic: string,
  subscription: string,
): Promise<ReadonlyMap<number, number>> {
  const backlogs = expectOk(await side.admin.subscriptions(topic)).get(subscription)?.backlogs;
  if (backlogs === undefined) throw new Error(`${topic} on ${side.broker.name} has no subscription ${subscription}`);
  return backlogs;
}

export async function waitFor(what: string, isSo: () => Promise<boolean> | boolean, limitMs = 120_000): Promise<void> {
  const endMs = Date.now() + limitMs;
  while (!(await isSo())) {
    if (Date.now() > endMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(200);
  }
}

/** What is stored in the segments of a side, entry by entry, in the order of their ids. */
export async function stored(side: Side, topic: string): Promise<readonly RawEntry[]> {
  const entries: RawEntry[] = [];
  for (const segment of await segmentNames(side, topic)) entries.push(...(await side.java.raw(segment)));
  return entries;
}

/** `segment://...`, sealed ones too, in the order of their ids. */
export async function segmentNames(side: Side, topic: string): Promise<readonly string[]> {
  const layout = expectOk(await side.admin.scalableLayout(topic));
  const hex = (hash: number) => hash.toString(16).padStart(4, '0');
  return Array.from(
    layout.segments.values(),
    ({ segmentId, range }) => `segment://${topic}/${hex(range.start)}-${hex(range.end)}-${segmentId}`,
  );
}
