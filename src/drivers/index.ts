export { systemClock } from './clock.js';
export type { ConnectAdmin } from './cluster-admin.js';
export {
  type CreationFanOutOptions,
  type CreationFanOutPorts,
  creationFanOut,
  type FanOutResult,
} from './creation-fan-out.js';
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
export {
  type ProducerPermit,
  type ProvisionedReplicator,
  type ProvisionedRun,
  provisionedRemote,
} from './provisioned-run.js';
export {
  createProvisioner,
  type Provisioner,
  type ProvisionerEvent,
  type ProvisionerOptions,
  type ProvisionerPorts,
  type ProvisionerStatus,
} from './provisioner.js';
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
export {
  type AttachRequest,
  type ChildLag,
  type ClusterBacklogs,
  type CursorStanding,
  createRemoteSender,
  DEFAULT_LIMITS,
  type DialCounts,
  type DriverLog,
  type KeyStanding,
  type LinkAnswer,
  type LinkRefusal,
  type LinkStanding,
  type MetricHistogram,
  observeRemoteSender,
  type RemoteDraft,
  type RemoteSender,
  type RemoteSenderEvent,
  type RemoteSenderOptions,
  type RemoteSenderPorts,
  type RemoteSenderStatus,
  type RemoteStanding,
  type RequestWatch,
  type SealedDraft,
  type SealOptions,
  type SenderLogger,
  type SenderMeter,
  type ShownReport,
  sealRemote,
  systemResolver,
  type TestRequest,
  type UnshippedAnswer,
  type UnshippedRequest,
} from './sender/index.js';
export { SlowPath } from './slow-path.js';
export { type RemoteStatus, type SegmentLine, type TopicParts, type TopicStatus, topicStatus } from './topic-status.js';
