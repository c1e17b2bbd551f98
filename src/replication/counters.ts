/** What a replicator counts. The names follow PIP-495, Monitoring. */
import type { IsthmusErrorCode } from '../errors.js';
import type { SkipReason } from '../rebatch/index.js';

/** Why an entry is held (R5): neither sent wrong nor dropped. */
export type HoldReason =
  | Extract<
      IsthmusErrorCode,
      'malformedEntry' | 'undecodableBatch' | 'encryptedBatch' | 'codecUnavailable' | 'checksumMismatch' | 'tooLarge'
    >
  /** The remote refuses it by its content. */
  | 'rejected'
  /** The remote cannot take its schema. */
  | 'incompatibleSchema';

/** Why an entry passed without a send: by the rules of the path, by an operator, or because the source lost it. */
export type PassReason = Exclude<SkipReason, 'done'> | 'operator';

/** Why something was sent that was stored already. */
export type DuplicateCause =
  /** Sent again after a restart, from the cursor. */
  | 'restart'
  /** Sent again after an answer that did not come. */
  | 'ambiguous'
  /** Sent again after a gap or a refusal made the lane begin anew. */
  | 'rewind';

/** Counts since a replicator was made. */
export interface ReplicatorCounters {
  /** Entries stored as they were, and their bytes with the stamp. */
  verbatimEntries: number;
  verbatimBytes: number;
  /** Source entries that were re-batched, the parts that were stored of them, and their bytes. */
  rebatchedEntries: number;
  parts: number;
  rebatchedBytes: number;
  /** Batches opened to look for keys (R4). */
  inspected: number;
  /** Sends that the remote had stored already, by cause. */
  duplicates: { [cause in DuplicateCause]?: number };
  /** Entries that were found on the remote before they were sent again (R13, R15). */
  foundStored: number;
  skipped: { [reason in PassReason]?: number };
  /** Times that an entry was held. */
  held: { [reason in HoldReason]?: number };
  /** Chunked messages that stayed incomplete and were given up (R6). */
  chunksGivenUp: number;
  /** Times that the source was found to have let go of entries that were not replicated. */
  lostAtSource: number;
}

export function newCounters(): ReplicatorCounters {
  return {
    verbatimEntries: 0,
    verbatimBytes: 0,
    rebatchedEntries: 0,
    parts: 0,
    rebatchedBytes: 0,
    inspected: 0,
    duplicates: {},
    foundStored: 0,
    skipped: {},
    held: {},
    chunksGivenUp: 0,
    lostAtSource: 0,
  };
}

/** Adds one under a name. */
export function count<Name extends string>(counts: { [name in Name]?: number }, name: Name): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
