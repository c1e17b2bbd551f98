/**
 * The first segments of a scalable topic on every cluster. Clusters that begin alike nest from the start, so a topic is
 * fanned out with one power of two; a newcomer begins with what a peer has now, or as near to it as it can be told.
 */
import { IsthmusError, show } from '../errors.js';

/** The most segments that a topic is created with: a broker takes any number, and stalls at some. */
export const MAX_INITIAL_SEGMENTS = 1_024;

const RING_SIZE = 0x1_0000;

/** The starts of equal segments. `segments` is a power of two in 1..1024; throws `invalidArgument`. */
export function equalSegmentStarts(segments: number): readonly number[] {
  if (!isPowerOfTwo(segments) || segments > MAX_INITIAL_SEGMENTS) {
    throw new IsthmusError(
      'invalidArgument',
      `segments is ${show(segments)}: a topic is created everywhere with a power of two in 1..${MAX_INITIAL_SEGMENTS}`,
    );
  }
  return Array.from({ length: segments }, (_, i) => i * (RING_SIZE / segments));
}

/**
 * The count for a cluster that can only be told a number: the highest power of two all of whose boundaries the wanted
 * segments have too, so that convergence then only has to split. In 1..1024.
 */
export function nearestSegmentCount(starts: readonly number[]): number {
  const wanted = new Set(starts);
  let count = 1;
  while (count < MAX_INITIAL_SEGMENTS && equalSegmentStarts(count * 2).every((start) => wanted.has(start))) count *= 2;
  return count;
}

function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(value) && value > 0 && Number.isInteger(Math.log2(value));
}
