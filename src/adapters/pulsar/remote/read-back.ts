/**
 * Reads what is stored in a segment, with a consumer of its own that leaves nothing behind: from a position to a
 * barrier, or to the final end of a sealed segment (R15).
 *
 * Barriers are not delivered, and the broker's answer for the last entry stands still where transactions are enabled.
 * So the reader acknowledges what it gets, and is done when everything up to the barrier counts as acknowledged, the
 * barrier by the broker itself; at the end of a sealed segment the broker tells that nothing is left.
 */
import { comparePositions } from '../../../dedup/index.js';
import { parseEntry, type SourcePosition } from '../../../entry/index.js';
import type { Clock, RemoteTopic, StoredEntry } from '../../../ports/index.js';
import type { Closed, Consumer, PulsarClient, ReceivedEntry } from '../protocol/index.js';
import { closedText, refusalText } from './failures.js';

/** Nothing comes in, and the end is not reached. */
export interface ReadBackWait {
  readonly segmentId: number;
  /** Milliseconds since something last came in. */
  readonly waitedMs: number;
  /** For operators. */
  readonly reason: string;
}

/** Where and how to read. */
export interface ReadBackPlace {
  readonly client: PulsarClient;
  readonly segmentId: number;
  /** The topic behind the segment. */
  readonly topic: string;
  /** A name that nobody else uses at the same time. */
  readonly subscription: string;
  readonly clock: Clock;
  /** A wait is told each time that it has lasted so much longer, in milliseconds. */
  readonly waitingAfterMs: number;
  readonly onWaiting: (wait: ReadBackWait) => void;
}

type Range = Parameters<RemoteTopic['readBack']>[1];

const START = { ledgerId: 0n, entryId: 0n };

/** How often the broker is asked how far it has come while nothing is delivered, in milliseconds. */
const FIRST_POLL_MS = 10;
const LAST_POLL_MS = 500;

/** Rejects when the segment cannot be read to the end of the range. */
export async function* readBack(
  place: ReadBackPlace,
  { after, through }: Range,
  signal: AbortSignal,
): AsyncGenerator<readonly StoredEntry[], void, undefined> {
  signal.throwIfAborted();
  if (after !== undefined && through !== 'end' && comparePositions(after, through) >= 0) return;
  const reader = await openReader(place, after);
  const pace = new Pace(place);
  try {
    for (;;) {
      signal.throwIfAborted();
      const entries = reader.take();
      if (entries.length > 0) {
        pace.moved();
        const wanted = entries.filter(({ position }) => isWithin(position, after, through));
        if (wanted.length > 0) yield wanted;
        const last = entries.at(-1)?.position;
        if (last !== undefined && through !== 'end' && comparePositions(last, through) >= 0) return;
      } else {
        if (await reader.hasReached(through)) return;
        if (!reader.hasMore) await pace.pause(reader, signal);
      }
    }
  } finally {
    await reader.close();
  }
}

/** A reader begins with the entry at its position, which is one too early. */
function isWithin(position: SourcePosition, after: SourcePosition | undefined, through: Range['through']): boolean {
  if (after !== undefined && comparePositions(position, after) <= 0) return false;
  return through === 'end' || comparePositions(position, through) <= 0;
}

async function openReader(place: ReadBackPlace, after: SourcePosition | undefined): Promise<Reader> {
  const { client, topic, subscription, segmentId } = place;
  const reader = new Reader(segmentId);
  const from = after ?? START;
  const subscribed = await client.subscribe(
    { topic, subscription, durable: false, from: { ledgerId: from.ledgerId, entryId: from.entryId } },
    {
      onEntry: (entry) => reader.onEntry(entry),
      onEndOfTopic: () => reader.onEndOfTopic(),
      onClosed: (closed) => reader.onClosed(closed),
    },
  );
  if (subscribed.type !== 'subscribed') {
    throw new Error(`segment ${segmentId} cannot be read back: ${refusalText(subscribed)}`);
  }
  reader.begin(subscribed.consumer);
  return reader;
}

/** How long to wait for what comes next, and whom to tell of it. */
class Pace {
  private pollMs = FIRST_POLL_MS;
  private movedAtMs: number;
  private told = 0;

  constructor(private readonly place: ReadBackPlace) {
    this.movedAtMs = place.clock.now();
  }

  moved(): void {
    this.pollMs = FIRST_POLL_MS;
    this.movedAtMs = this.place.clock.now();
    this.told = 0;
  }

  /** Until something has changed, it is time to look again, or the signal aborts, which whoever goes on sees. */
  async pause(reader: Reader, signal: AbortSignal): Promise<void> {
    this.tellWait();
    const sleep = new AbortController();
    const { clock } = this.place;
    const stop = () => sleep.abort();
    signal.addEventListener('abort', stop, { once: true });
    await new Promise<void>((resolve) => {
      reader.wake = resolve;
      void clock.sleep(this.pollMs, sleep.signal).then(resolve, () => resolve());
    });
    signal.removeEventListener('abort', stop);
    sleep.abort();
    this.pollMs = Math.min(LAST_POLL_MS, this.pollMs * 2);
  }

  private tellWait(): void {
    const { clock, segmentId, waitingAfterMs, onWaiting } = this.place;
    const waitedMs = clock.now() - this.movedAtMs;
    if (waitedMs < waitingAfterMs * (this.told + 1)) return;
    this.told = Math.floor(waitedMs / waitingAfterMs);
    const reason = 'the broker delivers nothing more: it waits, for one, while a transaction is open on the segment';
    onWaiting({ segmentId, waitedMs, reason });
  }
}

/** The most that is asked for at once, in messages, and in bytes as far as sizes are known. */
const WINDOW_MESSAGES = 1_000;
const WINDOW_BYTES = 8 * 1024 * 1024;
const FIRST_MESSAGES = 16;

/** A consumer, with what it was delivered and has not been taken yet. */
class Reader {
  /** Called at every event. */
  wake: () => void = () => undefined;
  private consumer: Consumer | undefined;
  private entries: StoredEntry[] = [];
  private closed: Closed | undefined;
  private isAtEnd = false;
  /** Messages that were asked for and have not come. */
  private outstanding = FIRST_MESSAGES;
  /** Of the message that was largest so far. */
  private largestBytes = 1;

  constructor(private readonly segmentId: number) {}

  begin(consumer: Consumer): void {
    this.consumer = consumer;
    consumer.flow(FIRST_MESSAGES);
  }

  onEntry({ ledgerId, entryId, bytes }: ReceivedEntry): void {
    const messages = messagesOf(bytes);
    this.outstanding -= messages;
    this.largestBytes = Math.max(this.largestBytes, bytes.length / messages);
    this.entries.push({ position: { ledgerId, entryId }, bytes });
    this.wake();
  }

  onEndOfTopic(): void {
    this.isAtEnd = true;
    this.wake();
  }

  onClosed(closed: Closed): void {
    this.closed = closed;
    this.wake();
  }

  /** Something was delivered that has not been taken. */
  get hasMore(): boolean {
    return this.entries.length > 0;
  }

  /** Takes what was delivered, acknowledges it, and asks for more. */
  take(): readonly StoredEntry[] {
    const taken = this.entries;
    const last = taken.at(-1);
    if (last === undefined) return taken;
    this.entries = [];
    this.consumer?.ack('cumulative', [last.position]);
    const window = Math.max(1, Math.min(WINDOW_MESSAGES, Math.floor(WINDOW_BYTES / this.largestBytes)));
    if (this.outstanding <= window / 2) {
      this.consumer?.flow(window - this.outstanding);
      this.outstanding = window;
    }
    return taken;
  }

  /** Everything up to there was delivered and taken, or is never delivered. Rejects once nothing can come any more. */
  async hasReached(through: Range['through']): Promise<boolean> {
    if (through === 'end' && this.isAtEnd) return true;
    if (this.closed !== undefined) this.cannotGoOn(closedText(this.closed));
    if (through === 'end' || this.consumer === undefined) return false;
    const answer = await this.consumer.lastMessageId();
    if (answer.type !== 'answered') return this.closed === undefined && this.cannotGoOn(refusalText(answer));
    return answer.markDelete !== undefined && comparePositions(answer.markDelete, through) >= 0;
  }

  private cannotGoOn(why: string): never {
    throw new Error(`segment ${this.segmentId} cannot be read back any further: ${why}`);
  }

  /** Frees the consumer's place, which topics may have few of. */
  async close(): Promise<void> {
    if (this.closed === undefined) await this.consumer?.close();
  }
}

/** What the broker counts an entry as. One that cannot be read was written by somebody else, as one message. */
function messagesOf(bytes: Uint8Array): number {
  try {
    return Math.max(1, parseEntry(bytes).metadata.numMessagesInBatch ?? 1);
  } catch {
    return 1;
  }
}
