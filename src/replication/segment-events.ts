/** What the machine of a segment is told, what it asks for, and what it says of itself. */
import type { Codecs, DecodeLimits, SourcePosition } from '../entry/index.js';
import type {
  CursorRecord,
  RemoteSupport,
  RemoteTopicLayout,
  SchemaTranslation,
  Send,
  SendResult,
  StoredEntry,
} from '../ports/index.js';
import type { SourceSegment } from '../rebatch/index.js';
import type { HoldReason, ReplicatorCounters } from './counters.js';
import type { Failure } from './failures.js';
import type { FoundCopy } from './found.js';
import type { StopReason } from './stop-reasons.js';

/** How a segment is replicated. Times in milliseconds, sizes in bytes; every member has a default. */
export interface SegmentOptions {
  readonly codecs: Codecs;
  /** The topic's message TTL: older entries are skipped and counted. Absent or 0: none are. */
  readonly ttlMs?: number | undefined;
  /** See `PathOptions.unkeyedBatches` (R4). */
  readonly unkeyedBatches?: 'inspect' | 'trust' | undefined;
  /** See `RebatchOptions.keepCodec` (R8). */
  readonly keepCodec?: boolean | undefined;
  readonly limits?: DecodeLimits | undefined;
  /** Schema versions are translated before an entry is stamped; default false: they go as they are. */
  readonly translateSchemas?: boolean | undefined;
  /** The most entries that are read and not settled; default 1,000. */
  readonly windowEntries?: number | undefined;
  /** The most bytes of entries that are read and not settled; default 64 MiB. One entry is read in any case. */
  readonly windowBytes?: number | undefined;
  /** Entries of one read; default 100. */
  readonly maxReadEntries?: number | undefined;
  /** The cursor is written once so many entries have been settled, default 1,000 ... */
  readonly cursorEntries?: number | undefined;
  /** ... or so long after the first of them; default 1,000. */
  readonly cursorDelayMs?: number | undefined;
  /** The first wait before something that failed is tried again, default 100; doubled every time ... */
  readonly retryInitialMs?: number | undefined;
  /** ... up to this; default 30,000. */
  readonly retryMaxMs?: number | undefined;
  /** How long a chunked message may stay incomplete before it is given up (R6); default 3,600,000. */
  readonly chunkExpiryMs?: number | undefined;
  /** How many entries may lie between the cursor and the last one read, behind an incomplete chunked message (R6); default 100,000. */
  readonly maxSpanEntries?: number | undefined;
}

export const DEFAULT_SEGMENT_OPTIONS = Object.freeze({
  windowEntries: 1_000,
  windowBytes: 64 * 1024 * 1024,
  maxReadEntries: 100,
  cursorEntries: 1_000,
  cursorDelayMs: 1_000,
  retryInitialMs: 100,
  retryMaxMs: 30_000,
  chunkExpiryMs: 3_600_000,
  maxSpanEntries: 100_000,
});

/** What a machine is made for. */
export interface SegmentReplicatorStart {
  readonly source: SourceSegment;
  readonly sourceCluster: string;
  /** The remote's largest entry, in bytes. */
  readonly maxEntryBytes: number;
  readonly supports: RemoteSupport;
  readonly options: SegmentOptions;
  /** The segment's cursor, with the session of this machine in it. */
  readonly record: CursorRecord;
  /** Shared by all segments of a replicator. */
  readonly counters: ReplicatorCounters;
}

/** What was found out about a sealed segment of the remote. */
export type Recovery =
  /** What its dedup state has of this producer; absent: nothing (R13). */
  | { readonly type: 'watermark'; readonly watermark?: SourcePosition | undefined }
  /**
   * What it holds up to its final end, absent where nothing is retained (R15), and the last position that the source ever
   * wrote in this segment, read after that.
   */
  | {
      readonly type: 'copies';
      readonly copies: readonly FoundCopy[];
      readonly end: SourcePosition | undefined;
      readonly lastPosition: SourcePosition | undefined;
    }
  | { readonly type: 'pruned' }
  | { readonly type: 'failed'; readonly reason: string }
  /** It cannot be read back any more. */
  | LaneStop;

export type SegmentEvent =
  /** All parents are drained. `acknowledged` is where the source's own cursor stands. */
  | { readonly type: 'start'; readonly acknowledged?: SourcePosition | undefined }
  | { readonly type: 'layout'; readonly layout: RemoteTopicLayout }
  | {
      readonly type: 'read';
      readonly readId: number;
      readonly entries: readonly StoredEntry[];
      readonly ended: boolean;
    }
  | { readonly type: 'readFailed'; readonly readId: number; readonly reason: string }
  | {
      readonly type: 'opened';
      readonly laneId: number;
      /** What the remote segment knows of this producer, for windows. */
      readonly watermark?: SourcePosition | undefined;
      /** The last position that the source ever wrote in this segment, read after the watermark. */
      readonly lastPosition?: SourcePosition | undefined;
      /** What was read back, and up to where (R15). */
      readonly copies?: readonly FoundCopy[] | undefined;
      readonly end?: SourcePosition | undefined;
    }
  | { readonly type: 'openFailed'; readonly laneId: number; readonly failure: Failure | LaneStop }
  | { readonly type: 'result'; readonly laneId: number; readonly result: SendResult }
  | { readonly type: 'recovered'; readonly segmentId: number; readonly recovery: Recovery }
  /** The last place of a remote segment as seen now: where an idle lane's checkpoint may stand (R15). */
  | { readonly type: 'end'; readonly segmentId: number; readonly at: SourcePosition }
  | { readonly type: 'granted' }
  | { readonly type: 'written' }
  | { readonly type: 'writeFailed'; readonly reason: string }
  | { readonly type: 'writeFenced'; readonly session: number }
  | { readonly type: 'translated'; readonly version: string; readonly translation: SchemaTranslation }
  | { readonly type: 'skip'; readonly position: SourcePosition }
  | { readonly type: 'pause' }
  | { readonly type: 'resume' }
  /** Settle what is in flight, write the cursor, and come to rest. */
  | { readonly type: 'stop' }
  | { readonly type: 'wake' };

/** An opening, or a question for what a segment has, that cannot succeed until an operator acts. */
export interface LaneStop {
  readonly type: Extract<StopReason, 'pinLost'> | 'superseded';
  readonly reason: string;
}

export type SegmentEffect =
  /** Answered by `read` or `readFailed` with this id; one is out at a time. */
  | {
      readonly type: 'read';
      readonly readId: number;
      readonly after: SourcePosition | undefined;
      readonly maxEntries: number;
      readonly maxBytes: number;
    }
  /** Answered by `opened` or `openFailed`. `checkpoint` is where reading back begins (R15). */
  | {
      readonly type: 'open';
      readonly laneId: number;
      readonly segmentId: number;
      readonly checkpoint: SourcePosition | undefined;
    }
  | { readonly type: 'close'; readonly laneId: number }
  /** Answered by one `result`. */
  | { readonly type: 'send'; readonly laneId: number; readonly send: Send }
  /** Answered by `recovered`: what a sealed segment has. */
  | { readonly type: 'recover'; readonly segmentId: number; readonly checkpoint: SourcePosition | undefined }
  /** Answered by `granted`: bytes of the slow-path budget; given back by `release`. */
  | { readonly type: 'acquire'; readonly bytes: number }
  | { readonly type: 'release' }
  /** Answered by `written`, `writeFailed` or `writeFenced`; one is out at a time. */
  | { readonly type: 'write'; readonly record: CursorRecord }
  /** Durably settled: the source need not keep it. */
  | { readonly type: 'acknowledge'; readonly position: SourcePosition }
  /** Answered by `translated`; `version` is the key of the answer. */
  | { readonly type: 'translate'; readonly version: string; readonly bytes: Uint8Array }
  /** Call with `wake` at this time; replaces the timer that was set. */
  | { readonly type: 'wake'; readonly atMs: number }
  | { readonly type: 'notice'; readonly notice: SegmentNotice }
  /** The segment is sealed and everything in it settled, durably. Nothing follows. */
  | { readonly type: 'drained' }
  /** After `stop`: nothing is outstanding. Nothing follows. */
  | { readonly type: 'stopped' };

/** Something an operator may want to know at once. */
export type SegmentNotice =
  | {
      readonly type: 'held';
      readonly position: SourcePosition;
      readonly reason: HoldReason;
      readonly message: string;
    }
  | { readonly type: 'skipped'; readonly position: SourcePosition; readonly reason: 'operator' }
  | { readonly type: 'stoppedBy'; readonly reason: StopReason; readonly message: string }
  /** The source let go of what lies behind `from` up to `to` before it was replicated. */
  | { readonly type: 'lostAtSource'; readonly from: SourcePosition | undefined; readonly to: SourcePosition }
  | { readonly type: 'chunksGivenUp'; readonly uuid: string; readonly position: SourcePosition };

/** What a segment is waiting for: one thing, the first that stands in the way. */
export type SegmentWait =
  /** Another process replicates it, or none does yet. */
  | { readonly for: 'claim' }
  | { readonly for: 'parents' }
  | { readonly for: 'layout' }
  /** The entries behind the last one. */
  | { readonly for: 'entries' }
  /** Answers of the remote to what was sent. */
  | { readonly for: 'results' }
  /** A remote segment's producer, or the end of a sealed one: what stands in its way if anything does. */
  | { readonly for: 'remoteSegment'; readonly segmentId: number; readonly reason: string }
  | { readonly for: 'budget' }
  /** The rate limit towards the remote. */
  | { readonly for: 'rateLimit' }
  | { readonly for: 'schema'; readonly reason: string }
  | { readonly for: 'cursor' }
  | { readonly for: 'source'; readonly reason: string }
  | { readonly for: 'operator'; readonly reason: StopReason; readonly message: string }
  | { readonly for: 'nothing' };

/** One source segment's place on its way to the remote. */
export interface SegmentReport {
  readonly segmentId: number;
  readonly state: 'waiting' | 'running' | 'stopped' | 'drained';
  readonly waitingFor: SegmentWait;
  /** The last settled position, durable or not yet. */
  readonly settled?: SourcePosition;
  /** Entries read and not settled. */
  readonly unsettledEntries: number;
  readonly unsettledBytes: number;
  /** Entries between the cursor and the last one read, settled ones behind unsettled ones included. */
  readonly spanEntries: number;
  readonly held?: { readonly position: SourcePosition; readonly reason: HoldReason; readonly message: string };
  readonly lanes: readonly LaneReport[];
}

/** The way to one remote segment. */
export interface LaneReport {
  readonly segmentId: number;
  readonly state: string;
  readonly inFlight: number;
  readonly queued: number;
  readonly failure?: string;
}
