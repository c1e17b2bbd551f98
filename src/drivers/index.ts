export { systemClock } from './clock.js';
export { batchExchanges, createExchangeHandler } from './exchange.js';
export {
  createLayoutController,
  type LayoutController,
  type LayoutControllerEvent,
  type LayoutControllerOptions,
  type LayoutControllerPorts,
} from './layout-controller.js';
export {
  createReplicator,
  type Replicator,
  type ReplicatorEvent,
  type ReplicatorPorts,
  type ReplicatorStatus,
} from './replicator.js';
export type { HoldReason, ReplicatorCounters, ReplicatorOptions, SegmentStatus } from './replicator-state.js';
export { SlowPath } from './slow-path.js';
