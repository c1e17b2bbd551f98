/** What the tests of re-batching share: remotes by hand, entries by hand, and a slow, plain account of where a message belongs. */
import {
  type BatchMessage,
  batchMessage,
  type Codecs,
  type CompressionType,
  type Entry,
  encodeBatch,
  encodeMessage,
  joinBuffers,
  type MessageFields,
  type OuterFields,
  parseEntry,
  type RestampOptions,
  readBatch,
} from '../../src/entry/index.js';
import type { Segment } from '../../src/layout/index.js';
import type { Part, RebatchOptions, RemoteLayout, SourceSegment } from '../../src/rebatch/index.js';
import { FULL_RANGE, type HashRange, hashKey, RING_END } from '../../src/ring/index.js';
import { codecs } from './codecs.js';
import { hex } from './expect.js';

/** The limit of an unmodified broker. */
export const FIVE_MIB = 5 * 1024 * 1024;

export const STAMP: RestampOptions = { replicatedFrom: 'a', sourcePosition: { ledgerId: 7n, entryId: 3n } };
export const OPTIONS: RebatchOptions = { codecs, stamp: STAMP, maxEntryBytes: FIVE_MIB };

/** A source segment that holds the whole ring. */
export const WHOLE_SOURCE: SourceSegment = { segmentId: 1, range: FULL_RANGE, legacy: false };

export function segment(segmentId: number, range: HashRange, entryBucketSplits: readonly number[] = []): Segment {
  return {
    segmentId,
    range,
    state: 'active',
    parentIds: [],
    childIds: [],
    entryBucketSplits,
    createdAtEpoch: 0,
    sealedAtEpoch: -1,
    createdAtMs: 0,
    sealedAtMs: -1,
  };
}

/** A remote whose segments begin at these hashes; ids count from 0, each with the same bucket splits. */
export function remoteOf(starts: readonly number[], splits: readonly number[] = [], epoch = 1): RemoteLayout {
  const active = starts.map((start, i) => segment(i, { start, end: (starts[i + 1] ?? RING_END + 1) - 1 }, splits));
  return { cluster: 'b', epoch, active };
}

/** A remote that is a classic topic of so many partitions. */
export function classicRemote(partitions: number): RemoteLayout {
  const active = Array.from({ length: partitions }, (_, i) => {
    return { ...segment(i, FULL_RANGE), legacyTopicName: `persistent://t/n/orders-partition-${i}` };
  });
  return { cluster: 'b', epoch: 0, active };
}

export const OUTER: OuterFields = { producerName: 'p', sequenceId: 5n, publishTimeMs: 1_700_000_000_000 };

export interface BatchShape {
  readonly outer?: Partial<OuterFields>;
  readonly compression?: CompressionType;
  readonly stamp?: boolean;
  readonly checksum?: boolean;
  readonly codecs?: Codecs;
}

/** A batch as a producer writes it, which gives it its first message's key. */
export function batch(messages: readonly MessageFields[], shape: BatchShape = {}): Entry {
  const { outer, compression = 'none', ...rest } = shape;
  const first = messages[0];
  const key: Partial<OuterFields> = { partitionKey: first?.partitionKey, orderingKey: first?.orderingKey };
  const options = { codecs, ...rest, compression, outer: { ...OUTER, ...key, ...outer } };
  return parseEntry(joinBuffers(encodeBatch(messages.map(batchMessage), options)));
}

/** A message with this key and body. */
export function message(partitionKey: string | undefined, body = 'body'): MessageFields {
  const payload = Buffer.from(body);
  return partitionKey === undefined ? { payload } : { payload, partitionKey };
}

/** A batch of one message for each key, bodies numbered; undefined is a message without a key. */
export function batchOf(keys: readonly (string | undefined)[], shape: BatchShape = {}): Entry {
  const messages = keys.map((key, i) => message(key, `body ${i}`));
  return batch(messages, shape);
}

export function single(outer: Partial<OuterFields> = {}, options: { stamp?: boolean; body?: string } = {}): Entry {
  const { stamp = true, body = 'body' } = options;
  return parseEntry(joinBuffers(encodeMessage(Buffer.from(body), { outer: { ...OUTER, ...outer }, stamp })));
}

/** Keys `k0`, `k1`, ... by their raw hash. */
const KEYS = Array.from({ length: 1 << 14 }, (_, i) => ({ key: `k${i}`, hash: hashKey(`k${i}`) }));

const KEYS_IN = new Map<string, readonly string[]>();

/** Keys that a producer sends to a source segment; none, perhaps, where its range is narrow. */
export function keysIn({ start, end }: HashRange): readonly string[] {
  const range = `${start}-${end}`;
  let keys = KEYS_IN.get(range);
  if (keys === undefined) {
    keys = KEYS.filter(({ hash }) => hash >>> 16 >= start && hash >>> 16 <= end).map(({ key }) => key);
    KEYS_IN.set(range, keys);
  }
  return keys;
}

/** Bytes that do not compress, the same on every run. */
export function noise(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** What decides where a message goes. */
export interface Keys {
  readonly partitionKey?: string | Uint8Array | undefined;
  readonly orderingKey?: Uint8Array | undefined;
}

/** The bucket hash of a message: R9 in two lines. */
export function bucketHashOf({ partitionKey, orderingKey }: Keys): number {
  const key = orderingKey ?? partitionKey;
  return key === undefined ? 0 : hashKey(key) % 0x10000;
}

/** The bucket of a hash by counting splits. */
export function bucketOf(splits: readonly number[], hash: number): HashRange {
  const below = splits.filter((split) => split <= hash);
  const above = splits.filter((split) => split > hash);
  return { start: below.at(-1) ?? 0, end: (above[0] ?? RING_END + 1) - 1 };
}

/** The remote segment of a message of a batch: R1, R3, R9, E9 read aloud. */
export function segmentOf(keys: Keys, source: SourceSegment, { active }: RemoteLayout): Segment {
  const among = (segments: readonly Segment[], index: number) => segments[index % segments.length] as Segment;
  const holding = (hash: number) => active.find(({ range }) => range.start <= hash && hash <= range.end) as Segment;
  const hash = keys.partitionKey === undefined ? undefined : hashKey(keys.partitionKey);
  if (active.length === 1) return among(active, 0);
  if (active.every(({ legacyTopicName }) => legacyTopicName !== undefined)) {
    const byId = [...active].sort((a, b) => a.segmentId - b.segmentId);
    return among(byId, hash === undefined ? source.segmentId : hash % 0x80000000);
  }
  if (source.legacy) {
    const bits = source.segmentId.toString(2).padStart(16, '0').slice(-16);
    const place = Number.parseInt([...bits].reverse().join(''), 2);
    return holding(hash === undefined ? place : Math.floor(hash / 0x10000));
  }
  const first = holding(source.range.start);
  if (source.range.end <= first.range.end || hash === undefined) return first;
  return holding(Math.floor(hash / 0x10000));
}

/** A message's own bytes, whole. */
export function recordOf(message: BatchMessage): string {
  return `${hex(message.metadataBytes)}/${hex(message.payload)}`;
}

export function recordsOf(entry: Entry): string[] {
  return readBatch(entry, codecs).map(recordOf);
}

/** A part as its destination reads it. */
export function openPart({ buffers }: Part): Entry {
  return parseEntry(joinBuffers(buffers));
}

export function partLength({ buffers }: Part): number {
  return buffers.head.length + buffers.payload.length;
}

export function bodiesOf(part: Part): string[] {
  return readBatch(openPart(part), codecs).map(({ payload }) => Buffer.from(payload).toString('utf8'));
}
