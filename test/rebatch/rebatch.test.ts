/** What re-batching makes of a batch: which parts, of which messages, and what is written on each (E7 to E11, R7 to R11). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  batchMessage,
  type Entry,
  Inner,
  joinBuffers,
  type MessageFields,
  Outer,
  parseEntry,
  readBatch,
  restamp,
  SOURCE_POSITION_PROPERTY,
  verifyChecksum,
} from '../../src/entry/index.js';
import { choosePath, type RemoteLayout, rebatch, type SourceSegment } from '../../src/rebatch/index.js';
import { FULL_RANGE } from '../../src/ring/index.js';
import { arbEntry, frameEntry, type RawField, rawField, splitFields } from '../../src/testing/entries.js';
import { arbShape } from '../../src/testing/layouts.js';
import { arbRemoteLayout, arbSourceSegment } from '../../src/testing/remotes.js';
import { CODEC_NAMES, codecs } from '../support/codecs.js';
import { hex, refusal, sameBytes } from '../support/expect.js';
import { ENTRIES, fixtureBytes, fixtureEntry } from '../support/fixtures.js';
import {
  batch,
  batchOf,
  bodiesOf,
  bucketHashOf,
  bucketOf,
  classicRemote,
  message,
  OPTIONS,
  openPart,
  recordOf,
  recordsOf,
  remoteOf,
  STAMP,
  segment,
  segmentOf,
  single,
  WHOLE_SOURCE,
} from '../support/rebatch.js';

const golden = (name: string): Entry => parseEntry(fixtureEntry(name));

/** What of a part the table of cells decides. */
interface Outline {
  readonly segmentId: number;
  readonly part: number;
  readonly lowestHash: number;
  readonly stamp: { readonly min: number; readonly max: number };
  readonly records: readonly string[];
}

/** The parts of a batch as R1, R9 and R11 say them, worked out message by message. */
function outlinesOf(messages: readonly MessageFields[], source: SourceSegment, remote: RemoteLayout): Outline[] {
  const byId = [...remote.active].sort((a, b) => a.segmentId - b.segmentId);
  const classic = remote.active.every(({ legacyTopicName }) => legacyTopicName !== undefined);
  const outlines: Outline[] = [];
  for (const segment of classic ? byId : remote.active) {
    const own = messages.filter((keys) => segmentOf(keys, source, remote) === segment);
    const ends = own.map((keys) => bucketOf(segment.entryBucketSplits, bucketHashOf(keys)).end);
    for (const part of [...new Set(ends)].sort((a, b) => a - b)) {
      const mine = own.filter((_, i) => ends[i] === part);
      const hashes = mine.map(bucketHashOf);
      const stamp = { min: Math.min(...hashes), max: Math.max(...hashes) };
      const records = mine.map((fields) => recordOf(batchMessage(fields)));
      outlines.push({ segmentId: segment.segmentId, part, lowestHash: stamp.min, stamp, records });
    }
  }
  return outlines;
}

/** What the parts say of themselves. */
function toldBy(entry: Entry, source: SourceSegment, remote: RemoteLayout, options = OPTIONS): Outline[] {
  return rebatch(entry, source, remote, options).map((part) => {
    const opened = openPart(part);
    const { stamp = { min: -1, max: -1 }, numMessagesInBatch } = opened.metadata;
    const records = recordsOf(opened);
    expect(part.position).toEqual({ ledgerId: 7n, entryId: 3n, part: part.rectangle.buckets.end });
    expect([numMessagesInBatch, part.messageCount]).toEqual([records.length, records.length]);
    return { segmentId: part.segmentId, part: part.rectangle.buckets.end, lowestHash: part.lowestHash, stamp, records };
  });
}

const arbBatch = arbEntry(codecs, { kinds: ['batch'], encrypted: false, maxMessages: 8 });

describe('the parts of any batch', () => {
  it('R1, R3, R9, R11: hold its messages byte for byte, each cell one part, in source order, under the number of its bucket', () => {
    fc.assert(
      fc.property(
        arbBatch,
        arbSourceSegment(),
        arbRemoteLayout(),
        fc.boolean(),
        (generated, source, remote, keepCodec) => {
          const messages = generated.content.kind === 'batch' ? generated.content.messages : [];
          const entry = parseEntry(generated.bytes);
          const options = { ...OPTIONS, keepCodec };
          expect(toldBy(entry, source, remote, options)).toEqual(outlinesOf(messages, source, remote));
        },
      ),
      { numRuns: 300 },
    );
  });

  /** The fields that a part has of its own; it takes over all others as they are. */
  const REWRITTEN = new Set<number>([
    Outer.sequenceId,
    Outer.highestSequenceId,
    Outer.compression,
    Outer.uncompressedSize,
    Outer.numMessagesInBatch,
    Outer.compactedIndexes,
    Outer.stampMin,
    Outer.stampMax,
    Outer.partitionKey,
    Outer.partitionKeyB64,
    Outer.orderingKey,
    Outer.nullPartitionKey,
    Outer.replicatedFrom,
    Outer.txnLeastBits,
    Outer.txnMostBits,
  ]);
  const isPosition = ({ field, bytes }: RawField) =>
    field === Outer.properties && Buffer.from(bytes).includes(SOURCE_POSITION_PROPERTY);
  const keptOf = (entry: Entry) =>
    splitFields(entry.metadataBytes)
      .filter((field) => !REWRITTEN.has(field.field) && !isPosition(field))
      .map(({ bytes }) => hex(bytes));
  const signed = (id: bigint) => BigInt.asIntN(64, id);

  it('R7, E8, E11: keep every outer field that does not describe the batch, and write the others anew', () => {
    fc.assert(
      fc.property(
        arbBatch,
        arbSourceSegment(),
        arbRemoteLayout(),
        fc.boolean(),
        (generated, source, remote, keepCodec) => {
          const entry = parseEntry(generated.bytes);
          for (const part of rebatch(entry, source, remote, { ...OPTIONS, keepCodec })) {
            const opened = openPart(part);
            const { metadata } = opened;
            expect(keptOf(opened)).toEqual(keptOf(entry));
            const rewritten = splitFields(opened.metadataBytes).flatMap(({ field }) =>
              REWRITTEN.has(field) ? [field] : [],
            );
            expect(rewritten).toEqual([...new Set(rewritten)]);

            const messages = readBatch(opened, codecs);
            const [first] = messages;
            expect(metadata.partitionKey).toBe(first?.partitionKey);
            expect(metadata.partitionKeyB64).toBe(first?.partitionKeyB64);
            expect(hex(metadata.orderingKey)).toBe(hex(first?.orderingKey));
            expect(metadata.nullPartitionKey).toBe(first?.nullPartitionKey);

            const ids = messages.flatMap(({ sequenceId }) => (sequenceId === undefined ? [] : [signed(sequenceId)]));
            const highest = ids.toSorted((a, b) => Number(a < b) - Number(a > b))[0] ?? 0n;
            const own =
              ids.length > 0 ? [highest, highest] : [entry.metadata.sequenceId, entry.metadata.highestSequenceId];
            expect([metadata.sequenceId, metadata.highestSequenceId].map((id) => id && signed(id))).toEqual(
              own.map((id) => id && signed(id)),
            );

            const keeps = keepCodec || entry.metadata.compression === 'none';
            expect(metadata.compression).toBe(keeps ? entry.metadata.compression : 'none');
            expect(metadata.uncompressedSize === undefined).toBe(metadata.compression === 'none');
            expect(metadata.compactedBatchIndexes).toEqual([]);

            expect(metadata.replicatedFrom).toBe('a');
            expect(splitFields(opened.metadataBytes).filter(isPosition)).toHaveLength(1);
            expect(metadata.sourcePosition).toBe(`7:3:${part.position.part}`);
            expect(metadata.txn).toBeUndefined();

            // E1: the broker header belongs to the source; E3: a checksum only where there was one.
            expect(opened.header).toBe(entry.checksum === undefined ? 'none' : 'checksum');
            expect(verifyChecksum(opened)).toBe(entry.checksum === undefined ? 'absent' : 'ok');
          }
        },
      ),
      { numRuns: 250 },
    );
  });

  it('R11: come by segment in ring order, and within one in ascending position', () => {
    fc.assert(
      fc.property(arbBatch, arbSourceSegment(), arbRemoteLayout({ legacy: false }), (generated, source, remote) => {
        const order = rebatch(parseEntry(generated.bytes), source, remote, OPTIONS).map(({ segmentId, position }) => {
          return remote.active.findIndex((s) => s.segmentId === segmentId) * 0x10000 + (position.part ?? -1);
        });
        expect(order).toEqual([...new Set(order)].sort((a, b) => a - b));
      }),
    );
  });

  it('are the same bytes on every attempt, and whoever asks', () => {
    fc.assert(
      fc.property(arbBatch, arbBatch, arbSourceSegment(), arbRemoteLayout(), (generated, other, source, remote) => {
        const bytesOf = (layout: RemoteLayout) =>
          rebatch(parseEntry(generated.bytes), source, layout, OPTIONS).map(({ buffers }) => hex(joinBuffers(buffers)));
        const first = bytesOf(remote);
        rebatch(parseEntry(other.bytes), source, remote, OPTIONS);
        expect(bytesOf(remote)).toEqual(first);
        expect(bytesOf({ ...remote, epoch: remote.epoch + 1, active: [...remote.active].reverse() })).toEqual(first);
      }),
    );
  });

  it('leave the source entry as it was', () => {
    fc.assert(
      fc.property(arbBatch, arbSourceSegment(), arbRemoteLayout(), (generated, source, remote) => {
        const before = Buffer.from(generated.bytes);
        rebatch(parseEntry(generated.bytes), source, remote, OPTIONS);
        expect(sameBytes(before, generated.bytes)).toBe(true);
      }),
    );
  });

  /** Cells of a shape around one segment, which keeps its range; other ids, other buckets. */
  const around = (
    kept: ReturnType<typeof segment>,
    shape: {
      readonly cells:
        | RemoteLayout['active']
        | readonly Pick<RemoteLayout['active'][number], 'range' | 'entryBucketSplits'>[];
    },
  ) => {
    const others = shape.cells.flatMap(({ range, entryBucketSplits }) => {
      const pieces = [
        { start: range.start, end: Math.min(range.end, kept.range.start - 1) },
        { start: Math.max(range.start, kept.range.end + 1), end: range.end },
      ];
      return pieces.filter(({ start, end }) => start <= end).map((piece) => ({ piece, entryBucketSplits }));
    });
    const active = others.map(({ piece, entryBucketSplits }, i) => segment(100 + i, piece, entryBucketSplits));
    return { cluster: 'b', epoch: 9, active: [...active, kept].sort((a, b) => a.range.start - b.range.start) };
  };

  it('B03, R11: for one segment do not change when other segments do', () => {
    const grid = fc
      .tuple(fc.nat({ max: 7 }), fc.nat({ max: 7 }))
      .map(([a, b]) => ({ start: Math.min(a, b) * 0x2000, end: (Math.max(a, b) + 1) * 0x2000 - 1 }));
    fc.assert(
      fc.property(
        arbBatch,
        grid,
        arbShape(),
        arbShape(),
        fc.nat({ max: 5 }),
        (generated, range, shapeA, shapeB, pick) => {
          const { entryBucketSplits } = shapeA.cells[pick % shapeA.cells.length] ?? { entryBucketSplits: [] };
          const kept = segment(42, range, entryBucketSplits);
          const partsOf = (remote: RemoteLayout) =>
            rebatch(parseEntry(generated.bytes), WHOLE_SOURCE, remote, OPTIONS)
              .filter(({ segmentId }) => segmentId === 42)
              .map(({ buffers, ...part }) => ({ ...part, bytes: hex(joinBuffers(buffers)) }));
          expect(partsOf(around(kept, shapeB))).toEqual(partsOf(around(kept, shapeA)));
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('part numbers', () => {
  /** d 2719/1473 and a 3c25/69b2 in the lower half, c e132/d65f and b 95de/7e03 in the upper. */
  const entry = batchOf(['c', 'd', 'a', 'b', 'd']);
  const numbers = (remote: RemoteLayout) =>
    rebatch(entry, WHOLE_SOURCE, remote, OPTIONS).map(({ segmentId, position }) => [segmentId, position.part]);

  it('B03, R11: are the end hash of the bucket, whatever else the layout holds', () => {
    const D1 = segment(1, { start: 0, end: 0x7fff }, [0x4000]);
    const D2 = segment(2, { start: 0x8000, end: 0xffff }, [0x8000]);
    expect(numbers({ cluster: 'b', epoch: 1, active: [D1, D2] })).toEqual([
      [1, 0x3fff],
      [1, 0xffff],
      [2, 0x7fff],
      [2, 0xffff],
    ]);
    // D2 was split meanwhile; the parts of D1 keep their numbers.
    const split = [segment(3, { start: 0x8000, end: 0x9fff }), segment(4, { start: 0xa000, end: 0xffff })];
    expect(numbers({ cluster: 'b', epoch: 2, active: [D1, ...split] })).toEqual([
      [1, 0x3fff],
      [1, 0xffff],
      [3, 0xffff],
      [4, 0xffff],
    ]);
  });

  it('B02: two parts of one entry in one segment have different positions', () => {
    const parts = rebatch(entry, WHOLE_SOURCE, remoteOf([0], [0x7000, 0x8000]), OPTIONS);
    expect(parts.map(({ position }) => position.part)).toEqual([0x6fff, 0x7fff, 0xffff]);
    expect(parts.map(bodiesOf)).toEqual([['body 1', 'body 2', 'body 4'], ['body 3'], ['body 0']]);
  });

  it('R11: a position given as text, or of a part, names the whole entry', () => {
    for (const sourcePosition of ['7:3', '7:3:9', { ledgerId: 7n, entryId: 3n, part: 9 }]) {
      const parts = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), { ...OPTIONS, stamp: { ...STAMP, sourcePosition } });
      expect(parts.map(({ position }) => position)).toEqual([{ ledgerId: 7n, entryId: 3n, part: 0xffff }]);
    }
  });

  it('B46: ids of 63 bits are written exactly', () => {
    const stamp = { ...STAMP, sourcePosition: { ledgerId: 9007199254740993n, entryId: (1n << 63n) - 1n } };
    const [part] = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), { ...OPTIONS, stamp });
    expect(part && openPart(part).metadata.sourcePosition).toBe('9007199254740993:9223372036854775807:65535');
  });
});

describe('keys', () => {
  it('B07: segments by the unmasked hash; towards classic partitions by the masked one', () => {
    const entry = batchOf(['k1', 'b', 'key-1']);
    const ids = (remote: RemoteLayout) =>
      rebatch(entry, WHOLE_SOURCE, remote, OPTIONS).map((p) => [p.segmentId, ...bodiesOf(p)]);
    expect(ids(remoteOf([0, 0x8000]))).toEqual([[1, 'body 0', 'body 1', 'body 2']]);
    expect(ids(classicRemote(4))).toEqual([
      [0, 'body 2'],
      [2, 'body 0'],
      [3, 'body 1'],
    ]);
  });

  it('B08, R9: segment from the partition key, bucket from the ordering key; binary keys by their text', () => {
    const entry = batch([
      { ...message('k1', 'keys'), orderingKey: Buffer.from('k2') },
      { ...message('AAECAw==', 'text'), partitionKeyB64: true },
    ]);
    const parts = rebatch(entry, WHOLE_SOURCE, remoteOf([0, 0x8000, 0xa000], [0x4000, 0x8000]), OPTIONS);
    const told = parts.map((part) => [part.segmentId, part.lowestHash, part.position.part, ...bodiesOf(part)]);
    expect(told).toEqual([
      [1, 0xfc06, 0xffff, 'text'],
      [2, 0x7fc8, 0x7fff, 'keys'],
    ]);
  });

  it('B08: messages are routed by their own keys, never by the key of their batch', () => {
    const entry = batchOf(['k1', 'k2', undefined], { outer: { partitionKey: 'd' } });
    const parts = rebatch(entry, WHOLE_SOURCE, remoteOf([0, 0x8000]), OPTIONS);
    expect(parts.map((part) => [part.segmentId, ...bodiesOf(part)])).toEqual([
      [0, 'body 2'],
      [1, 'body 0', 'body 1'],
    ]);
    expect(parts.map((part) => openPart(part).metadata.partitionKey)).toEqual([undefined, 'k1']);
  });

  it('B09: keys of hashB 0 go to their segments, the empty key to 0000; only messages without a key go freely', () => {
    const entry = batchOf(['key-30884', 'key-78688', '', undefined]);
    const source = { ...WHOLE_SOURCE, range: { start: 0x4000, end: 0xffff } };
    const parts = rebatch(entry, source, remoteOf([0, 0x4000, 0x8000]), OPTIONS);
    expect(parts.map((part) => [part.segmentId, ...bodiesOf(part)])).toEqual([
      [0, 'body 2'],
      [1, 'body 0', 'body 3'],
      [2, 'body 1'],
    ]);
  });

  it('R2: a key outside its source range stays with its singles while one segment covers the source', () => {
    // k2 hashes to d836, yet was written to the lower half: a lone surrogate, or a client that routed by another rule.
    const source: SourceSegment = { segmentId: 5, range: { start: 0, end: 0x7fff }, legacy: false };
    const entry = batchOf(['d', 'k2', 'a']);
    const bucketsCut = remoteOf([0, 0x8000], [0x4000]);
    expect(choosePath(entry, source, bucketsCut)).toMatchObject({ kind: 'rebatch', reason: 'bucketFit' });
    const lone = choosePath(single({ partitionKey: 'k2' }), source, bucketsCut);
    const parts = rebatch(entry, source, bucketsCut, OPTIONS);
    expect(lone).toMatchObject({ segmentId: 0 });
    expect(parts.map(({ segmentId }) => segmentId)).toEqual([0, 0]);
    // Spread over several segments, both go by the hash.
    const spread = remoteOf([0, 0x2000, 0x8000]);
    expect(choosePath(single({ partitionKey: 'k2' }), source, spread)).toMatchObject({ segmentId: 2 });
    expect(rebatch(entry, source, spread, OPTIONS).map((p) => [p.segmentId, ...bodiesOf(p)])).toContainEqual([
      2,
      'body 1',
    ]);
  });

  it('R3: unkeyed messages of a legacy source, and towards classic partitions, go by its id', () => {
    const entry = batchOf([undefined, 'd', undefined]);
    const unkeyed = (remote: RemoteLayout, legacy: boolean, segmentId: number) =>
      rebatch(entry, { segmentId, range: FULL_RANGE, legacy }, remote, OPTIONS)
        .filter((part) => bodiesOf(part).includes('body 0'))
        .map((part) => part.segmentId);
    expect([0, 1, 2, 3].flatMap((id) => unkeyed(remoteOf([0, 0x4000, 0x8000]), true, id))).toEqual([0, 2, 1, 2]);
    expect([0, 1, 2, 3].flatMap((id) => unkeyed(remoteOf([0, 0x4000, 0x8000]), false, id))).toEqual([0, 0, 0, 0]);
    expect([0, 1, 2, 3].flatMap((id) => unkeyed(classicRemote(3), false, id))).toEqual([0, 1, 2, 0]);
  });
});

/** Every inner field, known and unknown, in one batch. */
const odd: readonly MessageFields[] = [
  {
    ...message('d', 'a'),
    sequenceId: 3n,
    eventTimeMs: 1,
    properties: [
      ['x', '1'],
      ['x', '2'],
    ],
  },
  { ...message('d', ''), nullValue: true, sequenceId: (1n << 64n) - 1n },
  { ...message('d', ''), partitionKeyB64: false },
  { ...message(undefined, ''), compactedOut: true },
  { ...message(undefined, 'n'), nullPartitionKey: true, orderingKey: Buffer.from('o') },
];

describe('messages', () => {
  it('B10: null values, empty bodies and placeholders keep their places', () => {
    const parts = rebatch(batch(odd), WHOLE_SOURCE, remoteOf([0, 0x2000]), OPTIONS);
    const told = parts.flatMap((part) =>
      readBatch(openPart(part), codecs).map((m) => [part.segmentId, m.nullValue, m.compactedOut, m.payload.length]),
    );
    expect(told).toEqual([
      [0, undefined, true, 0],
      [0, undefined, undefined, 1],
      [1, undefined, undefined, 1],
      [1, true, undefined, 0],
      [1, undefined, undefined, 0],
    ]);
  });

  it('B10: a group of nothing but null values is sent', () => {
    const parts = rebatch(batch([odd[1] ?? message('d')]), WHOLE_SOURCE, remoteOf([0]), OPTIONS);
    expect(parts.map(({ messageCount }) => messageCount)).toEqual([1]);
  });

  it('B39: every field of a message is byte-equal behind it, unknown ones included', () => {
    const unknown = rawField(77, Uint8Array.of(1, 2, 3));
    const metadata = Buffer.concat([
      rawField(Inner.partitionKey, 'd'),
      unknown,
      rawField(Inner.payloadSize, 2n),
      rawField(900, 5n),
    ]);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(metadata.length);
    const { metadataBytes, payload } = batch(odd);
    const outer = splitFields(metadataBytes).map(({ field, bytes }) =>
      field === Outer.numMessagesInBatch ? rawField(field, 6n) : bytes,
    );
    const bytes = frameEntry({
      metadata: Buffer.concat(outer),
      payload: Buffer.concat([payload, size, metadata, Buffer.from('hi')]),
    });
    const records = recordsOf(parseEntry(bytes));
    expect(records.at(-1)).toBe(`${hex(metadata)}/6869`);
    const parts = rebatch(parseEntry(bytes), WHOLE_SOURCE, remoteOf([0, 0x2000]), OPTIONS);
    expect(parts.flatMap((part) => recordsOf(openPart(part))).sort()).toEqual([...records].sort());
  });

  it('B38, R10: a part of one message stays a batch of one; a batch of one is no single', () => {
    const parts = rebatch(batchOf(['d', 'c']), WHOLE_SOURCE, remoteOf([0, 0x8000]), OPTIONS);
    expect(parts.map((part) => openPart(part).metadata.numMessagesInBatch)).toEqual([1, 1]);
    expect(parts.map(bodiesOf)).toEqual([['body 0'], ['body 1']]);
    expect(refusal(() => rebatch(single({ partitionKey: 'd' }), WHOLE_SOURCE, remoteOf([0]), OPTIONS))).toBe(
      'invalidArgument',
    );
  });

  it.each([
    [[2n, 7n, 5n], 7n],
    [[(1n << 64n) - 1n, 0n], 0n],
    [[(1n << 64n) - 1n, (1n << 64n) - 2n], (1n << 64n) - 1n],
    [[1n << 63n, (1n << 64n) - 1n], (1n << 64n) - 1n],
    [[(1n << 53n) + 1n, 1n << 53n], (1n << 53n) + 1n],
    [[1n << 31n, 1n], 1n << 31n],
    [[undefined, 4n, undefined], 4n],
  ])('E8, B46: of sequence ids %s a part carries %s, the highest as a signed number', (ids, highest) => {
    const entry = batch(ids.map((id) => (id === undefined ? message('d') : { ...message('d'), sequenceId: id })));
    const [part] = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), OPTIONS);
    const { sequenceId, highestSequenceId } = openPart(part ?? expect.fail('no part')).metadata;
    expect([sequenceId, highestSequenceId]).toEqual([highest, highest]);
  });

  it('E8: a part in which no record has a sequence id keeps both of the source, another does not', () => {
    const entry = batch([{ ...message('d'), sequenceId: 4n }, message('c'), { ...message('d'), sequenceId: 9n }]);
    const fields = splitFields(entry.metadataBytes).map(({ field, bytes }) => {
      return field === Outer.sequenceId
        ? rawField(field, (1n << 64n) - 1n)
        : field === Outer.highestSequenceId
          ? rawField(field, 12n)
          : bytes;
    });
    const source = parseEntry(frameEntry({ metadata: Buffer.concat(fields), payload: entry.payload }));
    const ids = rebatch(source, WHOLE_SOURCE, remoteOf([0, 0x8000]), OPTIONS).map((part) => {
      const { sequenceId, highestSequenceId } = openPart(part).metadata;
      return [sequenceId, highestSequenceId];
    });
    expect(ids).toEqual([
      [9n, 9n],
      [(1n << 64n) - 1n, 12n],
    ]);
  });

  it('R7: schema version is translated on request, and the transaction kept on request', () => {
    const txn = { mostBits: 1n, leastBits: 2n };
    const entry = batchOf(['d', 'c'], { outer: { txn, schemaVersion: Uint8Array.of(1) } });
    const metadataOf = (stamp: Partial<typeof OPTIONS.stamp>) =>
      rebatch(entry, WHOLE_SOURCE, remoteOf([0, 0x8000]), { ...OPTIONS, stamp: { ...STAMP, ...stamp } }).map((part) => {
        const { metadata } = openPart(part);
        return [hex(metadata.schemaVersion), metadata.txn];
      });
    expect(metadataOf({})).toEqual([
      ['01', undefined],
      ['01', undefined],
    ]);
    expect(metadataOf({ schemaVersion: Uint8Array.of(9, 9), removeTransaction: false })).toEqual([
      ['0909', txn],
      ['0909', txn],
    ]);
  });
});

describe('what is refused', () => {
  const remote = remoteOf([0, 0x8000]);
  const attempt = (entry: Entry, options: Partial<typeof OPTIONS> = {}) =>
    refusal(() => rebatch(entry, WHOLE_SOURCE, remote, { ...OPTIONS, ...options }));

  it('B37: a source whose checksum is wrong is reported, not blessed by a new one', () => {
    const { metadataBytes: metadata, payload } = batchOf(['d', 'c']);
    const wrong = parseEntry(frameEntry({ metadata, payload, checksum: 1 }));
    expect(attempt(wrong)).toBe('checksumMismatch');
    const damaged = Buffer.from(payload);
    damaged[damaged.length - 1] = 0;
    const { bytes, metadataEnd } = parseEntry(frameEntry({ metadata, payload, checksum: true }));
    expect(attempt(parseEntry(Buffer.concat([bytes.subarray(0, metadataEnd), damaged])))).toBe('checksumMismatch');
    expect(attempt(parseEntry(frameEntry({ metadata, payload })))).toBeUndefined();
  });

  it.each([
    ['bld-encrypted-batch-stamped', 'encryptedBatch'],
    ['cap-v4-encrypted-batch', 'encryptedBatch'],
    ['bld-batch-count-more', 'undecodableBatch'],
    ['bld-batch-count-fewer', 'undecodableBatch'],
    ['bld-batch-count-zero', 'undecodableBatch'],
    ['bld-batch-cut', 'undecodableBatch'],
    ['bld-marked-compressed-but-plain', 'undecodableBatch'],
    ['bld-size-missing-lz4', 'undecodableBatch'],
    ['bld-payload-corrupt', 'invalidArgument'],
  ])('B24, B38, B40, B43, R5: %s: %s', (name, code) => {
    expect(attempt(golden(name))).toBe(code);
  });

  it('B40: marked as LZ4, but plain', () => {
    const { metadataBytes, payload } = batchOf(['d', 'c']);
    const metadata = Buffer.concat([
      metadataBytes,
      rawField(Outer.compression, 1n),
      rawField(Outer.uncompressedSize, BigInt(payload.length)),
    ]);
    expect(attempt(parseEntry(frameEntry({ metadata, payload })))).toBe('undecodableBatch');
  });

  it('R5, E6: an unknown or missing codec, and a size over the limit', () => {
    const { metadataBytes, payload } = batchOf(['d', 'c']);
    const unknown = frameEntry({ metadata: Buffer.concat([metadataBytes, rawField(Outer.compression, 9n)]), payload });
    expect(attempt(parseEntry(unknown))).toBe('codecUnavailable');
    expect(attempt(batchOf(['d', 'c'], { compression: 'zstd' }), { codecs: {} })).toBe('codecUnavailable');
    expect(attempt(batchOf(['d', 'c'], { compression: 'lz4' }), { limits: { maxUncompressedBytes: 8 } })).toBe(
      'undecodableBatch',
    );
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('maxEntryBytes %s is no limit', (maxEntryBytes) => {
    expect(attempt(batchOf(['d']), { maxEntryBytes })).toBe('invalidArgument');
  });

  it('B38: a batch of no messages has no parts', () => {
    expect(rebatch(batch([], { stamp: false }), WHOLE_SOURCE, remote, OPTIONS)).toEqual([]);
  });
});

describe('batches of Pulsar 5.0.1', () => {
  const REFUSED = /count-|cut|record-length|negative|size-(short|long|missing)|marked-compressed/;
  const batches = ENTRIES.filter(
    ({ file, isBatch, messages }) => isBatch && messages !== undefined && !REFUSED.test(file),
  ).map((record) => [record.file.replace(/^entries\/|\.bin$/g, ''), record] as const);

  it('there are many, of every codec', () => {
    expect(batches.length).toBeGreaterThan(60);
    expect(new Set(batches.map(([, { compression }]) => compression)).size).toBe(1 + CODEC_NAMES.length);
  });

  const grid = remoteOf([0, 0x4000, 0x8000, 0xc000], [0x4000, 0x8000, 0xc000]);

  it.each(batches)('%s: every message where the hashes of Java say, in order', (_, record) => {
    const entry = parseEntry(fixtureBytes(record.file));
    const messages = record.messages ?? [];
    const records = recordsOf(entry);
    const grouped = (cellOf: (m: (typeof messages)[number]) => string) => {
      const cells = new Map<string, string[]>();
      for (const [i, m] of messages.entries())
        cells.set(cellOf(m), [...(cells.get(cellOf(m)) ?? []), records[i] ?? '']);
      return new Map([...cells].sort(([a], [b]) => (a < b ? -1 : 1)));
    };
    const told = (remote: RemoteLayout) =>
      new Map(
        rebatch(entry, { ...WHOLE_SOURCE, segmentId: 0 }, remote, OPTIONS).map((part) => {
          const opened = openPart(part);
          expect(verifyChecksum(opened)).toBe(record.checksum === null ? 'absent' : 'ok');
          expect(opened.metadata.compression).toBe(entry.metadata.compression);
          return [`${part.segmentId}:${part.position.part?.toString(16).padStart(4, '0')}`, recordsOf(opened)];
        }),
      );
    const quarter = (hash: number) => Math.floor(hash / 0x4000);
    const end = (hash: number) => (quarter(hash) * 0x4000 + 0x3fff).toString(16).padStart(4, '0');
    expect(told(grid)).toEqual(grouped(({ hash }) => `${quarter(hash.segmentHash ?? 0)}:${end(hash.bucketHash)}`));
    expect(told(classicRemote(3))).toEqual(grouped(({ hash }) => `${(hash.legacyMasked ?? 0) % 3}:ffff`));
  });

  const v5 = batches.filter(([name, { stamp }]) => name.startsWith('cap-') && stamp.min !== null);

  it.each(v5)(
    'R9, E8: %s in one part carries the stamp, ids and key that its producer gave it',
    (_, { file, stamp }) => {
      const entry = parseEntry(fixtureBytes(file));
      const [part, ...more] = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), OPTIONS);
      expect(more).toEqual([]);
      const own = openPart(part ?? expect.fail('no part')).metadata;
      const { sequenceId, highestSequenceId, partitionKey, partitionKeyB64, producerName, publishTimeMs } =
        entry.metadata;
      expect(own.stamp).toEqual(stamp);
      expect(own).toMatchObject({ sequenceId, highestSequenceId, producerName, publishTimeMs });
      expect([own.partitionKey, own.partitionKeyB64]).toEqual([partitionKey, partitionKeyB64]);
    },
  );

  it('E7: a compacted batch keeps its placeholders, and says no more which records it kept', () => {
    for (const name of ['bld-compacted-none', 'bld-compacted-lz4']) {
      const parts = rebatch(golden(name), WHOLE_SOURCE, remoteOf([0, 0x8000]), OPTIONS).map(openPart);
      const told = parts.map((part) =>
        readBatch(part, codecs).map(({ partitionKey, compactedOut }) => partitionKey ?? compactedOut),
      );
      expect(told).toEqual([
        [true, true, true, true],
        ['key-1', 'key-4'],
      ]);
      expect(parts.map(({ metadata }) => metadata.compactedBatchIndexes)).toEqual([[], []]);
    }
    const sparse = rebatch(golden('bld-compacted-indexes-packed'), WHOLE_SOURCE, remoteOf([0]), OPTIONS);
    expect(sparse.map((part) => openPart(part).metadata.numMessagesInBatch)).toEqual([2]);
  });

  it('B26: an entry in which a position was copied along has one position afterwards, its own', () => {
    const [part] = rebatch(golden('bld-batch-replicated-none'), WHOLE_SOURCE, remoteOf([0]), OPTIONS);
    const { metadata } = openPart(part ?? expect.fail('no part'));
    expect(metadata.properties).toEqual([[SOURCE_POSITION_PROPERTY, '7:3:65535']]);
    expect(metadata.replicatedFrom).toBe('a');
  });

  it("B17: the schema version is translated on both paths alike, and is the source's where nothing was translated", () => {
    const entry = golden('cap-v5-json-schema-2');
    const source = hex(entry.metadata.schemaVersion ?? expect.fail('the entry has no schema version'));
    const schemaVersion = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 9);
    for (const [translated, version] of [
      [{ schemaVersion }, hex(schemaVersion)],
      [{}, source],
    ] as const) {
      const stamp = { ...STAMP, ...translated };
      const parts = rebatch(entry, WHOLE_SOURCE, remoteOf([0, 0x8000], [0x8000]), { ...OPTIONS, stamp }).map(openPart);
      expect(parts.length).toBeGreaterThan(1);
      const verbatim = parseEntry(joinBuffers(restamp(entry, stamp)));
      for (const { metadata, metadataBytes } of [verbatim, ...parts]) {
        expect(hex(metadata.schemaVersion ?? expect.fail('the version is lost'))).toBe(version);
        expect(splitFields(metadataBytes).filter(({ field }) => field === Outer.schemaVersion)).toHaveLength(1);
      }
    }
  });
});
