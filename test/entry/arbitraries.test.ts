/** The arbitraries of entries reach what they promise, and their failures are small and readable. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEntry, readBatch, verifyChecksum } from '../../src/entry/index.js';
import { arbEntry, type GeneratedEntry } from '../../src/testing/entries.js';
import { CODEC_NAMES, codecs } from '../support/codecs.js';
import { refusal } from '../support/expect.js';

describe('arbEntry', () => {
  it('every entry parses with the right checksum, and every batch that is not encrypted opens', () => {
    fc.assert(
      fc.property(arbEntry(codecs), ({ bytes, header, content, encrypted }) => {
        const entry = parseEntry(bytes);
        expect(verifyChecksum(entry)).toBe(header.endsWith('checksum') ? 'ok' : 'absent');
        if (content.kind === 'single') return;
        expect(refusal(() => readBatch(entry, codecs))).toBe(encrypted ? 'encryptedBatch' : undefined);
      }),
      { numRuns: 300 },
    );
  });

  it('covers codecs, kinds, headers, stamps, keys and oddities, none of them rarely', () => {
    const seen = new Map<string, number>();
    const count = (feature: string, holds: boolean) => seen.set(feature, (seen.get(feature) ?? 0) + Number(holds));
    for (const entry of fc.sample(arbEntry(codecs), { numRuns: 2000, seed: 7 })) {
      const { metadata } = parseEntry(entry.bytes);
      for (const name of ['none', ...CODEC_NAMES]) count(name, metadata.compression === name);
      for (const header of ['none', 'checksum', 'broker', 'broker+checksum'])
        count(`header ${header}`, entry.header === header);
      for (const form of ['none', 'right', 'only-min', 'only-max', 'full', 'inverted'])
        count(`stamp ${form}`, entry.stampForm === form);
      count('batch', entry.content.kind === 'batch');
      count('single', entry.content.kind === 'single');
      count('no key', metadata.partitionKey === undefined);
      count('empty key', metadata.partitionKey === '');
      count('text key', metadata.partitionKeyB64 !== true && (metadata.partitionKey ?? '') !== '');
      count('base64 key', metadata.partitionKeyB64 === true);
      count('null key', metadata.nullPartitionKey === true);
      count('ordering key', metadata.orderingKey !== undefined);
      count('empty ordering key', metadata.orderingKey?.length === 0);
      count('unknown fields', entry.unknownFields.length > 0);
      count('stale position', metadata.sourcePosition !== undefined);
      count('repeated property', new Set(metadata.properties.map(([name]) => name)).size < metadata.properties.length);
      count('replicate_to', metadata.replicateTo.length > 0);
      count('replicated_from', metadata.replicatedFrom !== undefined);
      count('schema version', metadata.schemaVersion !== undefined);
      count('transaction', metadata.txn !== undefined);
      count('marker', metadata.markerType !== undefined);
      count('chunk', metadata.chunk !== undefined);
      count(
        'null value',
        metadata.nullValue === true ||
          (entry.content.kind === 'batch' && entry.content.messages.some(({ nullValue }) => nullValue)),
      );
      count('encrypted', metadata.encrypted);
      count('delayed', metadata.deliverAtMs !== undefined);
    }
    expect(Object.fromEntries([...seen].filter(([, times]) => times < 15))).toEqual({});
  });

  it('keeps to its options', () => {
    const options = {
      kinds: ['batch'],
      headers: ['checksum'],
      stamps: ['right'],
      maxMessages: 2,
      unknownFields: false,
      encrypted: false,
    } as const;
    fc.assert(
      fc.property(arbEntry({}, options), (entry) => {
        const { metadata, header } = parseEntry(entry.bytes);
        expect([header, metadata.compression, metadata.encrypted]).toEqual(['checksum', 'none', false]);
        expect(metadata.numMessagesInBatch).toBeLessThanOrEqual(2);
        expect(metadata.stamp).toEqual(entry.stamp);
        expect(entry.unknownFields).toEqual([]);
      }),
    );
  });

  it('shrinks to an entry of a few bytes that prints as one line', () => {
    const { counterexample } = fc.check(
      fc.property(arbEntry(codecs), ({ content }) => content.kind === 'single'),
      { seed: 3 },
    );
    const [smallest] = counterexample as [GeneratedEntry];
    expect(smallest.bytes.length).toBeLessThan(40);
    expect(fc.stringify(smallest)).toMatch(/^entry\(\{"header":"checksum".*bytes 0x[0-9a-f]+\)$/);
  });
});
