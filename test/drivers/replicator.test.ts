/**
 * The first replicator on memory topics: both paths, order across seals on either side, gates, holds, loops. Every
 * check reads the destination's entries as a consumer would.
 */
import {
  applyShape,
  batchMessage,
  bucketIndex,
  createLayout,
  defaultCodecs,
  encodeBatch,
  hashKey,
  type Layout,
  parseEntry,
  readBatch,
  shapeOf,
  splitSegment,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator, type Replicator } from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import type { RemoteTopic, SendResult } from '../../src/ports/index.js';
import { intercepted, losingAnswers } from '../support/remotes.js';
import { until } from '../support/until.js';

const codecs = await defaultCodecs();
const nowMs = 1_700_000_000_000;
const KEYS = Array.from({ length: 40 }, (_, i) => `key-${i}`);

function topicOf(cluster: string, layout: Layout): MemoryTopic {
  return new MemoryTopic({ cluster, layout });
}

/** Writes one batch for each bucket of each segment in which the keys lie; values are `origin:number`. */
function produce(topic: MemoryTopic, from: number, count: number, keys: readonly string[] = KEYS): void {
  const batches = new Map<string, { segmentId: number; messages: ReturnType<typeof batchMessage>[] }>();
  for (let i = from; i < from + count; i++) {
    const key = keys[i % keys.length] as string;
    const hash = hashKey(key);
    const segment = topic.route(hash >>> 16);
    const place = `${segment.segmentId}/${bucketIndex(segment.entryBucketSplits, hash & 0xffff)}`;
    const batch = batches.get(place) ?? { segmentId: segment.segmentId, messages: [] };
    batches.set(place, batch);
    const payload = new TextEncoder().encode(`${topic.cluster}:${i}`);
    batch.messages.push(batchMessage({ partitionKey: key, sequenceId: BigInt(i), payload }));
  }
  for (const { segmentId, messages } of batches.values()) {
    const outer = {
      producerName: topic.cluster,
      sequenceId: 0n,
      publishTimeMs: nowMs,
      partitionKey: messages[0]?.partitionKey,
    };
    expect(topic.append(segmentId, encodeBatch(messages, { outer, compression: 'lz4', codecs }))).not.toBe('sealed');
  }
}

/** The values of each key in the order in which a consumer of the topic sees them, origin by origin. */
function consume(topic: MemoryTopic): Map<string, string[]> {
  const seen = new Map<string, string[]>();
  const segments = [...topic.layout.segments.values()].sort((a, b) => a.segmentId - b.segmentId);
  for (const { segmentId, range, entryBucketSplits } of segments) {
    for (const { bytes } of topic.entries(segmentId)) {
      const entry = parseEntry(bytes);
      const origin = entry.metadata.replicatedFrom ?? topic.cluster;
      const buckets = new Set<number>();
      for (const { partitionKey = '', payload, segmentHash = -1, bucketHash } of readBatch(entry, codecs)) {
        expect(segmentHash, 'affinity: in its segment').toBeGreaterThanOrEqual(range.start);
        expect(segmentHash).toBeLessThanOrEqual(range.end);
        buckets.add(bucketIndex(entryBucketSplits, bucketHash));
        const place = `${origin} ${partitionKey}`;
        seen.set(place, [...(seen.get(place) ?? []), new TextDecoder().decode(payload)]);
      }
      expect(buckets.size, 'affinity: in one bucket').toBe(1);
    }
  }
  return seen;
}

function expected(origin: string, count: number): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (let i = 0; i < count; i++) {
    const place = `${origin} ${KEYS[i % KEYS.length]}`;
    values.set(place, [...(values.get(place) ?? []), `${origin}:${i}`]);
  }
  return values;
}

const running: Replicator[] = [];
function replicate(from: MemoryTopic, to: MemoryTopic, remote: RemoteTopic = to.remote(from.cluster)): Replicator {
  const replicator = createReplicator(
    { source: from.source(to.cluster), remote, cursors: from.cursors(to.cluster) },
    { codecs, retryInitialMs: 1, maxReadEntries: 7, cursorDelayMs: 1 },
  );
  running.push(replicator);
  replicator.start();
  return replicator;
}
afterEach(async () => {
  for (const replicator of running.splice(0)) await replicator.stop();
});

const drained = (from: MemoryTopic, to: MemoryTopic) => () =>
  [...from.layout.segments.keys()].every((segmentId) => from.backlog(segmentId, to.cluster) === 0);

const coarse = () => createLayout({ segments: 1, buckets: 1, nowMs });
const fine = () => createLayout({ segments: 4, buckets: 4, nowMs });

describe('both paths', () => {
  it('forwards verbatim towards a coarser layout and re-batches towards a finer one', async () => {
    for (const { source, target, verbatim } of [
      { source: fine(), target: coarse(), verbatim: true },
      { source: coarse(), target: fine(), verbatim: false },
    ]) {
      const a = topicOf('a', source);
      const b = topicOf('b', target);
      produce(a, 0, 400);
      const replicator = replicate(a, b);
      await until(drained(a, b));
      expect(consume(b)).toEqual(expected('a', 400));
      const { counters } = replicator.status();
      expect(counters.verbatimEntries > 0).toBe(verbatim);
      expect(counters.rebatchedEntries > 0).toBe(!verbatim);
    }
  });

  it('both directions at once: no message returns to its origin', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', fine());
    const [there, back] = [replicate(a, b), replicate(b, a)];
    produce(a, 0, 200);
    produce(b, 0, 200);
    await until(() => drained(a, b)() && drained(b, a)());
    const all = new Map([...expected('a', 200), ...expected('b', 200)]);
    expect(consume(a)).toEqual(all);
    expect(consume(b)).toEqual(all);
    expect(there.status().counters.skipped.replicated).toBeGreaterThan(0);
    expect(back.status().counters.skipped.replicated).toBeGreaterThan(0);
  });
});

describe('layouts that change under way', () => {
  it('a destination sealed between two parts: exactly the rest of the entry is sent again', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', createLayout({ segments: 2, buckets: 2, nowMs }));
    produce(a, 0, 100);
    let sends = 0;
    const sealing = intercepted(b.remote('a'), (segmentId) => {
      // Three of the four parts are in when the last one's segment is split.
      if (++sends === 4) b.change((layout) => splitSegment(layout, segmentId, { nowMs }));
      return undefined;
    });
    replicate(a, b, sealing);
    await until(drained(a, b));
    expect(consume(b)).toEqual(expected('a', 100));
  });

  it('the parent-drain gate: a child waits for its parents, so that order holds across a split of the source', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', fine());
    produce(a, 0, 200);
    let isDown = true;
    const down: SendResult = { type: 'unavailable', reason: 'down' };
    const replicator = replicate(
      a,
      b,
      intercepted(b.remote('a'), () => (isDown ? down : undefined)),
    );
    await until(() => replicator.status().segments[0]?.lanes[0]?.failure === 'unavailable: down');
    a.change((layout) => splitSegment(layout, 0, { nowMs }));
    produce(a, 200, 200);
    await until(() => replicator.status().segments.length === 3);
    expect(
      replicator
        .status()
        .segments.map(({ waitingFor }) => waitingFor)
        .slice(1),
    ).toEqual([{ for: 'parents' }, { for: 'parents' }]);
    isDown = false;
    await until(drained(a, b));
    expect(consume(b)).toEqual(expected('a', 400));
  });

  it('a replicator that is stopped and made anew goes on at the cursor', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', fine());
    produce(a, 0, 200);
    const first = replicate(a, b);
    await until(() => first.status().counters.rebatchedEntries > 0);
    await first.stop();
    produce(a, 200, 200);
    replicate(a, b);
    await until(drained(a, b));
    expect(consume(b)).toEqual(expected('a', 400));
  });

  it('an answer that was lost: the send is repeated at the same position and the destination knows it', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', fine());
    produce(a, 0, 100);
    let sends = 0;
    let lost = 0;
    const losing = losingAnswers(b.remote('a'), () => ++sends % 30 === 7 && lost++ < 3);
    const replicator = replicate(a, b, losing);
    await until(drained(a, b));
    expect(consume(b)).toEqual(expected('a', 100));
    expect(replicator.status().counters.duplicates.ambiguous).toBeGreaterThan(0);
  });
});

describe('R5: what can be neither forwarded nor opened is held', () => {
  /** A batch whose outer metadata says that it is encrypted. */
  function produceEncrypted(topic: MemoryTopic): void {
    const messages = ['key-0', 'key-1'].map((partitionKey, i) =>
      batchMessage({ partitionKey, sequenceId: BigInt(i), payload: new Uint8Array([i]) }),
    );
    const encryptionKeys = [{ key: 'k', value: new Uint8Array([1]) }];
    const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: nowMs, encryptionKeys };
    topic.append(0, encodeBatch(messages, { outer, compression: 'none', codecs }));
  }

  it('until the remote layout lets it pass', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', fine());
    produceEncrypted(a);
    produce(a, 0, 40);
    const replicator = replicate(a, b);
    await until(() => replicator.status().segments[0]?.held !== undefined);
    expect(replicator.status().segments[0]?.held).toMatchObject({
      reason: 'encryptedBatch',
      position: { ledgerId: 0n, entryId: 0n },
    });
    expect(a.backlog(0, 'b'), 'nothing behind it is sent').toBe(2);
    b.change((layout) => applyShape(layout, shapeOf(coarse()), { nowMs }));
    await until(drained(a, b));
    expect(replicator.status().counters.verbatimEntries).toBeGreaterThan(0);
  });

  it('or an operator skips it, which is counted', async () => {
    const a = topicOf('a', coarse());
    const b = topicOf('b', fine());
    produceEncrypted(a);
    produce(a, 0, 40);
    const replicator = replicate(a, b);
    await until(() => replicator.status().segments[0]?.held !== undefined);
    expect(replicator.skip(0, { ledgerId: 0n, entryId: 7n }), 'another entry is not held').toBe(false);
    expect(replicator.skip(0, { ledgerId: 0n, entryId: 0n })).toBe(true);
    await until(drained(a, b));
    expect(consume(b)).toEqual(expected('a', 40));
    expect(replicator.status().counters.skipped.operator).toBe(1);
  });
});
