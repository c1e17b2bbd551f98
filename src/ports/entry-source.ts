/** Where a replicator reads: one topic of the source cluster, with the cursor that belongs to one remote. */
import type { SourcePosition } from '../entry/index.js';
import type { Layout } from '../layout/index.js';

/** An entry as it is stored, and where. The bytes must not change while a replicator holds them. */
export interface StoredEntry {
  /** Ascends within a segment; never has a part. */
  readonly position: SourcePosition;
  readonly bytes: Uint8Array;
}

/** What a read brings: some entries in order, or none with `ended`. */
export interface EntryRead {
  readonly entries: readonly StoredEntry[];
  /** The segment is sealed and nothing follows these entries. */
  readonly ended: boolean;
}

/**
 * One source topic as seen by the replicator for one remote. Every segment that exists, sealed ones included, can be
 * read until its cursor has passed its end.
 */
export interface EntrySource {
  /** The source cluster's name: what entries are stamped with. */
  readonly cluster: string;
  /** The layout now, and again after every change, until the signal aborts. */
  layouts(signal: AbortSignal): AsyncIterable<Layout>;
  /** The last acknowledged position of a segment; undefined when nothing has been acknowledged. */
  cursor(segmentId: number): Promise<SourcePosition | undefined>;
  /**
   * The entries behind `after`, in order; waits for the first one unless the segment has ended. Rejects when the
   * signal aborts.
   */
  read(
    segmentId: number,
    after: SourcePosition | undefined,
    options: { readonly maxEntries: number; readonly signal: AbortSignal },
  ): Promise<EntryRead>;
  /** Moves the cursor to `position`: everything up to it need never be read again. */
  acknowledge(segmentId: number, position: SourcePosition): Promise<void>;
}
