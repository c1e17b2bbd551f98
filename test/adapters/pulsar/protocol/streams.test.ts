/** Layout sessions, namespace watches and schemas. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../../../src/adapters/pulsar/protocol/commands.js';
import type {
  Closed,
  LayoutUpdate,
  PulsarClient,
  TopicSchema,
  TopicsUpdate,
} from '../../../../src/adapters/pulsar/protocol/index.js';
import { HandClock } from '../../../support/hand-clock.js';
import { until } from '../../../support/until.js';
import { clientOf, nothing, scriptedBroker } from './scripted-broker.js';

const TOPIC = 'topic://t/n/x';

type LayoutMessage = Extract<Command, { layoutUpdate: unknown }>['layoutUpdate'];

/** A topic whose first segment was split; the second child has never had a bucket more than one. */
const DAG: NonNullable<LayoutMessage['dag']> = {
  epoch: 1n,
  segments: [
    {
      segmentId: 0n,
      hashStart: 0,
      hashEnd: 0xffff,
      state: 1,
      childIds: [1n, 2n],
      createdAtEpoch: 0n,
      sealedAtEpoch: 1n,
      createdAtMs: 1000n,
      sealedAtMs: 2000n,
      entryBucketSplits: [0x8000],
      legacyTopicName: 'persistent://t/n/x-partition-0',
    },
    { segmentId: 1n, hashStart: 0, hashEnd: 0x7fff, state: 0, parentIds: [0n], createdAtEpoch: 1n, createdAtMs: 2000n },
  ],
  segmentBrokers: [{ segmentId: 1n, brokerUrl: 'pulsar://b:6650' }],
  controllerBrokerUrl: 'pulsar://c:6650',
};

async function watchLayout(client: PulsarClient) {
  const updates: LayoutUpdate[] = [];
  const closed: Closed[] = [];
  const events = { onUpdate: (u: LayoutUpdate) => updates.push(u), onClosed: (c: Closed) => closed.push(c) };
  return { result: await client.openLayoutSession(TOPIC, events), updates, closed };
}

describe('a layout session', () => {
  it('gives the layout now and whenever the broker tells it, and creates nothing', async () => {
    const broker = await scriptedBroker({
      layoutLookup: ({ sessionId }) => [
        { layoutUpdate: { sessionId, dag: DAG, resolvedTopicName: 'topic://t/n/full' } },
        { layoutUpdate: { sessionId, dag: DAG } },
        { layoutUpdate: { sessionId, dag: { epoch: 2n } } },
      ],
    });
    const { result, updates } = await watchLayout(clientOf(broker.url));
    expect(broker.of('layoutLookup')).toMatchObject([{ topic: TOPIC, createIfMissing: false }]);
    expect(Object.keys(broker.of('layoutLookup')[0] ?? {})).toContain('createIfMissing');
    expect(result).toMatchObject({
      type: 'opened',
      first: {
        topic: 'topic://t/n/full',
        epoch: 1,
        controllerUrl: 'pulsar://c:6650',
        brokers: new Map([[1, 'pulsar://b:6650']]),
        segments: [
          {
            segmentId: 0,
            range: { start: 0, end: 0xffff },
            state: 'sealed',
            parentIds: [],
            childIds: [1, 2],
            entryBucketSplits: [0x8000],
            createdAtEpoch: 0,
            sealedAtEpoch: 1,
            createdAtMs: 1000,
            sealedAtMs: 2000,
            legacyTopicName: 'persistent://t/n/x-partition-0',
          },
          {
            segmentId: 1,
            state: 'active',
            parentIds: [0],
            childIds: [],
            entryBucketSplits: [],
            sealedAtEpoch: -1,
            sealedAtMs: -1,
          },
        ],
      },
    });
    await until(() => updates.length === 2);
    expect(updates.map(({ epoch, topic, controllerUrl }) => ({ epoch, topic, controllerUrl }))).toEqual([
      { epoch: 1, topic: TOPIC, controllerUrl: 'pulsar://c:6650' },
      { epoch: 2, topic: TOPIC, controllerUrl: undefined },
    ]);
    if (result.type === 'opened') result.session.close();
    await until(() => broker.of('layoutClose').length === 1);
    expect(broker.of('layoutClose')[0]?.sessionId).toBe(broker.of('layoutLookup')[0]?.sessionId);
  });

  it('is refused, or ended, with the broker’s error', async () => {
    const broker = await scriptedBroker({
      layoutLookup: ({ sessionId }) =>
        broker.of('layoutLookup').length === 1
          ? { layoutUpdate: { sessionId, error: 11, message: 'not found' } }
          : [{ layoutUpdate: { sessionId, dag: DAG } }, { layoutUpdate: { sessionId, error: 0, message: 'deleted' } }],
    });
    const client = clientOf(broker.url);
    expect((await watchLayout(client)).result).toEqual({ type: 'refused', code: 11, message: 'not found' });
    const { closed } = await watchLayout(client);
    await until(() => closed.length === 1);
    expect(closed).toEqual([{ type: 'refused', code: 0, message: 'deleted' }]);
  });

  it('is not possible where the broker has no scalable topics', async () => {
    const broker = await scriptedBroker({ connect: () => ({ connected: { serverVersion: 'old' } }) });
    expect((await watchLayout(clientOf(broker.url))).result).toMatchObject({ type: 'unsupported' });
    expect(broker.of('layoutLookup')).toEqual([]);
  });

  it('is given up when nothing comes in time', async () => {
    const clock = new HandClock();
    const broker = await scriptedBroker({ layoutLookup: nothing });
    const opening = watchLayout(clientOf(broker.url, { clock, requestTimeoutMs: 300 }));
    await until(() => broker.of('layoutLookup').length === 1);
    clock.advance(300);
    expect((await opening).result).toEqual({ type: 'unreachable', reason: 'no answer within 300 ms' });
    await until(() => broker.of('layoutClose').length === 1);
  });

  it('ends with its connection, which ends at an update that says nothing or too much', async () => {
    for (const dag of [
      undefined,
      { epoch: 2n ** 53n },
      { epoch: 1n, segmentBrokers: [{ segmentId: 2n ** 60n, brokerUrl: 'b' }] },
    ]) {
      const broker = await scriptedBroker({
        layoutLookup: ({ sessionId }) => [
          { layoutUpdate: { sessionId, dag: DAG } },
          { layoutUpdate: { sessionId, ...(dag && { dag }) } },
        ],
      });
      const { closed } = await watchLayout(clientOf(broker.url));
      await until(() => closed.length === 1);
      expect(closed).toMatchObject([{ type: 'disconnected', cause: 'protocol' }]);
    }
    const broker = await scriptedBroker({ layoutLookup: (_, peer) => void peer.socket.destroy() });
    expect((await watchLayout(clientOf(broker.url))).result.type).toBe('unreachable');
  });
});

describe('a watch of a namespace', () => {
  it('gives all topics, then what changes', async () => {
    const broker = await scriptedBroker({
      watchTopics: ({ watchId }) => [
        { watchTopicsUpdate: { watchId, snapshot: { topics: [TOPIC] } } },
        { watchTopicsUpdate: { watchId, diff: { added: ['topic://t/n/y'], removed: [TOPIC] } } },
        { watchTopicsUpdate: { watchId, error: 4, message: 'right revoked' } },
      ],
    });
    const heard: (TopicsUpdate | Closed)[] = [];
    const keep = (event: TopicsUpdate | Closed) => heard.push(event);
    const result = await clientOf(broker.url).watchTopics('t/n', { onUpdate: keep, onClosed: keep });
    expect(broker.of('watchTopics')).toMatchObject([{ namespace: 't/n' }]);
    expect(result).toMatchObject({ type: 'opened', first: { type: 'snapshot', topics: [TOPIC] } });
    await until(() => heard.length === 2);
    expect(heard).toEqual([
      { type: 'diff', added: ['topic://t/n/y'], removed: [TOPIC] },
      { type: 'refused', code: 4, message: 'right revoked' },
    ]);
  });

  it('is refused with the broker’s error, and closed from here', async () => {
    const broker = await scriptedBroker({
      watchTopics: ({ watchId, namespace }) => ({
        watchTopicsUpdate: namespace === 'no' ? { watchId, error: 4, message: 'no' } : { watchId, snapshot: {} },
      }),
    });
    const client = clientOf(broker.url);
    const events = { onUpdate: nothing, onClosed: nothing };
    expect(await client.watchTopics('no', events)).toEqual({ type: 'refused', code: 4, message: 'no' });
    const result = await client.watchTopics('t/n', events);
    if (result.type === 'opened') result.session.close();
    await until(() => broker.of('watchTopicsClose').length === 1);
  });
});

describe('schemas', () => {
  const schema: TopicSchema = {
    name: 't/n/x',
    type: 4,
    data: new Uint8Array([1, 2, 0]),
    properties: [
      { key: 'b', value: '1' },
      { key: 'a', value: '2' },
    ],
  };
  const version = new Uint8Array([0, 0, 0, 0, 0, 0, 0, 9]);

  it('pass from one broker to another as they are', async () => {
    const { data: schemaData, ...rest } = schema;
    const broker = await scriptedBroker({
      getSchema: ({ requestId }) => ({
        getSchemaResponse: {
          requestId,
          schema: { ...rest, properties: [...rest.properties], schemaData },
          schemaVersion: version,
        },
      }),
      getOrCreateSchema: ({ requestId }) => ({ getOrCreateSchemaResponse: { requestId, schemaVersion: version } }),
    });
    const client = clientOf(broker.url);
    const found = await client.getSchema(TOPIC, version);
    expect(found).toEqual({ type: 'found', schema, version });
    await client.getSchema(TOPIC);
    expect(broker.of('getSchema').map(({ schemaVersion }) => schemaVersion.length)).toEqual([8, 0]);
    if (found.type !== 'found') throw new Error('not found');
    expect(await client.getOrCreateSchema(TOPIC, found.schema)).toEqual({ type: 'registered', version });
    expect(broker.of('getOrCreateSchema')).toMatchObject([{ topic: TOPIC, schema: { ...rest, schemaData } }]);
    expect(broker.of('lookup')).toHaveLength(1);
  });

  it('that are missing or incompatible are refused with the broker’s code', async () => {
    const broker = await scriptedBroker({
      getSchema: ({ requestId, schemaVersion }) => ({
        getSchemaResponse: {
          requestId,
          ...(schemaVersion.length === 0 ? {} : { errorCode: 11, errorMessage: 'none' }),
        },
      }),
      getOrCreateSchema: ({ requestId }) => ({
        getOrCreateSchemaResponse: { requestId, errorCode: 18, errorMessage: 'incompatible' },
      }),
    });
    const client = clientOf(broker.url);
    expect(await client.getSchema(TOPIC, version)).toEqual({ type: 'refused', code: 11, message: 'none' });
    expect(await client.getSchema(TOPIC)).toMatchObject({ type: 'refused', code: 11 });
    expect(await client.getOrCreateSchema(TOPIC, schema)).toEqual({
      type: 'refused',
      code: 18,
      message: 'incompatible',
    });
  });
});
