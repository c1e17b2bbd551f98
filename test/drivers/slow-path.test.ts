/** The slow-path budget around real replicators: what it holds back, and what it never touches. */
import { batchMessage, createLayout, defaultCodecs, encodeBatch, IsthmusError, type Layout } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator, type Replicator, SlowPath } from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import { HandClock } from '../support/hand-clock.js';
import { until } from '../support/until.js';

const codecs = await defaultCodecs();
const nowMs = 1_700_000_000_000;
const coarse = () => createLayout({ segments: 1, buckets: 1, nowMs });
const fine = () => createLayout({ segments: 2, buckets: 4, nowMs });

function topicOf(cluster: string, layout: Layout, entries: number): MemoryTopic {
  const topic = new MemoryTopic({ cluster, layout });
  for (let i = 0; i < entries; i++) {
    const messages = Array.from({ length: 20 }, (_, m) =>
      batchMessage({ partitionKey: `key-${m}`, sequenceId: BigInt(i * 20 + m), payload: new Uint8Array(40) }),
    );
    const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: nowMs, partitionKey: 'key-0' };
    topic.append(0, encodeBatch(messages, { outer, compression: 'none', codecs }));
  }
  return topic;
}

const running: Replicator[] = [];
function replicate(from: MemoryTopic, to: MemoryTopic, slowPath: SlowPath, name: string): Replicator {
  const { cluster } = to;
  const ports = {
    source: from.source(cluster),
    remote: to.remote(from.cluster),
    cursors: from.cursors(cluster),
    slowPath,
  };
  const replicator = createReplicator(ports, { codecs, name, cursorDelayMs: 1 });
  running.push(replicator);
  replicator.start();
  return replicator;
}
afterEach(async () => {
  for (const replicator of running.splice(0)) await replicator.stop();
});

const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
const isThrottled = (replicator: Replicator) => replicator.status().segments[0]?.waitingFor.for === 'budget';

describe('the slow-path budget', () => {
  it('B53: holds re-batching back and never verbatim forwarding, and every waiting topic gets its turn', async () => {
    const clock = new HandClock();
    // Less than one entry a second: the first passes by debt, the next waits.
    const slowPath = new SlowPath({ bytesPerSecond: 500, burstBytes: 500, slots: 1 }, clock);
    const sources = Array.from({ length: 3 }, () => topicOf('a', coarse(), 3));
    const slow = sources.map((topic, i) => replicate(topic, topicOf('b', fine(), 0), slowPath, `topic ${i}`));
    const quick = topicOf('a', coarse(), 200);
    const verbatim = replicate(quick, topicOf('b', coarse(), 0), slowPath, 'quick');
    await until(() => verbatim.status().counters.verbatimEntries === 200);
    await until(() =>
      slow.every((replicator) => isThrottled(replicator) || replicator.status().counters.rebatchedEntries > 0),
    );
    const rebatched = () => slow.map((replicator) => replicator.status().counters.rebatchedEntries);
    // Somebody came first, and was served before the others stood in line.
    const first = rebatched();
    expect(first.reduce((sum, n) => sum + n)).toBe(1);
    for (let round = 0; round < 40 && rebatched().some((n) => n < 3); round++) {
      const before = rebatched();
      clock.advance(1000);
      await settle();
      const served = rebatched().map((n, i) => n - (first[i] ?? 0));
      expect(Math.max(...served) - Math.min(...served), 'round-robin').toBeLessThanOrEqual(1);
      expect(rebatched().reduce((sum, n, i) => sum + n - (before[i] ?? 0), 0)).toBeLessThanOrEqual(1);
    }
    expect(rebatched()).toEqual([3, 3, 3]);
    const { throttled } = slowPath.report();
    expect([...throttled.keys()].sort()).toEqual(sources.map((_, i) => `topic ${i} segment 0`));
    expect(throttled.get('topic 1 segment 0')?.totalMs).toBeGreaterThan(1000);
  });

  it('a replicator that stops while it waits leaves the line, and its entry stays for the next', async () => {
    const clock = new HandClock();
    const slowPath = new SlowPath({ bytesPerSecond: 1, burstBytes: 1, slots: 1 }, clock);
    const [first, second] = [topicOf('a', coarse(), 2), topicOf('a', coarse(), 1)];
    replicate(first, topicOf('b', fine(), 0), slowPath, 'first');
    const waiting = replicate(second, topicOf('b', fine(), 0), slowPath, 'second');
    await until(() => isThrottled(waiting));
    await waiting.stop();
    expect(slowPath.report().waiting).toBe(1);
    expect(second.backlog(0, 'b')).toBe(1);
  });

  it('a key in use is refused without harm to its owner, and one that is released is served no more', () => {
    const slowPath = new SlowPath({ slots: 1 }, new HandClock());
    const served: string[] = [];
    slowPath.acquire('holder', 10, () => served.push('holder'));
    expect(() => slowPath.acquire('holder', 10, () => served.push('again'))).toThrow(IsthmusError);
    for (const key of ['leaves', 'waits']) slowPath.acquire(key, 10, () => served.push(key));
    slowPath.release('leaves');
    slowPath.release('holder');
    expect(served).toEqual(['holder', 'waits']);
    expect(slowPath.report()).toMatchObject({ holding: 1, waiting: 0 });
    expect(() => new SlowPath({ bytesPerSecond: 0 })).toThrow(/0/);
  });
});
