/** One decision: from two shapes, by the table, to what is to be done and the numbers that it takes. */
import { cellOf, type ProvisioningCell, type ProvisioningInput } from './cells.js';
import { nearestSegmentCount } from './initial-segments.js';
import type { ProvisioningReason } from './reasons.js';
import { describeShape, partitionsOf, type TopicShape } from './shapes.js';
import { covers, PROVISIONING_TABLE, type ProvisioningOutcome, type ProvisioningRule } from './table.js';

/** What of a topic is replicated. */
export type ReplicationScope =
  | { readonly type: 'nonPartitioned' }
  /** These partitions of the local topic, ascending. */
  | { readonly type: 'partitioned'; readonly partitions: readonly number[] }
  | { readonly type: 'scalable' };

/** One creating call. */
export type Creation =
  | { readonly type: 'createPlain' }
  | { readonly type: 'createPartitioned'; readonly partitions: number }
  | { readonly type: 'completePartitions' }
  | { readonly type: 'expandPartitions'; readonly partitions: number }
  /** Segments at these starts; `segments` is the power of two nearest to them, for a cluster that only takes a count. */
  | { readonly type: 'createScalable'; readonly starts: readonly number[]; readonly segments: number };

/** Why something was decided, for an operator. */
export interface Reasoning {
  readonly outcome: ProvisioningOutcome;
  readonly reason: ProvisioningReason;
  /** Both sides with their numbers, in words. */
  readonly message: string;
}

export type ProvisioningDecision = Reasoning &
  (
    | { readonly type: 'replicate'; readonly scope: ReplicationScope }
    | { readonly type: 'create'; readonly creation: Creation }
    | { readonly type: 'wait' | 'stop' | 'hold' }
  );

/** What the table says of two shapes. Total: every input lies in one cell, and every cell in one rule. */
export function decideProvisioning(input: ProvisioningInput): ProvisioningDecision {
  const { outcome, reason } = ruleOf(cellOf(input));
  const { local, remote } = input;
  const message = `local: ${describeShape(local)}; remote: ${describeShape(remote)}`;
  const reasoning: Reasoning = { outcome, reason, message };
  switch (outcome) {
    case 'wait':
    case 'stop':
    case 'hold':
      return { ...reasoning, type: outcome };
    case 'replicate':
    case 'replicateMatching':
      return { ...reasoning, type: 'replicate', scope: scopeOf(local, remote) };
    case 'createPlain':
    case 'completePartitions':
      return { ...reasoning, type: 'create', creation: { type: outcome } };
    case 'createPartitioned':
    case 'expandPartitions':
      return { ...reasoning, type: 'create', creation: { type: outcome, partitions: partitionsOf(local) } };
    case 'createScalable': {
      const starts = local.type === 'scalable' ? local.starts : [0];
      return {
        ...reasoning,
        type: 'create',
        creation: { type: outcome, starts, segments: nearestSegmentCount(starts) },
      };
    }
  }
}

/** The one rule that covers a cell. */
export function ruleOf(cell: ProvisioningCell): ProvisioningRule {
  const rule = PROVISIONING_TABLE.find((each) => covers(each, cell));
  if (rule === undefined) throw new Error(`no rule covers the cell ${JSON.stringify(cell)}`);
  return rule;
}

/** The partitions that exist on both sides; of other topics all there is. */
function scopeOf(local: TopicShape, remote: TopicShape): ReplicationScope {
  if (local.type === 'scalable' || local.type === 'nonPartitioned') return { type: local.type };
  const absent = new Set('partitions' in remote && 'absent' in remote ? remote.absent : []);
  const common = Math.min(partitionsOf(local), partitionsOf(remote));
  const partitions = Array.from({ length: common }, (_, index) => index).filter((index) => !absent.has(index));
  return { type: 'partitioned', partitions };
}
