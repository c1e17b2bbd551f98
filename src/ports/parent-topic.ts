/** The topics that are copied to remotes, as their own broker has them. */
import type { AttachedParent, CheckedParent, Slab, SlabLimits } from '../sender/index.js';

/** What an attach has to know of a parent. */
export interface ParentTopic extends CheckedParent, Omit<AttachedParent, 'delayMs'> {
  /** It is a child itself. */
  readonly isChild: boolean;
}

/** Where a link begins: with what comes, with what its consumers have not taken, or with all that is kept. */
export type StartMode = 'latest' | 'unconsumed' | 'earliest';

/** How much of a partition lies behind an offset. */
export interface PartitionBacklog {
  /** Records at and behind the offset. */
  readonly records: number;
  /** When the first of them was stored, in milliseconds since the epoch; absent when there is none. */
  readonly oldestStoredMs?: number;
}

/** Reads parents. A rejection means that it cannot be read now: it is asked again, and nothing is lost. */
export interface ParentTopics {
  /** Undefined when there is no such topic. */
  describe(parent: string): Promise<ParentTopic | undefined>;
  /** One for each partition, as of now. */
  startOffsets(parent: string, from: StartMode): Promise<readonly number[]>;
  /**
   * What lies at and behind `offset`, at once; where nothing does, what comes within `waitMs`, and without that an empty
   * slab. A record whose delay is not over is not there yet. Rejects when the signal aborts.
   */
  read(
    place: { readonly parent: string; readonly partition: number; readonly offset: number },
    limits: SlabLimits,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Slab>;
  backlog(parent: string, partition: number, offset: number): Promise<PartitionBacklog>;
}
