/** Batches: what is written reads back, records are copied byte for byte, sizes and counts must meet (E5, E7, E8). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BatchMessage,
  batchMessage,
  decompressPayload,
  encodeBatch,
  encodeMessage,
  joinBuffers,
  type MessageFields,
  type OuterFields,
  parseEntry,
  readBatch,
  verifyChecksum,
} from '../../src/entry/index.js';
import {
  arbCodecNames,
  arbEntry,
  arbMessageFields,
  arbOuterFields,
  frameEntry,
  rawField,
} from '../../src/testing/entries.js';
import { codecs, itEachZstd } from '../support/codecs.js';
import { hex, refusal, sameBytes } from '../support/expect.js';
import { ENTRIES, fixtureBytes, fixtureEntry } from '../support/fixtures.js';

const OUTER: OuterFields = { producerName: 'p', sequenceId: 5n, publishTimeMs: 1 };
const pack = (
  messages: readonly BatchMessage[],
  compression: Parameters<typeof encodeBatch>[1]['compression'] = 'none',
) => parseEntry(joinBuffers(encodeBatch(messages, { outer: OUTER, compression, codecs })));

/** A record as it lies in a batch. */
function record(metadata: Uint8Array, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(metadata.length);
  return Buffer.concat([size, metadata, payload]);
}

/** An uncompressed batch that says it holds `count` records. */
function batchOf(count: number, region: Uint8Array, ...more: readonly Uint8Array[]) {
  const fields = [rawField(1, 'p'), rawField(2, 1n), rawField(3, 1n), rawField(11, BigInt(count)), ...more];
  return parseEntry(frameEntry({ metadata: Buffer.concat(fields), payload: region }));
}

const fieldsOf = (message: BatchMessage): Record<string, unknown> => ({
  payload: hex(message.payload),
  properties: message.properties,
  partitionKey: message.partitionKey,
  partitionKeyB64: message.partitionKeyB64,
  orderingKey: hex(message.orderingKey),
  eventTimeMs: message.eventTimeMs,
  sequenceId: message.sequenceId,
  nullValue: message.nullValue,
  compactedOut: message.compactedOut,
  nullPartitionKey: message.nullPartitionKey,
});

const expectedFields = ({
  payload,
  orderingKey,
  properties = [],
  ...fields
}: MessageFields): Record<string, unknown> => ({
  payload: hex(payload),
  orderingKey: hex(orderingKey),
  properties,
  ...fields,
});

describe('encode and read', () => {
  itEachZstd(
    (name) => `batches of all codecs read back as they were written, zstd by ${name}`,
    (_, zstd) => {
      const own = { ...codecs, zstd };
      const arb = fc.tuple(
        fc.array(arbMessageFields(), { minLength: 1, maxLength: 8 }),
        arbOuterFields(),
        arbCodecNames(),
      );
      fc.assert(
        fc.property(arb, ([messages, outer, compression]) => {
          const buffers = encodeBatch(messages.map(batchMessage), { outer, compression, codecs: own });
          const entry = parseEntry(joinBuffers(buffers));
          expect(verifyChecksum(entry)).toBe('ok');
          const read = readBatch(entry, codecs);
          expect(read.map(fieldsOf)).toEqual(messages.map(expectedFields));
          const hashes = read.map((message) => message.bucketHash);
          expect(entry.metadata.stamp).toEqual({ min: Math.min(...hashes), max: Math.max(...hashes) });
          expect(entry.metadata.numMessagesInBatch).toBe(messages.length);
        }),
        { numRuns: 300 },
      );
    },
  );

  it('singles of all codecs read back as they were written, with the stamp of their own key', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), arbOuterFields(), arbCodecNames(), (body, outer, compression) => {
        const entry = parseEntry(joinBuffers(encodeMessage(body, { outer, compression, codecs })));
        const { metadata } = entry;
        expect(verifyChecksum(entry)).toBe('ok');
        expect(metadata.uncompressedSize).toBe(body.length);
        expect(metadata.sequenceId).toBe(outer.sequenceId);
        expect(hex(decompressPayload(entry.payload, compression, metadata.uncompressedSize, codecs))).toBe(hex(body));
        expect(metadata.stamp?.min).toBe(metadata.stamp?.max);
      }),
    );
  });

  it("E8: the outer sequence ids are the highest of the messages, as signed numbers; without any, the producer's own stays", () => {
    const message = (sequenceId?: bigint) =>
      batchMessage({ payload: new Uint8Array(1), ...(sequenceId === undefined ? {} : { sequenceId }) });
    const ids = (messages: BatchMessage[]) => {
      const { sequenceId, highestSequenceId } = pack(messages).metadata;
      return [sequenceId, highestSequenceId];
    };
    expect(ids([message(7n), message(9n), message(8n)])).toEqual([9n, 9n]);
    expect(ids([message(), message(3n)])).toEqual([3n, 3n]);
    expect(ids([message(2n ** 64n - 1n), message(0n)])).toEqual([0n, 0n]);
    expect(ids([message(2n ** 64n - 1n)])).toEqual([2n ** 64n - 1n, 2n ** 64n - 1n]);
    expect(ids([message()])).toEqual([5n, undefined]);
  });

  it('E8, E6: an uncompressed batch declares no size, a compressed one its true size', () => {
    const messages = [batchMessage({ payload: Buffer.from('body') }), batchMessage({ payload: Buffer.from('more') })];
    const { payloadLength, metadata } = pack(messages);
    expect(metadata.uncompressedSize).toBeUndefined();
    for (const compression of ['lz4', 'zlib', 'zstd', 'snappy'] as const) {
      expect(pack(messages, compression).metadata.uncompressedSize).toBe(payloadLength);
    }
  });

  it('metadata that was read can be written again: markers, chunks and codecs of any number', () => {
    const wild = { markerType: -1, chunk: { uuid: 'u', chunkId: 1, numChunks: 2 ** 31 - 1, totalSize: -1 } };
    const first = encodeMessage(Buffer.from('x'), { outer: { ...OUTER, ...wild } });
    const { metadata } = parseEntry(joinBuffers(first));
    expect([metadata.markerType, metadata.chunk]).toEqual([wild.markerType, wild.chunk]);
    const again = encodeMessage(Buffer.from('x'), {
      outer: { ...OUTER, markerType: metadata.markerType, chunk: metadata.chunk },
    });
    expect(sameBytes(again.head, first.head)).toBe(true);
  });
});

describe('E7: records', () => {
  const batches = ENTRIES.filter(({ isBatch, messages = [] }) => isBatch && messages.length > 0);

  it('records are copied byte for byte, order kept, fields of no known number included', () => {
    let compared = 0;
    for (const { file } of batches) {
      const entry = parseEntry(fixtureBytes(file));
      let messages: BatchMessage[] = [];
      if (
        refusal(() => {
          messages = readBatch(entry, codecs);
        }) !== undefined
      )
        continue;
      const { compression, uncompressedSize } = entry.metadata;
      const region = decompressPayload(entry.payload, compression, uncompressedSize, codecs);
      expect(
        sameBytes(encodeBatch(messages, { outer: OUTER, compression: 'none', codecs }).payload, region),
        file,
      ).toBe(true);
      compared++;
    }
    expect(compared).toBeGreaterThan(60);
    const [unknown] = readBatch(parseEntry(fixtureEntry('bld-batch-unknown-inner')), codecs);
    expect(unknown?.metadataBytes.length).toBeGreaterThan(0);
  });

  it('B39: every inner field, unknown ones too, is byte-equal after regrouping in another order', () => {
    const arb = fc.array(fc.tuple(arbMessageFields(), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })), {
      minLength: 2,
      maxLength: 6,
    });
    fc.assert(
      fc.property(arb, arbCodecNames(), (drawn, compression) => {
        const regions = drawn.map(([fields, later]) => {
          const { metadataBytes, payload } = batchMessage(fields);
          return record(Buffer.concat([rawField(100, later), metadataBytes, rawField(35, 'later')]), payload);
        });
        const messages = readBatch(batchOf(regions.length, Buffer.concat(regions)), codecs);
        const regrouped = readBatch(pack(messages.toReversed(), compression), codecs).toReversed();
        for (const [i, message] of regrouped.entries()) {
          expect(hex(record(message.metadataBytes, message.payload))).toBe(hex(regions[i]));
          expect(fieldsOf(message)).toEqual(fieldsOf(messages[i] as BatchMessage));
        }
      }),
    );
  });

  it('B10: null values, empty bodies and placeholders keep their flags, each in its place', () => {
    const empty = new Uint8Array(0);
    const drawn: MessageFields[] = [
      { payload: Buffer.from('a'), partitionKey: 'k1' },
      { payload: empty, partitionKey: 'k2', nullValue: true },
      { payload: empty, partitionKey: 'k3' },
      { payload: empty, partitionKey: 'k4', compactedOut: true },
      { payload: Buffer.from('e') },
    ];
    for (const compression of ['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const) {
      const read = readBatch(pack(drawn.map(batchMessage), compression), codecs);
      expect(read.map(fieldsOf)).toEqual(drawn.map(expectedFields));
      const nulls = readBatch(
        pack(
          read.filter(({ nullValue }) => nullValue === true),
          compression,
        ),
        codecs,
      );
      expect(nulls.map(({ partitionKey, nullValue }) => [partitionKey, nullValue])).toEqual([['k2', true]]);
    }
  });

  it('E4: the records of an uncompressed batch are views over the entry itself', () => {
    const entry = parseEntry(fixtureEntry('bld-batch-of-three'));
    for (const { payload, metadataBytes } of readBatch(entry, codecs)) {
      expect(payload.buffer).toBe(entry.bytes.buffer);
      expect(metadataBytes.buffer).toBe(entry.bytes.buffer);
    }
  });

  const body = rawField(3, 2n);
  const good = record(body, Buffer.from('ab'));
  it.each([
    ['two messages where one is', batchOf(2, good)],
    ['one message where two are', batchOf(1, Buffer.concat([good, good]))],
    ['no message where one is', batchOf(0, good)],
    ['fewer than none', batchOf(-1, good)],
    ['2^31-1 messages', batchOf(2 ** 31 - 1, good)],
    ['a message and three bytes of a size', batchOf(1, Buffer.concat([good, Buffer.alloc(3)]))],
    ['a record of 2^32-1 bytes of metadata', batchOf(1, Buffer.from('ffffffff1802', 'hex'))],
    ['a body that is cut', batchOf(1, good.subarray(0, -1))],
    ['a body of -1 bytes', batchOf(1, record(rawField(3, -1n)))],
    ['a body of 2^31-1 bytes', batchOf(1, record(rawField(3, 2n ** 31n - 1n)))],
    ['no payload_size', batchOf(1, record(rawField(2, 'a-key')))],
    ['a key that is a number', batchOf(1, record(Buffer.concat([rawField(2, 7n), rawField(3, 0n)])))],
    ['a sequence id that is text', batchOf(1, record(Buffer.concat([rawField(8, 'x'), rawField(3, 0n)])))],
    ['a property without a value', batchOf(1, record(Buffer.concat([rawField(1, rawField(1, 'k')), rawField(3, 0n)])))],
    ['a field that is cut', batchOf(1, record(Buffer.concat([rawField(3, 0n), Buffer.from([0x12, 9])])))],
  ])('a batch that holds %s is refused', (_, entry) => {
    expect(refusal(() => readBatch(entry, codecs))).toBe('undecodableBatch');
  });

  it('B38: count and records must agree, wherever an arbitrary batch is cut and whatever it says it holds', () => {
    const arb = arbEntry({}, { kinds: ['batch'], headers: ['none'], encrypted: false });
    fc.assert(
      fc.property(arb, fc.nat(), fc.integer({ min: -3, max: 3 }), ({ bytes }, place, off) => {
        const { payload, metadata } = parseEntry(bytes);
        const count = metadata.numMessagesInBatch ?? 0;
        const cut = batchOf(count, payload.subarray(0, place % payload.length));
        expect(refusal(() => readBatch(cut, codecs))).toBe('undecodableBatch');
        expect(refusal(() => readBatch(batchOf(count + off, payload), codecs))).toBe(
          off === 0 ? undefined : 'undecodableBatch',
        );
      }),
      { numRuns: 300 },
    );
  });

  it('a compacted batch may hold just the records it kept, even far fewer than its count, and no other number of them', () => {
    const kept = (...indexes: bigint[]) => indexes.map((index) => rawField(31, index));
    const read = (count: number, region: Uint8Array, indexes: Uint8Array[]) =>
      readBatch(batchOf(count, region, ...indexes), codecs);
    expect(read(5, Buffer.concat([good, good]), kept(1n, 4n))).toHaveLength(2);
    expect(read(1000, good, kept(999n))).toHaveLength(1);
    expect(read(2, Buffer.concat([good, good]), kept(1n))).toHaveLength(2);
    expect(refusal(() => read(1000, good, kept(1n, 999n)))).toBe('undecodableBatch');
    expect(refusal(() => read(1000, good, []))).toBe('undecodableBatch');
    expect(refusal(() => read(1000, Buffer.concat([good, good]), kept(3n)))).toBe('undecodableBatch');
  });

  it('E3, B37: a batch whose stored checksum is wrong is not opened, since what is made of it would look sound', () => {
    const bytes = joinBuffers(
      encodeBatch([batchMessage({ payload: Buffer.from('body') })], { outer: OUTER, compression: 'none', codecs }),
    );
    const last = bytes.length - 1;
    bytes[last] = (bytes[last] as number) ^ 1;
    expect(refusal(() => readBatch(parseEntry(bytes), codecs))).toBe('checksumMismatch');
  });
});
