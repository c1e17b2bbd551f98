/**
 * What downstream teams test their own host with: fast-check arbitraries for every value, which shrink to small
 * readable cases, acceptance suites for ports, `simulate` for whole clusters by seed, a virtual clock, a lossy network, a
 * world of clusters whose layouts converge, and a target for remote senders over real HTTPS. Needs `fast-check`.
 *
 * @packageDocumentation
 */
export {
  type BacklogQueryFactory,
  type BacklogQuerySetup,
  type LoadSourceFactory,
  type LoadSourceSetup,
  testBacklogQuery,
  testLoadSource,
} from './backlog-suite.js';
export { type ClockFactory, type ClockSetup, type RandomFactory, testClock, testRandom } from './clock-suite.js';
export {
  arbControllerEvent,
  arbControllerOptions,
  arbPolicyDecision,
  type ControllerEventOptions,
} from './controller-events.js';
export { BrokenInvariant } from './convergence-invariants.js';
export {
  ConvergenceWorld,
  PULSAR_OPERATIONS,
  type StoreFailure,
  type WorldCluster,
  type WorldEvent,
  type WorldOptions,
  type WorldPolicy,
} from './convergence-world.js';
export { type CursorStoreFactory, type CursorStoreSetup, testCursorStore } from './cursor-suite.js';
export {
  arbCursorRecord,
  arbDedupSnapshot,
  arbOffer,
  arbRectangle,
  arbSendResult,
  arbStamp,
} from './dedup-values.js';
export {
  arbCodecNames,
  arbEntry,
  arbMessageFields,
  arbOuterFields,
  arbUnknownField,
  type EntryFrame,
  type EntryOptions,
  frameEntry,
  type GeneratedContent,
  type GeneratedEntry,
  type RawField,
  rawField,
  type StampForm,
  splitFields,
} from './entries.js';
export {
  arbExchangeRequest,
  arbExchangeResult,
  arbHostCapabilities,
  arbManualOperation,
  arbOperation,
  arbPolicyView,
  arbSegmentLoad,
  arbThresholdSettings,
} from './exchange-values.js';
export {
  type AnswerOptions,
  type CertificateAuthority,
  type CertificateOptions,
  createAuthority,
  edgeAnswer,
  errorAnswer,
  FakeTarget,
  type FakeTargetOptions,
  type FaultRule,
  jsonAnswer,
  type OpenBatch,
  type OpenZstd,
  type RequestKind,
  routeMissing,
  type SeenRequest,
  type SentMessage,
  type ServerCertificate,
  type StoredMessage,
  startFakeTarget,
  TARGET_RELEASES,
  type TargetAnswer,
  TargetBroker,
  type TargetChild,
  type TargetFace,
  type TargetFault,
  type TargetGrant,
  type TargetHead,
  type TargetRelease,
  type TargetSettings,
  type TargetTopic,
  type TargetUser,
  textAnswer,
  topicOf,
} from './fake-target/index.js';
export {
  type LayoutHostFactory,
  type LayoutHostSetup,
  testLayoutStore,
  testSegmentHost,
} from './layout-suites.js';
export {
  arbBucketSplits,
  arbLayout,
  arbLayoutHistory,
  arbShape,
  type LayoutArbitraryOptions,
  type LayoutHistory,
  type LayoutStep,
  layoutAfter,
  type ShapeArbitraryOptions,
} from './layouts.js';
export { type LinkCursorsFactory, type LinkCursorsSetup, testLinkCursors } from './link-cursors-suite.js';
export {
  type LinkFaults,
  LossyNetwork,
  type LossyNetworkOptions,
  NO_FAULTS,
  seededRandom,
  type Transit,
} from './lossy-network.js';
export {
  type AskedMember,
  type ClusterMembersFactory,
  type ClusterMembersSetup,
  testClusterMembers,
} from './members-suite.js';
export {
  type ParentRecord,
  type ParentTopicsFactory,
  type ParentTopicsSetup,
  testParentTopics,
} from './parents-suite.js';
export { arbCaps, arbColdMarks, arbPeerState, type PeerStateArbitraryOptions } from './peer-states.js';
export { type PeerChannelFactory, type PeerChannelSetup, testPeerChannel } from './peer-suite.js';
export { arbSourcePosition, type PositionOptions } from './positions.js';
export {
  arbProvisioningInput,
  arbProvisioningPolicy,
  arbTopicAnswers,
  arbTopicShape,
} from './provisioning-values.js';
export { type RemoteRegistryFactory, type RemoteRegistrySetup, testRemoteRegistry } from './registry-suite.js';
export type { RemoteTopicFactory, RemoteTopicSetup } from './remote-lane.js';
export { testRemoteTopic } from './remote-suite.js';
export {
  arbRange,
  arbRemoteHistory,
  arbRemoteLayout,
  arbSourceSegment,
  type RemoteLayoutOptions,
  remoteLayoutOf,
} from './remotes.js';
export {
  type SchemaTranslatorFactory,
  type SchemaTranslatorSetup,
  type SourceSchema,
  testSchemaTranslator,
} from './schema-suite.js';
export { arbSegmentEvent, type SegmentEventOptions } from './segment-events.js';
export {
  type ArbBytes,
  arbFailure,
  arbFoundCopy,
  arbLaneStop,
  arbRecovery,
  arbRemoteTopicHistory,
  arbRemoteTopicLayout,
  arbSchemaTranslation,
  arbSegmentOptions,
  arbStoredEntry,
} from './segment-values.js';
export {
  arbBinding,
  arbBudgetSettings,
  arbHttpOutcome,
  arbLinkRecord,
  arbRateLimitSettings,
  arbRemoteLimits,
  arbSkipEntry,
  arbSlab,
  arbSourceRecord,
} from './sender-values.js';
export { type SimulateOptions, type SimulationMutant, type SimulationReport, simulate } from './simulation.js';
export { describeFailure, type SimulationFailure } from './simulation-failure.js';
export {
  arbSimulationSchedule,
  runSimulation,
  type SettledWorld,
  SIMULATION_FAULTS,
  type SimulationFault,
  type SimulationHappening,
  type SimulationSchedule,
  type SimulationScheduleOptions,
  type SimulationSettings,
} from './simulation-schedule.js';
export { type EntrySourceFactory, type EntrySourceSetup, testEntrySource } from './source-suite.js';
export type { RegisterTest, SuiteSetup } from './suite.js';
export { type TopicAdminFactory, type TopicAdminSetup, testTopicAdmin } from './topic-admin-suite.js';
export { VirtualClock } from './virtual-clock.js';
