/**
 * Equal-width bucket lists: all that some hosts can make (C22). A list that is none of them is rounded up to the
 * smallest one that holds it, as 4 and 3 buckets meet at 12: more buckets, and not a boundary lost.
 */
import { IsthmusError, show } from '../errors.js';
import { RING_END } from '../ring/index.js';

/** True when the list is `equalWidthSplits(splits.length + 1)`. */
export function isEqualWidth(splits: readonly number[]): boolean {
  return holdsAll(splits.length + 1, splits);
}

/**
 * The smallest count of equal-width buckets, at most `limit`, whose boundaries hold every one of `splits`;
 * undefined when there is none. `limit` is 1..65536 (`invalidArgument`).
 */
export function equalWidthCount(splits: readonly number[], limit: number): number | undefined {
  if (!Number.isInteger(limit) || limit < 1 || limit > RING_END + 1) {
    throw new IsthmusError('invalidArgument', `bucket limit ${show(limit)}: must be an integer of 1..65536`);
  }
  for (let buckets = splits.length + 1; buckets <= limit; buckets++) {
    if (holdsAll(buckets, splits)) return buckets;
  }
  return undefined;
}

function holdsAll(buckets: number, splits: readonly number[]): boolean {
  return splits.every((split) => {
    const index = Math.ceil((split * buckets) / (RING_END + 1));
    return Math.floor((index * (RING_END + 1)) / buckets) === split;
  });
}
