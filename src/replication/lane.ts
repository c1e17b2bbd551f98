/**
 * The way from one source segment to one remote segment. Sends go in ascending position, and a failure stops the lane:
 * nothing later goes to that segment before the failed send is settled (R12). What is in flight and what waits form
 * one line; the driver's answers come in the order of the sends.
 */
import { comparePositions, isSameEntry } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import { show } from '../errors.js';
import type { HashRange } from '../ring/index.js';
import type { DuplicateCause } from './counters.js';
import type { LaneSend } from './entry-record.js';
import { Fifo } from './fifo.js';
import type { FoundCopy } from './found.js';
import type { LaneReport } from './segment-events.js';

/**
 * - `gated`: a segment it descends from may still hold, or get, what comes before (R12).
 * - `opening`: the producer is asked for.
 * - `naming`: its checkpoint is being made durable before the first send (R15).
 * - `open`: sends go.
 * - `failed`: waits for the time to open it anew.
 * - `closing`: the segment is sealed; waits for the layout and for what is in flight.
 * - `recovering`: the sealed segment is asked what it has.
 */
export type LaneState = 'gated' | 'opening' | 'naming' | 'open' | 'failed' | 'closing' | 'recovering';

/** A copy of a source entry in the remote segment, as far as it is known where. */
interface KnownCopy {
  readonly position: SourcePosition;
  readonly at: SourcePosition;
  /** It was read back, and may belong to another source segment. */
  isForeign: boolean;
}

export class Lane {
  state: LaneState = 'gated';
  /** Names the present producer; answers of an earlier one are ignored. */
  laneId = 0;
  /** It was open before, so that what is planned meanwhile may wait in it. */
  wasOpen = false;
  inFlight = new Fifo<LaneSend>();
  queue = new Fifo<LaneSend>();
  /** The position sent just before since the lane was opened or rewound (R12b). */
  previous: SourcePosition | undefined;
  /** Answers still to come for sends that were taken back. */
  ignored = 0;
  /** Something was sent of which it is not known whether it is stored. */
  doubt = false;
  /** Failures in a row. */
  failures = 0;
  retryAtMs: number | undefined;
  failure: string | undefined;

  /** The last position that stands in the line or is stored. */
  private highest: SourcePosition | undefined;
  private highestStored: SourcePosition | undefined;
  private copies: KnownCopy[] = [];
  private settledAt: SourcePosition | undefined;
  private lastPosition: SourcePosition | undefined;

  constructor(
    readonly segmentId: number,
    readonly range: HashRange,
    checkpoint: SourcePosition | undefined,
  ) {
    this.settledAt = checkpoint;
  }

  /** Refuses what would overtake: it would be taken for a duplicate, and lost (R12). */
  enqueue(send: LaneSend): void {
    const { position } = send.send;
    if (this.highest !== undefined && comparePositions(position, this.highest) <= 0) {
      throw new Error(`a send at ${show(position)} behind one at ${show(this.highest)} to segment ${this.segmentId}`);
    }
    this.highest = position;
    this.queue.push(send);
  }

  /** This one is stored: what comes back from behind it may come again. */
  stored({ send }: LaneSend): void {
    this.highestStored = send.position;
  }

  get isIdle(): boolean {
    return this.inFlight.size === 0 && this.queue.size === 0;
  }

  /** A place behind the last copy of a settled entry and before the first copy of a later one (R15). */
  get checkpoint(): SourcePosition | undefined {
    return this.settledAt;
  }

  /** What was read back when the lane was opened, and where the segment ended then. */
  openedWith(
    copies: readonly FoundCopy[],
    end: SourcePosition | undefined,
    lastPosition: SourcePosition | undefined,
  ): void {
    this.copies = copies.map(({ position, at }) => ({ position, at, isForeign: true }));
    this.lastPosition = lastPosition;
    if (lastPosition === undefined) this.copies = [];
    this.endsAt(end);
  }

  /** Nothing of this lane lies behind this place, if nothing is in flight. */
  endsAt(end: SourcePosition | undefined): void {
    if (end === undefined || !this.isIdle || this.copies.length > 0) return;
    if (this.settledAt === undefined || comparePositions(end, this.settledAt) > 0) this.settledAt = end;
  }

  storedAt(position: SourcePosition, at: SourcePosition): void {
    this.copies.push({ position, at, isForeign: false });
  }

  /** An entry of this source segment was read: its copies are this lane's own. */
  recognize(position: SourcePosition): void {
    for (const copy of this.copies) if (isSameEntry(copy.position, position)) copy.isForeign = false;
  }

  /** Moves the checkpoint behind the copies of what is settled. */
  settledTo(position: SourcePosition): void {
    const { copies, lastPosition } = this;
    if (copies.length === 0) return;
    if (lastPosition !== undefined && comparePositions(position, lastPosition) >= 0) {
      this.copies = copies.filter(({ isForeign }) => !isForeign);
      this.lastPosition = undefined;
    }
    let passed = 0;
    for (const copy of this.copies) {
      if (copy.isForeign || comparePositions(copy.position, position) > 0) break;
      this.settledAt = copy.at;
      passed++;
    }
    if (passed > 0) this.copies.splice(0, passed);
  }

  /** Puts what is in flight back to the front of the queue: nobody's previous, in the old order. */
  rewind(cause: DuplicateCause): void {
    if (this.inFlight.size > 0) {
      const again = this.inFlight.takeAll();
      for (const { record } of again) record.repeated ??= cause;
      const waiting = this.queue.takeAll();
      for (const send of again) this.queue.push(send);
      for (const send of waiting) this.queue.push(send);
    }
    this.previous = undefined;
  }

  /** Takes all sends out, in order. */
  takeAll(): LaneSend[] {
    this.previous = undefined;
    this.highest = this.highestStored;
    return [...this.inFlight.takeAll(), ...this.queue.takeAll()];
  }

  report(): LaneReport {
    return {
      segmentId: this.segmentId,
      state: this.state,
      inFlight: this.inFlight.size,
      queued: this.queue.size,
      ...(this.failure === undefined ? {} : { failure: this.failure }),
    };
  }
}
