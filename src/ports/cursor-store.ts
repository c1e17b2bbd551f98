/** Where it is kept how far each source segment has come on its way to one remote. */
import type { SourcePosition } from '../entry/index.js';

/** What is durable of one source segment and remote: the cursor, and with it the checkpoint of R15. */
export interface CursorRecord {
  /** Which of the processes that replicated this segment wrote it, one after the other: 1, 2, 3 ... */
  readonly session: number;
  /** Everything up to here is stored on the remote, or skipped for a counted reason; absent when nothing is. */
  readonly settled?: SourcePosition;
  /** The segment is sealed, and settled to its end. */
  readonly drained: boolean;
  /** Entries behind `settled` that an operator lets pass unsent, ascending (R5). */
  readonly skipped: readonly SourcePosition[];
  /**
   * By remote segment: a place in it behind the last copy of an entry at or below `settled`, and before the first copy
   * of a later one (R15).
   */
  readonly checkpoints: ReadonlyMap<number, SourcePosition>;
}

/** How a write ended. */
export type CursorWrite =
  /** Durable. */
  | { readonly type: 'written' }
  /** Nothing was written: a later session owns one of the segments. */
  | { readonly type: 'fenced'; readonly session: number };

/**
 * The cursors of one topic towards one remote. A rejected promise means not known to be written: the write is made
 * again. Writes are durable when they resolve.
 */
export interface CursorStore {
  /** All records, by source segment. Empty means that replication to this remote was never enabled. */
  load(): Promise<ReadonlyMap<number, CursorRecord>>;
  /**
   * Writes all these records or none; undefined removes one. Refused as a whole when the stored session of one of them
   * is higher than the session written (removals are not refused).
   */
  write(records: ReadonlyMap<number, CursorRecord | undefined>): Promise<CursorWrite>;
}
