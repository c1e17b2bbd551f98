/** One source entry on its way, with the sends that carry it and the chunked message that it is part of. */
import type { Entry, SourcePosition } from '../entry/index.js';
import type { Send } from '../ports/index.js';
import type { Rectangle } from '../rebatch/index.js';
import type { DuplicateCause, HoldReason } from './counters.js';

export interface EntryRecord {
  /** Counts entries of this segment since the machine was made. */
  readonly index: number;
  readonly position: SourcePosition;
  readonly length: number;
  /** Absent when it is settled, or a stored chunk: read again when needed. */
  bytes: Uint8Array | undefined;
  entry: Entry | undefined;
  /** Waits to be planned, or planned anew. */
  needsPlan: boolean;
  /** What of it is on its way. */
  sends: LaneSend[];
  /** What of it was acknowledged; undefined when nothing was. */
  done: Rectangle[] | undefined;
  settled: boolean;
  held: Hold | undefined;
  /** It was re-batched at least once. */
  rebatched: boolean;
  /** Why some of it may be stored already. */
  repeated: DuplicateCause | undefined;
  /** The incomplete message that it is a chunk of (R6). */
  message: ChunkedMessage | undefined;
  /** A chunk that belongs to no message, or to one that was given up. */
  isAlone: boolean;
}

/** Why an entry is held (R5). */
export interface Hold {
  readonly reason: HoldReason;
  readonly message: string;
  /** When the TTL passes it; absent when that is not known. */
  readonly expiresAtMs?: number | undefined;
}

/** A send of which some is settled only when it goes: its predecessor, and what is incomplete then. */
export type MutableSend = { -readonly [Member in keyof Send]: Send[Member] };

/** What one send carries of an entry. */
export interface LaneSend {
  readonly record: EntryRecord;
  /** The share of the entry; undefined: all of it. */
  readonly rectangle: Rectangle | undefined;
  /** `previous` and `completeTo` are set when it is sent. */
  readonly send: MutableSend;
  readonly bytes: number;
}

/** A message of which the first chunk was read and not every chunk is stored (R6). */
export interface ChunkedMessage {
  readonly uuid: string;
  readonly numChunks: number;
  readonly openedAtMs: number;
  readonly first: SourcePosition;
  /** The position before its first chunk; undefined when nothing precedes it. */
  readonly before: SourcePosition | undefined;
  /** In the order of the chunks. */
  readonly records: EntryRecord[];
  /** Where its chunks go; undefined while none was sent under the present layout. */
  segmentId: number | undefined;
  readonly stored: Set<EntryRecord>;
}
