/** The source on a real broker: the acceptance suite, seals, markers, claims, cuts, and large backlogs. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  batchMessage,
  comparePositions,
  encodeBatch,
  encodeMessage,
  type SourcePosition,
  type StoredEntry,
} from 'isthmus';
import { testEntrySource } from 'isthmus/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PulsarAdmin } from '../../src/adapters/pulsar/admin/index.js';
import { createPulsarClient, type PulsarClient } from '../../src/adapters/pulsar/protocol/index.js';
import {
  adminSubscriptions,
  type PulsarSource,
  type PulsarSourceOptions,
  pulsarSource,
} from '../../src/adapters/pulsar/source/index.js';
import type { Members } from '../../src/adapters/pulsar/state/index.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { layWire, Topic, type Wire } from './remote-stage.js';

let clusters: Clusters;
let cluster: Cluster;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  clusters = await openClusters(1);
  cluster = clusters.all[0] as Cluster;
});
afterAll(() => clusters?.stop());
afterEach(end);

async function end(): Promise<void> {
  for (const close of ends.splice(0).reverse()) await close();
}

function client(serviceUrl = cluster.serviceUrl): PulsarClient {
  const opened = createPulsarClient({ serviceUrls: [serviceUrl] });
  ends.push(() => opened.close());
  return opened;
}

function sourceOf(topic: Topic, options: Partial<PulsarSourceOptions> = {}): PulsarSource {
  const admin = new PulsarAdmin({ urls: [cluster.adminUrl] });
  const source = pulsarSource({
    client: options.client ?? client(),
    cluster: cluster.name,
    topic: topic.name,
    subscription: 'isthmus.b',
    subscriptions: adminSubscriptions(admin, topic.name),
    layouts: topic.layouts,
    ...options,
  });
  ends.push(() => source.close());
  return source;
}

async function wire(): Promise<Wire> {
  const laid = await layWire(cluster.serviceUrl);
  ends.push(() => laid.close());
  return laid;
}

interface Kind {
  readonly bytes?: number;
  readonly messages?: number;
  readonly markerType?: number;
}

/** Stores entries one after the other, pipelined, and resolves when all are. */
async function append(topic: Topic, segmentId: number, count: number, kind: Kind = {}): Promise<void> {
  const { bytes = 3, messages, markerType } = kind;
  const producerName = `writer-${Math.random().toString(36).slice(2)}`;
  let left = count;
  let done: (error?: Error) => void = () => undefined;
  const stored = new Promise<void>((resolve, reject) => {
    done = (error) => (error === undefined ? resolve() : reject(error));
  });
  const opened = await client().openProducer(
    { topic: await topic.segmentTopic(segmentId), name: producerName },
    {
      onReceipt: () => {
        if (--left === 0) done();
      },
      onSendError: ({ message }) => done(new Error(message)),
      onClosed: ({ type }) => done(new Error(type)),
    },
  );
  if (opened.type !== 'opened') throw new Error(JSON.stringify(opened));
  for (let i = 0; i < count; i++) {
    const outer = { producerName, sequenceId: BigInt(i), publishTimeMs: Date.now(), markerType };
    const payload = new Uint8Array(bytes).fill(i);
    const entry =
      messages === undefined
        ? encodeMessage(payload, { outer })
        : encodeBatch(
            Array.from({ length: messages }, () => batchMessage({ payload })),
            { outer, compression: 'none', codecs: {} },
          );
    if (!opened.producer.send(BigInt(i), messages ?? 1, entry)) await opened.producer.room();
  }
  await stored;
  await opened.producer.close();
}

/** Reads on until the segment has ended, or so many entries are there. */
async function readAll(
  source: PulsarSource,
  segmentId: number,
  count = Number.POSITIVE_INFINITY,
  after?: SourcePosition,
): Promise<StoredEntry[]> {
  const all: StoredEntry[] = [];
  const { signal } = new AbortController();
  while (all.length < count) {
    const last = all.at(-1)?.position ?? after;
    const { entries, ended } = await source.read(segmentId, last, { maxEntries: 500, maxBytes: 8e6, signal });
    all.push(...entries);
    if (ended) break;
  }
  return all;
}

function checkAscending(entries: readonly StoredEntry[]): void {
  for (const [i, { position }] of entries.entries()) {
    const before = entries[i - 1]?.position;
    if (before !== undefined) expect(comparePositions(before, position)).toBeLessThan(0);
  }
}

/** The backlog once it stands still, or is what it should be. */
async function backlogIs(source: PulsarSource, segmentId: number, expected: number): Promise<void> {
  await expect.poll(() => source.backlog(segmentId), { timeout: 10_000, interval: 100 }).toBe(expected);
}

/** The first layout, which makes the subscription as well. */
async function subscribe(source: PulsarSource): Promise<void> {
  for await (const _ of source.layouts(new AbortController().signal)) return;
}

describe('the acceptance suite', () => {
  testEntrySource(async () => {
    const topic = await Topic.create(cluster);
    return {
      source: sourceOf(topic),
      append: (segmentId, count) => append(topic, segmentId, count),
      split: async (segmentId) => {
        await topic.split(segmentId);
      },
      teardown: end,
      patienceMs: 20_000,
    };
  }, it);
});

describe('a sealed segment', () => {
  it('with markers at its end, or with nothing else, is drained', async () => {
    const topic = await Topic.create(cluster);
    const source = sourceOf(topic);
    await subscribe(source);
    await append(topic, 0, 3);
    await append(topic, 0, 2, { markerType: 1000 });
    await append(topic, 1, 2, { markerType: 1000 });
    await topic.split(0);
    await topic.split(1);
    const all = await readAll(source, 0);
    expect(all.length).toBe(3);
    expect(await readAll(source, 1)).toEqual([]);
    const last = all.at(-1)?.position as SourcePosition;
    await source.acknowledge(0, last);
    await backlogIs(source, 0, 0);
    await backlogIs(source, 1, 0);
  });

  it('has its markers passed at the end, whenever the last entry is acknowledged and by whomever', async () => {
    const { signal } = new AbortController();
    const topic = await Topic.create(cluster);
    const [first, second] = [sourceOf(topic), sourceOf(topic)];
    await subscribe(first);
    const claim = await first.claim(0, signal);
    await append(topic, 0, 3);
    await append(topic, 0, 2, { markerType: 1000 });
    await append(topic, 1, 3);
    await append(topic, 1, 2, { markerType: 1000 });
    await topic.split(0);
    const all = await readAll(first, 0);
    const last = all.at(-1)?.position as SourcePosition;
    // Given back at once, as by a process that has nothing left to do.
    await first.acknowledge(0, last);
    await claim.release();
    await backlogIs(second, 0, 0);

    // An acknowledgement that is made again without anything being read, sealed or not.
    const again = await second.claim(1, signal);
    const entries = await readAll(second, 1, 3);
    await append(topic, 1, 2, { markerType: 1000 });
    await again.release();
    const third = await first.claim(1, signal);
    await first.acknowledge(1, entries.at(-1)?.position as SourcePosition);
    await backlogIs(first, 1, 0);
    await append(topic, 1, 2, { markerType: 1000 });
    await third.release();

    // A process that takes over where nothing but markers is left reads on behind them.
    await second.claim(1, signal);
    const reading = new AbortController();
    const after = await second.acknowledged(1);
    const read = second.read(1, after, { maxEntries: 1, maxBytes: 1, signal: reading.signal }).catch(() => undefined);
    await backlogIs(second, 1, 0);
    reading.abort();
    await read;
  });

  it('is not pruned while it is not drained, and children keep what came before their first consumer', async () => {
    const topic = await Topic.create(cluster, 1);
    const source = sourceOf(topic);
    await subscribe(source);
    await append(topic, 0, 10);
    await topic.split(0);
    const [child] = (await topic.load()).active;
    await append(topic, child?.segmentId as number, 5);
    const parent = await readAll(source, 0);
    expect(parent.length).toBe(10);
    expect((await readAll(source, child?.segmentId as number, 5)).length).toBe(5);
    await source.acknowledge(0, parent.at(4)?.position as SourcePosition);
    await backlogIs(source, 0, 5);
    expect((await readAll(source, 0, 5, parent.at(4)?.position)).length).toBe(5);
  });
});

it('knows the last position with markers, and never one that is too low', async () => {
  const topic = await Topic.create(cluster);
  const source = sourceOf(topic);
  await subscribe(source);
  expect(await source.lastPosition(0)).toBeUndefined();
  for (let round = 1; round <= 3; round++) {
    await append(topic, 0, 5);
    const all = await readAll(source, 0, 5 * round);
    expect(await source.lastPosition(0)).toEqual(all.at(-1)?.position);
  }
  await append(topic, 0, 1, { markerType: 1000 });
  const last = (await readAll(source, 0, 15)).at(-1)?.position as SourcePosition;
  expect(comparePositions((await source.lastPosition(0)) as SourcePosition, last)).toBeGreaterThan(0);
});

it('begins with what comes, where it was told to and the subscription is new', async () => {
  const topic = await Topic.create(cluster);
  await append(topic, 0, 4);
  const source = sourceOf(topic, { startAt: 'latest' });
  await subscribe(source);
  const begin = await source.acknowledged(0);
  expect(begin).toEqual(await source.lastPosition(0));
  await append(topic, 0, 2);
  expect((await readAll(source, 0, 2, begin)).length).toBe(2);
  await source.close();
  const again = sourceOf(topic, { startAt: 'latest' });
  await subscribe(again);
  expect(await again.acknowledged(0)).toEqual(begin);
});

it('does not begin with what lies in segments that were sealed before, where it is to begin with what comes', async () => {
  const topic = await Topic.create(cluster, 1);
  await append(topic, 0, 4);
  await topic.split(0);
  const source = sourceOf(topic, { startAt: 'latest' });
  await subscribe(source);
  await append(topic, 1, 2);
  expect(await readAll(source, 0, Number.POSITIVE_INFINITY, await source.acknowledged(0))).toEqual([]);
  expect(await source.backlog(0)).toBe(0);
  expect((await readAll(source, 1, 2)).length).toBe(2);
});

it('keeps what lies unread within its bound, whatever the size of batches', async () => {
  const topic = await Topic.create(cluster);
  const source = sourceOf(topic, { bufferBytes: 2_000_000 });
  await subscribe(source);
  await append(topic, 0, 300, { bytes: 50, messages: 20 });
  await append(topic, 0, 60, { bytes: 200_000 });
  await append(topic, 0, 300, { bytes: 50, messages: 20 });
  const begunMs = Date.now();
  const all = await readAll(source, 0, 660);
  checkAscending(all);
  console.log(`660 entries in ${Date.now() - begunMs} ms`);
});

it('reads a backlog of 20,000 entries, going back now and then', async () => {
  const topic = await Topic.create(cluster, 1);
  const source = sourceOf(topic);
  await subscribe(source);
  await append(topic, 0, 20_000, { bytes: 1_000 });
  await topic.split(0);
  const begunMs = Date.now();
  const all = await readAll(source, 0);
  console.log(`20,000 entries in ${Date.now() - begunMs} ms`);
  expect(all.length).toBe(20_000);
  checkAscending(all);
  for (const at of [19_998, 10, 12_000]) {
    const { signal } = new AbortController();
    const { entries } = await source.read(0, all[at]?.position, { maxEntries: 1, maxBytes: 1, signal });
    expect(entries[0]?.position).toEqual(all[at + 1]?.position);
  }
});

describe('claims', () => {
  const { signal } = new AbortController();

  it('are of one process at a time, lost with the connection, and taken over', async () => {
    const topic = await Topic.create(cluster);
    const cut = await wire();
    const [a, b] = [sourceOf(topic, { client: client(cut.serviceUrl) }), sourceOf(topic)];
    const first = await a.claim(0, signal);
    await append(topic, 0, 5);
    const waiting = new AbortController();
    const second = b.claim(0, waiting.signal);
    const [entry] = await readAll(a, 0, 5);
    await a.acknowledge(0, entry?.position as SourcePosition);
    await expect(b.read(0, undefined, { maxEntries: 1, maxBytes: 1, signal })).rejects.toThrow(
      /not this process's own/,
    );
    cut.cut();
    expect(await first.ending).toBe('lost');
    await expect(a.acknowledge(0, entry?.position as SourcePosition)).rejects.toThrow(/not this process's own/);
    const claim = await second;
    expect(await b.acknowledged(0)).toEqual(entry?.position);
    await claim.release();
    const back = await a.claim(0, signal);
    await back.release();
    waiting.abort();
  });

  it('keep to the share, and give back what is above it', async () => {
    const topic = await Topic.create(cluster, 4);
    let processes = 1;
    const listeners = new Set<() => void>();
    const members: Members = {
      share: (segments) => Math.ceil(segments / processes),
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    const [a, b] = [sourceOf(topic, { members }), sourceOf(topic, { members })];
    await Promise.all([subscribe(a), subscribe(b)]);
    const claims = await Promise.all([0, 1, 2, 3].map((id) => a.claim(id, signal)));
    const asked: number[] = [];
    for (const [id, claim] of claims.entries()) {
      void claim.ending.then(async (how) => {
        expect(how).toBe('asked');
        asked.push(id);
        await claim.release();
      });
    }
    const stop = new AbortController();
    const others: number[] = [];
    const settled = [0, 1, 2, 3].map((id) =>
      b.claim(id, stop.signal).then(
        () => others.push(id),
        () => undefined,
      ),
    );
    processes = 2;
    for (const listener of listeners) listener();
    await expect.poll(() => others.length, { timeout: 15_000 }).toBe(2);
    expect(asked.sort()).toEqual(others.sort());
    stop.abort();
    await Promise.all(settled);
    expect(others.length).toBe(2);
  });
});

it('goes on reading after cuts, from where it was', async () => {
  const topic = await Topic.create(cluster, 1);
  const cut = await wire();
  const source = sourceOf(topic, { client: client(cut.serviceUrl) });
  await subscribe(source);
  await append(topic, 0, 5_000, { bytes: 500 });
  await topic.split(0);
  const all: StoredEntry[] = [];
  let failures = 0;
  for (let ended = false, reads = 0; !ended; reads++) {
    if (reads === 3 || reads === 9) cut.cut();
    try {
      const { signal } = new AbortController();
      const read = await source.read(0, all.at(-1)?.position, { maxEntries: 300, maxBytes: 1e6, signal });
      all.push(...read.entries);
      ended = read.ended;
    } catch {
      failures++;
      await sleep(100);
    }
  }
  expect(failures).toBeGreaterThan(0);
  expect(all.length).toBe(5_000);
  checkAscending(all);
});
