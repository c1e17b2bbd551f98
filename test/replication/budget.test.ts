/** The slow-path budget: the words of its design, the reports behind them, and a model that counts every millisecond. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BudgetEffect,
  type BudgetOptions,
  DEFAULT_BUDGET,
  SlowPathBudget,
  slowPathBytes,
} from '../../src/replication/index.js';
import { refusal } from '../support/expect.js';

const MB = 1_000_000;
const KB = 1_000;

/** A budget with its timer, on a clock that starts at 0: whoever is granted is noted, with the time. */
class Bench {
  nowMs = 0;
  readonly budget: SlowPathBudget;
  readonly grants: { readonly key: string; readonly atMs: number }[] = [];
  wakeAtMs: number | undefined;
  /** What happens when a key is granted. */
  onGrant: (key: string) => void = () => {};

  constructor(options: BudgetOptions) {
    this.budget = new SlowPathBudget(options, 0);
  }

  acquire(key: string, bytes: number): void {
    this.take(this.budget.acquire(key, bytes, this.nowMs));
  }

  release(key: string): void {
    this.take(this.budget.release(key, this.nowMs));
  }

  correct(key: string, bytes: number): void {
    this.take(this.budget.correct(key, bytes, this.nowMs));
  }

  configure(change: BudgetOptions): void {
    this.take(this.budget.configure(change, this.nowMs));
  }

  /** Lets the timer go off as often as it falls due. */
  until(untilMs: number): void {
    while (this.wakeAtMs !== undefined && this.wakeAtMs <= untilMs) {
      expect(this.wakeAtMs).toBeGreaterThan(this.nowMs);
      this.nowMs = this.wakeAtMs;
      this.wakeAtMs = undefined;
      this.take(this.budget.tick(this.nowMs));
    }
    this.nowMs = untilMs;
  }

  take(effects: readonly BudgetEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'wake') this.wakeAtMs = effect.atMs;
      else {
        this.grants.push({ key: effect.key, atMs: this.nowMs });
        this.onGrant(effect.key);
      }
    }
  }

  /** Grants as text, `key@ms`. */
  get told(): string[] {
    return this.grants.map(({ key, atMs }) => `${key}@${atMs}`);
  }
}

describe('what a budget may be', () => {
  it.each<[string, BudgetOptions]>([
    ['bytesPerSecond 0', { bytesPerSecond: 0 }],
    ['bytesPerSecond NaN', { bytesPerSecond: Number.NaN }],
    ['bytesPerSecond -1', { bytesPerSecond: -1 }],
    ['bytesPerSecond 0.5', { bytesPerSecond: 0.5 }],
    ['bytesPerSecond Infinity', { bytesPerSecond: Number.POSITIVE_INFINITY }],
    ['bytesPerSecond "1"', { bytesPerSecond: '1' as unknown as number }],
    ['slots 0', { slots: 0 }],
    ['slots 1.5', { slots: 1.5 }],
    ['slots -4', { slots: -4 }],
    ['burstBytes 0', { burstBytes: 0 }],
    ['burstBytes NaN', { burstBytes: Number.NaN }],
    ['windowMs 0', { windowMs: 0 }],
  ])('B52: %s is refused, at construction and while running, by name', (name, options) => {
    expect(() => new SlowPathBudget(options, 0)).toThrow(name);
    expect(refusal(() => new SlowPathBudget(options, 0))).toBe('invalidArgument');
    if (options.windowMs !== undefined) return;
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    expect(() => bench.configure(options)).toThrow(name);
    bench.acquire('a', MB);
    expect(bench.told).toEqual(['a@0']);
    expect(bench.budget.report(0)).toMatchObject({ bytesPerSecond: MB, slots: 1, levelBytes: 0 });
  });

  it('the smallest budget makes progress', () => {
    const bench = new Bench({ bytesPerSecond: 1, slots: 1 });
    for (const key of ['a', 'b', 'c']) bench.acquire(key, 5);
    bench.onGrant = (key) => bench.release(key);
    bench.release('a');
    bench.until(20_000);
    expect(bench.told).toEqual(['a@0', 'b@5000', 'c@10000']);
  });

  it('has defaults', () => {
    expect(new SlowPathBudget({}, 0).report(0)).toMatchObject({
      bytesPerSecond: DEFAULT_BUDGET.bytesPerSecond,
      slots: DEFAULT_BUDGET.slots,
      levelBytes: DEFAULT_BUDGET.bytesPerSecond,
    });
  });

  it.each<[string, (budget: SlowPathBudget) => unknown]>([
    ['bytes NaN', (budget) => budget.acquire('b', Number.NaN, 0)],
    ['bytes -1', (budget) => budget.acquire('b', -1, 0)],
    ['bytes Infinity', (budget) => budget.correct('a', Number.POSITIVE_INFINITY, 0)],
    ['nowMs NaN', (budget) => budget.acquire('b', 1, Number.NaN)],
    ['nowMs Infinity', (budget) => budget.release('a', Number.POSITIVE_INFINITY)],
    ['nowMs NaN', (budget) => budget.tick(Number.NaN)],
  ])('%s is refused, and nothing has changed', (name, call) => {
    const bench = new Bench({ bytesPerSecond: MB });
    bench.acquire('a', 10);
    expect(() => call(bench.budget)).toThrow(name);
    expect(bench.budget.report(0)).toMatchObject({ holding: 1, waiting: 0, levelBytes: MB - 10 });
  });
});

describe('B18: whatever becomes of an operation, its slot comes back', () => {
  it('a holder that fails gives its slot to the next; its bytes stay charged', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    bench.acquire('a', 10 * KB);
    bench.acquire('b', 10 * KB);
    // The operation of a throws, and its `finally` releases.
    bench.release('a');
    expect(bench.told).toEqual(['a@0', 'b@0']);
    expect(bench.budget.report(0)).toMatchObject({ holding: 1, waiting: 0, levelBytes: MB - 20 * KB });
  });

  it('a release that is told twice, or of a key that never asked, frees nobody else’s slot', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    bench.acquire('a', 1);
    bench.acquire('b', 1);
    bench.release('a');
    bench.acquire('c', 1);
    bench.release('a');
    bench.release('never');
    expect(bench.told).toEqual(['a@0', 'b@0']);
    expect(bench.budget.report(0)).toMatchObject({ holding: 1, waiting: 1 });
  });

  it('a grant that meets a cancellation on its way gives the slot back', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    bench.acquire('a', 1);
    bench.acquire('b', 1);
    bench.onGrant = (key) => bench.release(key);
    bench.release('a');
    expect(bench.budget.report(0)).toMatchObject({ holding: 0, waiting: 0 });
  });

  it('a timer that goes off too early is set again', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 2 });
    bench.acquire('a', 1_000);
    bench.acquire('b', 500);
    expect(bench.wakeAtMs).toBe(500);
    expect(bench.budget.tick(499)).toEqual([{ type: 'wake', atMs: 500 }]);
    expect(bench.budget.tick(500)).toEqual([{ type: 'granted', key: 'b' }]);
  });

  it('a timer is for a whole millisecond, and never too early, whatever the clock counts in', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 2 });
    bench.nowMs = 0.5;
    bench.acquire('a', 1_000);
    bench.acquire('b', 1);
    expect(bench.wakeAtMs).toBe(2);
    bench.until(10);
    expect(bench.told).toEqual(['a@0.5', 'b@2']);
  });

  it('Progress: while a key waits, a slot is held or a timer is set; the timer is asked for once', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 1 });
    bench.acquire('a', 3_000);
    expect(bench.budget.acquire('b', 1, 0)).toEqual([]);
    expect(bench.budget.release('a', 10)).toEqual([{ type: 'wake', atMs: 2_001 }]);
    expect(bench.budget.acquire('c', 1, 20)).toEqual([]);
    expect(bench.budget.acquire('d', 1, 30.25)).toEqual([]);
  });
});

describe('B19: what is free is computed and claimed in one step', () => {
  it('of two that ask in one tick for the last slot, one gets it', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    expect(bench.budget.acquire('a', 1, 0)).toEqual([{ type: 'granted', key: 'a' }]);
    expect(bench.budget.acquire('b', 1, 0)).toEqual([]);
  });

  it('of two that ask in one tick for the last bytes, one gets them', () => {
    const bench = new Bench({ bytesPerSecond: MB });
    bench.acquire('a', MB);
    bench.acquire('b', MB);
    bench.until(2_000);
    expect(bench.told).toEqual(['a@0', 'b@1000']);
  });

  it('one operation per key: a second is refused, waiting or holding, and the first stands', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    bench.acquire('topic/7', 1);
    bench.acquire('__proto__', 1);
    for (const key of ['topic/7', '__proto__']) {
      expect(() => bench.acquire(key, 1)).toThrow(key);
      expect(refusal(() => bench.acquire(key, 1))).toBe('invalidArgument');
    }
    bench.release('topic/7');
    expect(bench.told).toEqual(['topic/7@0', '__proto__@0']);
    bench.acquire('topic/7', 1);
    expect(bench.budget.report(0)).toMatchObject({ holding: 1, waiting: 1 });
  });
});

describe('B48: a small entry that unpacks to much', () => {
  it.each([
    [KB, 300 * MB, 300 * MB],
    [KB, undefined, KB],
    [KB, 0, KB],
    [KB, 10, KB],
  ])('%d stored and %s unpacked cost %d', (stored, unpacked, cost) => {
    expect(slowPathBytes(stored, unpacked)).toBe(cost);
  });

  it('a holder that finds more than was said is charged the rest, once, and those behind wait for it', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 2 });
    bench.acquire('a', KB);
    bench.correct('a', 3 * MB);
    bench.correct('a', 3 * MB);
    bench.correct('a', 2 * MB);
    expect(bench.budget.report(0).levelBytes).toBe(-2 * MB);
    bench.acquire('b', 10 * KB);
    bench.until(5_000);
    expect(bench.told).toEqual(['a@0', 'b@2010']);
  });

  it('a smaller size gives nothing back', () => {
    const bench = new Bench({ bytesPerSecond: MB });
    bench.acquire('a', 500 * KB);
    bench.correct('a', 0);
    bench.release('a');
    expect(bench.budget.report(0).levelBytes).toBe(500 * KB);
  });

  it('one that waits waits for the larger size; one without an operation is charged nothing', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 2 });
    bench.acquire('a', MB);
    bench.acquire('b', 100 * KB);
    bench.correct('b', 700 * KB);
    bench.correct('c', 5 * MB);
    bench.until(5_000);
    expect(bench.told).toEqual(['a@0', 'b@700']);
  });
});

describe('B52: an entry larger than the bucket', () => {
  it('waits until the bucket is full, goes into debt, and the next waits for the debt', () => {
    const bench = new Bench({ bytesPerSecond: MB, burstBytes: MB, slots: 20 });
    bench.acquire('before', MB);
    bench.acquire('large', 5 * MB);
    for (let i = 0; i < 10; i++) bench.acquire(`small${i}`, 10 * KB);
    bench.until(10_000);
    expect(bench.told).toEqual([
      'before@0',
      'large@1000',
      // Five seconds later, but for the bucket that was full.
      ...Array.from({ length: 10 }, (_, i) => `small${i}@${5_010 + 10 * i}`),
    ]);
  });

  it('an entry of no bytes passes, but not before a debt is paid', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 4 });
    bench.acquire('large', 3 * MB);
    bench.acquire('empty', 0);
    bench.until(5_000);
    expect(bench.told).toEqual(['large@0', 'empty@2000']);
  });
});

/** Replicators with endless backlogs: each asks again as soon as it is done; an operation takes a while. */
function backlogs(bench: Bench, sizes: Readonly<Record<string, number>>, takesMs: number, untilMs: number): void {
  const ends: { key: string; atMs: number }[] = [];
  bench.onGrant = (key) => ends.push({ key, atMs: bench.nowMs + takesMs });
  for (const [key, bytes] of Object.entries(sizes)) bench.acquire(key, bytes);
  for (;;) {
    const [end] = ends;
    const nextMs = Math.min(end?.atMs ?? Number.POSITIVE_INFINITY, bench.wakeAtMs ?? Number.POSITIVE_INFINITY);
    if (nextMs > untilMs) return;
    bench.until(nextMs);
    if (end === undefined || end.atMs > nextMs) continue;
    ends.shift();
    bench.release(end.key);
    bench.acquire(end.key, sizes[end.key] ?? 0);
  }
}

const counts = (bench: Bench): Record<string, number> => {
  const found: Record<string, number> = {};
  for (const { key } of bench.grants) found[key] = (found[key] ?? 0) + 1;
  return found;
};

describe('B53: fair, whatever the sizes', () => {
  const small = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`small${i}`, 10 * KB]));

  it.each([
    ['bytes are short', MB],
    ['slots are short', 1_000 * MB],
  ])('one backlog of 2 MB entries and twenty of 10 KB, two slots, %s: all are served equally often', (_, rate) => {
    const bench = new Bench({ bytesPerSecond: rate, slots: 2 });
    backlogs(bench, { large: 2 * MB, ...small }, 5, 60_000);
    const served = Object.values(counts(bench));
    expect(served).toHaveLength(21);
    expect(Math.min(...served)).toBeGreaterThan(20);
    expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(1);
  });

  it('a stream of small ones does not keep the level below what a large one needs', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 30 });
    backlogs(bench, small, 1, 10_000);
    bench.acquire('large', 2 * MB);
    const before = bench.grants.length;
    bench.until(20_000);
    const after = bench.grants.slice(before);
    expect(after.findIndex(({ key }) => key === 'large')).toBeLessThanOrEqual(20);
  });

  it('a waiter that is cancelled while queued leaves with nothing taken, and the line closes', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 3 });
    bench.acquire('a', MB);
    bench.acquire('b', 900 * KB);
    bench.acquire('c', 50 * KB);
    bench.acquire('d', 50 * KB);
    bench.until(60);
    // The first, a middle and later the last of the line.
    bench.release('b');
    bench.release('d');
    expect(bench.told).toEqual(['a@0', 'c@60']);
    bench.acquire('e', MB);
    bench.release('e');
    expect(bench.budget.report(60)).toMatchObject({ levelBytes: 10 * KB, holding: 2, waiting: 0 });
    bench.acquire('f', 10 * KB);
    expect(bench.told.at(-1)).toBe('f@60');
  });
});

describe('a clock that jumps', () => {
  it('a time before the latest counts as the latest', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 4 });
    bench.acquire('a', 1_000);
    bench.until(500);
    bench.acquire('b', 600);
    for (const nowMs of [100, 500, 300, 500, 0])
      expect(bench.budget.tick(nowMs)).toEqual([{ type: 'wake', atMs: 600 }]);
    expect(bench.budget.report(200)).toMatchObject({ levelBytes: 500 });
    bench.until(600);
    expect(bench.told).toEqual(['a@0', 'b@600']);
  });

  it('a jump forward fills the bucket, and no more', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 4 });
    bench.acquire('a', 3_000);
    bench.nowMs = 365 * 86_400_000;
    bench.acquire('b', 1_000);
    bench.acquire('c', 1_000);
    expect(bench.told.slice(1)).toEqual([`b@${bench.nowMs}`]);
  });

  it('a clock that is set back by a year is not waited for, and earns nothing by it', () => {
    const year = 365 * 86_400_000;
    const budget = new SlowPathBudget({ bytesPerSecond: 1_000, slots: 4 }, year);
    budget.acquire('a', 1_000, year);
    expect(budget.acquire('b', 1_000, year)).toEqual([{ type: 'wake', atMs: year + 1_000 }]);
    // Told again, in the clock's new time.
    expect(budget.acquire('c', 1_000, 5)).toEqual([{ type: 'wake', atMs: 1_005 }]);
    expect(budget.throttled('b', 105)).toEqual({ totalMs: 100, sinceMs: 5 });
    expect(budget.tick(1_005)).toEqual([
      { type: 'granted', key: 'b' },
      { type: 'wake', atMs: 2_005 },
    ]);
  });
});

describe('changed while running', () => {
  it('a higher rate serves those that wait sooner; what came in before came in at the old rate', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 4 });
    bench.acquire('a', 11_000);
    bench.acquire('b', 1_000);
    bench.until(1_000);
    expect(bench.wakeAtMs).toBe(11_000);
    bench.configure({ bytesPerSecond: 10_000 });
    // A debt of 9,000, and the bucket of 10,000 needs 1,000 of it.
    bench.until(5_000);
    expect(bench.told).toEqual(['a@0', 'b@2000']);
  });

  it('a lower rate keeps a debt, and makes none of what was no debt', () => {
    const bench = new Bench({ bytesPerSecond: 1_000_000, slots: 4 });
    bench.acquire('a', 1_000_000);
    bench.configure({ bytesPerSecond: 1_000 });
    bench.acquire('b', 1_000);
    bench.until(5_000);
    expect(bench.told).toEqual(['a@0', 'b@1000']);
    bench.acquire('c', 4_000);
    bench.configure({ bytesPerSecond: 500 });
    expect(bench.budget.report(5_000).levelBytes).toBe(-3_000);
  });

  it('more slots serve those that wait at once; fewer take none away', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    for (const key of ['a', 'b', 'c', 'd']) bench.acquire(key, 1);
    bench.configure({ slots: 3 });
    expect(bench.told).toEqual(['a@0', 'b@0', 'c@0']);
    bench.configure({ slots: 1 });
    bench.release('a');
    bench.release('b');
    expect(bench.budget.report(0)).toMatchObject({ holding: 1, waiting: 1, slots: 1 });
    bench.release('c');
    expect(bench.told.at(-1)).toBe('d@0');
  });

  it('a burst that was named stays; one that was not follows the rate', () => {
    const named = new Bench({ bytesPerSecond: MB, burstBytes: 10 });
    named.configure({ bytesPerSecond: 2 * MB });
    expect(named.budget.report(0).levelBytes).toBe(10);
    const unnamed = new Bench({ bytesPerSecond: MB });
    unnamed.configure({ bytesPerSecond: 2 * MB });
    expect(unnamed.budget.report(0).levelBytes).toBe(2 * MB);
  });
});

describe('what it reports', () => {
  it('utilisation: a large entry counts over the time in which it is paid back', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 2, windowMs: 60_000 });
    bench.until(30_000);
    bench.acquire('a', 15 * MB);
    bench.until(33_000);
    bench.release('a');
    bench.until(60_000);
    // The sixtieth slice has just begun, so the first one is no longer counted.
    const report = bench.budget.report(60_000);
    expect(report.windowMs).toBe(59_000);
    expect(report.utilisation).toBeCloseTo(15 / 59, 10);
    expect(report.slotUtilisation).toBeCloseTo(3 / 2 / 59, 10);
    expect(bench.budget.report(1_000_000)).toMatchObject({ utilisation: 0, slotUtilisation: 0 });
  });

  it('is 0 before any time has passed, and 1 while all is used', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    expect(bench.budget.report(0)).toMatchObject({ windowMs: 0, utilisation: 0, slotUtilisation: 0 });
    bench.acquire('a', 10 * MB);
    expect(bench.budget.report(5_000)).toMatchObject({ windowMs: 5_000, utilisation: 1, slotUtilisation: 1 });
  });

  it('time throttled: for bytes or for a slot, a wait that lasts included; a cancelled wait counts', () => {
    const bench = new Bench({ bytesPerSecond: 1_000, slots: 2 });
    bench.acquire('a', 1_000);
    bench.acquire('b', 300);
    bench.until(200);
    expect(bench.budget.throttled('b', 200)).toEqual({ totalMs: 200, sinceMs: 0 });
    bench.until(400);
    bench.acquire('c', 1);
    bench.until(450);
    bench.release('c');
    expect([...bench.budget.report(1_000).throttled]).toEqual([
      ['a', { totalMs: 0 }],
      ['b', { totalMs: 300 }],
      ['c', { totalMs: 50 }],
    ]);
  });

  it('a key that is forgotten gives back what it has, and leaves no figures', () => {
    const bench = new Bench({ bytesPerSecond: MB, slots: 1 });
    bench.acquire('a', 1);
    bench.acquire('b', 1);
    bench.take(bench.budget.forget('a', 10));
    expect(bench.told).toEqual(['a@0', 'b@0']);
    expect([...bench.budget.report(10).throttled.keys()]).toEqual(['b']);
    expect(bench.budget.throttled('a', 10)).toEqual({ totalMs: 0 });
  });
});

/** One thing that happens to the budget, so long after the last. */
interface Happening {
  readonly afterMs: number;
  readonly key: string;
  readonly what: 'acquire' | 'release' | 'correct' | 'slots' | 'rate';
  readonly amount: number;
}

const arbHappenings = (keys: number, maxLength: number) =>
  fc.array(
    fc.record<Happening>({
      afterMs: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 40 })),
      key: fc.integer({ min: 0, max: keys - 1 }).map((key) => `k${key}`),
      what: fc.constantFrom('acquire', 'acquire', 'acquire', 'release', 'release', 'correct', 'slots', 'rate'),
      amount: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 0, max: 60 }) }, fc.integer({ min: 0, max: 900 })),
    }),
    { minLength: 1, maxLength },
  );

interface Figures {
  readonly granted: string[];
  readonly refilling: number[];
  readonly slotShare: number[];
  readonly throttled: Map<string, number>;
}

/** Counts in whole bytes and single milliseconds, with nothing but arrays. */
class NaiveBudget {
  perMs = 4;
  burst = 100;
  slots = 2;
  level = 100;
  nowMs = 0;
  line: { key: string; bytes: number }[] = [];
  holders: { key: string; bytes: number }[] = [];
  readonly figures: Figures = { granted: [], refilling: [], slotShare: [], throttled: new Map() };
  readonly charges: { atMs: number; bytes: number }[] = [];

  until(untilMs: number): void {
    while (this.nowMs < untilMs) {
      const filled = Math.min(this.perMs, this.burst - this.level);
      this.figures.refilling.push(filled / this.perMs);
      this.figures.slotShare.push(Math.min(1, this.holders.length / this.slots));
      for (const { key } of this.line) this.figures.throttled.set(key, (this.figures.throttled.get(key) ?? 0) + 1);
      this.level += filled;
      this.nowMs++;
      this.serve();
    }
  }

  serve(): void {
    for (;;) {
      const [first] = this.line;
      if (first === undefined || this.holders.length >= this.slots) return;
      if (this.level < Math.min(first.bytes, this.burst)) return;
      this.line.shift();
      this.holders.push(first);
      this.charge(first.bytes);
      this.figures.granted.push(`${first.key}@${this.nowMs}`);
    }
  }

  charge(bytes: number): void {
    this.level -= bytes;
    this.charges.push({ atMs: this.nowMs, bytes });
  }

  knows(key: string): boolean {
    return [...this.line, ...this.holders].some((one) => one.key === key);
  }

  happens({ key, what, amount }: Happening): void {
    const waiting = this.line.find((one) => one.key === key);
    const holder = this.holders.find((one) => one.key === key);
    if (what === 'acquire' && !this.knows(key)) this.line.push({ key, bytes: amount });
    if (what === 'release') {
      this.line = this.line.filter((one) => one !== waiting);
      this.holders = this.holders.filter((one) => one !== holder);
    }
    if (what === 'correct') {
      if (holder !== undefined && amount > holder.bytes) {
        this.charge(amount - holder.bytes);
        holder.bytes = amount;
      }
      if (waiting !== undefined) waiting.bytes = Math.max(waiting.bytes, amount);
    }
    if (what === 'slots') this.slots = 1 + (amount % 5);
    if (what === 'rate') this.perMs = 1 + (amount % 8);
    this.serve();
  }
}

/** Puts the same happenings to the budget, with only the timers it asks for. */
function run(happenings: readonly Happening[], untilMs: number): Bench {
  const bench = new Bench({ bytesPerSecond: 4_000, burstBytes: 100, slots: 2, windowMs: 600 });
  const busy = new Set<string>();
  for (const { afterMs, key, what, amount } of happenings) {
    bench.until(bench.nowMs + afterMs);
    if (what === 'acquire' && !busy.has(key)) {
      busy.add(key);
      bench.acquire(key, amount);
    }
    if (what === 'release') {
      busy.delete(key);
      bench.release(key);
    }
    if (what === 'correct') bench.correct(key, amount);
    if (what === 'slots') bench.configure({ slots: 1 + (amount % 5) });
    if (what === 'rate') bench.configure({ bytesPerSecond: 1_000 * (1 + (amount % 8)) });
  }
  bench.until(untilMs);
  return bench;
}

describe('against a model that counts every millisecond', () => {
  it('grants the same keys at the same times, and reports the same figures', () => {
    fc.assert(
      fc.property(arbHappenings(8, 60), fc.nat(1_500), (happenings, restMs) => {
        const naive = new NaiveBudget();
        for (const happening of happenings) {
          naive.until(naive.nowMs + happening.afterMs);
          naive.happens(happening);
        }
        const endMs = naive.nowMs + restMs;
        naive.until(endMs);
        const bench = run(happenings, endMs);
        expect(bench.told).toEqual(naive.figures.granted);
        const report = bench.budget.report(endMs);
        expect(report.levelBytes).toBe(naive.level);
        expect(report.holding).toBe(naive.holders.length);
        expect(report.waiting).toBe(naive.line.length);
        const mean = (values: readonly number[]): number => {
          const last = values.slice(values.length - report.windowMs);
          return last.length === 0 ? 0 : last.reduce((sum, value) => sum + value, 0) / last.length;
        };
        expect(report.windowMs).toBeLessThanOrEqual(600);
        expect(report.windowMs).toBeGreaterThanOrEqual(Math.min(endMs, 590));
        expect(report.utilisation).toBeCloseTo(mean(naive.figures.refilling), 9);
        expect(report.slotUtilisation).toBeCloseTo(mean(naive.figures.slotShare), 9);
        for (const [key, { totalMs }] of report.throttled) {
          expect(totalMs, key).toBe(naive.figures.throttled.get(key) ?? 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('invariant 8: over any window no more than the rate, the bucket and one largest entry', () => {
    fc.assert(
      fc.property(
        arbHappenings(8, 80).map((all) => all.filter(({ what }) => what !== 'rate' && what !== 'correct')),
        (happenings) => {
          const naive = new NaiveBudget();
          const sizes = new Map<string, number>();
          for (const { key, what, amount } of happenings) {
            if (what === 'acquire') sizes.set(key, Math.max(sizes.get(key) ?? 0, amount));
          }
          for (const happening of happenings) {
            naive.until(naive.nowMs + happening.afterMs);
            naive.happens(happening);
          }
          // The model grants what the budget grants, as the property above shows; it also knows the bytes.
          expect(run(happenings, naive.nowMs).told).toEqual(naive.figures.granted);
          const largest = Math.max(0, ...sizes.values());
          for (let from = 0; from < naive.charges.length; from++) {
            const startMs = naive.charges[from]?.atMs ?? 0;
            let bytes = 0;
            for (const charge of naive.charges.slice(from)) {
              bytes += charge.bytes;
              expect(bytes).toBeLessThanOrEqual(4 * (charge.atMs - startMs) + Math.max(100, largest));
            }
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('B53: between the asking and the grant of a key, every other is granted once at most', () => {
    fc.assert(
      fc.property(arbHappenings(6, 80), (happenings) => {
        const bench = new Bench({ bytesPerSecond: 4_000, burstBytes: 100, slots: 2 });
        /** Of each key that waits: who was granted meanwhile. */
        const overtaken = new Map<string, string[]>();
        bench.onGrant = (key) => {
          const meanwhile = overtaken.get(key) ?? [];
          expect(new Set(meanwhile).size).toBe(meanwhile.length);
          overtaken.delete(key);
          for (const others of overtaken.values()) others.push(key);
        };
        const busy = new Set<string>();
        for (const { afterMs, key, what, amount } of happenings) {
          bench.until(bench.nowMs + afterMs);
          if (what === 'acquire' && !busy.has(key)) {
            busy.add(key);
            overtaken.set(key, []);
            bench.acquire(key, amount);
          }
          if (what === 'release') {
            busy.delete(key);
            overtaken.delete(key);
            bench.release(key);
          }
        }
        // Nobody is left behind once the holders are done.
        for (const key of busy) if (!overtaken.has(key)) bench.release(key);
        bench.onGrant = (key) => {
          overtaken.delete(key);
          bench.release(key);
        };
        bench.until(bench.nowMs + 100_000);
        expect(overtaken.size).toBe(0);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a storm of 200 keys', () => {
  const storm = (): Bench => {
    const bench = new Bench({ bytesPerSecond: 10 * MB, slots: 8 });
    const sizes = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`topic${i % 17}/${i}`, 1 + ((i * 7_919) % MB)]),
    );
    backlogs(bench, sizes, 3, 120_000);
    return bench;
  };

  it('takes the same course every time, fair, and neither above nor below its rate', () => {
    const bench = storm();
    expect(storm().told).toEqual(bench.told);
    const served = Object.values(counts(bench));
    expect(served).toHaveLength(200);
    expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(1);
    const report = bench.budget.report(bench.nowMs);
    expect(report.utilisation).toBe(1);
    expect(report.holding).toBeLessThanOrEqual(8);
    const used = (bench.nowMs / 1_000 + 1) * 10 * MB - report.levelBytes;
    expect(used / (bench.nowMs / 1_000)).toBeLessThan(10.2 * MB);
    expect(used / (bench.nowMs / 1_000)).toBeGreaterThan(9.8 * MB);
  });
});
