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
  type ReplicatorCounters,
  type ReplicatorEvent,
  type ReplicatorOptions,
  type ReplicatorPorts,
  type ReplicatorStatus,
  type SegmentStatus,
} from './replicator.js';
export type { HoldReason } from './segment.js';
