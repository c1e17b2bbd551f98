/** What is counted is what is seen: real replicators and controllers, a real OpenTelemetry SDK, every name and label. */
import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { batchMessage, createLayout, defaultCodecs, encodeBatch, encodeMessage, splitSegment } from 'isthmus';
import { MemoryPeers, MemoryTopic } from 'isthmus/adapters/memory';
import {
  createExchangeHandler,
  createLayoutController,
  createReplicator,
  observeReplication,
  RemoteRate,
  SlowPath,
  topicStatus,
} from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../support/until.js';

const codecs = await defaultCodecs();
const nowMs = 1_700_000_000_000;
const layout = (segments: number) => createLayout({ segments, buckets: 1, nowMs });
const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: nowMs, partitionKey: 'key-1' };
const single = (fields: Partial<typeof outer> & { readonly replicatedFrom?: string } = {}) =>
  encodeMessage(new Uint8Array(40), { outer: { ...outer, ...fields } });
const batch = (fields: object = {}) => {
  const messages = ['key-1', 'key-2', 'key-5', 'key-9'].map((partitionKey, i) =>
    batchMessage({ partitionKey, sequenceId: BigInt(i), payload: new Uint8Array(40) }),
  );
  return encodeBatch(messages, { outer: { ...outer, ...fields }, compression: 'none', codecs });
};

const stopping: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0)) await stop();
});

/** A topic on a that holds one of everything, its replicator to b, and the controllers of both. */
async function running() {
  const [a, b] = [
    new MemoryTopic({ cluster: 'a', layout: layout(1) }),
    new MemoryTopic({ cluster: 'b', layout: layout(2) }),
  ];
  a.append(0, single());
  a.append(0, batch());
  a.append(0, single({ replicatedFrom: 'b' }));
  a.append(0, batch({ encryptionKeys: [{ key: 'k', value: new Uint8Array([1]) }] }));
  a.append(0, single());
  a.change((before) => splitSegment(before, 0, { nowMs }));
  const slowPath = new SlowPath();
  const rate = new RemoteRate();
  const ports = { source: a.source('b'), remote: b.remote('a'), cursors: a.cursors('b'), slowPath, rate };
  const replicator = createReplicator(ports, { codecs, name: 'topic to b', backlogDelayMs: 1, cursorDelayMs: 1 });
  const peers = new MemoryPeers();
  const controllers = [a, b].map((topic) =>
    createLayoutController(
      { host: topic.layoutHost(), channel: peers.channel(topic.cluster) },
      {
        topic: 't',
        cluster: topic.cluster,
        members: ['a', 'b', 'c'],
        caps: { maxSegments: 64, maxEntryBucketsPerSegment: 64 },
      },
    ),
  );
  for (const [i, controller] of controllers.entries()) {
    peers.connect(
      i === 0 ? 'a' : 'b',
      createExchangeHandler(() => controller),
    );
  }
  replicator.start();
  stopping.push(() => replicator.stop(), ...controllers.map((controller) => () => controller.stop()));
  await until(() => replicator.status().segments[0]?.held !== undefined);
  await until(() => replicator.status().segments[0]?.backlog === 2);
  return { replicator, controllers, slowPath, rate };
}

describe('observeReplication', () => {
  it('gives an SDK every metric of PIP-495 with its labels, and nothing once it is taken back', async () => {
    const { replicator, controllers, slowPath, rate } = await running();
    for (const controller of controllers) await controller.start();
    await until(
      () => (controllers[0]?.exchanges().get('c')?.failed ?? 0) > 0 && controllers[0]?.exchanges().has('b') === true,
    );
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({ readers: [reader] });
    stopping.push(() => provider.shutdown());
    let collections = 0;
    // The push to the silent peer is made again and again: what counts is how often it was when the metrics were read.
    let failedPushes: number | undefined;
    const unobserve = observeReplication(provider.getMeter('isthmus'), {
      replicators: () => {
        collections++;
        return [{ topic: 't', replicator }];
      },
      controllers: () => {
        failedPushes = controllers[0]?.exchanges().get('c')?.failed;
        return controllers.slice(0, 1);
      },
      slowPath,
      rates: new Map([['b', rate]]),
    });
    await reader.forceFlush();
    const seen = new Map(
      exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics)
        .flatMap((scope) => scope.metrics)
        .flatMap(({ descriptor, dataPoints }) =>
          dataPoints.map(
            ({ attributes, value }) => [`${descriptor.name} ${JSON.stringify(attributes)}`, value] as const,
          ),
        ),
    );
    const value = (name: string, labels: object) => seen.get(`isthmus.${name} ${JSON.stringify(labels)}`);
    const at = { topic: 't', remote: 'b' };
    expect(value('replication.entries', { ...at, path: 'verbatim' })).toBe(1);
    expect(value('replication.entries', { ...at, path: 'rebatched' })).toBe(1);
    expect(value('replication.parts', at)).toBe(2);
    expect(value('replication.bytes', { ...at, path: 'verbatim' })).toBeGreaterThan(100);
    expect(value('replication.bytes', { ...at, path: 'rebatched' })).toBeGreaterThan(200);
    expect(value('replication.skipped', { ...at, reason: 'replicated' })).toBe(1);
    expect(value('replication.held', { ...at, reason: 'encryptedBatch' })).toBe(1);
    expect(value('replication.backlog', { ...at, segment: 0 })).toBe(2);
    expect(value('replication.sealed_segments_pinned', at)).toBe(1);
    expect(value('replication.waiting', { ...at, reason: 'held' })).toBe(1);
    expect(value('replication.waiting', { ...at, reason: 'parents' })).toBe(2);
    expect(failedPushes).toBeGreaterThan(0);
    expect(value('exchange.requests', { topic: 't', peer: 'c', result: 'failure' })).toBe(failedPushes);
    expect(value('convergence.diverged_ranges', { topic: 't', peer: 'b' })).toBeDefined();
    expect(value('convergence.peer_state_age', { topic: 't', peer: 'b' })).toBeDefined();
    expect(value('slow_path.utilization', {})).toBeDefined();
    expect(value('slow_path.throttled_time', { segment: 'topic to b segment 0' })).toBeDefined();
    expect(value('rate_limit.waiting', { remote: 'b' })).toBe(0);
    const before = collections;
    unobserve();
    await reader.forceFlush();
    expect(collections).toBe(before);
  });

  it('takes the meter of the API alone, which costs nothing and tells nobody', async () => {
    const { replicator } = await running();
    observeReplication(metrics.getMeter('isthmus'), { replicators: () => [{ topic: 't', replicator }] })();
  });
});

describe('topicStatus', () => {
  it('says in one object of plain JSON what every segment waits for, and what an operator can do', async () => {
    const { replicator, controllers } = await running();
    const [controller] = controllers;
    await controller?.start();
    const status = topicStatus({
      topic: 't',
      ...(controller === undefined ? {} : { controller }),
      replicators: [replicator],
    });
    expect(JSON.parse(JSON.stringify(status))).toMatchObject({
      topic: 't',
      layout: { cluster: 'a', changing: false },
      peers: [{ cluster: 'b' }, { cluster: 'c' }],
      remotes: [
        {
          remote: 'b',
          state: 'running',
          pinnedSegments: [0],
          segments: [
            {
              segmentId: 0,
              waitingFor: 'an operator: held: the batch is encrypted and does not fit as it is',
              remedy: expect.stringContaining('skip'),
              settled: '0:2',
              backlog: 2,
              held: { position: '0:3', reason: 'encryptedBatch' },
            },
            { segmentId: 1, waitingFor: 'its parents to drain' },
            { segmentId: 2, waitingFor: 'its parents to drain' },
          ],
        },
      ],
    });
  });
});
