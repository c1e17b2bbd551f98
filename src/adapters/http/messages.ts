/**
 * The messages on the wire. A call is a POST of `{ cluster, requests: [{ topic, state }] }`; its answer is 200 with
 * `{ cluster, results: [{ topic, state?, error? }] }`, in the order of the requests. An answer other than 200 is
 * `{ cluster, error: { code, message }, state? }`: it speaks for the call as a whole, with a code of `CallErrorCode`,
 * or, where the call was about a single topic, for that topic, with a code of `ExchangeErrorCode` (C17).
 */
import { type ExchangeRequest, type ExchangeResult, formatPeerState } from '../../convergence/index.js';

export const CONTENT_TYPE = 'application/json';

/** Why a call as a whole was refused. A record, because its keys tell an answer of isthmus from that of another server. */
export const CALL_ERRORS = {
  unauthorized: 401,
  forbidden: 403,
  methodNotAllowed: 405,
  tooLarge: 413,
  unsupportedMediaType: 415,
  invalidRequest: 400,
  internal: 500,
} as const;

export type CallErrorCode = keyof typeof CALL_ERRORS;

export function formatCall(cluster: string, requests: readonly ExchangeRequest[]): string {
  return JSON.stringify({
    cluster,
    requests: requests.map(({ topic, state }) => ({ topic, state: formatPeerState(state) })),
  });
}

export function formatResult({ topic, state, error }: ExchangeResult): object {
  return { topic, ...(state && { state: formatPeerState(state) }), ...(error && { error }) };
}
