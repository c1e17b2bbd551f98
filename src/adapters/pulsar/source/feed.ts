/**
 * The entries of one segment from any place on: a reader without a cursor, beside the durable consumer that holds the
 * segment, so that going back costs a new reader and never the hold. The reader acknowledges what is taken from it,
 * for itself alone; so the broker tells when a sealed segment has nothing more for it, markers and transactions counted.
 */
import { randomUUID } from 'node:crypto';
import { parseEntry, type SourcePosition } from '../../../entry/index.js';
import { Notifier } from '../../../notifier.js';
import type { Clock, EntryRead, ReadLimits, StoredEntry } from '../../../ports/index.js';
import type { Closed, Consumer, EntryPosition, PulsarClient, ReceivedEntry, Refusal } from '../protocol/index.js';
import { entryAt, isBehind, readerStart } from './positions.js';

export interface FeedOptions {
  readonly client: PulsarClient;
  readonly clock: Clock;
  /** The segment's topic. */
  readonly topic: string;
  /** What the names of its readers begin with. */
  readonly readerName: string;
  /** How many bytes may lie here unread. */
  readonly bufferBytes: number;
  /** How many messages the broker may send ahead. */
  readonly flowMessages: number;
  /** The last position of the segment, markers included, one before the first entry where there is none. */
  readonly lastPosition: () => Promise<EntryPosition | undefined>;
}

type Read = ReadLimits & { readonly signal: AbortSignal };

/** The size of a message, in bytes, that is reckoned with as long as none was seen. */
const UNKNOWN_MESSAGE_BYTES = 1024 * 1024;
/** How much of the largest message's size is reckoned with still when the next one is smaller. */
const DECAY = 0.95;
const LOOK_AGAIN_MS = 500;
/** How long what was taken waits to be acknowledged with what is taken next: each acknowledgement costs both sides. */
const ACK_MS = 50;

export class Feed {
  /** The last entry received, or where the reader began. */
  newest: SourcePosition | undefined;
  private reader: Consumer | undefined;
  private failure: string | undefined;
  /** Everything behind this is in the buffer, or yet to come. */
  private at: SourcePosition | undefined;
  private buffer: StoredEntry[] = [];
  private bufferedBytes = 0;
  /** What the broker may still send, in messages; below zero when the last batch was larger. */
  private permits = 0;
  private messageBytes = UNKNOWN_MESSAGE_BYTES;
  private mayHaveEnded = false;
  /** The last entry that was taken, until it is acknowledged. */
  private unacknowledged: SourcePosition | undefined;
  /** What may be the final last position; once all of it was taken, it is. */
  private end: EntryPosition | undefined;
  private isAtEnd = false;
  private readonly changed = new Notifier();
  private turn: Promise<unknown> = Promise.resolve();
  /** How many are waited for, or under way. */
  private turns = 0;
  private readonly closing = new AbortController();

  constructor(private readonly options: FeedOptions) {}

  /** As `EntrySource.read`; one after the other, when several are asked for. */
  read(after: SourcePosition | undefined, options: Read): Promise<EntryRead> {
    const signal = AbortSignal.any([options.signal, this.closing.signal]);
    return orAborted(
      this.inTurn(() => this.next(after, { ...options, signal })),
      signal,
    );
  }

  /**
   * How far the broker has nothing but markers and aborted transactions behind `settled`; undefined when there are
   * entries behind it, or it is not known (yet: a reader that was opened for this question takes a while to see).
   */
  async emptyTo(settled: SourcePosition | undefined): Promise<SourcePosition | undefined> {
    // A read that is under way opens a reader by itself, and may then wait for as long as it likes.
    if (this.isUnread && this.turns === 0 && settled !== undefined && !this.closing.signal.aborted) {
      await this.inTurn(() => this.open(settled));
    }
    if (this.reader === undefined || isBehind(this.newest, settled)) return undefined;
    if (this.isAtEnd) return isBehind(this.end, settled) ? entryAt(this.end) : undefined;
    this.acknowledge();
    const told = await this.reader.lastMessageId();
    // Entries that came before the answer are known by now; only what was taken moves what the broker tells.
    if (told.type !== 'answered' || isBehind(this.newest, settled)) return undefined;
    return isBehind(told.markDelete, settled) ? entryAt(told.markDelete) : undefined;
  }

  async close(): Promise<void> {
    this.closing.abort(new Error('the segment was given back'));
    await this.reader?.close();
  }

  /** Nothing comes by itself: no reader was opened yet, or it has ended. */
  private get isUnread(): boolean {
    return this.reader === undefined || this.failure !== undefined;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.turns++;
    const done = this.turn.then(work).finally(() => this.turns--);
    this.turn = done.catch(() => undefined);
    return done;
  }

  private async next(after: SourcePosition | undefined, { signal, ...limits }: Read): Promise<EntryRead> {
    signal.throwIfAborted();
    await this.standAt(after);
    for (;;) {
      signal.throwIfAborted();
      if (this.buffer.length > 0) return this.take(limits);
      if (this.failure !== undefined) throw new Error(this.failure);
      if (!this.mayHaveEnded) {
        await this.changed.changed(signal);
        // What one turn of the event loop brings is handed out together: a read costs as much as several entries.
        await new Promise(setImmediate);
      } else if (await this.hasEnded()) return { entries: [], ended: true };
    }
  }

  /** Lets what comes next be what lies behind a position. */
  private async standAt(after: SourcePosition | undefined): Promise<void> {
    if (this.isUnread || isBehind(this.at, after)) return this.open(after);
    if (!isBehind(after, this.at)) return;
    this.at = after;
    const kept = this.buffer.findIndex(({ position }) => isBehind(position, after));
    this.drop(kept < 0 ? this.buffer.length : kept);
  }

  private async open(after: SourcePosition | undefined): Promise<void> {
    await this.reader?.close();
    const { client, topic, readerName } = this.options;
    this.reader = undefined;
    this.buffer = [];
    this.bufferedBytes = 0;
    this.permits = 0;
    this.mayHaveEnded = false;
    this.unacknowledged = undefined;
    this.failure = undefined;
    this.at = after;
    this.newest = after;
    const result = await client.subscribe(
      { topic, subscription: `${readerName}.${randomUUID()}`, durable: false, from: readerStart(after) },
      {
        onEntry: (entry) => this.receive(entry),
        onEndOfTopic: () => this.endOfTopic(),
        onClosed: (closed) => this.closed(closed),
      },
    );
    if (result.type !== 'subscribed') throw new Error(`reading ${topic}: ${reasonOf(result)}`);
    this.reader = result.consumer;
    if (this.closing.signal.aborted) return this.reader.close();
    this.grant();
  }

  private receive({ ledgerId, entryId, bytes }: ReceivedEntry): void {
    const position = { ledgerId, entryId };
    const messages = messagesOf(bytes);
    this.permits -= messages;
    this.messageBytes = Math.max(1, bytes.length / messages, this.messageBytes * DECAY);
    if (isBehind(position, this.at)) {
      this.newest = position;
      this.buffer.push({ position, bytes });
      this.bufferedBytes += bytes.length;
      this.changed.wake();
    } else this.reader?.ack('cumulative', [position]);
    this.grant();
  }

  private endOfTopic(): void {
    this.mayHaveEnded = true;
    this.changed.wake();
  }

  private closed(closed: Closed): void {
    this.failure = `reading ${this.options.topic}: ${reasonOf(closed)}`;
    this.changed.wake();
  }

  /**
   * Whether everything was taken. The broker has said so; that its reader stands at the segment's final end is what
   * counts, since an early word would lose what follows.
   */
  private async hasEnded(): Promise<boolean> {
    const { clock, lastPosition } = this.options;
    this.end ??= await lastPosition();
    this.acknowledge();
    const told = await this.reader?.lastMessageId();
    if (told?.type === 'answered' && this.end !== undefined && !isBehind(this.end, told.markDelete)) {
      this.isAtEnd = true;
      return true;
    }
    this.mayHaveEnded = false;
    this.end = undefined;
    void clock.sleep(LOOK_AGAIN_MS, this.closing.signal).then(
      () => this.endOfTopic(),
      () => undefined,
    );
    return false;
  }

  private take({ maxEntries, maxBytes }: ReadLimits): EntryRead {
    let count = 0;
    let bytes = 0;
    for (const entry of this.buffer.slice(0, maxEntries)) {
      bytes += entry.bytes.length;
      if (count > 0 && bytes > maxBytes) break;
      count++;
    }
    const entries = this.drop(count);
    this.at = entries.at(-1)?.position;
    return { entries, ended: false };
  }

  /** Takes the first entries out of the buffer, and makes room for others. */
  private drop(count: number): StoredEntry[] {
    const entries = this.buffer.splice(0, count);
    const last = entries.at(-1);
    for (const { bytes } of entries) this.bufferedBytes -= bytes.length;
    if (last !== undefined) this.acknowledgeSoon(last.position);
    this.grant();
    return entries;
  }

  private acknowledgeSoon(position: SourcePosition): void {
    const isWaiting = this.unacknowledged !== undefined;
    this.unacknowledged = position;
    if (isWaiting) return;
    void this.options.clock.sleep(ACK_MS, this.closing.signal).then(
      () => this.acknowledge(),
      () => undefined,
    );
  }

  private acknowledge(): void {
    if (this.unacknowledged !== undefined) this.reader?.ack('cumulative', [this.unacknowledged]);
    this.unacknowledged = undefined;
  }

  /** Permits are messages, the bound is bytes: as many as fit if each is as large as the largest of late. */
  private grant(): void {
    const { bufferBytes, flowMessages } = this.options;
    const fitting = Math.floor((bufferBytes - this.bufferedBytes) / this.messageBytes);
    const wanted = Math.max(this.buffer.length === 0 ? 1 : 0, Math.min(flowMessages, fitting));
    // Few large grants rather than many small ones.
    if (this.reader === undefined || this.permits > wanted / 2 || wanted <= this.permits) return;
    this.reader.flow(wanted - this.permits);
    this.permits = wanted;
  }
}

/** An entry of n messages costs n permits; one that cannot be read counts as one message. */
function messagesOf(bytes: Uint8Array): number {
  try {
    return Math.max(1, parseEntry(bytes).metadata.numMessagesInBatch ?? 1);
  } catch {
    return 1;
  }
}

export function reasonOf(ended: Closed | Refusal): string {
  if (ended.type === 'closedByBroker') return 'closed by the broker';
  return ended.type === 'refused' ? `${ended.message} (error ${ended.code})` : ended.reason;
}

/** Rejects at once when the signal aborts, whatever is still under way. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
