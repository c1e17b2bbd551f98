/**
 * What is read when. One read is out at a time; one that comes back after it was given up is thrown away (B06). The
 * window bounds entries that are not settled, not the span from the cursor (R6); entries whose bytes were let go are
 * read again before new ones.
 */
import { comparePositions, isSameEntry } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import type { StoredEntry } from '../ports/index.js';
import type { EntryRecord } from './entry-record.js';
import type { EntryWindow } from './entry-window.js';

export interface ReadingOptions {
  readonly windowEntries: number;
  readonly windowBytes: number;
  readonly maxReadEntries: number;
  readonly maxSpanEntries: number;
}

export interface ReadRequest {
  readonly readId: number;
  readonly after: SourcePosition | undefined;
  readonly maxEntries: number;
  readonly maxBytes: number;
}

const NONE: readonly StoredEntry[] = [];

export class Reading {
  /** Nothing follows what was read. */
  ended = false;
  retryAtMs: number | undefined;
  retryReason: string | undefined;
  private nextId = 1;
  private out: { readonly readId: number; readonly from: number | undefined } | undefined;
  /** The first record whose bytes are missing, and what precedes it. */
  private wanted: { readonly index: number; readonly after: SourcePosition | undefined } | undefined;
  private failures = 0;
  private gone: EntryRecord[] = [];

  constructor(
    private readonly window: EntryWindow,
    private readonly options: ReadingOptions,
  ) {}

  /** Something that was read before is to be read again. */
  get wantsAgain(): boolean {
    return this.wanted !== undefined;
  }

  /** The bytes of the record with this index are needed again. */
  want(index: number, after: SourcePosition | undefined): void {
    if (this.wanted?.index === index) return;
    this.wanted = { index, after };
    // A read for new entries may wait for long; this one must not wait for it.
    if (this.out?.from === undefined) this.out = undefined;
  }

  /** The read to issue now, if any; `settled` is the cursor, behind which everything begins. */
  next(settled: SourcePosition | undefined, nowMs: number): ReadRequest | undefined {
    if (this.out !== undefined || (this.retryAtMs !== undefined && this.retryAtMs > nowMs)) return undefined;
    const { wanted, window, options } = this;
    const { windowEntries, windowBytes, maxReadEntries, maxSpanEntries } = options;
    this.retryAtMs = undefined;
    if (wanted !== undefined) {
      return this.issue(wanted.index, wanted.after, Math.min(maxReadEntries, window.end - wanted.index), windowBytes);
    }
    if (this.ended) return undefined;
    const room = Math.min(windowEntries - window.unsettledEntries, maxSpanEntries - window.size);
    const bytes = windowBytes - window.unsettledBytes;
    // Small reads cost as much as large ones: wait for room for a whole one, or half the window.
    if (room < Math.min(maxReadEntries, Math.ceil(windowEntries / 2)) && window.unsettledEntries > 0) return undefined;
    if (room < 1 || bytes < 1) return undefined;
    return this.issue(undefined, window.last?.position ?? settled, Math.min(maxReadEntries, room), bytes);
  }

  private issue(
    from: number | undefined,
    after: SourcePosition | undefined,
    entries: number,
    maxBytes: number,
  ): ReadRequest {
    const readId = this.nextId++;
    this.out = { readId, from };
    return { readId, after, maxEntries: entries, maxBytes };
  }

  /** What a read brought: new entries, or undefined when it is not wanted any more or brought back known ones. */
  arrived(
    readId: number,
    entries: readonly StoredEntry[],
    ended: boolean,
    retryAt: (failures: number) => number,
  ): readonly StoredEntry[] | undefined {
    if (this.out?.readId !== readId) return undefined;
    const { from } = this.out;
    this.out = undefined;
    this.retryReason = undefined;
    if (from !== undefined) {
      this.wanted = undefined;
      if (from < this.window.start || this.restore(from, entries)) return undefined;
      this.gone = this.goneFrom(from, entries[0]?.position, ended);
      if (this.gone.length > 0) return undefined;
      this.retryReason = 'the source does not give an entry again that it gave before';
      this.retryAtMs = retryAt(this.failures++);
      return undefined;
    }
    this.failures = 0;
    this.ended = ended;
    return entries.length === 0 ? NONE : entries;
  }

  /** Gives records their bytes back; false when the first of them is not among the entries. */
  private restore(from: number, entries: readonly StoredEntry[]): boolean {
    const { window } = this;
    let index = from;
    for (const { position, bytes } of entries) {
      while (index < window.end && !isSameEntry(window.at(index).position, position)) index++;
      if (index === window.end) break;
      const record = window.at(index);
      if (record.needsPlan) record.bytes ??= bytes;
    }
    return window.at(from).bytes !== undefined || !window.at(from).needsPlan;
  }

  /** What the source has let go of since it was read: what it gives now lies behind it. */
  private goneFrom(from: number, next: SourcePosition | undefined, ended: boolean): EntryRecord[] {
    const gone: EntryRecord[] = [];
    if (next === undefined && !ended) return gone;
    for (let index = from; index < this.window.end; index++) {
      const record = this.window.at(index);
      if (next !== undefined && comparePositions(record.position, next) >= 0) break;
      if (record.needsPlan && record.bytes === undefined) gone.push(record);
    }
    return gone;
  }

  /** Gives what the last read has found to be gone, once. */
  takeGone(): readonly EntryRecord[] {
    const { gone } = this;
    this.gone = [];
    return gone;
  }

  failed(readId: number, reason: string, retryAt: (failures: number) => number): void {
    if (this.out?.readId !== readId) return;
    this.out = undefined;
    this.retryReason = reason;
    this.retryAtMs = retryAt(this.failures++);
  }
}
