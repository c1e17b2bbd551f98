/**
 * What was found to be stored on the remote without having been sent by this machine: by a process before it, or by a
 * send whose answer did not come. Two sources say so: the watermark of a segment, which settles its range up to there
 * (R13), and copies read back, each of which settles what it holds (R15). Never "the highest position found": with
 * parts that loses.
 */
import { comparePositions } from '../dedup/index.js';
import { parseEntry, parseSourcePosition, SOURCE_POSITION_PROPERTY, type SourcePosition } from '../entry/index.js';
import { isLegacy, type Segment } from '../layout/index.js';
import type { StoredEntry } from '../ports/index.js';
import type { Rectangle, SourceSegment } from '../rebatch/index.js';
import { covers, FULL_RANGE, type HashRange, RING_END } from '../ring/index.js';

/** A copy of a source entry, or of a part of one, as it lies on the remote. */
export interface FoundCopy {
  /** In the source, without a part. */
  readonly position: SourcePosition;
  /** On the remote. */
  readonly at: SourcePosition;
  /** What it holds of the source entry; undefined: all of it. */
  readonly rectangle?: Rectangle;
  /** A chunk of this message (R6). */
  readonly chunk?: { readonly uuid: string; readonly chunkId: number; readonly numChunks: number };
}

/** Reads a stored entry of a remote segment as a copy; undefined when it is none of this cluster's. Unreadable entries are nobody's. */
export function readCopy(stored: StoredEntry, segment: Segment, sourceCluster: string): FoundCopy | undefined {
  try {
    const { metadata } = parseEntry(stored.bytes);
    if (metadata.replicatedFrom !== sourceCluster || metadata.markerType !== undefined) return undefined;
    const text = metadata.properties.findLast(([name]) => name === SOURCE_POSITION_PROPERTY)?.[1];
    if (text === undefined) return undefined;
    const { ledgerId, entryId, part } = parseSourcePosition(text);
    const copy = { position: { ledgerId, entryId }, at: stored.position };
    const { chunk, stamp } = metadata;
    if (chunk !== undefined) {
      const { uuid, chunkId, numChunks } = chunk;
      return { ...copy, chunk: { uuid, chunkId, numChunks } };
    }
    if (part === undefined) return copy;
    // Towards classic segments a range proves nothing, so that a part there settles nothing: twice is better than never.
    if (stamp === undefined || isLegacy(segment)) return undefined;
    return { ...copy, rectangle: { range: segment.range, buckets: { start: stamp.min, end: stamp.max } } };
  } catch {
    return undefined;
  }
}

/** Copies without the chunks of messages that are not complete among them: what a sealed segment shows (R6). */
export function completeCopies(copies: readonly FoundCopy[]): readonly FoundCopy[] {
  const seen = new Map<string, Set<number>>();
  for (const { chunk } of copies) {
    if (chunk === undefined) continue;
    const ids = seen.get(chunk.uuid) ?? new Set();
    seen.set(chunk.uuid, ids.add(chunk.chunkId));
  }
  return copies.filter(({ chunk }) => chunk === undefined || seen.get(chunk.uuid)?.size === chunk.numChunks);
}

/** A copy, and the remote segment in which it lies. */
interface PlacedCopy extends FoundCopy {
  readonly segmentId: number;
}

interface Floor {
  readonly range: HashRange;
  readonly watermark: SourcePosition;
}

const ALL_BUCKETS: HashRange = FULL_RANGE;

/** Everything found, asked by entry. */
export class Found {
  private floors: Floor[] = [];
  private readonly copies = new Map<string, PlacedCopy[]>();

  /** All that was sent to this range up to this position is stored. */
  addWatermark(range: HashRange, watermark: SourcePosition): void {
    this.floors.push({ range, watermark });
  }

  addCopies(copies: readonly FoundCopy[], segmentId: number): void {
    for (const copy of copies) {
      const key = keyOf(copy.position);
      const list = this.copies.get(key);
      const placed = { ...copy, segmentId };
      if (list === undefined) this.copies.set(key, [placed]);
      else list.push(placed);
    }
  }

  /**
   * A segment is sealed: the chunks in it settle nothing before it is known which messages are complete there (R6). True
   * when there were any.
   */
  forgetChunks(segmentId: number): boolean {
    let hadAny = false;
    for (const [key, list] of this.copies) {
      const rest = list.filter((copy) => copy.chunk === undefined || copy.segmentId !== segmentId);
      if (rest.length === list.length) continue;
      hadAny = true;
      if (rest.length === 0) this.copies.delete(key);
      else this.copies.set(key, rest);
    }
    return hadAny;
  }

  get isEmpty(): boolean {
    return this.floors.length === 0 && this.copies.size === 0;
  }

  /** What is stored of the entry at a position: `all`, or rectangles. */
  of(position: SourcePosition, source: SourceSegment): 'all' | readonly Rectangle[] {
    const copies = this.copies.size === 0 ? undefined : this.copies.get(keyOf(position));
    if (copies?.some(({ rectangle, chunk }) => rectangle === undefined && chunk === undefined)) return 'all';
    const rectangles: Rectangle[] = [];
    for (const { rectangle } of copies ?? []) if (rectangle !== undefined) rectangles.push(rectangle);
    for (const { range, watermark } of this.floors) {
      const { ledgerId, entryId, part = RING_END } = watermark;
      const order = comparePositions(position, { ledgerId, entryId });
      if (order < 0) rectangles.push({ range, buckets: ALL_BUCKETS });
      else if (order === 0) rectangles.push({ range, buckets: { start: 0, end: part } });
    }
    return coverEverything(rectangles, source) ? 'all' : rectangles;
  }

  /** True when a chunk at this position lies in a segment that takes writes still. */
  hasChunk(position: SourcePosition): boolean {
    return this.copies.get(keyOf(position))?.some(({ chunk }) => chunk !== undefined) ?? false;
  }

  get hasCopies(): boolean {
    return this.copies.size > 0;
  }

  /** The cursor has passed this entry. */
  passed(position: SourcePosition): void {
    this.copies.delete(keyOf(position));
  }

  /** The cursor has come here: forgets the watermarks below. */
  settledTo(position: SourcePosition): void {
    if (this.floors.length === 0) return;
    this.floors = this.floors.filter(({ watermark }) => comparePositions(watermark, position) > 0);
  }

  /** Forgets all copies: the cursor is beyond everything that could have been sent before. */
  forgetCopies(): void {
    this.copies.clear();
  }
}

/** True when no message of the source segment lies outside the rectangles; those of a legacy one may lie anywhere. */
function coverEverything(rectangles: readonly Rectangle[], source: SourceSegment): boolean {
  const all = source.legacy ? FULL_RANGE : source.range;
  const whole = rectangles.filter(({ buckets }) => covers(buckets, ALL_BUCKETS)).map(({ range }) => range);
  whole.sort((a, b) => a.start - b.start);
  let next = all.start;
  for (const { start, end } of whole) {
    if (start > next) return false;
    if (end >= next) next = end + 1;
  }
  return next > all.end;
}

function keyOf({ ledgerId, entryId }: SourcePosition): string {
  return `${ledgerId}:${entryId}`;
}
