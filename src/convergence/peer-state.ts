/**
 * What one cluster tells the others about a topic (PIP-495, "Layout convergence protocol"): its shape, what it would
 * merge, and its caps. States are ordered, so that a late or repeated one never replaces what came after it (C14).
 */
import type { Shape } from '../layout/index.js';
import type { HashRange } from '../ring/index.js';

/** The version of the exchange that this package speaks. */
export const PROTOCOL_VERSION = 1;

/**
 * Boundaries that a cluster would let go: soft state, derived anew with every evaluation of its policy. Only sibling
 * boundaries of the state's own shape can be marked on the segment ring (C11); on the bucket ring any can.
 */
export interface ColdMarks {
  /** Ascending, in 1..0xFFFF. */
  readonly segments: readonly number[];
  /** Bucket boundaries by range of the segment ring; ranges ascend and do not overlap. */
  readonly buckets: readonly BucketMarks[];
}

/** Bucket boundaries that hold, or are cold, on all of a range of the segment ring. */
export interface BucketMarks {
  readonly range: HashRange;
  /** Ascending, in 1..0xFFFF. */
  readonly boundaries: readonly number[];
}

/** No mark at all: what a host without a policy states. Not the same as no statement (C18). */
export const NO_MARKS: ColdMarks = Object.freeze({ segments: [], buckets: [] });

/** How far a cluster can follow. */
export interface Caps {
  /** Active segments, at least 1. */
  readonly maxSegments: number;
  /** 1..65536. */
  readonly maxEntryBucketsPerSegment: number;
}

/** One cluster's state of one topic. Numbers are safe integers, times milliseconds since the epoch. */
export interface PeerState {
  readonly cluster: string;
  /** The controller's election term: grows with each leader and outlives the topic (C14). */
  readonly term?: number;
  /** The epoch of the layout. */
  readonly epoch: number;
  /** Counts the states that this leader has built. */
  readonly revision: number;
  /** The shape the cluster has, or while it carries out a plan, the one it is going to (C22). */
  readonly shape: Shape;
  /** The base grid as far as the cluster knows it (C10). */
  readonly base?: readonly number[];
  /** Absent: the policy has not been evaluated yet, which is not the same as hot (C18). */
  readonly coldMarks?: ColdMarks;
  readonly caps: Caps;
  /** The cluster can only make equal-width buckets (C22). */
  readonly equalWidth?: boolean;
  readonly protocolVersion: number;
  readonly sentAtMs: number;
  /** The receiving cluster's term as last known; absent when none is known (C18). */
  readonly receiverTerm?: number;
}

/**
 * True when `candidate` is to replace `known` (C14): the order is (term, epoch, revision), strictly. Of states without
 * a term a lower epoch is not newer and an equal one replaces; a state with a term beats one without.
 */
export function isNewer(candidate: PeerState, known: PeerState | undefined): boolean {
  if (known === undefined) return true;
  if (candidate.term === undefined || known.term === undefined) {
    return candidate.term === known.term ? candidate.epoch >= known.epoch : candidate.term !== undefined;
  }
  if (candidate.term !== known.term) return candidate.term > known.term;
  return candidate.epoch === known.epoch ? candidate.revision > known.revision : candidate.epoch > known.epoch;
}
