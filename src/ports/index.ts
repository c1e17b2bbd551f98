export type { Clock } from './clock.js';
export type { EntryRead, EntrySource, StoredEntry } from './entry-source.js';
export type { CommitResult, LayoutReader, LayoutStore } from './layout-store.js';
export type { LoadSource } from './load-source.js';
export type { ExchangeHandler, ExchangeReply, PeerChannel } from './peer-channel.js';
export type { Random } from './random.js';
export type { RemoteTopic, Send, SendResult } from './remote-topic.js';
export type {
  AtomicSegmentHost,
  HostedSegment,
  LayoutHost,
  OperationResult,
  PlanningSegmentHost,
} from './segment-host.js';
