/**
 * The client's half of the peer exchange, over fetch. Whatever a peer or the network does becomes a reply: `answered`,
 * `unsupported` or `failed`. Time, size and redirects are bounded, and a token goes nowhere but into the
 * Authorization header of the peer it belongs to.
 */
import {
  type ExchangeRequest,
  type ExchangeResult,
  type RefusedTopic,
  readExchangeResults,
} from '../../convergence/index.js';
import { IsthmusError, show } from '../../errors.js';
import type { ExchangeReply, PeerChannel } from '../../ports/index.js';
import { checkToken, redact } from './bearer.js';
import { parseJson, readLimited } from './body.js';
import { CALL_ERRORS, CONTENT_TYPE, formatCall } from './messages.js';
import { type PeerAddress, redirectTarget } from './redirects.js';

/** One peer's exchange endpoint. */
export interface HttpPeer {
  /** `http:` or `https:`, with the path at which the peer's handler is mounted. */
  readonly url: string;
  /** The bearer token that the peer knows as this cluster's. */
  readonly token: string;
  /**
   * Hosts, as `name` or `name:port`, to which the peer may redirect beside the one of its URL: those of its leaders.
   * The token goes to them too.
   */
  readonly allowedHosts?: readonly string[];
}

export interface HttpPeerChannelOptions {
  /** The name of the calling cluster. */
  readonly cluster: string;
  readonly peers: Readonly<Record<string, HttpPeer>>;
  /** How long a call may take, redirects and answer included, in milliseconds; default 10,000. */
  readonly timeoutMs?: number;
  /** The largest answer that is read, in bytes, after decompression; default 4 MiB. */
  readonly maxResponseBytes?: number;
  /** How many redirects a call follows; default 3. */
  readonly maxRedirects?: number;
  readonly fetch?: typeof globalThis.fetch;
}

interface Peer extends PeerAddress {
  readonly name: string;
  readonly token: string;
}

/** The longest message of a peer that is passed on, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 1000;

/**
 * Makes the channel. An answer for one topic that breaks a rule, or is that of another cluster, is a result `failed`
 * of that topic alone (C17). Throws `invalidArgument` for an impossible URL, token or limit.
 */
export function createHttpPeerChannel(options: HttpPeerChannelOptions): PeerChannel {
  const { cluster, timeoutMs = 10_000, maxResponseBytes = 4 * 1024 * 1024, maxRedirects = 3 } = options;
  for (const [name, limit] of Object.entries({ timeoutMs, maxResponseBytes, maxRedirects })) checkLimit(limit, name);
  const peers = new Map(Object.entries(options.peers).map(([name, peer]) => [name, checkedPeer(name, peer)]));

  /** Posts the call, and again where redirects lead; what is no redirect is the answer. */
  async function post(peer: Peer, body: string, signal: AbortSignal): Promise<Response | string> {
    const { fetch = globalThis.fetch } = options;
    const headers = { authorization: `Bearer ${peer.token}`, 'content-type': CONTENT_TYPE, accept: CONTENT_TYPE };
    let target: URL | string = peer.url;
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const response: Response = await fetch(target, { method: 'POST', headers, body, signal, redirect: 'manual' });
      if (response.status < 300 || response.status > 399) return response;
      await response.body?.cancel();
      const { status } = response;
      target = redirectTarget(peer, target, { status, location: response.headers.get('location') });
      if (typeof target === 'string') return target;
    }
    return `more than ${maxRedirects} redirects`;
  }

  async function call(peer: Peer, requests: readonly ExchangeRequest[], body: string, signal: AbortSignal) {
    const response = await post(peer, body, signal);
    if (typeof response === 'string') return failed(response);
    const bytes = await readLimited(response, maxResponseBytes);
    if (response.status === 200) {
      if (bytes === undefined) return failed(`the answer is longer than ${maxResponseBytes} bytes`);
      return readAnswer(peer, requests, readJson(bytes, peer.token));
    }
    return readRefusal(peer, requests, response.status, bytes);
  }

  return {
    async exchange(name, requests, signal) {
      signal.throwIfAborted();
      const peer = peers.get(name);
      if (peer === undefined) return failed(`no address of ${show(name)} is configured`);
      if (requests.length === 0) return { type: 'answered', results: [] };
      const body = formatCall(cluster, requests);
      const deadline = startDeadline(signal, timeoutMs);
      try {
        return await call(peer, requests, body, deadline.signal);
      } catch (error) {
        signal.throwIfAborted();
        const reason = deadline.hasPassed() ? `no answer within ${timeoutMs} ms` : describe(error);
        return failed(redact(reason, peer.token));
      } finally {
        deadline.end();
      }
    },
  };
}

function failed(reason: string): ExchangeReply {
  return { type: 'failed', reason };
}

/** The results of an answer 200. A single topic's error under another status reads as an answer with that one result. */
function readAnswer(peer: Peer, requests: readonly ExchangeRequest[], answer: unknown): ExchangeReply {
  const { cluster = peer.name, results: given } = members(answer);
  if (cluster !== peer.name) return failed(redact(`cluster ${show(cluster)} answers at this address`, peer.token));
  const results = readExchangeResults(given);
  if (results.length !== requests.length || results.some(({ topic }, i) => topic !== requests[i]?.topic)) {
    return failed(`results has ${results.length} members for ${requests.length} topics, or in another order`);
  }
  return { type: 'answered', results: results.map((result) => checkedResult(peer, result)) };
}

/** An answer that is not 200: of the topic, where the call was about one; of the whole call; or of no exchange at all (C19). */
function readRefusal(
  peer: Peer,
  requests: readonly ExchangeRequest[],
  status: number,
  bytes: Uint8Array | undefined,
): ExchangeReply {
  const body = bytes === undefined ? {} : members(tryJson(bytes, peer.token));
  const { code, message } = members(body.error);
  const [only] = requests;
  if (only !== undefined && requests.length === 1) {
    const [result] = readExchangeResults([{ state: body.state, error: body.error, topic: only.topic }]);
    const isTopicError = result !== undefined && 'error' in result && result.error !== undefined;
    if (isTopicError) return readAnswer(peer, requests, { cluster: body.cluster, results: [{ ...body, topic: only.topic }] });
  }
  const isOurs = typeof code === 'string' && (Object.hasOwn(CALL_ERRORS, code) || Object.hasOwn(TOPIC_CODES, code));
  if (status === 404 && !isOurs) return { type: 'unsupported', reason: 'answer 404: there is no exchange at this address' };
  const detail = isOurs ? ` ${code}: ${clipped(redact(String(message), peer.token))}` : '';
  return failed(`answer ${status}${detail}`);
}
