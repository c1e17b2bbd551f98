/** A `PulsarClient` whose broker is the test: it grants what it is not told to refuse, notes what it gets, and answers when told. */

import type {
  AckType,
  Closed,
  Consumer,
  ConsumerEvents,
  EntryPosition,
  LastMessageIdResult,
  Producer,
  ProducerEvents,
  ProducerOptions,
  PulsarClient,
  Refusal,
  SubscribeOptions,
} from '../../../src/adapters/pulsar/protocol/index.js';
import type { EntryBuffers } from '../../../src/entry/index.js';

export const refusal = (code: number, message = 'said the broker'): Refusal => ({ type: 'refused', code, message });

export class FakeProducer implements Producer {
  readonly ready = true;
  readonly topicEpoch = undefined;
  readonly lastHeardMs = 0;
  readonly sent: { readonly sequenceId: bigint; readonly messages: number }[] = [];
  inFlightBytes = 0;
  /** False: every send asks to wait. */
  hasRoom = true;
  private wakeRoom: () => void = () => undefined;
  closes = 0;
  /** Set: a close waits for it. */
  closing: Promise<void> = Promise.resolve();

  constructor(
    readonly options: ProducerOptions,
    readonly events: ProducerEvents,
    readonly lastSequenceId: bigint,
    readonly maxMessageBytes: number,
  ) {}

  get name(): string {
    return this.options.name ?? 'made-up';
  }

  send(sequenceId: bigint, messages: number, entry: EntryBuffers): boolean {
    if (entry.head.length + entry.payload.length > this.maxMessageBytes) throw new Error('too large for the client');
    this.sent.push({ sequenceId, messages });
    return this.hasRoom;
  }

  room(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeRoom = resolve;
    });
  }

  makeRoom(): void {
    this.hasRoom = true;
    this.wakeRoom();
  }

  close(): Promise<void> {
    this.closes++;
    return this.closing;
  }

  /** Answers a send, by its place. */
  receipt(place: number, at: EntryPosition | undefined = { ledgerId: 9n, entryId: BigInt(place) }): void {
    this.events.onReceipt({ sequenceId: this.sequenceId(place), at });
  }

  error(place: number, code: number): void {
    this.events.onSendError({ sequenceId: this.sequenceId(place), code, message: 'said the broker' });
  }

  private sequenceId(place: number): bigint {
    const sent = this.sent[place];
    if (sent === undefined) throw new Error(`send ${place} did not go out`);
    return sent.sequenceId;
  }
}

export class FakeConsumer implements Consumer {
  readonly lastHeardMs = 0;
  readonly acks: EntryPosition[] = [];
  permits = 0;
  closes = 0;
  answer: LastMessageIdResult = { type: 'answered', last: undefined, markDelete: undefined };

  constructor(
    readonly options: SubscribeOptions,
    readonly events: ConsumerEvents,
  ) {}

  flow(permits: number): void {
    this.permits += permits;
  }

  ack(_type: AckType, positions: readonly EntryPosition[]): void {
    this.acks.push(...positions);
  }

  async ackAnswered(type: AckType, positions: readonly EntryPosition[]): Promise<{ readonly type: 'answered' }> {
    this.ack(type, positions);
    return { type: 'answered' };
  }

  async lastMessageId(): Promise<LastMessageIdResult> {
    return this.answer;
  }

  async close(): Promise<void> {
    this.closes++;
  }

  standAt(ledgerId: bigint, entryId: bigint): void {
    this.answer = { type: 'answered', last: undefined, markDelete: { ledgerId, entryId } };
  }
}

export class FakeClient implements PulsarClient {
  readonly producers: FakeProducer[] = [];
  readonly consumers: FakeConsumer[] = [];
  /** What the next openings of producers are answered instead, in order; undefined grants one. */
  readonly producerAnswers: (Refusal | undefined)[] = [];
  readonly subscribeAnswers: (Refusal | undefined)[] = [];
  /** Of the producers that are granted. */
  lastSequenceId = -1n;
  maxMessageBytes = 5 * 1024 * 1024;

  async openProducer(options: ProducerOptions, events: ProducerEvents) {
    const refused = this.producerAnswers.shift();
    if (refused !== undefined) return refused;
    const producer = new FakeProducer(options, events, this.lastSequenceId, this.maxMessageBytes);
    this.producers.push(producer);
    return { type: 'opened', producer } as const;
  }

  async subscribe(options: SubscribeOptions, events: ConsumerEvents) {
    const refused = this.subscribeAnswers.shift();
    if (refused !== undefined) return refused;
    const consumer = new FakeConsumer(options, events);
    this.consumers.push(consumer);
    return { type: 'subscribed', consumer } as const;
  }

  openLayoutSession = unused;
  watchTopics = unused;
  getSchema = unused;
  getOrCreateSchema = unused;
  close = unused;
}

export const CLOSED_BY_BROKER: Closed = { type: 'closedByBroker' };
export const DISCONNECTED: Closed = { type: 'disconnected', cause: 'lost', reason: 'reset' };

async function unused(): Promise<never> {
  throw new Error('the remote has no use for this');
}
