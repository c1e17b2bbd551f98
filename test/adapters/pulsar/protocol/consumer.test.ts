/** Consumers and readers. */
import { describe, expect, it } from 'vitest';
import type {
  Closed,
  Consumer,
  ConsumerEvents,
  PulsarClient,
  ReceivedEntry,
  SubscribeOptions,
} from '../../../../src/adapters/pulsar/protocol/index.js';
import { until } from '../../../support/until.js';
import { clientOf, type ScriptedBroker, scriptedBroker } from './scripted-broker.js';

const TOPIC = 'segment://t/n/x/0000-ffff-0';
const NONE = 2n ** 64n - 1n;
const durable: SubscribeOptions = { topic: TOPIC, subscription: 's', durable: true };

class Heard implements ConsumerEvents {
  readonly entries: ReceivedEntry[] = [];
  readonly closed: Closed[] = [];
  ends = 0;
  onEntry = (entry: ReceivedEntry) => this.entries.push(entry);
  onClosed = (closed: Closed) => this.closed.push(closed);
  onEndOfTopic = () => this.ends++;
}

async function subscribed(client: PulsarClient, options: SubscribeOptions = durable) {
  const heard = new Heard();
  const result = await client.subscribe(options, heard);
  if (result.type !== 'subscribed') throw new Error(`not subscribed: ${result.type}`);
  return { consumer: result.consumer, heard };
}

const idOf = (broker: ScriptedBroker) => broker.of('subscribe')[0]?.consumerId ?? 0n;

describe('subscribing', () => {
  it('asks for an exclusive consumer from the earliest entry, and creates no topic', async () => {
    const broker = await scriptedBroker();
    await subscribed(clientOf(broker.url), { ...durable, consumerName: 'c' });
    expect(broker.of('subscribe')).toMatchObject([
      {
        topic: TOPIC,
        subscription: 's',
        subType: 0,
        durable: true,
        initialPosition: 1,
        forceTopicCreation: false,
        consumerName: 'c',
      },
    ]);
    expect(Object.keys(broker.of('subscribe')[0] ?? {})).not.toContain('startMessageId');
  });

  it('asks for a reader from a position, of the compacted ledger where that is wanted', async () => {
    const broker = await scriptedBroker();
    const client = clientOf(broker.url);
    const from = { ledgerId: 2n ** 62n, entryId: 3n };
    await subscribed(client, { ...durable, durable: false, from });
    await subscribed(client, { ...durable, durable: false, from: { ledgerId: 0n, entryId: 0n }, readCompacted: true });
    expect(broker.of('subscribe')).toMatchObject([
      { durable: false, startMessageId: from, readCompacted: false },
      { durable: false, startMessageId: { ledgerId: 0n, entryId: 0n }, readCompacted: true },
    ]);
  });

  it('gives the code and the words of a refusal', async () => {
    const error = { error: 5, message: 'Exclusive consumer is already connected' };
    const broker = await scriptedBroker({ subscribe: ({ requestId }) => ({ error: { requestId, ...error } }) });
    const result = await clientOf(broker.url).subscribe(durable, new Heard());
    expect(result).toEqual({ type: 'refused', code: 5, message: 'Exclusive consumer is already connected' });
  });

  it.each([
    ['a scalable topic', { ...durable, topic: 'topic://t/n/x' }, /^topic "topic:/],
    ['no name', { ...durable, subscription: '' }, /^subscription is ""/],
    ['no position', { ...durable, durable: false, from: { ledgerId: -1n, entryId: 0n } }, /^ledgerId is "-1n"/],
  ] as const)('refuses %s', async (_, options, message) => {
    const subscribing = clientOf('pulsar://127.0.0.1:1').subscribe(options, new Heard());
    await expect(subscribing).rejects.toMatchObject({
      code: 'invalidArgument',
      message: expect.stringMatching(message),
    });
  });
});

describe('a consumer', () => {
  it('hands out entries byte by byte, and the end of the topic', async () => {
    const broker = await scriptedBroker();
    const { consumer, heard } = await subscribed(clientOf(broker.url));
    consumer.flow(2 ** 32 - 1);
    await until(() => broker.of('flow').length === 1);
    expect(broker.of('flow')).toMatchObject([{ consumerId: idOf(broker), messagePermits: 2 ** 32 - 1 }]);
    const [peer] = broker.peers;
    const message = (entryId: bigint) => ({
      message: { consumerId: idOf(broker), messageId: { ledgerId: 4n, entryId } },
    });
    peer?.sendEntry(message(0n), Buffer.from('no magic at all'));
    peer?.sendEntry(message(1n), new Uint8Array());
    peer?.send({ reachedEndOfTopic: { consumerId: idOf(broker) } });
    await until(() => heard.ends === 1);
    expect(heard.entries.map(({ bytes, ...at }) => ({ ...at, text: Buffer.from(bytes).toString() }))).toEqual([
      { ledgerId: 4n, entryId: 0n, text: 'no magic at all' },
      { ledgerId: 4n, entryId: 1n, text: '' },
    ]);
  });

  it('acknowledges alone or together, with and without an answer', async () => {
    const broker = await scriptedBroker({
      ack: ({ requestId, consumerId, ackType }) => {
        if (requestId === 0n) return undefined;
        return { ackResponse: { requestId, consumerId, ...(ackType === 0 ? { error: 0, message: 'no' } : {}) } };
      },
    });
    const { consumer } = await subscribed(clientOf(broker.url));
    const at = (entryId: bigint) => ({ ledgerId: 4n, entryId });
    consumer.ack('individual', [at(1n), at(3n)]);
    expect(await consumer.ackAnswered('cumulative', [at(7n)])).toEqual({ type: 'answered' });
    expect(await consumer.ackAnswered('individual', [at(9n)])).toEqual({ type: 'refused', code: 0, message: 'no' });
    expect(broker.of('ack')).toMatchObject([
      { ackType: 0, messageId: [at(1n), at(3n)] },
      { ackType: 1, messageId: [at(7n)] },
      { ackType: 0, messageId: [at(9n)] },
    ]);
    expect(Object.keys(broker.of('ack')[0] ?? {})).not.toContain('requestId');
  });

  it('tells the last entry and what is acknowledged, with what is before the first', async () => {
    const answers = [
      { lastMessageId: { ledgerId: 4n, entryId: 9n }, consumerMarkDeletePosition: { ledgerId: 4n, entryId: NONE } },
      { lastMessageId: { ledgerId: NONE, entryId: NONE } },
    ];
    const broker = await scriptedBroker({
      getLastMessageId: ({ requestId }) => {
        const answer = answers.shift();
        return answer && { lastMessageId: { requestId, ...answer } };
      },
    });
    const { consumer } = await subscribed(clientOf(broker.url));
    expect(await consumer.lastMessageId()).toEqual({
      type: 'answered',
      last: { ledgerId: 4n, entryId: 9n },
      markDelete: { ledgerId: 4n, entryId: -1n },
    });
    expect(await consumer.lastMessageId()).toEqual({ type: 'answered', last: undefined, markDelete: undefined });
  });

  it('ends when the broker closes it', async () => {
    const broker = await scriptedBroker();
    const { consumer, heard } = await subscribed(clientOf(broker.url));
    const requestId = NONE;
    const assignedBrokerServiceUrl = 'pulsar://other:6650';
    broker.peers[0]?.send({ closeConsumer: { consumerId: idOf(broker), requestId, assignedBrokerServiceUrl } });
    await until(() => heard.closed.length === 1);
    expect(heard.closed).toEqual([{ type: 'closedByBroker', assignedUrl: 'pulsar://other:6650' }]);
    const closed = { type: 'unreachable', reason: 'the consumer is closed' };
    const at = [{ ledgerId: 1n, entryId: 1n }];
    expect([await consumer.lastMessageId(), await consumer.ackAnswered('cumulative', at)]).toEqual([closed, closed]);
    consumer.flow(1);
    consumer.ack('cumulative', at);
    await consumer.close();
    expect([broker.of('flow'), broker.of('ack'), broker.of('closeConsumer')]).toEqual([[], [], []]);
  });

  it('closes once, and hears nothing any more', async () => {
    const broker = await scriptedBroker();
    const { consumer, heard } = await subscribed(clientOf(broker.url));
    const closing = consumer.close();
    const message = { message: { consumerId: idOf(broker), messageId: { ledgerId: 4n, entryId: 0n } } };
    broker.peers[0]?.sendEntry(message, Buffer.from('late'));
    await Promise.all([closing, consumer.close()]);
    expect(broker.of('closeConsumer')).toHaveLength(1);
    broker.peers[0]?.socket.end();
    await until(() => broker.peers[0]?.hasEnded === true);
    expect([heard.entries, heard.closed]).toEqual([[], []]);
  });

  const bad: [string, (consumer: Consumer) => void][] = [
    ['permits is 0: a whole number', (consumer) => consumer.flow(0)],
    ['0 positions in one individual acknowledgement', (consumer) => consumer.ack('individual', [])],
    [
      '2 positions in one cumulative acknowledgement: one',
      (consumer) => consumer.ack('cumulative', Array(2).fill({ ledgerId: 1n, entryId: 1n })),
    ],
    ['entryId is "-1n"', (consumer) => consumer.ack('cumulative', [{ ledgerId: 1n, entryId: -1n }])],
  ];
  it.each(bad)('refuses: %s', async (message, call) => {
    const { consumer } = await subscribed(clientOf((await scriptedBroker()).url));
    expect(() => call(consumer)).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining(message) }),
    );
  });
});
