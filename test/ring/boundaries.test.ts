import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bucketIndex,
  bucketRange,
  contains,
  equalBoundaries,
  equalWidthSplits,
  formatRange,
  includesBoundaries,
  midpoint,
  parseBoundaries,
  parseRange,
  unionBoundaries,
} from '../../src/ring/index.js';
import { arbBucketSplits } from '../../src/testing/layouts.js';

describe('buckets', () => {
  it.each([
    [1, []],
    [2, [0x8000]],
    [3, [0x5555, 0xaaaa]],
    [5, [0x3333, 0x6666, 0x9999, 0xcccc]],
    [6, [0x2aaa, 0x5555, 0x8000, 0xaaaa, 0xd555]],
    [7, [0x2492, 0x4924, 0x6db6, 0x9249, 0xb6db, 0xdb6d]],
  ])('%i equal-width buckets', (buckets, splits) => {
    expect(equalWidthSplits(buckets)).toEqual(splits);
  });

  it.each([
    [0x0000, 0],
    [0x0fff, 0],
    [0x1000, 1],
    [0xefff, 1],
    [0xf000, 2],
    [0xffff, 2],
  ])('hash %i falls into bucket %i of 0x1000, 0xF000', (hash, bucket) => {
    expect(bucketIndex([0x1000, 0xf000], hash)).toBe(bucket);
  });

  it('a hash lies in the range of its bucket and of no other', () => {
    fc.assert(
      fc.property(arbBucketSplits(), fc.integer({ min: 0, max: 0xffff }), (splits, hash) => {
        const holders = [...splits, 0].map((_, i) => contains(bucketRange(splits, i), hash));
        expect(holders.filter(Boolean)).toHaveLength(1);
        expect(holders.indexOf(true)).toBe(bucketIndex(splits, hash));
      }),
    );
  });

  it('of 0x1000, 0xF000 end where the next one begins', () => {
    const ranges = [0, 1, 2].map((index) => formatRange(bucketRange([0x1000, 0xf000], index)));
    expect(ranges).toEqual(['0000-0fff', '1000-efff', 'f000-ffff']);
  });

  it.each([-1, 3, 0.5, Number.NaN])('there is no bucket %d of 0x1000, 0xF000', (index) => {
    expect(() => bucketRange([0x1000, 0xf000], index)).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining('buckets 0..2') }),
    );
  });

  it('are as many as the ring has hashes, and no more', () => {
    const splits = equalWidthSplits(65536);
    expect(parseBoundaries(splits, 'the list')).toBe(splits);
    expect([splits.length, splits[0], splits.at(-1)]).toEqual([65535, 1, 65535]);
  });

  it.each([0, -1, 1.5, 65537, Number.NaN])('%d buckets are refused', (buckets) => {
    expect(() => equalWidthSplits(buckets)).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining('bucket count') }),
    );
  });
});

/** Lists that have nothing to do with each other, equal ones, and such of which one holds the other. */
const arbLists = fc.oneof(
  fc.tuple(arbBucketSplits(), arbBucketSplits()),
  arbBucketSplits().map((list) => [list, list] as const),
  arbBucketSplits().map((list) => [list, [...list]] as const),
  arbBucketSplits().chain((list) => fc.tuple(fc.constant(list), fc.subarray([...list]))),
  arbBucketSplits().chain((list) => fc.tuple(fc.subarray([...list]), fc.constant(list))),
);

describe('boundary lists', () => {
  it('the union is that of the sets, and is an argument where that is the union', () => {
    fc.assert(
      fc.property(arbLists, ([a, b]) => {
        const expected = [...new Set([...a, ...b])].sort((x, y) => x - y);
        const union = unionBoundaries(a, b);
        expect(union).toEqual(expected);
        if (expected.length === a.length) expect(union).toBe(a);
        else if (expected.length === b.length) expect(union).toBe(b);
        expect(includesBoundaries(a, b)).toBe(b.every((boundary) => a.includes(boundary)));
        expect(equalBoundaries(a, b)).toBe(a.join() === b.join());
      }),
    );
  });

  it.each([
    ['not an array', 'abc', '"abc"'],
    ['a zero', [0], '0'],
    ['a repeated boundary', [5, 5], '5'],
    ['a descending one', [9, 3], '3'],
    ['one beyond the ring', [65536], '65536'],
    ['a fraction', [1.5], '1.5'],
    ['a text', ['7'], '"7"'],
  ])('%s is refused with the field and the value', (_, value, shown) => {
    expect(() => parseBoundaries(value, 'here')).toThrow(
      expect.objectContaining({ code: 'invalidShape', message: expect.stringMatching(`here .*${shown}`) }),
    );
  });
});

describe('ranges', () => {
  it.each([
    [0x0000, 0xffff, 0x8000],
    [0x0000, 0x5554, 0x2aab],
    [0xaaaa, 0xffff, 0xd555],
    [0xfffe, 0xffff, 0xffff],
  ])('the midpoint of %i to %i is %i', (start, end, middle) => {
    expect(midpoint({ start, end })).toBe(middle);
  });

  it('are written as segment names write them', () => {
    expect(formatRange({ start: 0, end: 0x7fff })).toBe('0000-7fff');
  });

  it.each([[null], [{ start: 2, end: 1 }], [{ start: -1, end: 1 }], [{ start: 0, end: 65536 }], [{ start: 0 }]])(
    '%j is refused',
    (value) => {
      expect(() => parseRange(value, 'here')).toThrow(expect.objectContaining({ code: 'invalidShape' }));
    },
  );
});
