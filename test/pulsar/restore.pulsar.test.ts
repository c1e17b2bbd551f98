/**
 * Of two changes of one layout at the same time, brokers of 5.0.1 leave the segments of one without the topics behind
 * them: whoever needs such a segment makes it whole, for all who have subscribed to the topic.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, expect, it } from 'vitest';
import {
  adminPin,
  adminSubscriptions,
  PulsarAdmin,
  pulsarSource,
  restoreSegments,
} from '../../src/adapters/pulsar/index.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { openLane, Stage, Topic } from './remote-stage.js';
import { expectOk } from './stage.js';

const clusters: Clusters = await openClusters(1);
const cluster = clusters.all[0] as Cluster;
const admin = new PulsarAdmin({ urls: [cluster.adminUrl] });
const OTHERS = { queue: 'QUEUE', stream: 'STREAM' };
const ACTIVE = [4, 5, 6, 7, 8, 9];
const reader = `isthmus.b.read.${randomUUID()}`;
let topic: Topic;

afterAll(() => clusters.stop());

/** Active segments that a subscription is not on. */
async function missing(subscription: string): Promise<readonly number[]> {
  const { active } = expectOk(await admin.scalableLayout(topic.name));
  const { backlogs } = expectOk(await admin.subscriptions(topic.name)).get(subscription) ?? {};
  return active.map(({ segmentId }) => segmentId).filter((segmentId) => backlogs?.has(segmentId) !== true);
}

beforeEach(async () => {
  topic = await Topic.create(cluster, 4);
  for (const [name, type] of Object.entries(OTHERS)) expectOk(await admin.putSubscription(topic.name, name, type));
});

/** Changes the layout in four places at once. */
async function race(): Promise<void> {
  const changes = [0, 1, 2, 3].map((id) =>
    id % 2 === 0 ? admin.split(topic.name, id) : admin.rebucket(topic.name, id, 4),
  );
  for (const change of await Promise.all(changes)) expectOk(change);
  // What the tests are about: a broker that does better needs none of it.
  expect((await missing('queue')).length).toBeGreaterThan(0);
}

it.each(['before', 'after'])('the source of such segments gets them, left so %s it begins', async (when) => {
  const stage = new Stage(cluster);
  const source = pulsarSource({
    client: stage.client(),
    cluster: cluster.name,
    topic: topic.name,
    subscription: 'isthmus.b',
    subscriptions: adminSubscriptions(admin, topic.name),
    layouts: topic.layouts,
  });
  const { signal } = new AbortController();
  if (when === 'before') await race();
  await source.layouts(signal)[Symbol.asyncIterator]().next();
  if (when === 'after') await race();
  await Promise.all(ACTIVE.map((segmentId) => source.claim(segmentId, signal)));
  for (const name of [...Object.keys(OTHERS), 'isthmus.b']) expect(await missing(name)).toEqual([]);
  for (const segmentId of ACTIVE) expect(await source.backlog(segmentId)).toBe(0);
  await source.close();
  await stage.end();
});

it.each(['before', 'after'])('the remote that has such segments takes sends, left so %s it begins', async (when) => {
  const stage = new Stage(cluster);
  const remote = stage.remote(topic, stage.client(), { ensurePin: adminPin(admin, topic.name) });
  if (when === 'after') await openLane(remote, 0).then(({ producer }) => producer.close());
  await race();
  const lanes = await Promise.all(ACTIVE.map((segmentId) => openLane(remote, segmentId)));
  for (const name of Object.keys(OTHERS)) expect(await missing(name)).toEqual([]);
  await Promise.all(lanes.map(({ producer }) => producer.barrier()));
  for (const { producer } of lanes) await producer.close();
  await stage.end();
});

it('where nothing is missing nothing is done; and readers of segments are put nowhere', async () => {
  const stage = new Stage(cluster);
  await race();
  const { active } = expectOk(await admin.scalableLayout(topic.name));
  const left = await missing('queue');
  for (const { segmentId } of active.filter((segment) => !left.includes(segment.segmentId))) {
    const [segmentTopic, client] = [await topic.segmentTopic(segmentId), stage.client()];
    for (const subscription of [`isthmus.b.read.${randomUUID()}`, reader]) {
      const place = { topic: segmentTopic, subscription, durable: false, from: { ledgerId: 0n, entryId: 0n } };
      const events = { onEntry: () => undefined, onClosed: () => undefined };
      expect(await client.subscribe(place, events)).toMatchObject({ type: 'subscribed' });
    }
  }
  expect([...expectOk(await restoreSegments(admin, topic.name))].sort()).toEqual(['queue', 'stream']);
  expect(await restoreSegments(admin, topic.name)).toEqual({ type: 'ok', value: [] });
  expect((await missing(reader)).length).toBe(left.length);
  await stage.end();
  expect(await restoreSegments(admin, 'public/default/there-is-none')).toMatchObject({ type: 'notFound' });
});
