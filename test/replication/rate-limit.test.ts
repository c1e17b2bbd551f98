/** The rate limit towards a remote: off unless set, asked before a read, charged after it, fair. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateLimit, type RateLimitEffect, type RateLimitSettings, type ReadSize } from '../../src/replication/index.js';
import { refusal } from '../support/expect.js';

const MB = 1_000_000;
const KB = 1_000;
const MUCH: ReadSize = { bytes: 100 * MB, messages: 100_000 };
const LITTLE: ReadSize = { bytes: KB, messages: 1 };
const NOTHING: ReadSize = { bytes: 0, messages: 0 };

/** A limit with its timer, on a clock that starts at 0. */
class Bench {
  nowMs = 0;
  readonly limit: RateLimit;
  readonly admissions: { readonly key: string; readonly atMs: number; readonly allowed: ReadSize }[] = [];
  wakeAtMs: number | undefined;
  onAdmit: (key: string, allowed: ReadSize) => void = () => {};

  constructor(settings: RateLimitSettings) {
    this.limit = new RateLimit(settings, 0);
  }

  admit(key: string, want = MUCH): void {
    this.take(this.limit.admit(key, want, this.nowMs));
  }

  charge(key: string, read: ReadSize): void {
    this.take(this.limit.charge(key, read, this.nowMs));
  }

  release(key: string): void {
    this.take(this.limit.release(key, this.nowMs));
  }

  configure(settings: RateLimitSettings): void {
    this.take(this.limit.configure(settings, this.nowMs));
  }

  until(untilMs: number): void {
    while (this.wakeAtMs !== undefined && this.wakeAtMs <= untilMs) {
      expect(this.wakeAtMs).toBeGreaterThan(this.nowMs);
      this.nowMs = this.wakeAtMs;
      this.wakeAtMs = undefined;
      this.take(this.limit.tick(this.nowMs));
    }
    this.nowMs = untilMs;
  }

  take(effects: readonly RateLimitEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'wake') this.wakeAtMs = effect.atMs;
      else {
        this.admissions.push({ key: effect.key, atMs: this.nowMs, allowed: effect.allowed });
        this.onAdmit(effect.key, effect.allowed);
      }
    }
  }

  get told(): string[] {
    return this.admissions.map(({ key, atMs }) => `${key}@${atMs}`);
  }
}

/** Replicators with endless backlogs: a read takes a while and brings what `bring` says. */
function backlogs(
  bench: Bench,
  wants: Readonly<Record<string, ReadSize>>,
  takesMs: number,
  untilMs: number,
  bring: (key: string, allowed: ReadSize) => ReadSize = (_, allowed) => allowed,
): { readonly key: string; readonly atMs: number; readonly read: ReadSize }[] {
  const out: { key: string; atMs: number; read: ReadSize }[] = [];
  const done: { key: string; atMs: number; read: ReadSize }[] = [];
  bench.onAdmit = (key, allowed) => out.push({ key, atMs: bench.nowMs + takesMs, read: bring(key, allowed) });
  for (const [key, want] of Object.entries(wants)) bench.admit(key, want);
  for (;;) {
    const [next] = out;
    const nextMs = Math.min(next?.atMs ?? Number.POSITIVE_INFINITY, bench.wakeAtMs ?? Number.POSITIVE_INFINITY);
    if (nextMs > untilMs) return done;
    bench.until(nextMs);
    if (next === undefined || next.atMs > nextMs) continue;
    out.shift();
    done.push(next);
    bench.charge(next.key, next.read);
    bench.admit(next.key, wants[next.key] ?? MUCH);
  }
}

const sumOf = (reads: readonly { read: ReadSize }[], what: keyof ReadSize): number =>
  reads.reduce((sum, { read }) => sum + read[what], 0);

/** All keys had their turn equally often, but for a round that is under way. */
function expectEqualTurns(done: readonly { readonly key: string }[], keys: number): void {
  const turns = new Map<string, number>();
  for (const { key } of done) turns.set(key, (turns.get(key) ?? 0) + 1);
  expect(turns.size).toBe(keys);
  expect(Math.max(...turns.values()) - Math.min(...turns.values())).toBeLessThanOrEqual(1);
}

describe('what a limit may be', () => {
  it('is off unless set: every read is admitted as it is wanted, and nothing is counted', () => {
    const bench = new Bench({});
    for (let i = 0; i < 100; i++) {
      bench.admit('a');
      bench.charge('a', MUCH);
    }
    expect(bench.admissions).toHaveLength(100);
    expect(bench.admissions[99]).toEqual({ key: 'a', atMs: 0, allowed: MUCH });
    bench.configure({ bytesPerSecond: MB });
    bench.admit('a');
    expect(bench.admissions).toHaveLength(101);
  });

  it.each<[string, RateLimitSettings]>([
    ['bytesPerSecond 0', { bytesPerSecond: 0 }],
    ['bytesPerSecond NaN', { bytesPerSecond: Number.NaN }],
    ['bytesPerSecond -5', { bytesPerSecond: -5 }],
    ['bytesPerSecond Infinity', { bytesPerSecond: Number.POSITIVE_INFINITY }],
    ['messagesPerSecond 0', { messagesPerSecond: 0, bytesPerSecond: 5 }],
    ['messagesPerSecond null', { messagesPerSecond: null as unknown as number }],
  ])('B52: %s is refused by name, and the old limits stay', (name, settings) => {
    expect(() => new RateLimit(settings, 0)).toThrow(name);
    const bench = new Bench({ messagesPerSecond: 10 });
    expect(() => bench.configure(settings)).toThrow(name);
    expect(refusal(() => bench.configure(settings))).toBe('invalidArgument');
    bench.admit('a');
    expect(bench.admissions[0]?.allowed).toEqual({ bytes: MUCH.bytes, messages: 1 });
  });

  it.each<[string, (limit: RateLimit) => unknown]>([
    ['want.bytes 0', (limit) => limit.admit('b', { bytes: 0, messages: 1 }, 0)],
    ['want.messages NaN', (limit) => limit.admit('b', { bytes: 1, messages: Number.NaN }, 0)],
    ['bytes -1', (limit) => limit.charge('a', { bytes: -1, messages: 1 }, 0)],
    ['messages Infinity', (limit) => limit.charge('a', { bytes: 1, messages: Number.POSITIVE_INFINITY }, 0)],
    ['nowMs NaN', (limit) => limit.admit('b', LITTLE, Number.NaN)],
  ])('%s is refused, and nothing has changed', (name, call) => {
    const bench = new Bench({ bytesPerSecond: MB });
    expect(() => call(bench.limit)).toThrow(name);
    expect(bench.limit.waitingCount).toBe(0);
  });

  it('the smallest limit makes progress', () => {
    const bench = new Bench({ bytesPerSecond: 1, messagesPerSecond: 1 });
    const done = backlogs(bench, { a: MUCH, b: MUCH }, 0, 60_000);
    expect(new Set(done.map(({ key }) => key)).size).toBe(2);
    expect(done.length).toBeGreaterThan(55);
  });
});

describe('B18: a limiter that said no, and reads that go wrong', () => {
  it('who was told to wait is admitted when its time comes, with nothing left open', () => {
    const bench = new Bench({ messagesPerSecond: 10 });
    bench.admit('a');
    bench.charge('a', { bytes: 1, messages: 15 });
    bench.admit('b');
    expect(bench.limit.waitingCount).toBe(1);
    bench.until(10_000);
    expect(bench.told).toEqual(['a@0', 'b@600']);
    expect(bench.limit.waitingCount).toBe(0);
  });

  it('a read that fails is charged nothing, and who waits for its tokens has them', () => {
    const bench = new Bench({ messagesPerSecond: 1 });
    bench.admit('a');
    bench.admit('b');
    expect(bench.told).toEqual(['a@0']);
    bench.until(300);
    bench.release('a');
    expect(bench.told).toEqual(['a@0', 'b@300']);
  });

  it('a read that is lost holds nobody up for more than a second; its key may ask again', () => {
    const bench = new Bench({ messagesPerSecond: 1 });
    bench.admit('lost');
    bench.admit('b');
    bench.until(5_000);
    expect(bench.told).toEqual(['lost@0', 'b@1000']);
    bench.release('b');
    bench.admit('lost');
    expect(bench.told.at(-1)).toBe('lost@5000');
  });

  it('a waiter that is cancelled leaves the line; cancelled or charged twice does no harm', () => {
    const bench = new Bench({ messagesPerSecond: 1 });
    for (const key of ['a', 'b', 'c']) bench.admit(key);
    bench.release('b');
    bench.release('b');
    bench.charge('a', NOTHING);
    bench.charge('a', NOTHING);
    expect(bench.told).toEqual(['a@0', 'c@0']);
  });

  it('who asks again while it waits keeps its place, and has one', () => {
    const bench = new Bench({ messagesPerSecond: 1 });
    for (const key of ['a', 'b', 'c', 'b']) bench.admit(key);
    expect(bench.limit.waitingCount).toBe(2);
    bench.release('a');
    bench.release('b');
    expect(bench.told).toEqual(['a@0', 'b@0', 'c@0']);
  });

  it('who asks again while its read is out starts anew: its claim does not stand in its own way', () => {
    const bench = new Bench({ messagesPerSecond: 1 });
    bench.admit('a');
    bench.admit('a');
    expect(bench.told).toEqual(['a@0', 'a@0']);
  });

  it('a timer that goes off too early is set again', () => {
    const bench = new Bench({ messagesPerSecond: 10 });
    bench.admit('a');
    bench.charge('a', { bytes: 1, messages: 10 });
    bench.admit('b');
    expect(bench.wakeAtMs).toBe(100);
    expect(bench.limit.tick(99)).toEqual([{ type: 'wake', atMs: 100 }]);
  });
});

describe('B19: what is allowed is computed and claimed in one step', () => {
  it('all that ask in one tick are told no more, together, than there is', () => {
    const bench = new Bench({ messagesPerSecond: 1_000, bytesPerSecond: MB });
    for (let i = 0; i < 50; i++) bench.admit(`k${i}`);
    expect(bench.admissions).toHaveLength(10);
    expect(bench.admissions.reduce((sum, { allowed }) => sum + allowed.messages, 0)).toBe(1_000);
    expect(bench.admissions.reduce((sum, { allowed }) => sum + allowed.bytes, 0)).toBe(MB);
  });

  it('a claim ends with its charge: what was not brought is free again at once', () => {
    const bench = new Bench({ messagesPerSecond: 1_000 });
    for (let i = 0; i < 11; i++) bench.admit(`k${i}`);
    expect(bench.admissions).toHaveLength(10);
    bench.charge('k0', { bytes: 1, messages: 0 });
    expect(bench.told.at(-1)).toBe('k10@0');
  });
});

describe('a debt', () => {
  it('a read that brought more than it was told is paid back before the next; both resources count', () => {
    const bench = new Bench({ bytesPerSecond: MB, messagesPerSecond: 100 });
    bench.admit('a', LITTLE);
    bench.charge('a', { bytes: 5 * MB, messages: 1 });
    bench.admit('a', LITTLE);
    bench.until(20_000);
    bench.charge('a', { bytes: 1, messages: 400 });
    bench.admit('a', LITTLE);
    bench.until(40_000);
    expect(bench.told).toEqual(['a@0', 'a@4001', 'a@23010']);
  });
});

describe('B53, and what users ask for: many backlogs, one line', () => {
  const keys = (count: number, want: ReadSize) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, want]));

  it('200 backlogs drain at the limit, all alike, and never more in memory than a second’s worth', () => {
    const bench = new Bench({ bytesPerSecond: 10 * MB });
    const done = backlogs(bench, keys(200, MUCH), 20, 120_000);
    expect(sumOf(done, 'bytes') / 120).toBeGreaterThan(9.9 * MB);
    expect(sumOf(done, 'bytes') / 120).toBeLessThan(10.1 * MB);
    expectEqualTurns(done, 200);
    let out = 0;
    const changes = [
      ...bench.admissions.map(({ atMs, allowed }) => ({ atMs, change: allowed.bytes })),
      ...done.map(({ atMs, read }) => ({ atMs, change: -read.bytes })),
    ].sort((a, b) => a.atMs - b.atMs || a.change - b.change);
    for (const { change } of changes) {
      out += change;
      expect(out).toBeLessThanOrEqual(10 * MB);
    }
  });

  it('one large backlog among twenty small readers gets its turn, and they theirs', () => {
    const bench = new Bench({ messagesPerSecond: 100 });
    const done = backlogs(bench, { large: MUCH, ...keys(20, LITTLE) }, 1, 60_000);
    expectEqualTurns(done, 21);
  });

  it('a reader that always asks again at once keeps nobody out, though it uses next to nothing', () => {
    const bench = new Bench({ bytesPerSecond: 10 * MB });
    const done = backlogs(bench, keys(30, MUCH), 5, 10_000, () => ({ bytes: 10, messages: 1 }));
    expectEqualTurns(done, 30);
  });

  it('reads that wait at the end of their segments do not keep a backlog from the line', () => {
    const bench = new Bench({ bytesPerSecond: 10 * MB, messagesPerSecond: 500 });
    for (let i = 0; i < 1_000; i++) bench.admit(`tail${i}`, LITTLE);
    bench.until(5_000);
    expect(bench.admissions).toHaveLength(1_000);
    const done = backlogs(bench, { backlog: MUCH }, 10, 25_000, (_, { messages }) => ({
      bytes: messages * KB,
      messages,
    }));
    expect(sumOf(done, 'messages') / 20).toBeGreaterThan(490);
  });

  it('over any window no more than the limit, the bucket, and what each read brought beyond what it was told', () => {
    const arbReads = fc.array(fc.record({ extra: fc.integer({ min: -50, max: 200 }), takesMs: fc.nat(60) }), {
      minLength: 1,
      maxLength: 40,
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.nat(50), arbReads, (count, takesMs, reads) => {
        const bench = new Bench({ messagesPerSecond: 200 });
        let next = 0;
        const done = backlogs(bench, keys(count, MUCH), takesMs, 5_000, (_, { bytes, messages }) => {
          const extra = reads[next++ % reads.length]?.extra ?? 0;
          return { bytes, messages: Math.max(0, messages + extra) };
        });
        // A read may bring up to 200 beyond what it was told, and ten are out at most.
        const slack = 200 + Math.min(count, 10) * 200;
        for (let from = 0; from < done.length; from++) {
          const startMs = done[from]?.atMs ?? 0;
          let messages = 0;
          for (const { atMs, read } of done.slice(from, from + 200)) {
            messages += read.messages;
            if (messages > 0.2 * (atMs - startMs) + slack) expect.fail(`${messages} from ${startMs} to ${atMs}`);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('a clock that jumps', () => {
  it('earlier counts as the latest; a clock set far back is not waited for; forward fills the bucket once', () => {
    const limit = new RateLimit({ messagesPerSecond: 10 }, 1_000_000);
    limit.admit('a', LITTLE, 1_000_000);
    limit.charge('a', { bytes: 1, messages: 20 }, 1_000_000);
    expect(limit.admit('a', LITTLE, 999_900)).toEqual([{ type: 'wake', atMs: 1_001_100 }]);
    expect(limit.tick(50)).toEqual([{ type: 'wake', atMs: 1_150 }]);
    expect(limit.tick(1_149)).toEqual([{ type: 'wake', atMs: 1_150 }]);
    expect(limit.tick(1_150)).toMatchObject([{ type: 'admitted', key: 'a' }]);
    limit.charge('a', { bytes: 1, messages: 1 }, 9e12);
    for (let i = 0; i < 9; i++) expect(limit.admit(`k${i}`, LITTLE, 9e12)).toHaveLength(1);
    expect(limit.admit('last', LITTLE, 9e12)).toMatchObject([{ type: 'wake' }]);
  });
});

describe('changed while running', () => {
  it('switched off, everybody who waits is admitted at once; switched on, it begins anew', () => {
    const bench = new Bench({ messagesPerSecond: 1 });
    for (const key of ['a', 'b', 'c']) bench.admit(key);
    bench.charge('a', { bytes: 1, messages: 1_000 });
    expect(bench.told).toEqual(['a@0']);
    bench.configure({});
    expect(bench.told).toEqual(['a@0', 'b@0', 'c@0']);
    bench.configure({ messagesPerSecond: 1 });
    // The reads of b and c began without a limit: they are charged when they come, and nothing is claimed for them.
    bench.admit('a');
    expect(bench.told.at(-1)).toBe('a@0');
    bench.charge('b', { bytes: 1, messages: 2 });
    bench.charge('a', NOTHING);
    bench.admit('a');
    bench.until(10_000);
    expect(bench.told.at(-1)).toBe('a@2000');
  });

  it('raised, those who wait are served at the new rate; a debt stays', () => {
    const bench = new Bench({ messagesPerSecond: 10 });
    bench.admit('a');
    bench.charge('a', { bytes: 1, messages: 30 });
    bench.admit('a', LITTLE);
    expect(bench.wakeAtMs).toBe(2_100);
    bench.configure({ messagesPerSecond: 1_000 });
    expect(bench.wakeAtMs).toBe(21);
  });

  it('one limit is changed without the other’s claims or debt', () => {
    const bench = new Bench({ messagesPerSecond: 10, bytesPerSecond: MB });
    for (let i = 0; i < 10; i++) bench.admit(`k${i}`);
    bench.configure({ messagesPerSecond: 1_000, bytesPerSecond: MB });
    bench.admit('last');
    expect(bench.admissions).toHaveLength(10);
    bench.configure({ messagesPerSecond: 1_000 });
    expect(bench.told.at(-1)).toBe('last@0');
  });
});
