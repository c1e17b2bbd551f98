/**
 * A compacted topic as a log with one order for everybody: what is appended counts from the moment at which this
 * process reads it back, behind all that others have appended before. Whoever follows the log folds it from the start;
 * when a connection ends, what is under way fails (it may be stored or not), and the next use folds it anew.
 */
import { encodeMessage, parseEntry } from '../../../entry/index.js';
import { messageOf, show } from '../../../errors.js';
import type { Clock } from '../../../ports/index.js';
import {
  type Closed,
  type Consumer,
  type OpenProducerResult,
  type Producer,
  type PulsarClient,
  type ReceivedEntry,
  type Refusal,
  SERVER_ERROR,
  type SendError,
} from '../protocol/index.js';

/** What folds the log. A throw ends the session: the topic holds what must not be guessed at. */
export interface LogFollower<Verdict> {
  /** Everything that was folded is void: the log begins again. */
  reset(): void;
  /** The next record; no value: the key is deleted. The answer goes to whoever has appended it. */
  fold(key: string, value: unknown): Verdict;
}

export interface StateLogOptions {
  readonly client: PulsarClient;
  /** `persistent://tenant/namespace/name`, with compaction switched on. */
  readonly topic: string;
  /** The name of this process: no two that run have the same. */
  readonly process: string;
  readonly clock: Clock;
  /** How long one record may take to be read back, in milliseconds. */
  readonly timeoutMs: number;
}

/** Entries that the reader may be sent ahead of what was folded; folding is at once, so this only bounds one burst. */
const PERMITS = 1_000;
/** How long it is tried again while the own name is taken, and how often, in milliseconds. */
const BUSY_MS = 3_000;
const BUSY_RETRY_MS = 100;
const START = { ledgerId: 0n, entryId: 0n };

export class StateLog<Verdict> {
  /** Ascends over all sessions: it tells which of the own records is read back. */
  private sequenceId = 0n;
  private current: LogSession<Verdict> | undefined;
  private opening: Promise<LogSession<Verdict>> | undefined;
  private isClosed = false;
  private lastSync: Promise<void> = Promise.resolve();
  private nextSync: Promise<void> | undefined;

  constructor(
    private readonly options: StateLogOptions,
    private readonly follower: LogFollower<Verdict>,
    /** A record whose reading back shows that the log was read to its end; the key is this process's own. */
    private readonly mark: () => { readonly key: string; readonly value: object },
  ) {}

  /** True while what was folded is as new as the connections allow. */
  get isFollowing(): boolean {
    return this.current?.isOpen === true;
  }

  /** Resolves once everything that was appended before is folded. Rejects when that is not known. */
  sync(): Promise<void> {
    // Whoever asks while a mark is under way shares the next one: the present one may lie before what they ask for.
    this.nextSync ??= this.lastSync.then(() => {
      this.nextSync = undefined;
      const synced = this.appendMark();
      this.lastSync = synced.catch(() => undefined);
      return synced;
    });
    return this.nextSync;
  }

  private async appendMark(): Promise<void> {
    const { key, value } = this.mark();
    await this.append(key, value);
  }

  /** Appends a record, without a value a deletion; resolves with what the fold says of it. Rejects when that is not known. */
  async append(key: string, value: object | undefined): Promise<Verdict> {
    const session = await this.session();
    return session.append(key, value, ++this.sequenceId);
  }

  /** Ends the connections; what is under way rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.opening?.catch(() => undefined);
    await this.current?.end('the state log was closed');
  }

  private session(): Promise<LogSession<Verdict>> {
    if (this.isClosed) return Promise.reject(new Error('the state log was closed'));
    if (this.current?.isOpen) return Promise.resolve(this.current);
    this.opening ??= this.open().finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  private async open(): Promise<LogSession<Verdict>> {
    this.follower.reset();
    const session = new LogSession(this.options, this.follower);
    try {
      await session.start();
      const { key, value } = this.mark();
      await session.append(key, value, ++this.sequenceId);
    } catch (error) {
      await session.end(messageOf(error));
      throw error;
    }
    this.current = session;
    return session;
  }
}

interface Pending<Verdict> {
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: Error) => void;
  readonly atMs: number;
}

/** One producer, one reader, and the fold from the start of the log. */
class LogSession<Verdict> {
  private readonly pending = new Map<bigint, Pending<Verdict>>();
  private readonly ending = new AbortController();
  private producer: Producer | undefined;
  private reader: Consumer | undefined;

  constructor(
    private readonly options: StateLogOptions,
    private readonly follower: LogFollower<Verdict>,
  ) {}

  get isOpen(): boolean {
    return !this.ending.signal.aborted;
  }

  /** The name of the producer is a lock: what an older connection of this process has sent lies before what this one sends. */
  private get producerName(): string {
    return `isthmus.state.${this.options.process}`;
  }

  async start(): Promise<void> {
    const { client, topic } = this.options;
    const onClosed = (closed: Closed) => void this.end(`the state topic: ${reasonOf(closed)}`);
    const opened = await this.openProducer(onClosed);
    if (opened.type !== 'opened') throw new Error(`the state topic: ${reasonOf(opened)}`);
    this.producer = opened.producer;
    if (!this.isOpen) return this.closeBoth();
    const subscribed = await client.subscribe(
      { topic, subscription: this.producerName, durable: false, from: START, readCompacted: true },
      { onEntry: (entry) => this.receive(entry), onClosed },
    );
    if (subscribed.type !== 'subscribed') throw new Error(`the state topic: ${reasonOf(subscribed)}`);
    this.reader = subscribed.consumer;
    if (!this.isOpen) return this.closeBoth();
    this.reader.flow(PERMITS);
    void this.watch();
  }

  /** After a cut the broker holds the name for a moment, until it has seen that as well. */
  private async openProducer(onClosed: (closed: Closed) => void): Promise<OpenProducerResult> {
    const { client, topic, clock } = this.options;
    const onSendError = ({ message }: SendError) => void this.end(`the state topic: ${message}`);
    const events = { onReceipt: () => undefined, onSendError, onClosed };
    for (let waitedMs = 0; ; waitedMs += BUSY_RETRY_MS) {
      const options = { topic, name: this.producerName, connection: 'control' } as const;
      const opened = await client.openProducer(options, events);
      const isBusy = opened.type === 'refused' && opened.code === SERVER_ERROR.producerBusy;
      if (!isBusy || waitedMs >= BUSY_MS) return opened;
      await clock.sleep(BUSY_RETRY_MS, this.ending.signal);
    }
  }

  append(key: string, value: object | undefined, sequenceId: bigint): Promise<Verdict> {
    const { producer } = this;
    if (producer === undefined || !this.isOpen) return Promise.reject(new Error('the state topic is not open'));
    const { now } = this.options.clock;
    const payload = value === undefined ? new Uint8Array(0) : new TextEncoder().encode(JSON.stringify(value));
    const outer = { producerName: this.producerName, sequenceId, publishTimeMs: now(), partitionKey: key };
    return new Promise((resolve, reject) => {
      producer.send(sequenceId, 1, encodeMessage(payload, { outer, stamp: false }));
      this.pending.set(sequenceId, { resolve, reject, atMs: now() });
    });
  }

  private receive({ bytes }: ReceivedEntry): void {
    if (!this.isOpen) return;
    this.reader?.flow(1);
    try {
      const { metadata, payload } = parseEntry(bytes);
      const { partitionKey, producerName, sequenceId } = metadata;
      if (partitionKey === undefined) return;
      const verdict = this.follower.fold(partitionKey, jsonOf(payload));
      if (producerName !== this.producerName) return;
      this.pending.get(sequenceId)?.resolve(verdict);
      this.pending.delete(sequenceId);
    } catch (error) {
      void this.end(`the state topic cannot be read: ${messageOf(error)}`);
    }
  }

  /** Ends the session when a record is not read back in time: a connection may hang without a sign. */
  private async watch(): Promise<void> {
    const { clock, timeoutMs } = this.options;
    const { signal } = this.ending;
    while (this.isOpen) {
      await clock.sleep(timeoutMs / 4, signal).catch(() => undefined);
      const [oldest] = this.pending.values();
      if (oldest === undefined || clock.now() - oldest.atMs < timeoutMs) continue;
      void this.end(`the state topic: nothing was read back for ${timeoutMs} ms`);
    }
  }

  async end(reason: string): Promise<void> {
    if (!this.isOpen) return;
    this.ending.abort();
    for (const { reject } of this.pending.values()) reject(new Error(reason));
    this.pending.clear();
    await this.closeBoth();
  }

  private async closeBoth(): Promise<void> {
    await Promise.all([this.producer?.close(), this.reader?.close()]);
  }
}

function jsonOf(payload: Uint8Array): unknown {
  return payload.length === 0 ? undefined : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
}

function reasonOf(ended: Closed | Refusal): string {
  if (ended.type === 'closedByBroker') return 'closed by the broker';
  if (ended.type === 'refused') return `${ended.message} (error ${show(ended.code)})`;
  return ended.reason;
}
