import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createLayout,
  equalShapes,
  isAtLeastAsFine,
  joinShapes,
  parseShape,
  type Shape,
  shapeOf,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits } from '../../src/ring/index.js';
import { arbLayout, arbShape } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;

/** A shape in short: cell starts, each with its bucket list. */
function shape(...cells: [start: number, splits?: number[]][]): Shape {
  return {
    cells: cells.map(([start, entryBucketSplits = []], i) => ({
      range: { start, end: (cells[i + 1]?.[0] ?? 65536) - 1 },
      entryBucketSplits,
    })),
  };
}

/** For each hash of the ring the boundaries that hold there: whether a cell starts, and the bucket list. */
function asArray({ cells }: Shape): string[] {
  return cells.flatMap(({ range, entryBucketSplits }) => {
    const splits = entryBucketSplits.join();
    return Array.from({ length: range.end - range.start + 1 }, (_, i) => `${i === 0 ? '|' : ''}${splits}`);
  });
}

function union(a = '', b = ''): string {
  const numbers = [...a.replace('|', '').split(','), ...b.replace('|', '').split(',')].filter(Boolean).map(Number);
  const splits = [...new Set(numbers)].sort((x, y) => x - y).join();
  return `${a.startsWith('|') || b.startsWith('|') ? '|' : ''}${splits}`;
}

describe('C2: shapes form a join-semilattice', () => {
  const two = fc.tuple(arbShape(), arbShape());
  const three = fc.tuple(arbShape(), arbShape(), arbShape());

  it('join is idempotent and returns an argument that already is the join', () => {
    fc.assert(
      fc.property(two, ([a, b]) => {
        expect(joinShapes(a, a)).toBe(a);
        const join = joinShapes(a, b);
        expect(joinShapes(join, a)).toBe(join);
        expect([b, join]).toContain(joinShapes(b, join));
      }),
    );
  });

  it('join is commutative and associative, and takes any number of shapes', () => {
    fc.assert(
      fc.property(three, ([a, b, c]) => {
        expect(joinShapes(b, a)).toEqual(joinShapes(a, b));
        expect(joinShapes(joinShapes(a, b), c)).toEqual(joinShapes(a, joinShapes(b, c)));
        expect(joinShapes(a, b, c)).toEqual(joinShapes(joinShapes(a, b), c));
      }),
    );
  });

  it('the join is an upper bound of both, and the least one', () => {
    fc.assert(
      fc.property(three, ([a, b, c]) => {
        const join = joinShapes(a, b);
        expect(isAtLeastAsFine(join, a) && isAtLeastAsFine(join, b)).toBe(true);
        expect(isAtLeastAsFine(c, join)).toBe(isAtLeastAsFine(c, a) && isAtLeastAsFine(c, b));
        expect(isAtLeastAsFine(joinShapes(a, b, c), join)).toBe(true);
      }),
    );
  });

  it('a is at most b exactly when their join is b', () => {
    fc.assert(
      fc.property(two, fc.boolean(), ([a, other], comparable) => {
        const b = comparable ? joinShapes(a, other) : other;
        expect(isAtLeastAsFine(b, a)).toBe(equalShapes(joinShapes(a, b), b));
        expect(isAtLeastAsFine(a, b) && isAtLeastAsFine(b, a)).toBe(equalShapes(a, b));
      }),
    );
  });
});

describe('joining shapes', () => {
  it('C1: agrees with the union taken hash by hash', () => {
    fc.assert(
      fc.property(arbShape(), arbShape(), (a, b) => {
        const [arrayA, arrayB] = [asArray(a), asArray(b)];
        const join = joinShapes(a, b);
        const unions = new Map<string, string>();
        const wrong = asArray(join).findIndex((here, hash) => {
          const pair = `${arrayA[hash]}+${arrayB[hash]}`;
          const expected = unions.get(pair) ?? union(arrayA[hash], arrayB[hash]);
          unions.set(pair, expected);
          return here !== expected;
        });
        expect(wrong).toBe(-1);
        expect(parseShape(join)).toEqual(join);
      }),
      { numRuns: 20 },
    );
  });

  it.each<[string, Shape, Shape, Shape]>([
    ['boundaries of both', shape([0], [0x8000]), shape([0], [0x4000]), shape([0], [0x4000], [0x8000])],
    [
      'equal-width powers of two',
      shape([0, [0x8000]]),
      shape([0, [0x4000, 0x8000, 0xc000]]),
      shape([0, [0x4000, 0x8000, 0xc000]]),
    ],
    ['a cell takes the buckets over it', shape([0, [7]]), shape([0], [0x8000, [9]]), shape([0, [7]], [0x8000, [7, 9]])],
    ['the first and the last hash', shape([0], [1]), shape([0], [0xffff]), shape([0], [1], [0xffff])],
  ])('%s', (_, a, b, expected) => {
    expect(joinShapes(a, b)).toEqual(expected);
  });

  it('B57: layouts that do not nest, and 3 buckets against 4, meet in one union whatever the order', () => {
    const shapes = [
      shape([0, equalWidthSplits(3)], [0x8000, equalWidthSplits(3)]),
      shape([0, equalWidthSplits(4)], [0x5555, equalWidthSplits(4)], [0xaaaa, equalWidthSplits(4)]),
      shape([0], [1], [0xffff]),
    ];
    const buckets = [0x4000, 0x5555, 0x8000, 0xaaaa, 0xc000];
    const expected = shape(
      [0, buckets],
      [1, buckets],
      [0x5555, buckets],
      [0x8000, buckets],
      [0xaaaa, buckets],
      [0xffff, buckets],
    );
    for (const [i, j, k] of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      const [a, b, c] = [shapes[i ?? 0], shapes[j ?? 0], shapes[k ?? 0]] as [Shape, Shape, Shape];
      expect(joinShapes(a, b, c)).toEqual(expected);
      expect(joinShapes(a, joinShapes(b, c), c, a)).toEqual(expected);
    }
  });

  it('keeps the cells of either side that are cells of the join', () => {
    const [a, b] = [shape([0, [7]], [0x8000, [9]]), shape([0], [0x4000], [0x8000, [5, 9]])];
    expect(joinShapes(a, b).cells[2]).toBe(b.cells[2]);
    expect(joinShapes(b, a).cells[2]).toBe(b.cells[2]);
  });

  it('4,096 cells on both sides, of which no two boundaries agree', () => {
    const comb = (offset: number, splits: number[]) =>
      shape(
        [0, splits],
        ...Array.from({ length: 4095 }, (_, i): [number, number[]] => [(i + 1) * 16 + offset, splits]),
      );
    const join = joinShapes(comb(0, [7]), comb(8, [9]));
    expect(join.cells).toHaveLength(8191);
    expect(join.cells.every((cell, i) => cell.range.start === (i === 0 ? 0 : (i + 1) * 8))).toBe(true);
    // One union serves all cells.
    expect(new Set(join.cells.map((cell) => cell.entryBucketSplits)).size).toBe(1);
  });
});

describe('C4: shapes', () => {
  it('come from active segments only', () => {
    fc.assert(
      fc.property(arbLayout(), (layout) => {
        expect(shapeOf(layout)).toEqual(parseShape(shapeOf(layout)));
        expect(shapeOf(layout).cells.map((cell) => cell.range)).toEqual(layout.active.map((segment) => segment.range));
      }),
    );
    const split = splitSegment(createLayout({ nowMs }), 0, { nowMs });
    expect(shapeOf(split).cells).toHaveLength(2);
  });

  it.each<[string, unknown, RegExp]>([
    ['no object', null, /shape is null/],
    ['no cells', {}, /array of cells/],
    ['empty', { cells: [] }, /cells end before 0/],
    ['a late start', { cells: shape([1]).cells }, /cells\[0\]\.range\.start is 1, not 0/],
    [
      'a gap',
      { cells: [shape([0], [9]).cells[0], shape([0], [10]).cells[1]] },
      /cells\[1\]\.range\.start is 10, not 9/,
    ],
    [
      'an overlap',
      { cells: [shape([0], [9]).cells[0], shape([0], [8]).cells[1]] },
      /cells\[1\]\.range\.start is 8, not 9/,
    ],
    ['an early end', { cells: shape([0], [9]).cells.slice(0, 1) }, /cells end before 9/],
    ['a cell that is none', { cells: [7] }, /cells\[0\]\.range is undefined/],
    ['an unsafe end', { cells: [{ range: { start: 0, end: 2 ** 63 }, entryBucketSplits: [] }] }, /cells\[0\]\.range/],
    ['no bucket list', { cells: [{ range: { start: 0, end: 65535 } }] }, /cells\[0\]\.entryBucketSplits is undefined/],
    ['equal neighbours', shape([0, [5, 5]]), /cells\[0\]\.entryBucketSplits holds 5 after 5/],
    ['a bucket boundary at 0', shape([0], [9, [0]]), /cells\[1\]\.entryBucketSplits holds 0/],
    ['a bucket boundary beyond', shape([0, [65536]]), /entryBucketSplits holds 65536/],
    ['a sparse list of cells', { cells: new Array(2) }, /cells\[0\]/],
  ])('%s: refused, naming the field', (_, value, message) => {
    expect(() => parseShape(value)).toThrow(
      expect.objectContaining({ code: 'invalidShape', message: expect.stringMatching(message) }),
    );
  });

  it('are copied when they come from outside, without members that a shape does not have', () => {
    const outside = { cells: [{ range: { start: 0, end: 65535, x: 1 }, entryBucketSplits: [7], y: 2 }], z: 3 };
    const parsed = parseShape(outside);
    outside.cells[0]?.entryBucketSplits.push(1);
    expect(parsed).toEqual(shape([0, [7]]));
  });
});
