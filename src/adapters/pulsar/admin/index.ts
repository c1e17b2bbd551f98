/** The admin REST of a Pulsar cluster: what replication asks of it, with failures as values. */
export { type AdminReply, type AutoScalePolicy, PulsarAdmin, type TopicSubscription } from './admin.js';
export type { AdminFailure, AdminOptions, AdminResult } from './http.js';
export { type BacklogQuota, type Known, type NamespaceLimits, namespaceLimits } from './limits.js';
export { restoreSegments } from './restore.js';
export { pulsarTopicAdmin } from './topic-admin.js';
