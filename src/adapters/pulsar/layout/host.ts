/**
 * The layout operations of an unmodified cluster (C22): one split, merge or rebucket at a time, each an epoch of its own.
 * There is no epoch to compare; an operation names segments by ids that are never reused, so that one that comes too
 * late fails, and every failure means: read the layout and decide again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from '../../../layout/index.js';
import type { LayoutReader, OperationResult, PlanningSegmentHost } from '../../../ports/index.js';
import type { AdminResult, PulsarAdmin } from '../admin/index.js';
import type { PulsarLayouts } from './layouts.js';

export interface PulsarHostOptions {
  /** With the token of a tenant admin; without one every operation fails with `unauthorized`, and the layout stays. */
  readonly admin: PulsarAdmin;
  readonly layouts: PulsarLayouts;
  /** `topic://tenant/namespace/name`. */
  readonly topic: string;
  /** The broker's own limit on the buckets of a segment, 1..1,024; default 1,024. */
  readonly maxBuckets?: number;
}

const MAX_BUCKETS = 1_024;

export function pulsarHost(options: PulsarHostOptions): {
  readonly store: LayoutReader;
  readonly segments: PlanningSegmentHost;
} {
  const { admin, layouts, topic, maxBuckets = MAX_BUCKETS } = options;
  return {
    store: layouts,
    segments: {
      supports: { atomicLayoutChange: false, explicitBoundary: false, unequalBuckets: false, maxBuckets },
      async perform(operation): Promise<OperationResult> {
        if (isExplicit(operation)) return { type: 'failed', reason: 'a cluster takes no boundaries of its caller' };
        const done = await perform(admin, topic, operation);
        if (done.type !== 'ok') return { type: 'failed', reason: `${done.type}: ${done.reason}` };
        return layoutAfter(options, replacedIds(operation));
      },
    },
  };
}

/** How often the layout is read again, and how long after, until it shows what was done. */
const READS = 20;
const READ_AGAIN_MS = 100;

/** The answer to an operation is empty, and a broker that did not perform it may still have the layout from before. */
async function layoutAfter(options: PulsarHostOptions, replaced: readonly number[]): Promise<OperationResult> {
  const { admin, layouts, topic } = options;
  let reason = '';
  for (let i = 0; i < READS; i++) {
    if (i > 0) await sleep(READ_AGAIN_MS);
    const read = await admin.scalableLayout(topic);
    if (read.type !== 'ok') {
      reason = `${read.type}: ${read.reason}`;
      continue;
    }
    const layout = layouts.take(read.value.epoch, read.value.segments.values());
    if (!layout.active.some(({ segmentId }) => replaced.includes(segmentId))) return { type: 'performed', layout };
    reason = `segment ${replaced.join(' or ')} is still active in epoch ${layout.epoch}`;
  }
  return { type: 'failed', reason: `done, but the layout afterwards is not known: ${reason}` };
}

/** The segments that an operation seals. */
function replacedIds(operation: Operation): readonly number[] {
  return operation.type === 'merge' ? [operation.leftId, operation.rightId] : [operation.segmentId];
}

/** True for boundaries or bucket lists that are given: they would be left out without a word. */
function isExplicit(operation: Operation): boolean {
  if (operation.type === 'split') return operation.at !== undefined;
  return operation.type === 'rebucket' && operation.splits !== undefined;
}

function perform(admin: PulsarAdmin, topic: string, operation: Operation): Promise<AdminResult<void>> {
  switch (operation.type) {
    case 'split':
      return admin.split(topic, operation.segmentId);
    case 'merge':
      return admin.merge(topic, operation.leftId, operation.rightId);
    case 'rebucket':
      return admin.rebucket(topic, operation.segmentId, operation.buckets);
  }
}

/**
 * Keeps the cluster from merging segments by itself while the topic is replicated: it merges neighbours that are no
 * siblings, and on its own load alone, against the merge rule (C9). What else is set for the topic stays. True when it
 * was changed.
 */
export async function stopAutomaticMerges(admin: PulsarAdmin, topic: string): Promise<AdminResult<boolean>> {
  const policy = await admin.autoScalePolicy(topic);
  if (policy.type !== 'ok') return policy;
  const present = policy.value ?? {};
  if (Object.entries(NO_MERGES).every(([name, value]) => present[name] === value)) return { type: 'ok', value: false };
  const set = await admin.setAutoScalePolicy(topic, { ...present, ...NO_MERGES });
  return set.type === 'ok' ? { type: 'ok', value: true } : set;
}

/** No load is below these. */
const NO_MERGES = {
  mergeMsgRateInThreshold: 0,
  mergeBytesRateInThreshold: 0,
  mergeMsgRateOutThreshold: 0,
  mergeBytesRateOutThreshold: 0,
};
