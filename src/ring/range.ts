/**
 * Inclusive ranges of the 16-bit ring 0x0000..0xFFFF. There are two rings of that size: the segment ring and the
 * bucket ring. Ranges never wrap.
 */
import { IsthmusError, show } from '../errors.js';

/** An inclusive range of a ring, `start <= end`, both in 0..0xFFFF. */
export interface HashRange {
  readonly start: number;
  readonly end: number;
}

/** The last hash of a ring. */
export const RING_END = 0xffff;

/** The whole ring. */
export const FULL_RANGE: HashRange = Object.freeze({ start: 0, end: RING_END });

/** True for an integer in 0..0xFFFF. */
export function isRingHash(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= RING_END;
}

/** True when `outer` holds every hash of `inner`. */
export function covers(outer: HashRange, inner: HashRange): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}

/** True when the two ranges share a hash. */
export function overlaps(a: HashRange, b: HashRange): boolean {
  return a.start <= b.end && b.start <= a.end;
}

/** True when `hash` lies in `range`. */
export function contains(range: HashRange, hash: number): boolean {
  return range.start <= hash && hash <= range.end;
}

/** True when the two ranges are the same. */
export function equalRanges(a: HashRange, b: HashRange): boolean {
  return a.start === b.start && a.end === b.end;
}

/**
 * The boundary at which a split cuts a range in two: the first hash of its right half,
 * `start + floor((end - start) / 2) + 1`. A range of one hash has none and is refused by the caller.
 */
export function midpoint(range: HashRange): number {
  return range.start + ((range.end - range.start) >> 1) + 1;
}

/** Four hex digits and a dash, as segment names write ranges: `0000-7fff`. */
export function formatRange(range: HashRange): string {
  return `${range.start.toString(16).padStart(4, '0')}-${range.end.toString(16).padStart(4, '0')}`;
}

/** Reads a range that came from outside; `where` names its place in the message. Throws `invalidShape`. */
export function parseRange(value: unknown, where: string): HashRange {
  const { start, end } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  if (!isRingHash(start) || !isRingHash(end) || start > end) {
    throw new IsthmusError(
      'invalidShape',
      `${where} is ${show(value)}: a range needs integers 0 <= start <= end <= 0xFFFF`,
    );
  }
  return { start, end };
}
