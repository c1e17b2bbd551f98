/**
 * The port of the local policy: what a cluster would do about its own load. It decides on a view and changes
 * nothing; splits and rebuckets take effect at once within the effective caps, merges become cold marks.
 */
import type { Layout } from '../layout/index.js';
import type { Caps, ColdMarks } from './peer-state.js';

/** The load of one segment, averaged by the host. Rates are per second. */
export interface SegmentLoad {
  readonly msgRateIn: number;
  readonly bytesRateIn: number;
  readonly msgRateOut: number;
  readonly bytesRateOut: number;
  /** When the load last changed by more than the host's reporting threshold: the clock of the merge window. */
  readonly changedAtMs: number;
}

/** What a policy sees. */
export interface PolicyView {
  readonly layout: Layout;
  /** By segment id; a segment without an entry has not reported: no load for a split, never cold for a merge. */
  readonly loads: ReadonlyMap<number, SegmentLoad>;
  /** Consumers connected, the most over the topic's subscriptions. */
  readonly consumers: number;
  /**
   * Those of them that share a segment by its buckets, again the most over the subscriptions; all when absent. A
   * subscription whose members read whole segments asks for segments, never for buckets (PIP-486).
   */
  readonly streamConsumers?: number | undefined;
  /** The effective caps (C20). */
  readonly caps: Caps;
  readonly nowMs: number;
  /** When the last change of each kind was decided here; undefined when there was none. */
  readonly lastSplitAtMs?: number | undefined;
  readonly lastMergeAtMs?: number | undefined;
  readonly lastRebucketAtMs?: number | undefined;
  /**
   * The marks that this policy's last evaluation stated, less what took effect or fell (C11); manual ones are not among
   * them. A cooldown gates new marks only (C13), and this tells which are not new. Absent: none.
   */
  readonly standingMarks?: ColdMarks | undefined;
}

/** What a policy wants done now: at most one action, and always all of its cold marks. */
export interface PolicyDecision {
  readonly action?:
    | { readonly type: 'split'; readonly segmentId: number; readonly reason: string }
    | {
        readonly type: 'rebucket';
        readonly segmentIds: readonly number[];
        readonly buckets: number;
        readonly reason: string;
      }
    | undefined;
  /** Every boundary that the policy holds for cold now; those of earlier evaluations that are missing are withdrawn. */
  readonly coldMarks: ColdMarks;
}

/** A local policy. Pure: the same view gives the same decision. */
export interface LocalPolicy {
  decide(view: PolicyView): PolicyDecision;
}
