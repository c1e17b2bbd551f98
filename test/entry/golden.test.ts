/** Every stored entry that Pulsar's own clients, broker and classes wrote, read here and compared with what they say of it. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type BatchMessage,
  decompressPayload,
  type Entry,
  parseEntry,
  readBatch,
  verifyChecksum,
} from '../../src/entry/index.js';
import { bucketHash, classicPartition, hashKey, segmentHash } from '../../src/ring/index.js';
import { codecs } from '../support/codecs.js';
import { hex, refusal } from '../support/expect.js';
import {
  type Content,
  ENTRIES,
  type EntryRecord,
  fixture,
  fixtureBytes,
  fixtureEntry,
  type MessageRecord,
} from '../support/fixtures.js';
import { expectedOuter, expectedStamp, outerOf } from '../support/outer.js';

/** Entries that Pulsar reads in part or by tolerance, or not at all, and the code with which isthmus refuses them. */
const REFUSED = {
  'bld-required-missing': 'malformedEntry',
  'bld-metadata-cut': 'malformedEntry',
  'bld-wrong-wire-type': 'malformedEntry',
  'bld-metadata-size-too-large': 'malformedEntry',
  'bld-cut-in-header': 'malformedEntry',
  'bld-batch-count-more': 'undecodableBatch',
  'bld-batch-count-fewer': 'undecodableBatch',
  'bld-batch-count-zero': 'undecodableBatch',
  'bld-batch-count-negative': 'undecodableBatch',
  'bld-batch-cut': 'undecodableBatch',
  'bld-batch-record-length-huge': 'undecodableBatch',
  'bld-batch-negative-payload-size': 'undecodableBatch',
  'bld-size-short-lz4': 'undecodableBatch',
  'bld-size-long-lz4': 'undecodableBatch',
  'bld-size-short-zlib': 'undecodableBatch',
  'bld-size-short-zstd': 'undecodableBatch',
  'bld-size-long-zstd': 'undecodableBatch',
  'bld-size-short-snappy': 'undecodableBatch',
  'bld-size-long-snappy': 'undecodableBatch',
  'bld-size-missing-lz4': 'undecodableBatch',
  'bld-marked-compressed-but-plain': 'undecodableBatch',
  'bld-bomb-declared-small': 'undecodableBatch',
  'bld-size-4-gib': 'undecodableBatch',
} as const;

/** What a compacted batch of fewer records than its count holds is read here, though Pulsar itself stumbles. */
const READ_HERE_ALONE = ['bld-compacted-indexes', 'bld-compacted-indexes-packed'];

const nameOf = ({ file }: EntryRecord): string => file.replace(/^entries\/|\.bin$/g, '');
const readable = ENTRIES.filter((record) => record.outer !== undefined).map(
  (record) => [nameOf(record), record] as const,
);
const opened = readable.filter(([name, record]) => !(name in REFUSED) && record.messages !== undefined);

/** Opens an entry as far as it goes: the records of a batch, or the body of a single message. */
function open(entry: Entry): readonly BatchMessage[] | Uint8Array {
  const { metadata } = entry;
  if (metadata.numMessagesInBatch !== undefined) return readBatch(entry, codecs);
  if (metadata.chunk !== undefined) return entry.payload;
  return decompressPayload(entry.payload, metadata.compression, metadata.uncompressedSize, codecs);
}

function expectContent(bytes: Uint8Array, { length, utf8, sha256 }: Content): void {
  expect(bytes.length).toBe(length);
  if (utf8 === undefined) expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
  else expect(Buffer.from(bytes).toString('utf8')).toBe(utf8);
}

describe('entries of Pulsar 5.0.1', () => {
  it('the manifest holds 233 entries, and the tables here name entries of it', () => {
    expect(ENTRIES).toHaveLength(233);
    for (const name of [...Object.keys(REFUSED), ...READ_HERE_ALONE]) fixture(name);
    const stumbled = ENTRIES.filter(
      (record) => 'javaError' in record || (record as { trailingBytes?: number }).trailingBytes,
    );
    expect(stumbled.map(nameOf).sort()).toEqual([...Object.keys(REFUSED), ...READ_HERE_ALONE].sort());
  });

  it.each(readable)('E1, E2: headers, offsets and every outer field of %s', (_, record) => {
    const bytes = fixtureBytes(record.file);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(record.sha256);
    const entry = parseEntry(bytes);
    expect(entry.header).toBe(record.header);
    expect(entry.broker === undefined ? null : { ...entry.broker }).toEqual(brokerOf(record));
    expect(entry.checksum?.toString(16).padStart(8, '0')).toBe(record.checksum?.stored);
    expect(verifyChecksum(entry)).toBe(record.checksum === null ? 'absent' : record.checksum.valid ? 'ok' : 'mismatch');
    expect(entry.metadataBytes.byteOffset - bytes.byteOffset).toBe(record.metadataOffset);
    expect(entry.metadataBytes.length).toBe(record.metadataLength);
    expect(entry.payloadLength).toBe(record.payloadLength);
    expectContent(entry.payload, record.storedPayload);

    const { metadata } = entry;
    expect(outerOf(metadata)).toEqual(expectedOuter(record.outer ?? {}));
    expect(metadata.compression).toBe(record.compression.toLowerCase());
    expect(metadata.uncompressedSize ?? null).toBe(record.uncompressedSize);
    expect(metadata.stamp).toEqual(expectedStamp(record.stamp));
    expect(metadata.numMessagesInBatch !== undefined).toBe(record.isBatch);
    expect(metadata.encrypted).toBe(record.encrypted);
    expect(metadata.chunk !== undefined).toBe(record.chunked);
  });

  it.each(opened)('E7, E9: messages and hashes of %s', (_, record) => {
    const entry = parseEntry(fixtureBytes(record.file));
    const content = open(entry);
    const messages = record.messages ?? [];
    if (content instanceof Uint8Array) {
      expect(messages).toHaveLength(1);
      const [message] = messages as [MessageRecord];
      expectContent(content, message.payload);
      expectSingle(entry, message);
    } else {
      expect(content).toHaveLength(messages.length);
      for (const [i, message] of messages.entries()) expectRecord(content[i] as BatchMessage, message);
    }
  });

  it.each(Object.entries(REFUSED))('E6, E7: %s is refused as %s', (name, code) => {
    expect(refusal(() => open(parseEntry(fixtureEntry(name))))).toBe(code);
  });

  it('B43: an encrypted batch is never opened', () => {
    for (const name of ['cap-v4-encrypted-batch', 'bld-encrypted-batch-stamped']) {
      expect(refusal(() => readBatch(parseEntry(fixtureEntry(name)), codecs))).toBe('encryptedBatch');
    }
  });

  it('B08, E9: the recomputed lowest and highest bucket hash equal the stamp of every entry that a producer stamped', () => {
    let compared = 0;
    for (const [name, record] of opened) {
      const entry = parseEntry(fixtureBytes(record.file));
      // Built entries have stamps made by hand; a lone surrogate is stamped over another text than goes on the wire.
      const foreign = name.startsWith('bld-') || name.includes('surrogate');
      const { metadata } = entry;
      if (metadata.stamp === undefined || foreign) continue;
      const content = open(entry);
      const key = metadata.orderingKey ?? metadata.partitionKeyBytes;
      const own = key === undefined ? 0 : bucketHash(hashKey(key));
      const hashes = content instanceof Uint8Array ? [own] : content.map((message) => message.bucketHash);
      expect({ min: Math.min(...hashes), max: Math.max(...hashes) }, name).toEqual(metadata.stamp);
      compared++;
    }
    expect(compared).toBeGreaterThan(60);
  });
});

function brokerOf({ brokerEntry }: EntryRecord) {
  if (brokerEntry === null) return null;
  const { broker_timestamp: timestamp, index } = brokerEntry;
  return {
    ...(timestamp === undefined ? {} : { timestampMs: Number(timestamp) }),
    ...(index === undefined ? {} : { index: BigInt(index) }),
  };
}

const id = (value: MessageRecord['sequenceId']) => (value === null ? undefined : BigInt(value));
const text32 = (hash: number) => hash.toString(16).padStart(8, '0');

function expectSingle({ metadata }: Entry, { hash, ...message }: MessageRecord): void {
  const key = metadata.partitionKeyBytes;
  expect(metadata.partitionKey ?? null).toBe(message.key);
  expect(metadata.partitionKeyB64 ?? false).toBe(message.keyB64);
  expect(hex(metadata.orderingKey) ?? null).toBe(message.orderingKey);
  expect(metadata.properties).toEqual(message.properties);
  expect(metadata.sequenceId).toBe(id(message.sequenceId));
  expect(key === undefined ? null : text32(hashKey(key))).toBe(hash.keyRaw);
  expect(key === undefined ? null : segmentHash(hashKey(key))).toBe(hash.segmentHash);
  expect(key === undefined ? null : classicPartition(hashKey(key), 2 ** 31)).toBe(hash.legacyMasked);
  const bucketKey = metadata.orderingKey ?? key;
  expect(bucketKey === undefined ? 0 : bucketHash(hashKey(bucketKey))).toBe(hash.bucketHash);
}

function expectRecord(message: BatchMessage, record: MessageRecord): void {
  const { hash } = record;
  const key = message.partitionKeyBytes;
  expectContent(message.payload, record.payload);
  expect({
    key: message.partitionKey ?? null,
    keyB64: message.partitionKeyB64 ?? false,
    orderingKey: hex(message.orderingKey) ?? null,
    nullPartitionKey: message.nullPartitionKey ?? false,
    properties: message.properties,
    eventTime: message.eventTimeMs ?? null,
    sequenceId: message.sequenceId,
    nullValue: message.nullValue ?? false,
    compactedOut: message.compactedOut ?? false,
    keyRaw: key === undefined ? null : text32(hashKey(key)),
    segmentHash: message.segmentHash ?? null,
    bucketHash: message.bucketHash,
  }).toEqual({
    key: record.key,
    keyB64: record.keyB64,
    orderingKey: record.orderingKey,
    nullPartitionKey: record.nullPartitionKey,
    properties: record.properties,
    eventTime: record.eventTime === null ? null : Number(record.eventTime),
    sequenceId: id(record.sequenceId),
    nullValue: record.nullValue,
    compactedOut: record.compactedOut,
    keyRaw: hash.keyRaw,
    segmentHash: hash.segmentHash,
    bucketHash: hash.bucketHash,
  });
}
