/** What a long replay keeps: the resident set in the second half of 10 GiB, against that in the middle. */
import { createLayout, defaultCodecs, type EntrySource, type RemoteTopic, type StoredEntry } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator } from 'isthmus/drivers';
import { singleEntry } from './entries.js';
import type { Row } from './harness.js';

const GIB = 2 ** 30;
const ENTRY_BYTES = 16 * 1024;
const layout = createLayout({ segments: 1, buckets: 4, nowMs: 0 });

export async function memoryRows(): Promise<Row[]> {
  const bytes = singleEntry(ENTRY_BYTES);
  const entries = Math.ceil((10 * GIB) / bytes.length);
  const cursors = new MemoryTopic({ cluster: 'a', layout }).cursors('b');
  let stored = 0;
  const remote = countingRemote(() => {
    stored++;
  });
  const replicator = createReplicator(
    { source: endlessSource(bytes, entries), remote, cursors },
    { codecs: await defaultCodecs(), windowEntries: 1_000 },
  );
  replicator.start();
  const after: number[] = [];
  for (let gib = 1; gib <= 10; gib++) {
    while (stored < (entries * gib) / 10) await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    after.push(process.memoryUsage.rss());
  }
  await replicator.stop();
  // The first half is for warming up, as the first minute of a real replay is.
  const [, , , , early = 0] = after;
  const late = Math.max(...after.slice(5));
  const ratio = late / early;
  return [
    {
      measure: 'resident set, highest of the last 5 GiB of a replay of 10',
      against: 'after 5 GiB',
      unit: 'bytes',
      ns: late,
      otherNs: early,
      ratio,
      goal: 'at most 1.1x',
      met: ratio <= 1.1,
    },
  ];
}

/** A segment of so many entries, all alike, made when they are read; it yields to the event loop as a network does. */
function endlessSource(bytes: Uint8Array, entries: number): EntrySource {
  const positionOf = (entryId: number) => ({ ledgerId: 1n, entryId: BigInt(entryId) });
  return {
    cluster: 'a',
    async *layouts() {
      yield layout;
    },
    lastPosition: async () => positionOf(entries - 1),
    acknowledged: async () => undefined,
    backlog: async () => 0,
    async read(_, after, { maxEntries, signal }) {
      const from = after === undefined ? 0 : Number(after.entryId) + 1;
      await new Promise((resolve) => setImmediate(resolve));
      if (from >= entries)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      const read: StoredEntry[] = [];
      for (let i = from; i < Math.min(entries, from + maxEntries); i++) {
        // Memory of its own, as what comes from a network is.
        read.push({ position: positionOf(i), bytes: Uint8Array.from(bytes) });
      }
      return { entries: read, ended: false };
    },
    acknowledge: async () => undefined,
    release: async () => undefined,
  };
}

function countingRemote(onStored: () => void): RemoteTopic {
  const { epoch, active, segments } = layout;
  return {
    cluster: 'b',
    maxEntryBytes: 5 * 1024 * 1024,
    supports: { dedup: 'window', failStop: true },
    async *layouts() {
      yield { cluster: 'b', epoch, active, segments };
    },
    open: async (_, __, onResult) => ({
      type: 'opened',
      producer: {
        send() {
          onStored();
          onResult({ type: 'stored' });
        },
        barrier: () => Promise.reject(new Error('no barriers here')),
        close: async () => undefined,
      },
    }),
    watermark: async () => ({ type: 'known' }),
    async *readBack() {},
  };
}
