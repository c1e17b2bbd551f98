/** Ranges against the sets of hashes that they stand for. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  contains,
  covers,
  equalRanges,
  formatRange,
  isRingHash,
  midpoint,
  overlaps,
  parseRange,
} from '../../src/ring/index.js';

/** Ranges that often touch, share an end, or are the same: the cells of a small ring, at one of its ends. */
const arbRange = fc
  .tuple(fc.nat(5), fc.nat(5), fc.constantFrom(0, 0xffff - 5))
  .map(([one, other, base]) => ({ start: base + Math.min(one, other), end: base + Math.max(one, other) }));

const hashesOf = ({ start, end }: { start: number; end: number }) =>
  new Set(Array.from({ length: end - start + 1 }, (_, i) => start + i));

describe('a range', () => {
  it('is the set of its hashes', () => {
    fc.assert(
      fc.property(arbRange, arbRange, fc.nat(0xffff), (a, b, hash) => {
        const [left, right] = [hashesOf(a), hashesOf(b)];
        expect(contains(a, hash)).toBe(left.has(hash));
        for (const one of right) expect(contains(a, one)).toBe(left.has(one));
        expect(covers(a, b)).toBe([...right].every((one) => left.has(one)));
        expect(overlaps(a, b)).toBe([...right].some((one) => left.has(one)));
        expect(equalRanges(a, b)).toBe(left.size === right.size && [...right].every((one) => left.has(one)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('is cut in its middle, the left half the larger one', () => {
    for (const [start, end, boundary] of [
      [0, 0xffff, 0x8000],
      [0, 1, 1],
      [4, 6, 6],
      [0x8000, 0xffff, 0xc000],
    ] as const) {
      expect(midpoint({ start, end })).toBe(boundary);
    }
  });

  it('is written as segment names write it, and read from what comes from outside', () => {
    expect(formatRange({ start: 0, end: 0x7fff })).toBe('0000-7fff');
    expect(formatRange({ start: 0x00ab, end: 0xffff })).toBe('00ab-ffff');
    expect(parseRange({ start: 0, end: 0xffff, more: 1 }, 'range')).toEqual({ start: 0, end: 0xffff });
    expect(parseRange({ start: 7, end: 7 }, 'range')).toEqual({ start: 7, end: 7 });
    for (const wrong of [undefined, null, 5, {}, { start: 0 }, { start: 2, end: 1 }, { start: -1, end: 1 }]) {
      expect(() => parseRange(wrong, 'the range')).toThrow(
        /^the range is .*: a range needs integers 0 <= start <= end/,
      );
    }
    expect(() => parseRange({ start: 0, end: 0x10000 }, 'r')).toThrow(/0xFFFF/);
  });
});

it('a hash of the ring is an integer in 0..0xFFFF', () => {
  for (const good of [0, 1, 0xffff]) expect(isRingHash(good)).toBe(true);
  for (const wrong of [-1, 0x10000, 0.5, Number.NaN, '1', undefined, null, 1n]) expect(isRingHash(wrong)).toBe(false);
});
