/** A whole replicator from a topic in memory to another, against a bare loop that only sends. */
import {
  createLayout,
  defaultCodecs,
  parseEntry,
  type RemoteProducer,
  restamp,
  type Send,
  type SourcePosition,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator } from 'isthmus/drivers';
import { singleEntry } from './entries.js';
import { measure, type Row } from './harness.js';

const ENTRIES = 20_000;
const WINDOW = 1_000;
const layout = createLayout({ segments: 1, buckets: 4, nowMs: 0 });

export async function replicatorRows(): Promise<Row[]> {
  const rows: Row[] = [];
  const codecs = await defaultCodecs();
  for (const bytes of [1024, 64 * 1024]) {
    const entries = bytes > 1024 ? ENTRIES / 20 : ENTRIES;
    const source = new MemoryTopic({ cluster: 'a', layout });
    const stored = { head: singleEntry(bytes), payload: new Uint8Array(0) };
    for (let i = 0; i < entries; i++) source.append(0, stored);
    const [whole, loop] = await measure([
      { name: 'replicator', run: (n) => repeat(n, () => replicateAll(source, entries)) },
      { name: 'send', run: (n) => repeat(n, () => sendAll(source, entries)) },
    ]);
    if (whole === undefined || loop === undefined) throw new Error('nothing was measured');
    const ratio = loop.medianNs / whole.medianNs;
    rows.push({
      measure: `end to end, verbatim, ${bytes / 1024} KiB, one entry`,
      against: 'a loop that only sends',
      ns: whole.medianNs / entries,
      otherNs: loop.medianNs / entries,
      ratio,
      goal: 'half its rate',
      met: ratio >= 0.5,
    });
  }
  return rows;

  async function replicateAll(source: MemoryTopic, entries: number): Promise<void> {
    const remote = new MemoryTopic({ cluster: 'b', layout });
    // Cursors of their own, so that every run begins at the start.
    const { cursors } = { cursors: new MemoryTopic({ cluster: 'c', layout }).cursors('b') };
    const ports = {
      source: { ...source.source('b'), acknowledged: async () => undefined },
      remote: remote.remote('a'),
      cursors,
    };
    const replicator = createReplicator(ports, { codecs, windowEntries: WINDOW });
    replicator.start();
    while (remote.entries(0).length < entries) await new Promise((resolve) => setImmediate(resolve));
    await replicator.stop();
  }
}

/** Sends what a replicator would send, prepared before: the same stamp on every entry. */
async function sendAll(source: MemoryTopic, entries: number): Promise<void> {
  const remote = new MemoryTopic({ cluster: 'b', layout });
  let results = 0;
  const opened = await remote.remote('a').open(0, 0, () => {
    results++;
  });
  if (opened.type !== 'opened') throw new Error(opened.type);
  const producer: RemoteProducer = opened.producer;
  const sends = prepared(source, entries);
  for (const send of sends) producer.send(send);
  if (results !== entries || remote.entries(0).length !== entries) throw new Error('not all were stored');
}

let sends: readonly Send[] = [];

function prepared(source: MemoryTopic, entries: number): readonly Send[] {
  if (sends.length === entries) return sends;
  let previous: SourcePosition | undefined;
  sends = source.entries(0).map(({ position, bytes }) => {
    const buffers = restamp(parseEntry(bytes), { replicatedFrom: 'a', sourcePosition: position });
    const send: Send = { position, previous, lowestHash: undefined, buffers };
    previous = position;
    return send;
  });
  return sends;
}

async function repeat(n: number, work: () => Promise<void>): Promise<number> {
  const begun = process.hrtime.bigint();
  for (let i = 0; i < n; i++) await work();
  return Number(process.hrtime.bigint() - begun) / n;
}
