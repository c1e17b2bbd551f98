/** The replicator's creation of topics, on clusters in memory: who is handed on, what is told, what is left alone. */
import { type AdminCall, MemoryTopicAdmins } from 'isthmus/adapters/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { TopicCreation } from '../../examples/pulsar-replicator/creation.js';
import { metricsText, progressText, statusDocument } from '../../examples/pulsar-replicator/status/index.js';
import { by, creationsOf, ISTHMUS, topic } from '../provisioning/turns.js';
import { until } from '../support/until.js';
import { statusView } from './status-view.js';

const ORDERS = 'public/default/orders';
const BOTH = [
  ['a', 'b'],
  ['b', 'a'],
] as const;
const two = { starts: [0, 0x8000], segments: 2 };
const { signal } = new AbortController();

const stopping: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0)) await stop();
});

function clusters(before?: (call: AdminCall) => Promise<undefined>): MemoryTopicAdmins {
  const admins = new MemoryTopicAdmins(before === undefined ? {} : { before });
  for (const cluster of ['a', 'b']) admins.addNamespace(cluster, topic);
  return admins;
}

function create(admins: MemoryTopicAdmins, directions: readonly (readonly [string, string])[] = BOTH, refusals = 0) {
  let left = refusals;
  const end = new AbortController();
  const [ready, said]: [string[], string[]] = [[], []];
  const creation = new TopicCreation({
    admins: new Map(['a', 'b'].map((name) => [name, admins.admin(name, ISTHMUS)])),
    directions,
    ready: async (one) => {
      if (left-- > 0) return false;
      ready.push(one);
      return true;
    },
    say: (text) => said.push(text),
    signal: end.signal,
  });
  stopping.push(async () => {
    end.abort();
    await creation.ended();
  });
  return { creation, ready, said };
}

describe('a topic that is wanted', () => {
  it('is created where it is missing, and handed on once, however often it is seen', async () => {
    const admins = clusters();
    await by(admins, 'b').createScalable(topic, two, signal);
    const { creation, ready, said } = create(admins);
    for (let i = 0; i < 3; i++) creation.want(ORDERS);
    await until(() => ready.length > 0);
    creation.want(ORDERS);
    await creation.ended();
    expect(ready).toEqual([ORDERS]);
    expect(said).toEqual([`${ORDERS}: a: created`]);
    expect(creationsOf(admins)).toEqual(['createScalable']);
  });

  it('is handed on again when it could not be taken', async () => {
    const admins = clusters();
    await by(admins, 'b').createScalable(topic, two, signal);
    const { creation, ready } = create(admins, BOTH, 1);
    creation.want(ORDERS);
    await creation.ended();
    expect(ready).toEqual([ORDERS]);
    expect(creationsOf(admins)).toEqual(['createScalable']);
  });

  it('is created on destinations alone', async () => {
    const admins = clusters();
    await by(admins, 'b').createScalable(topic, two, signal);
    const { creation, said } = create(admins, [['a', 'b']]);
    creation.want(ORDERS);
    await until(() => said.length > 0);
    expect(said).toEqual([`${ORDERS}: a: topicMissing: local: a scalable topic of 2 segments; remote: no topic`]);
    expect(creationsOf(admins)).toEqual([]);
  });

  it('that has been deleted everywhere is not made again, and may come back', async () => {
    const admins = clusters();
    const { creation, ready } = create(admins);
    creation.want(ORDERS);
    await creation.ended();
    expect([creation.view(), creationsOf(admins), ready]).toEqual([[], [], []]);
    await by(admins, 'a').createScalable(topic, two, signal);
    creation.want(ORDERS);
    await until(() => ready.length > 0);
  });

  it('half made is shown with a remedy, said once, counted, and handed on when it has been repaired', async () => {
    const admins = clusters();
    for (const cluster of ['a', 'b']) await by(admins, cluster).createScalable(topic, two, signal);
    admins.remove('b', topic, { segments: [1] });
    const { creation, ready, said } = create(admins);
    const counted = () => [...creation.counted()].find(({ remote }) => remote === 'b')?.counters;
    creation.want(ORDERS);
    await until(() => (counted()?.decisions.scalablePartial ?? 0) >= 2);
    const document = statusDocument({ ...statusView([]), creations: creation.view() });
    expect(document.creations).toMatchObject([
      {
        topic: ORDERS,
        isReady: false,
        clusters: [
          { cluster: 'a', outcome: 'replicate' },
          {
            cluster: 'b',
            outcome: 'stop',
            reason: 'scalablePartial',
            remedy: expect.stringMatching(/Delete it there/),
          },
        ],
      },
    ]);
    expect(progressText(document, 0)).toContain('1 topic is not on every cluster');
    const scrape = metricsText({ replicators: () => [], provisioning: () => creation.counted() });
    const at = `topic="${ORDERS}",remote="b"`;
    expect(scrape()).toMatch(
      new RegExp(`^isthmus_provisioning_decisions_total\\{${at},reason="scalablePartial"\\} \\d`, 'm'),
    );
    expect(said).toHaveLength(1);
    admins.remove('b', topic);
    await until(() => ready.length === 1);
    expect(scrape()).toContain(`isthmus_provisioning_creations_total{${at},creation="createScalable"} 1\n`);
    expect(statusDocument({ ...statusView([]), creations: creation.view() }).creations).toMatchObject([
      { isReady: true },
    ]);
  });
});

it('of many topics a few are looked at together', async () => {
  let [now, most] = [0, 0];
  const admins = clusters(async ({ call, cluster }) => {
    if (cluster === 'b' && call === 'namespace') most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (cluster === 'b' && call === 'names') now--;
    return undefined;
  });
  const { creation, ready } = create(admins);
  const topics = Array.from({ length: 40 }, (_, i) => `orders-${i}`);
  for (const name of topics) {
    for (const cluster of ['a', 'b']) await by(admins, cluster).createScalable({ ...topic, name }, two, signal);
  }
  for (const name of topics) creation.want(`public/default/${name}`);
  await creation.ended();
  expect(ready).toHaveLength(40);
  expect(most).toBe(8);
});
