/** What the sender takes in from around it: records and their sources, remotes and links, requests and their outcomes. */
import type { SourceRecord } from './record.js';
import type { LookupState } from './states.js';

/** Numbers in [0, 1): what waits and intervals are spread by. */
export interface Jitter {
  next(): number;
}

/** A request of the sender. A driver adds the base URL, the credential and the names of the client. */
export interface SenderRequest {
  readonly method: 'GET' | 'POST';
  /** Below the remote's base URL; begins with `/v1/`. */
  readonly path: string;
  /** JSON; with `encoding` compressed. */
  readonly body?: Uint8Array;
  readonly encoding?: 'zstd';
  /** Left out in one check only, which proves that the target asks for it. */
  readonly authorized: boolean;
  /** `chunk`: the large pool; `side`: checks, listings and probes, which take no slot. */
  readonly pool: 'chunk' | 'side';
  /** The answer's body is cut here, in bytes; a longer one is no error. */
  readonly answerBytes: number;
}

/** What a transport tells of a request. Every request gets exactly one. */
export type HttpOutcome =
  | HttpAnswer
  /** The address guard refused the dial. */
  | { readonly type: 'refused' }
  /** The peer's certificate, its name, its chain, or what it spoke was not TLS as it must be. */
  | { readonly type: 'tls' }
  /** Anything else between the dial and the answer's headers; `timeout` when a time limit ended it, the dial's included. */
  | { readonly type: 'failed'; readonly timeout: boolean }
  /** Certainly nothing left this node: its credential is not the current one any more, or the sender stops. */
  | { readonly type: 'notSent' };

export interface HttpAnswer {
  readonly type: 'answer';
  readonly status: number;
  readonly contentType: string | undefined;
  readonly retryAfter: string | undefined;
  /** As far as it came: an error after the headers leaves it cut. */
  readonly body: Uint8Array;
  /** The end of the server certificate, in milliseconds since the epoch, where the transport tells. */
  readonly certificateEndMs?: number;
}

/** The limits of a remote that the sender itself needs. */
export interface RemoteLimits {
  /** Requests with records at a time, per node: 1 to 256, default 16. */
  readonly maxInFlight: number;
  /** 5,000 to 120,000, default 30,000. */
  readonly requestTimeoutMs: number;
  /** 10,000 to 3,600,000, default 60,000. */
  readonly checkIntervalMs: number;
  readonly compression: 'none' | 'zstd';
}

/** What this node knows of a remote. */
export type RemoteLookup =
  | {
      readonly state: 'ready';
      /** 16 hexadecimal digits: a remote that was made anew under the same name has another. */
      readonly remoteId: string;
      readonly credentialVersion: number;
      readonly limits: RemoteLimits;
    }
  | { readonly state: LookupState };

/** A record that an administrator lets pass unsent, once it is the one that a lane is blocked on. */
export interface SkipEntry {
  readonly partition: number;
  readonly offset: number;
}

/** One attachment of a parent topic to a topic of a remote, as the cluster's metadata has it. */
export interface LinkRecord {
  readonly parent: string;
  readonly child: string;
  /** Another attachment of the same child has another epoch; cursors of the old one end. */
  readonly attachEpoch: number;
  readonly remote: string;
  /** The topic there. */
  readonly topic: string;
  /** The topic's ID there when it was attached; empty when the target served none. */
  readonly targetId: string;
  readonly lanes?: number;
  readonly paused: boolean;
  readonly skips: readonly SkipEntry[];
}

/** What a read of a parent's partition brings. */
export interface Slab {
  /** In order; without records when the partition has none yet. */
  readonly records: readonly SourceRecord[];
  /** Where the next read begins, once these are sent. */
  readonly nextOffset: number;
  /** Records that the parent's retention took before they were read: offsets, both included. */
  readonly lost?: { readonly from: number; readonly to: number };
}

/** How much a read brings at most; one record in any case. */
export interface SlabLimits {
  readonly maxRecords: number;
  /** Payload and key bytes together. */
  readonly maxBytes: number;
}
