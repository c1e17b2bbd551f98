/**
 * The open producer of one source segment on one segment. Sends go out as they come, and get their results in the
 * order of the sends.
 *
 * A broker goes on behind an error: what was sent behind the failed entry may be stored. So the first failure is the
 * last thing that is told of this producer: nothing more goes out, and everything behind it fails by a class that
 * settles nothing. The replicator opens a new one and reads back before it sends again (R15).
 *
 * A close by the broker gives no reason: a seal looks like a move or a quota. Whether it is a seal is asked with a
 * second producer, since only a refused one proves it.
 */
import { type EntryBuffers, encodeMessage, parseEntry, type SourcePosition } from '../../../entry/index.js';
import type { Clock, RemoteProducer, Send, SendResult } from '../../../ports/index.js';
import {
  type Closed,
  type Producer,
  type ProducerEvents,
  type PulsarClient,
  SERVER_ERROR,
  type SendError,
  type SendReceipt,
} from '../protocol/index.js';
import { closedText, type OpenFailure, openFailure, refusalText, sendFailure } from './failures.js';

/** A marker that no broker and no client gives a meaning: all consumers pass over it. */
const BARRIER_MARKER_TYPE = 1000;

/** So many time limits long a producer waits for its turn while others on its connection are answered. */
const PATIENCE = 10;

/** Where a producer sends, and how. */
export interface ProducerPlace {
  readonly client: PulsarClient;
  /** The topic behind the segment. */
  readonly topic: string;
  readonly name: string;
  readonly clock: Clock;
  /** Without any answer on its connection for so long, in milliseconds, what is in flight is ambiguous. */
  readonly sendTimeoutMs: number;
  /** The largest entry to send, in bytes, for what a broker says to be its own limit. */
  maxEntryBytes(maxMessageBytes: number): number;
  /** The name is being given back. */
  onClosing(closed: Promise<void>): void;
}

export type OpenedProducer = { readonly type: 'opened'; readonly producer: RemoteProducer } | OpenFailure;

export async function openProducer(
  place: ProducerPlace,
  onResult: (result: SendResult) => void,
): Promise<OpenedProducer> {
  let producer: SegmentProducer | undefined;
  const opened = await place.client.openProducer(
    { topic: place.topic, name: place.name },
    {
      onReceipt: (receipt) => producer?.onReceipt(receipt),
      onSendError: (error) => producer?.onSendError(error),
      onClosed: (closed) => producer?.onClosed(closed),
    },
  );
  if (opened.type !== 'opened') return openFailure(opened);
  producer = new SegmentProducer(place, opened.producer, onResult);
  return { type: 'opened', producer };
}

/** A send, or a barrier, that has no result yet. */
interface InLine {
  readonly sequenceId: bigint;
  readonly buffers: EntryBuffers;
  readonly settle: (result: SendResult) => void;
  /** For who waits for more than results: the producer was closed over it. */
  readonly dropped?: () => void;
  /** It has failed, and is told when those before it are. */
  failure?: SendResult;
}

class SegmentProducer implements RemoteProducer, ProducerEvents {
  /** In the order of the sends; the first `sent` of them are with the broker. */
  private readonly line: InLine[] = [];
  private sent = 0;
  /** Its order is all that counts: what is stored already is found by reading back. */
  private nextSequenceId: bigint;
  private readonly maxEntryBytes: number;
  private isFull = false;
  /** Something has failed: nothing more goes out. */
  private isStopped = false;
  private isProbing = false;
  /** What everything is told that is behind the failure. */
  private rest: SendResult | undefined;
  private isTelling = false;
  private lastAnswerMs = 0;
  private readonly ending = new AbortController();
  private isLinkClosed = false;
  private isClosed = false;

  constructor(
    private readonly place: ProducerPlace,
    private readonly link: Producer,
    private readonly onResult: (result: SendResult) => void,
  ) {
    this.nextSequenceId = link.lastSequenceId + 1n;
    this.maxEntryBytes = place.maxEntryBytes(link.maxMessageBytes);
    void this.watchSilence();
  }

  send({ buffers }: Send): void {
    this.add(buffers, this.onResult);
  }

  barrier(): Promise<SourcePosition> {
    const { name, clock } = this.place;
    const outer = {
      producerName: name,
      sequenceId: this.nextSequenceId,
      publishTimeMs: clock.now(),
      markerType: BARRIER_MARKER_TYPE,
    };
    const buffers = encodeMessage(new Uint8Array(0), { outer, stamp: false });
    return new Promise((resolve, reject) => {
      const dropped = () => reject(new Error('the producer is closed'));
      if (this.isClosed) return dropped();
      const settle = (result: SendResult) => {
        if (result.type === 'stored' && result.at !== undefined) resolve(result.at);
        else reject(new Error(`the barrier is ${result.type}${'reason' in result ? `: ${result.reason}` : ''}`));
      };
      this.add(buffers, settle, dropped);
    });
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    this.ending.abort();
    for (const { dropped } of this.line.splice(0)) dropped?.();
    // What has ended already may have given the name to somebody else.
    if (this.isLinkClosed) return;
    const closed = this.link.close();
    this.place.onClosing(closed);
    await closed;
  }

  onReceipt({ sequenceId, at }: SendReceipt): void {
    const head = this.line[0];
    if (this.rest !== undefined || this.isProbing || head === undefined) return;
    this.lastAnswerMs = this.place.clock.now();
    if (head.sequenceId !== sequenceId) {
      return this.fail({ type: 'ambiguous', reason: `receipt ${sequenceId} came before receipt ${head.sequenceId}` });
    }
    if (at === undefined) {
      // The broker compares counters, and a counter says nothing of what is in the entry.
      return this.fail({ type: 'ambiguous', reason: 'the broker takes its number for one that it has already' });
    }
    this.line.shift();
    this.sent--;
    head.settle({ type: 'stored', at: { ledgerId: at.ledgerId, entryId: at.entryId } });
    this.failHead();
  }

  onSendError(error: SendError): void {
    const [head] = this.line;
    if (this.rest !== undefined || head === undefined) return;
    this.lastAnswerMs = this.place.clock.now();
    // Receipts of sends before it may still come.
    const failed = this.line[Number(error.sequenceId - head.sequenceId)];
    if (failed === undefined) return;
    this.isStopped = true;
    failed.failure ??= sendFailure(error);
    this.failHead();
  }

  onClosed(closed: Closed): void {
    this.isLinkClosed = true;
    this.isStopped = true;
    if (this.isClosed || this.rest !== undefined) return;
    const failure: SendResult = { type: 'ambiguous', reason: closedText(closed) };
    // After a close nothing is answered any more, so nothing is waited for.
    if (closed.type === 'closedByBroker') void this.failUnlessSealed(failure);
    else this.fail(failure);
  }

  private add(buffers: EntryBuffers, settle: (result: SendResult) => void, dropped?: () => void): void {
    if (this.isClosed) return;
    const sequenceId = this.nextSequenceId++;
    this.line.push({ sequenceId, buffers, settle, ...(dropped === undefined ? {} : { dropped }) });
    if (this.rest === undefined) this.pump();
    else this.tellRest();
  }

  private pump(): void {
    while (!this.isFull && !this.isStopped) {
      const next = this.line[this.sent];
      if (next === undefined) return;
      const { sequenceId, buffers } = next;
      const bytes = buffers.head.length + buffers.payload.length;
      if (bytes > this.maxEntryBytes) {
        this.isStopped = true;
        next.failure = { type: 'tooLarge', reason: `an entry of ${bytes} bytes; the limit is ${this.maxEntryBytes}` };
        return this.failHead();
      }
      if (this.sent++ === 0) this.lastAnswerMs = this.place.clock.now();
      if (!this.link.send(sequenceId, messagesOf(buffers), buffers)) this.waitForRoom();
    }
  }

  private waitForRoom(): void {
    this.isFull = true;
    void this.link.room().then(() => {
      this.isFull = false;
      if (!this.isClosed) this.pump();
    });
  }

  /** Where the first in line has failed, everything has. */
  private failHead(): void {
    const failure = this.line[0]?.failure;
    if (failure === undefined) return;
    if (failure.type === 'ambiguous') void this.failUnlessSealed(failure);
    else this.fail(failure);
  }

  /** At a seal some sends are answered with it, and others before them with an error that says nothing. */
  private async failUnlessSealed(failure: SendResult): Promise<void> {
    if (this.isProbing) return;
    this.isProbing = true;
    const { client, topic } = this.place;
    const probe = await client.openProducer({ topic }, NO_EVENTS);
    if (probe.type === 'opened') void probe.producer.close();
    const isSealed = probe.type === 'refused' && probe.code === SERVER_ERROR.topicTerminated;
    this.fail(isSealed ? { type: 'sealed', reason: refusalText(probe) } : failure);
  }

  private fail(failure: SendResult): void {
    if (this.isClosed || this.rest !== undefined) return;
    this.isStopped = true;
    this.ending.abort();
    this.rest = behind(failure);
    const head = this.line.shift();
    this.isTelling = true;
    try {
      head?.settle(failure);
    } finally {
      this.isTelling = false;
    }
    this.tellRest();
  }

  /** One after the other, also what is sent while one is told. */
  private tellRest(): void {
    const { rest } = this;
    if (this.isTelling || rest === undefined) return;
    this.isTelling = true;
    try {
      for (let next = this.line.shift(); next !== undefined; next = this.line.shift()) next.settle(rest);
    } finally {
      this.isTelling = false;
    }
  }

  /**
   * A broker that limits its publishers answers late, but it answers: on one connection it takes one producer after the
   * other, so the answers of all of them count, up to a point. One that cannot store an entry never answers.
   */
  private async watchSilence(): Promise<void> {
    const { clock, sendTimeoutMs } = this.place;
    let inFlightBytes = 0;
    let movedAtMs = clock.now();
    try {
      for (;;) {
        await clock.sleep(sendTimeoutMs / 4, this.ending.signal);
        const nowMs = clock.now();
        if (this.link.inFlightBytes !== inFlightBytes) movedAtMs = nowMs;
        inFlightBytes = this.link.inFlightBytes;
        const silentMs = nowMs - this.lastAnswerMs;
        const isMoving = nowMs - movedAtMs < sendTimeoutMs;
        if (this.sent === 0 || silentMs < (isMoving ? PATIENCE * sendTimeoutMs : sendTimeoutMs)) continue;
        return this.fail({ type: 'ambiguous', reason: `no answer for ${silentMs} ms` });
      }
    } catch {
      // The producer has ended.
    }
  }
}

const NO_EVENTS: ProducerEvents = {
  onReceipt: () => undefined,
  onSendError: () => undefined,
  onClosed: () => undefined,
};

/** What is behind a failure fails by the same class, unless that is a matter of the one entry. */
function behind(failure: SendResult): SendResult {
  if (failure.type !== 'rejected' && failure.type !== 'tooLarge') return failure;
  return { type: 'ambiguous', reason: `an entry before it is ${failure.type}: ${failure.reason}` };
}

/** The broker counts messages: it has to be told how many an entry holds. Its head has all of the metadata. */
function messagesOf({ head }: EntryBuffers): number {
  return Math.max(1, parseEntry(head).metadata.numMessagesInBatch ?? 1);
}
