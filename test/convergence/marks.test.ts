import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BucketMarks } from '../../src/convergence/index.js';
import {
  both,
  equalMarks,
  MarkSweep,
  marksDownTo,
  standingMarks,
  uniteMarks,
  without,
  withoutMarks,
} from '../../src/convergence/marks.js';
import { equalWidthSplits } from '../../src/ring/index.js';
import { arbShape } from '../../src/testing/layouts.js';
import { arbColdMarks } from '../../src/testing/peer-states.js';
import { marks, marksText, shape } from './shorthand.js';

const FULL = { start: 0, end: 0xffff };
const arbList = fc
  .uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 8 })
  .map((list) => list.sort((a, b) => a - b));

describe('sorted lists', () => {
  it('are taken from and crossed as sets', () => {
    fc.assert(
      fc.property(arbList, arbList, (a, b) => {
        expect(without(a, b)).toEqual(a.filter((x) => !b.includes(x)));
        expect(both(a, b)).toEqual(a.filter((x) => b.includes(x)));
      }),
    );
  });

  it('are themselves when nothing goes', () => {
    const list = [1, 2];
    expect(without(list, [3])).toBe(list);
  });
});

describe('C11: marks that stand', () => {
  it.each<[string, string, string, string, string]>([
    ['a sibling boundary', '0/1 8000/1', '8000', '8000', ''],
    ['not a boundary that is gone', '0/1', '8000', '', '8000'],
    ['not one that is no sibling any more', '0/1 4000/1 8000/1', '4000 8000', '4000', '8000'],
    ['bucket boundaries that the cell has', '0/4', '0-ffff:2000,4000', '0-ffff:4000', ''],
    ['cell by cell after a split', '0/2 8000/2', '0-ffff:8000', '0-7fff:8000 8000-ffff:8000', ''],
    ['after a merge where both halves are marked', '0/2', '0-7fff:8000 8000-ffff:8000', '0-ffff:8000', ''],
    ['not where one half is', '0/2', '0-7fff:8000', '', ''],
  ])('%s', (_, cells, told, standing, dropped) => {
    const result = standingMarks(marks(told), shape(cells));
    expect([marksText(result.marks), marksText({ segments: result.dropped, buckets: [] })]).toEqual([
      standing,
      dropped,
    ]);
  });

  it('no boundary of the base grid (C10)', () => {
    expect(standingMarks(marks('5555'), shape('0/1 5555/1'), [0x5555]).dropped).toEqual([0x5555]);
  });

  it('are all that a cluster may state', () => {
    fc.assert(
      fc.property(
        arbShape().chain((of) => fc.tuple(fc.constant(of), arbColdMarks(of))),
        ([of, told]) => {
          const { marks: standing, dropped } = standingMarks(told, of);
          expect(dropped).toEqual([]);
          expect(
            equalMarks(standing, { ...told, buckets: told.buckets.filter((mark) => mark.boundaries.length > 0) }),
          ).toBe(true);
        },
      ),
    );
  });
});

describe('a sweep over marks', () => {
  const arbBucketMarks = fc
    .uniqueArray(fc.record({ start: fc.integer({ min: 0, max: 15 }), boundaries: arbList, gap: fc.boolean() }), {
      selector: (mark) => mark.start,
      maxLength: 6,
    })
    .map((list): BucketMarks[] =>
      list
        .sort((a, b) => a.start - b.start)
        .map(({ start, boundaries, gap }, i, all) => {
          const next = all[i + 1]?.start ?? 16;
          return { range: { start, end: gap ? start : next - 1 }, boundaries };
        }),
    );

  it('finds what is cold at every point of a range', () => {
    fc.assert(
      fc.property(arbBucketMarks, arbList, (told, starts) => {
        const sweep = new MarkSweep(told);
        const cells = [0, ...starts].map((start, i) => ({ start, end: (starts[i] ?? 21) - 1 }));
        for (const range of cells) {
          const points = Array.from({ length: range.end - range.start + 1 }, (_, i) => range.start + i);
          const coldAt = (hash: number) =>
            told.find((mark) => mark.range.start <= hash && hash <= mark.range.end)?.boundaries ?? [];
          const naive = points.map(coldAt).reduce((a, b) => a.filter((boundary) => b.includes(boundary)));
          expect(sweep.coldOver(range)).toEqual(naive);
        }
      }),
    );
  });
});

describe('C12: marks by hand', () => {
  it('unite cell by cell', () => {
    const united = uniteMarks(marks('8000 0-7fff:8000'), marks('8000-ffff:8000'), shape('0/2 8000/2'));
    expect(marksText(united)).toBe('8000 0-7fff:8000 8000-ffff:8000');
  });

  it.each<[string, string, number, string]>([
    ['a lower count marks the rest', '', 2, '0-7fff:2000,4000,6000,a000,c000,e000'],
    ['other marks of the range stay', '0-7fff:2000', 4, '0-7fff:2000,6000,a000,e000'],
    ['what the list names is cold no longer', '0-7fff:2000,4000', 8, ''],
    ['marks elsewhere stay', '8000-ffff:2000', 8, '8000-ffff:2000'],
  ])('%s', (_, before, buckets, after) => {
    const range = { start: 0, end: 0x7fff };
    const result = marksDownTo(marks(before), shape('0/8 8000/8'), range, equalWidthSplits(buckets));
    expect(marksText(result)).toBe(after);
  });

  it('give way to what is wanted', () => {
    const wanted = { segments: [0x8000], buckets: [{ range: FULL, boundaries: [0x4000] }] };
    expect(marksText(withoutMarks(marks('4000 8000 0-7fff:4000,8000'), wanted))).toBe('4000 0-7fff:8000');
  });
});
