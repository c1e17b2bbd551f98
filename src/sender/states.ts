/** The states of a remote child, worst first. A cursor shows the worst that stands in its way, a link its worst partition. */

export type SenderState =
  | 'remote_missing'
  | 'credential_unreadable'
  | 'node_insecure'
  | 'destination_refused'
  | 'target_has_remote_children'
  | 'target_replaced'
  | 'auth_failed'
  | 'forbidden'
  | 'target_missing'
  | 'no_batch_produce'
  | 'redirect_refused'
  | 'tls_failed'
  | 'rejected_record'
  | 'record_too_large'
  | 'unavailable'
  | 'throttled'
  | 'unknown'
  | 'paused'
  | 'running';

/** Each with whether somebody has to act before it ends. */
const STATES: readonly (readonly [SenderState, boolean])[] = [
  ['remote_missing', true],
  ['credential_unreadable', true],
  ['node_insecure', true],
  ['destination_refused', true],
  ['target_has_remote_children', true],
  ['target_replaced', true],
  ['auth_failed', true],
  ['forbidden', true],
  ['target_missing', true],
  ['no_batch_produce', true],
  ['redirect_refused', true],
  ['tls_failed', true],
  ['rejected_record', true],
  ['record_too_large', true],
  ['unavailable', false],
  ['throttled', false],
  ['unknown', false],
  ['paused', false],
  ['running', false],
];

/** A state that holds a cursor. */
export type StalledState = Exclude<SenderState, 'unknown' | 'paused' | 'running'>;

/** Why a node cannot use a remote at all. */
export type LookupState = Extract<SenderState, 'remote_missing' | 'credential_unreadable' | 'node_insecure'>;

/** All states, worst first. */
export const SENDER_STATES: readonly SenderState[] = STATES.map(([state]) => state);

const RANKS: ReadonlyMap<string, number> = new Map(STATES.map(([state], rank) => [state, rank]));
const TO_FIX: ReadonlySet<string> = new Set(STATES.filter(([, needsFix]) => needsFix).map(([state]) => state));

/** 0 is the worst. A state of a later release ranks with `unknown`. */
export function rankOf(state: string): number {
  return RANKS.get(state) ?? (RANKS.get('unknown') as number);
}

/** Somebody has to act before it ends. */
export function needsFix(state: SenderState): boolean {
  return TO_FIX.has(state);
}

/** The worst of some states; `running` when there is none. */
export function worstState(states: Iterable<SenderState | undefined>): SenderState {
  let worst: SenderState = 'running';
  for (const state of states) if (state !== undefined && rankOf(state) < rankOf(worst)) worst = state;
  return worst;
}

/** Neither moving nor paused: this is told as a stall. */
export function isStalled(state: SenderState): state is StalledState {
  return rankOf(state) < rankOf('unknown');
}

/** What an answer's class shows as: itself where it is a state, else `unavailable`. */
export function stateOfClass(name: string): SenderState {
  return isSenderState(name) ? name : 'unavailable';
}

function isSenderState(name: string): name is SenderState {
  return RANKS.has(name);
}
