/**
 * The first layout of a topic: n segments of Pulsar's widths, or segments at explicit boundaries, which is how a
 * newcomer is created with the present shape of a peer.
 */
import { IsthmusError, show } from '../errors.js';
import { equalWidthSplits, RING_END } from '../ring/index.js';
import { assembleLayout, bornSegment } from './assemble.js';
import { deriveBase } from './base.js';
import { checkTime, isRecord, readBoundaries } from './checks.js';
import type { Layout, Segment } from './segment.js';

export interface CreateLayoutOptions {
  /** How many segments, 1..65536; 1 by default. Each is floor(65536 / n) wide, the last one takes the rest. */
  readonly segments?: number;
  /** Instead of a count: the starts of all segments but the first, strictly ascending in 1..0xFFFF. */
  readonly boundaries?: readonly number[];
  /** Equal-width buckets of each segment, 1..65536; `max(1, floor(4 / segments))` by default. */
  readonly buckets?: number;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** The topic's own properties, kept in the record. */
  readonly properties?: Readonly<Record<string, string>>;
}

/** The entry buckets that a topic begins with, over all of its segments. */
const BUCKET_BUDGET = 4;

/** The first layout of a topic, at epoch 0. Throws `invalidArgument`. */
export function createLayout(options: CreateLayoutOptions): Layout {
  checkTime(options.nowMs);
  const starts = [0, ...firstBoundaries(options)];
  const entryBucketSplits = equalWidthSplits(options.buckets ?? Math.max(1, Math.floor(BUCKET_BUDGET / starts.length)));
  const properties = readProperties(options.properties ?? {});
  const segments = new Map<number, Segment>();
  starts.forEach((start, segmentId) => {
    const range = { start, end: (starts[segmentId + 1] ?? RING_END + 1) - 1 };
    segments.set(segmentId, bornSegment(segmentId, { range, entryBucketSplits, parentIds: [] }, 0, options.nowMs));
  });
  const base = deriveBase(segments.values());
  return assembleLayout({
    epoch: 0,
    nextSegmentId: starts.length,
    segments,
    ...(base === undefined ? {} : { base }),
    properties,
    deleted: false,
  });
}

function firstBoundaries({ segments, boundaries }: CreateLayoutOptions): readonly number[] {
  if (boundaries !== undefined) {
    if (segments === undefined) return readBoundaries(boundaries, 'boundaries', 'invalidArgument');
    throw new IsthmusError('invalidArgument', `segments is ${show(segments)} beside boundaries: give one of the two`);
  }
  const count = segments ?? 1;
  if (!Number.isInteger(count) || count < 1 || count > RING_END + 1) {
    throw new IsthmusError('invalidArgument', `segments is ${show(count)}: a topic begins with 1..65536 segments`);
  }
  const width = Math.floor((RING_END + 1) / count);
  return Array.from({ length: count - 1 }, (_, i) => (i + 1) * width);
}

function readProperties(properties: unknown): Readonly<Record<string, string>> {
  if (!isRecord(properties) || !Object.values(properties).every((value) => typeof value === 'string')) {
    throw new IsthmusError('invalidArgument', `properties is ${show(properties)}: a map of texts to texts`);
  }
  return { ...properties } as Record<string, string>;
}
