/**
 * What the replicator of a topic decides around the machines of its segments: where it begins, in what order segments
 * start, what it says to the GC gate, how it is paused, left and held back.
 */
import {
  applyShape,
  createLayout,
  defaultCodecs,
  encodeMessage,
  type Layout,
  parseEntry,
  pruneSegment,
  shapeOf,
  splitSegment,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import {
  createReplicator,
  RemoteRate,
  type Replicator,
  type ReplicatorOptions,
  type ReplicatorPorts,
} from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import type { EntrySource, RemoteTopic } from '../../src/ports/index.js';
import { HandClock } from '../support/hand-clock.js';
import { batchOf } from '../support/rebatch.js';
import { intercepted } from '../support/remotes.js';
import { until } from '../support/until.js';

const codecs = await defaultCodecs();
const nowMs = 1_700_000_000_000;
const layoutOf = (segments: number, buckets = 1) => createLayout({ segments, buckets, nowMs });
const split = (segmentId: number) => (layout: Layout) => splitSegment(layout, segmentId, { nowMs });

/** Stores single messages without keys, whose bodies are numbers. */
function produce(topic: MemoryTopic, segmentId: number, ...numbers: readonly number[]): void {
  for (const number of numbers) {
    const outer = { producerName: 'p', sequenceId: BigInt(number), publishTimeMs: nowMs };
    expect(topic.append(segmentId, encodeMessage(Buffer.from(String(number)), { outer }))).not.toBe('sealed');
  }
}

/** The numbers that a topic holds, in the order of its segments. */
function stored(topic: MemoryTopic): number[] {
  const ids = [...topic.layout.segments.keys()].sort((a, b) => a - b);
  return ids.flatMap((id) =>
    topic.entries(id).map(({ bytes }) => Number(Buffer.from(parseEntry(bytes).payload).toString())),
  );
}

interface Given {
  readonly ports?: Partial<ReplicatorPorts>;
  readonly options?: Partial<ReplicatorOptions>;
  readonly remote?: RemoteTopic;
}

const running: Replicator[] = [];
function replicate(
  a: MemoryTopic,
  b: MemoryTopic,
  { ports = {}, options = {}, remote = b.remote('a') }: Given = {},
): Replicator {
  const replicator = createReplicator(
    { source: a.source('b'), remote, cursors: a.cursors('b'), ...ports },
    { codecs, retryInitialMs: 1, cursorDelayMs: 1, ...options },
  );
  running.push(replicator);
  replicator.start();
  return replicator;
}
afterEach(async () => {
  for (const replicator of running.splice(0)) await replicator.stop();
});

/** Gives everything that is under way the time to happen. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
const caughtUp = (a: MemoryTopic) => [...a.layout.segments.keys()].every((id) => a.backlog(id, 'b') === 0);

function pair(source: Layout = layoutOf(1), remote: Layout = layoutOf(1)): [MemoryTopic, MemoryTopic] {
  return [new MemoryTopic({ cluster: 'a', layout: source }), new MemoryTopic({ cluster: 'b', layout: remote })];
}

describe('where replication begins', () => {
  it.each([
    ['earliest', [1, 2, 3, 4, 5]],
    ['latest', [3, 4, 5]],
    [undefined, [1, 2, 3, 4, 5]],
  ] as const)('startAt %s; segments that appear later begin with their first entry', async (startAt, expected) => {
    const [a, b] = pair();
    produce(a, 0, 1);
    a.change(split(0));
    produce(a, 1, 2);
    const replicator = replicate(a, b, { options: startAt === undefined ? {} : { startAt } });
    await until(
      () => replicator.status().segments.length === 3 && replicator.status().segments[1]?.state === 'running',
    );
    await settle();
    produce(a, 1, 3);
    a.change(split(1));
    produce(a, 3, 4);
    produce(a, 4, 5);
    await until(() => stored(b).length === expected.length && caughtUp(a));
    expect(stored(b)).toEqual(expected);
  });

  it('latest is for a remote that is new: after a restart it goes on at the cursor', async () => {
    const [a, b] = pair();
    const first = replicate(a, b, { options: { startAt: 'latest' } });
    await until(() => first.status().segments[0]?.state === 'running');
    produce(a, 0, 1);
    await until(() => stored(b).length === 1);
    await first.stop();
    produce(a, 0, 2);
    replicate(a, b, { options: { startAt: 'latest' } });
    await until(() => stored(b).length === 2);
    expect(stored(b)).toEqual([1, 2]);
  });

  it('a remote that leaves has no cursors and no subscription, and begins anew when it comes again', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    const first = replicate(a, b);
    await until(() => stored(b).length === 1 && caughtUp(a));
    await first.leave();
    expect([...(await a.cursors('b').load())]).toEqual([]);
    expect(first.status().state).toBe('stopped');
    produce(a, 0, 2);
    // Nobody holds the entries back any more.
    expect(a.trim(0, { ledgerId: 0n, entryId: 1n })).toBe(2);
    produce(a, 0, 3);
    replicate(a, b, { options: { startAt: 'earliest' } });
    await until(() => stored(b).includes(3));
    expect(stored(b)).toEqual([1, 3]);
  });
});

describe('the parent-drain gate (B32)', () => {
  /** A remote that takes nothing from one source segment until it is let. */
  function blocked(b: MemoryTopic, sourceSegmentId: number): { remote: RemoteTopic; let: () => void } {
    let isBlocked = true;
    const real = b.remote('a');
    const remote: RemoteTopic = {
      ...real,
      open: async (from, segmentId, onResult) =>
        from === sourceSegmentId && isBlocked
          ? { type: 'unavailable', reason: 'blocked' }
          : real.open(from, segmentId, onResult),
    };
    return {
      remote,
      let: () => {
        isBlocked = false;
      },
    };
  }
  const waiting = (replicator: Replicator) =>
    replicator
      .status()
      .segments.filter(({ waitingFor }) => waitingFor.for === 'parents')
      .map(({ segmentId }) => segmentId);

  it('a merge waits for all its parents, also for one that has nothing', async () => {
    const [a, b] = pair(layoutOf(2));
    produce(a, 1, 1);
    a.change((layout) => applyShape(layout, shapeOf(layoutOf(1)), { nowMs }));
    produce(a, 2, 2);
    const { remote, let: unblock } = blocked(b, 1);
    const replicator = replicate(a, b, { remote });
    await until(() => replicator.hasDrained(0) === true);
    await settle();
    expect(waiting(replicator)).toEqual([2]);
    unblock();
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual([1, 2]);
  });

  it('layouts that are skipped over: a split of a split comes at once, and its children wait for their own parents', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    const { remote, let: unblock } = blocked(b, 0);
    const source = a.source('b');
    const layouts: Layout[] = [a.layout];
    a.change(split(0));
    produce(a, 1, 2);
    a.change(split(1));
    produce(a, 3, 3);
    layouts.push(a.layout);
    const skipping: EntrySource = {
      ...source,
      async *layouts(signal) {
        for (const layout of layouts) {
          yield layout;
          await settle();
        }
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    };
    const replicator = replicate(a, b, { remote, ports: { source: skipping } });
    await until(() => replicator.status().segments.length === 5);
    await settle();
    expect(waiting(replicator)).toEqual([1, 2, 3, 4]);
    unblock();
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual([1, 2, 3]);
  });

  it('a parent that was pruned counts as drained', async () => {
    const [a, b] = pair();
    a.change(split(0));
    a.change((layout) => pruneSegment(layout, 0));
    produce(a, 1, 1);
    replicate(a, b);
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual([1]);
  });

  it('one that is pruned while its children wait lets them go: what is gone cannot come before them any more', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    const { remote } = blocked(b, 0);
    const replicator = replicate(a, b, { remote });
    a.change(split(0));
    produce(a, 1, 2);
    await until(() => waiting(replicator).length === 2);
    a.change((layout) => pruneSegment(layout, 0));
    await until(() => stored(b).length === 1);
    expect(stored(b)).toEqual([2]);
  });

  it('a cursor that waits at the end learns of the seal later, and drains', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    const replicator = replicate(a, b);
    await until(() => caughtUp(a));
    expect(replicator.hasDrained(0)).toBe(false);
    a.change(split(0));
    produce(a, 1, 2);
    await until(() => replicator.hasDrained(0) === true && caughtUp(a));
    expect(stored(b)).toEqual([1, 2]);
    expect(replicator.status().pinnedSegments).toEqual([]);
  });

  it('a drained segment stays so, and is acknowledged again when that was lost with the process', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    a.change(split(0));
    const source = a.source('b');
    const first = replicate(a, b, { ports: { source: { ...source, acknowledge: async () => undefined } } });
    await until(() => first.hasDrained(0) === true);
    await first.stop();
    expect(a.backlog(0, 'b')).toBe(1);
    const second = replicate(a, b);
    await until(() => caughtUp(a));
    expect(second.hasDrained(0)).toBe(true);
    expect(stored(b)).toEqual([1]);
  });

  it('R15: a drained cursor is claimed at every start, so that a process before cannot write it undrained any more', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    a.change(split(0));
    const before = { session: 1, drained: false, skipped: [], checkpoints: new Map() };
    const first = replicate(a, b);
    await until(() => first.hasDrained(0) === true);
    await first.stop();
    const second = replicate(a, b);
    await until(() => second.hasDrained(0) === true);
    const cursors = a.cursors('b');
    expect((await cursors.load()).get(0)).toMatchObject({ session: 2, drained: true });
    expect(await cursors.write(new Map([[0, before]]))).toEqual({ type: 'fenced', session: 2 });
  });
});

describe('what it says to the GC gate', () => {
  it('unknown before the cursors are loaded and for segments that it does not know, else whether it has drained', async () => {
    const [a, b] = pair();
    let load: () => void = () => undefined;
    const cursors = a.cursors('b');
    const loading = new Promise<void>((resolve) => {
      load = resolve;
    });
    const late = { ...cursors, load: () => loading.then(() => cursors.load()) };
    const replicator = replicate(a, b, { ports: { cursors: late } });
    await settle();
    expect(replicator.hasDrained(0)).toBeUndefined();
    load();
    await until(() => replicator.hasDrained(0) === false);
    expect(replicator.hasDrained(7)).toBeUndefined();
    a.change(split(0));
    await until(() => replicator.hasDrained(0) === true);
  });

  it('B04: a segment that has stopped still says what is left of it', async () => {
    const [a, b] = pair();
    produce(a, 0, 1, 2, 3);
    const pinned: RemoteTopic = {
      ...b.remote('a'),
      open: async () => ({ type: 'unauthorized', reason: 'no rights' }),
    };
    const replicator = replicate(a, b, { remote: pinned, options: { backlogDelayMs: 1 } });
    await until(() => replicator.status().segments[0]?.waitingFor.for === 'operator');
    await until(() => replicator.status().segments[0]?.backlog === 3);
  });
});

describe('held back', () => {
  it('a paused replicator reads and sends nothing, and goes on at its place', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    const replicator = replicate(a, b);
    await until(() => stored(b).length === 1);
    replicator.pause();
    produce(a, 0, 2, 3);
    a.change(split(0));
    await settle();
    expect(stored(b)).toEqual([1]);
    expect(replicator.status()).toMatchObject({
      state: 'paused',
      segments: [{ waitingFor: { for: 'operator', reason: 'paused' } }, { waitingFor: { for: 'parents' } }, {}],
    });
    replicator.resume();
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual([1, 2, 3]);
    expect(replicator.status().state).toBe('running');
  });

  it('one that is paused before it starts takes nothing up before it is resumed', async () => {
    const [a, b] = pair();
    produce(a, 0, 1);
    const replicator = createReplicator(
      { source: a.source('b'), remote: b.remote('a'), cursors: a.cursors('b') },
      { codecs, cursorDelayMs: 1 },
    );
    running.push(replicator);
    replicator.pause();
    replicator.start();
    await until(() => replicator.status().segments.length === 1);
    await settle();
    expect(stored(b)).toEqual([]);
    replicator.resume();
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual([1]);
  });

  it('B18: the rate limit holds both paths, and what it holds always has a timer', async () => {
    const clock = new HandClock();
    const rate = new RemoteRate({ messagesPerSecond: 20 }, clock);
    const [a, b] = pair(layoutOf(1), layoutOf(2));
    const [c, d] = [
      new MemoryTopic({ cluster: 'c', layout: layoutOf(1) }),
      new MemoryTopic({ cluster: 'b', layout: layoutOf(1) }),
    ];
    for (let i = 0; i < 30; i++) {
      a.append(0, { head: new Uint8Array(), payload: batchOf(['a', 'b', 'c', 'd']).bytes });
      produce(c, 0, i);
    }
    const ports = { rate, clock };
    const options = { name: 'slow', cursorDelayMs: 0 };
    const slow = replicate(a, b, { ports, options });
    const quick = createReplicator(
      { source: c.source('b'), remote: d.remote('c'), cursors: c.cursors('b'), ...ports },
      { codecs, name: 'quick', cursorDelayMs: 0 },
    );
    running.push(quick);
    quick.start();
    const sent = () => slow.status().counters.rebatchedEntries * 4 + quick.status().counters.verbatimEntries;
    await until(() => rate.waiting === 2);
    let seconds = 0;
    for (; sent() < 150 && seconds < 60; seconds++) {
      const before = sent();
      for (let tenth = 0; tenth < 10; tenth++) {
        if (rate.waiting > 0) {
          expect(clock.awaited.some((atMs) => atMs <= clock.now() + 1000)).toBe(true);
          const waits = [slow, quick].map((one) => one.status().segments[0]?.waitingFor.for);
          expect(waits).toContain('rateLimit');
        }
        clock.advance(100);
        await settle();
      }
      // A read may bring an entry more than it was told, which is charged.
      expect(sent() - before).toBeLessThanOrEqual(20 + 4);
    }
    expect(sent()).toBe(150);
    expect(seconds).toBeGreaterThanOrEqual(5);
    rate.configure({});
    produce(c, 0, 30, 31);
    await until(() => quick.status().counters.verbatimEntries === 32);
  });
});

describe('B33: the remote segment is gone', () => {
  it('1,000 sends are in flight to it: it is not opened again, and each goes once where the new layout says, in order', async () => {
    const [a, b] = pair();
    const count = 1000;
    produce(a, 0, ...Array.from({ length: count }, (_, i) => i));
    const opened: number[] = [];
    const real = b.remote('a');
    const counting: RemoteTopic = {
      ...real,
      open: (from, segmentId, onResult) => {
        opened.push(segmentId);
        return real.open(from, segmentId, onResult);
      },
    };
    let sends = 0;
    const sealing = intercepted(counting, () => {
      if (++sends === 100) b.change(split(0));
      return undefined;
    });
    const replicator = replicate(a, b, { remote: sealing, options: { maxReadEntries: count, windowEntries: count } });
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual(Array.from({ length: count }, (_, i) => i));
    expect(opened.filter((id) => id === 0)).toEqual([0]);
    expect(opened.length).toBeLessThanOrEqual(3);
    expect(replicator.status().counters).toMatchObject({ verbatimEntries: count, duplicates: {} });
  });

  it('stopping while 200 wait for a remote that is down opens nothing and ends at once', async () => {
    const [a, b] = pair();
    produce(a, 0, ...Array.from({ length: 200 }, (_, i) => i));
    let opened = 0;
    const down: RemoteTopic = {
      ...b.remote('a'),
      open: async () => {
        opened++;
        return { type: 'unavailable', reason: 'down' };
      },
    };
    const replicator = replicate(a, b, { remote: down, options: { retryInitialMs: 3_600_000, retryMaxMs: 3_600_000 } });
    await until(() => opened === 1);
    await replicator.stop();
    expect(opened).toBe(1);
    expect(stored(b)).toEqual([]);
    expect(a.backlog(0, 'b')).toBe(200);
  });
});

describe('B18: a failure that is over leaves nothing behind', () => {
  it('the source rejects once at every call, and all is replicated all the same', async () => {
    const [a, b] = pair();
    produce(a, 0, 1, 2, 3);
    a.change(split(0));
    produce(a, 1, 4);
    const source = a.source('b');
    const failing = new Set(['read', 'lastPosition', 'acknowledged', 'acknowledge', 'layouts', 'backlog']);
    const once = <Args extends readonly unknown[], Result>(name: string, call: (...args: Args) => Promise<Result>) => {
      return async (...args: Args): Promise<Result> => {
        if (failing.delete(name)) throw new Error(`${name} failed`);
        return call(...args);
      };
    };
    const flaky: EntrySource = {
      ...source,
      read: once('read', source.read),
      lastPosition: once('lastPosition', source.lastPosition),
      acknowledged: once('acknowledged', source.acknowledged),
      acknowledge: once('acknowledge', source.acknowledge),
      backlog: once('backlog', source.backlog),
      async *layouts(signal) {
        if (failing.delete('layouts')) throw new Error('layouts failed');
        yield* source.layouts(signal);
      },
    };
    const cursors = a.cursors('b');
    const flakyCursors = { load: once('load', cursors.load), write: once('write', cursors.write) };
    failing.add('load').add('write');
    const clock = new HandClock();
    const replicator = replicate(a, b, { ports: { source: flaky, cursors: flakyCursors, clock } });
    for (let i = 0; i < 20 && stored(b).length < 4; i++) {
      await settle();
      clock.advance(1000);
    }
    await until(() => {
      clock.advance(1000);
      return replicator.hasDrained(0) === true && caughtUp(a);
    });
    expect(stored(b)).toEqual([1, 2, 3, 4]);
    expect([...failing]).toEqual([]);
    expect(replicator.status().counters.duplicates).toEqual({});
  });
});
