/**
 * One cluster's topic in a simulated world of replication: its layout, the logs of its segments, and what a store keeps
 * for the replicators that read from it and write to it. Everything here outlives every process.
 */
import { comparePositions, DedupWindow } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import { isLegacy, type Layout, type Segment } from '../layout/index.js';
import type { CursorRecord, RemoteTopicLayout, StoredEntry } from '../ports/index.js';
import type { HashRange } from '../ring/index.js';

/** A producer's connection, as the segment that it sends to sees it. */
export interface NameHolder {
  /** The server closes it: nothing that it still brings is stored. */
  end(): void;
}

/** The entries of one segment, and its server's memory of producers. */
export class WorldLog {
  readonly entries: StoredEntry[] = [];
  /** Takes no more writes. The layout may say so later. */
  sealed = false;
  pruned = false;
  /** Who holds each producer name: a name is a lock (R14). */
  readonly names = new Map<string, NameHolder>();
  /** Readers that wait for an entry or the seal. */
  readonly waiting = new Set<() => void>();
  /** The number of entries that are gone from its start. */
  trimmed = 0;
  private ledgerId: bigint;
  private entryId = 0n;

  constructor(
    readonly segmentId: number,
    readonly range: HashRange,
    /** What its parents handed on (R13). */
    readonly window: DedupWindow,
    private readonly nextLedger: () => bigint,
  ) {
    this.ledgerId = nextLedger();
  }

  append(bytes: Uint8Array, rollsLedger: boolean): SourcePosition {
    if (rollsLedger) {
      this.ledgerId = this.nextLedger();
      this.entryId = 0n;
    }
    const position = { ledgerId: this.ledgerId, entryId: this.entryId++ };
    this.entries.push({ position, bytes });
    this.wake();
    return position;
  }

  seal(): void {
    this.sealed = true;
    this.wake();
  }

  get lastPosition(): SourcePosition | undefined {
    return this.entries.at(-1)?.position;
  }

  /** The index of the first entry behind a position. */
  indexBehind(position: SourcePosition | undefined): number {
    if (position === undefined) return 0;
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comparePositions((this.entries[middle] as StoredEntry).position, position) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  wake(): void {
    const readers = [...this.waiting];
    this.waiting.clear();
    for (const reader of readers) reader();
  }
}

/** What the source keeps for one remote. */
export interface RemoteState {
  /** The durable cursors. */
  readonly records: Map<number, CursorRecord>;
  /** What the source itself counts as acknowledged. */
  readonly acknowledged: Map<number, SourcePosition>;
}

export class WorldTopic {
  readonly logs = new Map<number, WorldLog>();
  /** The parents of every segment there ever was. */
  readonly parents = new Map<number, readonly number[]>();
  readonly ranges = new Map<number, HashRange>();
  /** The segments that were partitions of a classic topic. */
  readonly partitions = new Set<number>();
  /** By remote cluster. */
  readonly remotes = new Map<string, RemoteState>();
  /** By source cluster and segment: how far its pin has come (R15). */
  readonly pins = new Map<string, Map<number, SourcePosition>>();
  /** Told of every layout. */
  readonly watchers = new Set<(layout: Layout) => void>();
  private ledgers = 0n;

  constructor(
    readonly cluster: string,
    public layout: Layout,
    /** The range of the segment that a producer sends for, if this cluster is told. */
    private readonly sourceRange: (producer: string) => HashRange | undefined,
  ) {
    for (const segment of layout.segments.values()) this.create(segment, new DedupWindow());
  }

  /** Makes a layout the present one: parents end, children begin with what they hand on (R13), pruned segments go. */
  change(next: Layout): void {
    if (next === this.layout) return;
    const before = this.layout;
    this.layout = next;
    for (const segment of next.segments.values()) {
      if (segment.state === 'sealed') this.logs.get(segment.segmentId)?.seal();
    }
    for (const segment of next.segments.values()) {
      if (before.segments.has(segment.segmentId)) continue;
      const parents = segment.parentIds.flatMap((id) => this.logs.get(id) ?? []);
      this.create(segment, DedupWindow.inherit(parents, { sourceRange: this.sourceRange }));
    }
    for (const id of before.segments.keys()) {
      if (next.segments.has(id)) continue;
      const log = this.logs.get(id);
      this.logs.delete(id);
      if (log === undefined) continue;
      log.pruned = true;
      log.wake();
    }
    for (const watcher of this.watchers) watcher(next);
  }

  /** The layout as a replicator that writes here is told. */
  remoteLayout(): RemoteTopicLayout {
    const { epoch, active, segments } = this.layout;
    return { cluster: this.cluster, epoch, active, segments };
  }

  /** What is kept for a remote. */
  toward(remote: string): RemoteState {
    let state = this.remotes.get(remote);
    if (state === undefined) {
      state = { records: new Map(), acknowledged: new Map() };
      this.remotes.set(remote, state);
    }
    return state;
  }

  pin(sourceCluster: string): Map<number, SourcePosition> {
    let places = this.pins.get(sourceCluster);
    if (places === undefined) {
      places = new Map();
      this.pins.set(sourceCluster, places);
    }
    return places;
  }

  /** True when a segment is the other or descends from it. */
  descends(segmentId: number, ancestor: number): boolean {
    if (segmentId === ancestor) return true;
    return (this.parents.get(segmentId) ?? []).some((parent) => this.descends(parent, ancestor));
  }

  private create(segment: Segment, window: DedupWindow): void {
    const { segmentId, range, parentIds } = segment;
    if (isLegacy(segment)) this.partitions.add(segmentId);
    this.parents.set(segmentId, parentIds);
    this.ranges.set(segmentId, range);
    this.logs.set(segmentId, new WorldLog(segmentId, range, window, () => ++this.ledgers));
  }
}
