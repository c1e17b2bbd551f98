/** How transcripts and tests of one segment name positions, keys, entries, and what a machine asks for and waits for. */
import { BARRIER_MARKER_TYPE, type MemoryTopic } from '../../src/adapters/memory/index.js';
import {
  type Entry,
  parseEntry,
  readBatch,
  SOURCE_POSITION_PROPERTY,
  type SourcePosition,
  verifyChecksum,
} from '../../src/entry/index.js';
import type { CursorRecord, Send, SendResult } from '../../src/ports/index.js';
import type { FoundCopy, SegmentNotice, SegmentWait } from '../../src/replication/index.js';
import { formatRange, hashKey } from '../../src/ring/index.js';
import { codecs } from './codecs.js';

export function position(at: SourcePosition | undefined): string {
  if (at === undefined) return 'nothing';
  const { ledgerId, entryId, part } = at;
  return `${ledgerId}:${entryId}${part === undefined ? '' : `:${part.toString(16).padStart(4, '0')}`}`;
}

export function behind(after: SourcePosition | undefined): string {
  return after === undefined ? '' : ` behind ${position(after)}`;
}

export function from(checkpoint: SourcePosition | undefined): string {
  return checkpoint === undefined ? '' : ` from ${position(checkpoint)}`;
}

export function previousText({ previous, completeTo }: Send): string {
  const whole = completeTo === undefined ? '' : `, whole up to ${position(completeTo ?? undefined)}`;
  return `${previous === undefined ? '' : ` behind ${position(previous)}`}${whole}`;
}

export function sendText({ position: at, buffers }: Send): string {
  const bytes = Buffer.concat([buffers.head, buffers.payload]);
  return `${position(at)} (${contentText(parseEntry(bytes))})`;
}

export function resultText(result: SendResult): string {
  if (result.type === 'partial') return `partial ${result.partial.toString(16)}`;
  return result.type;
}

export function recordText({ session, settled, drained, skipped, checkpoints }: CursorRecord): string {
  return [
    `${position(settled)}`,
    ...(drained ? ['drained'] : []),
    ...skipped.map((at) => `skipping ${position(at)}`),
    ...[...checkpoints].map(([segmentId, at]) => `checkpoint ${position(at)} in ${segmentId}`),
    ...(session === 1 ? [] : [`session ${session}`]),
  ].join(', ');
}

export function foundText(copies: readonly FoundCopy[] | undefined): string {
  if (copies === undefined || copies.length === 0) return 'found nothing';
  return `found ${copies.map(({ position: at, rectangle }) => `${position(at)}${rectangle === undefined ? '' : ` ${formatRange(rectangle.range)}/${formatRange(rectangle.buckets)}`}`).join(', ')}`;
}

export function noticeText(notice: SegmentNotice): string {
  switch (notice.type) {
    case 'held':
      return `held ${position(notice.position)}, ${notice.reason}: ${notice.message}`;
    case 'skipped':
      return `skipped ${position(notice.position)}`;
    case 'stoppedBy':
      return `${notice.reason}: ${notice.message}`;
    case 'lostAtSource':
      return `lost at the source: behind ${position(notice.from)} up to ${position(notice.to)}`;
    case 'chunksGivenUp':
      return `gave up the chunks of ${notice.uuid}, from ${position(notice.position)}`;
  }
}

export function waitText(wait: SegmentWait): string {
  switch (wait.for) {
    case 'remoteSegment':
      return `remote segment ${wait.segmentId} (${wait.reason})`;
    case 'operator':
      return `an operator (${wait.reason}: ${wait.message})`;
    case 'schema':
    case 'source':
      return `${wait.for} (${wait.reason})`;
    default:
      return wait.for;
  }
}

export function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}

/** What is in an entry: the places of its keys, and what else matters. */
export function contentText(entry: Entry): string {
  const { metadata } = entry;
  if (metadata.markerType !== undefined) return metadata.markerType === BARRIER_MARKER_TYPE ? 'barrier' : 'marker';
  if (metadata.encrypted) return 'encrypted';
  const { chunk, numMessagesInBatch, partitionKey } = metadata;
  if (chunk !== undefined) return `${chunk.uuid} ${chunk.chunkId + 1}/${chunk.numChunks}`;
  if (numMessagesInBatch === undefined) return placeText(partitionKey);
  if (verifyChecksum(entry) === 'mismatch') return 'damaged';
  return readBatch(entry, codecs)
    .map((message) => placeText(message.partitionKey))
    .join(' ');
}

/** The first digits of a key's segment hash and bucket hash, as stories name keys. */
const PLACES = new Map<string, string>();

function placeText(key: string | undefined): string {
  return key === undefined ? '-' : (PLACES.get(key) ?? key);
}

/** A key at a place: `2.7` has a segment hash of 2... and a bucket hash of 7...; `-` is none. */
export function keyAt(place: string): string | undefined {
  if (place === '-') return undefined;
  const [segment = '', bucket = ''] = place.split('.');
  for (let i = 0; i < 1 << 20; i++) {
    const hash = hashKey(`k${i}`).toString(16).padStart(8, '0');
    if (!hash.startsWith(segment) || !hash.slice(4).startsWith(bucket)) continue;
    PLACES.set(`k${i}`, place);
    return `k${i}`;
  }
  throw new Error(`${place}: no key lies there`);
}

/** What the remote holds in each segment, in order, as consumers see it. */
export function storedText(topic: MemoryTopic): string[] {
  const segments = [...topic.layout.segments.values()].sort((a, b) => a.segmentId - b.segmentId);
  return segments.map(({ segmentId, range, state }) => {
    const entries = topic.entries(segmentId).flatMap(({ bytes }) => {
      const entry = parseEntry(bytes);
      if (entry.metadata.markerType !== undefined) return [];
      const at = entry.metadata.properties.find(([name]) => name === SOURCE_POSITION_PROPERTY)?.[1] ?? '?';
      return [`${at.split(':').slice(0, 2).join(':')} (${contentText(entry)})`];
    });
    const name = `${segmentId} ${formatRange(range)}${state === 'sealed' ? ' sealed' : ''}`;
    return `${name}: ${entries.join(', ') || 'nothing'}`;
  });
}
