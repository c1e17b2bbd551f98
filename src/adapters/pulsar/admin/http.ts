/**
 * Requests to the admin REST of a cluster, with failures as values. Redirects are followed by hand: a broker that is not
 * a topic's controller names the one that is, and a client that follows by itself drops the token on the way, or carries
 * it to a host that nobody has named.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { IsthmusError, messageOf, show } from '../../../errors.js';

export interface AdminOptions {
  /** `http://host[:port]` or `https://host[:port]`, without a path; tried in turn. */
  readonly urls: readonly string[];
  /** Where redirects may lead besides: the same form. */
  readonly redirectUrls?: readonly string[];
  /** Certificates of authorities in PEM, instead of those that Node trusts. */
  readonly ca?: string;
  /** A token of a role that may produce and consume; read anew for each request. */
  readonly token?: () => string | Promise<string>;
  /** A token of a tenant admin, for layout changes and policies; default: the other one. */
  readonly layoutToken?: () => string | Promise<string>;
  /** Time limit of one request with its redirects, in milliseconds; default 20,000. */
  readonly timeoutMs?: number;
}

/** Why a call did not do what it was to do. */
export interface AdminFailure {
  /**
   * - `notFound`: the topic, segment or subscription does not exist.
   * - `conflict`: it exists already, or is in the way.
   * - `refused`: the broker says no for another reason.
   * - `unauthorized`: these credentials do not allow it.
   * - `unavailable`: no answer, or one that proves nothing; it may have been done.
   */
  readonly type: 'notFound' | 'conflict' | 'refused' | 'unauthorized' | 'unavailable';
  readonly reason: string;
}

export type AdminResult<T> = { readonly type: 'ok'; readonly value: T } | AdminFailure;

export interface AdminCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below `/admin/v2/`, with its query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Which token it needs. */
  readonly as?: 'data' | 'layout';
  /**
   * Sent once, to the URL that answered last and over a connection of its own. Otherwise a request without an answer is
   * sent to the next URL, and one that found its connection closed is sent again.
   */
  readonly isOnce?: boolean;
  readonly signal?: AbortSignal;
}

/** What became of a request. */
export type AdminAnswer =
  | { readonly type: 'answered'; readonly status: number; readonly text: string }
  /** `isLate`: within the time limit. */
  | { readonly type: 'unanswered'; readonly reason: string; readonly isLate: boolean };

const MAX_REDIRECTS = 5;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly text: string;
}

export class AdminHttp {
  private readonly origins: readonly URL[];
  private readonly allowed: ReadonlySet<string>;
  private first = 0;

  /** Throws `invalidArgument`. */
  constructor(private readonly options: AdminOptions) {
    const { urls, redirectUrls = [], timeoutMs = 20_000 } = options;
    if (urls.length === 0) throw new IsthmusError('invalidArgument', 'urls is empty: at least one is needed');
    if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1) {
      throw new IsthmusError('invalidArgument', `timeoutMs is ${show(timeoutMs)}: an integer from 1`);
    }
    this.origins = urls.map(originOf);
    this.allowed = new Set([...this.origins, ...redirectUrls.map(originOf)].map(({ origin }) => origin));
  }

  /** The answer's text; an empty one is what many calls answer. */
  async call(call: AdminCall): Promise<AdminResult<string>> {
    const answer = await this.send(call);
    return answer.type === 'answered' ? resultOf(answer) : { type: 'unavailable', reason: answer.reason };
  }

  /** The answer as it is, redirects followed. Rejects only when the call's signal aborts. */
  async send(call: AdminCall): Promise<AdminAnswer> {
    const { timeoutMs = 20_000 } = this.options;
    let last: AdminAnswer = { type: 'unanswered', reason: '', isLate: false };
    for (let i = 0; i < (call.isOnce ? 1 : this.origins.length); i++) {
      const at = (this.first + i) % this.origins.length;
      const limit = AbortSignal.timeout(timeoutMs);
      try {
        const { status, text } = await this.follow(new URL(`/admin/v2/${call.path}`, this.origins[at]), call, limit);
        this.first = at;
        return { type: 'answered', status, text };
      } catch (error) {
        if (call.signal?.aborted) throw error;
        const reason = `${this.origins[at]?.host}: ${messageOf(error)}`;
        last = { type: 'unanswered', reason, isLate: limit.aborted };
      }
    }
    return last;
  }

  private async follow(url: URL, call: AdminCall, limit: AbortSignal): Promise<Answer> {
    let at = url;
    for (let i = 0; i <= MAX_REDIRECTS; i++) {
      const answer = await this.once(at, call, limit);
      if (answer.status !== 307 && answer.status !== 308) return answer;
      if (answer.location === undefined) throw new Error(`a redirect (${answer.status}) to nowhere`);
      at = new URL(answer.location, at);
      if (!this.allowed.has(at.origin)) throw new Error(`a redirect to ${at.origin}, which is not configured`);
    }
    throw new Error(`more than ${MAX_REDIRECTS} redirects`);
  }

  private async once(url: URL, call: AdminCall, limit: AbortSignal): Promise<Answer> {
    const { method, body, as, signal, isOnce } = call;
    const { token, layoutToken = token, ca } = this.options;
    const bearer = await (as === 'layout' ? layoutToken : token)?.();
    const content = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string> = { accept: 'application/json' };
    if (bearer !== undefined) headers.authorization = `Bearer ${bearer.trim()}`;
    if (content !== undefined) headers['content-type'] = 'application/json';
    return new Promise((resolve, reject) => {
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      const own = isOnce ? { agent: false } : {};
      const request = send(url, { method, headers, ...own, ...(ca === undefined ? {} : { ca }) }, (response) => {
        readAnswer(response).then(resolve, reject);
      });
      const abort = () => request.destroy(new Error(signal?.aborted ? 'aborted' : 'no answer in time'));
      for (const one of [limit, signal]) {
        if (one?.aborted) abort();
        else one?.addEventListener('abort', abort, { once: true });
      }
      request.on('close', () => {
        for (const one of [limit, signal]) one?.removeEventListener('abort', abort);
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        // The server had closed a connection that was kept for later: it has not seen this request.
        const isStale = request.reusedSocket && error.code === 'ECONNRESET' && !limit.aborted;
        if (isStale) resolve(this.once(url, call, limit));
        else reject(error);
      });
      request.end(content);
    });
  }
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    pieces.push(piece);
  }
  const { statusCode: status = 0, headers } = response;
  return { status, location: headers.location, text: Buffer.concat(pieces).toString('utf8') };
}

function resultOf({ status, text }: Pick<Answer, 'status' | 'text'>): AdminResult<string> {
  if (status >= 200 && status < 300) return { type: 'ok', value: text };
  const reason = reasonOf(text) || `status ${status}`;
  switch (status) {
    case 401:
    case 403:
      return { type: 'unauthorized', reason };
    case 404:
      // While a broker dies the others cannot find it, and say so instead of anything about the topic.
      return { type: reason.includes('/loadbalance/') ? 'unavailable' : 'notFound', reason };
    case 409:
      return { type: 'conflict', reason };
    case 429:
    case 502:
    case 503:
    case 504:
      return { type: 'unavailable', reason };
    case 500:
      // Many refusals come as this, with the cause somewhere in a stack trace.
      if (reason.includes('topic not found')) return { type: 'notFound', reason };
      if (reason.includes('prefixed by the authentication role')) return { type: 'unauthorized', reason };
      return { type: 'refused', reason };
    default:
      return { type: 'refused', reason };
  }
}

/** What an answer says for people, in one line: of a stack trace the message, of a page its text. */
export function reasonOf(text: string): string {
  const said = saidIn(text);
  const cause = /Scalable topic not found[^\n]*/.exec(said)?.[0] ?? /Message: ([^\n]*)/.exec(said)?.[1];
  const [line = ''] = (cause ?? said).trim().split('\n');
  return line.replace(/\s+/g, ' ').trim().slice(0, 300);
}

/** The words of an answer without what they are wrapped in. */
export function saidIn(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return text;
    if ('reason' in value) return String(value.reason);
    // This is how the web server in front says it, where a credential is missing.
    return 'message' in value ? String(value.message) : text;
  } catch {
    return text.replace(/<style[\s\S]*?<\/style>|<[^>]*>/g, ' ');
  }
}

function originOf(text: string): URL {
  const isForm = /^https?:\/\/[^/?#@\s]+\/?$/.test(text);
  if (isForm && URL.canParse(text)) return new URL(text);
  throw new IsthmusError(
    'invalidArgument',
    `admin URL ${show(text.replace(/\/\/[^/@]*@/, '//...@'))}: http(s)://host[:port] without a path or credentials is needed`,
  );
}
