/** The state topic on a real broker: the acceptance suite of cursors, compaction, take-overs, crashes, members. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CursorRecord, encodeMessage, parseEntry, parseSourcePosition } from 'isthmus';
import { testCursorStore } from 'isthmus/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PulsarAdmin } from '../../src/adapters/pulsar/admin/index.js';
import { createPulsarClient, type PulsarClient } from '../../src/adapters/pulsar/protocol/index.js';
import { processClock } from '../../src/adapters/pulsar/protocol/time.js';
import { prepareState, StateTopic, type StateTopicOptions } from '../../src/adapters/pulsar/state/index.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { layWire, type Wire } from './remote-stage.js';
import { rest } from './rest.js';

let clusters: Clusters;
let cluster: Cluster;
const ends: (() => unknown)[] = [];
let made = 0;

beforeAll(async () => {
  clusters = await openClusters(1);
  cluster = clusters.all[0] as Cluster;
});
afterAll(() => clusters?.stop());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const NAME = { topic: 'topic://public/default/x', remote: 'b' };

async function freshTopic(): Promise<string> {
  const topic = `persistent://public/isthmus-${process.pid}-${Date.now().toString(36)}-${made++}/state`;
  const result = await prepareState(new PulsarAdmin({ urls: [cluster.adminUrl] }), { topic });
  expect(result.problems).toEqual([]);
  return topic;
}

function client(serviceUrl = cluster.serviceUrl): PulsarClient {
  const opened = createPulsarClient({ serviceUrls: [serviceUrl] });
  ends.push(() => opened.close());
  return opened;
}

function stateTopic(topic: string, options: Partial<StateTopicOptions> = {}): StateTopic {
  const state = new StateTopic({ client: options.client ?? client(), topic, clock: processClock, ...options });
  ends.push(() => state.close());
  return state;
}

async function wire(): Promise<Wire> {
  const laid = await layWire(cluster.serviceUrl);
  ends.push(() => laid.close());
  return laid;
}

function record(session: number, settled: string): CursorRecord {
  return {
    session,
    settled: parseSourcePosition(settled),
    drained: false,
    skipped: [],
    checkpoints: new Map([[3, parseSourcePosition('9:9')]]),
  };
}

/** Runs compaction once, to its end. */
async function compact(topic: string): Promise<void> {
  const path = `${topic.replace('://', '/')}/compaction`;
  await rest(cluster, 'PUT', path);
  for (;;) {
    const { status } = (await rest(cluster, 'GET', path)) as { status: string };
    if (status === 'SUCCESS') return;
    if (status === 'ERROR') throw new Error('compaction failed');
    await sleep(50);
  }
}

/** The keys that a fresh reader of the compacted topic finds. */
async function keysLeft(topic: string): Promise<string[]> {
  const keys = new Map<string, boolean>();
  const subscribed = await client().subscribe(
    { topic, subscription: 'look', durable: false, from: { ledgerId: 0n, entryId: 0n }, readCompacted: true },
    {
      onEntry: ({ bytes }) => {
        const { metadata, payload } = parseEntry(bytes);
        keys.set(metadata.partitionKey ?? '', payload.length > 0);
      },
      onClosed: () => undefined,
    },
  );
  if (subscribed.type !== 'subscribed') throw new Error(JSON.stringify(subscribed));
  subscribed.consumer.flow(10_000);
  await sleep(500);
  await subscribed.consumer.close();
  return [...keys].filter(([, kept]) => kept).map(([key]) => key);
}

/** A reader may not have come to the end in time; each look is a reader of its own. */
async function expectCursorsLeft(topic: string, segmentIds: readonly number[], session: number): Promise<void> {
  const cursors = async () => (await keysLeft(topic)).filter((key) => !key.startsWith('member|')).sort();
  const expected = segmentIds.map((segmentId) => `cursor|topic://public/default/x|b|${segmentId}|${session}`);
  await expect.poll(cursors, { timeout: 60_000, interval: 500 }).toEqual(expected);
}

describe('the acceptance suite', () => {
  testCursorStore(async () => {
    const topic = await freshTopic();
    const own: (() => unknown)[] = [];
    const open = () => {
      const opened = createPulsarClient({ serviceUrls: [cluster.serviceUrl] });
      own.push(() => opened.close());
      return new StateTopic({ client: opened, topic, clock: processClock }).cursors(NAME);
    };
    return {
      store: open(),
      reopen: open,
      teardown: async () => {
        for (const end of own) await end();
      },
    };
  }, it);
});

describe('compaction', () => {
  it('keeps the successor of an owner that still writes, and everything else that was written', async () => {
    const topic = await freshTopic();
    const older = stateTopic(topic).cursors(NAME);
    await older.write(new Map([[1, record(2, '7:1')]]));
    const newer = stateTopic(topic).cursors(NAME);
    expect(await newer.write(new Map([[1, record(3, '7:5')]]))).toEqual({ type: 'written' });
    expect(await older.write(new Map([[1, record(2, '7:9')]]))).toEqual({ type: 'fenced', session: 3 });
    await newer.write(new Map([[2, record(3, '8:1')]]));
    await compact(topic);
    const loaded = await stateTopic(topic).cursors(NAME).load();
    expect([...loaded].sort(([a], [b]) => a - b)).toEqual([
      [1, record(3, '7:5')],
      [2, record(3, '8:1')],
    ]);
  });

  it('leaves one record a segment, and none of what was removed', async () => {
    const topic = await freshTopic();
    const state = stateTopic(topic);
    const store = state.cursors(NAME);
    for (let i = 1; i <= 50; i++) await store.write(new Map([[1, record(i, `7:${i}`)]]));
    await store.write(
      new Map([
        [2, record(50, '1:1')],
        [3, record(50, '1:1')],
      ]),
    );
    await store.write(new Map([[3, undefined]]));
    await store.load();
    await compact(topic);
    await expectCursorsLeft(topic, [1, 2], 50);
  });

  it('of ten thousand writes is quick to load', async () => {
    const topic = await freshTopic();
    const store = stateTopic(topic).cursors(NAME);
    const begunMs = Date.now();
    for (let round = 0; round < 100; round++) {
      await Promise.all(Array.from({ length: 100 }, (_, id) => store.write(new Map([[id, record(1, `7:${round}`)]]))));
    }
    const writtenMs = Date.now();
    await compact(topic);
    const compactedMs = Date.now();
    const loaded = await stateTopic(topic).cursors(NAME).load();
    expect(loaded.size).toBe(100);
    expect([...loaded.values()].every(({ settled }) => settled?.entryId === 99n)).toBe(true);
    console.log(`10,000 writes ${writtenMs - begunMs} ms, load after compaction ${Date.now() - compactedMs} ms`);
  });
});

describe('a process that dies', () => {
  it('between a write of several segments and its parts leaves all of them', async () => {
    const topic = await freshTopic();
    // What it has sent by then: the bundle alone.
    const opened = await client().openProducer(
      { topic },
      { onReceipt: () => undefined, onSendError: () => undefined, onClosed: () => undefined },
    );
    if (opened.type !== 'opened') throw new Error(JSON.stringify(opened));
    const put = (session: number) => ({ session, settled: '7:1', drained: true, skipped: [], checkpoints: {} });
    const value = JSON.stringify({ puts: { 1: put(4), 2: put(4) }, removed: [] });
    const outer = { producerName: 'dead', sequenceId: 0n, publishTimeMs: 0 };
    const partitionKey = 'bundle|topic://public/default/x|b|dead|1';
    const bytes = new TextEncoder().encode(value);
    opened.producer.send(0n, 1, encodeMessage(bytes, { outer: { ...outer, partitionKey }, stamp: false }));
    await compact(topic);
    let nowMs = Date.now();
    const clock = { now: () => nowMs, sleep: processClock.sleep };
    const store = stateTopic(topic, { clock }).cursors(NAME);
    expect([...(await store.load()).keys()].sort()).toEqual([1, 2]);
    expect(await store.write(new Map([[1, record(3, '7:9')]]))).toEqual({ type: 'fenced', session: 4 });
    nowMs += 60_000;
    await store.write(new Map([[9, undefined]]));
    await compact(topic);
    await expectCursorsLeft(topic, [1, 2], 4);
    expect([...(await stateTopic(topic).cursors(NAME).load()).keys()].sort()).toEqual([1, 2]);
  });

  it('in the middle of writes has what it was told is written, and goes on where it was', async () => {
    const topic = await freshTopic();
    const cut = await wire();
    const store = stateTopic(topic, { client: client(cut.serviceUrl) }).cursors(NAME);
    await store.load();
    const written: number[] = [];
    let failures = 0;
    const writes = Array.from({ length: 2_000 }, async (_, i) => {
      await sleep(i);
      try {
        await store.write(new Map([[i, record(1, `7:${i}`)]]));
        written.push(i);
      } catch {
        failures++;
      }
    });
    await expect.poll(() => written.length, { interval: 1, timeout: 5_000 }).toBeGreaterThan(200);
    cut.cut();
    await Promise.all(writes);
    expect(failures).toBeGreaterThan(0);
    expect(written.at(-1)).toBeGreaterThan(1_500);
    const loaded = await stateTopic(topic).cursors(NAME).load();
    for (const i of written) expect(loaded.get(i)?.settled?.entryId).toBe(BigInt(i));
    await expect(store.write(new Map([[1, record(1, '8:1')]]))).resolves.toEqual({ type: 'written' });
    console.log(`${written.length} written, ${failures} not known`);
  });
});

describe('members', () => {
  it('count each other, and count one no more that is silent', async () => {
    const topic = await freshTopic();
    const cut = await wire();
    const heartbeatMs = 200;
    const [a, b] = [
      stateTopic(topic, { heartbeatMs }),
      stateTopic(topic, { heartbeatMs, client: client(cut.serviceUrl) }),
    ];
    const members = a.join(NAME);
    expect(members.share(5)).toBe(0);
    await expect.poll(() => members.share(5)).toBe(5);
    const others = b.join(NAME);
    await expect.poll(() => [members.share(5), others.share(5)]).toEqual([3, 3]);
    const c = stateTopic(topic, { heartbeatMs });
    c.join(NAME);
    await expect.poll(() => [members.share(5), others.share(5)]).toEqual([2, 2]);
    await c.close();
    await expect.poll(() => [members.share(5), others.share(5)]).toEqual([3, 3]);
    cut.close();
    await expect.poll(() => members.share(5), { timeout: 3_000 }).toBe(5);
    // It hears nothing of the others, which proves nothing about them.
    expect(others.share(5)).toBe(3);
  });
});

it('only says what is missing when it is to check, and creates nothing', async () => {
  const api = new PulsarAdmin({ urls: [cluster.adminUrl] });
  const topic = `persistent://public/isthmus-check-${Date.now()}/state`;
  const first = await prepareState(api, { topic, checkOnly: true });
  expect(first.steps.length).toBe(3);
  expect(await prepareState(api, { topic, checkOnly: true })).toEqual(first);
  expect((await prepareState(api, { topic })).steps).toEqual(first.steps);
  expect(await prepareState(api, { topic, checkOnly: true })).toEqual({ steps: [], problems: [] });
});
