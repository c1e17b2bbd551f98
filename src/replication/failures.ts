/**
 * What a replicator does when a send or an opening fails: one row for each class ("Failure classes of a send"). The
 * classes are those of the ports, and an adapter's whole judgement is which of them it names.
 */
import type { RemoteFailure, SendResult } from '../ports/index.js';

/** The classes of failure of a send or of an opening. */
export type FailureClass = Exclude<SendResult['type'], 'stored' | 'duplicate' | 'partial' | 'gap'>;

/** What follows for the lane. */
export type FailureAnswer =
  /** Wait for the layout that shows the seal, find out what was stored, and plan the rest anew. */
  | 'replan'
  /** Wait a little longer each time, open the producer anew, and send from the first unsettled send. */
  | 'reopen'
  /** Hold the entry (R5). */
  | 'hold'
  /** Stop with this reason, and try again now and then: an operator has to act. */
  | 'stop';

export interface FailureRow {
  /** It is not known whether the send was stored. */
  readonly doubt: boolean;
  readonly answer: FailureAnswer;
}

export const FAILURES: Readonly<Record<FailureClass, FailureRow>> = Object.freeze({
  sealed: { doubt: false, answer: 'replan' },
  ambiguous: { doubt: true, answer: 'reopen' },
  unavailable: { doubt: false, answer: 'reopen' },
  // Polled until it is granted: an opening is the cheapest question there is.
  throttled: { doubt: false, answer: 'reopen' },
  // A taken name is polled; that another owner has gone on for good is told by the cursor store (R15).
  fenced: { doubt: true, answer: 'reopen' },
  unauthorized: { doubt: false, answer: 'stop' },
  unsupported: { doubt: false, answer: 'stop' },
  rejected: { doubt: false, answer: 'hold' },
  tooLarge: { doubt: false, answer: 'hold' },
});

/** A failure with what the remote said of it. */
export type Failure = RemoteFailure | Extract<SendResult, { readonly reason: string }>;
