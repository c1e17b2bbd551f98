/**
 * A scalable topic in this process's memory: a layout, a log for each segment, dedup windows, subscriptions and
 * replication cursors. It is the store behind tests, demos and simulations, and the shortest example of what a host
 * provides. What it lends as ports is in the files beside this one.
 */
import type { EntryBuffers, SourcePosition } from '../../entry/index.js';
import { IsthmusError, show } from '../../errors.js';
import { findActiveSegment, type Layout, type Segment } from '../../layout/index.js';
import type {
  AtomicSegmentHost,
  BacklogQuery,
  CursorStore,
  EntrySource,
  LayoutReader,
  LayoutStore,
  PlanningSegmentHost,
  RemoteTopic,
  StoredEntry,
} from '../../ports/index.js';
import { memoryCursors } from './cursors.js';
import { atomicHost, planningHost } from './hosts.js';
import { type MemoryRemoteOptions, memoryRemote } from './remote.js';
import { memorySource, replicationSubscription } from './source.js';
import { TopicStore } from './store.js';

export interface MemoryTopicOptions {
  /** The name of the cluster that the topic lies on. */
  readonly cluster: string;
  readonly layout: Layout;
  /** The largest entry that is stored, in bytes; default 5 MiB, as a Pulsar broker has it. */
  readonly maxEntryBytes?: number;
}

const DEFAULT_MAX_ENTRY_BYTES = 5 * 1024 * 1024;

/** One topic on one cluster. Hosts and producers append to it, replicators read it and write to it. */
export class MemoryTopic {
  private readonly store: TopicStore;

  constructor({ cluster, layout, maxEntryBytes = DEFAULT_MAX_ENTRY_BYTES }: MemoryTopicOptions) {
    this.store = new TopicStore(cluster, layout, maxEntryBytes);
  }

  get cluster(): string {
    return this.store.cluster;
  }

  get layout(): Layout {
    return this.store.layout;
  }

  /**
   * Applies a layout mutation: new segments begin with what their parents hand on (R13), sealed ones take no more
   * writes, and the entries of pruned ones are gone.
   */
  change(mutation: (layout: Layout) => Layout): void {
    const next = mutation(this.store.layout);
    if (next !== this.store.layout) this.store.record(next);
  }

  /** The topic as a host whose layout a controller writes. */
  layoutHost(): { readonly store: LayoutStore; readonly segments: AtomicSegmentHost } {
    return atomicHost(this.store);
  }

  /** The topic as a host that only has the operations of an unmodified Pulsar broker (C22). */
  planningHost(maxBuckets = 1024): { readonly store: LayoutReader; readonly segments: PlanningSegmentHost } {
    return planningHost(this.store, maxBuckets);
  }

  /** The active segment for a place on the segment ring: where a producer sends. */
  route(segmentHash: number): Segment {
    return findActiveSegment(this.store.layout, segmentHash);
  }

  /**
   * Stores a local producer's entry and returns its position, or `sealed` when the segment takes no more writes.
   * Throws `invalidArgument` for a segment that does not exist, and `tooLarge`.
   */
  append(segmentId: number, buffers: EntryBuffers): SourcePosition | 'sealed' {
    const { maxEntryBytes } = this.store;
    const log = this.store.log(segmentId);
    if (log.sealed) return 'sealed';
    const length = buffers.head.length + buffers.payload.length;
    if (length > maxEntryBytes) {
      throw new IsthmusError('tooLarge', `an entry of ${length} bytes; the limit is ${maxEntryBytes}`);
    }
    return log.append(buffers);
  }

  /**
   * The entries of a segment that are not trimmed, in order. The ledger of their positions is the segment's id, the
   * entry ids count from 0. Barriers are among them: a consumer passes over every entry whose metadata has a
   * `markerType`. Throws `invalidArgument` for a segment that does not exist.
   */
  entries(segmentId: number): readonly StoredEntry[] {
    return this.store.log(segmentId).entries;
  }

  /**
   * Drops the entries of a segment at or below a position, as a broker does with what nobody needs any more, and
   * returns how many. What a subscription, a replication cursor or a pin has not passed yet stays. With `force` it
   * goes as well, and takes them along: so act a time to live and a quota.
   */
  trim(segmentId: number, upTo: SourcePosition, { force = false }: { readonly force?: boolean } = {}): number {
    const log = this.store.log(segmentId);
    return log.trim(log.placeBehind(upTo), this.store.subscriptions.keys(), force);
  }

  /** How many entries of a segment a remote has not acknowledged yet; barriers do not count. */
  backlog(segmentId: number, remoteCluster: string): number {
    return this.store.log(segmentId).backlog(replicationSubscription(remoteCluster));
  }

  /** Adds a consumers' subscription, at the start of every segment. Throws `invalidArgument` when the name is not free. */
  subscribe(name: string): void {
    this.store.subscribe(name, 'local');
  }

  /** Acknowledges a segment for a consumers' subscription, to its present end or up to a position. */
  consume(name: string, segmentId: number, upTo?: SourcePosition): void {
    const log = this.store.log(segmentId);
    this.checkSubscription(name);
    log.acknowledge(name, upTo === undefined ? log.end : log.placeBehind(upTo));
  }

  /** Removes a consumers' subscription. */
  unsubscribe(name: string): void {
    this.checkSubscription(name);
    this.store.unsubscribe(name);
  }

  private checkSubscription(name: string): void {
    if (this.store.subscriptions.get(name) === 'local') return;
    throw new IsthmusError('invalidArgument', `subscription ${show(name)}: the topic has no such subscription`);
  }

  /** What subscriptions still have to consume. Pins are among them: what they hold must not be pruned. */
  backlogQuery(): BacklogQuery {
    const { subscriptions } = this.store;
    return {
      subscriptions: async () => [...subscriptions.keys()].filter((name) => subscriptions.get(name) !== 'replication'),
      backlog: async (segmentId, subscription) => this.store.log(segmentId).backlog(subscription),
    };
  }

  /** The topic as the source of replication to one remote. It subscribes for it, which holds entries back. */
  source(remoteCluster: string): EntrySource {
    return memorySource(this.store, remoteCluster);
  }

  /** The cursors of replication to one remote. They are the topic's: every call gives the same. */
  cursors(remoteCluster: string): CursorStore {
    return memoryCursors(this.store, remoteCluster);
  }

  /**
   * The topic as the destination of replication from one source cluster. Results come before `send` returns. To be
   * read back, it takes a pin for that cluster, which holds entries back.
   */
  remote(sourceCluster: string, options: MemoryRemoteOptions = {}): RemoteTopic {
    return memoryRemote(this.store, sourceCluster, options);
  }

  /**
   * Cuts the connections of a source cluster's producers, or of all: sends without a result and later ones are
   * `ambiguous`, and the names can be opened again.
   */
  disconnect(sourceCluster?: string): void {
    for (const { producers } of this.store.logs.values()) {
      for (const producer of [...producers.values()]) {
        if (sourceCluster === undefined || producer.sourceCluster === sourceCluster) producer.cut();
      }
    }
  }
}
