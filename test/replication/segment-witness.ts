/**
 * What the world sees of the machine of a segment that is told anything, and the rules that it holds it to. Answers that
 * have no id (of a write, of a send on a lane) are taken for those of what is out.
 */
import { expect } from 'vitest';
import type { SourcePosition } from '../../src/entry/index.js';
import type { CursorRecord, RemoteTopicLayout } from '../../src/ports/index.js';
import {
  type LaneReport,
  type SegmentEffect,
  type SegmentEvent,
  SegmentReplicator,
  type SegmentReplicatorStart,
} from '../../src/replication/index.js';
import { overlaps } from '../../src/ring/index.js';
import { Accounts, isBehind } from './segment-accounts.js';

type Effect<Type extends SegmentEffect['type']> = Extract<SegmentEffect, { type: Type }>;
type Told<Type extends SegmentEvent['type']> = Extract<SegmentEvent, { type: Type }>;

/** A producer that the machine has asked for and not given up. */
interface Wire {
  readonly segmentId: number;
  isOpen: boolean;
  /** Sends without an answer. */
  readonly out: SourcePosition[];
  /** The send before, since the producer was opened. */
  last: SourcePosition | undefined;
}

/** How far what is told can be trusted. */
export interface Trust {
  /** The remote's layouts follow one another, so that lanes and progress can be judged. */
  readonly isSteady: boolean;
  /** Every entry has to be sent, so that the cursor can be judged by what was said to be stored. */
  readonly isPlain: boolean;
}

export class Witness {
  readonly machine: SegmentReplicator;
  /** What waits for an answer; and the last of what was asked, answered or not. */
  open: SegmentEffect[] = [];
  asked: SegmentEffect[] = [];
  /** Everything in order, to be told when a rule breaks. */
  readonly story: (SegmentEvent | SegmentEffect)[] = [];
  nowMs = 1_700_000_000_000;
  private readonly accounts: Accounts;
  private layout: RemoteTopicLayout | undefined;
  private lastReadId = 0;
  private readOut: number | undefined;
  private lastRead: SourcePosition | undefined;
  private writeOut: CursorRecord | undefined;
  private written: CursorRecord;
  private settled: SourcePosition | undefined;
  private acknowledged: SourcePosition | undefined;
  private lastLaneId = 0;
  private readonly wires = new Map<number, Wire>();
  private readonly recovering = new Set<number>();
  private readonly translating = new Set<string>();
  /** Of the slow-path budget; one that nobody asked for is given back as well. */
  private grant: 'none' | 'asked' | 'held' = 'none';
  private hasTimer = false;
  private isPastEnd = false;

  constructor(
    private readonly start: SegmentReplicatorStart,
    private readonly trust: Trust,
  ) {
    this.machine = new SegmentReplicator(start);
    this.accounts = new Accounts(start.record);
    this.written = start.record;
    this.settled = start.record.settled;
  }

  tell(event: SegmentEvent): void {
    this.story.push(event);
    this.note(event);
    const answered = this.open.findIndex((effect) => isAnswer(event, effect));
    if (answered >= 0) this.open.splice(answered, 1);
    for (const effect of this.machine.step(event, this.nowMs)) {
      this.story.push(effect);
      expect(this.isPastEnd, 'nothing follows the end').toBe(false);
      this.judge(effect);
      this.asked = [...this.asked, effect].slice(-12);
      this.open.push(effect);
      if (effect.type === 'close') this.open = this.open.filter((other) => !isOfLane(other, effect.laneId));
    }
    this.judgeReport();
  }

  /** What an event ends, or says. */
  private note(event: SegmentEvent): void {
    this.accounts.note(event);
    switch (event.type) {
      case 'layout':
        this.layout = event.layout;
        return;
      case 'read':
      case 'readFailed':
        return this.noteRead(event);
      case 'opened':
      case 'openFailed':
        return this.noteOpening(event);
      case 'result':
        return this.accounts.answered(this.wires.get(event.laneId)?.out.shift(), event.result);
      case 'recovered':
        this.recovering.delete(event.segmentId);
        return;
      case 'translated':
        this.translating.delete(event.version);
        return;
      case 'granted':
        this.grant = 'held';
        return;
      case 'written':
        this.written = this.writeOut ?? this.written;
        this.writeOut = undefined;
        return;
      case 'writeFailed':
        this.writeOut = undefined;
        return;
      case 'wake':
        this.hasTimer = false;
    }
  }

  private noteRead(event: Told<'read' | 'readFailed'>): void {
    if (this.readOut !== event.readId) return;
    this.readOut = undefined;
    if (event.type === 'readFailed') return;
    this.accounts.read(event.entries);
    const last = event.entries.at(-1)?.position;
    if (isBehind(last, this.lastRead)) this.lastRead = last;
  }

  private noteOpening({ type, laneId }: Told<'opened' | 'openFailed'>): void {
    const wire = this.wires.get(laneId);
    if (wire === undefined || wire.isOpen) return;
    if (type === 'opened') wire.isOpen = true;
    else this.wires.delete(laneId);
  }

  private judge(effect: SegmentEffect): void {
    switch (effect.type) {
      case 'read':
        return this.judgeRead(effect);
      case 'open':
        return this.judgeOpen(effect);
      case 'close':
        return this.judgeClose(effect);
      case 'send':
        return this.judgeSend(effect);
      case 'recover':
        if (this.trust.isSteady) expect(this.recovering.has(effect.segmentId), 'one question at a time').toBe(false);
        this.recovering.add(effect.segmentId);
        return;
      case 'acquire':
        expect(this.grant, 'one place in the line').toBe('none');
        this.grant = 'asked';
        return;
      case 'release':
        expect(this.grant).not.toBe('none');
        this.grant = 'none';
        return;
      case 'write':
        return this.judgeWrite(effect.record);
      case 'acknowledge':
        return this.judgeAcknowledge(effect.position);
      case 'translate':
        expect(this.translating.has(effect.version), 'one question at a time').toBe(false);
        this.translating.add(effect.version);
        return;
      case 'wake':
        this.hasTimer = true;
        return;
      case 'notice':
        return this.accounts.noticed(effect.notice);
      case 'drained':
        expect(this.written.drained, 'the end is durable').toBe(true);
        this.isPastEnd = true;
        return;
      case 'stopped':
        this.isPastEnd = true;
    }
  }

  /** One at a time; only what was read before is read again at once. */
  private judgeRead({ readId, after, maxEntries, maxBytes }: Effect<'read'>): void {
    expect(readId).toBeGreaterThan(this.lastReadId);
    this.lastReadId = readId;
    if (this.readOut !== undefined) expect(isBehind(this.lastRead, after), 'one read at a time').toBe(true);
    this.readOut = readId;
    expect(Math.min(maxEntries, maxBytes)).toBeGreaterThan(0);
  }

  private judgeOpen({ laneId, segmentId }: Effect<'open'>): void {
    expect(laneId).toBeGreaterThan(this.lastLaneId);
    this.lastLaneId = laneId;
    if (this.trust.isSteady) this.judgePlace(segmentId);
    this.wires.set(laneId, { segmentId, isOpen: false, out: [], last: undefined });
  }

  /** One producer for each active segment, once nothing of the sealed ones before it is open or unknown (R12). */
  private judgePlace(segmentId: number): void {
    const { layout, wires, recovering } = this;
    const segment = layout?.segments.get(segmentId);
    expect(segment?.state).toBe('active');
    if (segment === undefined) return;
    const others = [...wires.values()].map((wire) => wire.segmentId);
    expect(others).not.toContain(segmentId);
    const unknown = [...others, ...recovering].filter((id) => {
      const other = layout?.segments.get(id);
      return other?.state === 'sealed' && overlaps(other.range, segment.range);
    });
    expect(unknown, 'a segment is opened before its predecessors are known').toEqual([]);
  }

  private judgeClose({ laneId }: Effect<'close'>): void {
    expect(this.wires.has(laneId), 'what is closed was asked for').toBe(true);
    this.wires.delete(laneId);
  }

  /** On an open producer, ascending, and naming the send before or none (R12b). */
  private judgeSend({ laneId, send: { position, previous } }: Effect<'send'>): void {
    const wire = this.wires.get(laneId);
    expect(wire?.isOpen, 'on an open lane').toBe(true);
    if (wire === undefined) return;
    if (previous !== undefined) {
      expect(previous).toEqual(wire.last);
      expect(isBehind(position, previous)).toBe(true);
    }
    wire.last = position;
    wire.out.push(position);
    if (!this.start.supports.failStop) expect(wire.out.length).toBe(1);
  }

  private judgeWrite(record: CursorRecord): void {
    expect(this.writeOut, 'one write at a time').toBeUndefined();
    this.writeOut = record;
    const { session, settled, skipped } = record;
    expect(session).toBe(this.start.record.session);
    expect(isBehind(this.settled, settled), 'the cursor goes back').toBe(false);
    this.settled = settled;
    const places = settled === undefined ? skipped : [settled, ...skipped];
    expect(places.every((at, i) => i === 0 || isBehind(at, places[i - 1]))).toBe(true);
    if (this.trust.isPlain)
      expect(this.accounts.ahead(settled, this.wires.values()), 'the cursor is ahead').toEqual([]);
  }

  private judgeAcknowledge(position: SourcePosition): void {
    expect(position, 'what is acknowledged is written').toEqual(this.written.settled);
    expect(isBehind(this.acknowledged, position), 'what is acknowledged goes back').toBe(false);
    this.acknowledged = position;
  }

  private judgeReport(): void {
    const { machine } = this;
    const { state, waitingFor, unsettledEntries, unsettledBytes, spanEntries, settled, lanes } = machine.report();
    expect(machine.isAtRest).toBe(state === 'drained' || state === 'stopped');
    expect(machine.isDrained).toBe(state === 'drained');
    expect(Math.min(unsettledEntries, unsettledBytes, spanEntries - unsettledEntries)).toBeGreaterThanOrEqual(0);
    expect(isBehind(this.settled, settled), 'what is written is settled').toBe(false);
    if (!machine.isAtRest) expect(this.grant, 'a grant is used or given back at once').not.toBe('held');
    if (state === 'running' && this.trust.isSteady && waitingFor.for !== 'operator') {
      expect(this.isAwaited(lanes), `for ever: ${JSON.stringify(waitingFor)}`).toBe(true);
    }
  }

  /** Something comes by itself: an answer, the timer, or a layout. */
  private isAwaited(lanes: readonly LaneReport[]): boolean {
    const { readOut, writeOut, recovering, translating, wires, layout } = this;
    if (readOut !== undefined || writeOut !== undefined || this.grant === 'asked' || this.hasTimer) return true;
    if (recovering.size + translating.size > 0 || layout === undefined) return true;
    if ([...wires.values()].some(({ isOpen, out }) => !isOpen || out.length > 0)) return true;
    // The remote has said that a segment is sealed, and the layout that shows it is still to come.
    return lanes.some((lane) => lane.state === 'closing' && layout.segments.get(lane.segmentId)?.state === 'active');
  }
}

function isOfLane(effect: SegmentEffect, laneId: number): boolean {
  return (effect.type === 'open' || effect.type === 'send' || effect.type === 'close') && effect.laneId === laneId;
}

/** True when an event is what may come of an effect. */
function isAnswer(event: SegmentEvent, effect: SegmentEffect): boolean {
  switch (effect.type) {
    case 'read':
      return (event.type === 'read' || event.type === 'readFailed') && event.readId === effect.readId;
    case 'open':
      return (event.type === 'opened' || event.type === 'openFailed') && event.laneId === effect.laneId;
    case 'send':
      return event.type === 'result' && event.laneId === effect.laneId;
    case 'recover':
      return event.type === 'recovered' && event.segmentId === effect.segmentId;
    case 'acquire':
      return event.type === 'granted';
    case 'write':
      return event.type === 'written' || event.type === 'writeFailed';
    case 'translate':
      return event.type === 'translated' && event.version === effect.version;
    default:
      return false;
  }
}
