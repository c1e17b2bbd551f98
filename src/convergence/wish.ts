/** What is asked of a layout by the policy or the operator, as boundaries to be added (C12, C20). */
import type { Layout, Segment, Shape } from '../layout/index.js';
import { equalWidthSplits, midpoint, RING_END, unionBoundaries } from '../ring/index.js';
import type { ShapeDifference } from './next-shape.js';
import type { Caps } from './peer-state.js';
import type { PolicyDecision } from './policy.js';

/** The boundaries that a policy's action adds. A segment that is gone meanwhile, or cannot be cut, adds none. */
export function wishOf(layout: Layout, action: NonNullable<PolicyDecision['action']>): ShapeDifference {
  const ids = action.type === 'split' ? [action.segmentId] : action.segmentIds;
  const segments = ids.flatMap((id) => layout.active.find(({ segmentId }) => segmentId === id) ?? []);
  if (action.type === 'split') {
    const [segment] = segments;
    const canCut = segment !== undefined && segment.range.start < segment.range.end;
    return canCut ? splitWish(segment, undefined) : { segments: [], buckets: [] };
  }
  // A local rebucket joins its list and never replaces it (C12).
  const boundaries = equalWidthSplits(action.buckets);
  return { segments: [], buckets: segments.map(({ range }) => ({ range, boundaries })) };
}

/** A split asks for its segment's own ends too: if it was merged meanwhile, the cut would not be at a midpoint. */
export function splitWish({ range }: Segment, at: readonly number[] = [midpoint(range)]): ShapeDifference {
  const ends = [range.start, range.end + 1].filter((end) => end > 0 && end <= RING_END);
  return { segments: unionBoundaries(ends, at), buckets: [] };
}

/** True when a list that grows is longer than the caps allow. */
export function isBeyondBuckets(before: Shape, after: Shape, caps: Caps): boolean {
  return after.cells.some(({ entryBucketSplits: { length } }, i) => {
    return length >= caps.maxEntryBucketsPerSegment && length > (before.cells[i]?.entryBucketSplits.length ?? 0);
  });
}
