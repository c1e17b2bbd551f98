/**
 * A broker in memory behind the interface of the client: topics that are logs, exclusive cursors, readers, seals,
 * compaction, and connections that can be cut. It answers in later turns of the event loop, as a network does.
 */
import { parseEntry } from 'isthmus';
import {
  type Closed,
  type Consumer,
  type ConsumerEvents,
  type EntryPosition,
  type OpenProducerResult,
  type ProducerEvents,
  type ProducerOptions,
  type PulsarClient,
  type Refusal,
  SERVER_ERROR,
  type SubscribeOptions,
  type SubscribeResult,
} from '../../../src/adapters/pulsar/protocol/index.js';
import { joinBuffers } from '../../../src/entry/index.js';

interface Stored {
  readonly bytes: Uint8Array;
  readonly key: string | undefined;
  readonly isMarker: boolean;
  readonly messages: number;
}

class Log {
  static made = 0n;
  readonly ledgerId = ++Log.made;
  /** Undefined: compaction has removed it. */
  readonly entries: (Stored | undefined)[] = [];
  /** How many of each durable subscription are acknowledged. */
  readonly cursors = new Map<string, number>();
  readonly consumers = new Set<MemoryConsumer>();
  readonly producers = new Map<string, { close(closed: Closed): void }>();
  isSealed = false;

  wake(): void {
    for (const consumer of this.consumers) consumer.deliver();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const refused = (code: number, message: string): Refusal => ({ type: 'refused', code, message });
const LOST: Closed = { type: 'disconnected', cause: 'lost', reason: 'cut' };

export class MemoryBroker {
  private readonly logs = new Map<string, Log>();
  private readonly open = new Map<PulsarClient, Set<(closed: Closed) => void>>();
  /** Refusals of the next subscriptions. */
  readonly refusals: Refusal[] = [];
  /** Sends that are stored and never answered, nor shown to readers, until the connection is cut. */
  isDeaf = false;

  create(topic: string): void {
    if (!this.logs.has(topic)) this.logs.set(topic, new Log());
  }

  seal(topic: string): void {
    this.log(topic).isSealed = true;
    this.log(topic).wake();
  }

  /** Keeps the last record of each key, and of those none that deletes. */
  compact(topic: string): void {
    const { entries } = this.log(topic);
    const last = new Map(entries.map((entry, i) => [entry?.key, i]));
    for (const [i, entry] of entries.entries()) {
      const isKept = entry !== undefined && last.get(entry.key) === i && parseEntry(entry.bytes).payloadLength > 0;
      if (!isKept) entries[i] = undefined;
    }
  }

  keys(topic: string): (string | undefined)[] {
    return this.log(topic).entries.flatMap((entry) => (entry === undefined ? [] : [entry.key]));
  }

  append(topic: string, bytes: Uint8Array): EntryPosition {
    const log = this.log(topic);
    const { partitionKey, markerType, numMessagesInBatch } = parseEntry(bytes).metadata;
    const isMarker = markerType !== undefined;
    log.entries.push({ bytes, key: partitionKey, isMarker, messages: numMessagesInBatch ?? 1 });
    if (!this.isDeaf) log.wake();
    return { ledgerId: log.ledgerId, entryId: BigInt(log.entries.length - 1) };
  }

  subscribe(topic: string, subscription: string): 'created' | 'existed' {
    const { cursors } = this.log(topic);
    if (cursors.has(subscription)) return 'existed';
    cursors.set(subscription, 0);
    return 'created';
  }

  skipAll(topic: string, subscription: string): void {
    this.log(topic).cursors.set(subscription, this.log(topic).entries.length);
  }

  unsubscribe(topic: string, subscription: string): void {
    this.log(topic).cursors.delete(subscription);
  }

  backlog(topic: string, subscription: string): number {
    return this.log(topic).entries.length - (this.log(topic).cursors.get(subscription) ?? 0);
  }

  /** Ends the connections of a client; new ones are accepted. */
  cut(client: PulsarClient): void {
    for (const close of [...(this.open.get(client) ?? [])]) close(LOST);
  }

  client(): PulsarClient {
    const open = new Set<(closed: Closed) => void>();
    const none = async (): Promise<Refusal> => refused(SERVER_ERROR.notAllowed, 'not here');
    const client: PulsarClient = {
      openProducer: (options, events) => this.openProducer(options, events, open),
      subscribe: (options, events) => this.openConsumer(options, events, open),
      openLayoutSession: none,
      watchTopics: none,
      getSchema: none,
      getOrCreateSchema: none,
      close: async () => this.cut(client),
    };
    this.open.set(client, open);
    return client;
  }

  private log(topic: string): Log {
    const log = this.logs.get(topic);
    if (log === undefined) throw new Error(`no topic ${topic}`);
    return log;
  }

  private async openProducer(
    { topic, name = 'made-up' }: ProducerOptions,
    events: ProducerEvents,
    open: Set<(closed: Closed) => void>,
  ): Promise<OpenProducerResult> {
    await turn();
    const log = this.logs.get(topic);
    if (log === undefined) return refused(SERVER_ERROR.topicNotFound, 'no such topic');
    if (log.producers.has(name)) return refused(SERVER_ERROR.producerBusy, 'the name is taken');
    let isOpen = true;
    const end = () => {
      isOpen = false;
      open.delete(close);
      log.producers.delete(name);
    };
    const close = (closed: Closed) => {
      end();
      events.onClosed(closed);
    };
    open.add(close);
    log.producers.set(name, { close });
    return {
      type: 'opened',
      producer: {
        ...{ name, lastSequenceId: -1n, ready: true, topicEpoch: undefined, maxMessageBytes: 5_000_000 },
        ...{ lastHeardMs: 0, inFlightBytes: 0, room: async () => undefined },
        send: (sequenceId, _, entry) => {
          if (isOpen) void this.store(topic, joinBuffers(entry), sequenceId, () => isOpen, events);
          return true;
        },
        close: async () => end(),
      },
    };
  }

  private async store(
    topic: string,
    bytes: Uint8Array,
    sequenceId: bigint,
    isOpen: () => boolean,
    events: ProducerEvents,
  ): Promise<void> {
    await turn();
    const at = this.append(topic, bytes);
    if (isOpen() && !this.isDeaf) events.onReceipt({ sequenceId, at });
  }

  private async openConsumer(
    options: SubscribeOptions,
    events: ConsumerEvents,
    open: Set<(closed: Closed) => void>,
  ): Promise<SubscribeResult> {
    await turn();
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return refusal;
    const log = this.logs.get(options.topic);
    if (log === undefined) return refused(SERVER_ERROR.topicNotFound, 'no such topic');
    const isTaken = [...log.consumers].some(({ subscription }) => subscription === options.subscription);
    if (isTaken) return refused(SERVER_ERROR.consumerBusy, 'exclusive consumer is already connected');
    return { type: 'subscribed', consumer: new MemoryConsumer(log, options, events, open) };
  }
}

class MemoryConsumer implements Consumer {
  readonly lastHeardMs = 0;
  readonly subscription: string;
  private readonly isDurable: boolean;
  private next: number;
  private acknowledged: number;
  private permits = 0;
  private isOpen = true;

  constructor(
    private readonly log: Log,
    options: SubscribeOptions,
    private readonly events: ConsumerEvents,
    private readonly open: Set<(closed: Closed) => void>,
  ) {
    this.subscription = options.subscription;
    this.isDurable = options.durable;
    if (options.durable) this.next = log.cursors.get(options.subscription) ?? 0;
    else {
      const { ledgerId, entryId } = options.from;
      const isBehind = ledgerId > log.ledgerId || Number(entryId) >= log.entries.length;
      this.next = ledgerId < log.ledgerId ? 0 : isBehind ? log.entries.length : Number(entryId);
    }
    this.acknowledged = this.next;
    this.store();
    log.consumers.add(this);
    open.add(this.end);
  }

  flow(permits: number): void {
    this.permits += permits;
    this.deliver();
  }

  /** Gives what permits allow, in a later turn each; markers acknowledge themselves. */
  deliver(): void {
    if (!this.isOpen) return;
    while (this.next < this.log.entries.length) {
      const entry = this.log.entries[this.next];
      const isVisible = entry !== undefined && !entry.isMarker;
      if (isVisible && this.permits <= 0) return;
      const entryId = BigInt(this.next++);
      if (isVisible) {
        this.permits -= entry.messages;
        const { bytes } = entry;
        setImmediate(() => this.isOpen && this.events.onEntry({ ledgerId: this.log.ledgerId, entryId, bytes }));
      } else if (this.acknowledged === this.next - 1) this.acknowledge(this.next);
    }
    this.tellEnd();
  }

  ack(_: unknown, [position]: readonly EntryPosition[]): void {
    if (!this.isOpen || position === undefined) return;
    this.acknowledge(Number(position.entryId) + 1);
    this.tellEnd();
  }

  async ackAnswered(type: unknown, positions: readonly EntryPosition[]): Promise<{ type: 'answered' } | Refusal> {
    await turn();
    if (!this.isOpen) return { type: 'unreachable', reason: 'closed' };
    this.ack(type, positions);
    return { type: 'answered' };
  }

  async lastMessageId() {
    await turn();
    if (!this.isOpen) return { type: 'unreachable', reason: 'closed' } as const;
    const { ledgerId, entries } = this.log;
    const last = entries.length === 0 ? undefined : { ledgerId, entryId: BigInt(entries.length - 1) };
    return { type: 'answered', last, markDelete: { ledgerId, entryId: BigInt(this.acknowledged - 1) } } as const;
  }

  async close(): Promise<void> {
    this.leave();
    await turn();
  }

  private readonly end = (closed: Closed) => {
    if (!this.isOpen) return;
    this.leave();
    this.events.onClosed(closed);
  };

  private leave(): void {
    this.isOpen = false;
    this.log.consumers.delete(this);
    this.open.delete(this.end);
  }

  private acknowledge(count: number): void {
    this.acknowledged = Math.max(this.acknowledged, count);
    this.next = Math.max(this.next, this.acknowledged);
    while (this.next > this.acknowledged && this.log.entries[this.acknowledged]?.isMarker) this.acknowledged++;
    this.store();
  }

  private store(): void {
    if (this.isDurable) this.log.cursors.set(this.subscription, this.acknowledged);
  }

  private tellEnd(): void {
    if (!this.log.isSealed || this.acknowledged < this.log.entries.length) return;
    setImmediate(() => this.isOpen && this.events.onEndOfTopic?.());
  }
}
