/**
 * The inside of a segment's replicator: what is taken up, planned, sent, held, settled and written, in which phase.
 */
import { comparePositions, isSameEntry } from '../dedup/index.js';
import { formatSourcePosition, type SourcePosition } from '../entry/index.js';
import type { RemoteSupport, RemoteTopicLayout } from '../ports/index.js';
import type { SourceSegment } from '../rebatch/index.js';
import { Chunking } from './chunking.js';
import { count, type HoldReason, type ReplicatorCounters } from './counters.js';
import { Cursor } from './cursor.js';
import type { ChunkedMessage, EntryRecord, LaneSend } from './entry-record.js';
import { EntryWindow } from './entry-window.js';
import { Found } from './found.js';
import { type LaneHost, Lanes } from './lanes.js';
import { NO_SENDS, Planner, type PlannerHost } from './planner.js';
import { Reading } from './reading.js';
import {
  DEFAULT_SEGMENT_OPTIONS,
  type SegmentEffect,
  type SegmentEvent,
  type SegmentNotice,
  type SegmentOptions,
  type SegmentReplicatorStart,
  type SegmentReport,
  type SegmentWait,
} from './segment-events.js';
import type { StopReason } from './stop-reasons.js';

const NO_EFFECTS: readonly SegmentEffect[] = Object.freeze([]);

/**
 * - `waiting`: for its parents. - `running`. - `stopping`: no new sends; what is in flight is settled.
 * - `drained`, `stopped`, `failed`: at rest for good, the last with a stop reason.
 */
type Phase = 'waiting' | 'running' | 'stopping' | 'drained' | 'stopped' | 'failed';

export class SegmentMachine implements LaneHost, PlannerHost {
  readonly source: SourceSegment;
  readonly sourceCluster: string;
  readonly maxEntryBytes: number;
  readonly supports: RemoteSupport;
  readonly options: SegmentOptions & typeof DEFAULT_SEGMENT_OPTIONS;
  readonly counters: ReplicatorCounters;
  readonly window = new EntryWindow();
  readonly found = new Found();
  readonly chunking: Chunking;
  readonly lanes: Lanes;
  nowMs = 0;

  private readonly planner: Planner;
  private readonly cursor: Cursor;
  private readonly reading: Reading;
  private readonly isFirstSession: boolean;
  private effects: SegmentEffect[] = [];
  private hasNews = false;
  private isAgain = false;
  private phase: Phase;
  private isPaused = false;
  private stopReason: { readonly reason: StopReason; readonly message: string } | undefined;
  private waitingFor: SegmentWait = { for: 'parents' };
  private remote: RemoteTopicLayout | undefined;
  private readonly held = new Set<EntryRecord>();
  private copiesUpTo: SourcePosition | undefined;
  /** The highest watermark that a sealed segment was found to have. */
  private sealedUpTo: SourcePosition | undefined;
  private wakeAtMs: number | undefined;
  /** Something was passed over unsent that a process before may have in hand still. */
  private mustFence = false;

  constructor({ source, sourceCluster, maxEntryBytes, supports, options, record, counters }: SegmentReplicatorStart) {
    this.source = source;
    this.sourceCluster = sourceCluster;
    this.maxEntryBytes = maxEntryBytes;
    this.supports = supports;
    this.options = withDefaults(options);
    this.counters = counters;
    this.isFirstSession = record.session <= 1;
    this.phase = record.drained ? 'drained' : 'waiting';
    this.cursor = new Cursor(record, this.options);
    this.lanes = new Lanes(this, new Map(record.checkpoints));
    this.chunking = new Chunking(this);
    this.planner = new Planner(this);
    this.reading = new Reading(this.window, this.options);
  }

  get isDrained(): boolean {
    return this.phase === 'drained';
  }

  /** Nothing is asked for any more, and nothing heard. */
  get isAtRest(): boolean {
    return this.phase === 'drained' || this.phase === 'stopped' || this.phase === 'failed';
  }

  /** Takes one event of several; `flush` then says what is to be done about them all. */
  tell(event: SegmentEvent, nowMs: number): void {
    if (this.isAtRest) return;
    this.nowMs = nowMs;
    this.hasNews = true;
    this.take(event);
  }

  /** What is to be done about the events told since it was asked last. */
  flush(): readonly SegmentEffect[] {
    if (this.hasNews && !this.isAtRest) this.advance();
    this.hasNews = false;
    if (this.effects.length === 0) return NO_EFFECTS;
    const { effects } = this;
    this.effects = [];
    return effects;
  }

  report(): SegmentReport {
    const { window, cursor } = this;
    const first = this.firstHeld();
    const hold = first?.held;
    return {
      segmentId: this.source.segmentId,
      state: this.phase === 'stopping' ? 'running' : this.phase === 'failed' ? 'stopped' : this.phase,
      waitingFor: this.reportedWait(),
      ...(cursor.settled === undefined ? {} : { settled: cursor.settled }),
      unsettledEntries: window.unsettledEntries,
      unsettledBytes: window.unsettledBytes,
      spanEntries: window.size,
      ...(first === undefined || hold === undefined
        ? {}
        : { held: { position: first.position, reason: hold.reason, message: hold.message } }),
      lanes: Array.from(this.lanes.all(), (lane) => lane.report()),
    };
  }

  private take(event: SegmentEvent): void {
    switch (event.type) {
      case 'start':
        return this.begin(event.acknowledged);
      case 'layout':
        return this.takeLayout(event.layout);
      case 'read':
        return this.takeRead(event);
      case 'readFailed':
        return this.reading.failed(event.readId, event.reason, (failures) => this.retryAt(failures));
      case 'opened':
        return this.takeOpened(event);
      case 'openFailed':
        return this.lanes.openFailed(event.laneId, event.failure);
      case 'result':
        return this.lanes.result(event.laneId, event.result);
      case 'recovered':
        if (event.recovery.type === 'watermark') this.sealedUpTo = later(this.sealedUpTo, event.recovery.watermark);
        // A process before may have sent what this one has not read yet.
        if (event.recovery.type === 'copies') this.foundUpTo(event.recovery.lastPosition);
        return this.lanes.recoveredWith(event.segmentId, event.recovery);
      case 'end':
        if (this.lanes.endsAt(event.segmentId, event.at)) this.cursor.hurry();
        return;
      case 'granted':
        return this.planner.granted();
      case 'written':
        return this.takeWritten();
      case 'writeFailed':
        return this.phase === 'stopping'
          ? this.cursor.abandon()
          : this.cursor.failed((failures) => this.retryAt(failures));
      case 'writeFenced':
        return this.stop('fenced', `session ${event.session} has written the cursor`);
      case 'translated':
        return this.planner.translated(event.version, event.translation);
      case 'skip':
        return this.takeSkip(event.position);
      case 'pause':
        this.isPaused = true;
        return this.planner.release();
      case 'resume':
        this.isPaused = false;
        return this.lanes.pumpAll();
      case 'stop':
        this.phase = this.phase === 'waiting' ? 'stopped' : 'stopping';
        if (this.isAtRest) this.emit({ type: 'stopped' });
        return this.planner.release();
      case 'wake':
        this.wakeAtMs = undefined;
        return;
    }
  }

  private begin(acknowledged: SourcePosition | undefined): void {
    if (this.phase !== 'waiting') return;
    this.phase = 'running';
    // The session that owns the segment now is made known.
    this.cursor.hurry();
    const { settled } = this.cursor;
    const order =
      acknowledged === undefined || settled === undefined ? undefined : comparePositions(acknowledged, settled);
    // A source may lose what was acknowledged.
    if (settled !== undefined && order !== 0 && order !== 1) this.emit({ type: 'acknowledge', position: settled });
    if (acknowledged === undefined || (order !== undefined && order <= 0)) return;
    this.cursor.advance(acknowledged, 1, this.nowMs);
    if (this.isFirstSession) return;
    // The source itself has let entries go that were not replicated: a TTL, or an eviction (B23).
    this.passedOver();
    this.counters.lostAtSource++;
    this.notice({ type: 'lostAtSource', from: settled, to: acknowledged });
  }

  private takeLayout(layout: RemoteTopicLayout): void {
    const isNewer = this.remote === undefined || layout.epoch > this.remote.epoch;
    this.remote = layout;
    this.lanes.setLayout(layout);
    if (isNewer) for (const record of this.held) this.release(record);
  }

  private takeRead({ readId, entries, ended }: Extract<SegmentEvent, { type: 'read' }>): void {
    const own = this.reading.arrived(readId, entries, ended, (failures) => this.retryAt(failures));
    for (const record of this.reading.takeGone()) this.lose(record);
    if (own === undefined) return;
    for (const { position, bytes } of own) {
      if (this.cursor.settled !== undefined && comparePositions(position, this.cursor.settled) <= 0) continue;
      this.window.add(position, bytes);
      if (this.supports.dedup === 'readBack') for (const lane of this.lanes.all()) lane.recognize(position);
    }
  }

  /** The source has let an entry go that was to be sent again: another process has settled it, or it is lost (B23). */
  private lose(record: EntryRecord): void {
    this.counters.lostAtSource++;
    this.notice({ type: 'lostAtSource', from: this.before(record), to: record.position });
    this.chunking.passed(record);
    this.settle(record);
  }

  private takeOpened(event: Extract<SegmentEvent, { type: 'opened' }>): void {
    const { lastPosition } = event;
    const known = later(event.watermark, this.sealedUpTo);
    if (known !== undefined && (lastPosition === undefined || comparePositions(whole(known), lastPosition) > 0)) {
      const last = lastPosition === undefined ? 'nothing' : `up to ${formatSourcePosition(lastPosition)}`;
      // Everything that is sent would be taken for a duplicate, or for found (R12c).
      const message = `the remote has ${formatSourcePosition(known)}, the source ever wrote ${last}`;
      return this.stop('sourceWentBackwards', message);
    }
    if (this.stopReason?.reason === 'unauthorized' || this.stopReason?.reason === 'unsupported') {
      this.stopReason = undefined;
    }
    this.foundUpTo(lastPosition);
    this.lanes.opened(event);
  }

  private takeWritten(): void {
    const record = this.cursor.written();
    if (record === undefined) return;
    this.lanes.named(record.checkpoints.keys());
    if (record.settled !== undefined) this.emit({ type: 'acknowledge', position: record.settled });
    for (const held of this.held) if (this.isSkipped(held.position)) this.release(held);
    if (!record.drained) return;
    this.lanes.closeAll();
    this.phase = 'drained';
    this.emit({ type: 'drained' });
  }

  private takeSkip(position: SourcePosition): void {
    const isHeld = [...this.held].some((record) => isSameEntry(record.position, position));
    if (isHeld) this.cursor.skip(position);
  }

  /** Goes on as far as it can after every event; once more where time has changed what can be done. */
  private advance(): void {
    do this.goOn();
    while (this.isAgain && !this.isAtRest);
  }

  private goOn(): void {
    if (this.phase === 'running' && !this.isPaused) {
      this.openForReadBack();
      this.waitingFor = this.planner.plan(this.remote);
      if (this.reading.ended && this.planner.isAtEnd) this.chunking.ended();
    }
    this.planner.releaseUnused();
    this.moveCursor();
    if (this.mayRead) this.read();
    this.write();
    this.setTimer();
    if (this.phase === 'stopping' && this.lanes.inFlight === 0 && this.cursor.isClean) {
      this.lanes.closeAll();
      this.phase = 'stopped';
      this.emit({ type: 'stopped' });
    }
  }

  /** A remote without dedup state trims by checkpoints, so that idle segments need theirs too (R15). */
  private openForReadBack(): void {
    if (this.supports.dedup !== 'readBack' || this.remote === undefined) return;
    for (const segment of this.remote.active) if (this.lanes.touchesSource(segment)) this.lanes.ready(segment);
  }

  private moveCursor(): void {
    const before = this.window.size;
    const settled = this.window.trim(this.found.hasCopies ? (position) => this.found.passed(position) : undefined);
    if (settled !== undefined) {
      this.cursor.advance(settled, before - this.window.size, this.nowMs);
      this.found.settledTo(settled);
      if (this.supports.dedup === 'readBack') this.moveCheckpoints(settled);
    }
    const isAtEnd = this.reading.ended && this.window.size === 0 && this.lanes.isIdle;
    if (isAtEnd && this.phase === 'running' && (!this.mustFence || this.isFenced())) this.cursor.drain();
  }

  /**
   * True when the names of this segment's producers are this process's own wherever its entries may go (R14): one before
   * that still lives could else send what was passed over behind entries of this segment's children.
   */
  private isFenced(): boolean {
    const { remote, lanes } = this;
    if (remote === undefined) return false;
    const open = remote.active.filter((segment) => lanes.touchesSource(segment) && lanes.ready(segment) === undefined);
    const [first] = open;
    if (first === undefined) return true;
    this.waitingFor = { for: 'remoteSegment', segmentId: first.segmentId, reason: lanes.reason(first) };
    return false;
  }

  private moveCheckpoints(settled: SourcePosition): void {
    this.lanes.settledTo(settled);
    if (this.copiesUpTo === undefined || comparePositions(settled, this.copiesUpTo) < 0) return;
    // What is left was read back from other source segments.
    this.found.forgetCopies();
    this.copiesUpTo = undefined;
  }

  /** No copy that was found belongs to an entry behind this one. */
  private foundUpTo(position: SourcePosition | undefined): void {
    if (position === undefined) return;
    if (this.copiesUpTo === undefined || comparePositions(position, this.copiesUpTo) > 0) this.copiesUpTo = position;
  }

  /** A held entry keeps all later ones back, so that none are read; what was read before may be needed again. */
  private get mayRead(): boolean {
    return this.phase === 'running' && !this.isPaused && (this.held.size === 0 || this.reading.wantsAgain);
  }

  private read(): void {
    const request = this.reading.next(this.cursor.settled, this.nowMs);
    if (request !== undefined) this.emit({ type: 'read', ...request });
  }

  private write(): void {
    if (this.phase === 'stopping' && !this.cursor.isClean) this.cursor.hurry();
    const record = this.cursor.due(this.nowMs, this.lanes);
    if (record !== undefined) this.emit({ type: 'write', record });
  }

  private setTimer(): void {
    this.isAgain = false;
    let next = earlier(this.lanes.due(), this.cursor.nextAtMs);
    // A read that is due but may not be made needs no timer: it would go off without end.
    if (this.mayRead) next = earlier(next, this.reading.retryAtMs);
    next = earlier(next, this.planner.due());
    if (!this.chunking.isEmpty) next = earlier(next, this.chunking.due());
    if (this.held.size > 0) next = earlier(next, this.heldUntil());
    if (next === undefined || (this.wakeAtMs !== undefined && this.wakeAtMs <= next)) return;
    this.wakeAtMs = next;
    this.emit({ type: 'wake', atMs: next });
  }

  /** When the TTL passes what is held; what it has passed is planned again, and skipped then. */
  private heldUntil(): number | undefined {
    let next: number | undefined;
    for (const record of this.held) {
      const atMs = record.held?.expiresAtMs;
      if (atMs === undefined) continue;
      if (atMs <= this.nowMs) this.release(record);
      else next = next === undefined ? atMs : Math.min(next, atMs);
    }
    return next;
  }

  private firstHeld(): EntryRecord | undefined {
    let first: EntryRecord | undefined;
    for (const record of this.held) if (first === undefined || record.index < first.index) first = record;
    return first;
  }

  private reportedWait(): SegmentWait {
    if (this.phase === 'drained' || this.phase === 'stopped') return { for: 'nothing' };
    if (this.phase === 'waiting') return { for: 'parents' };
    if (this.stopReason !== undefined) return { for: 'operator', ...this.stopReason };
    if (this.isPaused) return { for: 'operator', reason: 'paused', message: 'paused by an operator' };
    const { waitingFor, reading } = this;
    if (waitingFor.for !== 'entries') return waitingFor;
    if (reading.retryReason !== undefined) return { for: 'source', reason: reading.retryReason };
    return this.cursor.isWriting && reading.ended ? { for: 'cursor' } : waitingFor;
  }

  private release(record: EntryRecord): void {
    record.held = undefined;
    this.held.delete(record);
    this.needPlan(record);
  }

  private notice(notice: SegmentNotice): void {
    this.emit({ type: 'notice', notice });
  }

  // What lanes, planner and chunking ask for.

  get maySend(): boolean {
    return !this.isPaused && this.phase === 'running';
  }

  emit(effect: SegmentEffect): void {
    this.effects.push(effect);
  }

  retryAt(failures: number): number {
    const { retryInitialMs, retryMaxMs } = this.options;
    return this.nowMs + Math.min(retryMaxMs, retryInitialMs * 2 ** failures);
  }

  isSkipped(position: SourcePosition): boolean {
    return this.cursor.isSkipped(position);
  }

  before(record: EntryRecord): SourcePosition | undefined {
    return record.index === this.window.start ? this.cursor.settled : this.window.at(record.index - 1).position;
  }

  passedOver(): void {
    this.mustFence ||= !this.isFirstSession;
  }

  again(): void {
    this.isAgain = true;
  }

  settle(record: EntryRecord): void {
    if (record.settled) return;
    this.isAgain = true;
    if (record.rebatched) this.counters.rebatchedEntries++;
    record.sends = NO_SENDS;
    this.window.settle(record);
  }

  needPlan(record: EntryRecord): void {
    if (record.settled) return;
    this.isAgain = true;
    record.needsPlan = true;
    this.planner.replanFrom(record);
  }

  refetch(record: EntryRecord): void {
    this.reading.want(record.index, this.before(record));
  }

  holdRecord(record: EntryRecord, reason: HoldReason, message: string): void {
    const { ttlMs } = this.options;
    const publishedAtMs = record.entry?.broker?.timestampMs ?? record.entry?.metadata.publishTimeMs;
    const expires = ttlMs !== undefined && ttlMs > 0 && publishedAtMs !== undefined;
    record.held = { reason, message, ...(expires ? { expiresAtMs: publishedAtMs + ttlMs + 1 } : {}) };
    this.held.add(record);
    count(this.counters.held, reason);
    this.notice({ type: 'held', position: record.position, reason, message });
  }

  stored(send: LaneSend, how: 'stored' | 'duplicate'): void {
    const { record, rectangle } = send;
    this.countStored(send, how);
    record.sends = record.sends.length === 1 ? NO_SENDS : record.sends.filter((other) => other !== send);
    if (rectangle !== undefined) {
      record.done ??= [];
      record.done.push(rectangle);
    }
    if (record.sends.length > 0 || record.needsPlan) return;
    if (record.message === undefined) this.settle(record);
    else this.chunking.stored(record, record.message);
  }

  private countStored({ record, rectangle, bytes }: LaneSend, how: 'stored' | 'duplicate'): void {
    const { counters } = this;
    if (how === 'duplicate') count(counters.duplicates, record.repeated ?? 'restart');
    else if (rectangle === undefined) {
      counters.verbatimEntries++;
      counters.verbatimBytes += bytes;
    } else {
      counters.parts++;
      counters.rebatchedBytes += bytes;
    }
  }

  replan(send: LaneSend): void {
    const { record } = send;
    record.sends = record.sends.length === 1 ? NO_SENDS : record.sends.filter((other) => other !== send);
    this.needPlan(record);
  }

  holdSend(send: LaneSend, reason: HoldReason, message: string): void {
    this.replan(send);
    // Of an entry that an operator has let pass, another part is refused as well.
    if (!this.isSkipped(send.record.position)) this.holdRecord(send.record, reason, message);
  }

  get settled(): SourcePosition | undefined {
    return this.cursor.settled;
  }

  writeCursor(): void {
    this.cursor.hurry();
  }

  completeTo(segmentId: number, position: SourcePosition): SourcePosition | null | undefined {
    return this.chunking.completeTo(segmentId, position);
  }

  closed(segmentId: number): void {
    this.chunking.closed(segmentId);
  }

  gaveUp({ uuid, first }: ChunkedMessage): void {
    this.counters.chunksGivenUp++;
    this.notice({ type: 'chunksGivenUp', uuid, position: first });
  }

  /** Cannot go on without an operator. `unauthorized` and `unsupported` are tried again by the lane, the others end it. */
  stop(reason: StopReason, message: string): void {
    if (this.stopReason?.reason !== reason) this.notice({ type: 'stoppedBy', reason, message });
    this.stopReason = { reason, message };
    if (reason === 'unauthorized' || reason === 'unsupported') return;
    this.planner.release();
    this.lanes.closeAll();
    this.phase = 'failed';
  }
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined || a < b ? a : b;
}

function later(a: SourcePosition | undefined, b: SourcePosition | undefined): SourcePosition | undefined {
  if (a === undefined) return b;
  return b === undefined || comparePositions(a, b) > 0 ? a : b;
}

/** A watermark's entry, whatever its part. */
function whole({ ledgerId, entryId }: SourcePosition): SourcePosition {
  return { ledgerId, entryId };
}

function withDefaults(options: SegmentOptions): SegmentOptions & typeof DEFAULT_SEGMENT_OPTIONS {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return { ...DEFAULT_SEGMENT_OPTIONS, ...given } as SegmentOptions & typeof DEFAULT_SEGMENT_OPTIONS;
}
