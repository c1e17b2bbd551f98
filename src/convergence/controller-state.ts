/**
 * The controller of one topic on one cluster, as a value: its state, what happens to it (events) and what it wants
 * done (effects). `step` in controller.ts is the rule that leads from one to the next. Time and randomness come in as
 * fields of events; everything that can fail comes back as an event.
 */
import type { HostCapabilities, Layout, Operation, Shape } from '../layout/index.js';
import type { HashRange } from '../ring/index.js';
import type { ExchangeResult } from './exchange.js';
import type { ShapeDifference } from './next-shape.js';
import type { Caps, ColdMarks, PeerState } from './peer-state.js';
import type { PolicyDecision } from './policy.js';

/** How a controller behaves. Times in milliseconds. */
export interface ControllerOptions {
  /** The own cluster's name. */
  readonly cluster: string;
  readonly caps: Caps;
  /** The most cells that peers' demands may lead to; default the sum of `maxSegments` over the clusters heard (C20). */
  readonly foldLimit?: number;
  /** The most buckets of a cell that peers' demands may lead to: the host's limit; default 1,024. */
  readonly bucketLimit?: number;
  /** What the host's layout operations can do; absent when it applies a layout in one mutation (C22). */
  readonly operations?: HostCapabilities;
  /** How long an unheard peer holds back splits and rebuckets (C18); default 30,000. */
  readonly peerSilenceGraceMs?: number;
  /** How often the state is pushed regardless of change (C16); default 60,000. */
  readonly antiEntropyMs?: number;
  /** The first retry of a push comes within this time, later ones within twice the last (C16); default 200. */
  readonly retryInitialMs?: number;
  /** The longest wait before a retry; default 30,000. */
  readonly retryMaxMs?: number;
}

export type ResolvedControllerOptions = ControllerOptions &
  Required<
    Pick<ControllerOptions, 'peerSilenceGraceMs' | 'antiEntropyMs' | 'retryInitialMs' | 'retryMaxMs' | 'bucketLimit'>
  >;

/** What a controller knows of one peer. Nothing of it is persisted (C18). */
export interface PeerRecord {
  readonly cluster: string;
  /** When it became a member of the replication set, or this leader began. */
  readonly sinceMs: number;
  /** The latest state; undefined while it is unheard. */
  readonly state?: PeerState;
  readonly heardAtMs?: number;
  /** The epoch of the own layout that it last acknowledged. */
  readonly ackedEpoch?: number;
  /** It has no exchange endpoint (C19). */
  readonly unsupported: boolean;
  /** The push that waits for its answer; one at a time (C16). */
  readonly inFlight?: { readonly pushId: number; readonly epoch: number };
  /** Something has changed since the last push was built. */
  readonly dirty: boolean;
  /** Pushes that failed in a row. */
  readonly attempts: number;
  /** When a failed push is tried again. */
  readonly retryAtMs?: number;
  /** The last push was answered with an error: that the peer can be reached is no reason to try again at once. */
  readonly refused: boolean;
  /** Why the last push failed. */
  readonly lastError?: string;
  /** Its demands do not fit the fold limit (C20). */
  readonly leftOut: boolean;
  /** A state of it with a lower epoch was ignored (C14). */
  readonly wentBack: boolean;
  /** Since when its shape differs from the own one. */
  readonly divergedSinceMs?: number;
  /** How long the last difference lasted. */
  readonly lastLagMs?: number;
}

export interface ControllerState {
  readonly options: ResolvedControllerOptions;
  readonly term?: number;
  readonly layout: Layout;
  /** The shape that the host is being brought to, step by step (C22); undefined when the layout is the statement. */
  readonly goal?: Shape;
  /**
   * The boundaries that the policy or the operator wants added, until the stated shape has them. Only those: a whole
   * shape would bring back what was merged meanwhile, and the lists that a host passes through on its way.
   */
  readonly wish?: ShapeDifference;
  /** The operation last asked of a host without atomic changes: when its effect is seen, it is nobody else's (C22). */
  readonly performing?: Operation;
  readonly revision: number;
  readonly nextPushId: number;
  readonly peers: ReadonlyMap<string, PeerRecord>;
  /** The policy's marks; undefined until it has been evaluated once (C18). */
  readonly policyMarks?: ColdMarks;
  /** Marks made by hand, which last until they take effect, are withdrawn, or fall (C12). */
  readonly manualMarks: ColdMarks;
  /** A change of the layout is under way; one at a time. */
  readonly isChanging: boolean;
  /** The last layout that was seen while a change was under way. */
  readonly seenLayout?: Layout;
  /** Failures in a row of layout changes, and when the next is tried. */
  readonly changeAttempts: number;
  readonly changeRetryAtMs?: number;
  /** Pushes of peers that are answered when the change under way is done (C15). */
  readonly waiting: readonly { readonly requestId: number; readonly peer: string }[];
  readonly antiEntropyAtMs: number;
  /** The timer that is set. */
  readonly wakeAtMs?: number;
  readonly lastSplitAtMs?: number;
  readonly lastMergeAtMs?: number;
  readonly lastRebucketAtMs?: number;
}

/** A change that somebody asks for by hand (C12). */
export type ManualOperation =
  | { readonly type: 'split'; readonly segmentId: number; readonly at?: readonly number[] }
  /** Marks the boundary cold: it takes effect once every cluster has let it go. */
  | { readonly type: 'merge'; readonly boundary: number }
  /** Adds the boundaries that are new at once, and marks those cold that are missing from the list. */
  | { readonly type: 'rebucket'; readonly segmentId: number; readonly splits: readonly number[] }
  /** Takes back manual marks: of one segment boundary, or of the bucket boundaries of a range. */
  | { readonly type: 'withdraw'; readonly boundary: number }
  | { readonly type: 'withdraw'; readonly range: HashRange };

/** What happens. `random` is in [0, 1) and drawn by the driver. */
export type ControllerEvent =
  | { readonly type: 'tick'; readonly nowMs: number }
  /** The layout as the store has it now: after a watch or a reload. */
  | { readonly type: 'layout'; readonly layout: Layout; readonly nowMs: number; readonly reloaded?: boolean }
  | { readonly type: 'committed'; readonly layout: Layout; readonly nowMs: number }
  /** Somebody else's commit came first; the layout is theirs. */
  | { readonly type: 'conflict'; readonly layout: Layout; readonly nowMs: number }
  | {
      readonly type: 'changeFailed';
      readonly reason: string;
      readonly layout: Layout;
      readonly nowMs: number;
      readonly random: number;
    }
  /** A peer pushes its state; answered with the same `requestId`. */
  | {
      readonly type: 'pushed';
      readonly requestId: number;
      readonly from: string;
      readonly state: PeerState;
      readonly nowMs: number;
    }
  | {
      readonly type: 'answered';
      readonly peer: string;
      readonly pushId: number;
      readonly result: Omit<ExchangeResult, 'topic'>;
      readonly nowMs: number;
      readonly random: number;
    }
  | {
      readonly type: 'pushFailed';
      readonly peer: string;
      readonly pushId: number;
      readonly reason: string;
      readonly unsupported: boolean;
      readonly nowMs: number;
      readonly random: number;
    }
  | { readonly type: 'policy'; readonly decision: PolicyDecision; readonly nowMs: number }
  | { readonly type: 'manual'; readonly operation: ManualOperation; readonly nowMs: number }
  /** The replication set without the own cluster; empty is a legal off. */
  | { readonly type: 'members'; readonly members: readonly string[]; readonly nowMs: number };

/** What the driver is to do. */
export type ControllerEffect =
  /** Compare-and-set; answered by `committed`, `conflict` or `changeFailed`. */
  | { readonly type: 'commit'; readonly expectedEpoch: number; readonly layout: Layout }
  /** One operation of a host without atomic changes; answered by `committed` or `changeFailed`. */
  | { readonly type: 'perform'; readonly operation: Operation }
  | { readonly type: 'push'; readonly peer: string; readonly pushId: number; readonly state: PeerState }
  | { readonly type: 'answer'; readonly requestId: number; readonly result: Omit<ExchangeResult, 'topic'> }
  /** Read the layout again; answered by `layout` with `reloaded`. */
  | { readonly type: 'reload' }
  /** Send a `tick` at this time; replaces the timer that was set. */
  | { readonly type: 'wake'; readonly atMs: number }
  /** Something that an operator may want to know. */
  | { readonly type: 'report'; readonly report: ControllerReport };

export type ControllerReport =
  /** A boundary stopped being one between siblings, and its manual mark fell with it (C11). */
  | { readonly type: 'markDropped'; readonly boundaries: readonly number[] }
  /** The policy wanted more than the effective caps allow (C20). */
  | { readonly type: 'capped'; readonly action: 'split' | 'rebucket' }
  /** The policy's action waits for peers that were not heard (C18). */
  | { readonly type: 'deferred'; readonly action: 'split' | 'rebucket'; readonly unheard: readonly string[] }
  /** Demands of a peer do not fit the fold limit (C20). */
  | { readonly type: 'leftOut'; readonly peer: string }
  /** A peer's epoch went back and its state was ignored (C14). */
  | { readonly type: 'wentBack'; readonly peer: string; readonly epoch: number };

export interface ControllerStep {
  readonly state: ControllerState;
  readonly effects: readonly ControllerEffect[];
}
