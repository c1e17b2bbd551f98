/** What the demo proves about itself: it reads every cluster's entries back, as a consumer would. */
import {
  bucketIndex,
  type Codecs,
  type DecodeLimits,
  type Entry,
  parseEntry,
  parseSourcePosition,
  readBatch,
  type Segment,
  SOURCE_POSITION_PROPERTY,
  verifyChecksum,
} from 'isthmus';
import type { LmdbTopic } from 'isthmus/adapters/lmdb';
import type { FlightRecord } from './flights.js';

export interface Check {
  readonly name: string;
  readonly passed: boolean;
  readonly detail: string;
}

/** What each origin wrote, by cluster. */
export type Written = ReadonlyMap<string, readonly FlightRecord[]>;

/** Reads one cluster and checks content, order and affinity. */
export function checkCluster(topic: LmdbTopic, written: Written, codecs: Codecs, limits?: DecodeLimits): Check[] {
  const total = [...written.values()].reduce((sum, records) => sum + records.length, 0);
  const reader = new ClusterReader(written);
  // A child's id is higher than its parents', so this order is the one in which a consumer sees each key.
  const segments = [...topic.layout.segments.values()].sort((a, b) => a.segmentId - b.segmentId);
  for (const segment of segments) {
    for (const { bytes } of topic.entries(segment.segmentId)) {
      reader.read(topic.cluster, segment, parseEntry(bytes), codecs, limits);
    }
  }
  const { seen, repeated, wrong, disordered, straddling, corrupt } = reader;
  return [
    {
      name: `${topic.cluster}: every message of every origin, once`,
      passed: seen === total && repeated === 0 && wrong === 0 && corrupt === 0,
      detail: `${seen} of ${total}, ${repeated} twice, ${wrong} with another value, ${corrupt} checksums wrong`,
    },
    {
      name: `${topic.cluster}: each origin's order per key`,
      passed: disordered === 0,
      detail: `${disordered} messages out of order`,
    },
    {
      name: `${topic.cluster}: no entry straddles a bucket or leaves its segment`,
      passed: straddling === 0,
      detail: `${straddling} entries`,
    },
  ];
}

/** The entries that a cluster holds of each other one: whole as they were, or parts of re-batched ones. */
export function countCopies(topic: LmdbTopic): Map<string, { verbatim: number; parts: number; bytes: number }> {
  const counts = new Map<string, { verbatim: number; parts: number; bytes: number }>();
  for (const { segmentId } of topic.layout.segments.values()) {
    for (const { bytes } of topic.entries(segmentId)) {
      const { replicatedFrom, properties } = parseEntry(bytes).metadata;
      if (replicatedFrom === undefined) continue;
      const count = counts.get(replicatedFrom) ?? { verbatim: 0, parts: 0, bytes: 0 };
      counts.set(replicatedFrom, count);
      const position = properties.findLast(([name]) => name === SOURCE_POSITION_PROPERTY)?.[1] ?? '';
      if (parseSourcePosition(position).part === undefined) count.verbatim++;
      else count.parts++;
      count.bytes += bytes.length;
    }
  }
  return counts;
}

class ClusterReader {
  seen = 0;
  repeated = 0;
  wrong = 0;
  disordered = 0;
  straddling = 0;
  corrupt = 0;
  private readonly found = new Map<string, Uint8Array>();
  /** The last sequence id of each key of each origin. */
  private readonly last = new Map<string, bigint>();

  constructor(private readonly written: Written) {
    for (const [origin, records] of written) this.found.set(origin, new Uint8Array(records.length));
  }

  read(cluster: string, segment: Segment, entry: Entry, codecs: Codecs, limits?: DecodeLimits): void {
    const origin = entry.metadata.replicatedFrom ?? cluster;
    if (verifyChecksum(entry) !== 'ok') this.corrupt++;
    const buckets = new Set<number>();
    let outside = false;
    for (const { partitionKey = '', payload, sequenceId = 0n, segmentHash = -1, bucketHash } of readBatch(
      entry,
      codecs,
      limits,
    )) {
      buckets.add(bucketIndex(segment.entryBucketSplits, bucketHash));
      outside ||= segmentHash < segment.range.start || segmentHash > segment.range.end;
      this.message(origin, partitionKey, sequenceId, payload);
    }
    if (buckets.size !== 1 || outside) this.straddling++;
  }

  private message(origin: string, key: string, sequenceId: bigint, payload: Uint8Array): void {
    const found = this.found.get(origin);
    const record = this.written.get(origin)?.[Number(sequenceId)];
    if (found === undefined || record === undefined) {
      this.wrong++;
      return;
    }
    if (found[Number(sequenceId)] === 1) this.repeated++;
    else this.seen++;
    found[Number(sequenceId)] = 1;
    if (record.key !== key || Buffer.compare(record.value, payload) !== 0) this.wrong++;
    const place = `${origin} ${key}`;
    if (sequenceId <= (this.last.get(place) ?? -1n)) this.disordered++;
    this.last.set(place, sequenceId);
  }
}
