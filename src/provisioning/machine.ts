/**
 * The rule of the machine: look, decide, act, and look again. It starts a replicator once, and the next one only when the
 * one before has come to rest; what it creates it believes only when it has read it; after every look it sets the time of
 * the next one, so that whatever an operator repairs is found.
 */
import { IsthmusError, show } from '../errors.js';
import type { ProvisioningPhase } from './cells.js';
import { NO_COUNTS, oneMore } from './counters.js';
import { decideProvisioning, type ProvisioningDecision, type ReplicationScope } from './decide.js';
import type {
  Drawn,
  ProvisioningEffect,
  ProvisioningEvent,
  ProvisioningOptions,
  ProvisioningState,
  ProvisioningStep,
} from './events.js';
import type { TopicShape } from './shapes.js';

/** The share of a wait that is drawn: waits lie between 0.8 and 1 of their time, so that topics do not ask in step. */
const JITTER = 0.2;

/** A machine with its first look. Throws `invalidArgument` for times that are not above 0, or a longest below the first. */
export function startProvisioning(options: ProvisioningOptions): ProvisioningStep {
  const { policy, retryInitialMs = 100, retryMaxMs = 60_000, watchMs = 60_000 } = options;
  for (const [name, ms] of Object.entries({ retryInitialMs, retryMaxMs, watchMs })) {
    if (Number.isFinite(ms) && ms > 0) continue;
    throw new IsthmusError('invalidArgument', `${name} is ${show(ms)}: a time in milliseconds above 0`);
  }
  if (retryMaxMs < retryInitialMs) {
    throw new IsthmusError('invalidArgument', `retryMaxMs is ${retryMaxMs}, below retryInitialMs, ${retryInitialMs}`);
  }
  return look({
    options: { policy, retryInitialMs, retryMaxMs, watchMs },
    asking: 'nothing',
    lookId: 0,
    decidedLookId: 0,
    lookAgain: false,
    hasCreated: false,
    attempts: 0,
    isUpdated: false,
    replicator: { type: 'none' },
    hasEnded: false,
    counters: NO_COUNTS,
  });
}

/** One event. Answers to a look that is not the last one change nothing, and neither does anything after the end. */
export function stepProvisioning(state: ProvisioningState, event: ProvisioningEvent): ProvisioningStep {
  if (state.hasEnded) return event.type === 'stopped' ? atRest(state) : still(state);
  switch (event.type) {
    case 'tick':
      return state.asking === 'nothing' ? look(state) : still(state);
    case 'ask':
      return lookFresh(state);
    case 'updated':
      return lookFresh({ ...state, isUpdated: true });
    case 'looked':
      if (state.asking !== 'shapes' || event.lookId !== state.lookId) return still(state);
      return decide({ ...state, asking: 'nothing' }, event);
    case 'created':
      return state.asking === 'creation' ? look({ ...state, asking: 'nothing', hasCreated: true }) : still(state);
    case 'lost':
      return lose(state);
    case 'stopped': {
      const { state: rested } = atRest(state);
      return rested.asking === 'nothing' ? wait(rested, event) : still(rested);
    }
    case 'end':
      return stop({ ...state, hasEnded: true });
  }
}

/** When the machine is asked: the phase of its next decision. */
export function phaseOf(state: ProvisioningState): ProvisioningPhase {
  if (state.isUpdated) return 'updated';
  return state.replicator.type === 'running' ? 'running' : 'waiting';
}

/** Begins a look. */
function look(state: ProvisioningState): ProvisioningStep {
  const lookId = state.lookId + 1;
  return { state: { ...state, asking: 'shapes', lookId, lookAgain: false }, effects: [{ type: 'look', lookId }] };
}

/** A look that begins now, or as soon as what is under way has been answered. A creating call is followed by one anyway. */
function lookFresh(state: ProvisioningState): ProvisioningStep {
  if (state.asking === 'nothing') return look(state);
  return still(state.asking === 'shapes' ? { ...state, lookAgain: true } : state);
}

function decide(state: ProvisioningState, { lookId, local, remote, ...drawn }: Looked): ProvisioningStep {
  const phase = phaseOf(state);
  const decision = decideProvisioning({ local, remote, policy: state.options.policy, phase });
  const decided: ProvisioningState = {
    ...state,
    decision,
    decidedLookId: lookId,
    // A stop is an answer to what the operator asked for; a wait, a hold or a look begun before it was asked is none.
    isUpdated: state.isUpdated && (state.lookAgain || (decision.type !== 'replicate' && decision.type !== 'stop')),
    counters: { ...state.counters, decisions: oneMore(state.counters.decisions, decision.reason) },
  };
  const said = log(decided, phase, `${brief(local)} ${brief(remote)}`);
  const acted = act(said.state, decision, drawn);
  return { state: acted.state, effects: [...said.effects, ...acted.effects] };
}

type Looked = Extract<ProvisioningEvent, { readonly type: 'looked' }>;

function act(state: ProvisioningState, decision: ProvisioningDecision, drawn: Drawn): ProvisioningStep {
  const rested: ProvisioningState = { ...state, hasCreated: false };
  switch (decision.type) {
    case 'hold':
      return wait(rested, drawn);
    case 'wait':
    case 'stop':
      return then(stop(rested), (next) => wait(next, drawn));
    case 'replicate':
      return then(replicate(rested, decision.scope), (next) => wait(next, drawn));
    case 'create': {
      const { creation } = decision;
      // What makes more of a topic that is replicated already goes on beside it; all else finds no replicator.
      if (state.replicator.type !== 'none' && creation.type !== 'expandPartitions') {
        return then(stop(rested), (next) => wait(next, drawn));
      }
      if (state.hasCreated) return wait(rested, drawn);
      const creations = oneMore(state.counters.creations, creation.type);
      const creating: ProvisioningState = { ...rested, asking: 'creation', counters: { ...state.counters, creations } };
      return { state: creating, effects: [{ type: 'create', creation }] };
    }
  }
}

/** Starts a replicator if there is none; one that runs for another scope is stopped first. */
function replicate(state: ProvisioningState, scope: ReplicationScope): ProvisioningStep {
  const { replicator, counters } = state;
  if (replicator.type === 'stopping') return still(state);
  if (replicator.type === 'running') {
    // Only a replicator that has lived to the next look has shown that the topic is really there.
    return equalScopes(replicator.scope, scope) ? still({ ...state, attempts: 0 }) : stop(state);
  }
  return {
    state: { ...state, replicator: { type: 'running', scope }, counters: { ...counters, starts: counters.starts + 1 } },
    effects: [{ type: 'start', scope }],
  };
}

function stop(state: ProvisioningState): ProvisioningStep {
  const { replicator, counters } = state;
  if (replicator.type !== 'running') return still(state);
  return {
    state: { ...state, replicator: { type: 'stopping' }, counters: { ...counters, stops: counters.stops + 1 } },
    effects: [{ type: 'stop' }],
  };
}

/** The replicator says that its destination is gone: back to waiting, and no producer before the next look. */
function lose(state: ProvisioningState): ProvisioningStep {
  if (state.replicator.type !== 'running') return still(state);
  const decisions = oneMore(state.counters.decisions, 'topicLost');
  const message = 'the replicator found its destination gone';
  const decision: ProvisioningDecision = { type: 'wait', outcome: 'wait', reason: 'topicLost', message };
  const lost: ProvisioningState = { ...state, decision, counters: { ...state.counters, decisions } };
  return then(log(lost, 'running', ''), stop);
}

/** Sets the time of the next look, or looks at once if somebody needs it. */
function wait(state: ProvisioningState, { nowMs, random }: Drawn): ProvisioningStep {
  if (state.lookAgain) return look(state);
  const { retryInitialMs, retryMaxMs, watchMs } = state.options;
  const isWatching = state.replicator.type === 'running' && state.decision?.type === 'replicate';
  const ms = isWatching ? watchMs : Math.min(retryMaxMs, retryInitialMs * 2 ** Math.min(state.attempts, 50));
  const attempts = isWatching ? state.attempts : state.attempts + 1;
  const atMs = Math.ceil(nowMs + ms * (1 - JITTER * random));
  return { state: { ...state, attempts }, effects: [{ type: 'wake', atMs }] };
}

/** Logs what was decided, unless it says what was said last. */
function log(state: ProvisioningState, phase: ProvisioningPhase, shapes: string): ProvisioningStep {
  const { decision } = state;
  if (decision === undefined) return still(state);
  const { outcome, reason, message } = decision;
  const logged = `${outcome} ${reason} ${shapes}`;
  if (logged === state.logged) return still(state);
  return { state: { ...state, logged }, effects: [{ type: 'log', change: { outcome, reason, message, phase } }] };
}

/** What makes a shape news: its kind and its counts, not the words of a failure nor the segments of a layout. */
function brief(shape: TopicShape): string {
  if (shape.type === 'unknown') return shape.failure;
  return 'partitions' in shape ? `${shape.type} ${shape.partitions}` : shape.type;
}

function equalScopes(a: ReplicationScope, b: ReplicationScope): boolean {
  if (a.type !== 'partitioned' || b.type !== 'partitioned') return a.type === b.type;
  return a.partitions.length === b.partitions.length && a.partitions.every((index, i) => index === b.partitions[i]);
}

function atRest(state: ProvisioningState): ProvisioningStep {
  return still({ ...state, replicator: { type: 'none' } });
}

function still(state: ProvisioningState): ProvisioningStep {
  return { state, effects: [] };
}

function then(first: ProvisioningStep, next: (state: ProvisioningState) => ProvisioningStep): ProvisioningStep {
  const { state, effects } = next(first.state);
  return { state, effects: [...first.effects, ...effects] as readonly ProvisioningEffect[] };
}
