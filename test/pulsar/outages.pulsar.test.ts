/** Replication while a broker is killed and started again: nothing is lost, and nothing is there twice. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, it } from 'vitest';
import type { StatusDocument } from '../../examples/pulsar-replicator/status/index.js';
import { type Broker, startBrokers } from './brokers.js';
import { expectEqual, FORTH, settle, write } from './scenario.js';
import { Stage } from './stage.js';

let stage: Stage;
let a: Broker;
let b: Broker;
beforeAll(async () => {
  const brokers = await startBrokers(2, { quickTakeOver: true });
  [a, b] = brokers.all as [Broker, Broker];
  stage = await Stage.open(brokers);
});
afterAll(() => stage?.close());
afterEach(() => stage.clear());

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
