/**
 * The replicator of one topic towards one remote: follows both layouts, runs one replication for each source segment,
 * and opens a segment only when all its parents have drained (the parent-drain gate). Effects go through the ports;
 * the decisions are those of the rebatch room.
 */
import type { SourcePosition } from '../entry/index.js';
import { isLegacy, type Layout, type Segment } from '../layout/index.js';
import type { Clock, EntrySource, RemoteTopic } from '../ports/index.js';
import type { RemoteLayout } from '../rebatch/index.js';
import { systemClock } from './clock.js';
import { EventStream } from './events.js';
import { Latest } from './latest.js';
import type { HoldReason, ReplicatorCounters, ReplicatorOptions, SegmentStatus } from './replicator-state.js';
import { type SegmentContext, SegmentReplication } from './segment.js';
import type { SlowPath } from './slow-path.js';

/** What a replicator runs on. */
export interface ReplicatorPorts {
  readonly source: EntrySource;
  readonly remote: RemoteTopic;
  /** The slow-path budget, shared by all replicators of the process; without it re-batching is not bounded. */
  readonly slowPath?: SlowPath;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

export interface ReplicatorStatus {
  readonly remote: string;
  readonly running: boolean;
  readonly segments: readonly SegmentStatus[];
  readonly counters: Readonly<ReplicatorCounters>;
}

/** Something an operator or a host may want to know at once. */
export type ReplicatorEvent =
  | { readonly type: 'drained'; readonly segmentId: number }
  | {
      readonly type: 'held';
      readonly segmentId: number;
      readonly position: SourcePosition;
      readonly reason: HoldReason;
      readonly message: string;
    }
  | { readonly type: 'failed'; readonly segmentId: number | undefined; readonly error: unknown };

/** A running replicator. Iterating it gives the events from then on. */
export interface Replicator extends AsyncIterable<ReplicatorEvent> {
  start(): void;
  /** Settles the entries that are under way, then comes to rest; an entry that is held or unsent stays for the next start. */
  stop(): Promise<void>;
  status(): ReplicatorStatus;
  /** Lets the entry that a segment holds pass unsent; false when the segment does not hold that entry. */
  skip(segmentId: number, position: SourcePosition): boolean;
}

/** A replicator for one topic and one remote. It does nothing until it is started, and is started once. */
export function createReplicator(ports: ReplicatorPorts, options: ReplicatorOptions): Replicator {
  return new TopicReplicator(ports, options);
}

/** Numbers the replicators that were given no name. */
let unnamed = 0;

class TopicReplicator implements Replicator {
  private readonly segments = new Map<number, SegmentReplication>();
  private readonly drained = new Set<number>();
  private readonly sourceLayout = new Latest<Layout>();
  private readonly remoteLayout = new Latest<RemoteLayout>();
  private readonly events = new EventStream<ReplicatorEvent>();
  private readonly stopping = new AbortController();
  private readonly tasks = new Set<Promise<void>>();
  private started = false;
  private readonly counters: ReplicatorCounters = {
    verbatimEntries: 0,
    verbatimBytes: 0,
    rebatchedEntries: 0,
    parts: 0,
    rebatchedBytes: 0,
    inspected: 0,
    duplicates: 0,
    skipped: {},
    held: {},
  };
  private readonly context: SegmentContext;

  constructor(
    private readonly ports: ReplicatorPorts,
    options: ReplicatorOptions,
  ) {
    const clock = ports.clock ?? systemClock;
    this.context = {
      source: ports.source,
      remote: ports.remote,
      remoteLayout: this.remoteLayout,
      options: { maxReadEntries: 100, retryDelayMs: 100, ...options },
      counters: this.counters,
      slowPath: ports.slowPath,
      name: options.name ?? `replicator ${++unnamed}`,
      stopping: this.stopping.signal,
      now: () => clock.now(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      held: (segmentId, position, reason, message) =>
        this.events.emit({ type: 'held', segmentId, position, reason, message }),
    };
  }

  start(): void {
    if (this.started) return;
    this.started = true;
    const { signal } = this.stopping;
    this.run(undefined, this.remoteLayout.follow(this.ports.remote.layouts(signal)));
    this.run(undefined, this.followSource(signal));
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    while (this.tasks.size > 0) await Promise.all(this.tasks);
    this.events.close();
  }

  status(): ReplicatorStatus {
    return {
      remote: this.ports.remote.cluster,
      running: this.started && !this.stopping.signal.aborted,
      segments: [...this.segments.values()].map((segment) => segment.status()),
      counters: structuredClone(this.counters),
    };
  }

  skip(segmentId: number, position: SourcePosition): boolean {
    return this.segments.get(segmentId)?.skip(position) ?? false;
  }

  [Symbol.asyncIterator](): AsyncIterator<ReplicatorEvent> {
    return this.events.read();
  }

  /** Follows the source's layout and takes up every segment that appears in it. */
  private async followSource(signal: AbortSignal): Promise<void> {
    for await (const layout of this.ports.source.layouts(signal)) {
      for (const segment of layout.segments.values()) {
        if (!this.segments.has(segment.segmentId)) this.takeUp(segment);
      }
      this.sourceLayout.set(layout);
    }
  }

  private takeUp(segment: Segment): void {
    const { segmentId, range } = segment;
    const replication = new SegmentReplication({ segmentId, range, legacy: isLegacy(segment) }, this.context);
    this.segments.set(segmentId, replication);
    this.run(segmentId, this.replicate(segment, replication));
  }

  private async replicate({ segmentId, parentIds }: Segment, replication: SegmentReplication): Promise<void> {
    const { signal } = this.stopping;
    // A parent that is not in the layout any more was pruned, and only drained segments are.
    await this.sourceLayout.when(
      ({ segments }) => parentIds.every((parent) => this.drained.has(parent) || !segments.has(parent)),
      signal,
    );
    if (!(await replication.run())) return;
    this.drained.add(segmentId);
    this.events.emit({ type: 'drained', segmentId });
    this.sourceLayout.wake();
  }

  /** Runs a task to its end; what is aborted by `stop` has not failed. */
  private run(segmentId: number | undefined, task: Promise<void>): void {
    const guarded = task
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.events.emit({ type: 'failed', segmentId, error });
      })
      .finally(() => this.tasks.delete(guarded));
    this.tasks.add(guarded);
  }
}
