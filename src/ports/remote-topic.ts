/** Where a replicator writes: one topic of a remote cluster, segment by segment. */
import type { EntryBuffers, SourcePosition } from '../entry/index.js';
import type { RemoteLayout } from '../rebatch/index.js';

/** One entry, or part of one, for one remote segment. */
export interface Send {
  /** The source segment: with the source cluster it names the producer (R14). */
  readonly sourceSegmentId: number;
  readonly position: SourcePosition;
  /** The position sent just before to the same remote segment, since the lane was opened or rewound (R12b). */
  readonly previous: SourcePosition | undefined;
  /** The lowest bucket hash among the messages, where it is known (R11). */
  readonly lowestHash: number | undefined;
  readonly buffers: EntryBuffers;
}

/** How a send ended. Failures of the outside world are values; a rejected promise is a defect of the adapter. */
export type SendResult =
  | { readonly type: 'stored' }
  /** It was stored already. */
  | { readonly type: 'duplicate' }
  /** Not stored: the send named as the previous one is missing. */
  | { readonly type: 'gap' }
  /** Not stored: the messages with a bucket hash of at most `partial` are stored already. */
  | { readonly type: 'partial'; readonly partial: number }
  /** Not stored: the segment is sealed, and a newer layout says where its keys go. */
  | { readonly type: 'sealed' }
  /** Not known to be stored: the remote cannot be reached or did not answer. */
  | { readonly type: 'unavailable'; readonly reason: string };

/** A remote topic, as one source cluster's replicator writes to it. */
export interface RemoteTopic {
  /** The remote cluster's name. */
  readonly cluster: string;
  /** The largest entry that the remote stores, in bytes. */
  readonly maxEntryBytes: number;
  /** The layout now, and again after every change, until the signal aborts. */
  layouts(signal: AbortSignal): AsyncIterable<RemoteLayout>;
  /** Offers one entry to one segment. The caller has one send in flight per source segment and remote segment. */
  send(segmentId: number, send: Send): Promise<SendResult>;
}
