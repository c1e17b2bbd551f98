/** Who leads, on a lock that the test plays: grants with an epoch each, a line, names, and connections that break. */
import { afterEach, describe, expect, it } from 'vitest';
import { type LeaderOptions, type Leadership, leaderships } from '../../../src/adapters/pulsar/leader.js';
import type {
  Closed,
  OpenProducerResult,
  Producer,
  ProducerEvents,
  ProducerOptions,
  PulsarClient,
  Refusal,
} from '../../../src/adapters/pulsar/protocol/index.js';
import { HandClock } from '../../support/hand-clock.js';
import { until } from '../../support/until.js';

const CUT: Closed = { type: 'disconnected', cause: 'lost', reason: 'reset' };

class LockProducer {
  ready = false;
  topicEpoch: bigint | undefined;
  lastHeardMs: number;

  constructor(
    private readonly lock: Lock,
    readonly options: ProducerOptions,
    readonly events: ProducerEvents,
  ) {
    this.lastHeardMs = lock.clock.now();
  }

  grant(epoch: bigint): this {
    this.ready = true;
    this.topicEpoch = epoch;
    return this;
  }

  async close(): Promise<void> {
    this.lock.drop(this);
  }
}

/** An exclusive producer's topic, as brokers have it. */
class Lock {
  epoch = -1n;
  holder: LockProducer | undefined;
  readonly line: LockProducer[] = [];
  readonly asked: string[] = [];
  /** What the next openings answer. */
  readonly refusals: Refusal[] = [];

  constructor(readonly clock: HandClock) {}

  readonly client = {
    openProducer: async (options: ProducerOptions, events: ProducerEvents): Promise<OpenProducerResult> => {
      const { access, topicEpoch, connection } = options;
      this.asked.push(`${options.name} ${access} ${topicEpoch ?? ''}`.trim());
      expect(connection).toBe('control');
      const refusal = this.refusals.shift() ?? this.refusalOf(options);
      if (refusal !== undefined) return refusal;
      const producer = new LockProducer(this, options, events);
      if (topicEpoch !== undefined) this.holder = producer.grant(topicEpoch);
      else if (this.holder === undefined) this.holder = producer.grant(++this.epoch);
      else this.line.push(producer);
      return { type: 'opened', producer: producer as Partial<Producer> as Producer };
    },
  } as Partial<PulsarClient> as PulsarClient;

  private refusalOf({ access, topicEpoch }: ProducerOptions): Refusal | undefined {
    const isFenced = access === 'exclusive' && (this.holder !== undefined || topicEpoch !== this.epoch);
    return isFenced ? { type: 'refused', code: 25, message: 'Topic epoch has already moved' } : undefined;
  }

  /** Gives the place of a producer to the next in line. */
  drop(producer: LockProducer): void {
    const place = this.line.indexOf(producer);
    if (place >= 0) this.line.splice(place, 1);
    if (this.holder !== producer) return;
    this.holder = this.line.shift()?.grant(++this.epoch);
    this.holder?.events.onReady?.(this.holder.topicEpoch);
  }

  /** Breaks the holder's connection. */
  cut(): void {
    const { holder } = this;
    if (holder === undefined) return;
    this.drop(holder);
    holder.events.onClosed(CUT);
  }
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A process that takes part; `turns` are those it has had, the last one maybe still going on. */
function contender(lock: Lock, name: string, options: Partial<LeaderOptions> = {}) {
  const stop = new AbortController();
  const turns: Leadership[] = [];
  const reasons: string[] = [];
  const { client, clock } = lock;
  const done = (async () => {
    for await (const turn of leaderships({ client, topic: 'lock', name, clock, ...options }, stop.signal)) {
      turns.push(turn);
      void turn.ended.then((reason) => reasons.push(reason));
    }
  })();
  const end = () => {
    stop.abort();
    return done;
  };
  ends.push(end);
  return { turns, reasons, end, terms: () => turns.map(({ term }) => term) };
}

describe('the lead', () => {
  it('goes to the first, and to the next in line when it is given up', async () => {
    const lock = new Lock(new HandClock());
    const a = contender(lock, 'a');
    await until(() => a.turns.length === 1);
    const b = contender(lock, 'b');
    await until(() => lock.line.length === 1);
    expect([a.terms(), b.terms()]).toEqual([[0], []]);
    expect(a.turns[0]?.holds()).toBe(true);
    await a.end();
    await until(() => b.turns.length === 1);
    expect([a.turns[0]?.holds(), b.turns[0]?.holds()]).toEqual([false, true]);
    expect([a.reasons, b.terms()]).toEqual([['this process gives up the lead'], [1]]);
    expect(lock.asked).toEqual(['a waitForExclusive', 'b waitForExclusive']);
  });

  it('is kept, under the same term, over a connection that breaks', async () => {
    const lock = new Lock(new HandClock());
    const a = contender(lock, 'a');
    await until(() => a.turns.length === 1);
    // The broker that takes over does not know the topic yet, and then the old connection is not gone for it.
    lock.refusals.push(
      { type: 'refused', code: 6, message: 'not served' },
      { type: 'refused', code: 16, message: 'name taken' },
    );
    lock.cut();
    for (let i = 0; i < 2; i++) {
      await until(() => lock.asked.length === i + 2 && lock.clock.awaited.length === 2);
      lock.clock.advance(250);
    }
    await until(() => lock.holder !== undefined);
    expect(lock.asked.slice(1)).toEqual(['a exclusive 0', 'a exclusive 0', 'a exclusive 0']);
    expect([a.terms(), a.reasons, a.turns[0]?.holds()]).toEqual([[0], [], true]);
  });

  it('is over when somebody else was granted it meanwhile, and the line is joined again', async () => {
    const lock = new Lock(new HandClock());
    const a = contender(lock, 'a');
    await until(() => a.turns.length === 1);
    const b = contender(lock, 'b');
    await until(() => lock.line.length === 1);
    lock.cut();
    await until(() => a.reasons.length === 1 && b.turns.length === 1);
    expect([a.reasons[0], b.terms()]).toEqual(['the lock is lost: Topic epoch has already moved (error 25)', [1]]);
    await until(() => lock.clock.awaited.includes(lock.clock.now() + 500));
    lock.clock.advance(500);
    await until(() => lock.line.length === 1);
    await b.end();
    await until(() => a.turns.length === 2);
    expect(a.terms()).toEqual([0, 2]);
  });

  it('is over when nothing is heard for the set time, and by the clock at once', async () => {
    const lock = new Lock(new HandClock());
    const a = contender(lock, 'a', { silenceMs: 5_000 });
    await until(() => a.turns.length === 1 && lock.clock.awaited.length === 1);
    lock.clock.advance(5_000);
    expect(a.turns[0]?.holds()).toBe(true);
    await until(() => lock.clock.awaited.length === 1);
    lock.clock.advance(1);
    // As a process sees it that was held up: before any timer has run.
    expect([a.turns[0]?.holds(), a.reasons]).toEqual([false, []]);
    lock.clock.advance(500);
    await until(() => a.reasons.length === 1);
    expect(a.reasons[0]).toMatch(/nothing was heard/);
  });

  it('goes on while something is heard', async () => {
    const lock = new Lock(new HandClock());
    const a = contender(lock, 'a', { silenceMs: 5_000 });
    await until(() => a.turns.length === 1);
    for (let i = 0; i < 20; i++) {
      await until(() => lock.clock.awaited.length === 1);
      if (lock.holder !== undefined) lock.holder.lastHeardMs = lock.clock.now();
      lock.clock.advance(1_000);
    }
    expect([a.turns[0]?.holds(), a.reasons]).toEqual([true, []]);
  });

  it('that cannot be asked for is asked for again, with a backoff, and the reason is told', async () => {
    const lock = new Lock(new HandClock());
    const failures: string[] = [];
    lock.refusals.push(
      { type: 'unreachable', reason: 'nobody there' },
      { type: 'refused', code: 4, message: 'no right' },
    );
    const a = contender(lock, 'a', { onFailure: (reason) => failures.push(reason) });
    for (const waited of [500, 1_000]) {
      await until(() => lock.clock.awaited.includes(lock.clock.now() + waited));
      lock.clock.advance(waited);
    }
    await until(() => a.turns.length === 1);
    expect(failures).toEqual(['nobody there', 'no right (error 4)']);
  });

  it('is not had by a place in line that broke', async () => {
    const lock = new Lock(new HandClock());
    const a = contender(lock, 'a');
    await until(() => a.turns.length === 1);
    const failures: string[] = [];
    const b = contender(lock, 'b', { onFailure: (reason) => failures.push(reason) });
    await until(() => lock.line.length === 1);
    lock.line.shift()?.events.onClosed(CUT);
    await until(() => lock.clock.awaited.includes(lock.clock.now() + 500));
    expect([failures, b.turns]).toEqual([['reset'], []]);
  });

  it.each([999, 29_001, 1.5])('refuses a silence of %s ms', async (silenceMs) => {
    const { client } = new Lock(new HandClock());
    const turns = leaderships({ client, topic: 'lock', name: 'a', silenceMs }, new AbortController().signal);
    await expect(turns[Symbol.asyncIterator]().next()).rejects.toThrow(/silenceMs/);
  });
});
