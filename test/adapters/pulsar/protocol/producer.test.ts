/** Producers: how they open, what of their sends is heard, and how they close. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../../../src/adapters/pulsar/protocol/commands.js';
import type {
  Closed,
  Producer,
  ProducerEvents,
  ProducerOptions,
  PulsarClient,
  SendError,
  SendReceipt,
} from '../../../../src/adapters/pulsar/protocol/index.js';
import type { EntryBuffers } from '../../../../src/entry/index.js';
import { until } from '../../../support/until.js';
import { clientOf, connected, nothing, type Peer, type ScriptedBroker, scriptedBroker } from './scripted-broker.js';

const TOPIC = 'segment://t/n/x/0000-ffff-0';

class Heard implements ProducerEvents {
  readonly receipts: SendReceipt[] = [];
  readonly errors: SendError[] = [];
  readonly closed: Closed[] = [];
  readonly ready: (bigint | undefined)[] = [];
  onReceipt = (receipt: SendReceipt) => this.receipts.push(receipt);
  onSendError = (error: SendError) => this.errors.push(error);
  onClosed = (closed: Closed) => this.closed.push(closed);
  onReady = (epoch: bigint | undefined) => this.ready.push(epoch);
}

async function open(client: PulsarClient, options: Partial<ProducerOptions> = {}) {
  const heard = new Heard();
  const result = await client.openProducer({ topic: TOPIC, ...options }, heard);
  return { result, heard };
}

async function opened(client: PulsarClient, options: Partial<ProducerOptions> = {}) {
  const { result, heard } = await open(client, options);
  if (result.type !== 'opened') throw new Error(`not opened: ${result.type}`);
  return { producer: result.producer, heard };
}

/** The connection that producers are on. */
function sender(broker: ScriptedBroker): Peer {
  const peer = broker.peers.find((each) => each.of('producer').length > 0);
  if (peer === undefined) throw new Error('no producer');
  return peer;
}

function entry(text: string, payloadBytes = 0): EntryBuffers {
  return { head: Buffer.from(text), payload: Buffer.alloc(payloadBytes, 9) };
}

describe('opening', () => {
  it('says what is asked for, and gives what is granted', async () => {
    const broker = await scriptedBroker({
      connect: () => connected(2_000_000),
      producer: ({ requestId, producerName }) => ({
        producerSuccess: { requestId, producerName: producerName || 'made-up', lastSequenceId: 41n, topicEpoch: 7n },
      }),
    });
    const client = clientOf(broker.url);
    const named = await opened(client, { name: 'isthmus.a.0', access: 'exclusive', topicEpoch: 7n });
    const plain = await opened(client);
    expect(broker.of('producer')).toMatchObject([
      {
        topic: TOPIC,
        producerName: 'isthmus.a.0',
        userProvidedProducerName: true,
        producerAccessMode: 1,
        topicEpoch: 7n,
      },
      { topic: TOPIC, userProvidedProducerName: false, producerAccessMode: 0 },
    ]);
    expect(Object.keys(broker.of('producer')[1] ?? {})).not.toContain('topicEpoch');
    const { name, lastSequenceId, ready, topicEpoch, maxMessageBytes } = named.producer;
    expect({ name, lastSequenceId, ready, topicEpoch, maxMessageBytes }).toEqual({
      name: 'isthmus.a.0',
      lastSequenceId: 41n,
      ready: true,
      topicEpoch: 7n,
      maxMessageBytes: 2_000_000,
    });
    expect(plain.producer.name).toBe('made-up');
  });

  it('has no epoch and no watermark where the broker tells none', async () => {
    const { producer } = await opened(clientOf((await scriptedBroker()).url));
    expect([producer.topicEpoch, producer.lastSequenceId]).toEqual([undefined, -1n]);
  });

  it('gives the code and the words of a refusal', async () => {
    const broker = await scriptedBroker({
      producer: ({ requestId }) => ({ error: { requestId, error: 16, message: 'already connected' } }),
    });
    const { result } = await open(clientOf(broker.url));
    expect(result).toEqual({ type: 'refused', code: 16, message: 'already connected' });
  });

  it('waits its turn, and hears it even right behind the first answer', async () => {
    for (const isLate of [false, true]) {
      const broker = await scriptedBroker({
        producer: ({ requestId }) => {
          const waits = { producerSuccess: { requestId, producerName: 'p', producerReady: false } };
          return isLate ? waits : [waits, granted(requestId)];
        },
      });
      const { producer, heard } = await opened(clientOf(broker.url), { access: 'waitForExclusive' });
      expect(broker.of('producer')).toMatchObject([{ producerAccessMode: 2 }]);
      expect(heard.ready).toEqual([]);
      if (isLate) {
        expect([producer.ready, producer.topicEpoch]).toEqual([false, undefined]);
        sender(broker).send(granted(broker.of('producer')[0]?.requestId ?? 0n));
      }
      await until(() => heard.ready.length === 1);
      expect([producer.ready, producer.topicEpoch, heard.ready]).toEqual([true, 3n, [3n]]);
    }
    function granted(requestId: bigint): Command {
      return { producerSuccess: { requestId, producerName: 'p', topicEpoch: 3n } };
    }
  });

  it('ends the waiting with the broker’s error', async () => {
    const broker = await scriptedBroker({
      producer: ({ requestId }) => [
        { producerSuccess: { requestId, producerName: 'p', producerReady: false } },
        { error: { requestId, error: 25, message: 'fenced' } },
      ],
    });
    const { heard } = await opened(clientOf(broker.url), { access: 'waitForExclusive' });
    await until(() => heard.closed.length === 1);
    expect(heard.closed).toEqual([{ type: 'refused', code: 25, message: 'fenced' }]);
  });

  it('tells nothing before the producer is in the caller’s hands', async () => {
    const broker = await scriptedBroker({
      producer: ({ requestId, producerId }) => [
        { producerSuccess: { requestId, producerName: 'p' } },
        { closeProducer: { producerId, requestId: 2n ** 64n - 1n, assignedBrokerServiceUrl: 'pulsar://other:6650' } },
      ],
    });
    const order: string[] = [];
    const events = { ...new Heard(), onClosed: (closed: Closed) => order.push(JSON.stringify(closed)) };
    const { type } = await clientOf(broker.url).openProducer({ topic: TOPIC }, events);
    order.push(type);
    await until(() => order.length === 2);
    expect(order).toEqual(['opened', '{"type":"closedByBroker","assignedUrl":"pulsar://other:6650"}']);
  });

  it.each([
    ['a scalable topic', { topic: 'topic://t/n/x' }, /^topic "topic:\/\/t\/n\/x": data is in segment:/],
    ['no topic', { topic: '' }, /^topic ""/],
    ['an epoch for all', { topicEpoch: 1n }, /^topicEpoch 1 with access shared: only exclusive has one$/],
  ] as const)('refuses %s', async (_, options, message) => {
    const opening = open(clientOf('pulsar://127.0.0.1:1'), options);
    await expect(opening).rejects.toMatchObject({ code: 'invalidArgument', message: expect.stringMatching(message) });
  });
});

describe('sending', () => {
  it('passes entries on as they are, all of one turn in one write', async () => {
    const broker = await scriptedBroker();
    const { producer, heard } = await opened(clientOf(broker.url));
    const other = await opened(clientOf(broker.url));
    for (let i = 0n; i < 50n; i++) producer.send(i, Number(i) + 1, entry(`entry ${i}`, Number(i)));
    other.producer.send(0n, 1, entry(''));
    await until(() => heard.receipts.length === 50 && other.heard.receipts.length === 1);
    const peer = sender(broker);
    expect(peer.pieces.filter((names) => names.includes('send'))).toEqual([Array(50).fill('send')]);
    expect(peer.of('send').map(({ sequenceId, numMessages }) => [sequenceId, numMessages])).toEqual(
      Array.from({ length: 50 }, (_, i) => [BigInt(i), i + 1]),
    );
    expect(peer.entries.map((bytes) => Buffer.from(bytes).toString('latin1'))).toEqual(
      Array.from({ length: 50 }, (_, i) => `entry ${i}${'\t'.repeat(i)}`),
    );
    expect(heard.receipts[7]).toEqual({ sequenceId: 7n, at: { ledgerId: 1n, entryId: 7n } });
  });

  it('reads no entry: neither a magic nor anything else is looked for', async () => {
    const broker = await scriptedBroker();
    const { producer, heard } = await opened(clientOf(broker.url));
    const foreign = { head: Buffer.from([0x0e, 0x09, 0xff]), payload: Buffer.alloc(200_000, 0xee) };
    producer.send(1n, 1, foreign);
    producer.send(2n, 1, { head: new Uint8Array(), payload: new Uint8Array() });
    await until(() => heard.receipts.length === 2);
    const [first, second] = sender(broker).entries;
    expect(Buffer.compare(first ?? Buffer.of(), Buffer.concat([foreign.head, foreign.payload]))).toBe(0);
    expect(second?.length).toBe(0);
  });

  it('tells duplicates and errors, each answer once', async () => {
    const none = { ledgerId: 2n ** 64n - 1n, entryId: 2n ** 64n - 1n };
    const broker = await scriptedBroker({
      send: ({ producerId, sequenceId }) =>
        sequenceId === 1n
          ? [
              { sendReceipt: { producerId, sequenceId, messageId: none } },
              { sendReceipt: { producerId, sequenceId, messageId: none } },
              { sendError: { producerId, sequenceId: 77n, error: 2, message: 'of nobody' } },
            ]
          : { sendError: { producerId, sequenceId, error: 9, message: 'checksum' } },
    });
    const { producer, heard } = await opened(clientOf(broker.url));
    producer.send(1n, 1, entry('a'));
    producer.send(2n ** 62n, 1, entry('b'));
    await until(() => heard.errors.length === 1);
    expect(heard.receipts).toEqual([{ sequenceId: 1n, at: undefined }]);
    expect(heard.errors).toEqual([{ sequenceId: 2n ** 62n, code: 9, message: 'checksum' }]);
    expect(producer.inFlightBytes).toBe(0);
  });

  it('says when too much is in flight, over all producers of a broker, and when there is room', async () => {
    const broker = await scriptedBroker({ send: nothing });
    const client = clientOf(broker.url, { maxInFlightBytes: 100 });
    const a = await opened(client);
    const b = await opened(client);
    expect(a.producer.send(0n, 1, entry('12345', 55))).toBe(true);
    expect(b.producer.send(0n, 1, entry('', 40))).toBe(false);
    expect([a.producer.inFlightBytes, b.producer.inFlightBytes]).toEqual([100, 100]);
    let rooms = 0;
    void a.producer.room().then(() => rooms++);
    void b.producer.room().then(() => rooms++);
    await until(() => sender(broker).of('send').length === 2);
    expect(rooms).toBe(0);
    const [send] = sender(broker).of('send');
    sender(broker).send({ sendReceipt: { producerId: send?.producerId ?? 0n, sequenceId: 0n } });
    await until(() => rooms === 2);
    expect(a.producer.inFlightBytes).toBe(40);
    await b.producer.close();
    expect(a.producer.inFlightBytes).toBe(0);
    await a.producer.room();
  });

  it('ends with its connection: what is in flight gets no answer, and nobody waits for room', async () => {
    const broker = await scriptedBroker({ send: nothing });
    const { producer, heard } = await opened(clientOf(broker.url, { maxInFlightBytes: 10 }));
    expect(producer.send(0n, 1, entry('0123456789'))).toBe(false);
    const room = producer.room();
    await until(() => sender(broker).of('send').length === 1);
    sender(broker).socket.destroy();
    await room;
    await until(() => heard.closed.length === 1);
    expect(heard.closed).toMatchObject([{ type: 'disconnected', cause: 'lost' }]);
    expect([producer.inFlightBytes, heard.receipts, heard.errors]).toEqual([0, [], []]);
    expect([producer.ready, producer.send(1n, 1, entry('late'))]).toEqual([false, true]);
    await producer.close();
  });

  it('ends when the broker closes it, and hears nothing of late answers', async () => {
    const broker = await scriptedBroker({
      send: ({ producerId, sequenceId }) => [
        { closeProducer: { producerId, requestId: 2n ** 64n - 1n } },
        { sendError: { producerId, sequenceId, error: 15, message: 'terminated' } },
      ],
    });
    const client = clientOf(broker.url);
    const { producer, heard } = await opened(client);
    producer.send(0n, 1, entry('x'));
    await until(() => heard.closed.length === 1);
    expect(heard.closed).toEqual([{ type: 'closedByBroker' }]);
    await opened(client);
    expect(heard.errors).toEqual([]);
  });

  it.each([
    [-1n, 1, 1, 'invalidArgument', /^sequenceId is "-1n": 0\.\.2\^63-1$/],
    [2n ** 63n, 1, 1, 'invalidArgument', /^sequenceId/],
    [5n, 1, 1, 'invalidArgument', 'sequenceId is 5 after 5: it ascends'],
    [6n, 0, 1, 'invalidArgument', /^messages is 0/],
    [6n, 1, 1001, 'tooLarge', 'an entry of 1001 bytes, where the broker takes 1000'],
  ] as const)('refuses sequence %s, %s messages, %s bytes', async (sequenceId, messages, bytes, code, message) => {
    const { producer } = await opened(clientOf((await scriptedBroker({ connect: () => connected(1000) })).url));
    producer.send(5n, 1, entry('x', 999));
    expect(() => producer.send(sequenceId, messages, entry('', bytes))).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });
});

describe('closing', () => {
  const closeAll = (producers: readonly Producer[]) => Promise.all(producers.map((producer) => producer.close()));

  it('gives the name back, hears nothing any more, and does it once', async () => {
    const broker = await scriptedBroker({ send: nothing });
    const { producer, heard } = await opened(clientOf(broker.url));
    producer.send(0n, 1, entry('x'));
    await closeAll([producer, producer]);
    expect(broker.of('closeProducer')).toMatchObject([{ producerId: broker.of('producer')[0]?.producerId }]);
    sender(broker).send({ sendReceipt: { producerId: broker.of('producer')[0]?.producerId ?? 0n, sequenceId: 0n } });
    sender(broker).socket.end();
    await until(() => sender(broker).hasEnded);
    expect([heard.receipts, heard.closed]).toEqual([[], []]);
  });
});
