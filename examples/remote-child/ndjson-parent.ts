/**
 * A folder of NDJSON files as the topic that is copied: each file is a partition, each line a record, and its number the
 * offset. The line goes to the target byte for byte; its key is one of its members.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ParentTopic, ParentTopics, PartitionBacklog, Slab, SlabLimits, SourceRecord, StartMode } from 'isthmus';

const LINE_FEED = 0x0a;

export class NdjsonParent implements ParentTopics {
  /** By file name, in order: all records. The files do not change while this runs. */
  readonly partitions: readonly (readonly SourceRecord[])[];

  /** Throws when a file cannot be read, or a line of it is no JSON object. */
  constructor(
    private readonly name: string,
    folder: string,
    keyMember: string,
  ) {
    const files = readdirSync(folder).filter((file) => file.endsWith('.ndjson'));
    this.partitions = files.sort().map((file) => readRecords(join(folder, file), keyMember));
  }

  async describe(parent: string): Promise<ParentTopic | undefined> {
    if (parent !== this.name) return undefined;
    return { name: parent, id: '', createdAt: 0, retentionMs: 0, children: 0, remoteChildren: 0, isChild: false };
  }

  async startOffsets(_parent: string, from: StartMode): Promise<readonly number[]> {
    return this.partitions.map((records) => (from === 'latest' ? records.length : 0));
  }

  async read(
    { partition, offset }: { readonly partition: number; readonly offset: number },
    { maxRecords, maxBytes }: SlabLimits,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Slab> {
    const all = this.partitions[partition] ?? [];
    // Nothing will come that is not there yet.
    if (offset >= all.length) await sleep(waitMs, undefined, { signal });
    const records: SourceRecord[] = [];
    let bytes = 0;
    for (let at = offset; at < all.length && records.length < maxRecords; at++) {
      const record = all[at] as SourceRecord;
      bytes += record.key.length + record.payload.length;
      if (records.length > 0 && bytes > maxBytes) break;
      records.push(record);
    }
    return { records, nextOffset: offset + records.length };
  }

  async backlog(_parent: string, partition: number, offset: number): Promise<PartitionBacklog> {
    const all = this.partitions[partition] ?? [];
    const oldest = all[offset];
    return { records: all.length - offset, ...(oldest && { oldestStoredMs: oldest.storedAtMs }) };
  }
}

function readRecords(file: string, keyMember: string): SourceRecord[] {
  const bytes = readFileSync(file);
  const storedAtMs = Math.floor(statSync(file).mtimeMs);
  const records: SourceRecord[] = [];
  for (let start = 0; start < bytes.length; ) {
    const feed = bytes.indexOf(LINE_FEED, start);
    const end = feed < 0 ? bytes.length : feed;
    const payload = bytes.subarray(start, end);
    const key = (JSON.parse(payload.toString('utf8')) as Record<string, unknown>)[keyMember];
    records.push({
      offset: records.length,
      key: Buffer.from(key === undefined ? '' : String(key)),
      payload,
      storedAtMs,
    });
    start = end + 1;
  }
  return records;
}
