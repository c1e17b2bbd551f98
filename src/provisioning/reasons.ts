/** Why a topic is, or is not, replicated: a closed list, each reason with what an operator can do about it. */

export const PROVISIONING_REASONS = Object.freeze({
  sameShape: 'Both sides have the same shape.',
  layoutsDiffer: 'Two scalable topics of other segments: their layouts are brought together by convergence.',
  topicMissing: 'There is no such topic on the remote. Where it may not be created, create it there.',
  topicLost: 'The topic, or a part of it, has gone while it was written to. It is looked for, and not written to.',
  orphansWithoutRecord:
    'Partition topics exist on the remote without a partitioned topic. Create the record with the local count; beside a plain topic, remove them.',
  orphansAboveCount:
    'Partition topics exist on the remote with indices at or above the local count. Remove them, or expand the local topic.',
  orphansBeyond:
    'The remote has partition topics beyond its own count, so that it is not expanded. Remove them, or complete the record.',
  partitionsAbsent: 'Partitions that the remote promises do not exist. Create the missed partitions there.',
  partitionMismatch: 'The counts of partitions differ. Expand the smaller side, or choose another onPartitionMismatch.',
  partitionNamed:
    'The name ends in a partition suffix, so the topic cannot be created by itself. Create what it is part of.',
  typeMismatch: 'One side is partitioned and the other is not. Remove the wrong one.',
  kindMismatch: 'One side is scalable and the other is classic. Remove the wrong one.',
  mixed: 'The remote has a partitioned and a plain topic of this name. Remove one of them.',
  both: 'The remote has a scalable and a classic topic of this name. Remove one of them.',
  scalablePartial:
    'The scalable topic on the remote lacks segments: half made, or half removed. Delete it there, or complete it.',
  namespaceMissing: 'The namespace does not exist on the remote. Create it there; it is never created from here.',
  localMissing: 'There is no such topic here.',
  localIrregular: 'The local topic is itself mixed, half made, or without its record. Repair it first.',
  localUnknown: 'What there is here could not be read. Nothing is changed until it can.',
  remoteUnknown: 'What there is on the remote could not be read. Nothing is changed until it can.',
});

export type ProvisioningReason = keyof typeof PROVISIONING_REASONS;
