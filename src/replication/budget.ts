/**
 * The slow-path budget of one process, shared by all its topics (PIP-495, Slow-path backpressure). Re-batching and
 * inspecting are the only work on payloads; each operation needs a slot, since an opened batch lies in memory, and the
 * bytes it opens, from a token bucket. The verbatim path never comes here.
 *
 * Fair: every segment replicator has one key and at most one operation, waiting or holding. Those that wait are served
 * in the order of their asking, and who was served asks again behind all others: a round-robin. Nobody overtakes the
 * first in line, however small its wish, so that a large entry cannot be starved by small ones, nor the other way.
 *
 * A machine like the others, with every input in its arguments and every consequence in the effects it returns, but a
 * mutable one: hundreds of replicators step it, and a copy of its maps at each step would cost more than what it
 * decides. All its steps take constant time; only `report` walks the keys.
 */
import { IsthmusError, show } from '../errors.js';
import { Line } from './line.js';
import { requireCount, requireLimit, SteadyTime, TokenBucket } from './token-bucket.js';

/** What may be changed while running. */
export interface BudgetSettings {
  /** Bytes of opened batches per second, at least 1; default 16 MiB. */
  readonly bytesPerSecond?: number;
  /** The most bytes that can be saved up, at least 1; default one second's worth. A larger entry still passes, by debt. */
  readonly burstBytes?: number;
  /** The most operations at a time, at least 1; default 4. */
  readonly slots?: number;
}

export interface BudgetOptions extends BudgetSettings {
  /** The time over which the utilisation is reported, at least 1; default 60,000. */
  readonly windowMs?: number;
}

export const DEFAULT_BUDGET = Object.freeze({ bytesPerSecond: 16 * 1024 * 1024, slots: 4, windowMs: 60_000 });

/** What the driver is to do. */
export type BudgetEffect =
  /** The operation of this key may begin: it has its slot and its bytes. */
  | { readonly type: 'granted'; readonly key: string }
  /** Call `tick` at this time; replaces the timer that was set. */
  | { readonly type: 'wake'; readonly atMs: number };

/** How long the budget has kept a key waiting, for bytes or for a slot. */
export interface ThrottledTime {
  /** In all, a wait that lasts included. */
  readonly totalMs: number;
  /** Since when it waits now; absent while it does not. */
  readonly sinceMs?: number;
}

export interface BudgetReport {
  readonly bytesPerSecond: number;
  readonly slots: number;
  /** What may be spent now; negative in debt. */
  readonly levelBytes: number;
  /** Operations that hold a slot. */
  readonly holding: number;
  /** Operations that wait. */
  readonly waiting: number;
  /** The time that the two shares below are means of: the configured window, within a sixtieth, or less after a start. */
  readonly windowMs: number;
  /** The share of the byte rate that was used, 0 to 1: a large entry counts over the time in which it is paid back. */
  readonly utilisation: number;
  /** The mean share of the slots that were taken, 0 to 1. */
  readonly slotUtilisation: number;
  /** Every key that ever asked and was not forgotten. */
  readonly throttled: ReadonlyMap<string, ThrottledTime>;
}

/** An operation that waits. */
interface Waiting {
  bytes: number;
  readonly askedAtMs: number;
}

type Resolved = Required<Omit<BudgetSettings, 'burstBytes'>> & Pick<BudgetSettings, 'burstBytes'>;

const NO_EFFECTS: readonly BudgetEffect[] = Object.freeze([]);

/** What an operation on an entry costs: the larger of what is stored and what it says that it unpacks to. */
export function slowPathBytes(storedBytes: number, uncompressedBytes: number | undefined): number {
  return Math.max(storedBytes, uncompressedBytes ?? 0);
}

/**
 * Bytes and slots for the slow path. Every call takes the time, and returns what follows from it; one that throws
 * (`invalidArgument`) changes nothing.
 */
export class SlowPathBudget {
  private settings: Resolved;
  private readonly time: SteadyTime;
  private readonly bucket: TokenBucket;
  private readonly waiting = new Line<Waiting>();
  /** What the operations that hold a slot were charged. */
  private readonly holding = new Map<string, number>();
  /** The finished waits of every key. */
  private readonly waitedMs = new Map<string, number>();
  private readonly refilling: WindowMean;
  private readonly taken: WindowMean;

  /** A budget with a full bucket. Throws `invalidArgument` for a rate, size or number of slots that would allow nothing. */
  constructor(options: BudgetOptions, nowMs: number) {
    const { windowMs = DEFAULT_BUDGET.windowMs, ...settings } = options;
    requireLimit('windowMs', windowMs);
    this.settings = resolve({ ...DEFAULT_BUDGET, ...settings });
    this.time = new SteadyTime(nowMs);
    this.bucket = new TokenBucket(this.settings.bytesPerSecond, burstOf(this.settings), nowMs);
    this.refilling = new WindowMean(windowMs, nowMs);
    this.taken = new WindowMean(windowMs, nowMs);
  }

  /**
   * Asks for a slot and for bytes: see `slowPathBytes`. What the codec limits refuse is to be refused before. Answered
   * by `granted`, at once or later. Refused for a key that waits or holds already.
   */
  acquire(key: string, bytes: number, nowMs: number): readonly BudgetEffect[] {
    requireCount('bytes', bytes, 0);
    if (this.holding.has(key) || this.waiting.get(key) !== undefined) {
      throw new IsthmusError('invalidArgument', `key ${show(key)}: it has an operation already, and may have one`);
    }
    this.waiting.append(key, { bytes, askedAtMs: this.settle(nowMs) });
    if (!this.waitedMs.has(key)) this.waitedMs.set(key, 0);
    return this.serve();
  }

  /**
   * The entry turned out to be larger than was said: charges the rest, as a debt when it holds already. A smaller size
   * changes nothing, nor does a key without an operation.
   */
  correct(key: string, bytes: number, nowMs: number): readonly BudgetEffect[] {
    requireCount('bytes', bytes, 0);
    this.settle(nowMs);
    const waiting = this.waiting.get(key);
    if (waiting !== undefined) waiting.bytes = Math.max(waiting.bytes, bytes);
    const charged = this.holding.get(key);
    if (charged !== undefined && bytes > charged) {
      this.bucket.take(bytes - charged);
      this.holding.set(key, bytes);
    }
    return this.serve();
  }

  /**
   * Ends the operation of a key, whatever became of it: one that holds gives its slot back, while its bytes stay
   * charged; one that waits leaves the line with nothing taken. A key without an operation changes nothing, so this
   * belongs in a `finally`.
   */
  release(key: string, nowMs: number): readonly BudgetEffect[] {
    this.settle(nowMs);
    if (!this.holding.delete(key)) this.leaveLine(key);
    return this.serve();
  }

  /** Ends the operation of a key that will not come again, and drops its figures. */
  forget(key: string, nowMs: number): readonly BudgetEffect[] {
    const effects = this.release(key, nowMs);
    this.waitedMs.delete(key);
    return effects;
  }

  /** The timer that was asked for has gone off; at any other time it does no harm. */
  tick(nowMs: number): readonly BudgetEffect[] {
    this.settle(nowMs);
    this.time.woken();
    return this.serve();
  }

  /**
   * Changes what is named, and keeps the rest. Fewer slots than are held take none away; a debt stays. A burst that was
   * never named stays one second's worth.
   */
  configure(change: BudgetSettings, nowMs: number): readonly BudgetEffect[] {
    const settings = resolve({ ...this.settings, ...change });
    this.settle(nowMs);
    this.settings = settings;
    this.bucket.resize(settings.bytesPerSecond, burstOf(settings));
    return this.serve();
  }

  /** How long a key was kept waiting. */
  throttled(key: string, nowMs: number): ThrottledTime {
    this.settle(nowMs);
    return this.throttledTime(key);
  }

  report(nowMs: number): BudgetReport {
    const steadyMs = this.settle(nowMs);
    const { bytesPerSecond, slots } = this.settings;
    const throttled = new Map<string, ThrottledTime>();
    for (const key of this.waitedMs.keys()) throttled.set(key, this.throttledTime(key));
    return {
      bytesPerSecond,
      slots,
      levelBytes: this.bucket.level,
      holding: this.holding.size,
      waiting: this.waiting.size,
      windowMs: this.refilling.spanMs(steadyMs),
      utilisation: this.refilling.mean(steadyMs),
      slotUtilisation: this.taken.mean(steadyMs),
      throttled,
    };
  }

  private throttledTime(key: string): ThrottledTime {
    const waitedMs = this.waitedMs.get(key) ?? 0;
    const waiting = this.waiting.get(key);
    if (waiting === undefined) return { totalMs: waitedMs };
    const { askedAtMs } = waiting;
    return { totalMs: waitedMs + this.time.nowMs - askedAtMs, sinceMs: this.time.toClock(askedAtMs) };
  }

  /** Lets time pass: figures first, for they need to know how full the bucket was. */
  private settle(clockMs: number): number {
    const sinceMs = this.time.nowMs;
    const nowMs = this.time.advance(clockMs);
    if (nowMs > sinceMs) {
      this.refilling.add(sinceMs, Math.min(nowMs, sinceMs + this.bucket.fullInMs), 1);
      this.taken.add(sinceMs, nowMs, Math.min(1, this.holding.size / this.settings.slots));
      this.bucket.settle(nowMs);
    }
    return nowMs;
  }

  /** Grants in the order of the line as far as it goes, and sees to the timer when bytes are what the first waits for. */
  private serve(): readonly BudgetEffect[] {
    const effects: BudgetEffect[] = [];
    for (let next = this.waiting.first; next !== undefined; next = this.waiting.first) {
      const { key, item } = next;
      if (this.holding.size >= this.settings.slots) break;
      const waitMs = this.bucket.reachesInMs(this.bucket.levelFor(item.bytes));
      if (waitMs > 0) {
        const atMs = this.time.wakeAfter(waitMs);
        if (atMs !== undefined) effects.push({ type: 'wake', atMs });
        break;
      }
      this.leaveLine(key);
      this.holding.set(key, item.bytes);
      this.bucket.take(item.bytes);
      effects.push({ type: 'granted', key });
    }
    return effects.length === 0 ? NO_EFFECTS : effects;
  }

  private leaveLine(key: string): void {
    const waiting = this.waiting.leave(key);
    if (waiting === undefined) return;
    this.waitedMs.set(key, (this.waitedMs.get(key) ?? 0) + this.time.nowMs - waiting.askedAtMs);
  }
}

function resolve({ bytesPerSecond, burstBytes, slots }: Resolved): Resolved {
  return {
    bytesPerSecond: requireLimit('bytesPerSecond', bytesPerSecond),
    slots: requireCount('slots', slots, 1),
    ...(burstBytes === undefined ? {} : { burstBytes: requireLimit('burstBytes', burstBytes) }),
  };
}

function burstOf({ bytesPerSecond, burstBytes = bytesPerSecond }: Resolved): number {
  return burstBytes;
}

const SLICES = 60;

/** The mean of a value over the last time, kept in slices of that time: the oldest falls out as a whole. */
class WindowMean {
  private readonly sliceMs: number;
  private readonly sums = new Float64Array(SLICES);
  /** Which slice of all time each sum belongs to. */
  private readonly slices = new Float64Array(SLICES).fill(Number.NEGATIVE_INFINITY);

  constructor(
    windowMs: number,
    private readonly startedAtMs: number,
  ) {
    this.sliceMs = windowMs / SLICES;
  }

  /** The value was this from one time to another, both no earlier than any before. */
  add(fromMs: number, toMs: number, value: number): void {
    if (value === 0) return;
    const last = this.sliceAt(toMs);
    for (let slice = Math.max(this.sliceAt(fromMs), last - SLICES + 1); slice <= last; slice++) {
      const startMs = this.startedAtMs + slice * this.sliceMs;
      const lengthMs = Math.min(toMs, startMs + this.sliceMs) - Math.max(fromMs, startMs);
      const place = slice % SLICES;
      if (this.slices[place] !== slice) this.sums[place] = 0;
      this.slices[place] = slice;
      this.sums[place] = (this.sums[place] ?? 0) + value * Math.max(0, lengthMs);
    }
  }

  /** How far back the mean reaches. */
  spanMs(nowMs: number): number {
    const oldest = Math.max(0, this.sliceAt(nowMs) - SLICES + 1);
    return nowMs - (this.startedAtMs + oldest * this.sliceMs);
  }

  mean(nowMs: number): number {
    const spanMs = this.spanMs(nowMs);
    if (spanMs <= 0) return 0;
    const oldest = this.sliceAt(nowMs) - SLICES + 1;
    let sum = 0;
    for (let place = 0; place < SLICES; place++) {
      if ((this.slices[place] ?? 0) >= oldest) sum += this.sums[place] ?? 0;
    }
    return Math.min(1, sum / spanMs);
  }

  private sliceAt(timeMs: number): number {
    return Math.floor((timeMs - this.startedAtMs) / this.sliceMs);
  }
}
