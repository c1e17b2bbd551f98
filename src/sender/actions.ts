/** What a lane does about an answer: one function for each action of the answer table. */
import { type ChunkOutcome, judgeAnswer, type Verdict } from './answer-table.js';
import { childrenListing, listingRequest } from './answers.js';
import { count } from './counters.js';
import { goesRaw } from './encode.js';
import type { GateFailure } from './gate.js';
import type { Lane } from './lane.js';
import { aroundIndex, halves, replan } from './plan.js';
import type { StalledState } from './states.js';

export const BLOCKED_RETRY_MS = 30_000;

/** What the actions ask of the cursor. */
export interface ActingCursor {
  readonly partition: number;
  /** Records were accepted. */
  accepted(): void;
  /** The target answered: what stalled the cursor is over. */
  clearStall(): void;
  stall(state: StalledState, status: number | undefined): void;
  blockedAt(offset: number, state: StalledState): void;
  takesFewerMessages(): void;
}

/** Acts on the outcome of a lane's request; the lane runs again afterwards. */
export function act(lane: Lane, cursor: ActingCursor, chunk: ChunkOutcome, isCurrent: boolean): void {
  if (chunk.outcome.type === 'notSent') return notSent(lane);
  const { nowMs } = lane.cursor.hub;
  new Acting(lane, cursor, judgeAnswer(chunk, nowMs), chunk.count, isCurrent).act();
}

/** Nothing left this node; whatever is in the way now is found by the lane's loop. */
function notSent(lane: Lane): void {
  lane.cursor.link.remote.gate.handBack(lane);
  lane.backOff();
}

class Acting {
  constructor(
    private readonly lane: Lane,
    private readonly cursor: ActingCursor,
    private readonly verdict: Verdict,
    private readonly count: number,
    private readonly isCurrent: boolean,
  ) {}

  act(): void {
    const { verdict } = this;
    if (verdict.action === 'resolveRoute') return this.resolveRoute();
    if (verdict.class !== undefined) count(this.remote.counters.remoteErrorsTotal, verdict.class);
    switch (verdict.action) {
      case 'committed':
        return this.committed();
      case 'retry':
        return this.retry();
      case 'gate':
        return this.closeGate();
      case 'stall':
        return this.stall(verdict.state as StalledState);
      case 'uncompressed':
        return this.sendUncompressed();
      case 'recapacity':
        return this.recapacitate();
      case 'resendPrefix':
        return this.narrow(aroundIndex(this.count, verdict.index));
      case 'bisect':
        return this.narrow(halves(this.count));
      case 'splitTooLarge':
        return this.splitTooLarge();
      case 'blockFront':
        return this.blockFront();
    }
  }

  private get remote() {
    return this.lane.cursor.link.remote;
  }

  private get nowMs(): number {
    return this.lane.cursor.hub.nowMs;
  }

  private committed(): void {
    const { lane } = this;
    this.remote.gate.succeeded(lane);
    lane.cap.accepted();
    lane.resetBackoff();
    lane.advance(this.count);
    this.cursor.accepted();
  }

  private retry(): void {
    const { lane, verdict } = this;
    if (verdict.shrinks) lane.cap.shrink();
    if (verdict.ambiguous) this.remote.counters.remoteResentRecordsTotal += this.count;
    lane.state = verdict.state;
    this.remote.gate.failed(lane, 'unavailable', this.nowMs);
    if (this.remote.gate.isOpen) lane.backOff();
  }

  /** Of a credential that is not the current one any more nothing is learned. */
  private closeGate(): void {
    const { lane, verdict } = this;
    const { gate } = this.remote;
    if (!this.isCurrent) return gate.handBack(lane);
    lane.state = verdict.state;
    gate.failed(lane, verdict.state as GateFailure, this.nowMs, verdict.retryAfterMs);
  }

  private stall(state: StalledState): void {
    // A dial that was refused has not met the target: the lane hands back its probe as it begins to wait.
    if (state !== 'destination_refused') this.remote.gate.succeeded(this.lane);
    this.cursor.stall(state, this.verdict.status);
  }

  /** A target that lists the topic's children is there, and has no such route; otherwise something else answered. */
  private resolveRoute(): void {
    const { lane } = this;
    lane.isBusy = true;
    this.remote.request(listingRequest(lane.cursor.link.record.topic), (outcome) => {
      lane.isBusy = false;
      const isTarget = childrenListing(outcome) !== undefined;
      count(this.remote.counters.remoteErrorsTotal, isTarget ? 'no_batch_produce' : 'edge');
      if (isTarget) this.stall('no_batch_produce');
      else new Acting(lane, this.cursor, { ...this.verdict, state: 'unavailable' }, this.count, this.isCurrent).retry();
      lane.cursor.hub.run(lane);
    });
  }

  /** The same records at once: without capabilities nothing is compressed. */
  private sendUncompressed(): void {
    this.remote.gate.handBack(this.lane);
    this.lane.state = this.verdict.state;
    this.remote.capabilities.forget(this.remote.limits, this.nowMs);
  }

  private recapacitate(): void {
    const { lane } = this;
    const { capabilities, gate, limits } = this.remote;
    const wereAsFew = this.count <= 100;
    capabilities.forget(limits, this.nowMs);
    gate.succeeded(lane);
    this.cursor.takesFewerMessages();
    // No target takes so few; one that says so is not asked as fast as it can answer.
    if (wereAsFew) lane.backOff();
  }

  /** Some record of the request is refused. */
  private narrow(parts: readonly number[]): void {
    const { lane } = this;
    this.targetAnswered();
    if (this.count > 1) lane.plan = replan(lane.plan, this.count, parts);
    else this.refuseOne();
  }

  /** A payload that went raw gets one more chance, as base64. */
  private refuseOne(): void {
    const { lane } = this;
    const front = lane.front;
    if (front === undefined) return;
    if (!goesRaw(front)) return this.block('rejected_record');
    front.asBase64 = true;
    lane.isolateFront();
  }

  private splitTooLarge(): void {
    const { lane, verdict } = this;
    this.targetAnswered();
    if (this.count === 1) this.block('record_too_large');
    else lane.plan = replan(lane.plan, this.count, aroundIndex(this.count, verdict.index));
  }

  /** The topic itself became something that takes no records. */
  private blockFront(): void {
    this.targetAnswered();
    this.block('rejected_record');
    this.lane.cursor.link.check.force();
  }

  private targetAnswered(): void {
    this.remote.gate.succeeded(this.lane);
    this.lane.state = undefined;
    this.cursor.clearStall();
  }

  /** The record goes alone from here on; the plan behind it stays as it is however often it is tried, so no tail of single records grows. */
  private block(state: StalledState): void {
    const { lane } = this;
    const offset = lane.front?.record.offset ?? 0;
    lane.isolateFront();
    lane.blocked = { offset, state, retryAtMs: this.nowMs + BLOCKED_RETRY_MS };
    this.cursor.blockedAt(offset, state);
  }
}
