export type { BacklogQuery } from './backlog-query.js';
export type { Clock } from './clock.js';
export type { ClusterMembers, MemberCheck } from './cluster-members.js';
export type { CursorRecord, CursorStore, CursorWrite } from './cursor-store.js';
export type { EntryRead, EntrySource, ReadLimits, SegmentClaim, StoredEntry } from './entry-source.js';
export type { CommitResult, LayoutReader, LayoutStore } from './layout-store.js';
export type { LinkCursors } from './link-cursors.js';
export type { LoadSource } from './load-source.js';
export type { ParentTopic, ParentTopics, PartitionBacklog, StartMode } from './parent-topic.js';
export type { ExchangeHandler, ExchangeReply, PeerChannel } from './peer-channel.js';
export type { Random } from './random.js';
export type {
  LinkWrite,
  LinkWriteAnswer,
  RemoteRegistry,
  StoredLimits,
  StoredLink,
  StoredRemote,
} from './remote-registry.js';
export type {
  OpenResult,
  Reasoned,
  RemoteFailure,
  RemotePin,
  RemoteProducer,
  RemoteSupport,
  RemoteTopic,
  RemoteTopicLayout,
  Send,
  SendResult,
  WatermarkResult,
} from './remote-topic.js';
export type { SchemaTranslation, SchemaTranslator } from './schema-translator.js';
export type {
  AtomicSegmentHost,
  HostedSegment,
  LayoutHost,
  OperationResult,
  PlanningSegmentHost,
} from './segment-host.js';
export type {
  CreationResult,
  ListedSegment,
  TopicAdmin,
  TopicCreations,
  TopicLookUps,
  TopicName,
} from './topic-admin.js';
