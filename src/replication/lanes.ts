/**
 * The lanes of one source segment: which are open, which may not be opened yet (R12), and what follows when one fails,
 * is sealed, or has to begin anew.
 */
import { comparePositions } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import { isLegacy, type Segment } from '../layout/index.js';
import type { RemoteSupport, RemoteTopicLayout, SendResult } from '../ports/index.js';
import type { SourceSegment } from '../rebatch/index.js';
import { overlaps } from '../ring/index.js';
import type { HoldReason } from './counters.js';
import type { LaneSend, MutableSend } from './entry-record.js';
import { FAILURES, type Failure } from './failures.js';
import { completeCopies, type Found } from './found.js';
import { Lane } from './lane.js';
import type { LaneStop, Recovery, SegmentEffect, SegmentEvent } from './segment-events.js';
import type { StopReason } from './stop-reasons.js';

/** What lanes need of the machine they belong to. */
export interface LaneHost {
  readonly source: SourceSegment;
  readonly supports: RemoteSupport;
  readonly found: Found;
  readonly nowMs: number;
  /** New sends may go. */
  readonly maySend: boolean;
  emit(effect: SegmentEffect): void;
  /** When an attempt that failed so often is made again. */
  retryAt(failures: number): number;
  /** A send is stored: now, or before. */
  stored(send: LaneSend, how: 'stored' | 'duplicate'): void;
  /** A send is not on its way any more, and what it carried is to be planned anew. */
  replan(send: LaneSend): void;
  /** A send is refused for good: its entry is held. */
  holdSend(send: LaneSend, reason: HoldReason, message: string): void;
  stop(reason: StopReason, message: string): void;
  /** The last position of the settled prefix. */
  readonly settled: SourcePosition | undefined;
  /** Writes the cursor soon: a checkpoint is to be durable, or the store is to tell whether a later session owns the segment. */
  writeCursor(): void;
  /** What a segment that is sealed behind this send may hand on (R6). */
  completeTo(segmentId: number, position: SourcePosition): SourcePosition | null | undefined;
  /** A sealed segment takes nothing more, and what it has is known. */
  closed(segmentId: number): void;
}

export class Lanes {
  private readonly lanes = new Map<number, Lane>();
  private readonly byId = new Map<number, Lane>();
  /** Sealed segments that are known to hold nothing unknown. */
  private readonly recovered = new Set<number>();
  /** Sealed segments that are being asked, and when those that failed are asked again. */
  private readonly recovering = new Map<number, { failures: number; retryAtMs: number | undefined; reason: string }>();
  private layout: RemoteTopicLayout | undefined;
  private nextLaneId = 1;
  /** Where sealed segments end that may still hold copies of what is not settled, and up to where that may be (R15). */
  private readonly ends = new Map<number, { end: SourcePosition; until: SourcePosition | undefined }>();
  /** A lane or a question may wait for its time. */
  private mayHaveTimers = false;

  constructor(
    private readonly host: LaneHost,
    private readonly checkpoints: Map<number, SourcePosition>,
  ) {}

  /** All lanes, in the order in which they were made. */
  all(): IterableIterator<Lane> {
    return this.lanes.values();
  }

  get isIdle(): boolean {
    for (const lane of this.lanes.values()) if (!lane.isIdle) return false;
    return true;
  }

  get inFlight(): number {
    let sum = 0;
    for (const lane of this.lanes.values()) sum += lane.inFlight.size;
    return sum;
  }

  setLayout(layout: RemoteTopicLayout): void {
    this.layout = layout;
    for (const lane of [...this.lanes.values()]) {
      if (!this.isActive(lane.segmentId)) this.close(lane);
    }
  }

  /** The open lane of an active segment; undefined while it may not be used, and then what has to be done about that is done. */
  ready(segment: Segment): Lane | undefined {
    const lane = this.lane(segment);
    if (lane.state === 'gated' && this.isGateOpen(segment)) this.open(lane);
    return lane.wasOpen && lane.state !== 'closing' && lane.state !== 'recovering' ? lane : undefined;
  }

  /** Why a lane is not ready, for operators. */
  reason(segment: Segment): string {
    const lane = this.lanes.get(segment.segmentId);
    if (lane === undefined) return 'not opened yet';
    if (lane.failure !== undefined) return `${lane.state}: ${lane.failure}`;
    if (lane.state !== 'gated') return lane.state;
    for (const [id, { reason }] of this.recovering) return `waits for what sealed segment ${id} has: ${reason}`;
    return 'waits for the sends to the sealed segments before it';
  }

  enqueue(lane: Lane, send: LaneSend): void {
    lane.enqueue(send);
    this.pump(lane);
  }

  pumpAll(): void {
    for (const lane of this.lanes.values()) this.pump(lane);
  }

  opened(event: Extract<SegmentEvent, { type: 'opened' }>): void {
    const lane = this.byId.get(event.laneId);
    if (lane?.state !== 'opening') return;
    const { watermark, copies = [], end, lastPosition } = event;
    lane.failure = undefined;
    lane.doubt = false;
    if (watermark !== undefined) this.addWatermark(lane.segmentId, watermark);
    if (this.host.supports.dedup === 'window') {
      this.began(lane);
      return;
    }
    // What waits in the lane may be among the copies: it is planned again without them.
    for (const send of lane.takeAll()) this.host.replan(send);
    this.host.found.addCopies(copies, lane.segmentId);
    lane.openedWith(copies, end, lastPosition);
    // Where its own copies lie behind the cursor there is nothing to name yet: a restart reads from the start again.
    if (this.checkpoints.has(lane.segmentId) || lane.checkpoint === undefined) {
      this.began(lane);
      return;
    }
    lane.state = 'naming';
    this.host.writeCursor();
  }

  /** The checkpoints of lanes up to here are durable. */
  named(segmentIds: Iterable<number>): void {
    for (const segmentId of segmentIds) {
      const lane = this.lanes.get(segmentId);
      if (lane?.checkpoint !== undefined) this.checkpoints.set(segmentId, lane.checkpoint);
      if (lane?.state === 'naming') this.began(lane);
    }
  }

  private began(lane: Lane): void {
    lane.state = 'open';
    lane.wasOpen = true;
    this.pump(lane);
  }

  openFailed(laneId: number, failure: Failure | LaneStop): void {
    const lane = this.byId.get(laneId);
    if (lane?.state !== 'opening') return;
    this.byId.delete(laneId);
    if (isStop(failure)) this.stopFor(failure);
    else this.fail(lane, failure);
  }

  private stopFor({ type, reason }: LaneStop): void {
    this.host.stop(type === 'superseded' ? 'fenced' : type, reason);
  }

  result(laneId: number, result: SendResult): void {
    const lane = this.byId.get(laneId);
    if (lane === undefined) return;
    if (lane.ignored > 0) {
      lane.ignored--;
      this.pump(lane);
      return;
    }
    const send = lane.inFlight.shift();
    if (send === undefined) return;
    this.take(lane, send, result);
    if (lane.state === 'closing') this.finishClosing(lane);
    else this.pump(lane);
  }

  private take(lane: Lane, send: LaneSend, result: SendResult): void {
    switch (result.type) {
      case 'stored':
        if (result.at !== undefined && this.host.supports.dedup === 'readBack') {
          lane.storedAt(send.record.position, result.at);
        }
        lane.failures = 0;
        lane.stored(send);
        return this.host.stored(send, 'stored');
      case 'duplicate':
        lane.failures = 0;
        lane.stored(send);
        return this.host.stored(send, 'duplicate');
      case 'partial':
        return this.takePartial(lane, send, result.partial);
      case 'gap':
        // Its predecessor is not there: from the first unsettled send on, all go again (R12b).
        lane.ignored += lane.inFlight.size;
        this.putBack(lane, send);
        return lane.rewind('rewind');
      default:
        return this.takeFailure(lane, send, result);
    }
  }

  /** An earlier, finer attempt stored the lower hashes (R11): the rest is planned anew, and what was behind it. */
  private takePartial(lane: Lane, send: LaneSend, partial: number): void {
    const { record, rectangle } = send;
    record.done ??= [];
    // Of a whole entry all messages belong to this segment, keyed or not.
    const share = rectangle ?? { range: lane.range, buckets: { start: 0, end: partial }, unkeyed: true };
    record.done.push({ ...share, buckets: { start: share.buckets.start, end: partial } });
    this.host.replan(send);
    this.beginAnew(lane);
  }

  private takeFailure(lane: Lane, send: LaneSend, failure: Failure): void {
    const { doubt, answer } = FAILURES[failure.type];
    lane.doubt ||= doubt || this.host.supports.dedup === 'readBack';
    if (answer === 'hold') {
      const { type, reason } = failure as Extract<Failure, { type: 'rejected' | 'tooLarge' }>;
      this.host.holdSend(send, type, reason);
      return this.beginAnew(lane);
    }
    this.putBack(lane, send);
    this.fail(lane, failure);
  }

  /** A send refused for good, or cut: what was sent behind it is taken back, and nobody has it for a previous (R12b). */
  private beginAnew(lane: Lane): void {
    lane.ignored += lane.inFlight.size;
    for (const send of lane.takeAll()) this.host.replan(send);
    // Without a window something behind it may have been stored: that has to be read back.
    if (this.host.supports.dedup === 'readBack' && lane.state !== 'closing') this.reopen(lane, this.host.nowMs);
  }

  private putBack(lane: Lane, send: LaneSend): void {
    const behind = lane.inFlight.takeAll();
    lane.inFlight.push(send);
    for (const other of behind) lane.inFlight.push(other);
  }

  private fail(lane: Lane, failure: Failure): void {
    const { answer } = FAILURES[failure.type];
    lane.failure = `${failure.type}: ${failure.reason}`;
    if (answer === 'replan') return this.close(lane);
    // What an operator has to mend is looked at again, but not often.
    const retryAtMs = this.host.retryAt(answer === 'stop' ? Number.POSITIVE_INFINITY : lane.failures++);
    if (lane.state === 'closing') {
      // Whatever is in flight is in doubt now; the segment's end will tell.
      lane.doubt = true;
      return;
    }
    if (answer === 'stop') this.host.stop(failure.type as StopReason, failure.reason);
    // Who was replaced and has nothing to write would else poll for ever, and hold the names that the other polls for.
    if (failure.type === 'fenced') this.host.writeCursor();
    this.reopen(lane, retryAtMs);
  }

  /** Gives up the present producer; a new one is asked for at this time. */
  private reopen(lane: Lane, atMs: number): void {
    this.drop(lane);
    lane.rewind('ambiguous');
    lane.state = 'failed';
    lane.retryAtMs = atMs;
    this.mayHaveTimers = true;
  }

  private drop(lane: Lane): void {
    if (this.byId.delete(lane.laneId)) this.host.emit({ type: 'close', laneId: lane.laneId });
    lane.ignored = 0;
  }

  private open(lane: Lane): void {
    lane.state = 'opening';
    lane.retryAtMs = undefined;
    lane.laneId = this.nextLaneId++;
    this.byId.set(lane.laneId, lane);
    const checkpoint = lane.checkpoint;
    this.host.emit({ type: 'open', laneId: lane.laneId, segmentId: lane.segmentId, checkpoint });
  }

  private pump(lane: Lane): void {
    if (lane.state !== 'open' || !this.host.maySend) return;
    const { failStop } = this.host.supports;
    while (lane.queue.size > 0 && (failStop || (lane.inFlight.size === 0 && lane.ignored === 0))) {
      const send = lane.queue.shift() as LaneSend;
      this.name(lane, send.send);
      lane.inFlight.push(send);
      lane.previous = send.send.position;
      this.host.emit({ type: 'send', laneId: lane.laneId, send: send.send });
    }
  }

  /** A send names what is true when it goes: a message that was given up while it waited holds nothing back (R6, R12b). */
  private name({ segmentId, previous }: Lane, send: MutableSend): void {
    send.previous = previous;
    const completeTo = this.host.completeTo(segmentId, send.position);
    if (completeTo !== undefined) send.completeTo = completeTo;
    else if (send.completeTo !== undefined) delete send.completeTo;
  }

  /** Its segment is sealed, by the layout or by an explicit answer. */
  private close(lane: Lane): void {
    if (lane.state === 'recovering') return;
    if (lane.state !== 'closing') {
      const wasOpen = lane.state === 'open';
      // A producer that is not open gives no answers: what was in flight lies in the queue, in doubt.
      for (const send of lane.queue.takeAll()) this.host.replan(send);
      lane.retryAtMs = undefined;
      lane.state = 'closing';
      if (!wasOpen) this.drop(lane);
    }
    if (lane.failure?.startsWith('sealed')) {
      // Fail-stop: with this one, all behind it have failed.
      for (const send of lane.takeAll()) this.host.replan(send);
      this.drop(lane);
    }
    this.finishClosing(lane);
  }

  private finishClosing(lane: Lane): void {
    const notSent = lane.failure === undefined ? lane.queue.takeAll() : lane.takeAll();
    for (const send of notSent) this.host.replan(send);
    if (lane.inFlight.size > 0 || this.isActive(lane.segmentId)) return;
    this.drop(lane);
    const hadChunks = this.host.found.forgetChunks(lane.segmentId);
    // One that was never open may hold what an earlier process left there; of chunks that were read back the end tells.
    // Where a pin keeps what may have to be read back, the end has to be known, so that the pin can leave.
    const isKnown = lane.wasOpen && !lane.doubt && !hadChunks && this.host.supports.dedup === 'window';
    if (isKnown) return this.forget(lane.segmentId);
    lane.state = 'recovering';
    this.recover(lane.segmentId);
  }

  private forget(segmentId: number): void {
    const checkpoint = this.lanes.get(segmentId)?.checkpoint;
    if (checkpoint !== undefined) this.checkpoints.set(segmentId, checkpoint);
    this.lanes.delete(segmentId);
    this.recovered.add(segmentId);
    this.host.closed(segmentId);
  }

  /** Asks a sealed segment what it has. */
  private recover(segmentId: number): void {
    if (this.recovering.has(segmentId)) return;
    this.recovering.set(segmentId, { failures: 0, retryAtMs: undefined, reason: 'asked' });
    this.askRecovery(segmentId);
  }

  private askRecovery(segmentId: number): void {
    this.host.emit({ type: 'recover', segmentId, checkpoint: this.checkpoints.get(segmentId) });
  }

  recoveredWith(segmentId: number, recovery: Recovery): void {
    const asked = this.recovering.get(segmentId);
    if (asked === undefined) return;
    if (recovery.type === 'failed') {
      asked.reason = recovery.reason;
      asked.retryAtMs = this.host.retryAt(asked.failures++);
      this.mayHaveTimers = true;
      return;
    }
    if (isStop(recovery)) return this.stopFor(recovery);
    this.recovering.delete(segmentId);
    if (recovery.type === 'watermark' && recovery.watermark !== undefined) {
      this.addWatermark(segmentId, recovery.watermark);
    }
    this.forget(segmentId);
    if (recovery.type !== 'copies') return;
    const { copies, end, lastPosition: until } = recovery;
    this.host.found.addCopies(completeCopies(copies), segmentId);
    if (end === undefined) return;
    this.ends.set(segmentId, { end, until });
    this.settledTo(this.host.settled);
  }

  /** Moves the checkpoints behind the copies of what is settled, and out of sealed segments that are not needed any more. */
  settledTo(position: SourcePosition | undefined): void {
    if (position !== undefined) for (const lane of this.lanes.values()) lane.settledTo(position);
    for (const [segmentId, { end, until }] of this.ends) {
      const isSettled = until === undefined || (position !== undefined && comparePositions(position, until) >= 0);
      if (!isSettled) continue;
      this.ends.delete(segmentId);
      this.checkpoints.set(segmentId, end);
      this.host.writeCursor();
    }
  }

  /** Classic segments take keys by their number, not by range, so that a range settles nothing there. */
  private addWatermark(segmentId: number, watermark: SourcePosition): void {
    const segment = this.layout?.segments.get(segmentId);
    if (segment !== undefined && !isLegacy(segment)) this.host.found.addWatermark(segment.range, watermark);
  }

  /**
   * R12: nothing of this machine may still get into a segment that this one descends from, and what an earlier process
   * left in one is known (R13, R15). A segment that is not active and overlaps is one it descends from.
   */
  private isGateOpen(segment: Segment): boolean {
    // A key that does not hash into the source segment may have gone anywhere before it goes here.
    const isAside = !this.touchesSource(segment);
    const isBefore = (other: { readonly range: Segment['range'] }) => isAside || overlaps(other.range, segment.range);
    for (const lane of this.lanes.values()) {
      if (lane.segmentId !== segment.segmentId && !this.isActive(lane.segmentId) && isBefore(lane)) return false;
    }
    let isOpen = true;
    for (const sealed of this.layout?.segments.values() ?? []) {
      if (sealed.state !== 'sealed' || this.recovered.has(sealed.segmentId)) continue;
      if (!isBefore(sealed) || !this.touchesSource(sealed)) continue;
      isOpen = false;
      this.recover(sealed.segmentId);
    }
    return isOpen;
  }

  /** True when entries of the source segment can lie in a remote segment. */
  touchesSource(segment: Segment): boolean {
    const { source } = this.host;
    return source.legacy || isLegacy(segment) || overlaps(segment.range, source.range);
  }

  /** Does what has fallen due; gives the time of what falls due next. */
  due(): number | undefined {
    if (!this.mayHaveTimers) return undefined;
    this.mayHaveTimers = false;
    const { nowMs } = this.host;
    let next: number | undefined;
    const later = (atMs: number) => {
      this.mayHaveTimers = true;
      next = next === undefined ? atMs : Math.min(next, atMs);
    };
    for (const lane of this.lanes.values()) {
      if (lane.state !== 'failed' || lane.retryAtMs === undefined) continue;
      if (!this.host.maySend) {
        this.mayHaveTimers = true;
        continue;
      }
      if (lane.retryAtMs > nowMs) later(lane.retryAtMs);
      else this.open(lane);
    }
    for (const [segmentId, asked] of this.recovering) {
      if (asked.retryAtMs === undefined) continue;
      if (asked.retryAtMs > nowMs) later(asked.retryAtMs);
      else {
        asked.retryAtMs = undefined;
        this.askRecovery(segmentId);
      }
    }
    return next;
  }

  /** Where a segment ends now; true when that moves the checkpoint of an idle lane (R15). */
  endsAt(segmentId: number, at: SourcePosition): boolean {
    const lane = this.lanes.get(segmentId);
    const before = lane?.checkpoint;
    if (lane?.state === 'open') lane.endsAt(at);
    return lane?.checkpoint !== before;
  }

  /** Gives up everything: nothing is sent any more. */
  closeAll(): void {
    for (const lane of this.lanes.values()) this.drop(lane);
    this.lanes.clear();
  }

  /** The checkpoints as they stand, those of sealed segments included, while the remote has them. */
  currentCheckpoints(): Map<number, SourcePosition> {
    const current = new Map(this.checkpoints);
    for (const lane of this.lanes.values())
      if (lane.checkpoint !== undefined) current.set(lane.segmentId, lane.checkpoint);
    const segments = this.layout?.segments;
    if (segments !== undefined) for (const id of [...current.keys()]) if (!segments.has(id)) current.delete(id);
    return current;
  }

  private lane(segment: Segment): Lane {
    const { segmentId, range } = segment;
    let lane = this.lanes.get(segmentId);
    if (lane === undefined) {
      lane = new Lane(segmentId, range, this.checkpoints.get(segmentId));
      this.lanes.set(segmentId, lane);
    }
    return lane;
  }

  private isActive(segmentId: number): boolean {
    const segment = this.layout?.segments.get(segmentId);
    return segment !== undefined && segment.state === 'active';
  }
}

function isStop(answer: { readonly type: string }): answer is LaneStop {
  return answer.type === 'superseded' || answer.type === 'pinLost';
}
