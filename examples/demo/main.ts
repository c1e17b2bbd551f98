/**
 * Three clusters in one process replicate a topic in all directions while their layouts differ, change and meet.
 * Their controllers exchange layouts over HTTP on loopback; each cluster writes a third of 200,000 real flight records
 * as Pulsar batches; at the end every cluster's entries are read back and checked. Exits with 1 when a check fails.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLayout, defaultCodecs, equalShapes, equalWidthSplits, shapeOf } from 'isthmus';
import { createReplicator, type Replicator } from 'isthmus/drivers';
import { type Check, checkCluster } from './checks.js';
import { type Cluster, createClusters, describe } from './cluster.js';
import { type FlightRecord, readFlights } from './flights.js';
import { BatchingProducer } from './producer.js';
import { Progress, printTable } from './screen.js';

const RECORDS = 200_000;
const SLICE = 500;

const nowMs = Date.now();
const progress = new Progress();
progress.say(`reading ${RECORDS.toLocaleString('en')} flights`);
const [records, codecs] = await Promise.all([readFlights(RECORDS), defaultCodecs()]);

// Layouts that differ on both rings: ranges cut in 1, 2 and 3, with 4, 2 and 3 buckets each.
const clusters = await createClusters({
  a: createLayout({ segments: 1, buckets: 4, nowMs }),
  b: createLayout({ segments: 2, buckets: 2, nowMs }),
  c: createLayout({ segments: 3, buckets: 3, nowMs }),
});
const [, b, c] = clusters as [Cluster, Cluster, Cluster];

const written = new Map<string, FlightRecord[]>(
  clusters.map(({ name }, i) => [name, records.filter((_, row) => row % clusters.length === i)]),
);
const producers = new Map(
  clusters.map(({ name, topic }) => {
    const compression = name === 'b' ? 'zstd' : 'lz4';
    return [name, new BatchingProducer(topic, { compression, codecs, maxMessages: 50, nowMs })];
  }),
);

interface Direction {
  readonly from: Cluster;
  readonly to: Cluster;
  readonly replicator: Replicator;
}
const directions: Direction[] = clusters.flatMap((from) =>
  clusters
    .filter((to) => to !== from)
    .map((to) => {
      const ports = { source: from.topic.source(to.name), remote: to.topic.remote(from.name) };
      return { from, to, replicator: createReplicator(ports, { codecs }) };
    }),
);
const begun = performance.now();
for (const { replicator } of directions) replicator.start();

const meetings: { readonly what: string; readonly ms: number }[] = [];
await write(0, 0.25, `layouts differ (${describe(clusters)})`);
for (const { controller } of clusters) await controller.start();
let met = meet('the first exchange');
await write(0.25, 0.5, 'the controllers exchange layouts');
await met;
met = meet('a split on b', b);
b.controller.operate({ type: 'split', segmentId: b.topic.layout.active[0]?.segmentId ?? 0 });
await write(0.5, 0.6, 'b has split a segment');
await met;
const raised = c.topic.layout.active[1]?.segmentId ?? 0;
met = meet('more buckets on c', c);
c.controller.operate({ type: 'rebucket', segmentId: raised, splits: equalWidthSplits(24) });
await write(0.6, 0.75, 'c has raised the buckets of a segment');
await met;
await drained('draining the sealed segments');
const rebatchedBefore = sum('rebatchedEntries');
const verbatimBefore = sum('verbatimEntries');
await write(0.75, 1, `layouts are equal (${describe(clusters)})`);
await drained('draining');
const seconds = (performance.now() - begun) / 1000;
for (const { replicator } of directions) await replicator.stop();
for (const cluster of clusters) await cluster.stop();

progress.say('reading every cluster back');
const checks: Check[] = clusters.flatMap(({ topic }) => checkCluster(topic, written, codecs));
const rebatchedAfter = sum('rebatchedEntries') - rebatchedBefore;
const verbatimAfter = sum('verbatimEntries') - verbatimBefore;
checks.push({
  name: 'verbatim took over once layouts met',
  passed: rebatchedAfter === 0 && verbatimAfter > 0,
  detail: `${verbatimAfter} entries verbatim, ${rebatchedAfter} re-batched after that`,
});
progress.end();

printTable(
  ['direction', 'verbatim', 're-batched', 'into parts', 'skipped', 'MB'],
  directions.map(({ from, to, replicator }) => {
    const { counters } = replicator.status();
    return [
      `${from.name} -> ${to.name}`,
      counters.verbatimEntries,
      counters.rebatchedEntries,
      counters.parts,
      counters.skipped.replicated ?? 0,
      ((counters.verbatimBytes + counters.rebatchedBytes) / 1e6).toFixed(1),
    ];
  }),
);
console.log();
printTable(
  ['all layouts equal after', 'ms'],
  meetings.map(({ what, ms }) => [what, ms.toFixed(0)]),
);
const copies = RECORDS * (clusters.length - 1);
console.log(
  `\n${Math.round(copies / seconds).toLocaleString('en')} messages per second replicated, in ${seconds.toFixed(1)} s`,
);
for (const { name, passed, detail } of checks) console.log(`${passed ? 'passed' : 'FAILED'}  ${name} (${detail})`);
const failed = checks.filter(({ passed }) => !passed).length;
console.log(`${checks.length - failed} checks passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** Every cluster writes the same share of its records, a slice at a time, while the replicators work. */
async function write(from: number, to: number, what: string): Promise<void> {
  const share = Math.ceil(RECORDS / clusters.length);
  for (let at = Math.floor(share * from); at < share * to; at += SLICE) {
    for (const [name, producer] of producers) {
      const end = Math.min(at + SLICE, Math.floor(share * to));
      for (const record of written.get(name)?.slice(at, end) ?? []) producer.send(record);
    }
    progress.show(what, at / share, sum('verbatimEntries'), sum('rebatchedEntries'));
    await nextTurn();
  }
  for (const producer of producers.values()) producer.flush();
}

/** Waits until all clusters have the same shape, after a change of one of them, and notes how long it took. */
async function meet(what: string, changing?: Cluster): Promise<void> {
  const before = changing?.topic.layout;
  const from = performance.now();
  while (before !== undefined && changing?.topic.layout === before) await nextTurn();
  const [first, ...others] = clusters.map(({ topic }) => topic);
  while (!others.every((topic) => first && equalShapes(shapeOf(first.layout), shapeOf(topic.layout)))) await nextTurn();
  meetings.push({ what, ms: performance.now() - from });
}

/** Waits until nothing is left to replicate. */
async function drained(what: string): Promise<void> {
  const left = () =>
    directions.reduce((total, { from, to }) => {
      for (const segmentId of from.topic.layout.segments.keys()) total += from.topic.backlog(segmentId, to.name);
      return total;
    }, 0);
  while (left() > 0) {
    progress.show(what, undefined, sum('verbatimEntries'), sum('rebatchedEntries'));
    await nextTurn();
  }
}

function sum(counter: 'verbatimEntries' | 'rebatchedEntries'): number {
  return directions.reduce((total, { replicator }) => total + replicator.status().counters[counter], 0);
}
