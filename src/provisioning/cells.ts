/**
 * The axes of the decision table. The remote is told by how it stands to the local topic, so that a count of 3 against
 * 5 and one of 2 against 4 are one cell.
 */
import { ON_PARTITION_MISMATCH, type OnPartitionMismatch, type ProvisioningPolicy } from './policy.js';
import { partitionsOf, type TopicShape } from './shapes.js';

/**
 * When a decision is made.
 * - `waiting`: nothing is replicated yet, or no more.
 * - `running`: a replicator runs; both shapes are looked at again now and then, and before every producer.
 * - `updated`: an operator has just expanded the local topic (update-partitioned-topic), replicator or not.
 */
export const PROVISIONING_PHASES = Object.freeze(['waiting', 'running', 'updated'] as const);

export type ProvisioningPhase = (typeof PROVISIONING_PHASES)[number];

/** How the remote stands to each kind of local topic. A local topic that decides alone has the one column `any`. */
export const REMOTE_KINDS = Object.freeze({
  nonPartitioned: [...irregular(), 'nonPartitioned', 'partitioned', 'orphans', 'scalable'],
  partitionNamed: [...irregular(), 'nonPartitioned', 'partitioned', 'orphans', 'scalable'],
  partitioned: [
    ...irregular(),
    'nonPartitioned',
    'equal',
    'equalAbsent',
    'equalBeyond',
    'smaller',
    'smallerBeyond',
    'larger',
    'orphansBelow',
    'orphansAbove',
    'scalable',
  ],
  scalable: [...irregular(), 'nonPartitioned', 'partitioned', 'orphans', 'sameSegments', 'otherSegments'],
  irregular: ['any'],
  missing: ['any'],
  unknown: ['any'],
} as const);

export type LocalKind = keyof typeof REMOTE_KINDS;
export type RemoteKind = (typeof REMOTE_KINDS)[LocalKind][number];

/** What a remote can be whatever the local topic is. */
function irregular() {
  return ['unknown', 'namespaceMissing', 'mixed', 'both', 'scalablePartial', 'missing'] as const;
}

/** One cell of the table. */
export interface ProvisioningCell {
  readonly local: LocalKind;
  readonly remote: RemoteKind;
  readonly create: boolean;
  readonly mismatch: OnPartitionMismatch;
  readonly sameShape: boolean;
  readonly phase: ProvisioningPhase;
}

/** Two shapes, what is allowed, and when. */
export interface ProvisioningInput {
  readonly local: TopicShape;
  readonly remote: TopicShape;
  readonly policy: ProvisioningPolicy;
  readonly phase: ProvisioningPhase;
}

/** The cell that an input lies in. */
export function cellOf({ local, remote, policy, phase }: ProvisioningInput): ProvisioningCell {
  return {
    local: localKind(local),
    remote: remoteKind(local, remote),
    create: policy.createTopicToRemoteCluster,
    mismatch: policy.onPartitionMismatch,
    sameShape: policy.requireSameShape,
    phase,
  };
}

/** Every cell of the table. */
export function* everyCell(): Generator<ProvisioningCell, void, undefined> {
  const sides = Object.entries(REMOTE_KINDS).flatMap(([local, kinds]) =>
    kinds.map((remote) => ({ local: local as LocalKind, remote })),
  );
  for (const { local, remote } of sides) {
    for (const create of [true, false]) {
      for (const mismatch of ON_PARTITION_MISMATCH) {
        for (const sameShape of [false, true]) {
          for (const phase of PROVISIONING_PHASES) yield { local, remote, create, mismatch, sameShape, phase };
        }
      }
    }
  }
}

function localKind(local: TopicShape): LocalKind {
  switch (local.type) {
    case 'nonPartitioned':
      return local.partitionNamed ? 'partitionNamed' : 'nonPartitioned';
    case 'partitioned':
    // What lies beyond a local record is nobody's: its clients follow the record.
    case 'partitionedAndOrphans':
      return 'partitioned';
    case 'scalable':
    case 'unknown':
      return local.type;
    case 'missing':
    case 'namespaceMissing':
      return 'missing';
    case 'orphans':
    case 'mixed':
    case 'scalablePartial':
    case 'both':
      return 'irregular';
  }
}

function remoteKind(local: TopicShape, remote: TopicShape): RemoteKind {
  const kind = localKind(local);
  if (kind === 'irregular' || kind === 'missing' || kind === 'unknown') return 'any';
  switch (remote.type) {
    case 'partitioned':
    case 'partitionedAndOrphans':
      return kind === 'partitioned' ? comparedCounts(partitionsOf(local), remote) : 'partitioned';
    case 'orphans':
      if (kind !== 'partitioned') return 'orphans';
      return Math.max(...remote.indices) < partitionsOf(local) ? 'orphansBelow' : 'orphansAbove';
    case 'scalable':
      if (local.type !== 'scalable') return 'scalable';
      return equalLists(local.starts, remote.starts) ? 'sameSegments' : 'otherSegments';
    default:
      return remote.type;
  }
}

type Recorded = Extract<TopicShape, { readonly type: 'partitioned' | 'partitionedAndOrphans' }>;

function comparedCounts(local: number, remote: Recorded): RemoteKind {
  const hasBeyond = remote.type === 'partitionedAndOrphans';
  if (remote.partitions > local) return 'larger';
  if (remote.partitions < local) return hasBeyond ? 'smallerBeyond' : 'smaller';
  if (remote.absent.length > 0) return 'equalAbsent';
  return hasBeyond ? 'equalBeyond' : 'equal';
}

function equalLists(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
