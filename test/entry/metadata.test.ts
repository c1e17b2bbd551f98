/** Reading the outer metadata: headers, presence, repeats, malformed bytes, and numbers of all sizes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Outer, parseEntry, readBatch } from '../../src/entry/index.js';
import { bucketHash, hashKey, segmentHash } from '../../src/ring/index.js';
import { arbEntry, frameEntry, rawField, splitFields } from '../../src/testing/entries.js';
import { codecs } from '../support/codecs.js';
import { hex, refusal } from '../support/expect.js';
import { fixtureEntry } from '../support/fixtures.js';

const REQUIRED = [rawField(1, 'p'), rawField(2, 1n), rawField(3, 1n)];
const read = (...fields: readonly Uint8Array[]) => parseEntry(frame(Buffer.concat([...REQUIRED, ...fields]))).metadata;
const frame = (metadata: Uint8Array) => frameEntry({ metadata, payload: Buffer.from('x') });
const varint = (...bytes: number[]) => Uint8Array.of(...bytes);

describe('headers', () => {
  it('E1: the four headers, with the broker header apart from what is forwarded', () => {
    const seen = ['bld-none', 'bld-checksum', 'bld-broker-none', 'bld-broker-checksum'].map((name) => {
      const { header, broker } = parseEntry(fixtureEntry(name));
      return [header, broker?.index];
    });
    expect(seen).toEqual([
      ['none', undefined],
      ['checksum', undefined],
      ['broker', 42n],
      ['broker+checksum', 42n],
    ]);
  });

  it('E1: unknown fields in a broker header are passed over, a cut or mistyped one is refused', () => {
    const metadata = Buffer.concat(REQUIRED);
    const payload = Buffer.from('x');
    const broker = Buffer.concat([rawField(9, 'later'), rawField(2, 5n)]);
    expect(parseEntry(frameEntry({ metadata, payload, broker })).broker).toEqual({ index: 5n });
    for (const wrong of [rawField(2, 'text'), rawField(9, 'later').subarray(0, -1), varint(0x08)]) {
      expect(refusal(() => parseEntry(frameEntry({ metadata, payload, broker: wrong })))).toBe('malformedEntry');
    }
  });

  it('E4: an entry inside a larger buffer is read in place', () => {
    const inner = fixtureEntry('bld-broker-checksum');
    const outer = Buffer.concat([Buffer.alloc(3, 9), inner, Buffer.alloc(3, 9)]);
    const entry = parseEntry(outer.subarray(3, -3));
    expect(entry.payload.buffer).toBe(outer.buffer);
    expect(Buffer.from(entry.payload).toString()).toBe('hello');
  });
});

describe('E2: the view over the metadata', () => {
  it('arbitrary entries read as they were built', () => {
    fc.assert(
      fc.property(
        arbEntry(codecs),
        ({ bytes, header, outer, content, compression, encrypted, stamp, unknownFields }) => {
          const entry = parseEntry(bytes);
          const { metadata } = entry;
          expect(entry.header).toBe(header);
          expect(metadata.producerName).toBe(outer.producerName);
          expect(metadata.publishTimeMs).toBe(outer.publishTimeMs);
          expect(metadata.partitionKey).toBe(outer.partitionKey);
          expect(metadata.partitionKeyB64).toBe(outer.partitionKeyB64);
          expect(hex(metadata.orderingKey)).toBe(hex(outer.orderingKey));
          expect(metadata.nullPartitionKey).toBe(outer.nullPartitionKey);
          expect(metadata.properties).toEqual(outer.properties ?? []);
          expect(metadata.replicatedFrom).toBe(outer.replicatedFrom);
          expect(metadata.replicateTo).toEqual(outer.replicateTo ?? []);
          expect(metadata.eventTimeMs).toBe(outer.eventTimeMs);
          expect(hex(metadata.schemaVersion)).toBe(hex(outer.schemaVersion));
          expect(metadata.deliverAtMs).toBe(outer.deliverAtMs);
          expect(metadata.markerType).toBe(outer.markerType);
          expect(metadata.txn).toEqual(outer.txn);
          expect(metadata.nullValue).toBe(outer.nullValue);
          expect(metadata.chunk).toEqual(outer.chunk);
          expect(metadata.compression).toBe(compression);
          expect(metadata.encrypted).toBe(encrypted);
          expect(metadata.stamp).toEqual(stamp);
          expect(metadata.numMessagesInBatch).toBe(content.kind === 'batch' ? content.messages.length : undefined);
          const unknown = splitFields(entry.metadataBytes).filter(({ field }) => field > Outer.stampMax);
          expect(unknown.map((field) => hex(field.bytes)).sort()).toEqual(unknownFields.map(hex).sort());
        },
      ),
      { numRuns: 400 },
    );
  });

  it('a field that is present twice counts with its last value, even an overlong one', () => {
    expect(read(rawField(6, 'k1'), rawField(6, 'k2')).partitionKey).toBe('k2');
    expect(read(rawField(1, 'q')).producerName).toBe('q');
    expect(read(rawField(11, 5n), rawField(11, 2n)).numMessagesInBatch).toBe(2);
    expect(read(rawField(33, 10n), rawField(34, 20n), rawField(33, 30n), rawField(34, 40n)).stamp).toEqual({
      min: 30,
      max: 40,
    });
    expect(read(rawField(33, 9n), rawField(34, 20n), varint(0x88, 0x02, 0x8a, 0x80, 0x00)).stamp).toEqual({
      min: 10,
      max: 20,
    });
    expect(read(rawField(17, 1n), rawField(17, 0n)).partitionKeyB64).toBe(false);
  });

  it.each([
    ['no stamp', [], undefined],
    ['one half, the lower', [rawField(33, 5n)], undefined],
    ['one half, the upper', [rawField(34, 5n)], undefined],
    ['min above max', [rawField(33, 6n), rawField(34, 5n)], undefined],
    ['an upper bound of 65536', [rawField(33, 5n), rawField(34, 65536n)], undefined],
    ['both bounds 2^32-1', [rawField(33, 2n ** 32n - 1n), rawField(34, 2n ** 32n - 1n)], undefined],
    ['the whole ring', [rawField(33, 0n), rawField(34, 65535n)], { min: 0, max: 65535 }],
    ['one hash', [rawField(34, 0n), rawField(33, 0n)], { min: 0, max: 0 }],
  ] as const)('the stamp of an entry with %s', (_, fields, stamp) => {
    expect(read(...fields).stamp).toEqual(stamp);
  });

  const bytesFields = [1, 4, 5, 6, 7, 13, 14, 15, 16, 18, 26, 32];
  const numberFields = [2, 3, 8, 9, 11, 12, 17, 19, 20, 22, 23, 24, 25, 27, 28, 29, 30, 33, 34];

  it('a known field of a wrong wire type is refused; 10 and 21, which nobody declares, may be anything', () => {
    const fixed32 = { fixed: new Uint8Array(4) };
    for (const field of bytesFields) for (const wrong of [5n, fixed32]) refuses(rawField(field, wrong));
    for (const field of numberFields) for (const wrong of ['5', fixed32]) refuses(rawField(field, wrong));
    for (const field of [10, 21, 35]) {
      for (const value of [5n, '5', fixed32, { fixed: new Uint8Array(8) }])
        expect(read(rawField(field, value)).sequenceId).toBe(1n);
    }
    expect(read(rawField(31, 5n), rawField(31, varint(1, 0x80, 0x01))).compactedBatchIndexes).toEqual([5, 1, 128]);
  });

  it('a required field that is missing is refused, of properties and encryption keys as well', () => {
    for (let missing = 0; missing < REQUIRED.length; missing++) {
      const metadata = Buffer.concat(REQUIRED.filter((_, i) => i !== missing));
      expect(refusal(() => parseEntry(frame(metadata)))).toBe('malformedEntry');
    }
    for (const half of [rawField(1, 'k'), rawField(2, 'v'), new Uint8Array(0)]) {
      refuses(rawField(Outer.properties, half));
      refuses(rawField(Outer.encryptionKeys, half));
    }
  });

  it.each([
    ['a number of eleven bytes', [0x50, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]],
    ['a number that does not end', [0x50, 0x80]],
    ['a tag alone', [0x0a]],
    ['a length beyond the end', [0x32, 0x05, 0x61]],
    ['a length of 2^32-1', [0x32, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a length of 2^32, whose low half is 0', [0x32, 0x80, 0x80, 0x80, 0x80, 0x10]],
    ['a length of 2^64-1', [0x32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]],
    ['four bytes cut to three', [0x55, 1, 2, 3]],
    ['eight bytes cut to seven', [0x51, 1, 2, 3, 4, 5, 6, 7]],
    ['field number 0', [0x00, 0x00]],
    ['a tag beyond 32 bits', [0x82, 0x80, 0x80, 0x80, 0x10, 0x00]],
    ['a group', [0x53, 0x54]],
    ['the end of a group', [0x54]],
    ['wire type 6', [0x56]],
    ['wire type 7', [0x57]],
    ['a packed number that is cut', [0xfa, 0x01, 0x01, 0x80]],
    ['a packed number of eleven bytes', [0xfa, 0x01, 11, ...new Array<number>(10).fill(0x80), 0x01]],
  ])('metadata that holds %s is refused', (_, bytes) => {
    refuses(Uint8Array.from(bytes));
  });

  it('reads of a parsed view never throw, whatever text is in it', () => {
    const bad = varint(0xff, 0xfe, 0xc0);
    const pair = Buffer.concat([rawField(1, bad), rawField(2, bad)]);
    const metadata = read(
      rawField(4, pair),
      rawField(5, bad),
      rawField(6, bad),
      rawField(7, bad),
      rawField(13, pair),
      rawField(26, bad),
    );
    expect(metadata.partitionKey).toBe('\ufffd\ufffd\ufffd');
    expect(hex(metadata.partitionKeyBytes)).toBe('fffec0');
    expect(metadata.properties).toHaveLength(1);
    expect(metadata.encryptionKeys).toHaveLength(1);
    expect(read(rawField(6, '\ufeffk')).partitionKey).toBe('\ufeffk');
  });

  function refuses(...fields: readonly Uint8Array[]): void {
    expect(
      refusal(() => read(...fields)),
      hex(fields[0]),
    ).toBe('malformedEntry');
  }
});

describe('presence', () => {
  it('E5: presence of num_messages_in_batch decides, not its value', () => {
    expect(read().numMessagesInBatch).toBeUndefined();
    for (const count of [0, 1, 3]) expect(read(rawField(11, BigInt(count))).numMessagesInBatch).toBe(count);
    expect(read(rawField(11, -1n)).numMessagesInBatch).toBe(-1);
  });

  it('B38, E5: a batch of one is a batch, a plain message is none, and a count of zero with nothing in it is an empty batch', () => {
    const one = readBatch(parseEntry(fixtureEntry('bld-batch-of-one')), codecs);
    expect(one).toHaveLength(1);
    expect(refusal(() => readBatch(parseEntry(fixtureEntry('bld-minimal')), codecs))).toBe('invalidArgument');
    const metadata = Buffer.concat([...REQUIRED, rawField(11, 0n)]);
    expect(readBatch(parseEntry(frameEntry({ metadata, payload: new Uint8Array(0) })), codecs)).toEqual([]);
    expect(refusal(() => readBatch(parseEntry(frameEntry({ metadata, payload: Buffer.from('x') })), codecs))).toBe(
      'undecodableBatch',
    );
  });

  it('B30: the marker field alone makes a marker, whatever its value, without any transaction id', () => {
    for (const type of [0, 10, 11, 12, 13, 21, 22, 99]) expect(read(rawField(20, BigInt(type))).markerType).toBe(type);
    expect(read(rawField(20, -1n)).markerType).toBe(-1);
    expect(read(rawField(22, 1n), rawField(23, 1n)).markerType).toBeUndefined();
    expect(parseEntry(fixtureEntry('bld-marker-unknown')).metadata.markerType).toBe(99);
  });

  it('B26: an empty replicate_to is an absent one; repeats stay', () => {
    expect(read().replicateTo).toEqual([]);
    expect(read(rawField(7, 'b'), rawField(7, 'b')).replicateTo).toEqual(['b', 'b']);
    expect(parseEntry(fixtureEntry('bld-replicate-to-local')).metadata.replicateTo).toEqual(['__local__']);
  });

  it('B24: metadata cut short is refused, not skipped', () => {
    for (const name of ['bld-metadata-cut', 'bld-cut-in-header', 'bld-metadata-size-too-large']) {
      expect(
        refusal(() => parseEntry(fixtureEntry(name))),
        name,
      ).toBe('malformedEntry');
    }
  });

  it('B43: encryption keys make an entry encrypted, with and without a count', () => {
    const key = rawField(13, Buffer.concat([rawField(1, 'k'), rawField(2, varint(1, 2))]));
    expect(read(key).encrypted).toBe(true);
    expect(read(rawField(14, 'AES'), rawField(15, varint(1))).encrypted).toBe(false);
    const entry = parseEntry(frame(Buffer.concat([...REQUIRED, key, rawField(11, 5n)])));
    expect(entry.metadata.encryptionKeys).toEqual([{ key: 'k', value: expect.anything(), metadata: [] }]);
    expect(refusal(() => readBatch(entry, codecs))).toBe('encryptedBatch');
  });
});

describe('keys and numbers', () => {
  it('E9, B08: the segment comes from the bytes of the key text, the bucket from the ordering key if there is one', () => {
    const base64 = parseEntry(fixtureEntry('bld-base64-key')).metadata.partitionKeyBytes ?? new Uint8Array(0);
    expect([segmentHash(hashKey(base64)), bucketHash(hashKey(base64))]).toEqual([0x9173, 0xfc06]);
    const [message] = readBatch(parseEntry(fixtureEntry('bld-batch-inner-fields')), codecs);
    expect([message?.segmentHash, message?.bucketHash]).toEqual([0x9173, 38300]);
  });

  it('B08: inner keys come from inner metadata alone, whatever key the batch wears outside', () => {
    const inner = [rawField(2, 'k1'), rawField(2, 'k2'), new Uint8Array(0)].map((key) => {
      const metadata = Buffer.concat([key, rawField(3, 0n)]);
      return Buffer.concat([Uint8Array.of(0, 0, 0, metadata.length), metadata]);
    });
    const metadata = Buffer.concat([...REQUIRED, rawField(6, 'k1'), rawField(18, 'ordering'), rawField(11, 3n)]);
    const messages = readBatch(parseEntry(frameEntry({ metadata, payload: Buffer.concat(inner) })), codecs);
    expect(messages.map(({ partitionKey }) => partitionKey)).toEqual(['k1', 'k2', undefined]);
    expect(messages.map(({ orderingKey }) => orderingKey)).toEqual([undefined, undefined, undefined]);
    expect(messages.map((message) => message.bucketHash)).toEqual([
      bucketHash(hashKey('k1')),
      bucketHash(hashKey('k2')),
      0,
    ]);
    expect(messages[2]?.segmentHash).toBeUndefined();
  });

  it('B09: keys whose bucket hash is 0, the empty one among them, are told from no key at all', () => {
    const keyed = readBatch(parseEntry(fixtureEntry('bld-batch-zero-stamp-keyed')), codecs);
    const unkeyed = readBatch(parseEntry(fixtureEntry('bld-batch-zero-stamp-unkeyed')), codecs);
    for (const message of [...keyed, ...unkeyed]) expect(message.bucketHash).toBe(0);
    expect(keyed.every(({ segmentHash: segment }) => segment !== undefined)).toBe(true);
    expect(unkeyed.every(({ segmentHash: segment }) => segment === undefined)).toBe(true);
    expect(['key-30884', 'key-78688', ''].map((key) => segmentHash(hashKey(key)))).toEqual([0x512f, 0xb1b7, 0]);
    const empty = read(rawField(6, ''));
    expect([empty.partitionKey, empty.partitionKeyBytes?.length]).toEqual(['', 0]);
    expect(read().partitionKeyBytes).toBeUndefined();
  });

  it('E11, B46: 64-bit numbers are exact, and -1 reads as 2^64-1', () => {
    const numbers = [
      0n,
      1n,
      127n,
      128n,
      2n ** 28n,
      2n ** 31n,
      2n ** 32n - 1n,
      2n ** 32n,
      2n ** 53n + 1n,
      2n ** 63n - 1n,
      2n ** 63n,
      2n ** 64n - 1n,
    ];
    for (const number of numbers) {
      const metadata = read(rawField(2, number), rawField(24, number), rawField(22, number), rawField(23, number));
      expect(metadata.sequenceId).toBe(number);
      expect(metadata.highestSequenceId).toBe(number);
      expect(metadata.txn).toEqual({ mostBits: number, leastBits: number });
    }
    expect(parseEntry(fixtureEntry('bld-sequence-minus-one')).metadata.sequenceId).toBe(2n ** 64n - 1n);
    expect(read(rawField(19, -5n)).deliverAtMs).toBe(-5);
  });
});
