/**
 * One life of the demo's replicating process: three clusters on disk replicate a topic in all directions while their
 * layouts differ, change and meet, and while one of them is cut off for a time. It may be killed at any moment; the
 * next life finds everything in the stores and goes on. Exits with 1 when a check fails.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLayout, defaultCodecs, equalShapes, equalWidthSplits, parseEntry, readBatch, shapeOf } from 'isthmus';
import { createReplicator, type Replicator, SlowPath } from 'isthmus/drivers';
import { type Check, checkCluster, countCopies } from './checks.js';
import { type Cluster, describe, openClusters } from './cluster.js';
import { type FlightRecord, readFlights } from './flights.js';
import { BatchingProducer } from './producer.js';
import { Progress, printTable } from './screen.js';

const RECORDS = 200_000;
const SLICE = 500;
/** The act in which a cluster is cut off. */
const OUTAGE = 2;
const BUDGET = { bytesPerSecond: 32 * 1024 * 1024, slots: 2 };
/** What an operator lets the replay after the outage have. */
const REPLAY_BUDGET = { bytesPerSecond: 1024 * 1024, burstBytes: 256 * 1024 };

const folder = process.argv[2] ?? 'demo-data';
const nowMs = Date.now();
const progress = new Progress();
// The demo ends with whoever started it.
const dieAlone = () => process.exit(1);
process.on('disconnect', dieAlone);

progress.say(`reading ${RECORDS.toLocaleString('en')} flights`);
const [records, codecs] = await Promise.all([readFlights(RECORDS), defaultCodecs()]);

// Layouts that differ on both rings: ranges cut in 1, 2 and 3, with 4, 2 and 3 buckets each.
const { list: clusters, linkOf } = await openClusters(folder, {
  a: createLayout({ segments: 1, buckets: 4, nowMs }),
  b: createLayout({ segments: 2, buckets: 2, nowMs }),
  c: createLayout({ segments: 3, buckets: 3, nowMs }),
});
const [a, b, c] = clusters as [Cluster, Cluster, Cluster];
const linksOfC = [linkOf('a', 'c'), linkOf('b', 'c')];

const written = new Map<string, FlightRecord[]>(
  clusters.map(({ name }, i) => [name, records.filter((_, row) => row % clusters.length === i)]),
);
const share = Math.ceil(RECORDS / clusters.length);
const stored = new Map(clusters.map((cluster) => [cluster.name, storedBefore(cluster)]));
const producers = new Map(
  clusters.map(({ name, topic }) => {
    const compression = name === 'b' ? 'zstd' : 'lz4';
    return [name, new BatchingProducer(topic, { compression, codecs, maxMessages: 50, nowMs })];
  }),
);

const slowPath = new SlowPath(BUDGET);
const replicators: Replicator[] = clusters.flatMap((from) =>
  clusters
    .filter((to) => to !== from)
    .map((to) =>
      createReplicator(
        {
          source: from.topic.source(to.name),
          remote: linkOf(from.name, to.name).remote(to.topic.remote(from.name)),
          cursors: from.topic.cursors(to.name),
          slowPath,
        },
        { codecs, name: `${from.name} -> ${to.name}`, cursorDelayMs: 100, retryMaxMs: 500 },
      ),
    ),
);
const begun = performance.now();
const stageFile = join(folder, 'stage');
const first = stage();
// A life that begins in the middle of the outage begins cut off.
if (first === OUTAGE || first === OUTAGE + 1) for (const link of linksOfC) link.isCut = true;
for (const replicator of replicators) replicator.start();

/** The acts of the demo. Each may be begun again after a kill. */
const acts: readonly (readonly [what: string, act: (what: string) => Promise<void>])[] = [
  ['layouts differ', (what) => write(0, 0.2, what)],
  [
    'layouts meet',
    async (what) => {
      await write(0.2, 0.35, what);
      await meet(clusters);
    },
  ],
  [
    'c is cut off, and b splits a segment',
    async (what) => {
      for (const link of linksOfC) link.isCut = true;
      b.controller.operate({ type: 'split', segmentId: b.topic.layout.active[0]?.segmentId ?? 0 });
      await write(0.35, 0.6, what);
      await meet([a, b]);
    },
  ],
  [
    'c is back, and its backlog is replayed through the budget',
    async (what) => {
      slowPath.configure(REPLAY_BUDGET);
      for (const link of linksOfC) link.isCut = false;
      await write(0.6, 0.7, what);
      await meet(clusters);
      await drained(what);
    },
  ],
  [
    'c raises the buckets of a segment',
    async (what) => {
      c.controller.operate({
        type: 'rebucket',
        segmentId: c.topic.layout.active[1]?.segmentId ?? 0,
        splits: equalWidthSplits(24),
      });
      await write(0.7, 0.8, what);
      await meet(clusters);
      await drained(what);
    },
  ],
];
const controllersFrom = 1;
for (const [i, [what, act]] of acts.entries()) {
  if (i === Math.max(first, controllersFrom)) for (const { controller } of clusters) await controller.start();
  if (i >= first) {
    await act(`${what} (${describe(clusters)})`);
    // Whole or not at all.
    writeFileSync(`${stageFile}.new`, String(i + 1));
    renameSync(`${stageFile}.new`, stageFile);
  }
}
if (first >= acts.length) for (const { controller } of clusters) await controller.start();
await drained('draining');
const rebatchedBefore = sum('rebatchedEntries');
const verbatimBefore = sum('verbatimEntries');
await write(0.8, 1, `layouts are equal (${describe(clusters)})`);
await drained('draining');
const seconds = (performance.now() - begun) / 1000;
const budget = slowPath.report();
for (const replicator of replicators) await replicator.stop();

progress.say('reading every cluster back');
const checks: Check[] = clusters.flatMap(({ topic }) => checkCluster(topic, written, codecs));
const rebatchedAfter = sum('rebatchedEntries') - rebatchedBefore;
const verbatimAfter = sum('verbatimEntries') - verbatimBefore;
checks.push({
  name: 'verbatim took over once layouts met',
  passed: rebatchedAfter === 0 && verbatimAfter > 0,
  detail: `${verbatimAfter} entries verbatim, ${rebatchedAfter} re-batched after that`,
});
const lives = Number(process.env.ISTHMUS_DEMO_LIVES ?? 1);
progress.end();

printTable(
  ['stored on', 'of', 'verbatim', 'parts', 'MB'],
  clusters.flatMap(({ name, topic }) =>
    [...countCopies(topic)].map(([origin, { verbatim, parts, bytes }]) => [
      name,
      origin,
      verbatim,
      parts,
      (bytes / 1e6).toFixed(1),
    ]),
  ),
);
const throttledMs = [...budget.throttled.values()].reduce((total, { totalMs }) => total + totalMs, 0);
const duplicates = replicators.reduce(
  (total, replicator) => total + Object.values(replicator.status().counters.duplicates).reduce((n, m) => n + m, 0),
  0,
);
const found = sum('foundStored');
console.log(
  `\nin the last of ${lives} lives, ${seconds.toFixed(1)} s: ${sum('skipped').toLocaleString('en')} entries skipped as replicated, ` +
    `${found} found stored and ${duplicates} sent again after the kills, ` +
    `${(throttledMs / 1000).toFixed(1)} s of waiting for the slow-path budget (${REPLAY_BUDGET.bytesPerSecond / 2 ** 20} MiB/s)\n`,
);
for (const { name, passed, detail } of checks) console.log(`${passed ? 'passed' : 'FAILED'}  ${name} (${detail})`);
const failed = checks.filter(({ passed }) => !passed).length;
console.log(`${checks.length - failed} checks passed, ${failed} failed`);
for (const cluster of clusters) await cluster.stop();
if (failed === 0) rmSync(folder, { recursive: true, force: true });
process.off('disconnect', dieAlone);
process.disconnect?.();
process.exitCode = failed === 0 ? 0 : 1;

/** How many acts an earlier life has finished. */
function stage(): number {
  try {
    return Number(readFileSync(stageFile, 'utf8'));
  } catch {
    return 0;
  }
}

/** What of a cluster's own records an earlier life has stored, by sequence id. */
function storedBefore({ name, topic }: Cluster): Uint8Array {
  const flags = new Uint8Array(share);
  for (const { segmentId } of topic.layout.segments.values()) {
    for (const { bytes } of topic.entries(segmentId)) {
      const entry = parseEntry(bytes);
      if (entry.metadata.replicatedFrom !== undefined || written.get(name) === undefined) continue;
      for (const { sequenceId = 0n } of readBatch(entry, codecs)) flags[Number(sequenceId)] = 1;
    }
  }
  return flags;
}

/** Every cluster writes the same share of its records, a slice at a time, while the replicators work. */
async function write(from: number, to: number, what: string): Promise<void> {
  for (let at = Math.floor(share * from); at < Math.floor(share * to); at += SLICE) {
    const end = Math.min(at + SLICE, Math.floor(share * to));
    for (const [name, producer] of producers) {
      const slice = written.get(name)?.slice(at, end) ?? [];
      const isNew = stored.get(name);
      await producer.send(
        slice.map((record, i) => [at + i, record] as const).filter(([sequenceId]) => isNew?.[sequenceId] !== 1),
      );
    }
    show(what, at / share);
  }
  for (const producer of producers.values()) await producer.flush();
}

/** Waits until these clusters have the same shape. */
async function meet(some: readonly Cluster[]): Promise<void> {
  const [one, ...others] = some.map(({ topic }) => topic);
  while (!others.every((topic) => one && equalShapes(shapeOf(one.layout), shapeOf(topic.layout)))) await sleep(5);
}

/** Waits until nothing is left to replicate. */
async function drained(what: string): Promise<void> {
  const left = () =>
    clusters.some((from) =>
      clusters.some(
        (to) =>
          to !== from &&
          [...from.topic.layout.segments.keys()].some((segmentId) => from.topic.backlog(segmentId, to.name) > 0),
      ),
    );
  while (left()) {
    show(what, undefined);
    await sleep(20);
  }
}

function show(what: string, part: number | undefined): void {
  progress.show(what, part, sum('verbatimEntries'), sum('rebatchedEntries'));
  process.send?.({ what, part });
}

function sum(counter: 'verbatimEntries' | 'rebatchedEntries' | 'foundStored' | 'skipped'): number {
  return replicators.reduce((total, replicator) => {
    const { counters } = replicator.status();
    return total + (counter === 'skipped' ? (counters.skipped.replicated ?? 0) : counters[counter]);
  }, 0);
}
