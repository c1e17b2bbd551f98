/** The gate of a remote, event by event; what it does to many who wait; slots. */
import { describe, expect, it } from 'vitest';
import { Gate, type GateFailure, type GatePass } from '../../src/sender/index.js';
import { Slots } from '../../src/sender/slots.js';

/** Lanes that want to send, over and over, and a gate with a clock. */
class Stage {
  nowMs = 0;
  readonly gate: Gate;
  readonly passed: string[] = [];
  private readonly lanes = new Map<string, { run: () => void; pass: GatePass | undefined }>();

  constructor(random = 0.5, isProven = true) {
    this.gate = new Gate({ next: () => random });
    if (isProven) this.gate.succeeded({ run: () => {} });
  }

  /** The lane asks; once it is let through it is noted, with the time. */
  ask(...names: readonly string[]): void {
    for (const name of names) this.lane(name).run();
  }

  lane(name: string) {
    const known = this.lanes.get(name);
    if (known !== undefined) return known;
    const lane = {
      pass: undefined as GatePass | undefined,
      run: () => {
        lane.pass = this.gate.ask(lane, this.nowMs);
        if (lane.pass === undefined) this.gate.wait(lane, 'withRecords');
        else this.passed.push(`${name}@${this.nowMs}${lane.pass.isProbe ? ' probe' : ''}`);
      },
    };
    this.lanes.set(name, lane);
    return lane;
  }

  failed(name: string, reason: GateFailure = 'unavailable', retryAfterMs = 0): void {
    this.gate.failed(this.lane(name), reason, this.nowMs, retryAfterMs);
  }

  succeeded(name: string): void {
    this.gate.succeeded(this.lane(name));
    this.settle();
  }

  until(ms: number): void {
    for (let at = this.gate.dueAtMs; at !== undefined && at <= ms; at = this.gate.dueAtMs) {
      this.nowMs = Math.max(this.nowMs, at);
      this.settle();
    }
    this.nowMs = ms;
    this.settle();
  }

  /** Who was let through since the last look. */
  take(): string[] {
    return this.passed.splice(0);
  }

  private settle(): void {
    for (let due = this.gate.due(this.nowMs); due.length > 0; due = this.gate.due(this.nowMs)) {
      for (const waiter of due) waiter.run();
    }
  }
}

const names = (count: number) => Array.from({ length: count }, (_, n) => `lane${n}`);

describe('the gate', () => {
  it('lets all pass while it is open; the third transient failure in a row closes it, of whichever lanes', () => {
    const stage = new Stage();
    stage.ask('a', 'b', 'c');
    expect(stage.take()).toEqual(['a@0', 'b@0', 'c@0']);
    stage.failed('a');
    stage.failed('b');
    stage.succeeded('c');
    stage.failed('a');
    stage.failed('b');
    expect([stage.gate.isOpen, stage.gate.epoch]).toEqual([true, 0]);
    stage.failed('c');
    expect([stage.gate.isOpen, stage.gate.epoch, stage.gate.backoffMs]).toEqual([false, 1, 250]);
  });

  it('the wait doubles from 250 ms to 30 s with every failed probe, and is drawn from what it may be', () => {
    const stage = new Stage(0.75);
    for (let i = 0; i < 3; i++) stage.failed('a');
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      stage.ask('a');
      const from = stage.nowMs;
      stage.until(from + 30_000);
      const [probe = ''] = stage.take();
      waits.push(Number(/@(\d+\.?\d*)/.exec(probe)?.[1]) - from);
      stage.nowMs = from + (waits[i] ?? 0);
      stage.failed('a');
    }
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].map((ms) => ms / 4));
    expect(stage.gate.backoffMs).toBe(30_000);
  });

  it.each<[GateFailure, number, number]>([
    ['tls_failed', 0, 125],
    ['throttled', 0, 125],
    ['throttled', 7_000, 7_350],
    ['throttled', 100, 262.5],
    ['auth_failed', 0, 30_000],
  ])('%s, told to wait %i ms, closes it at once for %s ms', (reason, retryAfterMs, waitMs) => {
    const stage = new Stage();
    stage.ask('a', 'b');
    stage.take();
    stage.failed('a', reason, retryAfterMs);
    stage.ask('b');
    stage.until(waitMs - 1);
    expect(stage.take()).toEqual([]);
    stage.until(waitMs);
    expect(stage.take()).toEqual([`b@${waitMs} probe`]);
  });

  it('what fails beside a closed gate never doubles the wait; a 401 raises it, and Retry-After may lengthen it', () => {
    const stage = new Stage();
    stage.failed('a', 'tls_failed');
    stage.failed('b');
    stage.failed('c', 'tls_failed');
    expect(stage.gate.backoffMs).toBe(250);
    stage.failed('b', 'throttled', 10_000);
    expect([stage.gate.backoffMs, stage.gate.isDue(10_499), stage.gate.isDue(10_500)]).toEqual([250, false, true]);
    stage.failed('b', 'auth_failed');
    expect([stage.gate.backoffMs, stage.gate.isDue(29_999), stage.gate.isDue(30_000)]).toEqual([30_000, false, true]);
    expect(stage.gate.epoch).toBe(1);
  });

  it('a probe that fails closes the gate, even if a late answer has opened it meanwhile', () => {
    const stage = new Stage();
    stage.failed('a', 'tls_failed');
    stage.ask('probe');
    stage.until(1_000);
    expect(stage.take()).toEqual(['probe@125 probe']);
    stage.succeeded('late');
    expect(stage.gate.isOpen).toBe(true);
    stage.failed('probe');
    expect([stage.gate.isOpen, stage.gate.epoch]).toEqual([false, 2]);
  });

  it('a probe that is handed back is due at once for the next', () => {
    const stage = new Stage();
    stage.failed('a', 'tls_failed');
    stage.ask('b', 'c');
    stage.until(125);
    expect(stage.take()).toEqual(['b@125 probe']);
    stage.gate.handBack(stage.lane('b'));
    stage.until(126);
    expect(stage.take()).toEqual(['c@125 probe']);
  });

  it('another remote ID or credential version opens it', () => {
    const stage = new Stage();
    stage.failed('a', 'auth_failed');
    stage.ask('a');
    stage.gate.reset();
    stage.until(1);
    expect(stage.take()).toEqual(['a@1 probe']);
  });

  it('before the first answer with a credential one goes at a time, and three failures close it like any other', () => {
    const stage = new Stage(0.5, false);
    stage.ask('a', 'b', 'c');
    expect(stage.take()).toEqual(['a@0 probe']);
    stage.failed('a');
    stage.until(1);
    expect([stage.take(), stage.gate.isOpen]).toEqual([['b@1 probe'], true]);
    stage.succeeded('b');
    expect(stage.take()).toEqual(['c@1']);
    stage.gate.reset();
    for (const name of ['a', 'b', 'c']) stage.failed(name);
    expect(stage.gate.isOpen).toBe(false);
  });

  it('a pass ends with the epoch, so nothing goes out that was let through before the gate closed', () => {
    const stage = new Stage();
    stage.ask('a');
    expect(stage.gate.isGood(stage.lane('a').pass, stage.lane('a'))).toBe(true);
    stage.failed('b', 'tls_failed');
    stage.succeeded('b');
    expect(stage.gate.isGood(stage.lane('a').pass, stage.lane('a'))).toBe(false);
  });
});

describe('B69', () => {
  it.each([30_000, 60_000])(
    '50 lanes are told to wait %i ms: none is earlier, and they do not come back together',
    (ms) => {
      const stage = new Stage();
      for (const name of names(50)) stage.failed(name, 'throttled', ms);
      stage.ask(...names(50));
      stage.until(ms);
      expect(stage.take()).toEqual([]);
      stage.until(ms * 1.1);
      expect(stage.take()).toHaveLength(1);
      stage.succeeded('lane0');
      const opened = stage.nowMs;
      stage.until(opened + 10_000);
      const times = stage.take().map((entry) => Number(entry.split('@')[1]) - opened);
      expect(times).toHaveLength(49);
      const groups = [...new Set(times)].map((at) => [at, times.filter((time) => time === at).length]);
      expect(groups).toEqual([
        [0, 1],
        [50, 2],
        [100, 4],
        [150, 8],
        [200, 16],
        [250, 18],
      ]);
    },
  );

  it('gates of several nodes that are told the same are spread over a tenth of it, upward', () => {
    const dueAt = [0, 0.25, 0.5, 0.999].map((random) => {
      const gate = new Gate({ next: () => random });
      const waiter = { run: () => {} };
      gate.failed(waiter, 'throttled', 0, 60_000);
      gate.wait(waiter, 'withRecords');
      return Math.round(gate.dueAtMs ?? 0);
    });
    expect(dueAt).toEqual([60_000, 61_500, 63_000, 65_994]);
  });
});

describe('B70', () => {
  const closed = () => {
    const stage = new Stage();
    stage.failed('x', 'tls_failed');
    stage.ask(...names(100));
    stage.until(60_000);
    return stage;
  };

  it('of 100 that wait, one goes while the gate is half open, however long its answer takes', () => {
    expect(closed().take()).toEqual(['lane0@125 probe']);
  });

  it('when the probe fails the rest go on waiting, and the next of them probes', () => {
    const stage = closed();
    stage.take();
    stage.failed('lane0');
    stage.ask('lane0');
    stage.until(120_000);
    expect(stage.take()).toEqual(['lane1@60250 probe']);
  });

  it('when it succeeds the gate opens little by little, and closes for those that still wait', () => {
    const stage = closed();
    stage.take();
    stage.succeeded('lane0');
    stage.until(stage.nowMs + 100);
    expect(stage.take()).toHaveLength(7);
    for (const name of ['lane1', 'lane2', 'lane3']) stage.failed(name);
    stage.until(stage.nowMs + 60_000);
    expect(stage.take()).toEqual(['lane8@60225 probe']);
  });

  it('who comes while it opens waits behind those that are there', () => {
    const stage = closed();
    stage.take();
    stage.succeeded('lane0');
    stage.ask('new');
    stage.until(stage.nowMs + 10_000);
    const order = stage.take().map((entry) => entry.split('@')[0]);
    expect(order).toHaveLength(100);
    expect(order[99]).toBe('new');
  });
});

describe('slots', () => {
  it('are given in the order of asking, change live, and pass on what is not used', () => {
    const slots = new Slots();
    const taker = (name: string) => ({ name, hasSlot: false, run: () => {} });
    const [a, b, c, d] = [taker('a'), taker('b'), taker('c'), taker('d')];
    slots.limit = 1;
    expect([a, b, c, d].map((one) => slots.take(one))).toEqual([true, false, false, false]);
    slots.limit = 2;
    expect(slots.granted()).toEqual([b]);
    slots.leave(c);
    slots.limit = 1;
    slots.leave(a);
    expect(slots.granted()).toEqual([]);
    slots.leave(b);
    expect([slots.granted(), slots.inUse]).toEqual([[d], 1]);
  });
});
