/**
 * Entry buckets (PIP-486): a segment's bucket ring is cut by a list of splits, the ascending starts of buckets
 * 1..N-1. Bucket 0 starts at 0; an empty list is one bucket. Also the set operations on any sorted boundary list,
 * which serve both rings (C1).
 */
import { IsthmusError, show } from '../errors.js';
import { type HashRange, RING_END } from './range.js';

/** The splits of `buckets` equal-width buckets: `floor(i * 65536 / buckets)`. `buckets` is 1..65536. */
export function equalWidthSplits(buckets: number): number[] {
  if (!Number.isInteger(buckets) || buckets < 1 || buckets > RING_END + 1) {
    throw new IsthmusError(
      'invalidArgument',
      `bucket count ${show(buckets)}: a segment has an integer of 1..65536 buckets`,
    );
  }
  return Array.from({ length: buckets - 1 }, (_, i) => Math.floor(((i + 1) * (RING_END + 1)) / buckets));
}

/** The index of the bucket that holds `hashB`: the number of splits that are at most `hashB`. */
export function bucketIndex(splits: readonly number[], hashB: number): number {
  let low = 0;
  let high = splits.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((splits[middle] as number) <= hashB) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The inclusive range of bucket `index`, which is 0..splits.length. */
export function bucketRange(splits: readonly number[], index: number): HashRange {
  if (!Number.isInteger(index) || index < 0 || index > splits.length) {
    throw new IsthmusError('invalidArgument', `bucket index ${show(index)}: there are buckets 0..${splits.length}`);
  }
  const start = index === 0 ? 0 : (splits[index - 1] as number);
  const next = splits[index];
  return { start, end: next === undefined ? RING_END : next - 1 };
}

/** Reads a boundary list that came from outside: strictly ascending integers in 1..0xFFFF. Throws `invalidShape`. */
export function parseBoundaries(value: unknown, where: string): readonly number[] {
  if (!Array.isArray(value)) {
    throw new IsthmusError('invalidShape', `${where} is ${show(value)}: boundaries are an array of integers`);
  }
  let last = 0;
  for (const boundary of value as unknown[]) {
    if (!Number.isInteger(boundary) || (boundary as number) <= last || (boundary as number) > RING_END) {
      throw new IsthmusError(
        'invalidShape',
        `${where} holds ${show(boundary)} after ${last}: boundaries are strictly ascending integers in 1..0xFFFF`,
      );
    }
    last = boundary as number;
  }
  return value as number[];
}

/** The sorted union of two boundary lists. Returns one of its arguments when that already is the union. */
export function unionBoundaries(a: readonly number[], b: readonly number[]): readonly number[] {
  if (a === b || b.length === 0) return a;
  if (a.length === 0) return b;
  const union: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const x = i < a.length ? (a[i] as number) : Number.POSITIVE_INFINITY;
    const y = j < b.length ? (b[j] as number) : Number.POSITIVE_INFINITY;
    union.push(Math.min(x, y));
    if (x <= y) i++;
    if (y <= x) j++;
  }
  if (union.length === a.length) return a;
  return union.length === b.length ? b : union;
}

/** True when both lists hold the same boundaries. */
export function equalBoundaries(a: readonly number[], b: readonly number[]): boolean {
  return a === b || (a.length === b.length && a.every((boundary, i) => boundary === b[i]));
}

/** True when sorted list `a` holds every boundary of sorted list `b`. */
export function includesBoundaries(a: readonly number[], b: readonly number[]): boolean {
  if (a === b) return true;
  let i = 0;
  for (const boundary of b) {
    while (i < a.length && (a[i] as number) < boundary) i++;
    if (a[i] !== boundary) return false;
  }
  return true;
}
