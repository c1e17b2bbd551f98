/**
 * The machine of one topic towards one remote, as a value: its state, what happens to it and what it wants done. Time and
 * randomness come in with the events; every effect but `wake` and `log` comes back as an event.
 */
import type { ProvisioningPhase } from './cells.js';
import type { ProvisioningCounters } from './counters.js';
import type { Creation, ProvisioningDecision, Reasoning, ReplicationScope } from './decide.js';
import type { ProvisioningPolicy } from './policy.js';
import type { TopicShape } from './shapes.js';

/** How a machine behaves. Times in milliseconds. */
export interface ProvisioningOptions {
  readonly policy: ProvisioningPolicy;
  /** The first wait before it is looked again, default 100; doubled every time ... */
  readonly retryInitialMs?: number | undefined;
  /** ... up to this; default 60,000. */
  readonly retryMaxMs?: number | undefined;
  /** How often both shapes are looked at while a replicator runs; default 60,000. */
  readonly watchMs?: number | undefined;
}

export interface ProvisioningState {
  readonly options: {
    readonly [option in keyof ProvisioningOptions]-?: Exclude<ProvisioningOptions[option], undefined>;
  };
  /** What is under way at the cluster; one thing at a time. */
  readonly asking: 'nothing' | 'shapes' | 'creation';
  /** The last look that was begun, from 1. */
  readonly lookId: number;
  /** The last look that was decided on; 0 before the first. */
  readonly decidedLookId: number;
  /** Somebody needs a look that is begun later than the one under way. */
  readonly lookAgain: boolean;
  /** The look under way follows a creating call: another one has to wait. */
  readonly hasCreated: boolean;
  /** Looks in a row that led nowhere. */
  readonly attempts: number;
  /** An operator has expanded the local topic, and the remote has not been decided on since. */
  readonly isUpdated: boolean;
  readonly replicator:
    | { readonly type: 'none' | 'stopping' }
    | { readonly type: 'running'; readonly scope: ReplicationScope };
  /** Undefined before the first look. */
  readonly decision?: ProvisioningDecision;
  /** What was logged last. */
  readonly logged?: string;
  readonly hasEnded: boolean;
  readonly counters: ProvisioningCounters;
}

/** When something is told, and a number in [0, 1) that the driver drew for the next wait. */
export interface Drawn {
  readonly nowMs: number;
  readonly random: number;
}

export type ProvisioningEvent =
  /** The time that was set has come. */
  | { readonly type: 'tick' }
  /** Somebody needs a look that begins now or later: before a producer is opened. */
  | { readonly type: 'ask' }
  /** An operator has expanded the local topic (update-partitioned-topic). */
  | { readonly type: 'updated' }
  /** Both shapes, read for this look. */
  | ({
      readonly type: 'looked';
      readonly lookId: number;
      readonly local: TopicShape;
      readonly remote: TopicShape;
    } & Drawn)
  /** A creating call has ended, well or not: only another look tells what came of it. */
  | { readonly type: 'created' }
  /** The replicator has found that its destination is gone. */
  | { readonly type: 'lost' }
  /** The replicator has come to rest, or could not be started. */
  | ({ readonly type: 'stopped' } & Drawn)
  /** No more of this topic. */
  | { readonly type: 'end' };

export type ProvisioningEffect =
  /** Read both shapes, without a call that can create. */
  | { readonly type: 'look'; readonly lookId: number }
  /** Make one creating call at the remote. */
  | { readonly type: 'create'; readonly creation: Creation }
  /** Start a new replicator; the one before has come to rest. */
  | { readonly type: 'start'; readonly scope: ReplicationScope }
  | { readonly type: 'stop' }
  /** Send a tick at this time, and none at the time that was set before. */
  | { readonly type: 'wake'; readonly atMs: number }
  /** Say so, once for each change. */
  | { readonly type: 'log'; readonly change: ProvisioningChange };

/** A change of what is known or done, for a log. */
export interface ProvisioningChange extends Reasoning {
  readonly phase: ProvisioningPhase;
}

export interface ProvisioningStep {
  readonly state: ProvisioningState;
  readonly effects: readonly ProvisioningEffect[];
}
