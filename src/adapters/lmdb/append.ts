/**
 * Storing an entry: one transaction looks at the segment's seal and at what its window says of the producer, moves
 * the window, and stores the bytes. So the window is never ahead of the entries nor behind them, whatever ends the
 * process in between (B31).
 */
import type { Offer } from '../../dedup/index.js';
import { type EntryBuffers, formatSourcePosition } from '../../entry/index.js';
import { IsthmusError } from '../../errors.js';
import type { AppendResult } from './append-result.js';
import { entryKey, positionOf } from './entry-keys.js';
import type { TopicState } from './topic-state.js';
import { unknownSegment } from './topic-state.js';
import type { WriteTransaction } from './write-transaction.js';

/** Throws `tooLarge`. */
export function checkSize({ maxEntryBytes }: TopicState, buffers: EntryBuffers): void {
  const length = sizeOf(buffers);
  if (length > maxEntryBytes) {
    throw new IsthmusError('tooLarge', `an entry of ${length} bytes; the limit is ${maxEntryBytes}`);
  }
}

export function sizeOf({ head, payload }: EntryBuffers): number {
  return head.length + payload.length;
}

/**
 * Appends within a transaction. Throws `invalidArgument` for a segment that does not exist or is told to nobody yet,
 * and `invalidPosition`.
 */
export function appendEntry(
  transaction: WriteTransaction,
  topic: TopicState,
  segmentId: number,
  buffers: EntryBuffers,
  producer?: string,
  offer?: Offer,
): AppendResult {
  const row = transaction.segment(topic.id, segmentId);
  if (row === undefined || row.state === 'created') throw unknownSegment(topic.name, segmentId);
  if (row.state !== 'open') return { type: 'sealed' };
  if (producer !== undefined && offer !== undefined) {
    checkPositions(offer);
    const answer = transaction.window(topic.id, segmentId, producer).offer(producer, offer);
    if (typeof answer === 'object') return { type: 'partial', partial: answer.partial };
    if (answer !== 'accept') return { type: answer };
    transaction.windowMoved(topic.id, segmentId, producer);
  }
  transaction.tables.entries.putSync(entryKey(topic.id, segmentId, row.entries), joined(buffers));
  transaction.putSegment(topic.id, segmentId, { state: 'open', entries: row.entries + 1 });
  return { type: 'stored', at: positionOf(segmentId, row.entries) };
}

/** A window with a position that cannot be written would fail everybody's transaction. */
function checkPositions({ position, completeTo }: Offer): void {
  formatSourcePosition(position);
  if (completeTo !== undefined && completeTo !== null) formatSourcePosition(completeTo);
}

let scratch = new Uint8Array(64 * 1024);

/** Both buffers in one, until the next call: within a transaction LMDB copies the bytes before the put returns. */
function joined(buffers: EntryBuffers): Uint8Array {
  const length = sizeOf(buffers);
  if (scratch.length < length) scratch = new Uint8Array(2 * length);
  scratch.set(buffers.head);
  scratch.set(buffers.payload, buffers.head.length);
  return scratch.subarray(0, length);
}
