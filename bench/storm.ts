/** The rate of one verbatim topic alone, and while 200 others wait for the slow-path budget at the same time. */
import { createLayout, defaultCodecs, type EntrySource } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator, type Replicator, SlowPath } from 'isthmus/drivers';
import { batchEntry, singleEntry } from './entries.js';
import { measure, type Row } from './harness.js';

const ENTRIES = 10_000;
const TOPICS = 200;
const coarse = createLayout({ segments: 1, buckets: 1, nowMs: 0 });
const fine = createLayout({ segments: 4, buckets: 4, nowMs: 0 });
const asIs = (head: Uint8Array) => ({ head, payload: new Uint8Array(0) });

export async function stormRows(): Promise<Row[]> {
  const codecs = await defaultCodecs();
  const source = new MemoryTopic({ cluster: 'a', layout: coarse });
  for (let i = 0; i < ENTRIES; i++) source.append(0, asIs(singleEntry(1024)));
  const stormy = Array.from({ length: TOPICS }, () => {
    const topic = new MemoryTopic({ cluster: 'a', layout: coarse });
    for (let i = 0; i < 200; i++) topic.append(0, asIs(batchEntry(50, 200, 'lz4', codecs)));
    return topic;
  });
  let storm: Replicator[] = [];
  const [during, alone] = await measure([
    {
      name: 'in a storm',
      async run(n) {
        // A budget of a few hundredths of what one core can re-batch.
        const slowPath = new SlowPath({ bytesPerSecond: 512 * 1024, slots: 4 });
        storm = stormy.map((topic, i) => replicator(topic, fine, `stormy ${i}`, slowPath));
        // What the budget had saved up is spent, and all of them wait.
        while (slowPath.report().waiting < TOPICS - 4) await new Promise((resolve) => setTimeout(resolve, 50));
        // The garbage of the start is not the storm's.
        await repeat(3, replicateAll);
        const ns = await repeat(n, replicateAll);
        await Promise.all(storm.map((one) => one.stop()));
        return ns;
      },
    },
    { name: 'alone', run: (n) => repeat(n, replicateAll) },
  ]);
  if (during === undefined || alone === undefined) throw new Error('nothing was measured');
  const ratio = alone.medianNs / during.medianNs;
  return [
    {
      measure: `verbatim next to ${TOPICS} topics on the slow path, one entry`,
      against: 'verbatim alone',
      ns: during.medianNs / ENTRIES,
      otherNs: alone.medianNs / ENTRIES,
      ratio,
      goal: '0.9 of its rate',
      met: ratio >= 0.9,
    },
  ];

  async function replicateAll(): Promise<void> {
    const target = new MemoryTopic({ cluster: 'b', layout: coarse });
    const one = replicator(source, coarse, 'verbatim', undefined, target);
    while (one.status().counters.verbatimEntries < ENTRIES) await new Promise((resolve) => setImmediate(resolve));
    await one.stop();
  }

  function replicator(
    from: MemoryTopic,
    layout: typeof fine,
    name: string,
    slowPath: SlowPath | undefined,
    target = new MemoryTopic({ cluster: 'b', layout }),
  ): Replicator {
    const cursors = new MemoryTopic({ cluster: 'c', layout: coarse }).cursors('b');
    const ports = { source: fromStart(from), remote: target.remote('a'), cursors };
    const one = createReplicator(slowPath === undefined ? ports : { ...ports, slowPath }, { codecs, name });
    one.start();
    return one;
  }
}

/** A source that begins anew each time, and yields to the event loop as a network does. */
function fromStart(topic: MemoryTopic): EntrySource {
  const source = topic.source('b');
  return {
    ...source,
    acknowledged: async () => undefined,
    acknowledge: async () => undefined,
    async read(segmentId, after, options) {
      await new Promise((resolve) => setImmediate(resolve));
      return source.read(segmentId, after, options);
    },
  };
}

async function repeat(n: number, work: () => Promise<void>): Promise<number> {
  const begun = process.hrtime.bigint();
  for (let i = 0; i < n; i++) await work();
  return Number(process.hrtime.bigint() - begun) / n;
}
