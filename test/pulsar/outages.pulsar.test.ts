/** Brokers that are killed and started again, beneath replication, one lane, and nothing but clients. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SendResult } from 'isthmus';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { StatusDocument } from '../../examples/pulsar-replicator/status/index.js';
import { PulsarAdmin } from '../../src/adapters/pulsar/index.js';
import { chain, sendOf } from '../../src/testing/remote-lane.js';
import { type Broker, startBrokers } from './brokers.js';
import { consumed, openLane, Stage as RemoteStage, readBack, Topic, until } from './remote-stage.js';
import { expectEqual, FORTH, settle, write } from './scenario.js';
import { Stage } from './stage.js';

let stage: Stage;
let a: Broker;
let b: Broker;
const ends: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  const brokers = await startBrokers(2, { quickTakeOver: true });
  [a, b] = brokers.all as [Broker, Broker];
  stage = await Stage.open(brokers);
});
afterAll(() => stage?.close());
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await stage.clear();
});

it('the destination broker is killed and started again: nothing is lost, and nothing is there twice', async () => {
  const topic = await stage.topic('destination');
  const replicator = await stage.replicate(topic, FORTH);
  const written = write(stage.a, topic, { count: 4_000, seed: 11, ratePerSecond: 200 });
  const entries = (status: StatusDocument) => status.topics[0]?.directions[0]?.counters.verbatimEntries ?? 0;
  await replicator.until('it is at work', (status) => entries(status) > 100);
  await b.kill();
  await sleep(2_000);
  await b.restart();
  const tally = await written;
  await settle(stage, topic, replicator);
  await expectEqual(stage, topic, [tally], 4_000);
});

it('the source broker is killed and started again: acknowledgements that it lost are read again, and nothing is there twice', async () => {
  const topic = await stage.topic('source');
  const replicator = await stage.replicate(topic, FORTH);
  const tally = await write(stage.a, topic, { count: 2_000, seed: 13 });
  await settle(stage, topic, replicator);
  await a.kill();
  await a.restart();
  await write(stage.a, topic, { count: 1_000, seed: 15 });
  await settle(stage, topic, replicator);
  await expectEqual(stage, topic, [tally], 3_000);
});

it('a broker that is killed leaves nothing told that it has not stored', async () => {
  const lanes = new RemoteStage(a);
  ends.push(() => lanes.end());
  const topic = await Topic.create(a, 1);
  const client = lanes.client();
  const remote = lanes.remote(topic, client);
  const lane = await openLane(remote, 0);
  for (const step of chain(1, 2_000)) lane.producer.send(sendOf(...step));
  await until(() => lane.results.length >= 100);
  await a.kill();
  await until(() => lane.results.length === 2_000);
  const isStored = (result: SendResult) => result.type === 'stored';
  expect(lane.results.find((result) => !isStored(result))?.type).toBe('ambiguous');
  expect(await remote.open(5, 0, () => undefined)).toMatchObject({ type: 'unavailable' });
  await a.restart();
  const next = await openLane(remote, 0);
  const found = await readBack(remote, 0, await next.producer.barrier());
  expect(found.length).toBeGreaterThanOrEqual(lane.results.filter(isStored).length);
  expect(found).toEqual(chain(1, found.length).map(([position]) => position));
  const all = await consumed(client, await topic.segmentTopic(0));
  expect(all).toHaveLength(found.length);
  await next.producer.close();
});

it('a broker answers again after a pause, and keeps what it has over a kill and an orderly end', async () => {
  const topic = `topic://${await stage.topic('kept', 1)}`;
  const { admin, java } = stage.a;
  await (await java.producer(topic)).send([{ key: 'k', text: 'v' }]);
  a.pause();
  const hung = new PulsarAdmin({ urls: [a.adminUrl], timeoutMs: 1_000 });
  expect(await hung.scalableLayout(topic)).toMatchObject({ type: 'unavailable' });
  a.resume();
  expect(await admin.scalableLayout(topic)).toMatchObject({ type: 'ok' });
  await a.kill();
  expect(await hung.scalableLayout(topic)).toMatchObject({ type: 'unavailable' });
  await a.restart();
  await a.restart();
  expect(await (await java.streamConsumer(topic, 's')).read({ count: 1 })).toMatchObject({ count: 1 });
  expect(a.logTail()).not.toBe('');
});
