/** Where a replicator reads: one topic of the source cluster, with the subscription that belongs to one remote. */
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

/** How much a read brings at most; one entry in any case. */
export interface ReadLimits {
  /** At least 1. */
  readonly maxEntries: number;
  /** Bytes of all entries together, at least 1. */
  readonly maxBytes: number;
}

/** The right to replicate one segment to one remote, held by one process at a time. */
export interface SegmentClaim {
  /**
   * Resolves once: `lost` when it is gone already, as with the connection that it hangs on; `asked` when it should be
   * given back in good order, since another process is to have it.
   */
  readonly ending: Promise<'lost' | 'asked'>;
  /** Gives it back. */
  release(): Promise<void>;
}

/**
 * One source topic as seen by the replicator for one remote. Every segment that exists, sealed ones included, can be
 * read until it has been acknowledged to its end. A rejected promise means that the source cannot be reached: the
 * call is made again.
 */
export interface EntrySource {
  /** The source cluster's name: what entries are stamped with. */
  readonly cluster: string;
  /** The layout now, and again after every change, until the signal aborts. */
  layouts(signal: AbortSignal): AsyncIterable<Layout>;
  /**
   * Where several processes share the segments of a topic: resolves when this one has got a segment. Its cursor is read
   * after that, and nothing else is asked about the segment before. A drained segment is given back once its `backlog` is
   * 0. Rejects when the signal aborts. Absent: all segments are this process's own.
   */
  claim?(segmentId: number, signal: AbortSignal): Promise<SegmentClaim>;
  /** The last position ever written in a segment, acknowledged or not; undefined in one that was never written (R12c). */
  lastPosition(segmentId: number): Promise<SourcePosition | undefined>;
  /**
   * The last position that the source itself counts as acknowledged for this remote; undefined when there is none. It
   * may lag behind what was acknowledged. Beyond it only where the source let entries go by itself, as a broker does
   * that expires them (R15).
   */
  acknowledged(segmentId: number): Promise<SourcePosition | undefined>;
  /** How many entries lie behind what is acknowledged for this remote. A rejection is an unknown, never a zero. */
  backlog(segmentId: number): Promise<number>;
  /**
   * The entries behind `after`, from the segment's first without it, in order; waits for the first one unless the
   * segment has ended, and sees a seal while it waits. Usually `after` is the last position read; after a failure it
   * lies further back. Rejects when the signal aborts.
   */
  read(
    segmentId: number,
    after: SourcePosition | undefined,
    options: ReadLimits & { readonly signal: AbortSignal },
  ): Promise<EntryRead>;
  /** Everything up to `position` need never be read again. It may be lost by a crash of the source. */
  acknowledge(segmentId: number, position: SourcePosition): Promise<void>;
  /** Gives up the subscription on all segments: the remote has left the topic's replication set. */
  release(): Promise<void>;
}
