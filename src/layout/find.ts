/** Which segment takes a key: the active one whose range holds the key's position on the segment ring. */
import { IsthmusError, show } from '../errors.js';
import { isRingHash } from '../ring/index.js';
import { requireShape } from './checks.js';
import type { Layout, Segment } from './segment.js';

/**
 * The active segment that holds `segmentHash` (0..0xFFFF, the high half of the raw hash). Throws
 * `invalidArgument` for any other number, and `invalidOperation` while several legacy segments are active: among
 * those the masked hash of the classic topic decides (E9).
 */
export function findActiveSegment(layout: Layout, segmentHash: number): Segment {
  if (!isRingHash(segmentHash)) {
    throw new IsthmusError('invalidArgument', `segment hash ${show(segmentHash)}: must be an integer of 0..0xFFFF`);
  }
  requireShape(layout);
  let low = 0;
  let high = layout.active.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((layout.active[middle] as Segment).range.end < segmentHash) low = middle + 1;
    else high = middle;
  }
  return layout.active[low] as Segment;
}
