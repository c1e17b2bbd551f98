/** Many reports as one: the members' checks as the answer to an attach, a link's partitions as its line in the listing. */

import type { CursorReport } from './cursor-report.js';
import type { CheckClass, CheckWarning, MemberReport } from './member-check.js';
import { type SenderState, type StalledState, worstState } from './states.js';

/** Which class tells, of several: the first of these. Anything else comes last. */
export const CHECK_PRIORITY: readonly CheckClass[] = Object.freeze([
  'old_release',
  'unreachable',
  'node_insecure',
  'credential_unreadable',
  'remote_missing',
  'stale',
  'target_disagreement',
  'throttled',
  'destination_refused',
  'tls_failed',
  'target_security_off',
  'auth_failed',
  'forbidden',
  'admin_credential',
  'target_missing',
  'target_is_source',
  'target_is_delay_child',
  'target_is_stub',
  'target_has_remote_children',
  'schema_mismatch',
  'no_batch_produce',
  'redirect_refused',
  'edge',
  'unavailable',
  'unknown',
]);

/** The HTTP status with which a failed check is answered. */
export function checkStatus(failed: CheckClass): number {
  if (CHECK_PRIORITY.indexOf(failed) <= CHECK_PRIORITY.indexOf('target_disagreement')) return 412;
  if (failed === 'throttled') return 429;
  if (failed === 'redirect_refused' || failed === 'edge') return 502;
  return failed === 'unavailable' ? 503 : 409;
}

export type FoldedCheck =
  | { readonly passed: true; readonly targetId: string; readonly warnings: readonly CheckWarning[] }
  | {
      readonly passed: false;
      readonly class: CheckClass;
      readonly status: number;
      readonly members: readonly string[];
    };

/**
 * Every member has to pass, with the credential version that the remote has now, and see the same topic. `members` are
 * all members of the cluster; one without a report did not answer. Without any member nobody could tell.
 */
export function foldChecks(
  members: readonly string[],
  reports: readonly MemberReport[],
  credentialVersion: number,
): FoldedCheck {
  const byMember = new Map(reports.map((report) => [report.member, report]));
  const failed = new Map<CheckClass, string[]>();
  const fail = (name: CheckClass, member: string) => failed.set(name, [...(failed.get(name) ?? []), member]);
  const ids = new Map<string, string>();
  for (const member of members) {
    const report = byMember.get(member);
    if (report === undefined) fail('unreachable', member);
    else if (report.class !== undefined) fail(report.class, member);
    else if (report.credentialVersion !== credentialVersion) fail('stale', member);
    else ids.set(member, report.targetId ?? '');
  }
  const [targetId = '', ...others] = new Set(ids.values());
  if (others.length > 0) for (const member of ids.keys()) fail('target_disagreement', member);
  if (members.length === 0) failed.set('unreachable', []);
  const worst = CHECK_PRIORITY.find((name) => failed.has(name));
  if (worst !== undefined) {
    return { passed: false, class: worst, status: checkStatus(worst), members: failed.get(worst) ?? [] };
  }
  return { passed: true, targetId, warnings: [...new Set(reports.flatMap(({ warnings }) => warnings))] };
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

/** Retention below this is too short to ride out an outage at all, and below the second short enough to warn. */
const RETENTION_FLOOR_MS = 24 * HOUR_MS;
const RETENTION_WARNING_MS = 72 * HOUR_MS;

/** What an attach warns of besides the checks: a retention that an outage outlives, and a target of small batches. */
export function attachWarnings(retentionMs: number, maxMessages: number): readonly CheckWarning[] {
  const warnings: CheckWarning[] = [];
  if (retentionMs > 0 && retentionMs < RETENTION_WARNING_MS) warnings.push('short_retention');
  if (maxMessages <= 100) warnings.push('small_batches');
  return warnings;
}

/** What an attach is held against, besides the checks. Times in milliseconds; a retention of 0 keeps everything. */
export interface AttachedParent {
  readonly retentionMs: number;
  readonly delayMs: number;
  readonly children: number;
  readonly remoteChildren: number;
}

/** Why a parent cannot take one more remote child; undefined when it can. */
export function attachRefusal(parent: AttachedParent): string | undefined {
  const { retentionMs, delayMs, children, remoteChildren } = parent;
  if (children >= 108) return 'a parent has at most 108 children';
  if (remoteChildren >= 16) return 'a parent has at most 16 remote children';
  if (retentionMs !== 0 && retentionMs < RETENTION_FLOOR_MS) return 'the parent keeps records for less than 24 hours';
  if (delayMs > YEAR_MS) return 'a delay is at most a year';
  if (retentionMs !== 0 && delayMs > retentionMs - HOUR_MS) return 'a delay ends an hour before the retention';
  return undefined;
}

/** The topic ID that a resume records; undefined when the target is another topic than was attached, and none was accepted. */
export function resumedTarget(recorded: string, found: string, acceptTarget: boolean): string | undefined {
  return found === recorded || acceptTarget ? found : undefined;
}

const UNVERIFIED_MS = 600_000;

/** A link over all partitions of its parent. */
export interface LinkSummary {
  readonly state: SenderState;
  readonly blockedAt?: { readonly partition: number; readonly offset: number; readonly state: StalledState };
  /** The age of the oldest record that is known to be unsent, in milliseconds; absent when none is. */
  readonly lagMs?: number;
  /** How long the parent's retention still keeps it; absent when it keeps everything. */
  readonly retentionHeadroomMs?: number;
  /** The oldest of the partitions' last successful checks; absent while one of them had none. */
  readonly targetVerifiedMs?: number;
  /** It runs, and no check has succeeded for 10 minutes. */
  readonly isUnverified: boolean;
  readonly lastSuccessMs?: number;
}

/** Folds the partitions' reports; undefined stands for a partition whose owner did not report. */
export function foldLink(
  partitions: readonly (CursorReport | undefined)[],
  { retentionMs, nowMs }: { readonly retentionMs: number; readonly nowMs: number },
): LinkSummary {
  const reports = partitions.filter((report) => report !== undefined);
  const state = worstState(partitions.map((report) => report?.state ?? 'unknown'));
  const blocks = reports.flatMap(({ blockedAt, partition }) => (blockedAt ? [{ partition, ...blockedAt }] : []));
  const [blockedAt] = blocks.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
  const lagMs = most(
    reports.map(({ oldestUnsentMs }) => (oldestUnsentMs === undefined ? undefined : nowMs - oldestUnsentMs)),
  );
  const verified = partitions.map((report) => report?.targetVerifiedMs);
  const targetVerifiedMs = verified.includes(undefined) ? undefined : least(verified);
  const lastSuccessMs = most(reports.map((report) => report.lastSuccessMs));
  const isOld = reports.some(
    (report) => nowMs - Math.max(report.targetVerifiedMs ?? 0, report.startedMs) > UNVERIFIED_MS,
  );
  return {
    state,
    isUnverified: state === 'running' && isOld,
    ...(blockedAt === undefined ? {} : { blockedAt }),
    ...(lagMs === undefined ? {} : { lagMs }),
    ...(retentionMs === 0 ? {} : { retentionHeadroomMs: retentionMs - (lagMs ?? 0) }),
    ...(targetVerifiedMs === undefined ? {} : { targetVerifiedMs }),
    ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
  };
}

function most(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function least(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
