/**
 * The order of source positions within one source segment: lexicographic on (ledger, entry, part), as numbers. A
 * position without a part is the whole entry and compares as the last part, 0xFFFF (R11).
 */
import type { SourcePosition } from '../entry/index.js';
import { RING_END } from '../ring/index.js';

/** -1 when `a` lies before `b`, 0 when they are the same place, 1 behind it. */
export function comparePositions(a: SourcePosition, b: SourcePosition): -1 | 0 | 1 {
  if (a.ledgerId !== b.ledgerId) return a.ledgerId < b.ledgerId ? -1 : 1;
  if (a.entryId !== b.entryId) return a.entryId < b.entryId ? -1 : 1;
  const partA = a.part ?? RING_END;
  const partB = b.part ?? RING_END;
  return partA === partB ? 0 : partA < partB ? -1 : 1;
}

/** True when both are in the same source entry, whatever their parts. */
export function isSameEntry(a: SourcePosition, b: SourcePosition): boolean {
  return a.entryId === b.entryId && a.ledgerId === b.ledgerId;
}
