/**
 * Processes that share the segments of a topic: each segment is one process's at a time, whoever takes it over goes on
 * at the cursor of the one before, and gates open for what another process has drained.
 */
import {
  createLayout,
  defaultCodecs,
  encodeMessage,
  type Layout,
  parseEntry,
  pruneSegment,
  splitSegment,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator, type Replicator } from 'isthmus/drivers';
import { afterEach, expect, it } from 'vitest';
import type { EntrySource, SegmentClaim } from '../../src/ports/index.js';
import { until } from '../support/until.js';

const codecs = await defaultCodecs();
const nowMs = 1_700_000_000_000;
const split = (segmentId: number) => (layout: Layout) => splitSegment(layout, segmentId, { nowMs });

/** Who has which segment: first come, first served, as exclusive consumers of a broker are. */
class Claims {
  private readonly holders = new Map<number, { readonly by: string; readonly end: (how: 'lost' | 'asked') => void }>();

  holder(segmentId: number): string | undefined {
    return this.holders.get(segmentId)?.by;
  }

  of(process: string, source: EntrySource): EntrySource {
    return {
      ...source,
      claim: async (segmentId, signal) => {
        while (this.holders.has(segmentId)) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          signal.throwIfAborted();
        }
        return this.grant(process, segmentId);
      },
    };
  }

  private grant(by: string, segmentId: number): SegmentClaim {
    const ending = new Promise<'lost' | 'asked'>((end) => this.holders.set(segmentId, { by, end }));
    const release = async () => {
      if (this.holder(segmentId) === by) this.holders.delete(segmentId);
    };
    return { ending, release };
  }

  /** The process is asked to give a segment back, or has lost it to whoever comes. */
  end(segmentId: number, how: 'lost' | 'asked'): void {
    this.holders.get(segmentId)?.end(how);
  }
}

const running: Replicator[] = [];
afterEach(async () => {
  for (const replicator of running.splice(0)) await replicator.stop();
});

function pair(): [MemoryTopic, MemoryTopic, Claims] {
  const layout = createLayout({ segments: 1, buckets: 1, nowMs });
  return [new MemoryTopic({ cluster: 'a', layout }), new MemoryTopic({ cluster: 'b', layout }), new Claims()];
}

function processOf(
  name: string,
  [a, b, claims]: readonly [MemoryTopic, MemoryTopic, Claims],
  source = a.source('b'),
): Replicator {
  const ports = { source: claims.of(name, source), remote: b.remote('a'), cursors: a.cursors('b') };
  const options = { codecs, retryInitialMs: 1, cursorDelayMs: 1, drainDelayMs: 1 };
  const replicator = createReplicator(ports, options);
  running.push(replicator);
  replicator.start();
  return replicator;
}

function produce(topic: MemoryTopic, segmentId: number, ...numbers: readonly number[]): void {
  for (const number of numbers) {
    const outer = { producerName: 'p', sequenceId: BigInt(number), publishTimeMs: nowMs };
    topic.append(segmentId, encodeMessage(Buffer.from(String(number)), { outer }));
  }
}

function stored(topic: MemoryTopic): number[] {
  return [...topic.layout.segments.keys()].flatMap((id) =>
    topic.entries(id).map(({ bytes }) => Number(Buffer.from(parseEntry(bytes).payload).toString())),
  );
}

it('one has a segment, the other says that it has not, and takes over where the first has come when it gives it back', async () => {
  const world = pair();
  const [a, b, claims] = world;
  const first = processOf('first', world);
  await until(() => claims.holder(0) === 'first');
  const second = processOf('second', world);
  produce(a, 0, 1, 2);
  await until(() => stored(b).length === 2);
  await until(() => second.status().segments.length === 1);
  expect(second.status().segments[0]).toMatchObject({ segmentId: 0, waitingFor: { for: 'claim' } });
  claims.end(0, 'asked');
  await until(() => claims.holder(0) === 'second');
  produce(a, 0, 3);
  await until(() => stored(b).length === 3);
  expect(stored(b)).toEqual([1, 2, 3]);
  expect(first.status().segments[0]).toMatchObject({ waitingFor: { for: 'claim' } });
  expect((await a.cursors('b').load()).get(0)?.session).toBe(2);
  expect(second.status().counters.duplicates).toEqual({});
});

it('what was lost in the middle of sends is found stored by the other, and what was not is sent once', async () => {
  const world = pair();
  const [a, b, claims] = world;
  processOf('first', world);
  await until(() => claims.holder(0) === 'first');
  processOf('second', world);
  const numbers = Array.from({ length: 500 }, (_, i) => i);
  for (const number of numbers) {
    produce(a, 0, number);
    if (number % 100 === 50) claims.end(0, 'lost');
    if (number % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await until(() => a.backlog(0, 'b') === 0);
  expect(stored(b)).toEqual(numbers);
});

it('the parent-drain gate opens for what another process has drained', async () => {
  const world = pair();
  const [a, b, claims] = world;
  const first = processOf('first', world);
  await until(() => claims.holder(0) === 'first');
  first.pause();
  produce(a, 0, 1);
  a.change(split(0));
  produce(a, 1, 2);
  const second = processOf('second', world);
  await until(() => second.status().segments.length === 3);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(stored(b)).toEqual([]);
  first.resume();
  await until(() => stored(b).length === 2);
  expect(stored(b)).toEqual([1, 2]);
});

it('a segment that is pruned is nobody’s to wait for any more', async () => {
  const world = pair();
  const [a, b, claims] = world;
  const first = processOf('first', world);
  await until(() => claims.holder(0) === 'first');
  const second = processOf('second', world);
  produce(a, 0, 1);
  a.change(split(0));
  await until(() => first.hasDrained(0) === true && second.hasDrained(0) === true);
  a.change((layout) => pruneSegment(layout, 0));
  await until(() => [first, second].every((one) => one.status().segments.every(({ segmentId }) => segmentId !== 0)));
  expect(stored(b)).toEqual([1]);
});

it('a drained segment is kept until its source counts nothing of it any more, whatever became of the last acknowledgement', async () => {
  const world = pair();
  const [a, , claims] = world;
  let refusals = 2;
  let markers = 2;
  const plain = a.source('b');
  const source: EntrySource = {
    ...plain,
    acknowledge: async (segmentId, position) => {
      if (segmentId === 0 && refusals-- > 0) throw new Error('the connection was lost');
      return plain.acknowledge(segmentId, position);
    },
    // What nobody settles, such as markers behind the last entry, goes as the source finds out about it.
    backlog: async (segmentId) => (await plain.backlog(segmentId)) + (segmentId === 0 ? Math.max(0, markers--) : 0),
  };
  const first = processOf('first', world, source);
  await until(() => claims.holder(0) === 'first');
  produce(a, 0, 1);
  a.change(split(0));
  await until(() => first.hasDrained(0) === true);
  expect(claims.holder(0)).toBe('first');
  await until(() => claims.holder(0) === undefined);
  expect(a.backlog(0, 'b')).toBe(0);
  expect(markers).toBeLessThanOrEqual(0);
  expect(refusals).toBeLessThanOrEqual(0);
});
