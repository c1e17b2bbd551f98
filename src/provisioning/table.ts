/**
 * The decision table: local shape x remote shape x policy x phase, each cell with its outcome and its reason. A rule
 * covers a block of cells; the rules do not overlap and leave no cell out, so that their order says nothing.
 *
 * The laws behind it: what is unknown changes nothing; nothing is created beside anything of another kind; with creation
 * off nothing is created at all; unequal counts of partitions stop everything unless a policy says otherwise.
 */
import type { LocalKind, ProvisioningCell, ProvisioningPhase, RemoteKind } from './cells.js';
import type { OnPartitionMismatch } from './policy.js';
import type { ProvisioningReason } from './reasons.js';

/** What follows, and for how much of the topic. Every outcome is looked at again after a while. */
export const PROVISIONING_OUTCOMES = Object.freeze({
  replicate: 'The whole topic is replicated.',
  replicateMatching: 'The partitions that exist on both sides are replicated.',
  createPlain: 'A plain topic is created, by an explicit call.',
  createPartitioned:
    'A partitioned topic is created with the local count; partition topics without a record are taken in.',
  completePartitions: 'The partitions that the record promises are created.',
  expandPartitions: 'The record is expanded to the local count, and both counts are read again.',
  createScalable: 'A scalable topic is created with the local segments.',
  wait: 'Nothing is replicated or created. It begins by itself once the topic is there.',
  stop: 'Nothing is replicated or created: an operator has to act.',
  hold: 'Nothing is changed: what runs goes on, what waits goes on waiting.',
});

export type ProvisioningOutcome = keyof typeof PROVISIONING_OUTCOMES;

/** A block of cells. A member that is absent stands for all its values. */
export interface ProvisioningRule {
  readonly local: readonly LocalKind[];
  readonly remote: readonly RemoteKind[];
  readonly create?: boolean;
  readonly mismatch?: readonly OnPartitionMismatch[];
  readonly sameShape?: boolean;
  readonly phases?: readonly ProvisioningPhase[];
  readonly outcome: ProvisioningOutcome;
  readonly reason: ProvisioningReason;
}

type Where = Pick<ProvisioningRule, 'create' | 'mismatch' | 'sameShape' | 'phases'>;

const ALL: readonly LocalKind[] = ['nonPartitioned', 'partitionNamed', 'partitioned', 'scalable'];
const PLAIN: readonly LocalKind[] = ['nonPartitioned', 'partitionNamed'];
const CLASSIC: readonly LocalKind[] = ['nonPartitioned', 'partitionNamed', 'partitioned'];
const PARTITIONED: readonly LocalKind[] = ['partitioned'];
const SCALABLE: readonly LocalKind[] = ['scalable'];

const NOT_RUNNING: Where = { phases: ['waiting', 'updated'] };
const RUNNING: Where = { phases: ['running'] };
const MAY_CREATE: Where = { ...NOT_RUNNING, create: true };
const MUST_WAIT: Where = { ...NOT_RUNNING, create: false };

function rule(
  local: readonly LocalKind[],
  remote: readonly RemoteKind[],
  where: Where,
  outcome: ProvisioningOutcome,
  reason: ProvisioningReason,
): ProvisioningRule {
  return Object.freeze({ local, remote, ...where, outcome, reason });
}

export const PROVISIONING_TABLE: readonly ProvisioningRule[] = Object.freeze([
  // The local topic decides alone.
  rule(['unknown'], ['any'], {}, 'hold', 'localUnknown'),
  rule(['missing'], ['any'], {}, 'wait', 'localMissing'),
  rule(['irregular'], ['any'], {}, 'stop', 'localIrregular'),

  // What stands in the way on the remote, whatever the local topic is.
  rule(ALL, ['unknown'], {}, 'hold', 'remoteUnknown'),
  rule(ALL, ['namespaceMissing'], {}, 'wait', 'namespaceMissing'),
  rule(ALL, ['mixed'], {}, 'stop', 'mixed'),
  rule(ALL, ['both'], {}, 'stop', 'both'),
  rule(ALL, ['scalablePartial'], {}, 'stop', 'scalablePartial'),

  // Nothing there. A topic that was there a moment ago is not made again in the same breath.
  rule(ALL, ['missing'], RUNNING, 'wait', 'topicLost'),
  rule(['nonPartitioned'], ['missing'], MAY_CREATE, 'createPlain', 'topicMissing'),
  rule(PARTITIONED, ['missing'], MAY_CREATE, 'createPartitioned', 'topicMissing'),
  rule(SCALABLE, ['missing'], MAY_CREATE, 'createScalable', 'topicMissing'),
  rule(['nonPartitioned', 'partitioned', 'scalable'], ['missing'], MUST_WAIT, 'wait', 'topicMissing'),
  rule(['partitionNamed'], ['missing'], NOT_RUNNING, 'wait', 'partitionNamed'),

  // Plain topics.
  rule(PLAIN, ['nonPartitioned'], {}, 'replicate', 'sameShape'),
  rule(PLAIN, ['partitioned'], {}, 'stop', 'typeMismatch'),
  rule(PLAIN, ['orphans'], {}, 'stop', 'orphansWithoutRecord'),
  rule(CLASSIC, ['scalable'], {}, 'stop', 'kindMismatch'),

  // Partitioned topics of equal counts.
  rule(PARTITIONED, ['nonPartitioned'], {}, 'stop', 'typeMismatch'),
  rule(PARTITIONED, ['equal'], {}, 'replicate', 'sameShape'),
  rule(PARTITIONED, ['equalBeyond'], { sameShape: false }, 'replicate', 'orphansBeyond'),
  rule(PARTITIONED, ['equalBeyond'], { sameShape: true }, 'stop', 'orphansBeyond'),
  rule(PARTITIONED, ['equalAbsent'], RUNNING, 'wait', 'topicLost'),
  rule(PARTITIONED, ['equalAbsent'], MAY_CREATE, 'completePartitions', 'partitionsAbsent'),
  rule(PARTITIONED, ['equalAbsent'], MUST_WAIT, 'wait', 'partitionsAbsent'),

  // Partition topics without a record.
  rule(PARTITIONED, ['orphansAbove'], {}, 'stop', 'orphansAboveCount'),
  rule(PARTITIONED, ['orphansBelow'], RUNNING, 'wait', 'topicLost'),
  rule(PARTITIONED, ['orphansBelow'], MAY_CREATE, 'createPartitioned', 'orphansWithoutRecord'),
  rule(PARTITIONED, ['orphansBelow'], MUST_WAIT, 'wait', 'orphansWithoutRecord'),

  // A smaller remote. Whoever expands the local topic by a call has decided for both.
  rule(PARTITIONED, ['smaller'], { create: true, mismatch: ['expand'] }, 'expandPartitions', 'partitionMismatch'),
  rule(
    PARTITIONED,
    ['smaller'],
    { create: true, mismatch: ['stop', 'replicateMatching'], phases: ['updated'] },
    'expandPartitions',
    'partitionMismatch',
  ),
  ...unequal(['smaller'], ['stop'], { create: true, phases: ['waiting', 'running'] }, 'partitionMismatch'),
  ...unequal(['smaller'], ['stop', 'expand'], { create: false }, 'partitionMismatch'),
  ...unequal(['smallerBeyond'], ['stop', 'expand'], {}, 'orphansBeyond'),

  // A larger remote: no policy takes partitions away.
  ...unequal(['larger'], ['stop', 'expand'], {}, 'partitionMismatch'),

  // Scalable topics.
  rule(SCALABLE, ['nonPartitioned', 'partitioned', 'orphans'], {}, 'stop', 'kindMismatch'),
  rule(SCALABLE, ['sameSegments'], {}, 'replicate', 'sameShape'),
  rule(SCALABLE, ['otherSegments'], { sameShape: false }, 'replicate', 'layoutsDiffer'),
  rule(SCALABLE, ['otherSegments'], { ...NOT_RUNNING, sameShape: true }, 'wait', 'layoutsDiffer'),
  // Every split makes the layouts differ for a while.
  rule(SCALABLE, ['otherSegments'], { ...RUNNING, sameShape: true }, 'replicate', 'layoutsDiffer'),
]);

/** Unequal counts: these policies stop, and `replicateMatching` goes on unless the same shape is required. */
function unequal(
  remote: readonly RemoteKind[],
  stopping: readonly OnPartitionMismatch[],
  where: Where,
  reason: ProvisioningReason,
): ProvisioningRule[] {
  const matching: Where = { ...where, mismatch: ['replicateMatching'] };
  return [
    rule(PARTITIONED, remote, { ...where, mismatch: stopping }, 'stop', reason),
    rule(PARTITIONED, remote, { ...matching, sameShape: true }, 'stop', reason),
    rule(PARTITIONED, remote, { ...matching, sameShape: false }, 'replicateMatching', 'partitionMismatch'),
  ];
}

/** Whether a rule covers a cell. */
export function covers(rule: ProvisioningRule, cell: ProvisioningCell): boolean {
  const { local, remote, create, mismatch, sameShape, phases } = rule;
  return (
    local.includes(cell.local) &&
    remote.includes(cell.remote) &&
    (create === undefined || create === cell.create) &&
    (mismatch === undefined || mismatch.includes(cell.mismatch)) &&
    (sameShape === undefined || sameShape === cell.sameShape) &&
    (phases === undefined || phases.includes(cell.phase))
  );
}
