/**
 * Scalable topics of unmodified Pulsar 5.0.1 clusters behind the ports: over the binary protocol for entries and layouts,
 * over the admin REST for layout operations. A process on any machine can take part; cursors and who leads are kept on
 * the clusters themselves.
 */
export {
  type AdminFailure,
  type AdminOptions,
  type AdminReply,
  type AdminResult,
  type AutoScalePolicy,
  type BacklogQuota,
  type Known,
  type NamespaceLimits,
  namespaceLimits,
  PulsarAdmin,
  pulsarTopicAdmin,
  restoreSegments,
  type TopicSubscription,
} from './admin/index.js';
export { adminPin } from './admin-pin.js';
export {
  type PulsarHostOptions,
  PulsarLayouts,
  type PulsarLayoutsOptions,
  pulsarHost,
  stopAutomaticMerges,
} from './layout/index.js';
export { type LeaderOptions, type Leadership, leaderships } from './leader.js';
export * from './protocol/index.js';
export {
  type PinEnsured,
  type PulsarRemote,
  type PulsarRemoteOptions,
  pulsarRemote,
  type ReadBackWait,
} from './remote/index.js';
export { SegmentTopics } from './remote/segment-topics.js';
export { type SchemaDestination, type SchemaSource, schemaTranslator } from './schema.js';
export {
  adminSubscriptions,
  type PulsarSource,
  type PulsarSourceOptions,
  pulsarSource,
  type SourceSubscriptions,
} from './source/index.js';
export {
  type Members,
  type PrepareStateOptions,
  prepareState,
  type StateAdmin,
  type StatePreparation,
  StateTopic,
  type StateTopicOptions,
  type StoreName,
} from './state/index.js';
