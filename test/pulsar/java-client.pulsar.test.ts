/** The Java clients of the tests, tested themselves: what they say must be what has happened. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PulsarAdmin } from '../../src/adapters/pulsar/admin/index.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { JavaClients, type JavaCluster } from './java-client.js';

const EQUAL = { missing: 0, extra: 0, duplicatesLeft: 0, duplicatesRight: 0, orderBreaks: 0 };

let clusters: Clusters;
let admin: PulsarAdmin;
let java: JavaClients;
let clients: JavaCluster;
let made = 0;

beforeAll(async () => {
  clusters = await openClusters(1, { transactions: true });
  const broker = clusters.all[0] as Cluster;
  admin = new PulsarAdmin({ urls: [broker.adminUrl] });
  java = await JavaClients.start();
  clients = await java.open(broker, { transactionTimeoutMs: 60_000 });
});
afterAll(async () => {
  await java?.stop();
  await clusters?.stop();
});

async function freshTopic(segments = 2): Promise<string> {
  const topic = `topic://public/default/java-${process.pid}-${made++}`;
  expect(await admin.createScalable(topic, segments)).toMatchObject({ type: 'ok' });
  return topic;
}

it('read what they send, over splits, in the order of each key', async () => {
  const topic = await freshTopic();
  const producer = await clients.producer(topic, { compression: 'lz4' });
  const sending = producer.generate({ count: 5_000, seed: 7, keys: 40, ratePerSecond: 2_000, tally: 'sent' });
  const reading = (await clients.streamConsumer(topic, 'stream')).read({ quietMs: 8_000, tally: 'read' });
  await sleep(500);
  expect(await admin.split(topic, 0)).toMatchObject({ type: 'ok' });
  expect(await sending).toMatchObject({ stored: 5_000, failed: 0 });
  expect(await reading).toMatchObject({ count: 5_000, redelivered: 0 });
  expect(await java.compare('sent', 'read')).toMatchObject({ left: 5_000, right: 5_000, ...EQUAL });
  expect(await java.tally('read')).toEqual({ count: 5_000, distinct: 5_000, keys: 40, origins: { a: 5_000 } });
  const queue = await clients.queueConsumer(topic, 'queue');
  await queue.read({ count: 5_000, tally: 'queue' });
  expect(await java.compare('read', 'queue', { asWhole: true })).toMatchObject({ missing: 0, extra: 0 });
});

it('tell differences: what is missing, doubled, and in another order', async () => {
  const [one, other] = [await freshTopic(1), await freshTopic(1)] as const;
  for (const [topic, texts] of [
    [one, ['1', '2', '3', '4']],
    [other, ['2', '1', '3', '3', '5']],
  ] as const) {
    await (await clients.producer(topic)).send(texts.map((text) => ({ key: 'k', text })));
    await (await clients.streamConsumer(topic, 's')).read({ count: texts.length, tally: topic });
  }
  expect(await java.compare(one, other)).toMatchObject({
    ...{ left: 4, right: 5, missing: 1, extra: 2, duplicatesLeft: 0, duplicatesRight: 1, orderBreaks: 1 },
    examples: {
      missing: [expect.stringMatching(/^key k of a, /)],
      orderBreaks: [expect.stringMatching(/instead of/)],
    },
  });
});

it('carry everything a message can have', async () => {
  const topic = await freshTopic(1);
  const producer = await clients.producer(topic, { producerName: 'p', batching: false });
  const at = await producer.send([
    { key: 'k', text: 'one', properties: { x: '1' }, eventTimeMs: 5, sequence: 10 },
    { hex: '00ff' },
    { key: 'gone' },
  ]);
  const { messages } = await (await clients.streamConsumer(topic, 's')).read({ count: 3 });
  expect(messages).toMatchObject([
    { key: 'k', hex: '6f6e65', properties: { x: '1' }, eventTimeMs: 5, sequenceId: 10, producerName: 'p-seg-0' },
    { bytes: 2, hex: '00ff' },
    { key: 'gone' },
  ]);
  expect(messages.map((message) => message.at)).toEqual(at);
  expect(messages[2]).not.toHaveProperty('bytes');
  const entries = await clients.raw(`${topic.replace('topic:', 'segment:')}/0000-ffff-0`, { show: true });
  expect(entries.map(({ ledgerId, entryId }) => `${ledgerId}:${entryId}`)).toEqual(at);
  expect(entries[0]?.hex).toMatch(/6f6e65$/);
});

it('begin transactions, and commit or abort them', async () => {
  const topic = await freshTopic(1);
  const producer = await clients.producer(topic);
  const consumer = await clients.streamConsumer(topic, 's');
  const [kept, dropped] = [await clients.begin(), await clients.begin()] as const;
  await producer.send([{ text: 'kept', transaction: kept }]);
  await producer.send([{ text: 'dropped', transaction: dropped }]);
  expect(await consumer.read({ quietMs: 1_000 })).toMatchObject({ count: 0 });
  await dropped.abort();
  await kept.commit();
  const { messages } = await consumer.read({ quietMs: 3_000 });
  expect(messages.map(({ hex }) => Buffer.from(hex ?? '', 'hex').toString())).toEqual(['kept']);
});
