/** Positions as a broker tells them and as replication counts them: a broker has one before a ledger's first entry, too. */
import { comparePositions } from '../../../dedup/index.js';
import type { SourcePosition } from '../../../entry/index.js';
import type { EntryPosition } from '../protocol/index.js';

export const LAST_ID = 2n ** 63n - 1n;
/** Where a reader begins that begins with the first entry, and with the next one to come. */
export const FIRST: EntryPosition = { ledgerId: 0n, entryId: 0n };
export const LATEST: EntryPosition = { ledgerId: LAST_ID, entryId: LAST_ID };

/** A position that is an entry's; undefined for one before a ledger's first. */
export function entryAt(position: EntryPosition | undefined): SourcePosition | undefined {
  if (position === undefined || position.entryId < 0n) return undefined;
  return { ledgerId: position.ledgerId, entryId: position.entryId };
}

/** Where a reader begins that is to bring what lies behind a position; it brings that entry once more. */
export function readerStart(after: SourcePosition | undefined): EntryPosition {
  if (after === undefined) return FIRST;
  const { ledgerId, entryId } = after;
  return entryId === LAST_ID ? { ledgerId: ledgerId + 1n, entryId: 0n } : { ledgerId, entryId };
}

/** True when `position` lies behind `other`; everything lies behind undefined, and undefined behind nothing. */
export function isBehind(position: EntryPosition | undefined, other: EntryPosition | undefined): boolean {
  return position !== undefined && (other === undefined || comparePositions(position, other) > 0);
}

export function later<Position extends EntryPosition>(
  a: Position | undefined,
  b: Position | undefined,
): Position | undefined {
  return isBehind(a, b) ? a : b;
}
