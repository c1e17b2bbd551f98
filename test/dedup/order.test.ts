/** The order of source positions: R11, and the numbers of B02 and B46. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparePositions, isSameEntry } from '../../src/dedup/index.js';
import { formatSourcePosition, parseSourcePosition } from '../../src/entry/index.js';
import { arbSourcePosition } from '../../src/testing/positions.js';

const compare = (a: string, b: string) => comparePositions(parseSourcePosition(a), parseSourcePosition(b));

describe('comparePositions', () => {
  it.each([
    ['7:9', '7:10'],
    ['9:99', '10:0'],
    ['7:3:0', '7:3:1'],
    ['7:3:9', '7:3:10'],
    ['7:3:65535', '7:4:0'],
    ['7:3:65534', '7:3'],
    ['7:3:0', '7:3'],
    ['7:3', '7:4:0'],
  ])('B02: %s comes before %s, by number and not by text', (before, after) => {
    expect(compare(before, after)).toBe(-1);
    expect(compare(after, before)).toBe(1);
  });

  it('R11: without a part a position is the whole entry, which is the last part', () => {
    expect(compare('7:3', '7:3:65535')).toBe(0);
  });

  it.each([
    ['9007199254740992:0', '9007199254740993:0'],
    ['0:9007199254740992', '0:9007199254740993'],
    ['9223372036854775806:1', '9223372036854775807:0'],
    ['9223372036854775807:9223372036854775806', '9223372036854775807:9223372036854775807'],
  ])('B46: %s and %s, neighbours beyond 2^53, stay apart', (before, after) => {
    expect(compare(before, after)).toBe(-1);
    expect(isSameEntry(parseSourcePosition(before), parseSourcePosition(after))).toBe(false);
  });

  it('is a total order, that of (ledger, entry, part or 0xFFFF) as numbers', () => {
    fc.assert(
      fc.property(arbSourcePosition(), arbSourcePosition(), (a, b) => {
        const rank = (p: typeof a) => (p.ledgerId << 80n) + (p.entryId << 16n) + BigInt(p.part ?? 0xffff);
        const difference = rank(a) - rank(b);
        expect(comparePositions(a, b)).toBe(difference < 0n ? -1 : difference > 0n ? 1 : 0);
        expect(isSameEntry(a, b)).toBe(rank(a) >> 16n === rank(b) >> 16n);
      }),
    );
  });

  it('E10: a position survives its text form', () => {
    fc.assert(
      fc.property(arbSourcePosition(), (position) => {
        expect(parseSourcePosition(formatSourcePosition(position))).toEqual(position);
      }),
    );
  });
});
