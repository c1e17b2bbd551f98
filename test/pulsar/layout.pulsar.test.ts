/** Layouts on a real broker: the acceptance suites, plans, other people's changes, automatic merges, migrated topics. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLayout, equalShapes, type Layout, planOperations, type Shape, shapeOf } from 'isthmus';
import { testLayoutStore, testSegmentHost } from 'isthmus/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PulsarAdmin } from '../../src/adapters/pulsar/admin/index.js';
import { PulsarLayouts, pulsarHost, stopAutomaticMerges } from '../../src/adapters/pulsar/layout/index.js';
import { createPulsarClient } from '../../src/adapters/pulsar/protocol/index.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { JavaClients } from './java-client.js';

let clusters: Clusters;
let cluster: Cluster;
let admin: PulsarAdmin;
const ends: (() => unknown)[] = [];
let made = 0;

beforeAll(async () => {
  clusters = await openClusters(1, { shortChecks: true });
  cluster = clusters.all[0] as Cluster;
  admin = new PulsarAdmin({ urls: [cluster.adminUrl] });
});
afterAll(() => clusters?.stop());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A fresh topic that the broker leaves alone. */
async function freshTopic(segments: number): Promise<string> {
  const topic = `topic://public/default/layout-${made++}`;
  expect(await admin.createScalable(topic, segments)).toMatchObject({ type: 'ok' });
  expect(await admin.setAutoScalePolicy(topic, { enabled: false })).toMatchObject({ type: 'ok' });
  return topic;
}

function layoutsOf(topic: string): PulsarLayouts {
  const client = createPulsarClient({ serviceUrls: [cluster.serviceUrl] });
  const layouts = new PulsarLayouts({ client, topic });
  ends.push(() => client.close());
  ends.push(() => layouts.close());
  return layouts;
}

async function until(condition: () => boolean | Promise<boolean>, limitMs = 60_000): Promise<void> {
  for (const deadline = Date.now() + limitMs; !(await condition()); await sleep(20)) {
    expect(Date.now(), 'it did not come about').toBeLessThan(deadline);
  }
}

async function hostSetup() {
  const topic = await freshTopic(2);
  const client = createPulsarClient({ serviceUrls: [cluster.serviceUrl] });
  const layouts = new PulsarLayouts({ client, topic });
  const teardown = async () => {
    await layouts.close();
    await client.close();
  };
  return { host: pulsarHost({ admin, layouts, topic }), teardown, patienceMs: 20_000 };
}

describe('a host on a cluster', () => {
  testLayoutStore(hostSetup, it);
  testSegmentHost(hostSetup, it);

  it('is brought to the shape of another cluster by a plan', async () => {
    const topic = await freshTopic(2);
    const { store, segments } = pulsarHost({ admin, layouts: layoutsOf(topic), topic });
    const target: Shape = shapeOf(createLayout({ segments: 8, buckets: 3, nowMs: 0 }));
    const plan = planOperations(await store.load(), target, segments.supports);
    expect(plan.unreachable).toEqual([]);
    let layout: Layout | undefined;
    for (const operation of plan.operations) {
      const result = await segments.perform(operation);
      expect(result).toMatchObject({ type: 'performed' });
      if (result.type === 'performed') layout = result.layout;
    }
    expect(layout && equalShapes(shapeOf(layout), target)).toBe(true);
    const back = planOperations(
      await store.load(),
      shapeOf(createLayout({ segments: 1, nowMs: 0 })),
      segments.supports,
    );
    for (const operation of back.operations)
      expect(await segments.perform(operation)).toMatchObject({ type: 'performed' });
    expect((await store.load()).active).toHaveLength(1);
  });

  it('tells why it refuses, and is left as it was', async () => {
    const topic = await freshTopic(4);
    const { store, segments } = pulsarHost({ admin, layouts: layoutsOf(topic), topic });
    const before = await store.load();
    for (const [operation, reason] of [
      [{ type: 'split', segmentId: 77 }, /Segment not found: 77/],
      [{ type: 'merge', leftId: 0, rightId: 2 }, /not adjacent/],
      [{ type: 'rebucket', segmentId: 0, buckets: 2_000 }, /bucketCount must be in/],
      [{ type: 'rebucket', segmentId: 0, buckets: 1 }, /already has the requested/],
    ] as const) {
      const result = await segments.perform(operation);
      expect(result).toMatchObject({ type: 'failed', reason: expect.stringMatching(reason) });
    }
    expect(await store.load()).toEqual(before);
  });
});

describe('layouts of a cluster', () => {
  it('show a change of somebody else at once, each epoch once', async () => {
    const topic = await freshTopic(1);
    const layouts = layoutsOf(topic);
    const stop = new AbortController();
    const seen: Layout[] = [];
    const following = (async () => {
      for await (const layout of layouts.watch(stop.signal)) seen.push(layout);
    })();
    await until(() => seen.length === 1);
    await admin.split(topic, 0);
    await until(() => seen.at(-1)?.epoch === 1);
    await admin.rebucket(topic, 1, 7);
    await until(() => seen.at(-1)?.epoch === 2);
    await sleep(500);
    stop.abort();
    await following;
    expect(seen.map(({ epoch }) => epoch)).toEqual([0, 1, 2]);
    // Told by the session, read by the admin REST: the same.
    const read = await admin.scalableLayout(topic);
    expect(read).toMatchObject({ type: 'ok', value: { epoch: 2, segments: seen[2]?.segments } });
  });

  it('of a topic that is not there are not known, and it is not created', async () => {
    const layouts = layoutsOf('topic://public/default/missing');
    await expect(layouts.load()).rejects.toThrow(/not known: .*11/);
    expect(await admin.scalableLayout('public/default/missing')).toMatchObject({ type: 'notFound' });
  });

  it('of a topic that is deleted and created again begin anew', async () => {
    const topic = await freshTopic(1);
    const layouts = layoutsOf(topic);
    await layouts.load();
    await admin.split(topic, 0);
    await until(async () => (await layouts.load()).epoch === 1);
    expect(await admin.deleteScalable(topic)).toMatchObject({ type: 'ok' });
    expect(await admin.createScalable(topic, 3)).toMatchObject({ type: 'ok' });
    await until(async () => (await layouts.load()).active.length === 3);
  });

  it('of a migrated topic have its partitions as sealed legacy segments', async () => {
    const java = await JavaClients.start();
    ends.push(() => java.stop());
    const name = `public/default/migrated-${made++}`;
    const call = (path: string, method: string, body?: string) =>
      fetch(`${cluster.adminUrl}/admin/v2/${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      });
    expect((await call(`persistent/${name}/partitions`, 'PUT', '2')).status).toBe(204);
    const clients = await java.open(cluster);
    await clients.classicSend(`persistent://${name}`, { count: 20, subscription: 'keep' });
    await clients.close();
    expect((await call(`scalable/${name}/migrate?force=true`, 'POST')).status).toBe(204);
    const layout = await layoutsOf(`topic://${name}`).load();
    const legacy = [...layout.segments.values()].filter(({ legacyTopicName }) => legacyTopicName !== undefined);
    expect(legacy.map(({ state, range, legacyTopicName }) => [state, range.start, range.end, legacyTopicName])).toEqual(
      [0, 1].map((i) => ['sealed', 0, 0xffff, `persistent://${name}-partition-${i}`]),
    );
    expect(layout.active.length).toBeGreaterThan(0);
    const read = await admin.scalableLayout(name);
    expect(read).toMatchObject({ type: 'ok', value: { segments: layout.segments } });
  });

  it('are not merged by the cluster once that is stopped', async () => {
    const quick = { mergeWindowSeconds: 1, mergeCooldownSeconds: 1 };
    const [free, held] = [await freshTopic(4), await freshTopic(4)] as const;
    await admin.setAutoScalePolicy(held, quick);
    expect(await stopAutomaticMerges(admin, held)).toEqual({ type: 'ok', value: true });
    expect(await stopAutomaticMerges(admin, held)).toEqual({ type: 'ok', value: false });
    await admin.setAutoScalePolicy(free, quick);
    // A broker looks after a topic's load once it has a controller for it.
    for (const topic of [free, held]) await admin.subscriptions(topic);
    const segmentsOf = async (topic: string) => {
      const layout = await admin.scalableLayout(topic);
      return layout.type === 'ok' ? layout.value.active.length : undefined;
    };
    await until(async () => (await segmentsOf(free)) === 1, 100_000);
    expect(await segmentsOf(held)).toBe(4);
  });
});
