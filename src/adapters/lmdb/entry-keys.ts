/**
 * Keys of stored entries: topic id, segment id and entry id as big-endian numbers, so that the order of bytes is the
 * order of entries. An entry's position has its segment's id as ledger: positions are then unique within a topic.
 */
import type { SourcePosition } from '../../entry/index.js';

const KEY_BYTES = 20;
const TWO_32 = 0x1_0000_0000;

/** The key of an entry. All three are safe integers, the topic id of 32 bits. */
export function entryKey(topicId: number, segmentId: number, entryId: number): Uint8Array {
  const key = Buffer.allocUnsafe(KEY_BYTES);
  key.writeUInt32BE(topicId, 0);
  writeUint64(key, 4, segmentId);
  writeUint64(key, 12, entryId);
  return key;
}

/** The position of an entry. */
export function positionOf(segmentId: number, entryId: number): SourcePosition {
  return { ledgerId: BigInt(segmentId), entryId: BigInt(entryId) };
}

/** The id of the first entry behind a position, which may be one of another ledger. */
export function firstBehind(segmentId: number, after: SourcePosition | undefined): number {
  if (after === undefined || after.ledgerId < BigInt(segmentId)) return 0;
  return after.ledgerId > BigInt(segmentId) ? Number.MAX_SAFE_INTEGER : Number(after.entryId) + 1;
}

function writeUint64(target: Buffer, at: number, value: number): void {
  target.writeUInt32BE(Math.floor(value / TWO_32), at);
  target.writeUInt32BE(value % TWO_32, at + 4);
}
