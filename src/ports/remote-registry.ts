/** What a cluster's metadata says of its remotes and of the links to them, as a node of it sees them. */
import type { RegisteredRemote } from '../credentials/index.js';
import type { LinkRecord, RemoteLimits, SkipEntry } from '../sender/index.js';

/** How a remote is used. Every member counts for itself. */
export interface StoredLimits extends RemoteLimits {
  /** An idle connection is closed after so long: 1,000 to 300,000 ms, default 30,000. */
  readonly idleConnTimeoutMs: number;
  /** An older connection serves no further request: 10,000 to 3,600,000 ms, default 300,000. */
  readonly connMaxAgeMs: number;
}

/** A remote as it is stored: no secret in it is readable without the cluster's key. */
export interface StoredRemote extends RegisteredRemote {
  /** The certificates of the remote's own authority, which alone are trusted then; PEM. What the credential is bound to. */
  readonly caPem?: string;
  readonly limits: StoredLimits;
}

/** A link as it is stored. */
export interface StoredLink extends LinkRecord {
  /** By partition of the parent: where a cursor begins that was never written. */
  readonly startOffsets: readonly number[];
  /** How long the parent keeps a record, in milliseconds; 0 keeps everything. */
  readonly retentionMs: number;
}

/** One change of a link, to be written as one entry of the metadata. */
export type LinkWrite =
  /** The metadata gives it the next attach epoch, and refuses a child's name that is taken. */
  | { readonly type: 'attach'; readonly link: Omit<StoredLink, 'attachEpoch'>; readonly delayMs: number }
  /** Not paused any more, and this is the target's ID. */
  | { readonly type: 'resume'; readonly child: string; readonly attachEpoch: number; readonly targetId: string }
  | { readonly type: 'pause'; readonly child: string; readonly attachEpoch: number; readonly reason: string }
  | { readonly type: 'skip'; readonly child: string; readonly attachEpoch: number; readonly skip: SkipEntry };

/** What came of a write. */
export type LinkWriteAnswer =
  | { readonly type: 'written' }
  /** Nothing was written: somebody else was first, or a rule of the metadata says no. `reason` is for operators. */
  | { readonly type: 'refused'; readonly reason: string };

export interface RemoteRegistry {
  /** Another number with every change of a remote or a link. Asked every 100 ms, so it must be cheap. */
  version(): number;
  /** Everything, as of some version from the one that was told on. A rejection: what is known stays, and it is asked again. */
  read(): Promise<{ readonly remotes: readonly StoredRemote[]; readonly links: readonly StoredLink[] }>;
  /** Applied on this node when it resolves. A rejection: not known to be written. */
  write(change: LinkWrite): Promise<LinkWriteAnswer>;
}
