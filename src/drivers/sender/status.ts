/** How a sender stands: its remotes, its links, and the cursors that run on this node. */
import type { CredentialKeys, SealCounts } from '../../credentials/index.js';
import type { Clock } from '../../ports/index.js';
import {
  type CursorReport,
  foldLink,
  type LinkReport,
  type LinkSummary,
  type NodeReport,
  type RemoteReport,
  type SenderState,
} from '../../sender/index.js';
import type { CursorPlaces } from './cursor-places.js';
import type { RegistryFollower } from './registry-follower.js';
import type { DialCounts, HttpsTransport } from './transport.js';

export interface RemoteStanding {
  readonly remote: string;
  /** Whether this node can use it at all. */
  readonly state: 'ready' | SenderState;
  readonly credentialVersion?: number;
  /** Tells one password from another. */
  readonly fingerprint?: string;
  /** The node's current key sealed its credential; if not, it is to be sealed anew before the previous key goes. */
  readonly isKeyCurrent: boolean;
  /** When its password was set, in milliseconds since the epoch; absent where the metadata does not say. */
  readonly passwordSetMs?: number;
  readonly dials: DialCounts;
  /** Absent before the machine was told of it. */
  readonly report?: RemoteReport;
}

/** A key of this node, as the metadata counts its seals. */
export interface KeyStanding {
  readonly key: 'current' | 'previous';
  /** Refused seals count too; from `SEAL_WARNING` on the master secret should be rotated, at `SEAL_LIMIT` the key is spent. */
  readonly seals: number;
  /** When the first was proposed, in milliseconds since the epoch; absent without any. */
  readonly firstSealMs?: number;
}

/** A partition of a link on this node. */
export interface CursorStanding extends CursorReport {
  /** Records that are not sent yet, as of some seconds ago. */
  readonly lagMessages?: number;
}

export interface LinkStanding {
  readonly child: string;
  readonly parent: string;
  readonly remote: string;
  readonly topic: string;
  readonly paused: boolean;
  readonly retentionMs: number;
  /** Over the partitions that this node owns; a host folds those of all owners by `foldLink`. */
  readonly summary: LinkSummary;
  readonly cursors: readonly CursorStanding[];
  readonly report?: LinkReport;
}

export interface RemoteSenderStatus {
  readonly state: 'idle' | 'running' | 'stopping' | 'stopped';
  readonly node: string;
  /** When this was so, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** OpenSSL's names of the key exchanges that remotes are offered, with a colon between them. */
  readonly keyExchange: string;
  readonly hasAllowedHosts: boolean;
  /** Bytes that waiting lanes keep in memory. */
  readonly heldBytes: number;
  /** Times that a sealed credential was opened, or tried to. */
  readonly credentialDecrypts: number;
  /** Passwords that were sealed with these `CredentialKeys`, re-encryptions included. */
  readonly credentialSeals: number;
  /** Times that they opened a credential, or tried to, to seal it under the current key. */
  readonly resealOpens: number;
  /** Empty where the host does not tell of seals. */
  readonly keys: readonly KeyStanding[];
  readonly remotes: readonly RemoteStanding[];
  readonly links: readonly LinkStanding[];
}

export interface StatusParts {
  readonly state: RemoteSenderStatus['state'];
  readonly node: string;
  readonly report: NodeReport;
  readonly follower: RegistryFollower;
  readonly places: CursorPlaces;
  readonly transport: HttpsTransport;
  readonly clock: Clock;
  readonly hasAllowedHosts: boolean;
  readonly keys: CredentialKeys;
  readonly sealCounts: SealCounts | undefined;
}

export function statusOf(parts: StatusParts): RemoteSenderStatus {
  const { state, node, report, follower, transport, hasAllowedHosts, keys } = parts;
  return {
    state,
    node,
    nowMs: parts.clock.now(),
    keyExchange: transport.keyExchange.groups,
    hasAllowedHosts,
    heldBytes: report.remoteHeldBytes,
    credentialDecrypts: follower.decrypts,
    credentialSeals: keys.seals,
    resealOpens: keys.resealOpens,
    keys: keyStandings(parts),
    remotes: [...follower.remotes.keys()].map((remote) => remoteStanding(parts, remote)),
    links: [...follower.links.keys()].map((child) => linkStanding(parts, child)).filter((link) => link !== undefined),
  };
}

function keyStandings({ keys, sealCounts }: StatusParts): KeyStanding[] {
  if (sealCounts === undefined) return [];
  return (['current', 'previous'] as const).flatMap((key) => {
    const kv = keys[key]?.kv;
    if (kv === undefined) return [];
    const counted = sealCounts[kv];
    return counted === undefined ? { key, seals: 0 } : { key, seals: counted.count, firstSealMs: counted.firstSealMs };
  });
}

function remoteStanding({ follower, transport, report }: StatusParts, remote: string): RemoteStanding {
  const lookup = follower.lookup(remote);
  const fingerprint = follower.fingerprint(remote);
  const counted = report.remotes[remote];
  const passwordSetMs = follower.remotes.get(remote)?.passwordSetMs;
  return {
    remote,
    state: lookup.state,
    ...(lookup.state === 'ready' && { credentialVersion: lookup.credentialVersion }),
    ...(fingerprint !== undefined && { fingerprint }),
    isKeyCurrent: follower.isKeyCurrent(remote),
    ...(passwordSetMs !== undefined && { passwordSetMs }),
    dials: dialCounts(transport, remote),
    ...(counted !== undefined && { report: counted }),
  };
}

function dialCounts({ dials }: HttpsTransport, remote: string): DialCounts {
  const counts = dials.get(remote);
  return { ...counts, refused: { ...counts?.refused } };
}

function linkStanding({ follower, places, report, clock }: StatusParts, child: string): LinkStanding | undefined {
  const link = follower.links.get(child);
  if (link === undefined) return undefined;
  const { parent, remote, topic, paused, retentionMs } = link;
  const cursors = report.cursors
    .filter((cursor) => cursor.child === child)
    .map((cursor): CursorStanding => {
      const backlog = places.backlog(cursor.cursor);
      if (backlog === undefined) return cursor;
      const { records, oldestStoredMs } = backlog;
      // What is in hand is as it is now; without any, the last look at the parent tells.
      return {
        ...(oldestStoredMs !== undefined && { oldestUnsentMs: oldestStoredMs }),
        ...cursor,
        lagMessages: records,
      };
    });
  const counted = report.links[child];
  return {
    ...{ child, parent, remote, topic, paused, retentionMs, cursors },
    summary: foldLink(cursors, { retentionMs, nowMs: clock.now() }),
    ...(counted !== undefined && { report: counted }),
  };
}
