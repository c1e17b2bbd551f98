/** Random values of provisioning: what there is of a topic on a cluster, what look-ups say of it, and what is allowed. */
import fc from 'fast-check';
import {
  type LookedUpSegment,
  type LookUp,
  type LookUpFailure,
  ON_PARTITION_MISMATCH,
  PROVISIONING_PHASES,
  type ProvisioningInput,
  type ProvisioningPolicy,
  type TopicAnswers,
  type TopicShape,
} from '../provisioning/index.js';

const FAILURES: readonly LookUpFailure[] = [
  'unauthorized',
  'refused',
  'unsupported',
  'unavailable',
  'timedOut',
  'noClient',
  'unclear',
];

const MOST_PARTITIONS = 6;

/** A topic on one cluster, in every shape that there is; shrinks to a missing one. */
export function arbTopicShape(): fc.Arbitrary<TopicShape> {
  const partitions = fc.integer({ min: 1, max: MOST_PARTITIONS });
  const failure = fc.record({ failure: fc.constantFrom(...FAILURES), reason: fc.constantFrom('so it is', '') });
  return fc.oneof(
    { withCrossShrink: true },
    fc.constantFrom<TopicShape>({ type: 'missing' }, { type: 'both' }, { type: 'namespaceMissing' }),
    fc.boolean().map((partitionNamed): TopicShape => ({ type: 'nonPartitioned', partitionNamed })),
    partitions.chain((count) =>
      indicesBelow(count).map((absent): TopicShape => ({ type: 'partitioned', partitions: count, absent })),
    ),
    indicesBelow(MOST_PARTITIONS, 1).map((indices): TopicShape => ({ type: 'orphans', indices })),
    partitions.chain((count) =>
      fc.tuple(indicesBelow(count), indicesBelow(3, 1)).map(([absent, more]): TopicShape => {
        return { type: 'partitionedAndOrphans', partitions: count, absent, beyond: more.map((i) => count + i) };
      }),
    ),
    partitions.map((count): TopicShape => ({ type: 'mixed', partitions: count })),
    arbStarts().map((starts): TopicShape => ({ type: 'scalable', starts })),
    arbStarts().chain((starts) =>
      indicesBelow(starts.length, 1).map((absent): TopicShape => ({ type: 'scalablePartial', starts, absent })),
    ),
    failure.map((fields): TopicShape => ({ type: 'unknown', ...fields })),
  );
}

/** What an operator allows. */
export function arbProvisioningPolicy(): fc.Arbitrary<ProvisioningPolicy> {
  return fc.record({
    createTopicToRemoteCluster: fc.boolean(),
    onPartitionMismatch: fc.constantFrom(...ON_PARTITION_MISMATCH),
    requireSameShape: fc.boolean(),
  });
}

/** Two shapes, what is allowed, and when: what a decision is made of. */
export function arbProvisioningInput(): fc.Arbitrary<ProvisioningInput> {
  return fc.record({
    local: arbTopicShape(),
    remote: arbTopicShape(),
    policy: arbProvisioningPolicy(),
    phase: fc.constantFrom(...PROVISIONING_PHASES),
  });
}

/** What the look-ups of a topic `orders` answered, contradictions included. */
export function arbTopicAnswers(): fc.Arbitrary<TopicAnswers> {
  const partitionNames = indicesBelow(MOST_PARTITIONS).map((list) => list.map((i) => `orders-partition-${i}`));
  const names = fc
    .tuple(partitionNames, fc.subarray(['orders', 'other', 'orders-partition-', 'other-partition-0']))
    .map((lists): readonly string[] => lists.flat());
  const segments = arbStarts().chain((starts) =>
    fc
      .array(fc.boolean(), { minLength: starts.length, maxLength: starts.length })
      .map((exist) => starts.map((start, i): LookedUpSegment => ({ segmentId: i, start, exists: exist[i] ?? true }))),
  );
  return fc.record({
    name: fc.constantFrom('orders', 'orders-partition-1'),
    namespace: arbLookUp(fc.constant(true as const)),
    partitions: arbLookUp(fc.nat({ max: MOST_PARTITIONS })),
    names: arbLookUp(names),
    scalable: arbLookUp(segments),
  });
}

function arbLookUp<T>(value: fc.Arbitrary<T>): fc.Arbitrary<LookUp<T>> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 4, arbitrary: value.map((found): LookUp<T> => ({ type: 'found', value: found })) },
    { weight: 2, arbitrary: fc.constant<LookUp<T>>({ type: 'missing' }) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(...FAILURES)
        .map((failure): LookUp<T> => ({ type: 'failed', failure, reason: 'so it is' })),
    },
  );
}

/** The starts of active segments: from 0, on a coarse grid. */
function arbStarts(): fc.Arbitrary<readonly number[]> {
  return fc.subarray([1, 2, 3, 4, 5, 6, 7]).map((cuts) => [0, ...cuts.map((cut) => cut * 0x2000)]);
}

/** Some numbers below this one, ascending. */
function indicesBelow(count: number, minLength = 0): fc.Arbitrary<number[]> {
  return fc.subarray(
    Array.from({ length: count }, (_, i) => i),
    { minLength },
  );
}
