/**
 * The GC gate: a sealed segment may be pruned only when every subscription and every replication cursor has drained it.
 * The absence of an answer opens no gate: unknown is not no.
 */
import type { Segment } from '../layout/index.js';

/** Whether one subscription or replication cursor has drained a segment; undefined: not known. */
export type DrainAnswer = boolean | undefined;

/**
 * True when the segment is sealed, has successors and no parents left, and everybody asked has answered that it is
 * drained. Roots go first: with a segment from the middle the line between its parents and its children would go.
 */
export function canPrune(segment: Segment, answers: Iterable<DrainAnswer>): boolean {
  const isRoot = segment.parentIds.length === 0 && segment.childIds.length > 0;
  if (segment.state !== 'sealed' || !isRoot) return false;
  for (const isDrained of answers) if (isDrained !== true) return false;
  return true;
}
