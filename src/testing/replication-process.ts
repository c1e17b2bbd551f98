/**
 * One process of a simulated world: it replicates all segments of a topic to one remote, as `createReplicator` does, but
 * synchronously and in virtual time. It runs the effects of the real machines one by one, so that it can die between
 * any two of them; what it has sent and written by then is under way.
 */
import type { SourcePosition } from '../entry/index.js';
import { isLegacy, type Layout, type Segment } from '../layout/index.js';
import type { CursorRecord, RemoteTopicLayout } from '../ports/index.js';
import {
  newCounters,
  type ReplicatorCounters,
  type SegmentEffect,
  type SegmentEvent,
  SegmentReplicator,
} from '../replication/index.js';
import { BrokenInvariant } from './convergence-invariants.js';
import { openLane, recoverSegment } from './replication-openings.js';
import { movePins } from './replication-pins.js';
import type { ProcessHost, RunningProcess, SegmentRun } from './replication-run.js';

const MAX_SPINS = 20;

/** How often the pin on a remote is moved, in milliseconds. */
const PIN_DELAY_MS = 40;

export class WorldProcess implements RunningProcess {
  isAlive = true;
  /** It was asked to stop, and comes to rest. */
  isStopping = false;
  readonly counters: ReplicatorCounters = newCounters();
  readonly runs = new Map<number, SegmentRun>();
  sourceLayout: Layout | undefined;
  remoteLayout: RemoteTopicLayout | undefined;
  /** The last places told of remote segments (R15). */
  readonly seenAt = new Map<number, SourcePosition>();
  private records: Map<number, CursorRecord> | undefined;
  /** Undefined before the cursors are loaded. */
  session: number | undefined;
  private isPaused = false;
  private readonly stopWatching: () => void;

  constructor(
    readonly host: ProcessHost,
    /** No two of a world have the same. */
    readonly id: number,
  ) {
    const { source, remote } = host;
    // Layouts come in order, and a slow reader sees only the last.
    const onSource = this.latest(() => this.takeSource(source.layout));
    const onRemote = this.latest(() => this.takeRemote(remote.remoteLayout()));
    source.watchers.add(onSource);
    remote.watchers.add(onRemote);
    this.stopWatching = () => {
      source.watchers.delete(onSource);
      remote.watchers.delete(onRemote);
    };
    onRemote();
    this.load(onSource);
    if (host.supports.dedup === 'readBack') this.keepPins();
  }

  /** It dies: nothing more is done, and what was sent is on its way. */
  die(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.stopWatching();
    for (const run of this.runs.values()) {
      run.cancelTimer?.();
      this.host.budget.release(this.keyOf(run));
      for (const wire of run.wires.values()) wire?.abandon(this.noticedInMs());
    }
  }

  /** Settles what is in flight and comes to rest. */
  stop(): void {
    this.isStopping = true;
    for (const run of [...this.runs.values()]) this.dispatch(run, { type: 'stop' });
  }

  pause(): void {
    this.isPaused = true;
    for (const run of [...this.runs.values()]) this.dispatch(run, { type: 'pause' });
  }

  resume(): void {
    this.isPaused = false;
    for (const run of [...this.runs.values()]) this.dispatch(run, { type: 'resume' });
  }

  /** All its machines have come to rest. */
  get isAtRest(): boolean {
    for (const { machine } of this.runs.values()) if (!machine.isAtRest) return false;
    return true;
  }

  /** Calls back after a while, if the process still lives. */
  later(run: () => void): void {
    this.host.clock.schedule(this.host.delayMs(), () => {
      if (this.isAlive) run();
    });
  }

  /** How long a server takes to notice that a connection is gone. */
  noticedInMs(): number {
    return Math.floor(this.host.random() * 60);
  }

  /** Tells a machine what happened: at once, or together with what else happens in this moment. */
  dispatch(run: SegmentRun, event: SegmentEvent): void {
    if (!this.isAlive) return;
    run.events.push(event);
    if (run.isStepping) return;
    if (!this.host.tellsTogether) return this.step(run);
    run.isStepping = true;
    this.host.clock.schedule(0, () => this.step(run));
  }

  private step(run: SegmentRun): void {
    run.isStepping = true;
    while (run.events.length > 0 && this.isAlive) {
      const { nowMs } = this.host;
      for (const event of run.events.splice(0)) {
        this.host.trace(() => `${this.keyOf(run)} <- ${show(event)}`);
        run.machine.tell(event, nowMs);
      }
      for (const effect of run.machine.flush()) {
        if (this.host.diesBefore(this, effect)) this.die();
        if (!this.isAlive) break;
        this.host.trace(() => `${this.keyOf(run)} -> ${show(effect)}`);
        this.host.checkEffect(this, run, effect);
        this.perform(run, effect);
      }
      if (this.isAlive && run.events.length === 0) this.host.checkStep(this, run);
    }
    run.isStepping = false;
    if (this.isAlive && run.machine.isAtRest) this.finish(run);
  }

  keyOf(run: SegmentRun): string {
    return `${this.host.name}#${this.id}/${run.segmentId}`;
  }

  closeLane(run: SegmentRun, laneId: number): void {
    run.wires.get(laneId)?.close();
    run.wires.delete(laneId);
  }

  private finish(run: SegmentRun): void {
    run.cancelTimer?.();
    run.cancelTimer = undefined;
    this.host.budget.release(this.keyOf(run));
    for (const laneId of [...run.wires.keys()]) this.closeLane(run, laneId);
    if (run.machine.isDrained) this.startReady();
  }

  private perform(run: SegmentRun, effect: SegmentEffect): void {
    const { host } = this;
    switch (effect.type) {
      case 'send':
        return run.wires.get(effect.laneId)?.send(effect.send);
      case 'read':
        run.outstanding++;
        return this.later(() => this.read(run, effect));
      case 'open':
        run.wires.set(effect.laneId, undefined);
        return openLane(this, run, effect);
      case 'close':
        return this.closeLane(run, effect.laneId);
      case 'recover':
        return recoverSegment(this, run, effect);
      case 'acquire':
        run.outstanding++;
        return host.budget.acquire(this.keyOf(run), effect.bytes, () => {
          run.outstanding--;
          run.openings = 0;
          this.dispatch(run, { type: 'granted' });
        });
      case 'release':
        if (host.budget.heldBy(this.keyOf(run)) === undefined) run.outstanding--;
        return host.budget.release(this.keyOf(run));
      case 'write':
        return this.write(run, effect.record);
      case 'acknowledge':
        return this.acknowledge(run, effect.position);
      case 'wake':
        return this.setTimer(run, effect.atMs);
      case 'notice':
        return host.count(`notice ${effect.notice.type}`);
      case 'translate':
      case 'drained':
      case 'stopped':
        return;
    }
  }

  private setTimer(run: SegmentRun, atMs: number): void {
    const { host } = this;
    const waitMs = Math.max(0, Math.ceil(atMs - host.nowMs));
    run.spins = waitMs === 0 ? run.spins + 1 : 0;
    if (run.spins > MAX_SPINS) throw new BrokenInvariant(`progress: ${this.keyOf(run)} wakes itself without end`);
    run.cancelTimer?.();
    run.cancelTimer = host.clock.schedule(waitMs, () => {
      run.cancelTimer = undefined;
      this.dispatch(run, { type: 'wake' });
    });
  }

  private read(run: SegmentRun, request: Extract<SegmentEffect, { type: 'read' }>): void {
    const { source } = this.host;
    const { readId, after, maxEntries, maxBytes } = request;
    const log = source.logs.get(run.segmentId);
    const answer = (event: SegmentEvent) =>
      this.later(() => {
        run.outstanding--;
        this.dispatch(run, event);
      });
    if (log === undefined || this.host.fails('readFails')) {
      return answer({ type: 'readFailed', readId, reason: 'the source cannot be reached' });
    }
    const from = Math.max(log.indexBehind(after), log.trimmed);
    if (from >= log.entries.length && !log.sealed) {
      log.waiting.add(() => this.later(() => this.read(run, request)));
      return;
    }
    const entries = [];
    let bytes = 0;
    for (const entry of log.entries.slice(from, from + maxEntries)) {
      bytes += entry.bytes.length;
      if (entries.length > 0 && bytes > maxBytes) break;
      entries.push(entry);
    }
    answer({ type: 'read', readId, entries, ended: log.sealed && from + entries.length >= log.entries.length });
  }

  private write(run: SegmentRun, record: CursorRecord): void {
    const { host } = this;
    const { records } = host.source.toward(host.remote.cluster);
    const isLostBefore = host.fails('writeFailsBefore');
    const isLostAfter = !isLostBefore && host.fails('writeFailsAfter');
    run.outstanding++;
    const answer = (event: SegmentEvent) =>
      this.later(() => {
        run.outstanding--;
        if (event.type === 'written') this.records?.set(run.segmentId, record);
        this.dispatch(run, event);
      });
    host.clock.schedule(host.delayMs(), () => {
      // What a process that has died had begun to write may be written, or not.
      if (isLostBefore || (!this.isAlive && host.random() < 0.5)) {
        return answer({ type: 'writeFailed', reason: 'no answer of the store' });
      }
      const session = records.get(run.segmentId)?.session;
      if (session !== undefined && session > record.session) return answer({ type: 'writeFenced', session });
      host.written(this);
      records.set(run.segmentId, record);
      answer(isLostAfter ? { type: 'writeFailed', reason: 'no answer of the store' } : { type: 'written' });
    });
  }

  private acknowledge(run: SegmentRun, position: SourcePosition): void {
    const { host } = this;
    if (host.fails('acknowledgementLost')) return;
    const { acknowledged } = host.source.toward(host.remote.cluster);
    host.clock.schedule(host.delayMs(), () => {
      const log = host.source.logs.get(run.segmentId);
      const before = acknowledged.get(run.segmentId);
      if (log === undefined || log.indexBehind(before) >= log.indexBehind(position)) return;
      acknowledged.set(run.segmentId, position);
    });
  }

  private load(onLoaded: () => void): void {
    this.later(() => {
      if (this.host.fails('loadFails')) return this.load(onLoaded);
      const { source, remote } = this.host;
      this.records = new Map(source.toward(remote.cluster).records);
      this.session = 1 + Math.max(0, ...Array.from(this.records.values(), ({ session }) => session));
      this.claimDrained(this.session);
      onLoaded();
    });
  }

  /** Nobody writes the cursors of drained segments any more: a process before that took one up undrained must learn of this one. */
  private claimDrained(session: number): void {
    const { source, remote } = this.host;
    const drained = [...(this.records ?? [])].filter(([, record]) => record.drained);
    this.later(() => {
      const { records } = source.toward(remote.cluster);
      for (const [id, record] of drained) {
        const stored = records.get(id);
        if (stored !== undefined && stored.session <= session) records.set(id, { ...record, session });
      }
    });
  }

  private takeSource(layout: Layout): void {
    if (this.records === undefined || this.isStopping) return;
    this.sourceLayout = layout;
    for (const segment of layout.segments.values()) {
      if (!this.runs.has(segment.segmentId)) this.takeUp(segment, this.records);
    }
    for (const [segmentId, { drained }] of this.records) {
      if (layout.segments.has(segmentId) || !drained) continue;
      this.records.delete(segmentId);
      this.runs.delete(segmentId);
      this.host.source.toward(this.host.remote.cluster).records.delete(segmentId);
    }
    this.startReady();
  }

  private takeRemote(layout: RemoteTopicLayout): void {
    if (this.remoteLayout !== undefined && layout.epoch <= this.remoteLayout.epoch) return;
    this.remoteLayout = layout;
    for (const run of [...this.runs.values()]) this.dispatch(run, { type: 'layout', layout });
  }

  private takeUp(segment: Segment, records: ReadonlyMap<number, CursorRecord>): void {
    const { source, supports, options, maxEntryBytes } = this.host;
    const { segmentId, range } = segment;
    const stored = records.get(segmentId);
    const empty = { drained: false, skipped: [], checkpoints: new Map() };
    const record: CursorRecord = { ...empty, ...stored, session: this.session ?? 1 };
    const run: SegmentRun = {
      segmentId,
      segment,
      machine: new SegmentReplicator({
        source: { segmentId, range, legacy: isLegacy(segment) },
        sourceCluster: source.cluster,
        maxEntryBytes,
        supports,
        options,
        record,
        counters: this.counters,
      }),
      wires: new Map(),
      outstanding: 0,
      isStarted: false,
      cancelTimer: undefined,
      events: [],
      isStepping: false,
      spins: 0,
      openings: 0,
      messages: new Map(),
      checkedCheckpoints: new Map(),
    };
    this.watchOpenings(run);
    this.runs.set(segmentId, run);
    if (this.remoteLayout !== undefined) this.dispatch(run, { type: 'layout', layout: this.remoteLayout });
    if (this.isPaused) this.dispatch(run, { type: 'pause' });
  }

  /** Whoever opens a payload asks for the codecs. */
  private watchOpenings(run: SegmentRun): void {
    const { codecs } = this.host.options;
    // The options are the machine's own; there is no other way to see what it opens, and when.
    const { options } = (run.machine as unknown as { readonly machine: { readonly options: object } }).machine;
    Object.defineProperty(options, 'codecs', {
      get: () => {
        this.host.checkOpening(this, run);
        return codecs;
      },
    });
  }

  /** The parent-drain gate: a parent that is not in the layout any more was pruned, and only drained ones are. */
  private startReady(): void {
    const { sourceLayout, host } = this;
    if (sourceLayout === undefined || this.isStopping) return;
    const isPast = (id: number) => this.runs.get(id)?.machine.isDrained === true || !sourceLayout.segments.has(id);
    for (const run of this.runs.values()) {
      if (run.isStarted || !(host.isParentGateDropped || run.segment.parentIds.every(isPast))) continue;
      run.isStarted = true;
      this.later(() => {
        const acknowledged = host.source.toward(host.remote.cluster).acknowledged.get(run.segmentId);
        this.later(() => this.dispatch(run, { type: 'start', acknowledged }));
      });
    }
  }

  private keepPins(): void {
    this.host.clock.schedule(PIN_DELAY_MS, () => {
      if (!this.isAlive) return;
      movePins(this);
      this.keepPins();
    });
  }

  /** What follows a change, after a while; changes meanwhile follow with it. */
  private latest(take: () => void): () => void {
    let isDue = false;
    return () => {
      if (isDue) return;
      isDue = true;
      this.later(() => {
        isDue = false;
        take();
      });
    };
  }
}

/** An event or effect in one line. */
function show(what: SegmentEvent | SegmentEffect): string {
  return JSON.stringify(what, (key, value: unknown) => {
    if (typeof value === 'bigint') return `${value}`;
    if (key === 'buffers' || key === 'layout' || value instanceof Uint8Array) return undefined;
    return value instanceof Map ? Object.fromEntries(value) : value;
  });
}
