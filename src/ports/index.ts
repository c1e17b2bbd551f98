export type { BacklogQuery } from './backlog-query.js';
export type { Clock } from './clock.js';
export type { CursorRecord, CursorStore, CursorWrite } from './cursor-store.js';
export type { EntryRead, EntrySource, ReadLimits, SegmentClaim, StoredEntry } from './entry-source.js';
export type { CommitResult, LayoutReader, LayoutStore } from './layout-store.js';
export type { LoadSource } from './load-source.js';
export type { ExchangeHandler, ExchangeReply, PeerChannel } from './peer-channel.js';
export type { Random } from './random.js';
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
