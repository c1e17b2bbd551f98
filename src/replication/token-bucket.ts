/**
 * What both limits of replication count with: a token bucket, and the time it lives in. The bucket is never a wall: an
 * amount larger than the whole bucket passes once it is full, and takes it into debt, which is paid back at the rate
 * before anything else passes. So over any window no more is taken than the rate allows, plus the larger of the
 * bucket and the largest single amount.
 */
import { IsthmusError, show } from '../errors.js';

/** A clock that steps back further than this was set back; less is an event that arrives out of order. */
const SET_BACK_MS = 1_000;

/** How much of one resource may be used: `rate` tokens a second, at most `burst` of them saved up. */
export class TokenBucket {
  /** What was taken and is not refilled yet, in thousandths of a token, so that whole rates and times stay exact. */
  private missing = 0;

  /** A full bucket. Times are those of a `SteadyTime`. */
  constructor(
    private rate: number,
    private burst: number,
    private settledAtMs: number,
  ) {}

  /** Refills what has come in since the last call. */
  settle(nowMs: number): void {
    this.missing = Math.max(0, this.missing - this.rate * (nowMs - this.settledAtMs));
    this.settledAtMs = nowMs;
  }

  /** The tokens in the bucket; negative in debt. */
  get level(): number {
    return this.burst - this.missing / 1_000;
  }

  /** How long until it is full, if nothing is taken; not rounded. */
  get fullInMs(): number {
    return this.missing / this.rate;
  }

  /** The level at which an amount may be taken: the amount, or a full bucket where the amount is larger. */
  levelFor(amount: number): number {
    return Math.min(amount, this.burst);
  }

  /** How long until the level is reached, if nothing is taken: 0 when it is, Infinity when the bucket is smaller. */
  reachesInMs(level: number): number {
    if (level > this.burst) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.missing - (this.burst - level) * 1_000) / this.rate;
  }

  /** Takes an amount, whatever the level. */
  take(amount: number): void {
    this.missing += amount * 1_000;
  }

  /** Goes on at another rate and size: a debt stays what it is, and a level that was no debt becomes none. */
  resize(rate: number, burst: number): void {
    const debt = this.missing - this.burst * 1_000;
    this.missing = debt > 0 ? burst * 1_000 + debt : Math.min(this.missing, burst * 1_000);
    this.rate = rate;
    this.burst = burst;
  }
}

/**
 * Turns the times of a clock that jumps into times that never fall, and keeps the one timer of a machine. A time before
 * the latest counts as the latest; when it lies so far back that the clock must have been set, time goes on from there,
 * so that nothing waits for the clock to come by again. A jump forward is time that passed: it fills a bucket, and no
 * more than that.
 */
export class SteadyTime {
  /** The latest time, in milliseconds. */
  nowMs: number;
  /** What is added to the clock's times. */
  private shiftMs = 0;
  /** When the clock says this, the timer that is set goes off. */
  private wakeAtMs: number | undefined;

  constructor(clockMs: number) {
    this.nowMs = requireTime(clockMs);
  }

  /** Goes on to what the clock says. Throws `invalidArgument`, and changes nothing, unless that is a finite number. */
  advance(clockMs: number): number {
    const nowMs = requireTime(clockMs) + this.shiftMs;
    if (this.nowMs - nowMs > SET_BACK_MS) this.shiftMs += this.nowMs - nowMs;
    else if (nowMs > this.nowMs) this.nowMs = nowMs;
    return this.nowMs;
  }

  /** The clock's name for a steady time. */
  toClock(steadyMs: number): number {
    return steadyMs - this.shiftMs;
  }

  /** The clock's time for a timer that is to go off after so long; undefined when it is the one that is set. */
  wakeAfter(waitMs: number): number | undefined {
    // The first whole millisecond that is late enough; adding to the large number first would round the wait.
    const wholeMs = Math.floor(this.nowMs);
    const atMs = this.toClock(wholeMs + Math.max(1, Math.ceil(waitMs + (this.nowMs - wholeMs))));
    if (atMs === this.wakeAtMs) return undefined;
    this.wakeAtMs = atMs;
    return atMs;
  }

  /** The timer has gone off, so none is set. */
  woken(): void {
    this.wakeAtMs = undefined;
  }
}

/** A number of something per second, or a size: finite and at least 1, so that no limit can mean "never". */
export function requireLimit(name: string, value: unknown): number {
  if (Number.isFinite(value) && (value as number) >= 1) return value as number;
  throw refused(name, value, 'a finite number of at least 1');
}

/** A number of things: a safe integer of at least `least`. */
export function requireCount(name: string, value: unknown, least: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least) return value as number;
  throw refused(name, value, `an integer of at least ${least}`);
}

function requireTime(value: unknown): number {
  if (Number.isFinite(value)) return value as number;
  throw refused('nowMs', value, 'a finite number of milliseconds');
}

function refused(name: string, value: unknown, rule: string): IsthmusError {
  // JSON has no name for NaN and the infinities.
  const text = typeof value === 'number' ? String(value) : show(value);
  return new IsthmusError('invalidArgument', `${name} ${text}: it must be ${rule}`);
}
