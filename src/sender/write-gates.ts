/** The gates that a write of a remote, or of a link, passes before it is proposed, as functions of what was read for them. */

/** The highest type of a metadata entry that remotes are written with; a member that applies less would lose them. */
export const REMOTE_ENTRY_TYPE = 37;

export type GateAnswer =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly status: 412;
      readonly class: 'old_release' | 'node_insecure' | 'hop_unencrypted' | 'weak_secret' | 'unreadable';
      /** Who falls short; the reason instead where nothing could be read. */
      readonly nodes: readonly string[];
      readonly reason?: string;
    };

const ALLOWED: GateAnswer = Object.freeze({ allowed: true });

function refusedBy(name: Extract<GateAnswer, { allowed: false }>['class'], nodes: readonly string[] = []): GateAnswer {
  return { allowed: false, status: 412, class: name, nodes };
}

/** A member as the cluster's metadata has it, alive or dead. */
export interface MemberRelease {
  readonly node: string;
  /** The highest entry type that its release applies. */
  readonly entryTypes: number;
}

/** What the release gate reads. */
export type ReleaseReading =
  | { readonly members: readonly MemberRelease[]; readonly raftServers: readonly string[] }
  | { readonly error: string };

/**
 * Every member applies the entries of remotes, those that are down included, and so does every server of the consensus
 * group without a record of its release: it is named as one that falls short. Nothing is written another way.
 */
export function releaseGate(reading: ReleaseReading): GateAnswer {
  if ('error' in reading) {
    return { allowed: false, status: 412, class: 'unreadable', nodes: [], reason: reading.error };
  }
  const { members, raftServers } = reading;
  const known = new Set(members.map(({ node }) => node));
  const short = members.find(({ entryTypes }) => entryTypes < REMOTE_ENTRY_TYPE)?.node;
  const first = short ?? raftServers.find((server) => !known.has(server));
  return first === undefined ? ALLOWED : refusedBy('old_release', [first]);
}

/** What a member says of itself within 5 s; undefined when it did not. */
export interface Posture {
  readonly securityOn: boolean;
  /** Its token can be replayed, so that anybody who hears it could forge a write. */
  readonly legacyAuth: boolean;
  /** Reported only. */
  readonly raftTls: boolean;
}

/** The release gate, and then every member with security on and legacy authentication off. */
export function postureGate(release: GateAnswer, postures: ReadonlyMap<string, Posture | undefined>): GateAnswer {
  if (!release.allowed) return release;
  const members = [...postures];
  const silent = members.filter(([, posture]) => posture === undefined).map(([node]) => node);
  if (silent.length > 0) return refusedBy('old_release', silent);
  const insecure = members.filter(([, posture]) => posture?.securityOn !== true || posture.legacyAuth);
  return insecure.length === 0
    ? ALLOWED
    : refusedBy(
        'node_insecure',
        insecure.map(([node]) => node),
      );
}

/** What the node knows that takes a write. */
export interface Hop {
  /** It is attested that the way to this node is encrypted. */
  readonly apiHopEncrypted: boolean;
  readonly isSecretStrong: boolean;
}

/** A body with a password may only come over an encrypted hop, and only to a node whose secret can seal it. */
export function hopGate({ apiHopEncrypted, isSecretStrong }: Hop): GateAnswer {
  if (!apiHopEncrypted) return refusedBy('hop_unencrypted');
  return isSecretStrong ? ALLOWED : refusedBy('weak_secret');
}

/** The writes of remotes and of links. */
export type RemoteWrite =
  | 'create'
  | 'password_change'
  | 'update'
  | 'reencrypt'
  | 'attach'
  | 'resume'
  | 'pause'
  | 'skip'
  | 'remote_delete'
  | 'link_delete';

export type WriteGate = 'hop' | 'release' | 'posture' | 'unshipped';

/** Which gates stand in front of a write, in order. The posture gate asks members, so what must work with one down has none. */
export const WRITE_GATES: Readonly<Record<RemoteWrite, readonly WriteGate[]>> = Object.freeze({
  create: ['hop', 'release', 'posture'],
  password_change: ['hop', 'release', 'posture'],
  update: ['release', 'posture'],
  reencrypt: ['release', 'posture'],
  attach: ['release', 'posture'],
  resume: ['release', 'posture'],
  pause: ['release'],
  skip: ['release'],
  remote_delete: ['release'],
  link_delete: ['unshipped'],
});

const MINUTE_MS = 60_000;
const REMOTE_WRITES = 10;
const LINK_WRITES = 60;

/** How many writes a node takes: 10 of remotes in any minute, 60 of links in each. */
export class WritePace {
  private remoteWrites: number[] = [];
  private window = 0;
  private linkWrites = 0;

  /** Takes a write of a remote; otherwise how long is to be waited, in milliseconds. */
  remoteWrite(nowMs: number): 'taken' | { readonly retryAfterMs: number } {
    this.remoteWrites = this.remoteWrites.filter((atMs) => nowMs - atMs < MINUTE_MS);
    const [oldest] = this.remoteWrites;
    if (oldest !== undefined && this.remoteWrites.length >= REMOTE_WRITES) {
      return { retryAfterMs: oldest + MINUTE_MS - nowMs };
    }
    this.remoteWrites.push(nowMs);
    return 'taken';
  }

  /** The same for a write of a link. */
  linkWrite(nowMs: number): 'taken' | { readonly retryAfterMs: number } {
    const window = Math.floor(nowMs / MINUTE_MS);
    if (window !== this.window) this.linkWrites = 0;
    this.window = window;
    if (this.linkWrites >= LINK_WRITES) return { retryAfterMs: (window + 1) * MINUTE_MS - nowMs };
    this.linkWrites++;
    return 'taken';
  }
}
