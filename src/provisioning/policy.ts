/** What an operator allows (PIP-370, and what its review asks for). */
import { IsthmusError, show } from '../errors.js';

/** The values of `onPartitionMismatch`. */
export const ON_PARTITION_MISMATCH = Object.freeze(['stop', 'expand', 'replicateMatching'] as const);

/**
 * What to do when both topics have partitions and their counts differ.
 * - `stop`: nothing is replicated, the partitions that match included, until an operator has made the counts equal.
 * - `expand`: a remote with fewer partitions is given the local count (PIP-370, phase 2). It counts as creating.
 * - `replicateMatching`: the partitions that exist on both sides are replicated; keys may then meet in another order.
 */
export type OnPartitionMismatch = (typeof ON_PARTITION_MISMATCH)[number];

export interface ProvisioningPolicy {
  /** Whether anything may be created on the remote. With false not one call is made that can create. */
  readonly createTopicToRemoteCluster: boolean;
  readonly onPartitionMismatch: OnPartitionMismatch;
  /** Starts only when both sides have the same shape, partition by partition or segment by segment. */
  readonly requireSameShape: boolean;
}

/** The released name of the option, and the one of an earlier text of PIP-370. */
const NAMES = ['createTopicToRemoteClusterForReplication', 'replicationTriggerRemoteTopicCreation'] as const;

/** Created, as released brokers do; never expanded, as released brokers and the review of PIP-370 have it. */
const DEFAULT_POLICY: ProvisioningPolicy = Object.freeze({
  createTopicToRemoteCluster: true,
  onPartitionMismatch: 'stop',
  requireSameShape: false,
});

/**
 * The policy that a configuration states, such as the entries of a broker.conf: values may be text. Each option has a
 * default (true, `stop`, false), and entries of other names are nobody's here. Throws `invalidArgument` for a value
 * that an option cannot have, and where the two names of one option contradict each other.
 */
export function policyFromConfig(config: Readonly<Record<string, unknown>>): ProvisioningPolicy {
  const [released, earlier] = NAMES.map((name) => booleanOf(config, name));
  if (released !== undefined && earlier !== undefined && released !== earlier) {
    throw new IsthmusError(
      'invalidArgument',
      `${NAMES[0]} is ${released} and ${NAMES[1]} is ${earlier}: both name one option, so give one of them`,
    );
  }
  return Object.freeze({
    createTopicToRemoteCluster: released ?? earlier ?? DEFAULT_POLICY.createTopicToRemoteCluster,
    onPartitionMismatch: mismatchOf(config.onPartitionMismatch),
    requireSameShape: booleanOf(config, 'requireSameShape') ?? DEFAULT_POLICY.requireSameShape,
  });
}

function booleanOf(config: Readonly<Record<string, unknown>>, name: string): boolean | undefined {
  const value = config[name];
  if (value === undefined || typeof value === 'boolean') return value;
  if (value === 'true' || value === 'false') return value === 'true';
  throw new IsthmusError('invalidArgument', `${name} is ${show(value)}: it is true or false`);
}

function mismatchOf(value: unknown): OnPartitionMismatch {
  if (value === undefined) return DEFAULT_POLICY.onPartitionMismatch;
  const known = ON_PARTITION_MISMATCH.find((name) => name === value);
  if (known !== undefined) return known;
  throw new IsthmusError(
    'invalidArgument',
    `onPartitionMismatch is ${show(value)}: it is one of ${ON_PARTITION_MISMATCH.join(', ')}`,
  );
}
