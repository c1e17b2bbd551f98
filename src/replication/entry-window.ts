/**
 * The entries between the cursor and the last one read, in order. The cursor passes the longest settled prefix; what
 * is settled behind an unsettled entry keeps its place but no bytes.
 */
import type { SourcePosition } from '../entry/index.js';
import type { EntryRecord } from './entry-record.js';

const COMPACT_AT = 4096;

export class EntryWindow {
  private records: EntryRecord[] = [];
  private head = 0;
  /** The index of the first record. */
  private firstIndex = 0;
  /** Records that are neither settled nor stored chunks, and their bytes. */
  unsettledEntries = 0;
  unsettledBytes = 0;

  get size(): number {
    return this.records.length - this.head;
  }

  /** The index behind the last record. */
  get end(): number {
    return this.firstIndex + this.size;
  }

  get start(): number {
    return this.firstIndex;
  }

  get last(): EntryRecord | undefined {
    return this.size === 0 ? undefined : this.records[this.records.length - 1];
  }

  /** The record of an index between `start` and `end`. */
  at(index: number): EntryRecord {
    return this.records[this.head + index - this.firstIndex] as EntryRecord;
  }

  add(position: SourcePosition, bytes: Uint8Array): EntryRecord {
    const record: EntryRecord = {
      index: this.end,
      position,
      length: bytes.length,
      bytes,
      entry: undefined,
      needsPlan: true,
      sends: [],
      done: undefined,
      settled: false,
      held: undefined,
      rebatched: false,
      repeated: undefined,
      message: undefined,
      isAlone: false,
    };
    this.records.push(record);
    this.count(record, 1);
    return record;
  }

  /** Marks a record as settled. */
  settle(record: EntryRecord): void {
    if (!record.message?.stored.has(record)) this.count(record, -1);
    record.settled = true;
    record.needsPlan = false;
    record.bytes = undefined;
    record.entry = undefined;
    record.done = undefined;
    record.message = undefined;
  }

  /** A record does not count, or counts again, as unsettled. */
  count(record: EntryRecord, sign: 1 | -1): void {
    this.unsettledEntries += sign;
    this.unsettledBytes += sign * record.length;
  }

  /** Drops the settled prefix and gives its last position; undefined when there is none. */
  trim(passed?: (position: SourcePosition) => void): SourcePosition | undefined {
    let last: SourcePosition | undefined;
    while (this.head < this.records.length && this.records[this.head]?.settled) {
      last = (this.records[this.head] as EntryRecord).position;
      passed?.(last);
      this.head++;
      this.firstIndex++;
    }
    if (this.head === this.records.length) {
      this.records.length = 0;
      this.head = 0;
    } else if (this.head >= COMPACT_AT && this.head * 2 >= this.records.length) {
      this.records = this.records.slice(this.head);
      this.head = 0;
    }
    return last;
  }
}
