/** The re-stamp: what Pulsar's own writer makes of the same entries, and the laws of E2, E3 and E4 over arbitrary ones. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Entry,
  joinBuffers,
  Outer,
  parseEntry,
  type RestampOptions,
  readBatch,
  restamp,
  SOURCE_POSITION_PROPERTY,
  verifyChecksum,
} from '../../src/entry/index.js';
import { arbEntry, frameEntry, type RawField, rawField, splitFields } from '../../src/testing/entries.js';
import { codecs } from '../support/codecs.js';
import { hex, refusal, sameBytes } from '../support/expect.js';
import { ENTRIES, fixture, fixtureBytes, fixtureEntry, RESTAMPS } from '../support/fixtures.js';
import { expectedOuter, outerOf } from '../support/outer.js';

const STAMP: RestampOptions = { replicatedFrom: 'a', sourcePosition: { ledgerId: 12n, entryId: 34n } };

const restamped = (entry: Entry, options = STAMP): Entry => parseEntry(joinBuffers(restamp(entry, options)));

describe('E2, E3: the 27 re-stamps of Pulsar', () => {
  it.each(RESTAMPS.map((record) => [record.source, record] as const))('%s', (_, record) => {
    const { schemaVersion, ...options } = record.options;
    const source = parseEntry(fixtureBytes(record.source));
    const result = restamped(source, {
      ...options,
      schemaVersion: schemaVersion === undefined ? undefined : Buffer.from(schemaVersion, 'hex'),
    });
    expect(outerOf(result.metadata)).toEqual(expectedOuter(record.outer));
    expect(createHash('sha256').update(result.payload).digest('hex')).toBe(record.payloadSha256);
    expect(result.header).toBe(record.checksum === null ? 'none' : 'checksum');
    const verdict = record.sourceChecksumValid ? 'ok' : 'mismatch';
    expect(verifyChecksum(result)).toBe(record.checksum === null ? 'absent' : verdict);

    const golden = parseEntry(fixtureBytes(record.result));
    expect(outerOf(golden.metadata)).toEqual(outerOf(result.metadata));
    const sourceRecord = ENTRIES.find(({ file }) => file === record.source);
    for (const { bytes } of sourceRecord?.unknownFields ?? []) expect(hex(result.metadataBytes)).toContain(bytes);
    // Same fields, same bytes but for their order, so both are as long; what Pulsar dropped or repeated apart.
    const dropped = splitFields(source.metadataBytes).filter(({ field }) => field > Outer.stampMax);
    const plain = dropped.length === 0 && !record.source.includes('twice');
    if (plain) expect(result.bytes.length).toBe(golden.bytes.length);
  });
});

const arbOptions = fc.record<RestampOptions>(
  {
    replicatedFrom: fc.constantFrom('a', 'eu-west', 'größe'),
    sourcePosition: fc.oneof(
      fc.constantFrom<RestampOptions['sourcePosition']>('7:3:65535', '9223372036854775807:0'),
      fc.record({
        ledgerId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
        entryId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      }),
    ),
    schemaVersion: fc.uint8Array({ maxLength: 9 }),
    removeTransaction: fc.boolean(),
  },
  { requiredKeys: ['replicatedFrom', 'sourcePosition'] },
);

/** True for the fields that the stamp replaces or takes off, told by an independent scanner. */
function isOwned({ field, value }: RawField, options: RestampOptions): boolean {
  if (field === Outer.replicatedFrom) return true;
  if (field === Outer.schemaVersion) return options.schemaVersion !== undefined;
  if (field === Outer.txnLeastBits || field === Outer.txnMostBits) return options.removeTransaction !== false;
  return field === Outer.properties && propertyName(value) === SOURCE_POSITION_PROPERTY;
}

function propertyName(value: RawField['value']): string {
  const name = typeof value === 'bigint' ? undefined : splitFields(value).findLast(({ field }) => field === 1)?.value;
  return Buffer.from(name as Uint8Array).toString('utf8');
}

const text = ({ sourcePosition: at }: RestampOptions) => (typeof at === 'string' ? at : `${at.ledgerId}:${at.entryId}`);

describe('laws of the re-stamp', () => {
  it('E2: every byte that the stamp does not own survives in order, and the stamp is all that is added', () => {
    fc.assert(
      fc.property(arbEntry(codecs), arbOptions, ({ bytes }, options) => {
        const source = parseEntry(bytes);
        const { metadataBytes, metadata } = restamped(source, options);
        const fields = splitFields(source.metadataBytes);
        const kept = Buffer.concat(fields.filter((field) => !isOwned(field, options)).map((field) => field.bytes));
        expect(hex(metadataBytes.subarray(0, kept.length))).toBe(hex(kept));
        const added = splitFields(metadataBytes.subarray(kept.length));
        expect(added.every((field) => isOwned(field, options))).toBe(true);
        expect(added).toHaveLength(options.schemaVersion === undefined ? 2 : 3);
        const positions = metadata.properties.filter(([name]) => name === SOURCE_POSITION_PROPERTY);
        expect(positions).toEqual([[SOURCE_POSITION_PROPERTY, text(options)]]);
        expect(metadata.replicatedFrom).toBe(options.replicatedFrom);
        if (options.schemaVersion !== undefined) expect(hex(metadata.schemaVersion)).toBe(hex(options.schemaVersion));
      }),
      { numRuns: 400 },
    );
  });

  it('E2: a re-stamp of a re-stamp with the same options has the same bytes', () => {
    fc.assert(
      fc.property(arbEntry(codecs), arbOptions, ({ bytes }, options) => {
        const once = joinBuffers(restamp(parseEntry(bytes), options));
        expect(hex(joinBuffers(restamp(parseEntry(once), options)))).toBe(hex(once));
      }),
      { numRuns: 300 },
    );
  });

  it('E1: the broker header is not forwarded; an entry without a checksum stays without', () => {
    fc.assert(
      fc.property(arbEntry(codecs), ({ bytes, header }) => {
        const result = restamped(parseEntry(bytes));
        expect(result.broker).toBeUndefined();
        expect(result.header).toBe(header.endsWith('checksum') ? 'checksum' : 'none');
        expect(verifyChecksum(result)).toBe(header.endsWith('checksum') ? 'ok' : 'absent');
      }),
    );
  });

  it('E4: the payload of a re-stamped entry is the source memory', () => {
    fc.assert(
      fc.property(arbEntry(codecs), ({ bytes }) => {
        const entry = parseEntry(bytes);
        const { head, payload } = restamp(entry, STAMP);
        expect(payload.buffer).toBe(bytes.buffer);
        expect(payload.byteOffset).toBe(entry.payload.byteOffset);
        expect(payload.length).toBe(entry.payload.length);
        expect(head.buffer).not.toBe(bytes.buffer);
        expect(Buffer.from(bytes).includes(Buffer.from(head))).toBe(false);
      }),
    );
  });

  it('E3: a corrupt source stays detectably corrupt, whichever covered byte or checksum bit is wrong', () => {
    const arb = arbEntry(codecs, { headers: ['checksum', 'broker+checksum'] });
    fc.assert(
      fc.property(arb, fc.nat(), fc.integer({ min: 1, max: 255 }), arbOptions, ({ bytes }, place, flip, options) => {
        const entry = parseEntry(bytes);
        // The stored checksum and the payload: a flipped metadata byte may make another entry of it, or none.
        const crcAt = entry.metadataBytes.byteOffset - bytes.byteOffset - 8;
        const places = [0, 1, 2, 3].map((i) => crcAt + i);
        for (let at = bytes.length - entry.payloadLength; at < bytes.length; at++) places.push(at);
        const corrupt = Uint8Array.from(bytes);
        const at = places[place % places.length] as number;
        corrupt[at] = (corrupt[at] as number) ^ flip;
        const source = parseEntry(corrupt);
        expect(verifyChecksum(source)).toBe('mismatch');
        expect(verifyChecksum(restamped(source, options))).toBe('mismatch');
      }),
      { numRuns: 300 },
    );
  });

  it('B22, E2: both transaction ids are removed by default, kept on request, and half of a pair is removed too', () => {
    const txn = { mostBits: 1n, leastBits: 1n };
    const ids = [rawField(Outer.txnLeastBits, 1n), rawField(Outer.txnMostBits, 1n)];
    const cases = [ids, ids.toReversed(), [...ids, ...ids], ids.slice(0, 1), ids.slice(1)].map((fields) => {
      return parseEntry(frameEntry({ metadata: minimal(...fields), payload: Buffer.from('x'), checksum: true }));
    });
    for (const entry of cases) {
      const result = restamped(entry);
      expect(splitFields(result.metadataBytes).some(({ field }) => field === 22 || field === 23)).toBe(false);
      expect(result.metadata.txn).toBeUndefined();
      const kept = restamped(entry, { ...STAMP, removeTransaction: false });
      expect(kept.metadata.txn).toEqual(entry.metadata.txn);
      expect(hex(kept.metadataBytes)).toContain(hex(entry.metadataBytes));
    }
    expect(cases[0]?.metadata.txn).toEqual(txn);
  });

  it('B28: every earlier position is replaced, exactly one remains, other properties keep order and repeats', () => {
    const stale = (value: string) => property(SOURCE_POSITION_PROPERTY, value);
    const values = ['900:12', 'abc', '1', '1:2:3:4', '-1:5', '18446744073709551616:0', ''];
    const metadata = minimal(
      property('a', '1'),
      ...values.map(stale),
      property('b', '2'),
      property('a', '1'),
      stale('1:1'),
    );
    const entry = parseEntry(frameEntry({ metadata, payload: Buffer.from('x'), checksum: true }));
    expect(entry.metadata.sourcePosition).toBe('1:1');
    expect(restamped(entry).metadata.properties).toEqual([
      ['a', '1'],
      ['b', '2'],
      ['a', '1'],
      [SOURCE_POSITION_PROPERTY, '12:34'],
    ]);
    const oddKey = Buffer.concat([rawField(1, 'a'), rawField(2, '9:9'), rawField(1, SOURCE_POSITION_PROPERTY)]);
    const odd = parseEntry(frameEntry({ metadata: minimal(rawField(4, oddKey)), payload: Buffer.from('x') }));
    expect(odd.metadata.sourcePosition).toBe('9:9');
    expect(restamped(odd).metadata.properties).toEqual([[SOURCE_POSITION_PROPERTY, '12:34']]);
  });

  it('B28: a name that only begins like the position property is a user property', () => {
    const near = [
      `${SOURCE_POSITION_PROPERTY}X`,
      SOURCE_POSITION_PROPERTY.slice(0, -1),
      SOURCE_POSITION_PROPERTY.toLowerCase(),
    ];
    const metadata = minimal(...near.map((name) => property(name, '1:2')));
    const entry = parseEntry(frameEntry({ metadata, payload: Buffer.from('x') }));
    expect(entry.metadata.sourcePosition).toBeUndefined();
    expect(restamped(entry).metadata.properties.map(([name]) => name)).toEqual([...near, SOURCE_POSITION_PROPERTY]);
  });

  it('B26: a re-stamp keeps replicate_to, and replaces a replicated_from that is there already', () => {
    const lists = [['__local__'], ['b'], ['b', 'b'], []];
    for (const list of lists) {
      const fields = [
        ...list.map((cluster) => rawField(Outer.replicateTo, cluster)),
        rawField(Outer.replicatedFrom, 'z'),
      ];
      const entry = parseEntry(frameEntry({ metadata: minimal(...fields), payload: Buffer.from('x') }));
      expect(entry.metadata.replicateTo).toEqual(list);
      const { metadata, metadataBytes } = restamped(entry);
      expect(metadata.replicateTo).toEqual(list);
      expect(splitFields(metadataBytes).filter(({ field }) => field === Outer.replicatedFrom)).toHaveLength(1);
    }
  });

  it('B37: with a checksum, without one, and with a wrong one: right, absent, still wrong', () => {
    const cases = {
      'bld-checksum': 'ok',
      'bld-none': 'absent',
      'bld-checksum-wrong': 'mismatch',
      'bld-payload-corrupt': 'mismatch',
      'bld-metadata-corrupt-broker': 'mismatch',
    };
    for (const [name, verdict] of Object.entries(cases)) {
      const entry = parseEntry(fixtureEntry(name));
      expect(verifyChecksum(entry), name).toBe(verdict);
      expect(verifyChecksum(restamped(entry)), name).toBe(verdict);
    }
  });

  it('B24: a damaged payload behind good metadata is forwarded byte for byte, and still refused when opened', () => {
    const damaged = ['bld-batch-cut', 'bld-batch-count-more', 'bld-size-short-zstd', 'bld-marked-compressed-but-plain'];
    for (const name of damaged) {
      const entry = parseEntry(fixtureEntry(name));
      const result = restamped(entry);
      expect(sameBytes(result.payload, entry.payload), name).toBe(true);
      expect(verifyChecksum(result), name).toBe('ok');
      expect(
        refusal(() => readBatch(result, codecs)),
        name,
      ).toBe('undecodableBatch');
    }
  });

  it('B43: encryption fields and the payload of an encrypted entry stay byte for byte', () => {
    const encrypted = ENTRIES.filter((record) => record.encrypted);
    expect(encrypted.length).toBeGreaterThan(4);
    for (const { file } of encrypted) {
      const entry = parseEntry(fixtureBytes(file));
      const result = restamped(entry);
      const encryption = ({ metadataBytes }: Entry) =>
        splitFields(metadataBytes)
          .filter(({ field }) => field >= Outer.encryptionKeys && field <= Outer.encryptionParam)
          .map(({ bytes }) => hex(bytes));
      expect(encryption(result)).toEqual(encryption(entry));
      expect(sameBytes(result.payload, entry.payload)).toBe(true);
    }
  });

  it('B49, E10: each chunk is an entry with its own position, though all share a sequence id', () => {
    const chunks = [0, 1, 2].map((i) => parseEntry(fixtureEntry(`bld-chunk-${i}`)));
    expect(new Set(chunks.map(({ metadata }) => metadata.sequenceId)).size).toBe(1);
    expect(chunks.map(({ metadata }) => metadata.chunk?.chunkId)).toEqual([0, 1, 2]);
    expect(new Set(chunks.map(({ metadata }) => metadata.chunk?.uuid)).size).toBe(1);
    const sent = chunks.map((entry, i) => {
      return restamped(entry, { ...STAMP, sourcePosition: { ledgerId: 7n, entryId: BigInt(3 + i) } }).metadata;
    });
    expect(sent.map(({ sourcePosition }) => sourcePosition)).toEqual(['7:3', '7:4', '7:5']);
    expect(sent.map(({ chunk }) => chunk)).toEqual(chunks.map(({ metadata }) => metadata.chunk));
  });

  it('E2: unknown fields, known fields out of order and overlong numbers stay as they were', () => {
    for (const name of [
      'bld-unknown-appended',
      'bld-unknown-interleaved',
      'bld-unknown-next-and-highest',
      'bld-stamp-overlong-varint',
    ]) {
      const entry = parseEntry(fixtureEntry(name));
      const result = restamped(entry);
      expect(hex(result.metadataBytes)?.startsWith(hex(entry.metadataBytes) as string), name).toBe(true);
      for (const { bytes } of fixture(name).unknownFields ?? []) expect(hex(result.metadataBytes)).toContain(bytes);
    }
  });

  it('refuses an empty cluster name and a malformed position before it makes anything', () => {
    const entry = parseEntry(fixtureEntry('bld-checksum'));
    expect(refusal(() => restamp(entry, { ...STAMP, replicatedFrom: '' }))).toBe('invalidArgument');
    for (const sourcePosition of [
      '',
      '1',
      '1:2:3:4',
      '-1:5',
      { ledgerId: -1n, entryId: 0n },
      { ledgerId: 0n, entryId: 2n ** 63n },
    ]) {
      expect(refusal(() => restamp(entry, { ...STAMP, sourcePosition }))).toBe('invalidPosition');
    }
    // A refused call leaves nothing behind for the next one.
    expect(restamped(entry).metadata.sourcePosition).toBe('12:34');
    expect(restamped(entry).metadata.replicatedFrom).toBe('a');
  });

  it('E2: a schema version is replaced when translated, and kept without a translation', () => {
    const entry = parseEntry(fixtureEntry('bld-schema-version'));
    expect(hex(restamped(entry).metadata.schemaVersion)).toBe(hex(entry.metadata.schemaVersion));
    for (const schemaVersion of [Uint8Array.of(9), new Uint8Array(0), new Uint8Array(200).fill(3)]) {
      const { metadataBytes, metadata } = restamped(entry, { ...STAMP, schemaVersion });
      expect(hex(metadata.schemaVersion)).toBe(hex(schemaVersion));
      expect(splitFields(metadataBytes).filter(({ field }) => field === Outer.schemaVersion)).toHaveLength(1);
    }
  });
});

/** The three required fields, and what follows. */
function minimal(...fields: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat([rawField(1, 'p'), rawField(2, 1n), rawField(3, 1n), ...fields]);
}

function property(name: string, value: string): Uint8Array {
  return rawField(Outer.properties, Buffer.concat([rawField(1, name), rawField(2, value)]));
}
