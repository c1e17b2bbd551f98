/** A scalable topic in a store: its layout, the log of each segment with its dedup window, and replication cursors. */
import type { DedupWindow, Offer } from '../../dedup/index.js';
import type { EntryBuffers, SourcePosition } from '../../entry/index.js';
import { findActiveSegment, type Layout, type Segment } from '../../layout/index.js';
import type {
  AtomicSegmentHost,
  CursorStore,
  EntrySource,
  LayoutStore,
  RemoteTopic,
  StoredEntry,
} from '../../ports/index.js';
import { appendEntry, checkSize, sizeOf } from './append.js';
import type { AppendResult } from './append-result.js';
import { cursorStore } from './cursor-store.js';
import { firstBehind } from './entry-keys.js';
import { layoutHost } from './layout-host.js';
import { checkName } from './names.js';
import { remoteTopic } from './remote.js';
import { entrySource } from './source.js';
import type { TopicState } from './topic-state.js';
import { loadWindow } from './windows.js';

/** How much of a log is read in one go. */
const PAGE = { maxEntries: 256, maxBytes: 4 * 1024 * 1024 };

/** What a replicating producer offers, for the segment's window to decide. */
export interface AppendOffer extends Offer {
  /** The producer's name: one for each source cluster and source segment (R14). */
  readonly producer: string;
}

/** One topic on one cluster. Hosts and producers append to it, replicators read it and write to it. */
export class LmdbTopic {
  private readonly producers = new Set<string>();

  /** Made by `LmdbStore.topic`. @internal */
  constructor(
    private readonly state: TopicState,
    private readonly removed: () => void,
  ) {}

  get name(): string {
    return this.state.name;
  }

  get cluster(): string {
    return this.state.cluster;
  }

  /** The layout as it is stored now. */
  get layout(): Layout {
    return this.state.layout();
  }

  /** The active segment for a place on the segment ring: where a producer sends. */
  route(segmentHash: number): Segment {
    return findActiveSegment(this.layout, segmentHash);
  }

  /**
   * Stores an entry at the end of a segment; with an offer only if the segment's window accepts it, in the same
   * transaction. Many appends may be in flight: they are stored and resolve in the order of the calls. Once it has
   * resolved, neither the end of the process nor a power cut takes it back. Rejects with `tooLarge`, with
   * `invalidArgument` for a segment that does not exist, and with any other error when it is not known to be stored.
   */
  async append(segmentId: number, buffers: EntryBuffers, offer?: AppendOffer): Promise<AppendResult> {
    const { state } = this;
    if (offer !== undefined) checkName('producer', offer.producer);
    return new Promise((resolve, reject) => {
      checkSize(state, buffers);
      state.queue.submit({
        bytes: sizeOf(buffers),
        run: (transaction) => appendEntry(transaction, state, segmentId, buffers, offer?.producer, offer),
        done(result) {
          if (result.type === 'stored') state.wakeSegments([segmentId]);
          resolve(result);
        },
        failed: reject,
      });
    });
  }

  /** The entries of a segment behind `after`, in order, as far as they are stored: what a consumer would read. */
  *entries(segmentId: number, after?: SourcePosition): Generator<StoredEntry, void, undefined> {
    let from = firstBehind(segmentId, after);
    for (;;) {
      const page = this.state.page(segmentId, from, this.state.segment(segmentId).entries, PAGE);
      if (page.length === 0) return;
      yield* page;
      from += page.length;
    }
  }

  /** How many entries of a segment a remote has not acknowledged yet. */
  backlog(segmentId: number, remoteCluster: string): number {
    const acknowledged = this.state.environment.tables.acknowledged.get([this.state.id, remoteCluster, segmentId]);
    return this.state.segment(segmentId).entries - (acknowledged === undefined ? 0 : acknowledged + 1);
  }

  /** What a segment knows of all producers that replicate into it. A copy: it decides nothing. */
  window(segmentId: number): DedupWindow {
    this.state.segment(segmentId);
    return loadWindow(this.state.environment.tables, this.state.id, segmentId);
  }

  /** The topic as a host whose layout a controller writes. */
  layoutHost(): { readonly store: LayoutStore; readonly segments: AtomicSegmentHost } {
    return layoutHost(this.state, this.removed);
  }

  /** The replication cursors towards one remote. */
  cursors(remoteCluster: string): CursorStore {
    checkName('cluster', remoteCluster);
    return cursorStore(this.state, remoteCluster);
  }

  /** The topic as the source of replication to one remote. */
  source(remoteCluster: string): EntrySource {
    checkName('cluster', remoteCluster);
    return entrySource(this.state, remoteCluster);
  }

  /** The topic as the destination of replication from one source cluster. */
  remote(sourceCluster: string): RemoteTopic {
    checkName('cluster', sourceCluster);
    return remoteTopic(this.state, sourceCluster, this.producers);
  }
}
