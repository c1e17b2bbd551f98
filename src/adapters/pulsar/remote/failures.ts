/** What a broker's refusals mean to a replicator: its error codes as the failure classes of the port. */
import type { Reasoned, RemoteFailure, SendResult } from '../../../ports/index.js';
import { type Closed, type Refusal, SERVER_ERROR, type SendError } from '../protocol/index.js';

/** Why a producer, or the pin, cannot be had on a segment. */
export type OpenFailure = Reasoned<'sealed'> | RemoteFailure;

/** Brokers have one code for a name that is taken and for a limit that is reached: the words tell. */
const IS_LIMIT = /reached max (producers|consumers) limit/i;

export function openFailure(refusal: Refusal): OpenFailure {
  if (refusal.type === 'unreachable') return { type: 'unavailable', reason: refusal.reason };
  const { code, message } = refusal;
  return { type: classOf(code, message) ?? 'unavailable', reason: textOf(refusal) };
}

/** Somebody else has the exclusive subscription, which is another thing than a topic that takes no more consumers. */
export function isTaken(refusal: Refusal): boolean {
  return refusal.type === 'refused' && refusal.code === SERVER_ERROR.consumerBusy && !IS_LIMIT.test(refusal.message);
}

/** The result of a send that was answered with an error. */
export function sendFailure(error: SendError): SendResult {
  const reason = textOf(error);
  switch (error.code) {
    case SERVER_ERROR.checksum:
    // By its content, such as a size or a delay that the topic's policies do not take.
    case SERVER_ERROR.notAllowed:
      return { type: 'rejected', reason };
    case SERVER_ERROR.serviceNotReady:
      return { type: 'unavailable', reason };
    default:
      return { type: classOf(error.code, error.message) ?? 'ambiguous', reason };
  }
}

function classOf(code: number, message: string): OpenFailure['type'] | undefined {
  switch (code) {
    case SERVER_ERROR.topicTerminated:
      return 'sealed';
    case SERVER_ERROR.quotaHold:
    case SERVER_ERROR.quotaException:
    case SERVER_ERROR.tooManyRequests:
      return 'throttled';
    case SERVER_ERROR.authentication:
    case SERVER_ERROR.authorization:
      return 'unauthorized';
    case SERVER_ERROR.producerBusy:
      return IS_LIMIT.test(message) ? 'throttled' : 'fenced';
    case SERVER_ERROR.producerFenced:
      return 'fenced';
    case SERVER_ERROR.consumerBusy:
      return IS_LIMIT.test(message) ? 'throttled' : undefined;
    default:
      return undefined;
  }
}

/** A refusal in the broker's words, for operators. */
export function refusalText(refusal: Refusal): string {
  return refusal.type === 'unreachable' ? refusal.reason : textOf(refusal);
}

/** Why something has ended that was open, for operators. */
export function closedText(closed: Closed): string {
  switch (closed.type) {
    case 'closedByBroker':
      return 'closed by the broker';
    case 'refused':
      return textOf(closed);
    case 'disconnected':
      return `the connection has ended (${closed.cause}): ${closed.reason}`;
  }
}

function textOf({ code, message }: { readonly code: number; readonly message: string }): string {
  return `${message} (error ${code})`;
}
