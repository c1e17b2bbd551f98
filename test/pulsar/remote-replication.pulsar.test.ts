/**
 * A replicator from a topic in memory to a real broker, through cuts, unloads, splits and the ends of its process:
 * every message is stored once, in the order of its key.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  batchMessage,
  bucketIndex,
  createLayout,
  defaultCodecs,
  encodeBatch,
  hashKey,
  parseEntry,
  readBatch,
  splitSegment,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator } from 'isthmus/drivers';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { consumed, SOURCE, Stage, Topic, until, type Wire } from './remote-stage.js';
import { rest } from './rest.js';

const codecs = await defaultCodecs();
const KEYS = Array.from({ length: 50 }, (_, i) => `key-${i}`);

let clusters: Clusters;
let cluster: Cluster;
let stage: Stage;

beforeAll(async () => {
  clusters = await openClusters(1);
  cluster = clusters.all[0] as Cluster;
});
afterAll(() => clusters?.stop());
afterEach(() => stage?.end());

/** Writes one batch for each bucket of each segment in which the keys lie; values are numbers. */
function produce(topic: MemoryTopic, from: number, count: number): void {
  const batches = new Map<string, { segmentId: number; messages: ReturnType<typeof batchMessage>[] }>();
  for (let i = from; i < from + count; i++) {
    const key = KEYS[i % KEYS.length] as string;
    const hash = hashKey(key);
    const segment = topic.route(hash >>> 16);
    const place = `${segment.segmentId}/${bucketIndex(segment.entryBucketSplits, hash & 0xffff)}`;
    const batch = batches.get(place) ?? { segmentId: segment.segmentId, messages: [] };
    batches.set(place, batch);
    batch.messages.push(
      batchMessage({ partitionKey: key, sequenceId: BigInt(i), payload: new TextEncoder().encode(String(i)) }),
    );
  }
  for (const { segmentId, messages } of batches.values()) {
    const outer = {
      producerName: 'producer',
      sequenceId: 0n,
      publishTimeMs: Date.now(),
      partitionKey: messages[0]?.partitionKey,
    };
    expect(topic.append(segmentId, encodeBatch(messages, { outer, compression: 'lz4', codecs }))).not.toBe('sealed');
  }
}

/** The values by key, as consumers get them: the parents of a segment before it. */
async function storedByKey(topic: Topic, direct: ReturnType<Stage['client']>): Promise<Map<string, number[]>> {
  const seen = new Map<string, number[]>();
  for (const segmentId of [...(await topic.load()).segments.keys()].sort((a, b) => a - b)) {
    for (const bytes of await consumed(direct, await topic.segmentTopic(segmentId))) {
      for (const { partitionKey = '', payload } of readBatch(parseEntry(bytes), codecs)) {
        seen.set(partitionKey, [...(seen.get(partitionKey) ?? []), Number(new TextDecoder().decode(payload))]);
      }
    }
  }
  return seen;
}

function replicate(from: MemoryTopic, to: Topic, wire: Wire) {
  const client = stage.client(wire.serviceUrl);
  const remote = stage.remote(to, client);
  const replicator = createReplicator(
    { source: from.source(cluster.name), remote, cursors: from.cursors(cluster.name) },
    { codecs, retryInitialMs: 50, maxReadEntries: 20, cursorDelayMs: 20, pinDelayMs: 200 },
  );
  replicator.start();
  return {
    replicator,
    /** Ends like a process that is killed: nothing more comes of it. */
    async kill() {
      await client.close();
      await replicator.stop();
      await remote.close();
    },
  };
}

it('is exactly once and in order', async () => {
  stage = new Stage(cluster);
  const from = new MemoryTopic({
    cluster: SOURCE,
    layout: createLayout({ segments: 2, buckets: 4, nowMs: Date.now() }),
  });
  const to = await Topic.create(cluster, 2);
  // Without a subscription of its consumers the broker keeps only what the pin holds.
  await to.ensurePin('consumers');
  const wire = await stage.wire();
  let running = replicate(from, to, wire);
  const shape = async () => [...(await to.load()).active.values()].map(({ segmentId }) => segmentId);
  const changes: (() => unknown)[] = [
    () => wire.cut(),
    async () => to.split((await shape())[0] as number),
    () => rest(cluster, 'PUT', `namespaces/${to.namespace}/unload`),
    async () => {
      await running.kill();
      running = replicate(from, to, wire);
    },
    () => from.change((layout) => splitSegment(layout, 1, { nowMs: Date.now() })),
    () => wire.cut(),
    async () => to.split((await shape())[1] as number),
    async () => {
      await running.kill();
      running = replicate(from, to, wire);
    },
    async () => to.call('POST', `/rebucket/${(await shape())[0]}?bucketCount=4`),
  ];
  let sent = 0;
  for (const change of changes) {
    for (const goal = sent + 2_000; sent < goal; sent += 100) {
      produce(from, sent, 100);
      await sleep(20);
    }
    const changing = change();
    produce(from, sent, 100);
    sent += 100;
    await changing;
  }
  const backlog = () => [...from.layout.segments.keys()].map((segmentId) => from.backlog(segmentId, cluster.name));
  await until(() => backlog().every((entries) => entries === 0));
  await running.kill();
  const expected = new Map(KEYS.map((key) => [key, [] as number[]]));
  for (let i = 0; i < sent; i++) expected.get(KEYS[i % KEYS.length] as string)?.push(i);
  const stored = await storedByKey(to, stage.client());
  for (const key of KEYS) expect(stored.get(key), key).toEqual(expected.get(key));
});
