/**
 * Three clusters in one process replicate a topic in all directions while their layouts differ, change and meet.
 * Each writes a third of 200,000 real flight records as Pulsar batches; at the end every cluster's entries are read
 * back and checked. Exits with 1 when a check fails.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  applyShape,
  createLayout,
  defaultCodecs,
  equalWidthSplits,
  joinShapes,
  type Layout,
  rebucketSegment,
  shapeOf,
  splitSegment,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator, type Replicator } from 'isthmus/drivers';
import { type Check, checkCluster } from './checks.js';
import { type FlightRecord, readFlights } from './flights.js';
import { BatchingProducer } from './producer.js';
import { Progress, printTable } from './screen.js';

const RECORDS = 200_000;
const SLICE = 500;

const nowMs = Date.now();
const progress = new Progress();
progress.say(`reading ${RECORDS.toLocaleString('en')} flights`);
const [records, codecs] = await Promise.all([readFlights(RECORDS), defaultCodecs()]);

// Layouts that differ on both rings: ranges cut in 1, 2 and 3, and 4, 2 and 3 buckets.
const layouts: Record<string, Layout> = {
  a: createLayout({ segments: 1, buckets: 4, nowMs }),
  b: createLayout({ segments: 2, buckets: 2, nowMs }),
  c: createLayout({ segments: 3, buckets: 3, nowMs }),
};
const topics = Object.entries(layouts).map(([cluster, layout]) => new MemoryTopic({ cluster, layout }));
const [a, b, c] = topics as [MemoryTopic, MemoryTopic, MemoryTopic];

const written = new Map<string, FlightRecord[]>(
  topics.map(({ cluster }, i) => [cluster, records.filter((_, row) => row % topics.length === i)]),
);
const producers = new Map(
  topics.map((topic) => {
    const compression = topic === b ? 'zstd' : 'lz4';
    return [topic.cluster, new BatchingProducer(topic, { compression, codecs, maxMessages: 50, nowMs })];
  }),
);

interface Direction {
  readonly from: MemoryTopic;
  readonly to: MemoryTopic;
  readonly replicator: Replicator;
}
const directions: Direction[] = topics.flatMap((from) =>
  topics
    .filter((to) => to !== from)
    .map((to) => {
      const replicator = createReplicator(
        { source: from.source(to.cluster), remote: to.remote(from.cluster) },
        { codecs },
      );
      return { from, to, replicator };
    }),
);
const begun = performance.now();
for (const { replicator } of directions) replicator.start();

await write(0, 0.3, 'layouts differ on both rings');
b.change((layout) => splitSegment(layout, layout.active[0]?.segmentId ?? 0, { nowMs }));
c.change((layout) => rebucketSegment(layout, layout.active[1]?.segmentId ?? 0, equalWidthSplits(8), { nowMs }));
await write(0.3, 0.5, 'b has split a segment, c has raised its buckets');
const joined = joinShapes(shapeOf(a.layout), shapeOf(b.layout), shapeOf(c.layout));
for (const topic of topics) topic.change((layout) => applyShape(layout, joined, { nowMs }));
await write(0.5, 0.75, 'all take the join of their layouts');
await drained('draining the sealed segments');
const rebatchedBefore = sum('rebatchedEntries');
const verbatimBefore = sum('verbatimEntries');
await write(0.75, 1, 'layouts are equal');
await drained('draining');
const seconds = (performance.now() - begun) / 1000;
for (const { replicator } of directions) await replicator.stop();

progress.say('reading every cluster back');
const checks: Check[] = topics.flatMap((topic) => checkCluster(topic, written, codecs));
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
      `${from.cluster} -> ${to.cluster}`,
      counters.verbatimEntries,
      counters.rebatchedEntries,
      counters.parts,
      counters.skipped.replicated ?? 0,
      ((counters.verbatimBytes + counters.rebatchedBytes) / 1e6).toFixed(1),
    ];
  }),
);
const copies = RECORDS * (topics.length - 1);
console.log(
  `\n${Math.round(copies / seconds).toLocaleString('en')} messages per second replicated, in ${seconds.toFixed(1)} s`,
);
for (const { name, passed, detail } of checks) console.log(`${passed ? 'passed' : 'FAILED'}  ${name} (${detail})`);
const failed = checks.filter(({ passed }) => !passed).length;
console.log(`${checks.length - failed} checks passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** Every cluster writes the same share of its records, a slice at a time, while the replicators work. */
async function write(from: number, to: number, what: string): Promise<void> {
  const share = Math.ceil(RECORDS / topics.length);
  for (let at = Math.floor(share * from); at < share * to; at += SLICE) {
    for (const [cluster, producer] of producers) {
      const end = Math.min(at + SLICE, Math.floor(share * to));
      for (const record of written.get(cluster)?.slice(at, end) ?? []) producer.send(record);
    }
    progress.show(what, at / share, sum('verbatimEntries'), sum('rebatchedEntries'));
    await nextTurn();
  }
  for (const producer of producers.values()) producer.flush();
}

/** Waits until nothing is left to replicate. */
async function drained(what: string): Promise<void> {
  const left = () =>
    directions.reduce((total, { from, to }) => {
      for (const segmentId of from.layout.segments.keys()) total += from.backlog(segmentId, to.cluster);
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
