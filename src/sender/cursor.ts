/**
 * One cursor: a partition of the parent on its way to the target. It reads a slab, splits it into lanes by key, and
 * advances once every lane is done; nothing about a remote moves it, and only the parent's retention makes it pass
 * records that were not sent.
 */
import { type ActingCursor, act } from './actions.js';
import type { ChunkOutcome } from './answer-table.js';
import { stateOfCursor } from './cursor-report.js';
import { CursorVoice } from './cursor-voice.js';
import type { Hub } from './hub.js';
import { Lane } from './lane.js';
import type { LaneCursor, SlabEnd } from './lane-cursor.js';
import type { Link, LinkCursor } from './link.js';
import type { Slab } from './ports.js';
import { laneCount, laneOf, type SourceRecord } from './record.js';
import type { SenderState, StalledState } from './states.js';
import type { CheckAsker } from './target-check.js';

const RECORDS_PER_LANE = 500;
const BYTES_PER_LANE = 1_048_576;
const STALL_RETRY_MS = 30_000;
const SOURCE_RETRY_MS = 1_000;
/** A slab that could not be held is not read again faster than this. */
const REREAD_MS = 250;

/** Why all lanes stand still. */
interface Stall {
  readonly state: StalledState;
  readonly status: number | undefined;
  dueMs: number;
  /** It is due, and lanes try again: the target is checked before any of them sends. */
  isRetried: boolean;
}

export class Cursor implements LaneCursor, LinkCursor, ActingCursor, CheckAsker {
  readonly hasRecords = false;
  lanes: Lane[] = [];
  /** When a check could first have been made. */
  readonly startedMs: number;
  lastSuccessMs: number | undefined;
  private phase: 'idle' | 'reading' | 'sending' | 'writing' | 'gone' = 'idle';
  private slab: Slab | undefined;
  private ending: SlabEnd | undefined;
  private isDetached = false;
  private isWriteOwed = false;
  private stalled: Stall | undefined;
  private notBeforeMs = 0;
  private readonly voice: CursorVoice;

  constructor(
    readonly name: string,
    readonly link: Link,
    readonly partition: number,
    public offset: number,
    readonly hub: Hub,
  ) {
    this.startedMs = hub.nowMs;
    this.voice = new CursorVoice(hub, link, partition);
    link.cursors.add(this);
  }

  run(): void {
    this.hub.touch(this);
    if (this.phase === 'idle') this.idle();
    else if (this.phase === 'reading') this.checkBeside();
    else if (this.isWriteOwed) this.write();
  }

  get isGone(): boolean {
    return this.phase === 'gone';
  }

  /** The worst of what stands in its way. */
  get state(): SenderState {
    // Lanes send whatever a check that errs says.
    const isIdle = this.phase === 'idle' || this.phase === 'reading';
    return stateOfCursor(this.link, this.lanes, this.stalled?.state, isIdle);
  }

  tell(): void {
    if (this.phase !== 'gone') this.voice.tell(this.state, this.stalled?.status);
  }

  // What happens to it.

  took(slab: Slab): void {
    if (this.phase !== 'reading') return;
    this.hub.agenda.delete(this);
    this.phase = 'idle';
    if (this.isDetached) return this.gone();
    this.slab = slab;
    this.ending = undefined;
    this.distribute(slab.records);
    this.phase = 'sending';
    for (const lane of this.lanes) this.hub.run(lane);
  }

  readFailed(): void {
    if (this.phase !== 'reading') return;
    this.phase = 'idle';
    if (this.isDetached) return this.gone();
    this.sleepUntil(this.hub.nowMs + SOURCE_RETRY_MS);
  }

  written(): void {
    if (this.phase !== 'writing' || this.slab === undefined) return;
    const { lost, nextOffset } = this.slab;
    if (lost !== undefined) {
      this.link.counters.fanoutChildDroppedMessages += lost.to - lost.from + 1;
      this.voice.lost(lost);
    }
    this.offset = nextOffset;
    this.slab = undefined;
    this.voice.advanced();
    if (this.isDetached) return this.gone();
    this.phase = 'idle';
    this.hub.run(this);
  }

  writeFailed(): void {
    if (this.phase !== 'writing') return;
    if (this.isDetached) return this.gone();
    this.isWriteOwed = true;
    this.hub.agenda.set(this, this.hub.nowMs + SOURCE_RETRY_MS);
  }

  detach(): void {
    this.isDetached = true;
    if (this.phase === 'idle') this.gone();
    else if (this.phase === 'sending') this.end({ type: 'detached' });
  }

  cancel(): void {
    this.detach();
  }

  changed(): void {
    const { nowMs } = this.hub;
    this.notBeforeMs = 0;
    if (this.stalled !== undefined) this.stalled.dueMs = nowMs;
    for (const lane of this.lanes) {
      lane.hurry(nowMs);
      if (this.phase === 'sending') this.hub.run(lane);
    }
    this.hub.run(this);
  }

  checked(): void {
    this.hub.run(this);
  }

  // Without records.

  private idle(): void {
    const { link, hub } = this;
    const { check, remote } = link;
    if (link.record.paused || remote.lookup.state !== 'ready') return;
    if (hub.nowMs < this.notBeforeMs) return hub.agenda.set(this, this.notBeforeMs);
    this.checkBeside();
    if (check.stop !== undefined) {
      // The check that is due is made once the gate lets it through.
      if (hub.nowMs >= check.dueMs) remote.gate.wait(this, 'idle');
      return;
    }
    if (remote.gate.isOpen || remote.gate.isDue(hub.nowMs)) return this.read();
    remote.gate.wait(this, 'idle');
  }

  /** Checks the target when that is due, if the gate lets it through at once. */
  private checkBeside(): void {
    const { link, hub } = this;
    const { check, remote } = link;
    if (link.record.paused || remote.lookup.state !== 'ready') return;
    const { dueMs } = check;
    if (hub.nowMs < dueMs) {
      if (Number.isFinite(dueMs)) hub.agenda.set(this, dueMs);
      return;
    }
    if (remote.gate.ask(this, hub.nowMs) !== undefined && check.passes(this)) remote.gate.handBack(this);
  }

  private read(): void {
    const lanes = laneCount(this.link.record.lanes);
    if (lanes !== this.lanes.length) this.lanes = Array.from({ length: lanes }, () => new Lane(this));
    this.phase = 'reading';
    const limits = { maxRecords: lanes * RECORDS_PER_LANE, maxBytes: lanes * BYTES_PER_LANE };
    this.hub.emit({ type: 'read', cursor: this.name, offset: this.offset, limits });
  }

  private sleepUntil(atMs: number): void {
    this.notBeforeMs = atMs;
    this.hub.agenda.set(this, atMs);
  }

  // With records.

  private distribute(records: readonly SourceRecord[]): void {
    const { lanes } = this;
    const shares: SourceRecord[][] = lanes.map(() => []);
    for (const record of records) {
      const index = laneOf(record, lanes.length);
      if (record.offset > (lanes[index]?.mark ?? -1)) shares[index]?.push(record);
    }
    lanes.forEach((lane, index) => {
      lane.load(shares[index] ?? []);
    });
  }

  get isEnding(): boolean {
    return this.ending !== undefined;
  }

  end(reason: SlabEnd): void {
    if (this.ending !== undefined) return;
    this.ending = reason;
    if (reason.type === 'heldFull') {
      this.link.counters.fanoutRemoteRereadsTotal++;
      this.voice.heldFull(this.lanes.reduce((sum, lane) => sum + lane.unsent, 0));
    }
    for (const lane of this.lanes) this.hub.run(lane);
  }

  rested(): void {
    if (this.phase !== 'sending' || !this.lanes.every((lane) => lane.isAtRest)) return;
    if (this.lanes.every((lane) => lane.isDone)) return this.finish();
    if (this.ending !== undefined) this.breakOff(this.ending);
  }

  /** All of the slab is at the target. */
  private finish(): void {
    this.ending = undefined;
    if (this.slab?.nextOffset !== this.offset) {
      this.phase = 'writing';
      return this.write();
    }
    this.slab = undefined;
    if (this.isDetached) return this.gone();
    this.phase = 'idle';
    this.hub.run(this);
  }

  private write(): void {
    this.isWriteOwed = false;
    if (this.slab !== undefined) this.hub.emit({ type: 'write', cursor: this.name, offset: this.slab.nextOffset });
  }

  /** The slab is read again from where the cursor stands; the lanes remember what the target has of it. */
  private breakOff(ending: SlabEnd): void {
    for (const lane of this.lanes) lane.unload();
    this.slab = undefined;
    if (this.isDetached) return this.gone();
    this.phase = 'idle';
    this.ending = undefined;
    if (ending.type === 'heldFull') this.sleepUntil(ending.untilMs ?? this.hub.nowMs + REREAD_MS);
    else this.hub.run(this);
  }

  private gone(): void {
    this.phase = 'gone';
    const { gate } = this.link.remote;
    gate.leave(this);
    gate.handBack(this);
    this.link.check.leave(this);
    this.link.cursors.delete(this);
    this.hub.agenda.delete(this);
    this.hub.emit({ type: 'detached', cursor: this.name });
  }

  // What lanes ask.

  holdsProbe(): boolean {
    return this.lanes.some((lane) => this.link.remote.gate.isProber(lane));
  }

  skips(offset: number): boolean {
    return this.link.isSkipped(this.partition, offset);
  }

  skipped(offset: number): void {
    this.link.counters.fanoutRemoteSkippedRecordsTotal++;
    this.voice.skipped(offset);
  }

  get stallUntilMs(): number {
    return this.stalled?.dueMs ?? 0;
  }

  retriesStall(): void {
    if (this.stalled === undefined || this.stalled.isRetried) return;
    this.stalled.isRetried = true;
    this.link.check.force();
  }

  answered(lane: Lane, chunk: ChunkOutcome, isCurrent: boolean): void {
    act(lane, this, chunk, isCurrent);
  }

  // What answers do.

  accepted(): void {
    this.lastSuccessMs = this.hub.nowMs;
    this.link.lastSuccessMs = this.hub.nowMs;
    this.clearStall();
  }

  clearStall(): void {
    if (this.stalled === undefined) return;
    this.stalled = undefined;
    for (const lane of this.lanes) this.hub.run(lane);
  }

  stall(state: StalledState, status: number | undefined): void {
    this.stalled = { state, status, dueMs: this.hub.nowMs + STALL_RETRY_MS, isRetried: false };
  }

  blockedAt(offset: number, state: StalledState): void {
    this.voice.blocked(offset, state);
  }

  takesFewerMessages(): void {
    this.voice.fewerMessages();
  }
}
