/** Where a replicator writes: one topic of a remote cluster, segment by segment. */
import type { EntryBuffers, SourcePosition } from '../entry/index.js';
import type { Segment } from '../layout/index.js';
import type { RemoteLayout } from '../rebatch/index.js';
import type { StoredEntry } from './entry-source.js';

/** A remote's layout with the sealed segments that are not pruned yet: they may hold what was sent before. */
export interface RemoteTopicLayout extends RemoteLayout {
  /** All segments, sealed ones included. */
  readonly segments: ReadonlyMap<number, Segment>;
}

/** One entry, or part of one, for one remote segment. */
export interface Send {
  readonly position: SourcePosition;
  /** The position sent just before by this producer, since it was opened or had to begin anew (R12b). */
  readonly previous: SourcePosition | undefined;
  /** The lowest bucket hash among the messages, where it is known (R11). */
  readonly lowestHash: number | undefined;
  /**
   * While a chunked message is incomplete in this segment: the position before its first chunk, null when nothing
   * precedes it. A segment sealed in this state hands on no more than this (R6, R13). Absent otherwise.
   */
  readonly completeTo?: SourcePosition | null;
  readonly buffers: EntryBuffers;
}

/** A reason in the remote's or the transport's own words, for operators. */
export interface Reasoned<Type extends string> {
  readonly type: Type;
  readonly reason: string;
}

/**
 * Why something was not done, where that is no matter of one entry.
 * - `unavailable`: cannot be reached; certainly nothing was stored.
 * - `throttled`: closed by a quota or a rate limit of the remote.
 * - `fenced`: the producer's name is taken: another process sends, or an old connection has not ended.
 * - `unauthorized`: the credentials do not allow it.
 * - `unsupported`: the remote cannot take part at all.
 */
export type RemoteFailure = Reasoned<'unavailable' | 'throttled' | 'fenced' | 'unauthorized' | 'unsupported'>;

/** How a send ended. Every send gets one result; a result other than the first three settles nothing. */
export type SendResult =
  /** Stored, and where, if the remote tells. */
  | { readonly type: 'stored'; readonly at?: SourcePosition }
  /** It was stored already. */
  | { readonly type: 'duplicate' }
  /** Not stored: the messages with a bucket hash of at most `partial` are stored already. */
  | { readonly type: 'partial'; readonly partial: number }
  /** Not stored: the send named as the previous one is missing. */
  | { readonly type: 'gap' }
  /** Not stored: the segment is sealed, and a newer layout says where its keys go. A closed producer is not a seal. */
  | Reasoned<'sealed'>
  /** Not known to be stored: no answer in time, or the connection is cut. */
  | Reasoned<'ambiguous'>
  /** Not stored, and never will be as it is: by its content, or by its size. */
  | Reasoned<'rejected' | 'tooLarge'>
  | RemoteFailure;

/** How an opening ended. */
export type OpenResult =
  | {
      readonly type: 'opened';
      readonly producer: RemoteProducer;
      /**
       * The last position of this producer that the segment's dedup state has, whatever is incomplete before it; for
       * remotes with `dedup: 'window'`.
       */
      readonly watermark?: SourcePosition;
    }
  | Reasoned<'sealed'>
  | RemoteFailure;

/** The open producer of one source segment on one remote segment. Its name is a lock (R14). */
export interface RemoteProducer {
  /**
   * Sends without waiting. The results come one for each send, in the order of the sends. Where `supports.failStop`, a
   * send that fails fails all that are behind it already: by the same class where that is no matter of one entry, else
   * by `gap` or `ambiguous`, never by `rejected` or `tooLarge`, which would hold innocent entries. With a window the
   * replicator may begin anew on the same producer, by a send without `previous`; without one it opens a new one.
   */
  send(send: Send): void;
  /**
   * For remotes with `dedup: 'readBack'`: stores an entry that consumers never see, and tells where: whatever an
   * older connection of this producer had sent lies before it (R15). Rejects when that is not known.
   */
  barrier(): Promise<SourcePosition>;
  /** Gives the name back. Sends without a result get none any more. */
  close(): Promise<void>;
}

/** What a remote segment knows of one producer (R13). */
export type WatermarkResult =
  /** The position up to which it has everything that was sent to it; absent when that is nothing. */
  | { readonly type: 'known'; readonly watermark?: SourcePosition }
  /** The segment does not exist any more. */
  | { readonly type: 'pruned' }
  | RemoteFailure;

/** A durable subscription of the replicator's own on the remote topic, so that nothing is trimmed before it was read back (R15). */
export interface RemotePin {
  /** Where it stands in a segment: what lies behind can be read back. Undefined: at the segment's start. */
  position(segmentId: number): Promise<SourcePosition | undefined>;
  /** Moves it forward. */
  move(segmentId: number, position: SourcePosition): Promise<void>;
}

/** What a remote can do. */
export interface RemoteSupport {
  /**
   * How a send that is made twice is found out. `window`: the remote keeps a `DedupWindow` with each segment, as durable
   * as its entries, and checks every send. `readBack`: it keeps nothing, and the replicator reads its own copies back
   * before it sends (R15).
   */
  readonly dedup: 'window' | 'readBack';
  /** A failed send fails all that were sent behind it; without this promise one send is in flight at a time (R12b). */
  readonly failStop: boolean;
}

/** A remote topic, as one source cluster's replicator writes to it. Failures are values; a rejection is tried again. */
export interface RemoteTopic {
  /** The remote cluster's name. */
  readonly cluster: string;
  /** The largest entry that the remote stores, in bytes. */
  readonly maxEntryBytes: number;
  readonly supports: RemoteSupport;
  /** The layout now, and again after every change, until the signal aborts. */
  layouts(signal: AbortSignal): AsyncIterable<RemoteTopicLayout>;
  /** Opens the producer of a source segment on a segment; `onResult` is called once for each send, never before `open` resolves. */
  open(sourceSegmentId: number, segmentId: number, onResult: (result: SendResult) => void): Promise<OpenResult>;
  /**
   * What an unpruned segment has of a source segment; final once it is sealed. Never above the position before the
   * first chunk of a message that is incomplete in it (R6). For remotes with `dedup: 'window'`.
   */
  watermark(sourceSegmentId: number, segmentId: number): Promise<WatermarkResult>;
  /**
   * The stored entries of a segment behind `after` as far as they are retained, from its start without it, up to and including `through`, or to its
   * final end where it is sealed; barriers need not be
   * among them. Rejects when it cannot go on. For remotes with `dedup: 'readBack'`.
   */
  readBack(
    segmentId: number,
    range: { readonly after: SourcePosition | undefined; readonly through: SourcePosition | 'end' },
    signal: AbortSignal,
  ): AsyncIterable<readonly StoredEntry[]>;
  /** For remotes with `dedup: 'readBack'` that trim what all subscriptions have acknowledged. */
  readonly pin?: RemotePin;
}
