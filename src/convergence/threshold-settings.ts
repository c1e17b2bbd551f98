/**
 * The numbers of the threshold policy: names, meanings and defaults of the released brokers (PIP-483, PIP-486), times
 * in milliseconds. Settings are checked once, when the policy is made; a combination that could flap is refused.
 */
import { IsthmusError, show } from '../errors.js';

/** The settings of `thresholdPolicy`. Rates are per second and per segment, times are milliseconds. */
export interface ThresholdSettings {
  /** `scalableTopicAutoScaleEnabled`: when false nothing is decided and no boundary is marked. */
  readonly enabled: boolean;
  /** `scalableTopicMinSegments`: the marks, all taken, leave at least as many active segments. 1..65536. */
  readonly minSegments: number;
  /** `scalableTopicMaxSegments`: no split at or above; the effective cap binds too (C20). minSegments..65536. */
  readonly maxSegments: number;
  /** `scalableTopicEntryBucketMaxPerSegment`: as maxSegments, for the buckets of one segment (PIP-486). 1..65536. */
  readonly maxEntryBucketsPerSegment: number;
  /**
   * `scalableTopicMaxDagDepth`: a segment with as many merges on the deepest path of its lineage, itself included,
   * is not marked any more. It bounds merges only; pruned ancestors do not count. 0 or more; 0 stops merges.
   */
  readonly maxDagDepth: number;
  /** `scalableTopicSplitCooldownSeconds`: the least time between a split and the next automatic one. */
  readonly splitCooldownMs: number;
  /** `scalableTopicRebucketCooldownSeconds`: the same for rebuckets (PIP-486). */
  readonly rebucketCooldownMs: number;
  /** `scalableTopicMergeCooldownSeconds`: the least time between a merge and the next new cold mark (C13). */
  readonly mergeCooldownMs: number;
  /** `scalableTopicMergeWindowSeconds`: how long a cold load must have been unchanged before it is believed. */
  readonly mergeWindowMs: number;
  /**
   * `scalableTopicSplitVsRebucketMinMsgRateInThreshold`: surplus consumers split the busiest segment when it takes in
   * at least as many messages, else they get more buckets (PIP-486). 0 or more.
   */
  readonly splitVsRebucketMinMsgRateIn: number;
  /** `scalableTopicSplitMsgRateInThreshold`: messages in, above which a segment is split. More than mergeMsgRateIn. */
  readonly splitMsgRateIn: number;
  /** `scalableTopicSplitBytesRateInThreshold`: the same for bytes in. */
  readonly splitBytesRateIn: number;
  /** `scalableTopicSplitMsgRateOutThreshold`: the same for messages dispatched. */
  readonly splitMsgRateOut: number;
  /** `scalableTopicSplitBytesRateOutThreshold`: the same for bytes dispatched. */
  readonly splitBytesRateOut: number;
  /** `scalableTopicMergeMsgRateInThreshold`: messages in, below which a segment is cold. 0 stops merges. */
  readonly mergeMsgRateIn: number;
  /** `scalableTopicMergeBytesRateInThreshold`: the same for bytes in. */
  readonly mergeBytesRateIn: number;
  /** `scalableTopicMergeMsgRateOutThreshold`: the same for messages dispatched. */
  readonly mergeMsgRateOut: number;
  /** `scalableTopicMergeBytesRateOutThreshold`: the same for bytes dispatched. */
  readonly mergeBytesRateOut: number;
}

/** What a broker uses when nothing is configured. */
export const DEFAULT_THRESHOLDS: ThresholdSettings = Object.freeze({
  enabled: true,
  minSegments: 1,
  maxSegments: 64,
  maxEntryBucketsPerSegment: 1024,
  maxDagDepth: 10,
  splitCooldownMs: 60_000,
  rebucketCooldownMs: 60_000,
  mergeCooldownMs: 300_000,
  mergeWindowMs: 300_000,
  splitVsRebucketMinMsgRateIn: 1_000,
  splitMsgRateIn: 10_000,
  splitBytesRateIn: 50_000_000,
  splitMsgRateOut: 50_000,
  splitBytesRateOut: 250_000_000,
  mergeMsgRateIn: 1_000,
  mergeBytesRateIn: 5_000_000,
  mergeMsgRateOut: 5_000,
  mergeBytesRateOut: 25_000_000,
});

/** Each rate of a load with the two settings that judge it. The rate's name is also the reason of a split. */
export const RATES = [
  { rate: 'msgRateIn', split: 'splitMsgRateIn', merge: 'mergeMsgRateIn' },
  { rate: 'bytesRateIn', split: 'splitBytesRateIn', merge: 'mergeBytesRateIn' },
  { rate: 'msgRateOut', split: 'splitMsgRateOut', merge: 'mergeMsgRateOut' },
  { rate: 'bytesRateOut', split: 'splitBytesRateOut', merge: 'mergeBytesRateOut' },
] as const;

const COUNTS = ['minSegments', 'maxSegments', 'maxEntryBucketsPerSegment'] as const;
const DURATIONS = ['splitCooldownMs', 'rebucketCooldownMs', 'mergeCooldownMs', 'mergeWindowMs'] as const;

/** The settings with the defaults filled in. Throws `invalidArgument`, naming the value and the rule. */
export function resolveThresholds(settings: Partial<ThresholdSettings>): ThresholdSettings {
  const unknown = Object.keys(settings).find((name) => !Object.hasOwn(DEFAULT_THRESHOLDS, name));
  if (unknown !== undefined) {
    throw new IsthmusError('invalidArgument', `${unknown} is set: the threshold policy has no such setting`);
  }
  const resolved: ThresholdSettings = { ...DEFAULT_THRESHOLDS, ...settings };
  checkCounts(resolved);
  checkAmounts(resolved);
  checkHysteresis(resolved);
  return resolved;
}

function checkCounts(settings: ThresholdSettings): void {
  const { enabled, minSegments, maxSegments, maxDagDepth } = settings;
  if (typeof enabled !== 'boolean') refuse('enabled', enabled, 'true or false');
  for (const name of COUNTS) {
    const count = settings[name];
    if (!Number.isInteger(count) || count < 1 || count > 65536) refuse(name, count, 'an integer of 1..65536');
  }
  if (maxSegments < minSegments) refuse('maxSegments', maxSegments, `at least minSegments, which is ${minSegments}`);
  if (!Number.isSafeInteger(maxDagDepth) || maxDagDepth < 0) {
    refuse('maxDagDepth', maxDagDepth, 'a safe integer of 0 or more');
  }
}

function checkAmounts(settings: ThresholdSettings): void {
  for (const name of DURATIONS) {
    if (!isAmount(settings[name])) refuse(name, settings[name], 'a finite number of 0 or more milliseconds');
  }
  for (const name of ['splitVsRebucketMinMsgRateIn', ...RATES.map(({ merge }) => merge)] as const) {
    if (!isAmount(settings[name])) refuse(name, settings[name], 'a finite rate of 0 or more per second');
  }
}

/** A segment that was split just now must not be cold by the same load, or every split would be taken back. */
function checkHysteresis(settings: ThresholdSettings): void {
  for (const { split, merge } of RATES) {
    const threshold = settings[split];
    if (!isAmount(threshold) || threshold === 0) refuse(split, threshold, 'a finite rate above 0 per second');
    if (threshold <= settings[merge]) refuse(split, threshold, `above ${merge}, which is ${settings[merge]}`);
  }
}

function isAmount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0;
}

function refuse(name: string, value: unknown, rule: string): never {
  throw new IsthmusError('invalidArgument', `${name} is ${show(value)}: ${rule}`);
}
