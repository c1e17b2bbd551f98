/** The remote on a real broker: the acceptance suite, and what a broker does to a lane in full flight. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseEntry, type RemoteProducer, type SendResult, type SourcePosition } from 'isthmus';
import { testRemoteTopic } from 'isthmus/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PulsarRemote } from '../../src/adapters/pulsar/remote/index.js';
import { chain, sendOf } from '../../src/testing/remote-lane.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { consumed, openLane, SOURCE, Stage, Topic, until } from './remote-stage.js';
import { rest } from './rest.js';

let clusters: Clusters;
let cluster: Cluster;
let stage: Stage;

beforeAll(async () => {
  clusters = await openClusters(1);
  cluster = clusters.all[0] as Cluster;
});
afterAll(() => clusters?.stop());
afterEach(() => stage?.end());

describe('the acceptance suite', () => {
  testRemoteTopic(async () => {
    stage = new Stage(cluster);
    const own = stage;
    const topic = await Topic.create(cluster);
    const wire = await own.wire();
    const direct = own.client();
    const make = () => {
      const client = own.client(wire.serviceUrl);
      return takingTurns(own.remote(topic, client), () => own.remote(topic, client));
    };
    return {
      remote: make(),
      another: () => make(),
      stored: async (segmentId: number) => consumed(direct, await topic.segmentTopic(segmentId)),
      split: async (segmentId: number) => {
        await topic.split(segmentId);
      },
      disconnect: () => wire.cut(),
      teardown: () => own.end(),
      patienceMs: 20_000,
    };
  }, it);
});

/** One process at a time holds the pin of a segment: those of the suite take turns, and each lets go after every call. */
function takingTurns(remote: PulsarRemote, fresh: () => PulsarRemote): PulsarRemote {
  const inTurn = async <T>(work: (own: PulsarRemote) => Promise<T>): Promise<T> => {
    const own = fresh();
    try {
      return await work(own);
    } finally {
      await own.close();
    }
  };
  const pin: PulsarRemote['pin'] = {
    position: (segmentId) => inTurn((own) => own.pin.position(segmentId)),
    move: (segmentId, position) => inTurn((own) => own.pin.move(segmentId, position)),
  };
  const open: PulsarRemote['open'] = (...args) => inTurn((own) => own.open(...args));
  const { cluster, maxEntryBytes, supports } = remote;
  return {
    ...{ cluster, maxEntryBytes, supports, pin, open },
    layouts: (signal) => remote.layouts(signal),
    watermark: (...args) => remote.watermark(...args),
    readBack: (...args) => remote.readBack(...args),
    close: () => remote.close(),
  };
}

async function readBack(
  remote: PulsarRemote,
  segmentId: number,
  through: SourcePosition | 'end',
  after?: SourcePosition,
): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = [];
  for await (const piece of remote.readBack(segmentId, { after, through }, new AbortController().signal)) {
    entries.push(...piece.map(({ bytes }) => bytes));
  }
  return entries;
}

const positionsOf = (entries: readonly Uint8Array[]) =>
  entries.map((bytes) => parseEntry(bytes).metadata.sourcePosition);

const typesOf = (results: readonly SendResult[]) => [...new Set(results.map(({ type }) => type))];

/** Sends without a pause, makes a change when the first are stored, and ends with it. Returns how many were sent. */
async function sendDuring(
  producer: RemoteProducer,
  results: readonly SendResult[],
  change: () => Promise<unknown>,
): Promise<number> {
  let changing: Promise<unknown> | undefined;
  let hasChanged = false;
  let sent = 0;
  for (const steps = chain(1, 50_000); !hasChanged; await sleep(1)) {
    if (sent - results.length < 1_000) {
      for (const step of steps.slice(sent, sent + 20)) producer.send(sendOf(...step));
      sent += 20;
    }
    if (changing !== undefined || results.length < 1_000) continue;
    changing = change().finally(() => {
      hasChanged = true;
    });
  }
  await changing;
  return sent;
}

describe('a lane in full flight', () => {
  it('is cut: the next barrier bounds what was stored, and reading back finds all of it', async () => {
    stage = new Stage(cluster);
    const topic = await Topic.create(cluster);
    const wire = await stage.wire();
    const direct = stage.client();
    const remote = stage.remote(topic, stage.client(wire.serviceUrl));
    const { producer, results } = await openLane(remote, 0);
    for (const step of chain(1, 1_000)) producer.send(sendOf(...step));
    await until(() => results.length >= 50);
    wire.cut();
    await until(() => results.length === 1_000);
    expect(typesOf(results)).toEqual(['stored', 'ambiguous']);
    const { producer: next } = await openLane(remote, 0);
    const barrier = await next.barrier();
    const found = positionsOf(await readBack(remote, 0, barrier));
    await sleep(300);
    const all = positionsOf(await consumed(direct, await topic.segmentTopic(0)));
    expect(found).toEqual(all);
    const receipts = results.filter(({ type }) => type === 'stored').length;
    expect(found.length).toBeGreaterThanOrEqual(receipts);
    expect(found).toEqual(chain(1, found.length).map(([position]) => position));
    const half = results[Math.floor(receipts / 2)] as { at: SourcePosition };
    expect(positionsOf(await readBack(remote, 0, barrier, half.at))).toEqual(found.slice(Math.floor(receipts / 2) + 1));
    await next.close();
    await producer.close();
  });

  it('is sealed: everything is answered, and the final end tells what was stored', async () => {
    stage = new Stage(cluster);
    const topic = await Topic.create(cluster);
    const direct = stage.client();
    const remote = stage.remote(topic, stage.client());
    const { producer, results } = await openLane(remote, 0);
    const sent = await sendDuring(producer, results, () => topic.split(0));
    await until(() => results.length === sent);
    expect(typesOf(results)).toEqual(['stored', 'sealed']);
    const found = positionsOf(await readBack(remote, 0, 'end'));
    expect(found).toEqual(positionsOf(await consumed(direct, await topic.segmentTopic(0))));
    expect(found.length).toBeGreaterThanOrEqual(results.filter(({ type }) => type === 'stored').length);
    expect((await remote.open(5, 0, () => undefined)).type).toBe('sealed');
    await producer.close();
  });

  it('is unloaded: that is no seal', async () => {
    stage = new Stage(cluster);
    const topic = await Topic.create(cluster);
    const direct = stage.client();
    const remote = stage.remote(topic, stage.client());
    const { producer, results } = await openLane(remote, 0);
    const unload = () => rest(cluster, 'PUT', `namespaces/${topic.namespace}/unload`);
    const sent = await sendDuring(producer, results, unload);
    await until(() => results.length === sent);
    expect(typesOf(results)).toEqual(['stored', 'ambiguous']);
    await producer.close();
    const { producer: next } = await openLane(remote, 0);
    const found = positionsOf(await readBack(remote, 0, await next.barrier()));
    expect(found).toEqual(positionsOf(await consumed(direct, await topic.segmentTopic(0))));
    expect(found).toEqual(chain(1, found.length).map(([position]) => position));
    await next.close();
  });

  it('is throttled: it goes on slowly, and as before once the limit is lifted', async () => {
    stage = new Stage(cluster);
    const namespace = `public/limited-${process.pid}`;
    await rest(cluster, 'PUT', `namespaces/${namespace}`, {});
    await rest(cluster, 'POST', `namespaces/${namespace}/publishRate`, { publishThrottlingRateInMsg: 50 });
    const topic = await Topic.create(cluster, 1, namespace);
    const remote = stage.remote(topic, stage.client(), { sendTimeoutMs: 2_000 });
    const { producer, results } = await openLane(remote, 0);
    for (const step of chain(1, 1_000)) producer.send(sendOf(...step));
    await sleep(4_000);
    const slowly = results.length;
    expect(slowly).toBeLessThan(600);
    await rest(cluster, 'POST', `namespaces/${namespace}/publishRate`, { publishThrottlingRateInMsg: -1 });
    await until(() => results.length === 1_000);
    expect(typesOf(results)).toEqual(['stored']);
    await producer.close();
    await topic.call('DELETE', '');
  });

  it('is given an entry that is too large: it is refused here, and nothing behind it goes out', async () => {
    stage = new Stage(cluster);
    const topic = await Topic.create(cluster);
    const direct = stage.client();
    const remote = stage.remote(topic, stage.client());
    const { producer, results } = await openLane(remote, 0);
    expect(remote.maxEntryBytes).toBe(5 * 1024 * 1024 - 1024);
    const overhead = sendOf('7:1', { size: 0 }).buffers.head.length;
    // The size of a body also stands in the head, as a number.
    producer.send(sendOf('7:1', { size: remote.maxEntryBytes - overhead - 4 }));
    producer.send(sendOf('7:2', { size: remote.maxEntryBytes - overhead + 1 }));
    producer.send(sendOf('7:3'));
    await until(() => results.length === 3);
    expect(results.map(({ type }) => type)).toEqual(['stored', 'tooLarge', 'ambiguous']);
    expect(positionsOf(await consumed(direct, await topic.segmentTopic(0)))).toEqual(['7:1']);
    await producer.close();
  });
});

describe('the pin', () => {
  it('is one process’s at a time, on a segment', async () => {
    stage = new Stage(cluster);
    const topic = await Topic.create(cluster);
    const [first, second] = [stage.remote(topic, stage.client()), stage.remote(topic, stage.client())];
    const { producer } = await openLane(first, 0);
    const barrier = await producer.barrier();
    await first.pin.move(0, barrier);
    expect(await first.pin.position(0)).toEqual(barrier);
    expect(await second.pin.position(0)).toBeUndefined();
    await second.pin.move(0, barrier);
    await first.close();
    expect(await second.pin.position(0)).toEqual(barrier);
    const stats = (await topic.call('GET', '/stats')) as { subscriptions: Record<string, { type: string }> };
    expect(Object.keys(stats.subscriptions)).toEqual([`isthmus.pin.${SOURCE}`]);
    await producer.close();
  });
});
