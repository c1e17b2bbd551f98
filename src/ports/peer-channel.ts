/** How a cluster's controller reaches its peers', and how it is reached. */
import type { ExchangeRequest, ExchangeResult } from '../convergence/index.js';

/** How a call to a peer ended. */
export type ExchangeReply =
  /** One result for each topic asked, in the order of the requests (C17). */
  | { readonly type: 'answered'; readonly results: readonly ExchangeResult[] }
  /** The peer has no exchange endpoint at all (C19): it is reported, and tried again on the anti-entropy timer. */
  | { readonly type: 'unsupported'; readonly reason: string }
  /** It could not be reached, or refused the call as a whole; to be tried again. */
  | { readonly type: 'failed'; readonly reason: string };

/** Calls to peers. A failure is a value; a rejection is a defect, except when the signal aborts. */
export interface PeerChannel {
  exchange(peer: string, requests: readonly ExchangeRequest[], signal: AbortSignal): Promise<ExchangeReply>;
}

/** What answers calls of peers. `from` is the cluster whose credential the call carried. */
export interface ExchangeHandler {
  exchange(from: string, requests: readonly ExchangeRequest[]): Promise<readonly ExchangeResult[]>;
}
