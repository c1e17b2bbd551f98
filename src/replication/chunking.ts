/**
 * The chunks of one message stay together (R6): they go to one remote segment, and the cursor does not pass the first
 * before the last is stored in the same one. A seal in the middle sends the message again from its first chunk. A
 * message whose producer died is given up after a time: its chunks count as settled then, and it is counted.
 */
import { comparePositions } from '../dedup/index.js';
import type { ChunkInfo, SourcePosition } from '../entry/index.js';
import type { ChunkedMessage, EntryRecord } from './entry-record.js';
import type { EntryWindow } from './entry-window.js';

/** What chunking needs of the machine. */
export interface ChunkingHost {
  readonly window: EntryWindow;
  readonly nowMs: number;
  readonly options: { readonly chunkExpiryMs: number; readonly maxSpanEntries: number };
  /** The position before a record. */
  before(record: EntryRecord): SourcePosition | undefined;
  settle(record: EntryRecord): void;
  needPlan(record: EntryRecord): void;
  gaveUp(message: ChunkedMessage): void;
}

export class Chunking {
  /** In the order of their first chunks. */
  private readonly messages = new Map<string, ChunkedMessage>();

  constructor(private readonly host: ChunkingHost) {}

  get isEmpty(): boolean {
    return this.messages.size === 0;
  }

  /** Notes what message an entry is a chunk of. A chunk whose first was not seen goes by itself, as any entry does. */
  track(record: EntryRecord, chunk: ChunkInfo | undefined): void {
    if (chunk === undefined || record.message !== undefined || record.isAlone) return;
    const { uuid, chunkId, numChunks } = chunk;
    let message = this.messages.get(uuid);
    if (chunkId === 0) {
      // The same name once more: its producer has begun anew.
      if (message !== undefined) this.giveUp(message);
      message = {
        uuid,
        numChunks,
        openedAtMs: this.host.nowMs,
        first: record.position,
        before: this.host.before(record),
        records: [],
        segmentId: undefined,
        stored: new Set(),
      };
      this.messages.set(uuid, message);
    }
    if (message === undefined || message.records.length !== chunkId || numChunks !== message.numChunks) {
      record.isAlone = true;
      return;
    }
    message.records.push(record);
    record.message = message;
  }

  /** A chunk is put on its way to a segment. */
  sending(record: EntryRecord, segmentId: number): void {
    const { message } = record;
    if (message !== undefined) message.segmentId = segmentId;
  }

  /**
   * What a seal of a segment behind the send at a position must not hand on more than (R6); null: nothing, undefined:
   * all. Chunks go in order, so that the position tells which are sent.
   */
  completeTo(segmentId: number, position: SourcePosition): SourcePosition | null | undefined {
    for (const message of this.messages.values()) {
      if (message.segmentId !== segmentId || comparePositions(message.first, position) > 0) continue;
      const last = message.records[message.numChunks - 1];
      if (last === undefined || comparePositions(last.position, position) > 0) return message.before ?? null;
    }
    return undefined;
  }

  /** A chunk is stored; all are settled when the message is complete. */
  stored(record: EntryRecord, message: ChunkedMessage): void {
    message.stored.add(record);
    // Its bytes are read again if the segment is sealed before the message is complete.
    record.bytes = undefined;
    record.entry = undefined;
    this.host.window.count(record, -1);
    if (message.stored.size < message.numChunks) return;
    this.messages.delete(message.uuid);
    for (const chunk of message.records) this.host.settle(chunk);
  }

  /** A segment is sealed: what is incomplete in it is sent again from its first chunk. */
  closed(segmentId: number): void {
    for (const message of this.messages.values()) {
      if (message.segmentId !== segmentId) continue;
      message.segmentId = undefined;
      for (const record of message.records) {
        if (message.stored.delete(record)) this.host.window.count(record, 1);
        record.repeated ??= 'rewind';
        this.host.needPlan(record);
      }
    }
  }

  /** A chunk passes without being sent: the message cannot become complete. */
  passed({ message }: EntryRecord): void {
    if (message !== undefined) this.giveUp(message);
  }

  /** The source segment was read to its end: what is incomplete stays so. */
  ended(): void {
    for (const message of [...this.messages.values()]) {
      if (message.records.length < message.numChunks) this.giveUp(message);
    }
  }

  /** Gives up what is too old, and the first where too much lies behind it; gives when the next becomes too old. */
  due(): number | undefined {
    const { chunkExpiryMs, maxSpanEntries } = this.host.options;
    for (const message of this.messages.values()) {
      const expiresAtMs = message.openedAtMs + chunkExpiryMs;
      const isFar = this.host.window.size >= maxSpanEntries && message.stored.size > 0;
      if (expiresAtMs > this.host.nowMs && !isFar) return expiresAtMs;
      this.giveUp(message);
    }
    return undefined;
  }

  private giveUp(message: ChunkedMessage): void {
    this.messages.delete(message.uuid);
    this.host.gaveUp(message);
    for (const record of message.records) {
      record.isAlone = true;
      if (message.stored.has(record)) this.host.settle(record);
      record.message = undefined;
    }
  }
}
