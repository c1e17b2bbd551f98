/**
 * One request over HTTPS: from the dial to the answer's body, with a limit on each part and on the whole, and exactly one
 * outcome. No redirect is followed, no body decoded, and no error goes further than its kind: a transport's errors may
 * show the request, and with it the credential.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { DialRefused, type GuardedTarget, type RefusalReason } from '../../guard/index.js';
import type { HttpAnswer, HttpOutcome, SenderRequest } from '../../sender/index.js';
import type { ConnectionPool } from './connection-pool.js';
import { outcomeOf, type Stage, TimedOut } from './outcome.js';

export const DIAL_MS = 5_000;
const HANDSHAKE_MS = 5_000;
const MAX_HEADER_BYTES = 65_536;

/** A body is read on for so long behind its cut: then the connection can serve once more. */
const DRAIN_BYTES = 4_096;

export interface CallParts {
  readonly target: GuardedTarget;
  /** With the path of the remote's own URL. */
  readonly path: string;
  readonly request: SenderRequest;
  readonly headers: Readonly<Record<string, string>>;
  readonly pool: ConnectionPool;
  /** What is left of the time for the whole. */
  readonly timeoutMs: number;
  /** Aborts at the end of the sender. */
  readonly signal: AbortSignal;
  /**
   * The headers that depend on the credential, asked for once the connection stands; undefined: the credential is not
   * the current one any more, and nothing is sent.
   */
  readonly credentials: () => Readonly<Record<string, string>> | undefined;
  /** A connection was made: how long the dial took. */
  readonly dialled: (ms: number) => void;
  /** The guard refused the dial. */
  readonly refused: (reason: RefusalReason) => void;
}

export class HttpsCall {
  readonly outcome: Promise<HttpOutcome>;
  readonly #parts: CallParts;
  readonly #request: ClientRequest;
  readonly #limit: NodeJS.Timeout;
  #resolve: (outcome: HttpOutcome) => void = () => undefined;
  #step: NodeJS.Timeout | undefined;
  #stage: Stage = 'dial';
  #isSent = false;
  #isOver = false;
  /** Once its headers are there, an error cuts the answer and is no failure. */
  #answer: (() => HttpAnswer) | undefined;

  constructor(parts: CallParts) {
    const { target, path, request, headers, pool, timeoutMs, signal } = parts;
    this.#parts = parts;
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#request = httpsRequest({
      agent: pool,
      host: target.host,
      port: target.port,
      method: request.method,
      path,
      headers,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
    this.#limit = setTimeout(() => this.#ended(new TimedOut()), timeoutMs);
    signal.addEventListener('abort', this.#aborted, { once: true });
    this.#request.once('socket', (socket) => this.#connecting(socket as TLSSocket));
    this.#request.once('response', (response) => this.#read(response));
    // Listened to until the end: what comes after the outcome must not become an uncaught exception.
    this.#request.on('error', (error) => this.#ended(error));
    this.#request.once('close', () => this.#ended(new Error('closed')));
  }

  #connecting(socket: TLSSocket): void {
    // One that has served before is authorized; a new one is not yet.
    if (socket.authorized) {
      this.#stage = 'secure';
      return this.#send();
    }
    const begunMs = performance.now();
    this.#within(DIAL_MS);
    socket.once('connect', () => {
      this.#parts.dialled(performance.now() - begunMs);
      this.#stage = 'handshake';
      this.#within(HANDSHAKE_MS);
    });
    socket.once('secureConnect', () => {
      clearTimeout(this.#step);
      this.#stage = 'secure';
      this.#parts.pool.made(socket);
      this.#send();
    });
  }

  #within(ms: number): void {
    clearTimeout(this.#step);
    this.#step = setTimeout(() => this.#ended(new TimedOut()), ms);
  }

  #send(): void {
    const headers = this.#parts.credentials();
    if (headers === undefined) return this.#finish({ type: 'notSent' });
    for (const [name, value] of Object.entries(headers)) this.#request.setHeader(name, value);
    this.#isSent = true;
    this.#request.end(this.#parts.request.body);
  }

  #read(response: IncomingMessage): void {
    const { answerBytes } = this.#parts.request;
    const chunks: Buffer[] = [];
    let length = 0;
    // A response lets go of its socket at its end.
    const certificate = this.#certificateEnd(response.socket as TLSSocket);
    const answer = (): HttpAnswer => ({
      type: 'answer',
      status: response.statusCode ?? 0,
      contentType: response.headers['content-type'],
      retryAfter: response.headers['retry-after'],
      body: Buffer.concat(chunks),
      ...certificate,
    });
    this.#answer = answer;
    response.on('data', (chunk: Buffer) => {
      if (length < answerBytes) chunks.push(chunk.subarray(0, answerBytes - length));
      length += chunk.length;
      if (length > answerBytes + DRAIN_BYTES) this.#finish(answer());
    });
    response.once('end', () => this.#finish(answer(), this.#request.writableFinished));
    response.on('error', (error) => this.#ended(error));
  }

  /** Read for checks only: it is parsed anew each time. */
  #certificateEnd(socket: TLSSocket): { readonly certificateEndMs?: number } {
    if (this.#parts.request.pool === 'chunk') return {};
    const endMs = Date.parse(socket.getPeerCertificate().valid_to ?? '');
    return Number.isNaN(endMs) ? {} : { certificateEndMs: endMs };
  }

  readonly #aborted = (): void => {
    if (this.#isSent) this.#ended(new Error('aborted'));
    else this.#finish({ type: 'notSent' });
  };

  #ended(error: Error): void {
    if (this.#isOver) return;
    if (error instanceof DialRefused) this.#parts.refused(error.reason);
    this.#finish(this.#answer === undefined ? outcomeOf(error, this.#stage) : this.#answer());
  }

  /** The first call counts. A connection that still has something of this request on it serves no other. */
  #finish(outcome: HttpOutcome, isReusable = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#limit);
    clearTimeout(this.#step);
    this.#parts.signal.removeEventListener('abort', this.#aborted);
    this.#resolve(outcome);
    if (!isReusable) this.#request.destroy();
  }
}
