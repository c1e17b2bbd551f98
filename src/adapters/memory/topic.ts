/**
 * A scalable topic in this process's memory: a layout, a log for each segment, dedup windows and replication
 * cursors. It is the store behind tests, demos and simulations, and the shortest example of what a host provides.
 */
import { DedupWindow } from '../../dedup/index.js';
import { type EntryBuffers, joinBuffers, type SourcePosition } from '../../entry/index.js';
import { IsthmusError, show } from '../../errors.js';
import { findActiveSegment, type Layout, type Segment } from '../../layout/index.js';
import { Notifier } from '../../notifier.js';
import type { EntrySource, RemoteTopic, StoredEntry } from '../../ports/index.js';

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
  readonly window: DedupWindow;
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
    if (next === this.current) return;
    for (const { segmentId, parentIds } of next.segments.values()) {
      if (!this.logs.has(segmentId)) this.logs.set(segmentId, newLog(DedupWindow.inherit(this.parents(parentIds))));
    }
    for (const segmentId of this.logs.keys()) if (!next.segments.has(segmentId)) this.logs.delete(segmentId);
    this.current = next;
    this.notifier.wake();
  }

  /** The active segment for a place on the segment ring: where a producer sends. */
  route(segmentHash: number): Segment {
    return findActiveSegment(this.current, segmentHash);
  }

  /** Stores a local producer's entry and returns its position, or `sealed` when the segment takes no more writes. */
  append(segmentId: number, buffers: EntryBuffers): SourcePosition | 'sealed' {
    if (this.segment(segmentId).state === 'sealed') return 'sealed';
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
        const segment = this.current.segments.get(segmentId);
        if (segment === undefined || segment.state === 'sealed') return { type: 'sealed' };
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

  private parents(parentIds: readonly number[]): { window: DedupWindow; range: Segment['range'] }[] {
    return parentIds.flatMap((id) => {
      const log = this.logs.get(id);
      return log === undefined ? [] : [{ window: log.window, range: this.segment(id).range }];
    });
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
  return { entries: [], window, acknowledged: new Map() };
}

function unknownSegment(segmentId: number): IsthmusError {
  return new IsthmusError('invalidArgument', `segment ${show(segmentId)}: the layout has no such segment`);
}
