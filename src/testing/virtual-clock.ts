/**
 * Time that passes only when it is told to. Callbacks run in the order of their times, and those of one time in the
 * order in which they were scheduled, so that the same world always takes the same course.
 */

/** More callbacks at one moment are a circle. */
const MOST_AT_ONCE = 100_000;

interface Scheduled {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export class VirtualClock {
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The next to run is the last. */
  private readonly scheduled: Scheduled[] = [];
  private nextOrder = 0;
  private ran = 0;
  private ranNow = 0;

  constructor(startMs = 1_700_000_000_000) {
    this.nowMs = startMs;
  }

  /** Runs a callback after `delayMs` (whole milliseconds, 0 or more). Returns what takes it back. */
  schedule(delayMs: number, run: () => void): () => void {
    const entry = { atMs: this.nowMs + delayMs, order: this.nextOrder++, run };
    let low = 0;
    let high = this.scheduled.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.scheduled[middle] as Scheduled).atMs > entry.atMs) low = middle + 1;
      else high = middle;
    }
    this.scheduled.splice(low, 0, entry);
    return () => {
      const at = this.scheduled.indexOf(entry);
      if (at >= 0) this.scheduled.splice(at, 1);
    };
  }

  /** How many callbacks have run. */
  get steps(): number {
    return this.ran;
  }

  /** The time of the next callback; undefined when there is none. */
  get nextAtMs(): number | undefined {
    return this.scheduled.at(-1)?.atMs;
  }

  /** Goes on to the next callback and runs it; false when there is none. Throws when callbacks go round in a circle. */
  runNext(): boolean {
    const next = this.scheduled.pop();
    if (next === undefined) return false;
    this.ranNow = next.atMs === this.nowMs ? this.ranNow + 1 : 0;
    if (this.ranNow > MOST_AT_ONCE) throw new Error(`time stands still at ${this.nowMs} ms`);
    this.nowMs = next.atMs;
    this.ran++;
    next.run();
    return true;
  }

  /** Lets time pass, and runs what falls due, what that schedules included. */
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    while ((this.nextAtMs ?? Number.POSITIVE_INFINITY) <= untilMs) this.runNext();
    this.nowMs = untilMs;
  }
}
