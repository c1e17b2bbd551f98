/**
 * One lane of a cursor: it sends its records of a slab in order, one request at a time. `run` is its loop: everything
 * that must be so before a request goes out is asked for in order, and what says no runs the lane again once it may say
 * yes. What stands in the way of more than a moment makes the lane hold its records in memory of its own.
 */
import { produceRequest } from './answers.js';
import type { Capabilities } from './capabilities.js';
import { ByteCap, type Chunk, compressIfWorthwhile, cutChunk } from './chunk.js';
import { type SendItem, sendItem } from './encode.js';
import type { GatePass } from './gate.js';
import type { LaneCursor } from './lane-cursor.js';
import { type Plan, without } from './plan.js';
import type { HttpOutcome } from './ports.js';
import { recordBytes, type SourceRecord } from './record.js';
import type { SlotTaker } from './slots.js';
import type { SenderState, StalledState } from './states.js';
import { type CheckAsker, STOP_RETRY_MS } from './target-check.js';

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 2_000;

/** A record that the target refuses, and at which the lane stands. */
export interface Blocked {
  readonly offset: number;
  readonly state: StalledState;
  retryAtMs: number;
}

export class Lane implements SlotTaker, CheckAsker {
  readonly hasRecords = true;
  readonly cap = new ByteCap();
  hasSlot = false;
  /** Why it does not move, besides what blocks it. */
  state: SenderState | undefined;
  blocked: Blocked | undefined;
  plan: Plan = [];
  /** The highest offset that the target has, or that was skipped: a slab that is read again goes on behind it. */
  mark: number | undefined;
  /** An answer is out on which this lane goes on. */
  isBusy = false;
  /** It has nothing to do with the present slab any more. */
  isAtRest = true;
  private items: SendItem[] = [];
  private head = 0;
  private notBeforeMs = 0;
  private backoffMs = 0;
  private pass: GatePass | undefined;
  /** The check has let it through, for one request. */
  private isChecked = false;
  private heldBytes: number | undefined;
  private waitsForSlotSinceMs: number | undefined;

  constructor(readonly cursor: LaneCursor) {}

  /** The records of a slab that are not at the target yet. What was found out about the first of them before still holds. */
  load(records: readonly SourceRecord[]): void {
    const front = this.items[this.head];
    this.items = records.map(sendItem);
    this.head = 0;
    this.isAtRest = false;
    const [first] = this.items;
    if (first !== undefined && first.record.offset === front?.record.offset) first.asBase64 = front.asBase64;
    else {
      this.plan = [];
      this.blocked = undefined;
    }
  }

  get isDone(): boolean {
    return this.head >= this.items.length;
  }

  get unsent(): number {
    return this.items.length - this.head;
  }

  get front(): SendItem | undefined {
    return this.items[this.head];
  }

  /** Somebody may have acted: what stands still tries again. */
  hurry(nowMs: number): void {
    if (this.blocked !== undefined) this.blocked.retryAtMs = nowMs;
  }

  run(): void {
    if (this.isBusy || this.isAtRest) return;
    this.cursor.hub.touch(this.cursor);
    if (this.isDone || this.cursor.isEnding) return this.rest();
    const mayGo = this.mayTry() && this.passesGate() && this.passesCheck() && this.takesSlot();
    if (mayGo) this.sendWithin();
  }

  checked(): void {
    this.isBusy = false;
    this.isChecked = true;
    this.cursor.hub.run(this);
  }

  /** The first records are done with: at the target, or skipped. */
  advance(count: number): void {
    this.mark = this.items[this.head + count - 1]?.record.offset;
    this.head += count;
    this.plan = without(this.plan, count);
    this.blocked = undefined;
    this.state = undefined;
  }

  /** The front record goes alone next. */
  isolateFront(): void {
    this.plan = [1, ...without(this.plan, 1)];
  }

  /** A lone failure: sleeps between nothing and a ceiling that doubles. */
  backOff(): void {
    const { hub } = this.cursor;
    this.backoffMs = Math.min(MAX_BACKOFF_MS, Math.max(FIRST_BACKOFF_MS, this.backoffMs * 2));
    this.notBeforeMs = hub.nowMs + this.backoffMs * (1 - hub.random.next());
  }

  resetBackoff(): void {
    this.backoffMs = 0;
    this.notBeforeMs = 0;
  }

  private get remote() {
    return this.cursor.link.remote;
  }

  /** What concerns the link, the cursor and the lane itself. */
  private mayTry(): boolean {
    const { cursor, remote } = this;
    const { nowMs } = cursor.hub;
    if (cursor.link.record.paused) {
      cursor.end({ type: 'paused' });
      return false;
    }
    while (this.blocked !== undefined && cursor.skips(this.blocked.offset)) this.skip(this.blocked.offset);
    if (this.isDone) {
      this.rest();
      return false;
    }
    if (remote.lookup.state !== 'ready') return this.holdUntil(nowMs + STOP_RETRY_MS);
    const untilMs = Math.max(
      this.notBeforeMs,
      this.blocked?.retryAtMs ?? 0,
      cursor.stallUntilMs,
      cursor.link.check.stop?.dueMs ?? 0,
    );
    return untilMs <= nowMs || this.holdUntil(untilMs);
  }

  private skip(offset: number): void {
    this.advance(1);
    this.cursor.skipped(offset);
  }

  private passesGate(): boolean {
    const { gate } = this.remote;
    if (gate.isGood(this.pass, this)) return true;
    // What a check said before the gate closed, or opened again, says nothing now.
    this.isChecked = false;
    this.pass = gate.ask(this, this.cursor.hub.nowMs);
    if (this.pass !== undefined) return true;
    this.remote.slots.leave(this);
    // A lane of the same slab is finding out: the answer is near.
    if (gate.isOpen || this.cursor.holdsProbe() || this.hold(undefined)) gate.wait(this, 'withRecords');
    return false;
  }

  private passesCheck(): boolean {
    const { check } = this.cursor.link;
    this.cursor.retriesStall();
    if (this.isChecked || check.passes(this)) return true;
    this.remote.slots.leave(this);
    // Its probe is out with the check.
    this.isBusy = this.pass?.isProbe === true;
    return false;
  }

  private takesSlot(): boolean {
    const { nowMs } = this.cursor.hub;
    this.waitsForSlotSinceMs ??= nowMs;
    return this.remote.slots.take(this);
  }

  /** What is to be known of the target is found out with the slot in hand. */
  private sendWithin(): void {
    const { cursor, remote } = this;
    // A probe of a closed gate asks for nothing more: a dead remote is not to be asked twice.
    if (!remote.gate.isOpen) return this.send(remote.capabilities.current);
    this.isBusy = true;
    const capabilities = remote.takes(cursor.link.record.topic, () => {
      this.isBusy = false;
      cursor.hub.run(this);
    });
    if (capabilities !== undefined) this.send(capabilities);
  }

  private send({ maxMessages, zstd }: Capabilities): void {
    const { cursor, remote } = this;
    this.isBusy = true;
    const most = Math.min(maxMessages, this.plan[0] ?? maxMessages);
    const candidates = this.items.slice(this.head, this.head + most);
    const chunk = cutChunk(candidates, { maxMessages: most, maxBytes: this.cap.bytes });
    const isZstd = zstd && remote.limits.compression === 'zstd';
    const compressed = isZstd ? compressIfWorthwhile(chunk.body, cursor.hub.compress) : undefined;
    const body = compressed ?? chunk.body;
    remote.counters.remoteWireBytesTotal += body.length;
    remote.counters.remoteBodyBytesTotal += chunk.body.length;
    const encoding = compressed === undefined ? undefined : 'zstd';
    const request = produceRequest(cursor.link.record.topic, body, 'chunk', encoding);
    const { nowMs } = cursor.hub;
    const waitedMs = nowMs - (this.waitsForSlotSinceMs ?? nowMs);
    this.waitsForSlotSinceMs = undefined;
    const answered = (outcome: HttpOutcome, isCurrent: boolean) => this.answered(chunk, encoding, outcome, isCurrent);
    remote.request(request, answered, { waitedMs });
  }

  private answered(chunk: Chunk, encoding: 'zstd' | undefined, outcome: HttpOutcome, isCurrent: boolean): void {
    this.isBusy = false;
    this.isChecked = false;
    this.remote.slots.leave(this);
    const { count } = chunk;
    this.cursor.answered(this, { outcome, count, compressed: encoding !== undefined }, isCurrent);
    this.cursor.hub.run(this);
  }

  /** Hands back what it has of the remote, and sleeps with its records held. Always false, for the loop. */
  private holdUntil(atMs: number): boolean {
    this.leaveRemote();
    if (this.hold(atMs)) this.cursor.hub.agenda.set(this, atMs);
    return false;
  }

  /** Copies the unsent records off the source, once a slab; without room in the budget the slab is read again later. */
  private hold(untilMs: number | undefined): boolean {
    if (this.heldBytes !== undefined) return true;
    const { cursor } = this;
    const unsent = this.items.slice(this.head);
    const bytes = unsent.reduce((sum, { record }) => sum + recordBytes(record), 0);
    if (!cursor.hub.held.take(bytes)) {
      cursor.end({ type: 'heldFull', untilMs });
      return false;
    }
    this.heldBytes = bytes;
    this.items = unsent.map((item) => ({ ...item, record: copied(item.record) }));
    this.head = 0;
    return true;
  }

  private leaveRemote(): void {
    const { remote } = this;
    remote.gate.handBack(this);
    this.pass = undefined;
    this.isChecked = false;
    remote.gate.leave(this);
    remote.slots.leave(this);
    this.cursor.link.check.leave(this);
    this.waitsForSlotSinceMs = undefined;
  }

  /** Done with this slab, or the slab ends: takes up nothing any more but the name of its first record. */
  private rest(): void {
    const { hub } = this.cursor;
    this.leaveRemote();
    hub.agenda.delete(this);
    this.isAtRest = true;
    if (this.heldBytes !== undefined) hub.held.give(this.heldBytes);
    this.heldBytes = undefined;
    this.cursor.rested();
  }

  /** Lets go of the records of a slab that ended, all but the first. */
  unload(): void {
    this.items = this.items.slice(this.head, this.head + 1);
    this.head = 0;
  }
}

function copied(record: SourceRecord): SourceRecord {
  return { ...record, key: new Uint8Array(record.key), payload: new Uint8Array(record.payload) };
}
