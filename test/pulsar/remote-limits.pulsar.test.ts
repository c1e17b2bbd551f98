/** The remote on a broker that limits, has transactions, or has its segments from a classic topic. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLayout, type Layout, type SourcePosition } from 'isthmus';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { pulsarRemote, type ReadBackWait } from '../../src/adapters/pulsar/remote/index.js';
import { chain, sendOf } from '../../src/testing/remote-lane.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { JavaClients } from './java-client.js';
import { openLane, readBack, Stage, Topic, until } from './remote-stage.js';
import { rest } from './rest.js';

let clusters: Clusters;
let broker: Cluster;
let stage: Stage;

beforeAll(async () => {
  clusters = await openClusters(1, { transactions: true, shortChecks: true });
  broker = clusters.all[0] as Cluster;
});
afterAll(() => clusters?.stop());
afterEach(() => stage?.end());

async function namespace(name: string): Promise<string> {
  const full = `public/${name}`;
  await rest(broker, 'PUT', `namespaces/${full}`, {});
  return full;
}

describe('with transactions', () => {
  it('an open one delays a read-back, which says so, and goes on when it has ended', async () => {
    stage = new Stage(broker);
    const waits: ReadBackWait[] = [];
    const topic = await Topic.create(broker, 1);
    const options = { onWaiting: (wait: ReadBackWait) => waits.push(wait), waitingAfterMs: 500 };
    const remote = stage.remote(topic, stage.client(), options);
    const java = await JavaClients.start();
    try {
      const cluster = await java.open(broker, { transactionTimeoutMs: 60_000 });
      const producer = await cluster.producer(topic.name);
      const transaction = await cluster.begin();
      const lane = await openLane(remote, 0);
      lane.producer.send(sendOf('7:1'));
      await until(() => lane.results.length === 1);
      await producer.send([{ key: 'k', text: 'in a transaction', transaction }]);
      lane.producer.send(sendOf('7:2'));
      const barrier = await lane.producer.barrier();
      let isDone = false;
      const reading = readBack(remote, 0, barrier).finally(() => {
        isDone = true;
      });
      await until(() => waits.length >= 2);
      expect(isDone).toBe(false);
      expect(waits[0]?.reason).toMatch(/transaction/);
      await transaction.commit();
      expect(await reading).toEqual(['7:1', undefined, '7:2']);
      await lane.producer.close();
    } finally {
      await java.stop();
    }
  });

  it('a sealed segment ends where it ends, whatever its last position was said to be', async () => {
    stage = new Stage(broker);
    const topic = await Topic.create(broker, 2);
    const remote = stage.remote(topic, stage.client());
    const lane = await openLane(remote, 0);
    // The broker keeps to its first answer: here that nothing was ever written.
    await remote.pin.position(0);
    for (const step of chain(1, 50)) lane.producer.send(sendOf(...step));
    await until(() => lane.results.length === 50);
    await lane.producer.barrier();
    for (const segmentId of [0, 1]) await topic.split(segmentId);
    expect(await readBack(remote, 0, 'end')).toEqual(chain(1, 50).map(([position]) => position));
    expect(await readBack(remote, 1, 'end')).toEqual([]);
    const last = lane.results.at(-1) as { at: SourcePosition };
    const behind = remote.readBack(0, { after: last.at, through: 'end' }, new AbortController().signal);
    for await (const piece of behind) expect(piece).toEqual([]);
    await lane.producer.close();
  });
});

describe('a limit', () => {
  it('on the backlog closes the lane, and the pin that moves opens it', async () => {
    stage = new Stage(broker);
    const limited = await namespace(`quota-${process.pid}`);
    const quota = { limitSize: 50_000, policy: 'producer_exception' };
    await rest(broker, 'POST', `namespaces/${limited}/backlogQuota?backlogQuotaType=destination_storage`, quota);
    const topic = await Topic.create(broker, 1, limited);
    const remote = stage.remote(topic, stage.client());
    const lane = await openLane(remote, 0);
    for (const [position] of chain(1, 100)) lane.producer.send(sendOf(position, { size: 1_000 }));
    await until(() => lane.results.length === 100);
    const last = lane.results.at(-1) as { at: SourcePosition };
    let answer = 'opened';
    for (let tries = 0; answer !== 'throttled'; tries++) {
      expect(tries).toBeLessThan(60);
      await sleep(500);
      answer = (await remote.open(6, 0, () => undefined)).type;
    }
    await lane.producer.close();
    await remote.pin.move(0, last.at);
    const next = await openLane(remote, 0);
    next.producer.send(sendOf('7:101'));
    await until(() => next.results.length === 1);
    expect(next.results[0]?.type).toBe('stored');
    await next.producer.close();
  });

  it('on producers and consumers is told from a name that is taken', async () => {
    stage = new Stage(broker);
    const limited = await namespace(`places-${process.pid}`);
    await rest(broker, 'POST', `namespaces/${limited}/maxProducersPerTopic`, 1);
    await rest(broker, 'POST', `namespaces/${limited}/maxConsumersPerTopic`, 1);
    const topic = await Topic.create(broker, 1, limited);
    const remote = stage.remote(topic, stage.client());
    const lane = await openLane(remote, 0);
    expect(await remote.open(6, 0, () => undefined)).toMatchObject({ type: 'throttled' });
    // The pin has the one place.
    const barrier = await lane.producer.barrier();
    await expect(readBack(remote, 0, barrier)).rejects.toThrow(/max consumers limit/);
    const other = stage.remote(topic, stage.client(), { pinSubscription: 'another-pin' });
    expect(await other.open(7, 0, () => undefined)).toMatchObject({ type: 'throttled' });
    await rest(broker, 'POST', `namespaces/${limited}/maxConsumersPerTopic`, 2);
    await until(async () => (await readBack(remote, 0, barrier).catch(() => undefined)) !== undefined);
    // A reader gives its place back: there is one for the next.
    for (let i = 0; i < 3; i++) expect(await readBack(remote, 0, barrier)).toEqual([]);
    await lane.producer.close();
  });
});

describe('a classic topic', () => {
  it('takes entries by partition, and is read back to its end once it is migrated', async () => {
    stage = new Stage(broker);
    const path = `public/default/classic-${process.pid}`;
    await rest(broker, 'PUT', `persistent/${path}/partitions`, 2);
    const layout = partitionsOf(`persistent://${path}`);
    const layouts = {
      load: async () => layout,
      async *watch() {
        yield layout;
      },
    };
    const client = stage.client();
    const options = { client, cluster: broker.name, sourceCluster: 's', topic: `persistent://${path}` };
    const remote = pulsarRemote({ ...options, layouts, ensurePin: async () => ({ type: 'ensured' }) });
    const lane = await openLane(remote, 1);
    for (const step of chain(1, 3)) lane.producer.send(sendOf(...step));
    await until(() => lane.results.length === 3);
    const second = lane.results[1] as { at: SourcePosition };
    await remote.pin.move(1, second.at);
    expect(await remote.pin.position(1)).toEqual(second.at);
    const barrier = await lane.producer.barrier();
    expect(await readBack(remote, 1, barrier)).toEqual(['7:1', '7:2', '7:3']);
    await lane.producer.close();
    await remote.close();
    await rest(broker, 'POST', `scalable/${path}/migrate?force=true`);
    const topic = Topic.existing(broker, path);
    const migrated = stage.remote(topic, client);
    const legacy = [...(await topic.load()).segments.values()].find(({ legacyTopicName }) =>
      legacyTopicName?.endsWith('-partition-1'),
    );
    // What the pin has passed need not be there any more.
    expect((await readBack(migrated, legacy?.segmentId ?? -1, 'end')).at(-1)).toBe('7:3');
    expect(await migrated.open(5, legacy?.segmentId ?? -1, () => undefined)).toMatchObject({ type: 'sealed' });
  });
});

/** The layout of a classic topic of two partitions. */
function partitionsOf(topic: string): Layout {
  const layout = createLayout({ segments: 2, nowMs: 0 });
  const legacy = [...layout.segments.values()].map((segment) => {
    return { ...segment, legacyTopicName: `${topic}-partition-${segment.segmentId}` };
  });
  return { ...layout, segments: new Map(legacy.map((segment) => [segment.segmentId, segment])), active: legacy };
}
