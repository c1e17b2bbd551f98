/**
 * The messages on the wire. A call is a POST of `{ cluster, requests: [{ topic, state }] }`; its answer is 200 with
 * `{ cluster, results: [{ topic, state?, error? }] }`, in the order of the requests. An answer other than 200 is
 * `{ cluster, error: { code, message }, state? }`: it speaks for the call as a whole, with a code of `CallErrorCode`,
 * or, where the call was about a single topic, for that topic, with a code of `ExchangeErrorCode` (C17).
 */
import { type ExchangeRequest, type ExchangeResult, formatPeerState } from '../../convergence/index.js';

export const CONTENT_TYPE = 'application/json';

/** Why a call as a whole was refused, and HTTP's word for it. Its keys also tell isthmus from another server. */
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

/** True for a code that isthmus gives to a call as a whole. */
export function isCallErrorCode(value: unknown): value is CallErrorCode {
  return typeof value === 'string' && Object.hasOwn(CALL_ERRORS, value);
}

export function formatCall(cluster: string, requests: readonly ExchangeRequest[]): string {
  return JSON.stringify({
    cluster,
    requests: requests.map(({ topic, state }) => ({ topic, state: formatPeerState(state) })),
  });
}

export function formatResult({ topic, state, error }: ExchangeResult): object {
  return {
    topic,
    ...(state && { state: formatPeerState(state) }),
    ...(error && { error: { code: error.code, message: error.message } }),
  };
}
