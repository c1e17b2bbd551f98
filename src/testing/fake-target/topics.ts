/** What a fake target has: its topics and users, and which release of the broker it stands for. */
import { IsthmusError, show } from '../../errors.js';

/** A message as it came. */
export interface SentMessage {
  /** Empty: it has none. */
  readonly key: Uint8Array;
  /** The bytes that are stored: JSON is not written anew. */
  readonly payload: Uint8Array;
  /** Whether it came as JSON, not as base64. */
  readonly isRaw: boolean;
}

/** A child of a topic, as the listing shows it. */
export interface TargetChild {
  readonly name: string;
  readonly delayMs?: number;
  /** Where it sends to, if it is a remote child. */
  readonly remote?: { readonly name: string; readonly topic: string; readonly targetId?: string };
}

/** A topic of the target. All of it may be changed while the target runs. */
export interface TargetTopic {
  /** 16 lower-case hexadecimal digits; empty: it has none, as topics of old releases. */
  id: string;
  partitions: number;
  retentionMs: number;
  /** Unix seconds. */
  createdAt: number;
  /** Its parent, if it is a child itself. */
  parent: string;
  /** Above 0: a delay child, which takes no messages. */
  fanoutDelayMs: number;
  /** The remote that it stands for: a stub, which takes no messages. */
  remote: { readonly name: string; readonly topic: string } | undefined;
  /** A JSON schema, or undefined. It is shown; what it refuses, `refuses` says. */
  schema: unknown;
  children: readonly TargetChild[];
  /** Says which messages its schema does not take. */
  refuses: (message: SentMessage) => boolean;
}

/** What a user may do with topics: `topic` is a name, or the start of names before a `*`. */
export interface TargetGrant {
  readonly action: 'produce' | 'consume' | 'create' | 'admin';
  readonly topic: string;
}

/** A user of the target; an administrator may do everything. */
export interface TargetUser {
  password: string;
  isAdmin: boolean;
  grants: readonly TargetGrant[];
}

/** What the broker can do, and its limits. All of it may be changed while the target runs. */
export interface TargetSettings {
  /** Batch produce; without it the route is missing. */
  hasBatch: boolean;
  /** The most messages of a batch. */
  maxMessages: number;
  /** The largest body in bytes, as sent and as decoded. */
  maxBodyBytes: number;
  /** The largest payload in bytes, decoded. */
  maxPayloadBytes: number;
  /** zstd and gzip are read; without it, the encoding is not even looked at. */
  readsEncodings: boolean;
  /** The listing has `parent_id`. */
  servesIds: boolean;
  /** The listing shows which children are remote. */
  showsRemotes: boolean;
  /** The listing of children; without it the route is missing. */
  hasListing: boolean;
  /** The listing of users; without it the route is missing. */
  hasUsers: boolean;
  /** Off: whoever calls may do everything. */
  isSecure: boolean;
  /** Wrong passwords are throttled: five of a user, then one in 12 s; 32 of all, refilled at four a second. */
  throttlesLogins: boolean;
  /** Batches of one user at a time; 0: any number. */
  maxInFlightPerUser: number;
  /** Bytes of batches above 1 MiB at a time; 0: any number. */
  maxBodyBytesInFlight: number;
}

export type TargetRelease = '3.0' | '3.1' | '3.2';

const MIB = 1024 * 1024;

const NEWEST: TargetSettings = {
  hasBatch: true,
  maxMessages: 1000,
  maxBodyBytes: 16 * MIB,
  maxPayloadBytes: MIB,
  readsEncodings: true,
  servesIds: true,
  showsRemotes: true,
  hasListing: true,
  hasUsers: true,
  isSecure: true,
  throttlesLogins: true,
  maxInFlightPerUser: 0,
  maxBodyBytesInFlight: 256 * MIB,
};
const BEFORE_REMOTES = { servesIds: false, showsRemotes: false, readsEncodings: false, maxMessages: 100 };

/** Releases of the broker: without batch produce (3.0), with batches of 100 (3.1), and with remote children (3.2). */
export const TARGET_RELEASES: Readonly<Record<TargetRelease, Readonly<TargetSettings>>> = Object.freeze({
  '3.0': { ...NEWEST, ...BEFORE_REMOTES, maxBodyBytes: MIB, hasBatch: false },
  '3.1': { ...NEWEST, ...BEFORE_REMOTES, maxBodyBytes: MIB },
  '3.2': NEWEST,
});

const TOPIC_NAME = /^[A-Za-z0-9._-]{1,200}$/;

/** A topic with what is not said filled in. Throws `invalidArgument` for a partition count outside 1 to 108. */
export function topicOf(name: string, said: Partial<TargetTopic> = {}): TargetTopic {
  if (!TOPIC_NAME.test(name) || name === '.' || name === '..') {
    throw new IsthmusError('invalidArgument', `topic ${show(name)}: it must be 1 to 200 of A-Z a-z 0-9 . _ -`);
  }
  const topic: TargetTopic = {
    id: '00000000000000aa',
    partitions: 3,
    retentionMs: 0,
    createdAt: 1_700_000_000,
    parent: '',
    fanoutDelayMs: 0,
    remote: undefined,
    schema: undefined,
    children: [],
    refuses: () => false,
    ...said,
  };
  if (!Number.isSafeInteger(topic.partitions) || topic.partitions < 1 || topic.partitions > 108) {
    throw new IsthmusError('invalidArgument', `partitions ${show(topic.partitions)}: it must be 1 to 108`);
  }
  return topic;
}

/** Whether a user may do this with a topic, or, without an action, anything at all. */
export function mayDo(user: TargetUser, topic: string, action?: TargetGrant['action']): boolean {
  if (user.isAdmin) return true;
  return user.grants.some((grant) => {
    if (action !== undefined && grant.action !== action) return false;
    return grant.topic.endsWith('*') ? topic.startsWith(grant.topic.slice(0, -1)) : grant.topic === topic;
  });
}
