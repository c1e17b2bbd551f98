/**
 * The slow path: a batch that does not fit is opened, its records are grouped by destination segment and bucket, and
 * each group is written as an entry of its own, in source order (R7 to R11). A key lies in one bucket of one segment,
 * so all its messages of one entry stay together and in order. Pure: the same entry and the same layout give the
 * same parts, and a part's number does not depend on the rest of the layout.
 */
import {
  type BatchTable,
  type DecodeLimits,
  type Entry,
  type EntryBuffers,
  openBatch,
  parseSourcePosition,
  type SourcePosition,
} from '../entry/index.js';
import { IsthmusError, show } from '../errors.js';
import type { Segment } from '../layout/index.js';
import { bucketIndex, bucketRange, contains, FULL_RANGE, type HashRange } from '../ring/index.js';
import { PartEncoder, type PartOptions } from './part.js';
import { isDone, type Rectangle } from './rectangle.js';
import { type RemoteLayout, type Routes, routesOf, type SourceSegment } from './routes.js';

/** How an entry is re-batched. */
export interface RebatchOptions extends PartOptions {
  /** Messages that have been acknowledged already and are left out. */
  readonly done?: readonly Rectangle[] | undefined;
  readonly limits?: DecodeLimits | undefined;
}

/** One entry made of some messages of a source entry, all for one bucket of one segment. */
export interface Part {
  /** The remote's segment. */
  readonly segmentId: number;
  /** What of the source entry the part stands for: its bucket, or where size made a cut its share of it (R8b). */
  readonly rectangle: Rectangle;
  /** The source position with the part number: the end hash of the rectangle's bucket range (R11). */
  readonly position: SourcePosition;
  /** The lowest bucket hash among its messages; what `DedupWindow.offer` compares with an earlier, finer attempt. */
  readonly lowestHash: number;
  readonly buffers: EntryBuffers;
  readonly messageCount: number;
}

/**
 * Re-batches an entry. Parts come by segment in ring order, within a segment in ascending position. Empty when
 * everything is done already. Throws `encryptedBatch`, `checksumMismatch`, `undecodableBatch`, `codecUnavailable` or
 * `tooLarge` (the entry is then held, R5), and `invalidArgument` on an entry that is no batch or a bad limit.
 */
export function rebatch(entry: Entry, source: SourceSegment, remote: RemoteLayout, options: RebatchOptions): Part[] {
  const { maxEntryBytes, done = [] } = options;
  if (!(Number.isSafeInteger(maxEntryBytes) && maxEntryBytes > 0)) {
    throw new IsthmusError('invalidArgument', `maxEntryBytes ${show(maxEntryBytes)}: a positive integer of bytes`);
  }
  const routes = routesOf(remote);
  const table = openBatch(entry, options.codecs, options.limits);
  const groups = groupMessages(table, source, routes, done);
  const encoder = new PartEncoder(entry, table, groups.bucketHashes, options);
  const base = wholePosition(options.stamp.sourcePosition);
  const parts: Part[] = [];
  for (const group of groups.list) {
    const rectangle = rectangleOf(group, routes, table);
    emit(group.messages, rectangle.buckets, (messages, buckets, encoded) => {
      parts.push({
        segmentId: group.segment.segmentId,
        rectangle: { ...rectangle, buckets },
        position: { ...base, part: buckets.end },
        lowestHash: encoded.lowestHash,
        buffers: encoded.buffers,
        messageCount: messages.length,
      });
    });
  }
  return parts;

  /** Encodes messages as one part, or cuts their bucket range in two by hash until they fit (R8b). */
  function emit(
    messages: Int32Array,
    buckets: HashRange,
    add: (messages: Int32Array, buckets: HashRange, encoded: ReturnType<PartEncoder['encode']>) => void,
  ): void {
    if (messages.length === 0) return;
    const encoded = encoder.encode(messages, { ...base, part: buckets.end });
    if (encoded.length <= maxEntryBytes) {
      add(messages, buckets, encoded);
      return;
    }
    if (buckets.start === buckets.end) {
      throw new IsthmusError(
        'tooLarge',
        `${messages.length} messages of bucket hash ${buckets.end} take ${encoded.length} bytes; the limit is ${maxEntryBytes}`,
      );
    }
    const middle = (buckets.start + buckets.end) >>> 1;
    const left = { start: buckets.start, end: middle };
    const right = { start: middle + 1, end: buckets.end };
    emit(
      messages.filter((i) => contains(left, groups.bucketHashes[i] as number)),
      left,
      add,
    );
    emit(
      messages.filter((i) => contains(right, groups.bucketHashes[i] as number)),
      right,
      add,
    );
  }
}

/** The messages of one bucket of one segment, as indexes into the table, in source order. */
interface Group {
  readonly cell: number;
  readonly segmentIndex: number;
  readonly segment: Segment;
  readonly messages: Int32Array;
}

interface Groups {
  readonly list: readonly Group[];
  readonly bucketHashes: Uint16Array;
}

/** A counting sort of the messages by cell; stable, so that source order is kept within each. */
function groupMessages(table: BatchTable, source: SourceSegment, routes: Routes, done: readonly Rectangle[]): Groups {
  const { count } = table;
  const bucketHashes = new Uint16Array(count);
  const groupOf = new Int32Array(count);
  const groupOfCell = routes.scratch;
  const cells: number[] = [];
  const segmentIndexes: number[] = [];
  const sizes: number[] = [];
  const unkeyedIndex = routes.indexOfUnkeyed(source);
  // A segment that covers the source takes all of it, as on the verbatim path: a key whose text does not hash into the
  // source's range (a lone surrogate, a key that another rule routed) goes one way with its singles (R2).
  const coverIndex = routes.indexOfCover(source);
  for (let i = 0; i < count; i++) {
    const keyHash = table.keyHash(i);
    const bucketHash = table.bucketHash(i, keyHash);
    bucketHashes[i] = bucketHash;
    if (done.length > 0 && isDone(done, source, keyHash, bucketHash)) {
      groupOf[i] = -1;
      continue;
    }
    const index = coverIndex >= 0 ? coverIndex : keyHash < 0 ? unkeyedIndex : routes.indexOfKey(keyHash);
    const splits = (routes.segments[index] as Segment).entryBucketSplits;
    const cell = (routes.firstCell[index] as number) + bucketIndex(splits, bucketHash);
    let group = (groupOfCell[cell] as number) - 1;
    if (group < 0) {
      group = cells.length;
      groupOfCell[cell] = group + 1;
      cells.push(cell);
      segmentIndexes.push(index);
      sizes.push(0);
    }
    groupOf[i] = group;
    sizes[group] = (sizes[group] as number) + 1;
  }
  for (const cell of cells) groupOfCell[cell] = 0;
  // All groups in one array, each a view of its own stretch.
  const order = new Int32Array(count);
  const next: number[] = [];
  let total = 0;
  for (const size of sizes) {
    next.push(total);
    total += size;
  }
  for (let i = 0; i < count; i++) {
    const group = groupOf[i] as number;
    if (group < 0) continue;
    const at = next[group] as number;
    order[at] = i;
    next[group] = at + 1;
  }
  const list = cells.map((cell, group) => {
    const segmentIndex = segmentIndexes[group] as number;
    return {
      cell,
      segmentIndex,
      segment: routes.segments[segmentIndex] as Segment,
      messages: order.subarray((next[group] as number) - (sizes[group] as number), next[group]),
    };
  });
  return { list: list.sort((a, b) => a.cell - b.cell), bucketHashes };
}

function rectangleOf(group: Group, routes: Routes, table: BatchTable): Rectangle {
  const { segment, segmentIndex, cell, messages } = group;
  const buckets = bucketRange(segment.entryBucketSplits, cell - (routes.firstCell[segmentIndex] as number));
  if (!routes.classic) return { range: segment.range, buckets };
  const unkeyed = messages.some((i) => (table.keyStart[i] as number) < 0);
  const residue = { modulus: routes.segments.length, remainder: segmentIndex };
  return { range: FULL_RANGE, buckets, residue, unkeyed };
}

/** The position of the whole entry: parts number it themselves. */
function wholePosition(position: SourcePosition | string): SourcePosition {
  const { ledgerId, entryId } = typeof position === 'string' ? parseSourcePosition(position) : position;
  return { ledgerId, entryId };
}
