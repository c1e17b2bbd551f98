/** What a replicator is told, and what it can say of itself: shared by the topic's replicator and its segments. */
import type { Codecs, DecodeLimits, SourcePosition } from '../entry/index.js';
import type { IsthmusErrorCode } from '../errors.js';
import type { SkipReason } from '../rebatch/index.js';

/** Why an entry is held (R5): neither sent wrong nor dropped, until the layout changes or an operator skips it. */
export type HoldReason = Extract<
  IsthmusErrorCode,
  'malformedEntry' | 'undecodableBatch' | 'encryptedBatch' | 'codecUnavailable' | 'checksumMismatch' | 'tooLarge'
>;

/** How a replicator decides. */
export interface ReplicatorOptions {
  /** What opens and writes batches on the slow path; see `defaultCodecs`. */
  readonly codecs: Codecs;
  /** The topic's message TTL in milliseconds: older entries are skipped and counted. Absent or 0: none are. */
  readonly ttlMs?: number | undefined;
  /** See `PathOptions.unkeyedBatches` (R4). */
  readonly unkeyedBatches?: 'inspect' | 'trust' | undefined;
  /** See `RebatchOptions.keepCodec` (R8). */
  readonly keepCodec?: boolean | undefined;
  readonly limits?: DecodeLimits | undefined;
  /** Names this replicator in the report of the slow-path budget; no two that share a budget have the same. */
  readonly name?: string;
  /** Entries of one read; default 100. */
  readonly maxReadEntries?: number;
  /** Wait before an unreachable remote is tried again, in milliseconds; default 100. */
  readonly retryDelayMs?: number;
}

/** What a replicator has done since it was made. */
export interface ReplicatorCounters {
  verbatimEntries: number;
  verbatimBytes: number;
  /** Source entries that were re-batched. */
  rebatchedEntries: number;
  /** What they became. */
  parts: number;
  rebatchedBytes: number;
  /** Batches opened to look for keys (R4). */
  inspected: number;
  /** Sends that the remote had stored already. */
  duplicates: number;
  /** Entries passed without a send, by reason; `operator` counts those that `skip` let pass. */
  skipped: { [reason in SkipReason | 'operator']?: number };
  /** Times that an entry was held, by reason. */
  held: { [reason in HoldReason]?: number };
}

/** One source segment's place on its way to the remote. */
export interface SegmentStatus {
  readonly segmentId: number;
  readonly state:
    | 'waitingForParents'
    | 'reading'
    | 'throttled'
    | 'sending'
    | 'held'
    | 'unavailable'
    | 'drained'
    | 'failed';
  /** The last acknowledged position. */
  readonly cursor?: SourcePosition;
  readonly held?: { readonly position: SourcePosition; readonly reason: HoldReason; readonly message: string };
  /** What ended a failed segment: a defect of an adapter, since failures of the outside world are not errors. */
  readonly error?: unknown;
}
