/**
 * The replicator's program with `createTopics`: a topic that is created on one cluster appears on the other and is
 * replicated, whoever else creates at the same time; what is half made is shown and waited for. Without it nothing is
 * created, which a proxy before each admin REST shows.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { RecordingProxy } from './provisioning-proxy.js';
import { halfMade, makeNamespace, scalable } from './provisioning-stage.js';
import { isConverged, ReplicatorProcess } from './replicator.js';
import { BOTH, expectEqual, settle, waitFor, write } from './scenario.js';
import { expectOk, type Side, Stage, subscribeCheck } from './stage.js';

let stage: Stage;
const namespace = `public/created-${Date.now().toString(36)}`;
beforeAll(async () => {
  stage = await Stage.open({ quickTakeOver: true });
  for (const { broker } of [stage.a, stage.b]) await makeNamespace(broker, namespace);
});
afterAll(() => stage?.close());
afterEach(() => stage.clear());

/** The program for the whole namespace. */
function replicate(label: string, more: Readonly<Record<string, unknown>> = {}): Promise<ReplicatorProcess> {
  return stage.replicate(label, { topics: [], namespaces: [namespace], createTopics: true, ...more });
}

/** Whether a side has a topic, with how many segments. */
async function segmentsOn({ admin }: Side, topic: string): Promise<number | undefined> {
  const found = await admin.scalableLayout(topic);
  if (found.type === 'notFound') return undefined;
  return expectOk(found).active.length;
}

async function subscribe(topic: string): Promise<void> {
  for (const { broker } of [stage.a, stage.b]) await subscribeCheck(broker, topic);
}

const isReplicated = (topic: string) => (status: Awaited<ReturnType<ReplicatorProcess['status']>>) =>
  status.topics.some((line) => line.topic === `topic://${topic}`);

it('topics of either cluster appear on the other with the same segments, and are replicated both ways', async () => {
  const [named, here, there] = ['named', 'here', 'there'].map((name) => `${namespace}/${name}`) as [
    string,
    string,
    string,
  ];
  await scalable(2)(stage.b.broker, named);
  await scalable(3)(stage.a.broker, here);
  const replicator = await replicate('both', { topics: [named] });
  await replicator.until('the named topic is replicated', isReplicated(named));
  await replicator.until('the topic of the namespace is replicated', isReplicated(here));
  await scalable(4)(stage.b.broker, there);
  const status = await replicator.until('the topic that came later is replicated', isReplicated(there));
  for (const [topic, segments] of [
    [named, 2],
    [here, 3],
    [there, 4],
  ] as const) {
    for (const side of [stage.a, stage.b]) expect(await segmentsOn(side, topic)).toBe(segments);
    const line = status.creations?.find((each) => each.topic === topic);
    expect(line).toMatchObject({ isReady: true });
    const made = line?.clusters.map(({ counters }) => counters.creations.createScalable ?? 0);
    expect(made).toEqual(topic === here ? [0, 1] : [1, 0]);
  }
  await subscribe(there);
  const written = await Promise.all([
    write(stage.a, there, { count: 300, seed: 1 }),
    write(stage.b, there, { count: 300, seed: 2 }),
  ]);
  await settle(stage, there, replicator, BOTH);
  await expectEqual(stage, there, written, 600);
  // Who deletes a topic that is replicated ends its replication: it does not come back from the other side.
  expectOk(await stage.b.admin.deleteScalable(here));
  await sleep(3_000);
  expect(await segmentsOn(stage.b, here)).toBeUndefined();
  expect(await replicator.stop()).toBe(0);
});

it('both clusters create at once, with the same and with other counts: both are replicated, and converge', async () => {
  const replicator = await replicate('at-once');
  const topics = [0, 1, 2].map((i) => `${namespace}/at-once-${i}`);
  await Promise.all(
    topics.flatMap((topic, i) => [
      // A cluster that is late finds the topic there already.
      scalable(2)(stage.a.broker, topic).catch(() => undefined),
      scalable(i === 0 ? 2 : 4)(stage.b.broker, topic).catch(() => undefined),
    ]),
  );
  for (const topic of topics) await replicator.until('it is replicated', isReplicated(topic));
  await replicator.until('the layouts have met', (status) => {
    const lines = status.topics.filter(({ topic }) => topics.some((one) => topic.endsWith(one)));
    return isConverged({ ...status, topics: lines });
  });
});

it('what is half made is not replicated and not touched, and shown until an operator has repaired it', async () => {
  const topic = `${namespace}/half`;
  await halfMade(stage.b.broker, topic);
  const replicator = await replicate('half');
  await scalable(2)(stage.a.broker, topic);
  const { creations, topics } = await replicator.until('it is shown', ({ creations = [] }) =>
    creations.some((line) => line.topic === topic && line.clusters.some(({ reason }) => reason === 'scalablePartial')),
  );
  const line = creations?.find((each) => each.topic === topic);
  expect(line).toMatchObject({ isReady: false });
  expect(line?.clusters.find(({ cluster }) => cluster === 'b')).toMatchObject({
    outcome: 'stop',
    remedy: expect.stringMatching(/Delete it there/),
    counters: { creations: {} },
  });
  expect(topics.some((each) => each.topic.endsWith(topic))).toBe(false);
  expect(replicator.log).toMatch(/half: .*b: scalablePartial: /);
  expectOk(await stage.b.admin.deleteScalable(topic));
  await replicator.until('it is replicated', isReplicated(topic));
  expect(await segmentsOn(stage.b, topic)).toBe(2);
});

it('without createTopics nothing is created; --check says what would be, and changes nothing', async () => {
  const topic = `${namespace}/waits`;
  await scalable(2)(stage.a.broker, topic);
  const sides = [stage.a.broker, stage.b.broker];
  const proxies = await Promise.all(sides.map(({ adminUrl }) => RecordingProxy.start(adminUrl)));
  const clusters = sides.map((cluster, i) => ({ ...cluster, adminUrl: proxies[i]?.url ?? '' }));
  try {
    const more = { namespaces: [namespace], stateNamespace: 'public/state-waits', createTopics: false };
    const replicator = await ReplicatorProcess.start({ clusters, more });
    await sleep(3_000);
    expect(await replicator.stop()).toBe(0);
    for (const createTopics of [true, false]) {
      const { code, output } = await ReplicatorProcess.run({ clusters, more: { ...more, createTopics } }, ['--check']);
      expect(code).toBe(0);
      const said = new RegExp(`${topic} on cluster b: it would be created \\(.*2 segments`);
      if (createTopics) expect(output).toMatch(said);
      else expect(output).not.toMatch(said);
    }
    const named = { clusters, topics: [`${namespace}/nowhere`, topic], more: { ...more, createTopics: true } };
    const { code, output } = await ReplicatorProcess.run(named, ['--check']);
    expect([code, output]).toEqual([1, expect.stringMatching(/nowhere: it does not exist on any cluster/)]);
    for (const proxy of proxies) expect(proxy.changes(topic)).toEqual([]);
    expect(await segmentsOn(stage.b, topic)).toBeUndefined();
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  }
  const replicator = await replicate('waits');
  await replicator.until('it is replicated', isReplicated(topic));
  await waitFor('it is there', async () => (await segmentsOn(stage.b, topic)) === 2);
});
