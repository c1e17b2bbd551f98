/** Shapes for tests: in shorthand, and drawn at random. */
import fc from 'fast-check';
import { ON_PARTITION_MISMATCH, type ProvisioningPolicy, type TopicShape } from '../../src/provisioning/index.js';

export const missing: TopicShape = { type: 'missing' };
export const plain: TopicShape = { type: 'nonPartitioned', partitionNamed: false };
export const noNamespace: TopicShape = { type: 'namespaceMissing' };
export const unreachable: TopicShape = { type: 'unknown', failure: 'unavailable', reason: 'no route' };
export const both: TopicShape = { type: 'both' };

export function partitioned(partitions: number, ...absent: number[]): TopicShape {
  return { type: 'partitioned', partitions, absent };
}

export function beyond(partitions: number, ...indices: number[]): TopicShape {
  return { type: 'partitionedAndOrphans', partitions, absent: [], beyond: indices };
}

export function orphans(...indices: number[]): TopicShape {
  return { type: 'orphans', indices };
}

export function mixed(partitions: number): TopicShape {
  return { type: 'mixed', partitions };
}

export function scalable(...starts: number[]): TopicShape {
  return { type: 'scalable', starts };
}

export function halfMade(...starts: number[]): TopicShape {
  return { type: 'scalablePartial', starts, absent: [0] };
}

/** The policy with creation on and the defaults, or with what is given. */
export function policy(changes: Partial<ProvisioningPolicy> = {}): ProvisioningPolicy {
  return { createTopicToRemoteCluster: true, onPartitionMismatch: 'stop', requireSameShape: false, ...changes };
}

const arbCount = fc.integer({ min: 1, max: 4 });
const arbStarts = fc.subarray([0x4000, 0x8000, 0xc000]).map((starts) => [0, ...starts]);

export const arbTopicShape: fc.Arbitrary<TopicShape> = fc.oneof(
  fc.constantFrom(missing, plain, noNamespace, unreachable, both),
  fc.constant<TopicShape>({ type: 'nonPartitioned', partitionNamed: true }),
  arbCount.map((count) => partitioned(count)),
  arbCount.map((count) => partitioned(count, count - 1)),
  fc.subarray([0, 1, 2, 3], { minLength: 1 }).map((indices) => orphans(...indices)),
  arbCount.map((count) => beyond(count, count + 1)),
  arbCount.map(mixed),
  arbStarts.map((starts) => scalable(...starts)),
  arbStarts.map((starts) => halfMade(...starts)),
);

export const arbPolicy: fc.Arbitrary<ProvisioningPolicy> = fc.record({
  createTopicToRemoteCluster: fc.boolean(),
  onPartitionMismatch: fc.constantFrom(...ON_PARTITION_MISMATCH),
  requireSameShape: fc.boolean(),
});
