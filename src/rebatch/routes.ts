/**
 * Where messages go on a remote: its active segments made searchable. The answers that hold for a whole layout are
 * computed once per layout and kept with it, not per entry (R1).
 */
import { IsthmusError, show } from '../errors.js';
import { isLegacy, type Segment } from '../layout/index.js';
import { bucketIndex, classicPartition, covers, type HashRange, RING_END } from '../ring/index.js';

/** What a replicator knows of a remote's layout. */
export interface RemoteLayout {
  /** The remote cluster's name, as `replicate_to` lists it. */
  readonly cluster: string;
  readonly epoch: number;
  /** The active segments; they tile the ring, except when all are legacy. */
  readonly active: readonly Segment[];
}

/** The segment that an entry was read from. */
export interface SourceSegment {
  readonly segmentId: number;
  readonly range: HashRange;
  /** It came from a classic topic: its range proves nothing about its keys (E9). */
  readonly legacy: boolean;
}

/** The searchable form of a remote's active segments. */
export class Routes {
  /** By range; by id where all are legacy. */
  readonly segments: readonly Segment[];
  /** All are legacy and there are several: keys go by the classic hash modulo their number (E9). */
  readonly classic: boolean;
  /** The number of the first cell of each segment: cells are all buckets of all segments, in ring order. */
  readonly firstCell: Int32Array;
  /** One number for each cell, all 0: scratch memory of whoever groups messages, who leaves it all 0. */
  readonly scratch: Int32Array;
  /** The starts of all segments but the first: the segment ring's splits. */
  private readonly innerStarts: readonly number[];
  private readonly covering = new Map<number, number>();

  /** Throws `invalidLayout` when the segments neither tile the ring nor are all legacy. */
  constructor(remote: RemoteLayout) {
    const legacy = remote.active.filter(isLegacy).length;
    if (remote.active.length === 0 || (legacy !== 0 && legacy !== remote.active.length)) {
      refuse(remote, 'has no active segment, or legacy ones beside others');
    }
    this.classic = legacy > 1;
    this.segments = [...remote.active].sort((a, b) =>
      legacy > 0 ? a.segmentId - b.segmentId : a.range.start - b.range.start,
    );
    this.innerStarts = this.segments.slice(1).map(({ range }) => range.start);
    this.firstCell = new Int32Array(this.segments.length);
    let next = 0;
    let cells = 0;
    for (const [i, { range, entryBucketSplits }] of this.segments.entries()) {
      if (legacy === 0 && range.start !== next) refuse(remote, `has a gap or an overlap at ${range.start}`);
      next = range.end + 1;
      this.firstCell[i] = cells;
      cells += entryBucketSplits.length + 1;
    }
    if (legacy === 0 && next !== RING_END + 1) refuse(remote, `ends at ${next - 1}`);
    this.scratch = new Int32Array(cells);
  }

  /** The one segment that takes all of a source segment; undefined where its keys are spread (R1). */
  cover(source: SourceSegment): Segment | undefined {
    return this.segments[this.indexOfCover(source)];
  }

  /** The index of that segment, or -1. The range of a legacy source proves nothing, so only a lone segment covers it. */
  indexOfCover({ range, legacy }: SourceSegment): number {
    if (this.segments.length === 1) return 0;
    if (this.classic || legacy) return -1;
    const key = range.start * 0x10000 + range.end;
    let index = this.covering.get(key);
    if (index === undefined) {
      index = this.indexOfHash(range.start);
      if (!covers((this.segments[index] as Segment).range, range)) index = -1;
      this.covering.set(key, index);
    }
    return index;
  }

  /** The index of the segment for a raw key hash. */
  indexOfKey(keyHash: number): number {
    return this.classic ? classicPartition(keyHash, this.segments.length) : this.indexOfHash(keyHash >>> 16);
  }

  /** The index of the segment for messages without a partition key (R3): the same for all of one source segment. */
  indexOfUnkeyed(source: SourceSegment): number {
    return this.classic ? source.segmentId % this.segments.length : this.indexOfHash(unkeyedPlace(source));
  }

  private indexOfHash(segmentHash: number): number {
    return bucketIndex(this.innerStarts, segmentHash);
  }
}

/**
 * The place on the segment ring where the messages of a source segment lie that have no partition key (R3): its start.
 * Legacy segments all have the full range, so their ids are spread over it, each bit halving what is left. A place,
 * unlike a number modulo the count of segments, moves only from a segment to one that descends from it, so that what is
 * sent again after a seal never comes behind what went another way (R12).
 */
export function unkeyedPlace({ segmentId, range, legacy }: SourceSegment): number {
  if (!legacy) return range.start;
  let place = 0;
  for (let bit = 0; bit < 16; bit++) place |= ((segmentId >>> bit) & 1) << (15 - bit);
  return place;
}

function refuse(remote: RemoteLayout, rule: string): never {
  throw new IsthmusError('invalidLayout', `the layout of ${show(remote.cluster)} at epoch ${remote.epoch} ${rule}`);
}

const ROUTES = new WeakMap<RemoteLayout, Routes>();

/** The routes of a layout, made when first asked for. */
export function routesOf(remote: RemoteLayout): Routes {
  let routes = ROUTES.get(remote);
  if (routes === undefined) {
    routes = new Routes(remote);
    ROUTES.set(remote, routes);
  }
  return routes;
}
