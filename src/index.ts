/**
 * isthmus decides how the message stream of a range-segmented topic travels between clusters. It is the replication
 * core that a broker, a proxy or a custom replicator embeds: the host brings storage and transport, isthmus brings
 * every decision, as pure functions and values. This page tells the whole design; each room's files tell the rest.
 *
 * ## The problem
 *
 * A scalable topic (PIP-460) is cut by key: each *segment* owns a range of a 16-bit ring, and a message goes where
 * the high half of its key's hash lies. Inside a segment the low half of the same hash picks an *entry bucket*
 * (PIP-486), and producers batch per bucket, so that a whole entry goes to one consumer. Each cluster splits, merges
 * and rebuckets its own topics as its own load asks. So a batch read on one cluster may have no single place on
 * another: its keys may lie in two segments there, or in two buckets.
 *
 * ## Two paths
 *
 * An entry is forwarded **verbatim** when its place is certain without reading its payload: one remote segment covers
 * the whole range of the source segment, and the entry's stamp (the lowest and highest bucket hash in it) lies within
 * one bucket there. `choosePath` decides that from the outer metadata alone; `restamp` then puts on the source cluster
 * and position by editing bytes, and *moves* the checksum: CRC32C is linear, so the checksum of the changed head and
 * the unread payload follows from the stored one. Forwarding 5 MiB costs what forwarding 1 KiB costs.
 *
 * Else the entry is **re-batched**: `rebatch` opens it, groups its records by remote segment and bucket, and writes
 * each group as an entry of its own, records byte for byte. That is always correct and never cheap, so the rest of the
 * design makes it rare. What can be neither forwarded whole nor opened (an encrypted batch, a corrupt one) is *held*
 * with a reason: never dropped, never sent wrong.
 *
 * ## One rule for layouts
 *
 * Clusters need no leader to agree: **a boundary exists if any cluster has it**, on both rings. A layout's `Shape` is
 * its active ranges and their bucket boundaries; `joinShapes` is the union, a join-semilattice, so that the order in
 * which clusters hear of each other does not matter. `applyShape` brings a layout onto a shape in one mutation. Only
 * *siblings*, the two leaves of one node of a split tree that every cluster computes alike, may merge again
 * (`siblingBoundaries`). Once shapes are equal, everything is verbatim.
 *
 * Clusters tell each other their states (`PeerState`), and each computes the same next shape from them (`nextShape`):
 * its own joined with what every peer demands, less what every cluster calls cold. `stepController` is the machine
 * around that: pushes with retries, answers after the fold, anti-entropy, new leaders, peers that leave. A host that
 * cannot apply a layout in one mutation gets a plan of splits, merges and rebuckets (`planOperations`).
 *
 * ## Order, and once
 *
 * A key lies in one bucket of one segment, so its messages stay together through a re-batch, and parts of one entry
 * share no key. Sends to one remote segment go in ascending source position; a part's number is the end hash of its
 * bucket, so that a retry under another layout numbers what it sends alike. The destination keeps one watermark for
 * each source segment (`DedupWindow`): `offer` answers `accept`, `duplicate`, `gap` when a send before it is missing,
 * or `partial` when an earlier, finer attempt stored some of it. A sealed segment hands its window on. When a segment
 * is sealed between two parts, the rectangles of the ring that were acknowledged are left out of the next plan.
 * `replicated_from` on every copy ends loops.
 *
 * ## Seals, crashes, slow remotes
 *
 * `SegmentReplicator` is the machine of one source segment towards one remote: it is told events and answers with
 * effects. Entries are read in order, planned in order and sent on one *lane* for each remote segment; the cursor passes
 * an entry when all of it is stored, is written before the source is told, and nothing is ever acknowledged ahead of
 * it. When a remote segment is sealed, its lane is closed: what is known to be stored stays settled, the rest is planned
 * again under the new layout, and no descendant is sent to before (`FAILURES` says what follows from each failure). A
 * remote that keeps dedup windows is asked what it has; one that keeps nothing, as today's brokers, is read back behind
 * a barrier. A segment that cannot go on says why (`STOP_REASONS`), and everything it waits for is one stated thing.
 *
 * ## Rooms
 *
 * From below: `ring` (hashes, ranges, buckets), `entry` (the stored entry), `layout` (the segment DAG, shapes, joins),
 * `dedup`, `rebatch`, `convergence`, `replication` (the machine of a segment, the slow-path budget, rate limits). They
 * read no clock, no random source, no network and no disk: the same inputs give the same outputs. `isthmus/drivers` runs them against `ports`, the interfaces a host implements; `isthmus/adapters/*` are
 * ready ports; `isthmus/testing` has arbitraries for property tests.
 *
 * @packageDocumentation
 */
export {
  type BucketMarks,
  type CapMismatch,
  type Caps,
  type ColdMarks,
  type ControllerEffect,
  type ControllerEvent,
  type ControllerOptions,
  type ControllerReport,
  type ControllerStart,
  type ControllerState,
  type ControllerStatus,
  type ControllerStep,
  controllerStatus,
  DEFAULT_THRESHOLDS,
  type ExchangeErrorCode,
  type ExchangeRequest,
  type ExchangeResult,
  effectiveCaps,
  formatPeerState,
  isNewer,
  type LocalPolicy,
  type ManualOperation,
  type NextShape,
  type NextShapeInput,
  NO_MARKS,
  nextShape,
  type PeerRecord,
  type PeerState,
  type PeerStatus,
  type PolicyDecision,
  type PolicyView,
  PROTOCOL_VERSION,
  parseExchangeRequests,
  parseExchangeResults,
  parsePeerState,
  type ResolvedControllerOptions,
  type SegmentLoad,
  type ShapeDifference,
  startController,
  stepController,
  type ThresholdSettings,
  thresholdPolicy,
} from './convergence/index.js';
export {
  type Binding,
  CredentialKey,
  CredentialKeys,
  type CredentialKeysOptions,
  type CredentialStore,
  checkCaPem,
  checkPauseReason,
  checkRemoteId,
  checkRemoteName,
  checkUsername,
  drawRemoteId,
  drawSalt,
  type Envelope,
  isStrongSecret,
  judgeSeal,
  judgeUpdate,
  type LoginChange,
  type LoginLookup,
  type Opened,
  type OpenFailure,
  type RandomBytes,
  type Reencrypted,
  type RegisteredRemote,
  RemoteLogin,
  RemoteLogins,
  type RemoteVersions,
  type ReplaceResult,
  readPassword,
  reencrypt,
  SEAL_LIMIT,
  SEAL_WARNING,
  type SealCount,
  type SealCounts,
  type SealedRemote,
  type SealProposal,
  type SealVerdict,
  Secret,
  trustAnchorOf,
  type UpdateVerdict,
} from './credentials/index.js';
export {
  comparePositions,
  type DedupSnapshot,
  DedupWindow,
  isSameEntry,
  type Offer,
  type OfferAnswer,
} from './dedup/index.js';
export {
  type BatchMessage,
  type BrokerEntry,
  batchMessage,
  type ChunkInfo,
  type Codec,
  type Codecs,
  type CompressionType,
  type DecodeLimits,
  defaultCodecs,
  type EncodeBatchOptions,
  type EncodeMessageOptions,
  type EncryptionKey,
  type Entry,
  type EntryBuffers,
  type EntryMetadata,
  encodeBatch,
  encodeMessage,
  formatSourcePosition,
  joinBuffers,
  type MessageFields,
  type OuterFields,
  parseEntry,
  parseSourcePosition,
  type RestampOptions,
  readBatch,
  restamp,
  SOURCE_POSITION_PROPERTY,
  type SourcePosition,
  type Stamp,
  verifyChecksum,
  zstdCodecOf,
} from './entry/index.js';
export { IsthmusError, type IsthmusErrorCode } from './errors.js';
export {
  type AddressVerdict,
  type CanonicalUrl,
  canonicalHost,
  canonicalUrl,
  type DenialCause,
  type DialPermit,
  type DialRefusal,
  DialRefused,
  type DialVerdict,
  Guard,
  type GuardedTarget,
  type GuardOptions,
  guardTarget,
  type PinnedAddress,
  type RefusalReason,
  type ResolveHost,
} from './guard/index.js';
export {
  type ApplyShapeOptions,
  applyShape,
  type Cell,
  type CreateLayoutOptions,
  createLayout,
  equalShapes,
  executeOperation,
  findActiveSegment,
  formatLayout,
  type HostCapabilities,
  isAtLeastAsFine,
  joinShapes,
  type Layout,
  type MergeOptions,
  mergeSegments,
  type Operation,
  type OperationPlan,
  parseLayout,
  parseShape,
  planOperations,
  pruneSegment,
  rebucketSegment,
  type Segment,
  type Shape,
  type SplitOptions,
  shapeOf,
  siblingBoundaries,
  splitSegment,
  type Unreachable,
} from './layout/index.js';
export type {
  AtomicSegmentHost,
  BacklogQuery,
  Clock,
  CommitResult,
  CreationResult,
  CursorRecord,
  CursorStore,
  CursorWrite,
  EntryRead,
  EntrySource,
  ExchangeHandler,
  ExchangeReply,
  HostedSegment,
  LayoutHost,
  LayoutReader,
  LayoutStore,
  ListedSegment,
  LoadSource,
  OpenResult,
  OperationResult,
  PeerChannel,
  PlanningSegmentHost,
  Random,
  ReadLimits,
  Reasoned,
  RemoteFailure,
  RemotePin,
  RemoteProducer,
  RemoteSupport,
  RemoteTopic,
  RemoteTopicLayout,
  SchemaTranslation,
  SchemaTranslator,
  SegmentClaim,
  Send,
  SendResult,
  StoredEntry,
  TopicAdmin,
  TopicCreations,
  TopicLookUps,
  TopicName,
  WatermarkResult,
} from './ports/index.js';
export {
  type Creation,
  cellOf,
  covers,
  type Drawn,
  decideProvisioning,
  describeShape,
  equalSegmentStarts,
  everyCell,
  type LocalKind,
  type LookedUpSegment,
  type LookUp,
  type LookUpFailure,
  MAX_INITIAL_SEGMENTS,
  nearestSegmentCount,
  ON_PARTITION_MISMATCH,
  type OnPartitionMismatch,
  PROVISIONING_OUTCOMES,
  PROVISIONING_PHASES,
  PROVISIONING_REASONS,
  PROVISIONING_TABLE,
  type ProvisioningCell,
  type ProvisioningChange,
  type ProvisioningCounters,
  type ProvisioningDecision,
  type ProvisioningEffect,
  type ProvisioningEvent,
  type ProvisioningInput,
  type ProvisioningOptions,
  type ProvisioningOutcome,
  type ProvisioningPhase,
  type ProvisioningPolicy,
  type ProvisioningReason,
  type ProvisioningRule,
  type ProvisioningState,
  type ProvisioningStep,
  partitionsOf,
  phaseOf,
  policyFromConfig,
  provisioningMarkdown,
  REMOTE_KINDS,
  type Reasoning,
  type RemoteKind,
  type ReplicationScope,
  ruleOf,
  shapeFromAnswers,
  splitPartitionName,
  startProvisioning,
  stepProvisioning,
  type TopicAnswers,
  type TopicShape,
} from './provisioning/index.js';
export {
  choosePath,
  inspectBatch,
  type Part,
  type PartOptions,
  type Path,
  type PathOptions,
  type RebatchOptions,
  type Rectangle,
  type RemoteLayout,
  rebatch,
  type SkipReason,
  type SourceSegment,
} from './rebatch/index.js';
export {
  type BudgetEffect,
  type BudgetOptions,
  type BudgetReport,
  type BudgetSettings,
  canPrune,
  DEFAULT_BUDGET,
  DEFAULT_SEGMENT_OPTIONS,
  type DrainAnswer,
  type DuplicateCause,
  FAILURES,
  type Failure,
  type FailureAnswer,
  type FailureClass,
  type FailureRow,
  type FoundCopy,
  type HoldReason,
  type LaneReport,
  type LaneStop,
  newCounters,
  type PassReason,
  RateLimit,
  type RateLimitEffect,
  type RateLimitSettings,
  type ReadSize,
  type Recovery,
  type ReplicatorCounters,
  readCopy,
  type SegmentEffect,
  type SegmentEvent,
  type SegmentNotice,
  type SegmentOptions,
  SegmentReplicator,
  type SegmentReplicatorStart,
  type SegmentReport,
  type SegmentWait,
  SlowPathBudget,
  STOP_REASONS,
  type StopReason,
  slowPathBytes,
  type ThrottledTime,
} from './replication/index.js';
export {
  bucketHash,
  bucketIndex,
  bucketRange,
  classicPartition,
  equalWidthSplits,
  type HashRange,
  hashKey,
  segmentHash,
} from './ring/index.js';
