/**
 * Every kind of message that Pulsar's own clients write, between two real clusters: what its own consumers read on the
 * other side is what they read where it was written.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { schemaTranslator } from 'isthmus/adapters/pulsar';
import { testSchemaTranslator } from 'isthmus/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createPulsarClient, type PulsarClient, type TopicSchema } from '../../src/adapters/pulsar/protocol/index.js';
import { SOURCE_POSITION_PROPERTY } from '../../src/entry/index.js';
import type { ConsumerSettings, JavaCluster, MessageSpec, ProducerSettings, ReadMessage } from './java-client.js';
import { FORTH, settle, stored, waitFor, write } from './scenario.js';
import { makeEncryptionKey } from './secrets.js';
import { CHECK, type Side, Stage } from './stage.js';

let stage: Stage;
const folder = mkdtempSync(join(tmpdir(), 'isthmus-messages-'));
beforeAll(async () => {
  stage = await Stage.open({ transactions: true });
});
afterAll(async () => {
  await stage?.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => stage.clear());

/** Of single messages consumers see this one too, which no producer wrote. */
const POSITION = SOURCE_POSITION_PROPERTY;

async function send(side: Side, topic: string, settings: ProducerSettings, messages: readonly MessageSpec[]) {
  const producer = await side.java.producer(`topic://${topic}`, settings);
  await producer.send(messages);
  await producer.close();
}

/** The first so many messages of a side, and whatever comes behind them in the time of a second. */
async function read(side: Side, topic: string, count: number, settings: ConsumerSettings = {}, kind = 'stream') {
  const consumer = await (kind === 'stream'
    ? side.java.streamConsumer(`topic://${topic}`, CHECK, settings)
    : side.java.queueConsumer(`topic://${topic}`, 'check-queue', settings));
  const messages = [...(await consumer.read({ count })).messages];
  messages.push(...(await consumer.read({ quietMs: 1_000 })).messages);
  await consumer.close();
  return messages;
}

/** All that a message tells and that must not change on its way, by segment and place in it. */
function kept(messages: readonly ReadMessage[], but: readonly (keyof ReadMessage)[] = []) {
  const left = new Set<string>(['at', 'replicatedFrom', 'redeliveries', ...but]);
  const told = messages.map((message) => {
    const properties = Object.fromEntries(Object.entries(message.properties).filter(([name]) => name !== POSITION));
    return Object.fromEntries(Object.entries({ ...message, properties }).filter(([name]) => !left.has(name)));
  });
  // Segments are read side by side: only in each of them there is an order.
  return told.sort((one, other) => Number(one.segmentId) - Number(other.segmentId));
}

/** Both sides tell the same of `count` messages, and the second one where they come from. */
async function expectSame(topic: string, count: number, settings: ConsumerSettings = {}) {
  const [here, there] = await Promise.all([
    read(stage.a, topic, count, settings),
    read(stage.b, topic, count, settings),
  ]);
  expect(here.length).toBe(count);
  expect(kept(there)).toEqual(kept(here));
  expect(new Set(here.map(({ replicatedFrom }) => replicatedFrom))).toEqual(new Set([undefined]));
  expect(new Set(there.map(({ replicatedFrom }) => replicatedFrom))).toEqual(new Set(['a']));
  return [here, there] as const;
}

it('keys, values, properties, event times, producer names and sequence ids are kept, of single messages and of batches', async () => {
  const topic = await stage.topic('plain');
  const replicator = await stage.replicate(topic, FORTH);
  const messages = Array.from({ length: 40 }, (_, i) => ({
    key: `k${i % 7}`,
    text: `value ${i}`,
    properties: { index: String(i), empty: '' },
    eventTimeMs: 1_700_000_000_000 + i,
    sequence: 1_000 + i,
  }));
  const ways: readonly ProducerSettings[] = [{ batching: false }, { batchMessages: 10, compression: 'zstd' }];
  for (const [i, way] of ways.entries()) await send(stage.a, topic, { producerName: `writer-${i}`, ...way }, messages);
  await settle(stage, topic, replicator);
  const [, there] = await expectSame(topic, 80);
  const singles = there.filter(({ producerName }) => producerName?.startsWith('writer-0-seg-'));
  expect(singles.map(({ sequenceId }) => sequenceId).sort()).toEqual(messages.map(({ sequence }) => sequence));
  expect(new Set(there.map(({ eventTimeMs }) => eventTimeMs)).size).toBe(40);
});

it('without a key, with an empty value, and with none', async () => {
  const topic = await stage.topic('bare');
  const replicator = await stage.replicate(topic, FORTH);
  const messages: readonly MessageSpec[] = [
    { text: 'no key' },
    { text: '' },
    { key: 'k', text: '' },
    { key: 'k' },
    {},
    { key: '', text: 'an empty key' },
    { key: 'k', text: 'last' },
  ];
  for (const batching of [true, false]) await send(stage.a, topic, { batching }, messages);
  await settle(stage, topic, replicator);
  const [here] = await expectSame(topic, 2 * messages.length);
  expect(here.filter(({ hash }) => hash === undefined).length).toBe(4);
});

it('in chunks', async () => {
  const topic = await stage.topic('chunks');
  const replicator = await stage.replicate(topic, FORTH);
  const large = (seed: number) => Array.from({ length: 3_000 }, (_, i) => String(i * seed)).join(' ');
  const messages = Array.from({ length: 12 }, (_, i) => ({
    key: `k${i}`,
    text: large(i + 1),
    properties: { n: `${i}` },
  }));
  await send(stage.a, topic, { chunkBytes: 4_096 }, messages);
  await settle(stage, topic, replicator);
  await expectSame(topic, messages.length);
  const { topics } = await replicator.status();
  expect(topics[0]?.directions[0]?.counters).toMatchObject({ chunksGivenUp: 0, held: {} });
});

it('in chunks to finer segments for good: each message whole in the segment of its key', async () => {
  const topic = await stage.topic('finer');
  const layout = await stage.b.admin.split(topic, 0);
  expect(layout.type).toBe('ok');
  const replicator = await stage.replicate(topic, { ...FORTH, convergeLayouts: false });
  const large = (seed: number) => Array.from({ length: 2_000 }, (_, i) => String(i * seed)).join(' ');
  const messages = Array.from({ length: 12 }, (_, i) => ({ key: `k${i}`, text: large(i + 1) }));
  await send(stage.a, topic, { chunkBytes: 4_096 }, messages);
  await settle(stage, topic, replicator);
  const [here, there] = await Promise.all([read(stage.a, topic, 12), read(stage.b, topic, 12)]);
  const byKey = (messages: readonly ReadMessage[]) =>
    kept(messages, ['segmentId', 'producerName', 'sequenceId']).sort((x, y) =>
      String(x.key) < String(y.key) ? -1 : 1,
    );
  expect(byKey(there)).toEqual(byKey(here));
  expect(new Set(there.map(({ segmentId }) => segmentId)).size).toBe(3);
});

it('delayed ones are stored at once, and due on the other side when they are here', async () => {
  const topic = await stage.topic('delayed');
  const replicator = await stage.replicate(topic, FORTH);
  const dueMs = Date.now() + 12_000;
  const messages = Array.from({ length: 6 }, (_, i) => ({ key: `k${i}`, text: `later ${i}`, deliverAtMs: dueMs }));
  await send(stage.a, topic, { batching: false }, messages);
  await settle(stage, topic, replicator);
  expect(Date.now()).toBeLessThan(dueMs);
  const early = await stage.b.java.queueConsumer(`topic://${topic}`, 'check-queue');
  expect((await early.read({ quietMs: 1_000 })).messages).toEqual([]);
  const there = (await early.read({ count: 6, quietMs: 30_000 })).messages;
  // Brokers round a little down to save memory.
  expect(Date.now()).toBeGreaterThan(dueMs - 2_000);
  await early.close();
  const here = await read(stage.a, topic, 6, {}, 'queue');
  const byKey = (messages: readonly ReadMessage[]) =>
    kept(messages).sort((x, y) => (String(x.key) < String(y.key) ? -1 : 1));
  expect(byKey(there)).toEqual(byKey(here));
});

it('encrypted ones are carried unopened, and only who has the key can read them', async () => {
  const topic = await stage.topic('encrypted');
  const replicator = await stage.replicate(topic, FORTH);
  const { publicKeyFile, privateKeyFile } = makeEncryptionKey(folder, 'letters');
  const messages = Array.from({ length: 10 }, (_, i) => ({
    key: `k${i}`,
    text: `secret ${i}`,
    properties: { n: `${i}` },
  }));
  const encryption = { name: 'letters', publicKeyFile };
  for (const compression of ['none', 'lz4'] as const) await send(stage.a, topic, { encryption, compression }, messages);
  await settle(stage, topic, replicator);
  // Before the consumers come: what has been read may be trimmed.
  const raw = [await stored(stage.a, topic), await stored(stage.b, topic)];
  await expectSame(topic, 20, { encryption: { name: 'letters', privateKeyFile } });
  expect(raw[1]?.map(({ content }) => content)).toEqual(raw[0]?.map(({ content }) => content));
  expect(raw[1]?.length).toBe(20);
});

it('a JSON schema that evolves in the middle: other versions there, and consumers decode', async () => {
  const topic = await stage.topic('schema');
  // The destination has seen one version that the source has not: from here on its numbers differ.
  await send(stage.b, topic, { schema: 'json' }, [{ key: 'own', text: '{"text":"own","number":0}' }]);
  await send(stage.b, topic, { schema: 'jsonWider' }, [{ key: 'own', text: '{"text":"own","number":0,"more":"m"}' }]);
  await send(stage.a, topic, { schema: 'jsonWider' }, [{ key: 'k0', text: '{"text":"t","number":0,"more":"m0"}' }]);
  const replicator = await stage.replicate(topic, FORTH);
  for (let i = 1; i < 6; i++) {
    await send(stage.a, topic, { schema: 'json' }, [{ key: `k${i}`, text: `{"text":"t","number":${i}}` }]);
    await send(stage.a, topic, { schema: 'jsonWider' }, [
      { key: `k${i}`, text: `{"text":"t","number":${i},"more":"m"}` },
    ]);
  }
  await settle(stage, topic, replicator);
  const auto = { schema: 'auto' } as const;
  const [here, all] = await Promise.all([read(stage.a, topic, 11, auto), read(stage.b, topic, 13, auto)]);
  const there = all.filter(({ key }) => key !== 'own');
  expect(kept(there, ['schemaVersion'])).toEqual(kept(here, ['schemaVersion']));
  expect(there.length).toBe(11);
  const versions = (messages: readonly ReadMessage[]) =>
    new Map(messages.map(({ fields, schemaVersion }) => ['more' in (fields ?? {}), schemaVersion] as const));
  expect(versions(here)).toEqual(
    new Map([
      [true, '0000000000000000'],
      [false, '0000000000000001'],
    ]),
  );
  expect(versions(there)).toEqual(
    new Map([
      [true, '0000000000000001'],
      [false, '0000000000000000'],
    ]),
  );
});

it('a schema that the destination does not take holds its segment and says so, and nothing passes it', async () => {
  const topic = await stage.topic('misfit', 1);
  await send(stage.b, topic, { schema: 'jsonOther' }, [{ key: 'own', text: '{"text":"own","number":"0"}' }]);
  const replicator = await stage.replicate(topic, FORTH);
  await send(stage.a, topic, {}, [{ key: 'k', text: 'before' }]);
  await send(stage.a, topic, { schema: 'json' }, [{ key: 'k', text: '{"text":"t","number":1}' }]);
  const status = await replicator.until('it is held', ({ topics }) =>
    topics.some(({ directions }) => directions.some(({ segments }) => segments.some(({ held }) => held !== undefined))),
  );
  const segment = status.topics[0]?.directions[0]?.segments[0];
  expect(segment).toMatchObject({ held: { reason: 'incompatibleSchema' } });
  expect(replicator.log).toMatch(/segment 0: held: .*schema/);
  expect((await read(stage.b, topic, 2)).length).toBe(2);
});

/** A client of its own, since one that is not told of transactions has none. */
function withTransactions({ broker }: Side): Promise<JavaCluster> {
  const { serviceUrl, adminUrl } = broker;
  const cluster = { name: `${broker.name}-transactions`, serviceUrl, adminUrl };
  return stage.java.open(cluster, { transactionTimeoutMs: 60_000 });
}

it('of a transaction: all at once when it is committed, none when it is aborted, and the order is kept', async () => {
  const topic = await stage.topic('transactions', 1);
  const replicator = await stage.replicate(topic, FORTH);
  const clients = await withTransactions(stage.a);
  const producer = await clients.producer(`topic://${topic}`);
  const [committed, aborted] = [await clients.begin(), await clients.begin()];
  const texts = (text: string, more: Partial<MessageSpec> = {}) =>
    producer.send(['1', '2', '3'].map((n) => ({ key: 'k', text: `${text} ${n}`, ...more })));
  await texts('before');
  await texts('committed', { transaction: committed });
  await texts('aborted', { transaction: aborted });
  await texts('after');
  await aborted.abort();
  await committed.commit();
  await settle(stage, topic, replicator);
  const [here] = await expectSame(topic, 9);
  expect(here.map(({ hex = '' }) => Buffer.from(hex, 'hex').toString())).toEqual(
    ['before', 'committed', 'after'].flatMap((text) => ['1', '2', '3'].map((n) => `${text} ${n}`)),
  );
});

it('a takeover waits for a transaction that is open on the destination, says so, and goes on when it ends', async () => {
  const topic = await stage.topic('takeover', 1);
  const replicator = await stage.replicate(topic, FORTH);
  await write(stage.a, topic, { count: 50, seed: 1 });
  await settle(stage, topic, replicator);
  const clients = await withTransactions(stage.b);
  const producer = await clients.producer(`topic://${topic}`);
  const transaction = await clients.begin();
  await producer.send([{ key: 'own', text: 'in a transaction', transaction }]);
  await write(stage.a, topic, { count: 50, seed: 2 });
  await settle(stage, topic, replicator);
  await replicator.kill();
  await write(stage.a, topic, { count: 50, seed: 3 });
  await replicator.restart();
  await waitFor('it says so', () => /waits.*transaction/.test(replicator.log));
  await transaction.commit();
  await settle(stage, topic, replicator);
  const there = await read(stage.b, topic, 151);
  expect(there.length).toBe(151);
  const copies = there.filter(({ replicatedFrom }) => replicatedFrom === 'a');
  expect(kept(copies)).toEqual(kept(await read(stage.a, topic, 150)));
});

/** A JSON schema of records with a text, and with another member that may be left out. */
function schemaWith(member: string, type: 'int' | 'string' = 'string'): TopicSchema {
  const fields = [
    { name: 'text', type: 'string' },
    { name: member, type, default: type === 'int' ? 0 : '' },
  ];
  const data = Buffer.from(JSON.stringify({ type: 'record', name: 'Suite', fields }));
  return { name: 'suite', type: 2, data, properties: [] };
}

describe('the translation of schemas', () => {
  let made = 0;
  testSchemaTranslator(async () => {
    const path = await stage.topic(`translated-${++made}`, 1);
    const [topic, segment] = [`topic://${path}`, `segment://${path}/0000-ffff-0`];
    const clients = [stage.a, stage.b].map(({ broker }) => createPulsarClient({ serviceUrls: [broker.serviceUrl] }));
    const [source, destination] = clients as [PulsarClient, PulsarClient];
    const register = async (client: PulsarClient, schema: TopicSchema) => {
      const result = await client.getOrCreateSchema(segment, schema);
      if (result.type !== 'registered') throw new Error(JSON.stringify(result));
      return { version: result.version, content: Buffer.from(schema.data).toString() };
    };
    const stored = async (version: Uint8Array) => {
      const result = await destination.getSchema(topic, version);
      return result.type === 'found' ? Buffer.from(result.schema.data).toString() : undefined;
    };
    await register(destination, schemaWith('own'));
    const nowhere = createPulsarClient({ serviceUrls: ['pulsar://127.0.0.1:9'] });
    clients.push(nowhere);
    let there = destination;
    const way: PulsarClient = {
      ...destination,
      getOrCreateSchema: (...call) => there.getOrCreateSchema(...call),
    };
    let schemas = 0;
    return {
      translator: schemaTranslator({ client: source, topic }, { client: way, topic: async () => segment }),
      addSchema: () => register(source, schemaWith(`member${++schemas}`)),
      async addMisfit() {
        await register(destination, schemaWith('number', 'string'));
        return (await register(source, schemaWith('number', 'int'))).version;
      },
      stored,
      async count() {
        let count = 0;
        while ((await stored(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, count))) !== undefined) count++;
        return count;
      },
      setReachable(isReachable) {
        there = isReachable ? destination : nowhere;
      },
      async teardown() {
        await Promise.all(clients.map((client) => client.close()));
      },
    };
  }, it);
});
