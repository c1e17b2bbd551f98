/**
 * What makes segments real. A host takes one of two forms, told by `supports.atomicLayoutChange`: one whose record
 * isthmus writes, and which creates, seals and deletes the segments behind it; and one that has only operations of its
 * own, each of which changes its record by itself, such as an unmodified Pulsar broker.
 */
import type { HostCapabilities, Layout, Operation, Segment } from '../layout/index.js';
import type { LayoutReader, LayoutStore } from './layout-store.js';

/** A segment as it exists behind the record. */
export interface HostedSegment {
  readonly segmentId: number;
  readonly sealed: boolean;
}

/** A host that lets isthmus write the layout. Every call may be repeated after a crash and then changes nothing more. */
export interface AtomicSegmentHost {
  readonly supports: { readonly atomicLayoutChange: true };
  /** Every segment that exists, in the record or not. */
  list(): Promise<readonly HostedSegment[]>;
  /** Creates segments with all their cursors, before anybody is told of them. One that exists already stays. */
  create(segments: readonly Segment[]): Promise<void>;
  /** Ends writes for good. One that is sealed already stays so. */
  seal(segmentIds: readonly number[]): Promise<void>;
  /** Removes segments that are in no record. One that does not exist is no error. */
  delete(segmentIds: readonly number[]): Promise<void>;
}

/** How one operation of a host ended. */
export type OperationResult =
  /** Done: the layout as it is now. */
  | { readonly type: 'performed'; readonly layout: Layout }
  /** Refused, or not known to be done: read the layout and decide again. */
  | { readonly type: 'failed'; readonly reason: string };

/** A host that only performs operations of its own (C22). */
export interface PlanningSegmentHost {
  readonly supports: { readonly atomicLayoutChange: false } & HostCapabilities;
  /** One split, merge or rebucket by segment id. Ids are never reused: that is the compare-and-set. */
  perform(operation: Operation): Promise<OperationResult>;
}

/** The two forms, each with the store it needs. */
export type LayoutHost =
  | { readonly store: LayoutStore; readonly segments: AtomicSegmentHost }
  | { readonly store: LayoutReader; readonly segments: PlanningSegmentHost };
