/**
 * What a member of the cluster looks at before a link is attached or resumed, or when a remote is tested: with its own
 * credential and its own connections, so that it meets exactly what sending will meet. The first check that fails ends
 * the run.
 */
import {
  childrenListing,
  describeRequest,
  jsonObject,
  listingRequest,
  type ReadClass,
  readClass,
  readRequest,
} from './answers.js';
import { emptyBatchClass, emptyBatchRequest } from './capabilities.js';
import type { HttpOutcome, SenderRequest } from './ports.js';
import type { LookupState } from './states.js';

/** How a check fails. */
export type CheckClass =
  | ReadClass
  | LookupState
  | 'old_release'
  | 'unreachable'
  | 'stale'
  | 'target_disagreement'
  | 'target_security_off'
  | 'admin_credential'
  | 'target_is_source'
  | 'target_is_delay_child'
  | 'target_is_stub'
  | 'target_has_remote_children'
  | 'schema_mismatch'
  | 'no_batch_produce';

/** What is no reason to refuse, and worth telling. */
export type CheckWarning =
  | 'certificate_ends_soon'
  | 'target_has_schema'
  | 'no_loop_detection'
  | 'no_topic_id'
  | 'users_not_served'
  | 'short_retention'
  | 'small_batches';

/** The parent, as far as a target may not be it, or differ from it. */
export interface CheckedParent {
  readonly name: string;
  /** Empty when it has none. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** JSON text, where the topic has a schema. */
  readonly schema?: string;
}

export interface MemberQuestion {
  /** The topic on the target. */
  readonly topic: string;
  readonly parent: CheckedParent;
  readonly credentialVersion: number;
  /** Hosts are restricted, so times may be told: they say nothing about hosts that nobody allowed. */
  readonly hasAllowedHosts: boolean;
  readonly nowMs: number;
}

/** What a member's run leans on. Failures are values; the whole run is bounded by whoever makes it, at 15 s. */
export interface MemberPorts {
  /** Security on, and no legacy authentication. */
  isSecure(): boolean;
  lookup(): { readonly state: 'ready'; readonly credentialVersion: number } | { readonly state: LookupState };
  /** Connects through the guard and closes; TLS is proven by the next request. */
  connect(): Promise<{ readonly type: 'connected'; readonly ms: number } | Exclude<HttpOutcome, { type: 'answer' }>>;
  send(request: SenderRequest): Promise<HttpOutcome>;
}

export interface MemberReport {
  readonly member: string;
  /** Absent when every check passed. */
  readonly class?: CheckClass;
  readonly credentialVersion?: number;
  /** Empty when the target serves none. */
  readonly targetId?: string;
  readonly warnings: readonly CheckWarning[];
  /** Whole milliseconds. */
  readonly rttMs?: number;
  /** About what one lane can send. */
  readonly recordsPerSecond?: number;
}

/** What one check found: why it fails, or what it learned. */
export interface Finding {
  readonly class?: CheckClass | undefined;
  readonly warnings?: readonly CheckWarning[];
  readonly targetId?: string;
}

const CERTIFICATE_WARNING_MS = 14 * 24 * 3_600_000;
const PASSED: Finding = {};

/** The target asks for credentials: without them its topic is refused, in whatever shape. */
export function judgeUnauthorized(outcome: HttpOutcome): Finding {
  if (outcome.type !== 'answer') return { class: readClass(outcome) };
  if (outcome.status === 401) return PASSED;
  return { class: outcome.status >= 300 && outcome.status < 400 ? 'redirect_refused' : 'target_security_off' };
}

/** The topic exists, takes records, is not the parent itself, and has the parent's schema. */
export function judgeDescription(outcome: HttpOutcome, parent: CheckedParent, nowMs: number): Finding {
  const failed = readClass(outcome);
  if (failed !== undefined || outcome.type !== 'answer') return { class: failed };
  const topic = jsonObject(outcome);
  if (topic === undefined) return { class: 'edge' };
  if (typeof topic.fanout_delay_ms === 'number' && topic.fanout_delay_ms > 0) return { class: 'target_is_delay_child' };
  if (topic.remote !== undefined && topic.remote !== null) return { class: 'target_is_stub' };
  const id = typeof topic.id === 'string' ? topic.id : '';
  if (isSource(topic, id, parent)) return { class: 'target_is_source' };
  const schema = compactSchema(topic.schema);
  const own = compactSchema(parent.schema);
  if (schema !== undefined && own !== undefined && schema !== own) return { class: 'schema_mismatch' };
  const warnings: CheckWarning[] = [];
  if (schema !== undefined && own === undefined) warnings.push('target_has_schema');
  const endMs = outcome.certificateEndMs;
  if (endMs !== undefined && endMs - nowMs < CERTIFICATE_WARNING_MS) warnings.push('certificate_ends_soon');
  return { targetId: id, warnings };
}

function isSource(topic: Record<string, unknown>, id: string, parent: CheckedParent): boolean {
  if (id !== '' || parent.id !== '') return id === parent.id;
  return topic.name === parent.name && topic.created_at === parent.createdAt;
}

/** A schema without the white space in it; the order of its members stays. */
function compactSchema(schema: unknown): string | undefined {
  if (schema === undefined || schema === null || schema === '') return undefined;
  if (typeof schema !== 'string') return JSON.stringify(schema);
  try {
    return JSON.stringify(JSON.parse(schema));
  } catch {
    return schema.replace(/\s+/g, '');
  }
}

/** No child of the topic is a remote child: what is sent there ends there. */
export function judgeChildren(outcome: HttpOutcome): Finding {
  const listing = childrenListing(outcome);
  if (listing === undefined) return { class: readClass(outcome) ?? 'edge' };
  if (listing.hasRemoteChild) return { class: 'target_has_remote_children' };
  if (listing.topicId === undefined) return { warnings: ['no_loop_detection'] };
  return PASSED;
}

/** The credential is no administrator's: it may not list users. The bare status decides, whoever gave it. */
export function judgeUsers(outcome: HttpOutcome): Finding {
  const status = outcome.type === 'answer' ? outcome.status : 0;
  if (status === 403) return PASSED;
  if (status === 200) return { class: 'admin_credential' };
  if (status === 404) return { warnings: ['users_not_served'] };
  return { class: readClass(outcome) ?? 'unknown' };
}

/** A lane's records per second over a connection with this round trip. */
export function laneCapacity(rttMs: number): number {
  return Math.floor(100_000 / (rttMs + 5));
}

/** Runs all checks, in order. */
export async function checkMember(member: string, ports: MemberPorts, question: MemberQuestion): Promise<MemberReport> {
  const { topic, parent, credentialVersion, nowMs } = question;
  const lookup = ports.lookup();
  const own = ownClass(ports, lookup, credentialVersion);
  const known = lookup.state === 'ready' ? { credentialVersion: lookup.credentialVersion } : {};
  if (own !== undefined) return { member, class: own, ...known, warnings: [] };
  const connected = await ports.connect();
  if (connected.type !== 'connected') {
    return { member, class: readClass(connected) ?? 'unavailable', ...known, warnings: [] };
  }
  const rttMs = Math.round(connected.ms);
  const times = question.hasAllowedHosts ? { rttMs, recordsPerSecond: laneCapacity(rttMs) } : {};
  const checks: readonly (readonly [SenderRequest, (outcome: HttpOutcome) => Finding])[] = [
    [describeRequest(topic, false), judgeUnauthorized],
    [describeRequest(topic), (outcome) => judgeDescription(outcome, parent, nowMs)],
    [listingRequest(topic), judgeChildren],
    [emptyBatchRequest(topic), (outcome) => ({ class: emptyBatchClass(outcome) })],
    [readRequest('/v1/users'), judgeUsers],
  ];
  const warnings: CheckWarning[] = [];
  let targetId = '';
  for (const [request, judge] of checks) {
    const found = judge(await ports.send(request));
    warnings.push(...(found.warnings ?? []));
    if (found.class !== undefined) return { member, class: found.class, ...known, warnings, ...times };
    targetId = found.targetId ?? targetId;
  }
  if (targetId === '') warnings.push('no_topic_id');
  return { member, ...known, targetId, warnings, ...times };
}

/** Why this member cannot even ask. */
function ownClass(
  ports: MemberPorts,
  lookup: ReturnType<MemberPorts['lookup']>,
  credentialVersion: number,
): CheckClass | undefined {
  if (!ports.isSecure()) return 'node_insecure';
  if (lookup.state !== 'ready') return lookup.state;
  return lookup.credentialVersion === credentialVersion ? undefined : 'stale';
}

const CHECK_EVERY_MS = 5_000;

/** Checks of one remote on one node: one at a time, and one started every 5 s. */
export class CheckPace {
  private isRunning = false;
  private startedMs = Number.NEGATIVE_INFINITY;

  /** Starts one; otherwise it is throttled, and how long is to be waited, in milliseconds. */
  start(nowMs: number): 'started' | { readonly retryAfterMs: number } {
    const isEarly = nowMs - this.startedMs < CHECK_EVERY_MS;
    if (this.isRunning || isEarly) return { retryAfterMs: CHECK_EVERY_MS };
    this.isRunning = true;
    this.startedMs = nowMs;
    return 'started';
  }

  ended(): void {
    this.isRunning = false;
  }
}
