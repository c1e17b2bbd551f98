/** The verbatim path: parse, choose, re-stamp. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choosePath, createLayout, parseEntry, type RemoteLayout, restamp } from 'isthmus';
import { singleEntry } from './entries.js';
import { atMost, fasterThan, measure, type Row } from './harness.js';
import type { JavaPeer } from './java-peer.js';
import { protobufForward } from './protobuf-peer.js';

const SIZES = [
  { name: '1 KiB', bytes: 1024, protobufGoal: 10, javaGoal: 1.5 },
  { name: '64 KiB', bytes: 64 * 1024, protobufGoal: 40, javaGoal: 5 },
  { name: '1 MiB', bytes: 1024 * 1024, protobufGoal: 400, javaGoal: 60 },
];

const layout = createLayout({ segments: 4, buckets: 4, nowMs: 0 });
const remote: RemoteLayout = { cluster: 'b', epoch: 0, active: layout.active };
const source = { segmentId: 1, range: { start: 0x4000, end: 0x7fff }, legacy: false };
let sink = 0;

function forward(bytes: Uint8Array, iterations: number): undefined {
  for (let i = 0; i < iterations; i++) {
    const entry = parseEntry(bytes);
    const path = choosePath(entry, source, remote);
    if (path.kind !== 'verbatim') throw new Error(`the entry takes the path ${path.kind}`);
    const position = { ledgerId: 1007n, entryId: BigInt(i) };
    sink += restamp(entry, { replicatedFrom: 'a', sourcePosition: position }).head.length;
  }
}

export async function verbatimRows(peer: JavaPeer | undefined): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'isthmus-bench-'));
  const rows: Row[] = [];
  const own: number[] = [];
  try {
    for (const { name, bytes, protobufGoal, javaGoal } of SIZES) {
      const entry = singleEntry(bytes);
      const file = join(folder, `${bytes}.bin`);
      writeFileSync(file, entry);
      const [isthmus, protobuf, java] = await measure([
        { name: 'isthmus', run: (n) => forward(entry, n) },
        {
          name: 'protobuf-es',
          run(n) {
            for (let i = 0; i < n; i++) sink += protobufForward(entry, i);
            return undefined;
          },
        },
        ...(peer === undefined ? [] : [{ name: 'java', run: (n: number) => peer.nsPerOp(`restamp\t${file}\t${n}`) }]),
      ]);
      if (isthmus === undefined || protobuf === undefined) throw new Error('nothing was measured');
      own.push(isthmus.medianNs);
      const measureName = `verbatim, ${name}`;
      rows.push(
        fasterThan(measureName, 'protobuf-es and a full CRC', isthmus.medianNs, protobuf.medianNs, protobufGoal),
      );
      if (java !== undefined)
        rows.push(fasterThan(measureName, 'Pulsar in Java', isthmus.medianNs, java.medianNs, javaGoal));
    }
    const sizes = SIZES.map(({ bytes }) => singleEntry(bytes));
    const [small, , large] = await measure(
      sizes.map((entry, i) => ({ name: SIZES[i]?.name ?? '', run: (n: number) => forward(entry, n) })),
    );
    if (small !== undefined && large !== undefined) {
      rows.push(atMost('verbatim, 1 MiB', 'verbatim, 1 KiB', large.medianNs, small.medianNs, 1.1));
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true });
    if (sink < 0) console.error(sink);
  }
}
