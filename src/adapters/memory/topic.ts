/**
 * A scalable topic in this process's memory: a layout, a log for each segment, dedup windows and replication
 * cursors. It is the store behind tests, demos and simulations, and the shortest example of what a host provides.
 */
import { DedupWindow } from '../../dedup/index.js';
import { type EntryBuffers, joinBuffers, type SourcePosition } from '../../entry/index.js';
import { IsthmusError, show } from '../../errors.js';
import { executeOperation, findActiveSegment, type Layout, type Segment } from '../../layout/index.js';
import { Notifier } from '../../notifier.js';
import type {
  AtomicSegmentHost,
  EntrySource,
  LayoutReader,
  LayoutStore,
  PlanningSegmentHost,
  RemoteTopic,
  StoredEntry,
} from '../../ports/index.js';
import { FULL_RANGE, type HashRange } from '../../ring/index.js';

export interface MemoryTopicOptions {
  /** The name of the cluster that the topic lies on. */
  readonly cluster: string;
  readonly layout: Layout;
  /** The largest entry that is stored, in bytes; default 5 MiB, as a Pulsar broker has it. */
  readonly maxEntryBytes?: number;
}

/** What a topic keeps of one segment. */
interface SegmentLog {
  readonly entries: StoredEntry[];
  /** Set when the segment enters the record: by then its parents take no more sends. */
  window: DedupWindow;
  sealed: boolean;
  /** Entries acknowledged, by remote cluster. */
  readonly acknowledged: Map<string, number>;
}

const DEFAULT_MAX_ENTRY_BYTES = 5 * 1024 * 1024;

/** One topic on one cluster. Hosts and producers append to it, replicators read it and write to it. */
export class MemoryTopic {
  readonly cluster: string;
  private readonly maxEntryBytes: number;
  private current: Layout;
  private readonly logs = new Map<number, SegmentLog>();
  private readonly notifier = new Notifier();

  constructor({ cluster, layout, maxEntryBytes = DEFAULT_MAX_ENTRY_BYTES }: MemoryTopicOptions) {
    this.cluster = cluster;
    this.maxEntryBytes = maxEntryBytes;
    this.current = layout;
    for (const { segmentId } of layout.segments.values()) this.logs.set(segmentId, newLog(new DedupWindow()));
  }

  get layout(): Layout {
    return this.current;
  }

  /** Applies a layout mutation: new segments begin with what their parents' windows know (R13), sealed ones take no more writes. */
  change(mutation: (layout: Layout) => Layout): void {
    const next = mutation(this.current);
    if (next !== this.current) this.record(next);
  }

  private record(next: Layout): void {
    for (const { segmentId, parentIds, state } of next.segments.values()) {
      let log = this.logs.get(segmentId);
      if (log === undefined) {
        log = newLog(new DedupWindow());
        this.logs.set(segmentId, log);
      }
      if (!this.current.segments.has(segmentId)) log.window = DedupWindow.inherit(this.parents(parentIds));
      log.sealed = state === 'sealed';
    }
    for (const segmentId of this.current.segments.keys()) {
      if (!next.segments.has(segmentId)) this.logs.delete(segmentId);
    }
    this.current = next;
    this.notifier.wake();
  }

  /** The topic as a host whose layout a controller writes. */
  layoutHost(): { readonly store: LayoutStore; readonly segments: AtomicSegmentHost } {
    return {
      store: {
        ...this.layoutReader(),
        commit: async (expectedEpoch, layout) => {
          if (this.current.epoch !== expectedEpoch) return { type: 'conflict' };
          this.record(layout);
          return { type: 'committed' };
        },
      },
      segments: {
        supports: { atomicLayoutChange: true },
        list: async () => [...this.logs].map(([segmentId, { sealed }]) => ({ segmentId, sealed })),
        create: async (segments) => {
          for (const { segmentId } of segments) {
            if (!this.logs.has(segmentId)) this.logs.set(segmentId, newLog(new DedupWindow()));
          }
        },
        seal: async (segmentIds) => {
          for (const segmentId of segmentIds) this.log(segmentId).sealed = true;
          this.notifier.wake();
        },
        delete: async (segmentIds) => {
          for (const segmentId of segmentIds) if (!this.current.segments.has(segmentId)) this.logs.delete(segmentId);
        },
      },
    };
  }

  /** The topic as a host that only has the operations of an unmodified Pulsar broker (C22). */
  planningHost(maxBuckets = 1024): { readonly store: LayoutReader; readonly segments: PlanningSegmentHost } {
    const now = () => this.current.active.reduce((latest, { createdAtMs }) => Math.max(latest, createdAtMs), 0);
    return {
      store: this.layoutReader(),
      segments: {
        supports: { atomicLayoutChange: false, explicitBoundary: false, unequalBuckets: false, maxBuckets },
        perform: async (operation) => {
          try {
            this.record(executeOperation(this.current, operation, now()));
            return { type: 'performed', layout: this.current };
          } catch (error) {
            if (!(error instanceof IsthmusError)) throw error;
            return { type: 'failed', reason: error.message };
          }
        },
      },
    };
  }

  private layoutReader(): LayoutReader {
    return {
      load: async () => this.current,
      watch: (signal) => this.layouts(signal, (layout) => layout),
    };
  }

  /** The active segment for a place on the segment ring: where a producer sends. */
  route(segmentHash: number): Segment {
    return findActiveSegment(this.current, segmentHash);
  }

  /** Stores a local producer's entry and returns its position, or `sealed` when the segment takes no more writes. */
  append(segmentId: number, buffers: EntryBuffers): SourcePosition | 'sealed' {
    if (this.isSealed(segmentId)) return 'sealed';
    this.checkSize(buffers);
    return this.store(segmentId, buffers);
  }

  /** The entries of a segment, in order; what a consumer would read. */
  entries(segmentId: number): readonly StoredEntry[] {
    return this.log(segmentId).entries;
  }

  /** How many entries of a segment a remote has not acknowledged yet. */
  backlog(segmentId: number, remoteCluster: string): number {
    const { entries, acknowledged } = this.log(segmentId);
    return entries.length - (acknowledged.get(remoteCluster) ?? 0);
  }

  /** The topic as the source of replication to one remote. */
  source(remoteCluster: string): EntrySource {
    return {
      cluster: this.cluster,
      layouts: (signal) => this.layouts(signal, (layout) => layout),
      cursor: async (segmentId) => {
        const { entries, acknowledged } = this.log(segmentId);
        return entries[(acknowledged.get(remoteCluster) ?? 0) - 1]?.position;
      },
      read: async (segmentId, after, { maxEntries, signal }) => {
        const { entries } = this.log(segmentId);
        const from = after === undefined ? 0 : Number(after.entryId) + 1;
        while (entries.length <= from && this.segment(segmentId).state === 'active')
          await this.notifier.changed(signal);
        const to = Math.min(entries.length, from + maxEntries);
        const ended = this.segment(segmentId).state === 'sealed' && to === entries.length;
        return { entries: entries.slice(from, to), ended };
      },
      acknowledge: async (segmentId, position) => {
        const { acknowledged } = this.log(segmentId);
        acknowledged.set(remoteCluster, Math.max(acknowledged.get(remoteCluster) ?? 0, Number(position.entryId) + 1));
      },
    };
  }

  /** The topic as the destination of replication from one source cluster. */
  remote(sourceCluster: string): RemoteTopic {
    return {
      cluster: this.cluster,
      maxEntryBytes: this.maxEntryBytes,
      layouts: (signal) => this.layouts(signal, ({ epoch, active }) => ({ cluster: this.cluster, epoch, active })),
      send: async (segmentId, { sourceSegmentId, position, previous, lowestHash, buffers }) => {
        if (!this.current.segments.has(segmentId) || this.isSealed(segmentId)) return { type: 'sealed' };
        this.checkSize(buffers);
        const producer = `pulsar.repl.${sourceCluster}.${sourceSegmentId}`;
        const answer = this.log(segmentId).window.offer(producer, { position, previous, lowestHash });
        if (typeof answer === 'object') return { type: 'partial', partial: answer.partial };
        if (answer !== 'accept') return { type: answer };
        this.store(segmentId, buffers);
        return { type: 'stored' };
      },
    };
  }

  private store(segmentId: number, buffers: EntryBuffers): SourcePosition {
    const { entries } = this.log(segmentId);
    // Ledgers are a segment's own, so that positions are unique in the cluster, as a broker's are.
    const position = { ledgerId: BigInt(segmentId), entryId: BigInt(entries.length) };
    entries.push({ position, bytes: joinBuffers(buffers) });
    this.notifier.wake();
    return position;
  }

  private checkSize({ head, payload }: EntryBuffers): void {
    const length = head.length + payload.length;
    if (length > this.maxEntryBytes) {
      throw new IsthmusError('tooLarge', `an entry of ${length} bytes; the limit is ${this.maxEntryBytes}`);
    }
  }

  /** A parent that is gone counts as one that stored nothing: twice is better than never (R13). */
  private parents(parentIds: readonly number[]): { window: DedupWindow; range: HashRange }[] {
    return parentIds.map((id) => ({
      window: this.logs.get(id)?.window ?? new DedupWindow(),
      range: this.current.segments.get(id)?.range ?? FULL_RANGE,
    }));
  }

  /** Sealed behind the record already, or by it. */
  private isSealed(segmentId: number): boolean {
    return this.segment(segmentId).state === 'sealed' || this.log(segmentId).sealed;
  }

  private segment(segmentId: number): Segment {
    const segment = this.current.segments.get(segmentId);
    if (segment === undefined) throw unknownSegment(segmentId);
    return segment;
  }

  private log(segmentId: number): SegmentLog {
    const log = this.logs.get(segmentId);
    if (log === undefined) throw unknownSegment(segmentId);
    return log;
  }

  private async *layouts<T>(signal: AbortSignal, view: (layout: Layout) => T): AsyncGenerator<T, void, undefined> {
    for (let seen: Layout | undefined; !signal.aborted; ) {
      if (this.current !== seen) {
        seen = this.current;
        yield view(seen);
      } else {
        await this.notifier.changed(signal);
      }
    }
  }
}

function newLog(window: DedupWindow): SegmentLog {
  return { entries: [], window, sealed: false, acknowledged: new Map() };
}

function unknownSegment(segmentId: number): IsthmusError {
  return new IsthmusError('invalidArgument', `segment ${show(segmentId)}: the layout has no such segment`);
}
