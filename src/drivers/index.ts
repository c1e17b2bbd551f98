export { systemClock } from './clock.js';
export { batchExchanges, createExchangeHandler } from './exchange.js';
export {
  createLayoutController,
  type ExchangeCounts,
  type LayoutController,
  type LayoutControllerEvent,
  type LayoutControllerOptions,
  type LayoutControllerPorts,
} from './layout-controller.js';
export {
  type InstrumentOptions,
  type MetricMeter,
  type MetricObserver,
  type ObservableInstrument,
  type ObservedReplication,
  observeReplication,
} from './metrics.js';
export { RemoteRate } from './remote-rate.js';
export {
  createReplicator,
  type Replicator,
  type ReplicatorEvent,
  type ReplicatorOptions,
  type ReplicatorPorts,
  type ReplicatorStatus,
} from './replicator.js';
export type { ReadBackProgress, SegmentStatus } from './segment.js';
export { SlowPath } from './slow-path.js';
export { type RemoteStatus, type SegmentLine, type TopicParts, type TopicStatus, topicStatus } from './topic-status.js';
