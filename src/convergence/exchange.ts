/** The messages of the exchange: one cluster's state to another, and what comes back (C15, C17). */
import type { PeerState } from './peer-state.js';

/** One topic's state on its way to a peer. */
export interface ExchangeRequest {
  readonly topic: string;
  readonly state: PeerState;
}

/**
 * - `wrongTerm`: the push names another leader of the receiver; nothing was folded, the state is that of the present one (C18).
 * - `foldLimit`: the sender's boundaries do not fit the receiver's limit (C20); the state was remembered.
 * - `notMember`: the sender is not in the topic's replication set (C19).
 * - `unknownTopic`: the receiver has no such topic, for now: that peer is unheard, not unsupported (C19).
 * - `notLeader`: this process does not lead the topic, and does not know who does.
 * - `invalidState`: the state breaks a rule; the message names the field (C21).
 * - `failed`: the receiver could not commit what it folded; to be tried again.
 */
export type ExchangeErrorCode =
  | 'wrongTerm'
  | 'foldLimit'
  | 'notMember'
  | 'unknownTopic'
  | 'notLeader'
  | 'invalidState'
  | 'failed';

/** The answer for one topic: the receiver's state after the fold, or an error that may carry it. */
export interface ExchangeResult {
  readonly topic: string;
  /** Absent where the receiver has none to show. */
  readonly state?: PeerState;
  readonly error?: { readonly code: ExchangeErrorCode; readonly message: string };
}
