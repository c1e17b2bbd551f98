/**
 * The values of the layout room. A layout is the record one cluster keeps of a topic: a DAG of range segments,
 * active ones that take writes and sealed ones that still drain (PIP-460, PIP-468). Everything here is immutable:
 * an operation returns a new layout and shares what it did not change.
 */
import type { HashRange } from '../ring/index.js';

/** One segment of a layout. Ids and epochs are safe integers, times milliseconds since the epoch. */
export interface Segment {
  readonly segmentId: number;
  readonly range: HashRange;
  readonly state: 'active' | 'sealed';
  /** In the order in which they were given: Pulsar does not sort them. */
  readonly parentIds: readonly number[];
  readonly childIds: readonly number[];
  /** Starts of buckets 1..N-1, ascending in 1..0xFFFF; empty is one bucket. Immutable for the segment's life. */
  readonly entryBucketSplits: readonly number[];
  readonly createdAtEpoch: number;
  /** -1 while active, as Pulsar's record has it. */
  readonly sealedAtEpoch: number;
  readonly createdAtMs: number;
  /** -1 while active. */
  readonly sealedAtMs: number;
  /** The `persistent://` topic behind a segment that came from a classic topic; absent on all others. */
  readonly legacyTopicName?: string;
  /** Members of the stored record that isthmus does not know, kept as they were. */
  readonly unknownMembers?: Readonly<Record<string, unknown>>;
}

/** The layout of one topic on one cluster. */
export interface Layout {
  /** Advances by one with every mutation. */
  readonly epoch: number;
  /** The id that the next new segment takes; ids are never reused. */
  readonly nextSegmentId: number;
  readonly segments: ReadonlyMap<number, Segment>;
  /** The active segments in range order (legacy ones, whose ranges overlap, in id order). */
  readonly active: readonly Segment[];
  /** The initial boundaries where their count was not a power of two (C10); absent where there is no such grid. */
  readonly base?: readonly number[];
  readonly properties: Readonly<Record<string, string>>;
  /** The topic is being deleted: a flag of Pulsar's record. */
  readonly deleted: boolean;
  /** Members of the stored record that isthmus does not know, kept as they were. */
  readonly unknownMembers?: Readonly<Record<string, unknown>>;
}

/** True for a segment that came from a classic topic: its range proves nothing about its keys (E9). */
export function isLegacy(segment: Pick<Segment, 'legacyTopicName'>): boolean {
  return segment.legacyTopicName !== undefined && segment.legacyTopicName !== '';
}
