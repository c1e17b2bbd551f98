/**
 * The server's half of the peer exchange: a fetch-style handler, so that it mounts in whatever serves the host's
 * admin interface. It settles who calls and whether the call can be read, hands valid requests to the host, and puts
 * the results into an answer. What it refuses never reaches the host (C21).
 */
import {
  type ExchangeErrorCode,
  type ExchangeRequest,
  type ExchangeResult,
  type RefusedTopic,
  readExchangeRequests,
} from '../../convergence/index.js';
import { IsthmusError, show } from '../../errors.js';
import type { ExchangeHandler } from '../../ports/index.js';
import { bearerIdentity } from './bearer.js';
import { parseJson, readLimited } from './body.js';
import { CALL_ERRORS, type CallErrorCode, CONTENT_TYPE, formatResult } from './messages.js';

export interface HttpExchangeHandlerOptions {
  /** The name of the cluster that answers. */
  readonly cluster: string;
  /** The host's side: it folds, commits and answers for each topic (C15). */
  readonly handler: ExchangeHandler;
  /**
   * The token, or tokens, that each peer may present; two while one replaces the other. A token stands for one
   * cluster, and a call may state nothing about any other.
   */
  readonly credentials: Readonly<Record<string, string | readonly string[]>>;
  /** The largest body that is read, in bytes; default 1 MiB. */
  readonly maxRequestBytes?: number;
  /** The most topics in one call; default 1024. */
  readonly maxTopics?: number;
  /** Where the leader of a topic answers, an absolute URL; undefined when unknown. Asked after a result `notLeader`. */
  readonly leaderUrl?: (topic: string) => string | undefined;
  /** Told of what became of an answer 500: the host's handler failed. The caller learns nothing of it. */
  readonly onError?: (error: unknown) => void;
}

/** HTTP's word for a topic's error. The others travel as 200: they carry the state that the caller needs to go on. */
const TOPIC_STATUS: Partial<Record<ExchangeErrorCode, number>> = {
  notMember: 403,
  unknownTopic: 404,
  invalidState: 400,
  notLeader: 503,
};

const RETRY_AFTER_SECONDS = '1';

/**
 * Makes the handler. Calls about one topic are answered with HTTP's codes: 307 to the leader, 400 for an invalid state,
 * 403 for a cluster outside the replication set, 404 `unknownTopic`, 503 for an unknown leader. Calls about several
 * answer 200 with one result per topic (C17). Throws `invalidArgument` for impossible credentials and limits.
 */
export function createHttpExchangeHandler(
  options: HttpExchangeHandlerOptions,
): (request: Request) => Promise<Response> {
  const { cluster, handler, maxRequestBytes = 1024 * 1024, maxTopics = 1024, leaderUrl, onError } = options;
  checkLimit(maxRequestBytes, 'maxRequestBytes');
  checkLimit(maxTopics, 'maxTopics');
  const identify = bearerIdentity(options.credentials);

  async function answer(request: Request): Promise<Response> {
    const from = admit(request, identify);
    const topics = readCall(await readBody(request, maxRequestBytes), from, maxTopics);
    const results = await resultsOf(handler, from, topics);
    const [only] = results;
    if (only !== undefined && results.length === 1) return answerOne(only);
    return jsonResponse(200, { cluster, results: results.map(formatResult) });
  }

  function answerOne(result: ExchangeResult): Response {
    const { topic, error } = result;
    const status = error && TOPIC_STATUS[error.code];
    if (error === undefined || status === undefined)
      return jsonResponse(200, { cluster, results: [formatResult(result)] });
    const leader = error.code === 'notLeader' ? leaderUrl?.(topic) : undefined;
    const body = { cluster, ...formatResult(result) };
    if (leader !== undefined) return jsonResponse(307, body, { location: leader });
    return jsonResponse(status, body, status === 503 ? { 'retry-after': RETRY_AFTER_SECONDS } : {});
  }

  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal('internal', 'the call failed here');
      if (refusal !== error) onError?.(error);
      const { code, message, headers } = refusal;
      return jsonResponse(CALL_ERRORS[code], { cluster, error: { code, message } }, headers);
    }
  };
}

/** Ends a call as a whole. */
class Refusal extends Error {
  constructor(
    readonly code: CallErrorCode,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** Settles what the head of a request says, before any of its body is read. The cluster that calls. */
function admit({ method, headers }: Request, identify: (authorization: string | null) => string | undefined): string {
  if (method !== 'POST') throw new Refusal('methodNotAllowed', 'the exchange is a POST', { allow: 'POST' });
  const authorization = headers.get('authorization');
  const from = identify(authorization);
  if (from === undefined) {
    const fault = authorization === null ? '' : ', error="invalid_token"';
    throw new Refusal('unauthorized', 'a bearer token of a peer is needed', {
      'www-authenticate': `Bearer realm="isthmus"${fault}`,
    });
  }
  const [type = '', ...parameters] = (headers.get('content-type') ?? '').toLowerCase().split(';').map(trimmed);
  const isUtf8 = parameters.every((p) => !p.startsWith('charset=') || /^charset="?utf-8"?$/.test(p));
  if (type !== CONTENT_TYPE || !isUtf8) {
    throw new Refusal('unsupportedMediaType', `the exchange is ${CONTENT_TYPE} in UTF-8`);
  }
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity') {
    throw new Refusal('unsupportedMediaType', 'the exchange takes no content encoding');
  }
  return from;
}

const trimmed = (text: string): string => text.trim();

async function readBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  let bytes: Uint8Array | undefined;
  try {
    bytes = await readLimited(request, maxBytes);
  } catch {
    throw new Refusal('invalidRequest', 'the body was cut off');
  }
  if (bytes === undefined) throw new Refusal('tooLarge', `a call has at most ${maxBytes} bytes`);
  return bytes;
}

/** Reads a call that is about at least one topic, and about no cluster's state but the caller's own. */
function readCall(bytes: Uint8Array, from: string, maxTopics: number): (ExchangeRequest | RefusedTopic)[] {
  const { cluster = from, requests } = refusing(() => readEnvelope(parseJson(bytes)));
  if (cluster !== from) throw new Refusal('forbidden', `cluster is ${show(cluster)}: the credential is not its`);
  if (Array.isArray(requests) && (requests.length === 0 || requests.length > maxTopics)) {
    throw new Refusal(
      'invalidRequest',
      `requests has ${requests.length} members: a call is about 1..${maxTopics} topics`,
    );
  }
  const topics = refusing(() => readExchangeRequests(requests));
  const foreign = topics.find((topic) => 'state' in topic && topic.state.cluster !== from);
  if (foreign !== undefined) {
    throw new Refusal(
      'forbidden',
      `the state of ${show(foreign.topic)} is that of a cluster whose credential this is not`,
    );
  }
  return topics;
}

function readEnvelope(call: unknown): { readonly cluster?: unknown; readonly requests?: unknown } {
  if (typeof call === 'object' && call !== null && !Array.isArray(call)) return call;
  throw new IsthmusError('invalidState', `body is ${show(call)}: a call is an object with requests`);
}

/** Runs a reader whose refusal is the caller's fault. */
function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof IsthmusError) throw new Refusal('invalidRequest', error.message);
    throw error;
  }
}

/** One result for each topic, in order: the host's where the request was valid, a refusal where it was not (C17). */
async function resultsOf(
  handler: ExchangeHandler,
  from: string,
  topics: readonly (ExchangeRequest | RefusedTopic)[],
): Promise<ExchangeResult[]> {
  const requests = topics.filter((topic): topic is ExchangeRequest => 'state' in topic);
  const answered = requests.length === 0 ? [] : [...(await handler.exchange(from, requests))];
  if (answered.length !== requests.length || answered.some(({ topic }, i) => topic !== requests[i]?.topic)) {
    throw new Error(
      `the exchange handler gave ${answered.length} results for ${requests.length} topics, or in another order`,
    );
  }
  return topics.map((topic) => {
    if ('state' in topic) return answered.shift() as ExchangeResult;
    return { topic: topic.topic, error: { code: 'invalidState', message: topic.refusal.message } };
  });
}

function jsonResponse(status: number, body: object, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': CONTENT_TYPE, 'cache-control': 'no-store', ...headers },
  });
}

function checkLimit(limit: number, name: string): void {
  if (Number.isSafeInteger(limit) && limit > 0) return;
  throw new IsthmusError('invalidArgument', `${name} is ${show(limit)}: a limit is a safe integer of 1 or more`);
}
