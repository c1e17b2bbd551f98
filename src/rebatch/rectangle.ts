/**
 * Which messages of one source entry have been acknowledged already: a set of rectangles, segment range times bucket
 * range ("Sealed destination"). A message is a point: its segment hash and its bucket hash. Rectangles name messages
 * without naming a layout, so that they stay true when the remote's changes between two attempts.
 */
import { classicPartition, contains, covers, type HashRange } from '../ring/index.js';
import { type SourceSegment, unkeyedPlace } from './routes.js';

/** A part of the two rings, as far as one source entry has messages in it. */
export interface Rectangle {
  readonly range: HashRange;
  readonly buckets: HashRange;
  /**
   * Towards classic segments keys go by hash modulo their number, not by range: the rectangle then holds only the
   * keyed messages of that remainder.
   */
  readonly residue?: { readonly modulus: number; readonly remainder: number };
  /**
   * Towards classic segments the place of unkeyed messages depends on their number (R3), so that a range cannot tell
   * whether they were in: this does.
   */
  readonly unkeyed?: boolean;
}

/** True when a message lies in one of the rectangles. `keyHash` is the raw hash of its partition key, -1 without one. */
export function isDone(
  done: readonly Rectangle[],
  source: SourceSegment,
  keyHash: number,
  bucketHash: number,
): boolean {
  return done.some((rectangle) => holds(rectangle, source, keyHash, bucketHash));
}

function holds(rectangle: Rectangle, source: SourceSegment, keyHash: number, bucketHash: number): boolean {
  const { range, buckets, residue, unkeyed } = rectangle;
  if (!contains(buckets, bucketHash)) return false;
  if (keyHash < 0) {
    return residue !== undefined ? unkeyed === true : contains(range, unkeyedPlace(source));
  }
  if (residue !== undefined) return classicPartition(keyHash, residue.modulus) === residue.remainder;
  // A segment that covers the source takes all its keys, also those that hash to elsewhere (R2).
  return contains(range, keyHash >>> 16) || (!source.legacy && covers(range, source.range));
}
