/**
 * The base grid (C10): the boundaries with which a topic began, where their count was not a power of two. Such
 * boundaries are not midpoints of anything, so they cut the ring into top cells and are never merged as siblings.
 */
import { RING_END } from '../ring/index.js';
import { isLegacy, type Segment } from './segment.js';

/**
 * The base that segments prove by themselves: the starts of those created at epoch 0, while they still tile the
 * ring and are not a power of two in number. Legacy segments do not count. Undefined where there is none, which
 * is also the case once one of the first segments has been pruned.
 */
export function deriveBase(segments: Iterable<Segment>): readonly number[] | undefined {
  const first = [...segments].filter((segment) => segment.createdAtEpoch === 0 && !isLegacy(segment));
  if ((first.length & (first.length - 1)) === 0) return undefined;
  first.sort((a, b) => a.range.start - b.range.start);
  let next = 0;
  for (const { range } of first) {
    if (range.start !== next) return undefined;
    next = range.end + 1;
  }
  return next === RING_END + 1 ? first.slice(1).map((segment) => segment.range.start) : undefined;
}
