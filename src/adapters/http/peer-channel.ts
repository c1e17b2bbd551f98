/**
 * The client's half of the peer exchange, over fetch. Whatever a peer or the network does becomes a reply: `answered`,
 * `unsupported` or `failed`. Time, size and redirects are bounded, and a token goes nowhere but into the
 * Authorization header of the peer it belongs to.
 */
import {
  type ExchangeRequest,
  type ExchangeResult,
  isExchangeErrorCode,
  type RefusedTopic,
  readExchangeResults,
} from '../../convergence/index.js';
import { IsthmusError, show } from '../../errors.js';
import type { ExchangeReply, PeerChannel } from '../../ports/index.js';
import { checkToken, redact } from './bearer.js';
import { parseJson, readLimited } from './body.js';
import { CONTENT_TYPE, formatCall, isCallErrorCode } from './messages.js';
import { isHost, type PeerAddress, redirectTarget } from './redirects.js';

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

/** The longest time that a timer of JavaScript can wait. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The longest message of a peer that is passed on, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 1000;

/**
 * Makes the channel. An answer for one topic that breaks a rule, or is that of another cluster, is a result `failed`
 * of that topic alone (C17). Throws `invalidArgument` for an impossible URL, token or limit.
 */
export function createHttpPeerChannel(options: HttpPeerChannelOptions): PeerChannel {
  const { cluster, timeoutMs = 10_000, maxResponseBytes = 4 * 1024 * 1024, maxRedirects = 3 } = options;
  checkLimit('timeoutMs', timeoutMs, 1, MAX_TIMEOUT_MS);
  checkLimit('maxResponseBytes', maxResponseBytes, 1);
  checkLimit('maxRedirects', maxRedirects, 0);
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
    if (response.status !== 200) return readRefusal(peer, requests, response.status, bytes);
    if (bytes === undefined) return failed(`the answer is longer than ${maxResponseBytes} bytes`);
    return readAnswer(peer, requests, parseJson(bytes));
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
        const reply = await call(peer, requests, body, deadline.signal);
        return reply.type === 'failed' ? failed(safeText(reply.reason, peer)) : reply;
      } catch (error) {
        signal.throwIfAborted();
        return failed(deadline.hasPassed() ? `no answer within ${timeoutMs} ms` : safeText(describe(error), peer));
      } finally {
        deadline.end();
      }
    },
  };
}

function failed(reason: string): ExchangeReply {
  return { type: 'failed', reason };
}

/** The results of an answer, each checked on its own. */
function readAnswer(peer: Peer, requests: readonly ExchangeRequest[], answer: unknown): ExchangeReply {
  const { cluster = peer.name, results: given } = membersOf(answer);
  if (cluster !== peer.name) return failed(quoting(answer, `cluster ${show(cluster)} answers at this address`, peer));
  const results = readingOf(answer, peer, () => readExchangeResults(given));
  if (typeof results === 'string') return failed(results);
  if (results.length !== requests.length || results.some(({ topic }, i) => topic !== requests[i]?.topic)) {
    return failed(`results has ${results.length} members for ${requests.length} topics, or in another order`);
  }
  return { type: 'answered', results: results.map((result) => checkedResult(answer, result, peer)) };
}

/** An answer that is not 200: of the topic, where the call was about one; of the whole call; or of no exchange (C19). */
function readRefusal(
  peer: Peer,
  requests: readonly ExchangeRequest[],
  status: number,
  bytes: Uint8Array | undefined,
): ExchangeReply {
  const body = errorBody(bytes);
  const { code, message } = membersOf(body.error);
  const isTopicError = isExchangeErrorCode(code);
  const [only] = requests;
  if (isTopicError && only !== undefined && requests.length === 1) {
    return readAnswer(peer, requests, { cluster: body.cluster, results: [{ ...body, topic: only.topic }] });
  }
  if (isTopicError || isCallErrorCode(code)) return failed(`answer ${status} ${code}: ${message}`);
  if (status === 404) return { type: 'unsupported', reason: 'answer 404: there is no exchange at this address' };
  return failed(`answer ${status}`);
}

/** The body of an answer that may be of any server: what is not an object of JSON is as good as an empty one. */
function errorBody(bytes: Uint8Array | undefined): Members {
  try {
    return bytes === undefined ? {} : membersOf(parseJson(bytes));
  } catch {
    return {};
  }
}

/** A peer speaks for its own cluster only (C21). What it must not or cannot have said is its topic's failure. */
function checkedResult(answer: unknown, result: ExchangeResult | RefusedTopic, peer: Peer): ExchangeResult {
  const { topic } = result;
  const failure = (message: string): ExchangeResult => ({ topic, error: { code: 'failed', message } });
  if ('refusal' in result) return failure(quoting(answer, `answer refused: ${result.refusal.message}`, peer));
  const { state, error } = result;
  if (state !== undefined && state.cluster !== peer.name) {
    return failure(quoting(answer, `answer refused: the state is that of cluster ${show(state.cluster)}`, peer));
  }
  return error === undefined ? result : { ...result, error: { ...error, message: safeText(error.message, peer) } };
}

type Members = Readonly<Record<string, unknown>>;

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** What a reader makes of an answer, or why it refuses it. */
function readingOf<T extends object>(answer: unknown, peer: Peer, read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof IsthmusError) return quoting(answer, error.message, peer);
    throw error;
  }
}

/**
 * A message that quotes a value of an answer, unless the answer repeats the token anywhere: quotes are cut off at some
 * length, and part of a token would not be recognised.
 */
function quoting(answer: unknown, message: string, { token }: Peer): string {
  return JSON.stringify(answer).includes(token) ? 'the answer is refused; it repeats the credential' : message;
}

/** A text that may come from the peer, without the token and not too long. */
function safeText(text: string, { token }: Peer): string {
  const safe = redact(text, token);
  return safe.length > MAX_MESSAGE_LENGTH ? `${safe.slice(0, MAX_MESSAGE_LENGTH)}...` : safe;
}

/** Why fetch failed: its own message says nothing, the cause does. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const own = message || String((error as { readonly code?: unknown }).code ?? error.name);
  return cause === undefined ? own : `${own}: ${describe(cause)}`;
}

/** One signal for the caller's and the clock's end of a call. The caller's may live long, so its listener is removed. */
function startDeadline(signal: AbortSignal, timeoutMs: number) {
  const controller = new AbortController();
  let passed = false;
  const abort = () => controller.abort(signal.reason);
  const timer = setTimeout(() => {
    passed = true;
    controller.abort();
  }, timeoutMs);
  signal.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    hasPassed: () => passed,
    end: () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    },
  };
}

function checkedPeer(name: string, { url: address, token, allowedHosts = [] }: HttpPeer): Peer {
  const refuse = (rule: string): never => {
    throw new IsthmusError('invalidArgument', `peers.${name}.${rule}`);
  };
  // The value is not shown: a URL may carry a credential.
  if (!URL.canParse(address)) return refuse('url is not an absolute URL');
  const url = new URL(address);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    refuse(`url is of scheme ${url.protocol}, not http: or https:`);
  if (url.username !== '' || url.password !== '') refuse('url carries a credential: it has a place of its own');
  for (const host of allowedHosts) {
    if (!isHost(host)) refuse(`allowedHosts has ${show(host)}: a host is a name or name:port`);
  }
  return { name, url, token: checkToken(token, `peers.${name}.token`), allowedHosts };
}

function checkLimit(name: string, limit: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(limit) && limit >= least && limit <= most) return;
  throw new IsthmusError('invalidArgument', `${name} is ${show(limit)}: must be an integer of ${least}..${most}`);
}
