/**
 * What downstream teams test their own host with: fast-check arbitraries for every value, which shrink to small
 * readable cases, acceptance suites for ports, a virtual clock, a lossy network, and a world of clusters whose
 * layouts converge. Needs `fast-check`.
 *
 * @packageDocumentation
 */
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
export {
  type LinkFaults,
  LossyNetwork,
  type LossyNetworkOptions,
  NO_FAULTS,
  seededRandom,
  type Transit,
} from './lossy-network.js';
export { arbCaps, arbColdMarks, arbPeerState, type PeerStateArbitraryOptions } from './peer-states.js';
export { arbSourcePosition, type PositionOptions } from './positions.js';
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
export { type EntrySourceFactory, type EntrySourceSetup, testEntrySource } from './source-suite.js';
export type { RegisterTest, SuiteSetup } from './suite.js';
export { VirtualClock } from './virtual-clock.js';
