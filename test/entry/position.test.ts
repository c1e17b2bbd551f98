/** Source positions as text (E10, E11, B28, B46). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatSourcePosition, parseEntry, parseSourcePosition, type SourcePosition } from '../../src/entry/index.js';
import { rawField, splitFields } from '../../src/testing/entries.js';
import { refusal } from '../support/expect.js';
import { fixtureBytes, fixtureEntry } from '../support/fixtures.js';

const LAST = 2n ** 63n - 1n;
const arbId = fc.oneof(
  fc.constantFrom(0n, LAST, LAST - 1n, 2n ** 53n, 2n ** 53n + 1n),
  fc.bigInt({ min: 0n, max: LAST }),
);
const arbPosition = fc.record<SourcePosition>(
  { ledgerId: arbId, entryId: arbId, part: fc.oneof(fc.constantFrom(0, 0xffff), fc.nat({ max: 0xffff })) },
  { requiredKeys: ['ledgerId', 'entryId'] },
);

describe('source positions', () => {
  it('E10: what is written reads back exactly, in both forms', () => {
    fc.assert(
      fc.property(arbPosition, (position) => {
        const text = formatSourcePosition(position);
        expect(text).toMatch(/^\d+:\d+(:\d+)?$/);
        expect(parseSourcePosition(text)).toEqual(position);
      }),
    );
    expect(formatSourcePosition({ ledgerId: 1n, entryId: 2n, part: 0 })).toBe('1:2:0');
  });

  it('E11, B46: neighbours beyond 2^53 stay different, and the ends of 63 bits are exact', () => {
    expect(parseSourcePosition('9007199254740993:0')).not.toEqual(parseSourcePosition('9007199254740992:0'));
    expect(parseSourcePosition(`${LAST}:${LAST}`)).toEqual({ ledgerId: LAST, entryId: LAST });
    expect(parseSourcePosition('0:0')).toEqual({ ledgerId: 0n, entryId: 0n });
    expect(parseEntry(fixtureEntry('bld-position-extremes')).metadata.sourcePosition).toBe(`${LAST}:${LAST}`);
  });

  const MALFORMED = [
    ...['', 'abc', '1', ':', '1:', ':1', '1:2:', '1:2:3:4', '-1:5', '1:-5', '+1:2', '1:2:-3', ' 1:2', '1:2 ', '1:2\n'],
    ...['1,2', '1.0:2', '1e3:2', '0x1:2', '1:2:65536', '1:2:99999', '1:2:100000', '١:٢', '１:２', '1_0:2', 'null:1'],
    ...['18446744073709551616:0', '18446744073709551615:0', '9223372036854775808:0', '0:9223372036854775808'],
    `${'0'.repeat(19)}1:2`,
  ];

  it.each(MALFORMED)('B28, E10: %j is no position', (text) => {
    expect(refusal(() => parseSourcePosition(text))).toBe('invalidPosition');
  });

  it('B28: the malformed position of a stored entry is read as text and refused as a position', () => {
    const { sourcePosition = '' } = parseEntry(fixtureEntry('bld-position-malformed')).metadata;
    expect(sourcePosition).not.toBe('');
    expect(refusal(() => parseSourcePosition(sourcePosition))).toBe('invalidPosition');
  });

  it('E10: numbers out of range are not written', () => {
    const wrong: SourcePosition[] = [
      { ledgerId: -1n, entryId: 0n },
      { ledgerId: 0n, entryId: -1n },
      { ledgerId: LAST + 1n, entryId: 0n },
      { ledgerId: 0n, entryId: 2n ** 64n - 1n },
      { ledgerId: 0n, entryId: 0n, part: -1 },
      { ledgerId: 0n, entryId: 0n, part: 0x10000 },
      { ledgerId: 0n, entryId: 0n, part: 1.5 },
      { ledgerId: 0n, entryId: 0n, part: Number.NaN },
      { ledgerId: 7 as unknown as bigint, entryId: 3n },
    ];
    for (const position of wrong) expect(refusal(() => formatSourcePosition(position))).toBe('invalidPosition');
  });

  it('E11: the ids of Pulsar 5.0.1, all 64 bits of them, pass through our wire forms exactly', () => {
    const ids = JSON.parse(fixtureBytes('message-ids.json').toString('utf8')) as Record<string, string>[];
    expect(ids).toHaveLength(21);
    for (const { bytes = '', ledgerId = '', entryId = '' } of ids) {
      const [ledger, entry] = splitFields(Buffer.from(bytes, 'hex'));
      expect([ledger?.value, entry?.value]).toEqual([BigInt(ledgerId), BigInt(entryId)]);
      // As sequence id and as transaction id, the two places of an entry where such numbers lie.
      const fields = [
        rawField(1, 'p'),
        rawField(2, BigInt(ledgerId)),
        rawField(3, 1n),
        rawField(22, BigInt(entryId)),
        rawField(23, 0n),
      ];
      const metadata = Buffer.concat(fields);
      const size = Buffer.alloc(4);
      size.writeUInt32BE(metadata.length);
      const read = parseEntry(Buffer.concat([size, metadata])).metadata;
      expect([read.sequenceId, read.txn?.leastBits]).toEqual([BigInt(ledgerId), BigInt(entryId)]);
    }
  });
});
