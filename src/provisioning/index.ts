export { type LookedUpSegment, type LookUp, shapeFromAnswers, type TopicAnswers } from './answers.js';
export {
  cellOf,
  everyCell,
  type LocalKind,
  PROVISIONING_PHASES,
  type ProvisioningCell,
  type ProvisioningInput,
  type ProvisioningPhase,
  REMOTE_KINDS,
  type RemoteKind,
} from './cells.js';
export type { ProvisioningCounters } from './counters.js';
export {
  type Creation,
  decideProvisioning,
  type ProvisioningDecision,
  type Reasoning,
  type ReplicationScope,
  ruleOf,
} from './decide.js';
export type {
  Drawn,
  ProvisioningChange,
  ProvisioningEffect,
  ProvisioningEvent,
  ProvisioningOptions,
  ProvisioningState,
  ProvisioningStep,
} from './events.js';
export { equalSegmentStarts, MAX_INITIAL_SEGMENTS, nearestSegmentCount } from './initial-segments.js';
export { phaseOf, startProvisioning, stepProvisioning } from './machine.js';
export { provisioningMarkdown } from './markdown.js';
export {
  ON_PARTITION_MISMATCH,
  type OnPartitionMismatch,
  type ProvisioningPolicy,
  policyFromConfig,
} from './policy.js';
export { PROVISIONING_REASONS, type ProvisioningReason } from './reasons.js';
export { describeShape, type LookUpFailure, partitionsOf, splitPartitionName, type TopicShape } from './shapes.js';
export {
  covers,
  PROVISIONING_OUTCOMES,
  PROVISIONING_TABLE,
  type ProvisioningOutcome,
  type ProvisioningRule,
} from './table.js';
