/** Re-batching a batch of 128 KiB, 1,000 messages of 128 bytes, into 8 groups, with each codec. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLayout, defaultCodecs, hashKey, parseEntry, type RemoteLayout, readBatch, rebatch } from 'isthmus';
import { batchEntry } from './entries.js';
import { atMost, fasterThan, measure, type Row } from './harness.js';
import type { JavaPeer } from './java-peer.js';

const CODECS = ['none', 'lz4', 'snappy', 'zstd', 'zlib'] as const;
const JAVA_GOALS = { none: 2, lz4: 2, snappy: 2, zstd: 4, zlib: 3 };
const BUCKETS = 8;

const layout = createLayout({ segments: 1, buckets: BUCKETS, nowMs: 0 });
const remote: RemoteLayout = { cluster: 'b', epoch: 0, active: layout.active };
const source = { segmentId: 0, range: { start: 0, end: 0xffff }, legacy: false };

export async function rebatchRows(peer: JavaPeer | undefined): Promise<Row[]> {
  const codecs = await defaultCodecs();
  const folder = mkdtempSync(join(tmpdir(), 'isthmus-bench-'));
  const rows: Row[] = [];
  try {
    for (const compression of CODECS) {
      const bytes = batchEntry(1000, 128, compression, codecs);
      const file = join(folder, `${compression}.bin`);
      writeFileSync(file, bytes);
      const entry = parseEntry(bytes);
      const options = {
        codecs,
        stamp: { replicatedFrom: 'a', sourcePosition: { ledgerId: 1007n, entryId: 6n } },
        maxEntryBytes: 5 * 1024 * 1024,
      };
      if (rebatch(entry, source, remote, options).length !== BUCKETS) throw new Error('the batch has not all buckets');
      const plain = readBatch(parseEntry(batchEntry(1000, 128, 'none', codecs)), {});
      const keys = plain.map(({ partitionKeyBytes }) => partitionKeyBytes ?? new Uint8Array(0));
      const region = parseEntry(batchEntry(1000, 128, 'none', codecs)).payload.slice();
      const copy = new Uint8Array(region.length);
      const codec = compression === 'none' ? undefined : codecs[compression];
      const [own, floor, hashing, java] = await measure([
        {
          name: 'isthmus',
          run(n) {
            for (let i = 0; i < n; i++) rebatch(entry, source, remote, options);
            return undefined;
          },
        },
        {
          name: 'floor',
          run(n) {
            for (let i = 0; i < n; i++) {
              if (codec === undefined) copy.set(region);
              else {
                // In as many pieces as there are groups: no re-batcher can call the codec less often.
                const opened = codec.decompress(entry.payload, region.length, region.length);
                const piece = Math.ceil(opened.length / BUCKETS);
                for (let at = 0; at < opened.length; at += piece) codec.compress(opened.subarray(at, at + piece));
              }
            }
            return undefined;
          },
        },
        {
          name: 'hashing',
          run(n) {
            for (let i = 0; i < n; i++) for (const key of keys) hashKey(key);
            return undefined;
          },
        },
        ...(peer === undefined
          ? []
          : [{ name: 'java', run: (n: number) => peer.nsPerOp(`rebatch\t${file}\t${BUCKETS}\t${n}`) }]),
      ]);
      if (own === undefined || floor === undefined || hashing === undefined) throw new Error('nothing was measured');
      const name = `re-batch, ${compression}`;
      rows.push(
        codec === undefined
          ? atMost(name, '3 memcpy and the key hashes', own.medianNs, 3 * floor.medianNs + hashing.medianNs, 1)
          : atMost(name, `${codec.provider} alone, ${BUCKETS} pieces`, own.medianNs, floor.medianNs, 1.5),
      );
      if (java !== undefined) {
        rows.push(fasterThan(name, 'Pulsar in Java', own.medianNs, java.medianNs, JAVA_GOALS[compression]));
      }
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
