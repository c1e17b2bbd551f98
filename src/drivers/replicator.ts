/**
 * The replicator of one topic towards one remote: follows both layouts, runs one machine for each source segment, and
 * starts a segment only when all its parents have drained (the parent-drain gate). Effects go through the ports; the
 * decisions are those of the replication room.
 */
import { isSameEntry } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import { messageOf } from '../errors.js';
import { isLegacy, type Layout, type Segment } from '../layout/index.js';
import type {
  Clock,
  CursorRecord,
  CursorStore,
  EntrySource,
  RemoteTopic,
  RemoteTopicLayout,
  SchemaTranslator,
} from '../ports/index.js';
import { newCounters, type ReplicatorCounters, type SegmentNotice, type SegmentOptions } from '../replication/index.js';
import { type ClaimHost, shareSegment } from './claims.js';
import { systemClock } from './clock.js';
import { EventStream } from './events.js';
import { Latest } from './latest.js';
import { PinKeeper } from './pin-keeper.js';
import type { RemoteRate } from './remote-rate.js';
import { type SegmentContext, SegmentDriver, type SegmentStatus } from './segment.js';
import type { SlowPath } from './slow-path.js';

/** What a replicator runs on. */
export interface ReplicatorPorts {
  readonly source: EntrySource;
  readonly remote: RemoteTopic;
  readonly cursors: CursorStore;
  /** Without one, schema versions go as they are. */
  readonly schemas?: SchemaTranslator;
  /** The slow-path budget, shared by all replicators of the process; without it re-batching is not bounded. */
  readonly slowPath?: SlowPath;
  /** The rate limit towards the remote cluster, shared by all replicators that write to it. */
  readonly rate?: RemoteRate;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

/** How a replicator works; see `SegmentOptions` for the rest. */
export interface ReplicatorOptions extends SegmentOptions {
  /** Names this replicator in the report of the slow-path budget; no two that share a budget have the same. */
  readonly name?: string;
  /**
   * Where replication begins that was never enabled before: with what the topic holds (default), or with what comes.
   * Segments that appear later begin with their first entry in any case.
   */
  readonly startAt?: 'earliest' | 'latest';
  /** How often the pin on the remote is moved (R15), in milliseconds; default 5,000. */
  readonly pinDelayMs?: number;
  /** Where processes share segments: how often it is looked what the others have drained, in milliseconds; default 1,000. */
  readonly drainDelayMs?: number;
  /** How often the source is asked for its backlog, in milliseconds; default 5,000. */
  readonly backlogDelayMs?: number;
}

export interface ReplicatorStatus {
  readonly remote: string;
  readonly state: 'idle' | 'running' | 'paused' | 'stopped';
  /** What it does not go on for as a whole: the source's or the remote's layout, or the cursors. */
  readonly failure?: string;
  /** In ascending id. */
  readonly segments: readonly SegmentStatus[];
  readonly counters: Readonly<ReplicatorCounters>;
  /** Sealed source segments that are kept only because this remote has not drained them. */
  readonly pinnedSegments: readonly number[];
}

/** Something an operator or a host may want to know at once. */
export type ReplicatorEvent =
  | { readonly type: 'drained'; readonly segmentId: number }
  | ({ readonly segmentId: number } & SegmentNotice)
  /** A defect: failures of the outside world are states, not errors. */
  | { readonly type: 'failed'; readonly segmentId: number | undefined; readonly error: unknown };

/** A running replicator. Iterating it gives the events from then on. */
export interface Replicator extends AsyncIterable<ReplicatorEvent> {
  start(): void;
  /** Settles what is in flight, writes the cursors, and comes to rest; what is not sent stays for the next start. */
  stop(): Promise<void>;
  /** Sends nothing more, reads nothing more, and keeps its place. */
  pause(): void;
  resume(): void;
  /**
   * The remote has left the topic's replication set: stops, and removes the cursors and the subscription. Replication
   * that is enabled again begins anew.
   */
  leave(): Promise<void>;
  status(): ReplicatorStatus;
  /** Lets the entry that a segment holds pass unsent, once that is durable; false when the segment does not hold that entry. */
  skip(segmentId: number, position: SourcePosition): boolean;
  /** Whether this remote has drained a segment; undefined while that is not known. An answer for the GC gate. */
  hasDrained(segmentId: number): boolean | undefined;
}

/** A replicator for one topic and one remote. It does nothing until it is started, and is started once. */
export function createReplicator(ports: ReplicatorPorts, options: ReplicatorOptions): Replicator {
  return new TopicReplicator(ports, options);
}

/** Numbers the replicators that were given no name. */
let unnamed = 0;

const RETRY_MS = 1_000;

class TopicReplicator implements Replicator {
  private readonly segments = new Map<number, SegmentDriver>();
  /** Segments that this process shares with others and does not have now. */
  private readonly unclaimed = new Set<number>();
  /** Ends the sharing of a segment that is gone. */
  private readonly sharing = new Map<number, AbortController>();
  /** Segments whose parents have not drained. */
  private readonly waiting = new Map<number, Segment>();
  private readonly sourceLayout = new Latest<Layout>();
  private readonly remoteLayout = new Latest<RemoteTopicLayout>();
  private readonly events = new EventStream<ReplicatorEvent>();
  private readonly stopping = new AbortController();
  private readonly tasks = new Set<Promise<void>>();
  private readonly counters = newCounters();
  private readonly clock: Clock;
  private readonly context: SegmentContext;
  private readonly pins: PinKeeper | undefined;
  private records = new Map<number, CursorRecord>();
  /**
   * One more than the highest found at start, whichever segment it was found at (R15): a segment that appears while two
   * processes run must not be the same session's to both.
   */
  private session = 1;
  private isLoaded = false;
  private isStarted = false;
  private isPaused = false;
  private failure: string | undefined;

  constructor(
    private readonly ports: ReplicatorPorts,
    private readonly options: ReplicatorOptions,
  ) {
    const { source, remote, cursors, schemas, slowPath, rate, clock = systemClock } = ports;
    this.clock = clock;
    const { name = `replicator ${++unnamed}` } = options;
    this.pins = remote.pin === undefined ? undefined : new PinKeeper(remote.pin, cursors);
    this.context = {
      source,
      remote,
      cursors,
      schemas,
      slowPath,
      rate,
      clock,
      options,
      counters: this.counters,
      name,
      remoteLayout: () => this.remoteLayout.value,
      notice: (segmentId, notice) => this.events.emit({ segmentId, ...notice }),
      written: (segmentId, record) => this.records.set(segmentId, record),
      placeSeen: (segmentId, at) => this.pins?.seen(segmentId, at),
    };
  }

  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    const { signal } = this.stopping;
    this.run(undefined, this.followRemote(signal));
    this.run(undefined, this.followSource(signal));
    this.run(undefined, this.askBacklogs(signal));
    if (this.isShared) this.run(undefined, this.followDrains(signal));
    if (this.pins !== undefined) this.run(undefined, this.keepPins(this.pins, signal));
  }

  async stop(): Promise<void> {
    const drivers = [...this.segments.values()];
    for (const driver of drivers) driver.dispatch({ type: 'stop' });
    this.stopping.abort();
    for (const sharing of this.sharing.values()) sharing.abort();
    await Promise.all(drivers.map((driver) => driver.ended));
    while (this.tasks.size > 0) await Promise.all(this.tasks);
    this.events.close();
  }

  pause(): void {
    this.isPaused = true;
    for (const driver of this.segments.values()) driver.dispatch({ type: 'pause' });
  }

  resume(): void {
    this.isPaused = false;
    for (const driver of this.segments.values()) driver.dispatch({ type: 'resume' });
  }

  async leave(): Promise<void> {
    await this.stop();
    const { cursors, source } = this.ports;
    const stored = await cursors.load();
    await source.release();
    await cursors.write(new Map([...stored.keys()].map((segmentId) => [segmentId, undefined])));
  }

  status(): ReplicatorStatus {
    const layout = this.sourceLayout.value;
    const own = Array.from(this.segments.values(), (driver) => driver.status());
    const segments = [...own, ...Array.from(this.unclaimed, (id) => unclaimedStatus(id, this.hasDrained(id)))].sort(
      (a, b) => a.segmentId - b.segmentId,
    );
    return {
      remote: this.ports.remote.cluster,
      state: this.stopping.signal.aborted ? 'stopped' : !this.isStarted ? 'idle' : this.isPaused ? 'paused' : 'running',
      ...(this.failure === undefined ? {} : { failure: this.failure }),
      segments,
      counters: structuredClone(this.counters),
      pinnedSegments: segments
        .filter(
          ({ segmentId }) => this.hasDrained(segmentId) !== true && layout?.segments.get(segmentId)?.state === 'sealed',
        )
        .map(({ segmentId }) => segmentId),
    };
  }

  skip(segmentId: number, position: SourcePosition): boolean {
    const driver = this.segments.get(segmentId);
    const held = driver?.status().held;
    if (driver === undefined || held === undefined) return false;
    if (!isSameEntry(held.position, position)) return false;
    driver.dispatch({ type: 'skip', position });
    return true;
  }

  hasDrained(segmentId: number): boolean | undefined {
    return this.isLoaded
      ? (this.segments.get(segmentId)?.isDrained ?? this.records.get(segmentId)?.drained)
      : undefined;
  }

  [Symbol.asyncIterator](): AsyncIterator<ReplicatorEvent> {
    return this.events.read();
  }

  private async followRemote(signal: AbortSignal): Promise<void> {
    await this.again('the remote layout', signal, async () => {
      for await (const layout of this.ports.remote.layouts(signal)) {
        this.failure = undefined;
        this.remoteLayout.set(layout);
        for (const driver of this.segments.values()) driver.dispatch({ type: 'layout', layout });
      }
    });
  }

  /** Follows the source's layout and takes up every segment that appears in it. */
  private async followSource(signal: AbortSignal): Promise<void> {
    const { source } = this.ports;
    await this.again('the cursors', signal, () => this.loadCursors());
    await this.again('the source layout', signal, async () => {
      for await (const layout of source.layouts(signal)) {
        if (!this.isLoaded && !this.isShared) await this.enable(layout);
        this.isLoaded = true;
        this.failure = undefined;
        this.sourceLayout.set(layout);
        for (const segment of layout.segments.values()) this.takeUp(segment);
        this.openGates();
        await this.forgetPruned(layout);
      }
    });
  }

  private async loadCursors(): Promise<void> {
    const { cursors } = this.ports;
    this.records = new Map(await cursors.load());
    for (const { session } of this.records.values()) this.session = Math.max(this.session, session + 1);
    if (this.isShared) return;
    // Nobody writes these any more, so that a process before, which took one up undrained, would never learn of this one.
    const { session } = this;
    const drained = [...this.records].filter(([, record]) => record.drained);
    if (drained.length === 0) return;
    const written = await cursors.write(new Map(drained.map(([id, record]) => [id, { ...record, session }])));
    if (written.type === 'fenced') throw new Error(`session ${written.session} has written a cursor meanwhile`);
  }

  /** Where replication was never enabled before, it begins where it was told to. */
  private async enable(layout: Layout): Promise<void> {
    if (this.options.startAt !== 'latest' || this.records.size > 0) return;
    const { cursors, source } = this.ports;
    const records = new Map<number, CursorRecord>();
    for (const { segmentId, state } of layout.segments.values()) {
      const settled = await source.lastPosition(segmentId);
      records.set(segmentId, {
        session: 0,
        ...(settled === undefined ? {} : { settled }),
        drained: state === 'sealed',
        skipped: [],
        checkpoints: new Map(),
      });
    }
    await cursors.write(records);
    this.records = records;
  }

  private takeUp(segment: Segment): void {
    const { segmentId } = segment;
    if (this.segments.has(segmentId) || this.unclaimed.has(segmentId)) return;
    const stored = this.records.get(segmentId);
    if (!this.isShared) {
      const { session } = this;
      const driver = this.begin(segment, {
        drained: false,
        skipped: [],
        checkpoints: new Map(),
        ...stored,
        session,
      });
      return this.run(segmentId, this.attend(segmentId, driver));
    }
    this.unclaimed.add(segmentId);
    const { signal } = this.share(segmentId);
    const shared = shareSegment(segment, this.claims, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    this.run(segmentId, shared);
  }

  private share(segmentId: number): AbortController {
    const sharing = new AbortController();
    if (this.stopping.signal.aborted) sharing.abort();
    this.sharing.set(segmentId, sharing);
    return sharing;
  }

  private get isShared(): boolean {
    return this.ports.source.claim !== undefined;
  }

  private get claims(): ClaimHost {
    const { source, cursors } = this.ports;
    return {
      source,
      cursors,
      clock: this.clock,
      begin: (segment, record) => {
        const { segmentId } = segment;
        this.unclaimed.delete(segmentId);
        const driver = this.begin(segment, record);
        this.run(segmentId, this.attend(segmentId, driver));
        this.openGates();
        return driver;
      },
      end: ({ segmentId }) => {
        this.segments.delete(segmentId);
        this.waiting.delete(segmentId);
        this.unclaimed.add(segmentId);
      },
      failed: (reason) => {
        this.failure = reason;
      },
    };
  }

  private begin(segment: Segment, record: CursorRecord): SegmentDriver {
    const { segmentId, range } = segment;
    const driver = new SegmentDriver({ segmentId, range, legacy: isLegacy(segment) }, record, this.context);
    this.segments.set(segmentId, driver);
    this.waiting.set(segmentId, segment);
    const layout = this.remoteLayout.value;
    if (layout !== undefined) driver.dispatch({ type: 'layout', layout });
    if (this.isPaused) driver.dispatch({ type: 'pause' });
    if (this.stopping.signal.aborted) driver.dispatch({ type: 'stop' });
    return driver;
  }

  private async attend(segmentId: number, driver: SegmentDriver): Promise<void> {
    const end = await driver.ended;
    if (end === 'failed') this.events.emit({ type: 'failed', segmentId, error: driver.status().error });
    if (end !== 'drained') return;
    this.waiting.delete(segmentId);
    this.events.emit({ type: 'drained', segmentId });
    this.openGates();
  }

  /** Starts every segment all of whose parents have drained (the parent-drain gate). */
  private openGates(): void {
    const layout = this.sourceLayout.value;
    if (layout === undefined || this.stopping.signal.aborted) return;
    // A parent that is not in the layout any more was pruned, and only drained segments are.
    const isDrained = (parent: number) => this.hasDrained(parent) === true || !layout.segments.has(parent);
    for (const [segmentId, { parentIds }] of this.waiting) {
      if (!parentIds.every(isDrained)) continue;
      this.waiting.delete(segmentId);
      const driver = this.segments.get(segmentId);
      if (driver !== undefined) this.run(segmentId, driver.start());
    }
  }

  /** What other processes have drained may open gates here. */
  private async followDrains(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.clock.sleep(this.options.drainDelayMs ?? 1_000, signal);
      try {
        for (const [segmentId, record] of await this.ports.cursors.load()) this.records.set(segmentId, record);
      } catch {
        // Gates stay shut while it is not known what has drained.
        continue;
      }
      this.openGates();
    }
  }

  /** What the source has pruned needs no cursor any more. */
  private async forgetPruned(layout: Layout): Promise<void> {
    for (const id of this.unclaimed) {
      if (layout.segments.has(id)) continue;
      this.unclaimed.delete(id);
      this.endSharing(id);
    }
    const gone = [...this.records.keys()].filter(
      (id) => !layout.segments.has(id) && this.records.get(id)?.drained === true,
    );
    if (gone.length === 0) return;
    await this.ports.cursors.write(new Map(gone.map((id) => [id, undefined])));
    for (const id of gone) {
      this.records.delete(id);
      this.segments.get(id)?.forget();
      this.segments.delete(id);
      this.endSharing(id);
    }
  }

  private endSharing(segmentId: number): void {
    this.sharing.get(segmentId)?.abort();
    this.sharing.delete(segmentId);
  }

  private async askBacklogs(signal: AbortSignal): Promise<void> {
    for (;;) {
      await Promise.all(Array.from(this.segments.values(), (driver) => driver.refreshBacklog()));
      await this.clock.sleep(this.options.backlogDelayMs ?? 5_000, signal);
    }
  }

  private async keepPins(pins: PinKeeper, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.clock.sleep(this.options.pinDelayMs ?? 5_000, signal);
      const [source, remote] = [this.sourceLayout.value, this.remoteLayout.value];
      if (source === undefined || remote === undefined) continue;
      try {
        for (const [segmentId, at] of pins.places()) {
          for (const driver of this.segments.values()) driver.dispatch({ type: 'end', segmentId, at });
        }
        await pins.move(source, remote);
      } catch {
        // The pin stays where it is, which keeps more than is needed and loses nothing.
      }
    }
  }

  /** Repeats what rejects, until the signal aborts. */
  private async again(what: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        signal.throwIfAborted();
        this.failure = `${what}: ${messageOf(error)}`;
      }
      await this.clock.sleep(RETRY_MS, signal);
    }
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

/** What is known of a segment that another process has. */
function unclaimedStatus(segmentId: number, hasDrained: boolean | undefined): SegmentStatus {
  const nothing = { unsettledEntries: 0, unsettledBytes: 0, spanEntries: 0, lanes: [] };
  if (hasDrained === true) return { segmentId, state: 'drained', waitingFor: { for: 'nothing' }, ...nothing };
  return { segmentId, state: 'waiting', waitingFor: { for: 'claim' }, ...nothing };
}
