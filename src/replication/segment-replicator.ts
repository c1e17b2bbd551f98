/**
 * The replicator of one source segment towards one remote, as a machine: it is told what happened, and answers with
 * what is to be done. Entries are read in order and planned in order; each plan is a few sends, one for each remote
 * segment and bucket that the entry has messages in; lanes send in ascending position. The cursor passes an entry when
 * all of it is stored, and is written before the source is told. Whatever fails, stops or seals: a plan is taken back
 * and made again, an acknowledgement never.
 *
 * Like the slow-path budget it changes in place, since it handles every entry; it reads nothing but its events.
 */
import type { SegmentEffect, SegmentEvent, SegmentReplicatorStart, SegmentReport } from './segment-events.js';
import { SegmentMachine } from './segment-machine.js';

/** One source segment on its way to one remote. */
export class SegmentReplicator {
  private readonly machine: SegmentMachine;

  constructor(start: SegmentReplicatorStart) {
    this.machine = new SegmentMachine(start);
  }

  /** Takes one event that happened at `nowMs` (milliseconds since the epoch), and says what is to be done. */
  step(event: SegmentEvent, nowMs: number): readonly SegmentEffect[] {
    this.machine.tell(event, nowMs);
    return this.machine.flush();
  }

  /** Takes one event of several; `flush` then says what is to be done about them all. */
  tell(event: SegmentEvent, nowMs: number): void {
    this.machine.tell(event, nowMs);
  }

  /** What is to be done about the events told since it was asked last. */
  flush(): readonly SegmentEffect[] {
    return this.machine.flush();
  }

  /** Where it stands, and the one thing that it waits for. */
  report(): SegmentReport {
    return this.machine.report();
  }

  /** The segment is sealed, and everything in it settled, durably. */
  get isDrained(): boolean {
    return this.machine.isDrained;
  }

  /** Nothing is asked for any more, and nothing heard. */
  get isAtRest(): boolean {
    return this.machine.isAtRest;
  }
}
