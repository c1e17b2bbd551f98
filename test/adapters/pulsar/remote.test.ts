/** The remote against a broker that the test plays: what real ones do rarely, or only to others. */
import { createLayout, type IsthmusError, type Layout, type SendResult } from 'isthmus';
import { describe, expect, it } from 'vitest';
import { type PulsarRemoteOptions, pulsarRemote } from '../../../src/adapters/pulsar/remote/index.js';
import { batchMessage, encodeBatch, encodeMessage } from '../../../src/entry/index.js';
import { chain, sendOf } from '../../../src/testing/remote-lane.js';
import { HandClock } from '../../support/hand-clock.js';
import { until } from '../../support/until.js';
import {
  CLOSED_BY_BROKER,
  DISCONNECTED,
  FakeClient,
  type FakeConsumer,
  type FakeProducer,
  refusal,
} from './fake-client.js';

const LAYOUT = createLayout({ segments: 2, nowMs: 0 });

function stage(options: Partial<PulsarRemoteOptions> = {}, layout: Layout = LAYOUT) {
  const client = new FakeClient();
  const clock = new HandClock();
  const calls: string[] = [];
  const remote = pulsarRemote({
    client,
    clock,
    cluster: 'b',
    sourceCluster: 'a',
    topic: 'topic://t/n/orders',
    layouts: {
      load: async () => layout,
      async *watch() {
        yield layout;
      },
    },
    async ensurePin(subscription) {
      calls.push(subscription);
      return { type: 'ensured' };
    },
    ...options,
  });
  return { client, clock, remote, calls };
}

type Staged = ReturnType<typeof stage>;

/** A lane on segment 0 for source segment 5, with these sends in flight. */
async function laneOf(made: Staged, sends: number) {
  const results: SendResult[] = [];
  const opened = await made.remote.open(5, 0, (result) => results.push(result));
  if (opened.type !== 'opened') throw new Error(`${opened.type}: ${opened.reason}`);
  const broker = made.client.producers.at(-1) as FakeProducer;
  for (const step of chain(1, sends)) opened.producer.send(sendOf(...step));
  return {
    ...made,
    results,
    broker,
    producer: opened.producer,
    types: () => results.map(({ type }) => type).join(' '),
  };
}

/** Lets everything run that waits for nothing. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('an opening', () => {
  it.each([
    [refusal(15), 'sealed'],
    [refusal(7), 'throttled'],
    [refusal(8), 'throttled'],
    [refusal(4), 'unauthorized'],
    [refusal(3), 'unauthorized'],
    [refusal(16, "Producer with name 'isthmus.a.5' is already connected to topic"), 'fenced'],
    [refusal(16, 'Topic reached max producers limit'), 'throttled'],
    [refusal(25), 'fenced'],
    [refusal(6), 'unavailable'],
    [refusal(2), 'unavailable'],
    [refusal(11), 'unavailable'],
    [{ type: 'unreachable', reason: 'refused' } as const, 'unavailable'],
  ])('that the broker answers with %o is %s', async (answer, type) => {
    const { client, remote } = stage();
    client.producerAnswers.push(answer);
    expect(await remote.open(5, 0, () => undefined)).toMatchObject({ type });
  });

  it('is by the lock’s name on the segment’s topic, after the pin is there', async () => {
    const { client, calls, broker } = await laneOf(stage(), 0);
    expect(broker.options).toEqual({ topic: 'segment://t/n/orders/0000-7fff-0', name: 'isthmus.a.5' });
    expect(calls).toEqual(['isthmus.pin.a']);
    expect(client.consumers[0]?.options).toEqual({
      topic: 'segment://t/n/orders/0000-7fff-0',
      subscription: 'isthmus.pin.a',
      durable: true,
    });
    expect(client.consumers[0]?.permits).toBe(0);
  });

  it('fails without the pin, and asks for it again the next time', async () => {
    let isAllowed = false;
    const { remote, client } = stage({
      ensurePin: async () => (isAllowed ? { type: 'ensured' } : { type: 'unauthorized', reason: 'error 401' }),
    });
    expect(await remote.open(5, 0, () => undefined)).toEqual({ type: 'unauthorized', reason: 'error 401' });
    isAllowed = true;
    client.subscribeAnswers.push(refusal(5, 'Topic reached max consumers limit'));
    expect(await remote.open(5, 0, () => undefined)).toMatchObject({ type: 'throttled' });
    expect(client.producers).toHaveLength(0);
    client.subscribeAnswers.push(refusal(5, 'Exclusive consumer is already connected'));
    expect(await remote.open(5, 0, () => undefined)).toMatchObject({ type: 'opened' });
  });

  it('of a segment that is not in the layout is unavailable, of a legacy one by its own name', async () => {
    const legacy = 'persistent://t/n/orders-partition-0';
    const segments = new Map(
      [...LAYOUT.segments].map(([id, segment]) => [id, { ...segment, legacyTopicName: legacy }]),
    );
    const { remote, client } = stage({}, { ...LAYOUT, segments, active: [...segments.values()] });
    expect(await remote.open(5, 99, () => undefined)).toMatchObject({ type: 'unavailable' });
    await remote.open(5, 0, () => undefined);
    expect(client.producers[0]?.options.topic).toBe(legacy);
  });

  it('waits until the name is given back that it is to have', async () => {
    const { broker, producer, remote, client } = await laneOf(stage(), 0);
    let giveBack: () => void = () => undefined;
    broker.closing = new Promise((resolve) => {
      giveBack = resolve;
    });
    void producer.close();
    const opening = remote.open(5, 0, () => undefined);
    await settled();
    expect(client.producers).toHaveLength(1);
    giveBack();
    expect(await opening).toMatchObject({ type: 'opened' });
  });
});

describe('sends', () => {
  it('are numbered behind what the broker has of the name, and tell how many messages they hold', async () => {
    const made = stage();
    made.client.lastSequenceId = 41n;
    const { broker, producer } = await laneOf(made, 1);
    const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: 0 };
    const messages = ['x', 'y', 'z'].map((text) => batchMessage({ payload: Buffer.from(text) }));
    const buffers = encodeBatch(messages, { outer, compression: 'none', codecs: {} });
    producer.send({ ...sendOf('7:2'), buffers });
    expect(broker.sent).toEqual([
      { sequenceId: 42n, messages: 1 },
      { sequenceId: 43n, messages: 3 },
    ]);
  });

  it('wait for room, and go on in their order', async () => {
    const made = await laneOf(stage(), 1);
    made.broker.hasRoom = false;
    for (const step of chain(2, 4)) made.producer.send(sendOf(...step));
    expect(made.broker.sent).toHaveLength(2);
    made.broker.makeRoom();
    await settled();
    expect(made.broker.sent).toHaveLength(4);
    for (const place of [0, 1, 2, 3]) made.broker.receipt(place);
    expect(made.types()).toBe('stored stored stored stored');
    expect(made.results[3]).toEqual({ type: 'stored', at: { ledgerId: 9n, entryId: 3n } });
  });

  it('stay below the broker’s own limit, which later ones are planned for', async () => {
    const made = stage();
    expect(made.remote.maxEntryBytes).toBe(5 * 1024 * 1024 - 1024);
    made.client.maxMessageBytes = 10_000;
    const { producer, remote, types, broker } = await laneOf(made, 1);
    expect(remote.maxEntryBytes).toBe(8_976);
    for (const size of [8_000, 9_000, 1]) producer.send(sendOf('7:2', { size }));
    expect(types()).toBe('');
    broker.receipt(0);
    broker.receipt(1);
    expect(types()).toBe('stored stored tooLarge ambiguous');
    expect(broker.sent).toHaveLength(2);
  });

  it.each([
    [9, 'rejected', 'ambiguous'],
    [22, 'rejected', 'ambiguous'],
    [15, 'sealed', 'sealed'],
    [6, 'unavailable', 'unavailable'],
    [4, 'unauthorized', 'unauthorized'],
    [8, 'throttled', 'throttled'],
    [16, 'fenced', 'fenced'],
    [2, 'ambiguous', 'ambiguous'],
    [0, 'ambiguous', 'ambiguous'],
  ])('that one is answered with error %i: it is %s, and what is behind it %s', async (code, type, behind) => {
    const { broker, types, producer } = await laneOf(stage(), 4);
    broker.receipt(0);
    // Of an entry that is checked before it is stored, the error overtakes the receipts of those before it.
    broker.error(2, code);
    expect(types()).toBe('stored');
    producer.send(sendOf('7:5'));
    expect(broker.sent).toHaveLength(4);
    broker.receipt(1);
    await settled();
    expect(types()).toBe(`stored stored ${type} ${behind} ${behind}`);
    broker.receipt(3);
    producer.send(sendOf('7:6'));
    expect(types()).toBe(`stored stored ${type} ${behind} ${behind} ${behind}`);
  });

  it.each([
    ['an error that says nothing', (broker: FakeProducer) => broker.error(0, 2)],
    ['a close by the broker', (broker: FakeProducer) => broker.events.onClosed(CLOSED_BY_BROKER)],
  ])('after %s are sealed where the segment is, else ambiguous', async (_, end) => {
    for (const [answer, type] of [
      [refusal(15), 'sealed'],
      [refusal(8), 'ambiguous'],
      [undefined, 'ambiguous'],
    ] as const) {
      const { broker, client, types } = await laneOf(stage(), 2);
      client.producerAnswers.push(answer);
      end(broker);
      broker.error(1, 15);
      await settled();
      expect(types()).toBe(`${type} ${type}`);
      const probe = client.producers[1];
      expect(probe?.closes).toBe(answer === undefined ? 1 : undefined);
      expect(probe?.options.name).toBeUndefined();
    }
  });

  it('over a connection that ends are ambiguous at once, and the name is somebody else’s', async () => {
    const { broker, types, producer } = await laneOf(stage(), 2);
    const barrier = producer.barrier();
    broker.events.onClosed(DISCONNECTED);
    expect(types()).toBe('ambiguous ambiguous');
    await expect(barrier).rejects.toThrow('reset');
    await producer.close();
    expect(broker.closes).toBe(0);
  });

  it('that the broker takes for old ones by their number are not taken for stored', async () => {
    const { broker, types } = await laneOf(stage(), 2);
    broker.events.onReceipt({ sequenceId: 0n, at: undefined });
    expect(types()).toBe('ambiguous ambiguous');
  });

  it('without an answer are ambiguous after a time, not while any come', async () => {
    const { broker, clock, types } = await laneOf(stage({ sendTimeoutMs: 1_000 }), 3);
    const pass = async () => {
      clock.advance(900);
      await settled();
    };
    await pass();
    broker.receipt(0);
    await pass();
    expect(types()).toBe('stored');
    for (let i = 0; i < 3; i++) {
      // Answers to others on the connection.
      broker.inFlightBytes++;
      await pass();
    }
    expect(types()).toBe('stored');
    await pass();
    await pass();
    expect(types()).toBe('stored ambiguous ambiguous');
  });

  it('get no result after the close, and a barrier that was closed over is not known', async () => {
    const { broker, types, producer } = await laneOf(stage(), 2);
    const barrier = producer.barrier();
    await producer.close();
    broker.receipt(0);
    producer.send(sendOf('7:3'));
    expect(types()).toBe('');
    await expect(barrier).rejects.toThrow('closed');
    await expect(producer.barrier()).rejects.toThrow('closed');
    expect(broker.closes).toBe(1);
  });
});

describe('reading back', () => {
  const bytes = encodeMessage(Buffer.from('x'), {
    outer: { producerName: 'p', sequenceId: 0n, publishTimeMs: 0 },
  }).head;
  const at = (entryId: number) => ({ ledgerId: 3n, entryId: BigInt(entryId) });

  function reading(made: Staged, through: ReturnType<typeof at> | 'end', after?: ReturnType<typeof at>) {
    const found: bigint[] = [];
    const stop = new AbortController();
    const done = (async () => {
      for await (const piece of made.remote.readBack(0, { after, through }, stop.signal)) {
        found.push(...piece.map(({ position }) => position.entryId));
      }
    })();
    done.catch(() => undefined);
    const reader = async () => {
      await until(() => made.client.consumers.length > 0);
      await settled();
      return made.client.consumers[0] as FakeConsumer;
    };
    return { found, stop, done, reader };
  }

  it('is done when all up to the barrier counts as acknowledged, which is not delivered', async () => {
    const made = stage();
    const { found, done, reader } = reading(made, at(7), at(3));
    const consumer = await reader();
    expect(consumer.options).toMatchObject({ durable: false, from: at(3) });
    expect(consumer.options.subscription).toMatch(/^isthmus\.read\.a\./);
    for (const entryId of [3, 4, 5]) consumer.events.onEntry({ ...at(entryId), bytes });
    await until(() => consumer.acks.length > 0);
    expect(consumer.acks).toEqual([at(5)]);
    consumer.standAt(3n, 7n);
    made.clock.advance(10_000);
    await done;
    expect(found).toEqual([4n, 5n]);
    expect(consumer.closes).toBe(1);
  });

  it('asks for nothing where nothing lies between, and for a topic whose segment has no end yet', async () => {
    const made = stage();
    await reading(made, at(3), at(3)).done;
    await expect(reading(made, 'end').done).rejects.toThrow('not sealed');
    expect(made.client.consumers).toHaveLength(0);
  });

  it('tells why it waits, and ends with its signal', async () => {
    const waits: number[] = [];
    const made = stage({ onWaiting: ({ segmentId, waitedMs }) => waits.push(segmentId, waitedMs) });
    const { done, reader, stop } = reading(made, at(7));
    const consumer = await reader();
    for (let i = 0; i < 14; i++) {
      await until(() => made.clock.awaited.length > 0);
      made.clock.advance(1_000);
      await settled();
    }
    await until(() => waits.length > 2);
    expect(waits.slice(0, 4)).toEqual([0, 5_000, 0, 10_000]);
    stop.abort();
    await expect(done).rejects.toThrow();
    expect(consumer.closes).toBe(1);
  });

  it('rejects with the broker’s words when it cannot begin or go on', async () => {
    const made = stage();
    made.client.subscribeAnswers.push(refusal(5, 'Topic reached max consumers limit'));
    await expect(reading(made, at(7)).done).rejects.toThrow('max consumers limit');
    const { done, reader } = reading(made, at(7));
    (await reader()).events.onClosed(CLOSED_BY_BROKER);
    await expect(done).rejects.toThrow('closed by the broker');
  });
});

describe('the pin', () => {
  const at = (entryId: number) => ({ ledgerId: 3n, entryId: BigInt(entryId) });

  it('stands at the start where nothing was acknowledged, and where it was moved to when a ledger has ended', async () => {
    const { remote, client } = stage();
    expect(await remote.pin.position(0)).toBeUndefined();
    const [consumer] = client.consumers as [FakeConsumer];
    consumer.standAt(3n, -1n);
    expect(await remote.pin.position(0)).toBeUndefined();
    await remote.pin.move(0, at(8));
    await remote.pin.move(0, at(7));
    expect(consumer.acks).toEqual([at(8)]);
    consumer.standAt(4n, -1n);
    expect(await remote.pin.position(0)).toEqual(at(8));
  });

  it('is another process’s: nothing is known and nothing moved, and it is tried again', async () => {
    const { remote, client, clock } = stage();
    client.subscribeAnswers.push(refusal(5, 'Exclusive consumer is already connected'));
    expect(await remote.pin.position(0)).toBeUndefined();
    client.subscribeAnswers.push(refusal(5, 'Exclusive consumer is already connected'));
    await remote.pin.move(0, at(8));
    clock.advance(30_000);
    await until(() => client.consumers.length === 1);
    await remote.pin.move(0, at(8));
    expect(client.consumers[0]?.acks).toEqual([at(8)]);
  });

  it('stays connected, until the segment is gone or the remote is closed', async () => {
    const { remote, client, clock } = stage();
    await remote.pin.position(0);
    client.consumers[0]?.events.onClosed(CLOSED_BY_BROKER);
    clock.advance(1_000);
    await until(() => client.consumers.length === 2);
    client.subscribeAnswers.push(refusal(11));
    client.consumers[1]?.events.onClosed(CLOSED_BY_BROKER);
    clock.advance(1_000);
    await settled();
    expect(clock.awaited).toEqual([]);
    await expect(remote.pin.position(1)).resolves.toBeUndefined();
    await remote.close();
    expect(client.consumers[2]?.closes).toBe(1);
    await expect(remote.pin.position(1)).rejects.toThrow('the remote is closed');
  });
});

it('impossible options are refused', () => {
  for (const wrong of [
    { topic: 'orders' },
    { pinSubscription: 'pulsar.repl.x' },
    { readSubscription: '' },
    { reserveBytes: -1 },
    { sendTimeoutMs: 0.5 },
  ]) {
    expect(() => stage(wrong)).toThrow(
      expect.objectContaining({ code: 'invalidArgument' } satisfies Partial<IsthmusError>),
    );
  }
});
