/**
 * Changing a topic's layout. The record, the seals that it brings and what new segments inherit are one transaction,
 * so there is no moment at which a sealed segment still takes a send that its successor does not know of (R13).
 */
import { IsthmusError, show } from '../../errors.js';
import { formatLayout, type Layout, type Segment } from '../../layout/index.js';
import type { TopicState } from './topic-state.js';
import { unknownSegment } from './topic-state.js';
import { inheritWindow } from './windows.js';
import type { WriteTransaction } from './write-transaction.js';

/** Writes a layout over `current`; over nothing when the topic is new. Returns the segments that are to be deleted. */
export function recordLayout(
  transaction: WriteTransaction,
  topicId: number,
  current: Layout | undefined,
  next: Layout,
): readonly number[] {
  for (const segmentId of next.segments.keys()) refuseDeleted(transaction, topicId, segmentId);
  transaction.flush();
  transaction.tables.layouts.putSync(topicId, JSON.stringify(formatLayout(next)));
  // Parents have lower ids: what a child inherits may be inherited itself in the same change.
  const ascending = [...next.segments.values()].sort((a, b) => a.segmentId - b.segmentId);
  for (const segment of ascending) {
    if (current?.segments.has(segment.segmentId) !== true) inheritWindow(transaction.tables, topicId, next, segment);
    recordSegment(transaction, topicId, segment);
  }
  const gone = [...(current?.segments.keys() ?? [])].filter((segmentId) => !next.segments.has(segmentId));
  for (const segmentId of gone) markDeleted(transaction, topicId, segmentId);
  transaction.flush();
  return gone;
}

function recordSegment(transaction: WriteTransaction, topicId: number, { segmentId, state }: Segment): void {
  const row = transaction.segment(topicId, segmentId);
  const sealed = state === 'sealed' || row?.state === 'sealed';
  transaction.putSegment(topicId, segmentId, { state: sealed ? 'sealed' : 'open', entries: row?.entries ?? 0 });
}

/** Creates segments behind the record. Throws `invalidOperation` for an id that was deleted. */
export function createSegments(transaction: WriteTransaction, topic: TopicState, segments: readonly Segment[]): void {
  for (const { segmentId } of segments) refuseDeleted(transaction, topic.id, segmentId);
  for (const { segmentId } of segments) {
    if (transaction.segment(topic.id, segmentId) !== undefined) continue;
    transaction.putSegment(topic.id, segmentId, { state: 'created', entries: 0 });
  }
}

/** Ends writes for good. Throws `invalidArgument` for a segment that does not exist. */
export function sealSegments(transaction: WriteTransaction, topic: TopicState, segmentIds: readonly number[]): void {
  const rows = segmentIds.map((segmentId) => {
    const row = transaction.segment(topic.id, segmentId);
    if (row === undefined || row.state === 'deleted') throw unknownSegment(topic.name, segmentId);
    return [segmentId, row] as const;
  });
  for (const [segmentId, { entries }] of rows) {
    transaction.putSegment(topic.id, segmentId, { state: 'sealed', entries });
  }
}

/** Marks the segments as deleted that the record does not have; the entries go later. Returns which. */
export function deleteSegments(
  transaction: WriteTransaction,
  topic: TopicState,
  segmentIds: readonly number[],
): readonly number[] {
  const { segments } = topic.layout();
  const gone = segmentIds.filter((segmentId) => !segments.has(segmentId));
  for (const segmentId of gone) markDeleted(transaction, topic.id, segmentId);
  return gone;
}

function markDeleted(transaction: WriteTransaction, topicId: number, segmentId: number): void {
  const row = transaction.segment(topicId, segmentId);
  if (row === undefined) return;
  // One that was told to nobody holds nothing; its id is free for the next attempt at the same change.
  transaction.putSegment(topicId, segmentId, row.state === 'created' ? undefined : { ...row, state: 'deleted' });
}

function refuseDeleted(transaction: WriteTransaction, topicId: number, segmentId: number): void {
  if (transaction.segment(topicId, segmentId)?.state !== 'deleted') return;
  throw new IsthmusError('invalidOperation', `segment ${show(segmentId)}: it was deleted, and ids are never reused`);
}
