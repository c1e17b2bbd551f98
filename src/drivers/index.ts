export { systemClock } from './clock.js';
export {
  createReplicator,
  type Replicator,
  type ReplicatorCounters,
  type ReplicatorEvent,
  type ReplicatorOptions,
  type ReplicatorPorts,
  type ReplicatorStatus,
  type SegmentStatus,
} from './replicator.js';
export type { HoldReason } from './segment.js';
