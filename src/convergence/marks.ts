/**
 * Cold marks as sets over a shape. A mark stands only while it can mean something: a segment boundary while it lies
 * between siblings (C11), a bucket boundary while a cell has it.
 */
import { type Shape, siblingBoundaries } from '../layout/index.js';
import { covers, equalBoundaries, type HashRange, overlaps, unionBoundaries } from '../ring/index.js';
import { type BucketMarks, type ColdMarks, NO_MARKS } from './peer-state.js';

/** The boundaries of sorted list `a` that are not in sorted list `b`. Returns `a` itself when that is all of them. */
export function without(a: readonly number[], b: readonly number[]): readonly number[] {
  if (a.length === 0 || b.length === 0) return a;
  const kept: number[] = [];
  let j = 0;
  for (const boundary of a) {
    while (j < b.length && (b[j] as number) < boundary) j++;
    if (b[j] !== boundary) kept.push(boundary);
  }
  return kept.length === a.length ? a : kept;
}

/** The boundaries that are in both sorted lists. */
export function both(a: readonly number[], b: readonly number[]): readonly number[] {
  return a === b ? a : without(a, without(a, b));
}

/** Reads bucket marks from left to right, so that a sweep over many cells costs no more than the marks are long. */
export class MarkSweep {
  private at = 0;

  constructor(private readonly marks: readonly BucketMarks[]) {}

  /** The boundaries that are cold at every point of `range`. Ranges must be asked in ascending order of their starts. */
  coldOver(range: HashRange): readonly number[] {
    const { marks } = this;
    while ((marks[this.at]?.range.end ?? Number.POSITIVE_INFINITY) < range.start) this.at++;
    let cold: readonly number[] | undefined;
    let next = range.start;
    for (let i = this.at; next <= range.end; i++) {
      const mark = marks[i];
      if (mark === undefined || mark.range.start > next) return [];
      cold = cold === undefined ? mark.boundaries : both(cold, mark.boundaries);
      next = mark.range.end + 1;
    }
    return cold ?? [];
  }
}

/** The marks that stand on a shape, cell by cell, and the segment boundaries whose marks fell (C11). */
export function standingMarks(
  marks: ColdMarks,
  shape: Shape,
  base?: readonly number[],
): { readonly marks: ColdMarks; readonly dropped: readonly number[] } {
  if (marks.segments.length === 0 && marks.buckets.length === 0) return { marks: NO_MARKS, dropped: [] };
  const segments = marks.segments.length === 0 ? [] : both(marks.segments, siblingBoundaries(shape, base));
  const sweep = new MarkSweep(marks.buckets);
  const buckets = shape.cells.flatMap(({ range, entryBucketSplits }) => {
    const boundaries = both(sweep.coldOver(range), entryBucketSplits);
    return boundaries.length === 0 ? [] : [{ range, boundaries }];
  });
  return { marks: { segments, buckets }, dropped: without(marks.segments, segments) };
}

/** Both lists of marks, on the cells of one shape. */
export function uniteMarks(a: ColdMarks, b: ColdMarks, shape: Shape): ColdMarks {
  if (b.segments.length === 0 && b.buckets.length === 0) return a;
  if (a.segments.length === 0 && a.buckets.length === 0) return b;
  const inA = new MarkSweep(a.buckets);
  const inB = new MarkSweep(b.buckets);
  const buckets = shape.cells.flatMap(({ range }) => {
    const boundaries = unionBoundaries(inA.coldOver(range), inB.coldOver(range));
    return boundaries.length === 0 ? [] : [{ range, boundaries }];
  });
  return { segments: unionBoundaries(a.segments, b.segments), buckets };
}

/** True when both mark the same boundaries, cell by cell. */
export function equalMarks(a: ColdMarks | undefined, b: ColdMarks | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  return (
    equalBoundaries(a.segments, b.segments) &&
    a.buckets.length === b.buckets.length &&
    a.buckets.every((mark, i) => {
      const other = b.buckets[i] as BucketMarks;
      return (
        mark.range.start === other.range.start &&
        mark.range.end === other.range.end &&
        equalBoundaries(mark.boundaries, other.boundaries)
      );
    })
  );
}

/**
 * The marks after a rebucket of a range to `splits` by hand: what the cells in it have beyond the list is cold, and
 * what the list names no longer is (C12).
 */
export function marksDownTo(marks: ColdMarks, shape: Shape, range: HashRange, splits: readonly number[]): ColdMarks {
  const named = withoutMarks(marks, { segments: [], buckets: [{ range, boundaries: splits }] });
  const fewer = shape.cells.flatMap((cell) => {
    const cold = covers(range, cell.range) ? without(cell.entryBucketSplits, splits) : [];
    return cold.length === 0 ? [] : [{ range: cell.range, boundaries: cold }];
  });
  return uniteMarks(named, { segments: [], buckets: fewer }, shape);
}

/** The marks less those of boundaries that are wanted. */
export function withoutMarks(marks: ColdMarks, wanted: ColdMarks): ColdMarks {
  const buckets = marks.buckets.flatMap((mark) => {
    const boundaries = wanted.buckets
      .filter(({ range }) => overlaps(range, mark.range))
      .reduce((left, { boundaries: named }) => without(left, named), mark.boundaries);
    return boundaries.length === 0 ? [] : [{ range: mark.range, boundaries }];
  });
  return { segments: without(marks.segments, wanted.segments), buckets };
}
