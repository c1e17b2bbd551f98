/**
 * How this node reaches one remote with one credential: where it is, whom it trusts, its login, and its connections. A
 * change of any of them makes a new one, and this one is closed.
 */
import { connect } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { RemoteLogin } from '../../credentials/index.js';
import { type CanonicalUrl, DialRefused, type GuardedTarget, type RefusalReason } from '../../guard/index.js';
import type { HttpOutcome, SenderRequest } from '../../sender/index.js';
import { ConnectionPool } from './connection-pool.js';
import { DIAL_MS, HttpsCall } from './https-call.js';
import { type NoAnswer, outcomeOf, TimedOut } from './outcome.js';

/** Connections for checks, listings and probes. */
const SIDE_CONNECTIONS = 4;

export interface ClientParts {
  readonly url: CanonicalUrl;
  /** What the guard judged; a refusal answers every request. */
  readonly target: GuardedTarget | { readonly type: 'refused'; readonly reason: RefusalReason };
  /** The remote's own certificates, which alone are trusted then; else those that Node trusts. */
  readonly caPem: string | undefined;
  readonly login: RemoteLogin;
  /** The remote's ID and credential version, as the sender names them. */
  readonly credential: string;
  readonly limits: { readonly maxInFlight: number; readonly idleConnTimeoutMs: number; readonly connMaxAgeMs: number };
  /** `narad-replicator/<version>`. */
  readonly agent: string;
  /** OpenSSL's names of the key exchanges. */
  readonly groups: string;
}

/** What a transport tells of its dials. */
export interface DialWatch {
  dialled(ms: number): void;
  refused(reason: RefusalReason): void;
}

export interface SendOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Whether the credential of the request is still the remote's. */
  readonly isCurrent: () => boolean;
}

export class RemoteClient {
  readonly credential: string;
  readonly #parts: ClientParts;
  readonly #pools: { readonly chunk: ConnectionPool; readonly side: ConnectionPool };
  readonly #watch: DialWatch;

  constructor(parts: ClientParts, watch: DialWatch) {
    const { limits, caPem, groups, target } = parts;
    this.#parts = parts;
    this.#watch = watch;
    this.credential = parts.credential;
    const connection = {
      ALPNProtocols: ['http/1.1'],
      autoSelectFamilyAttemptTimeout: 1_000,
      rejectUnauthorized: true,
      secureContext: createSecureContext({ minVersion: 'TLSv1.2', ecdhCurve: groups, ...(caPem && { ca: caPem }) }),
      ...(target.type === 'target' && { lookup: target.lookup }),
    };
    const pool = (maxConnections: number) =>
      new ConnectionPool(
        { maxConnections, idleMs: limits.idleConnTimeoutMs, maxAgeMs: limits.connMaxAgeMs },
        connection,
      );
    this.#pools = { chunk: pool(limits.maxInFlight), side: pool(SIDE_CONNECTIONS) };
  }

  /** Sends one request; the outcome comes by `timeoutMs`, the wait for a connection included. */
  async send(request: SenderRequest, { timeoutMs, signal, isCurrent }: SendOptions): Promise<HttpOutcome> {
    const { target, url, agent, login } = this.#parts;
    if (target.type === 'refused') return this.#refused(target.reason);
    const pool = this.#pools[request.pool];
    const begunMs = performance.now();
    const waiting = new AbortController();
    const onAbort = () => waiting.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    const limit = setTimeout(onAbort, timeoutMs);
    const isMine = await pool.enter(waiting.signal);
    clearTimeout(limit);
    signal.removeEventListener('abort', onAbort);
    if (!isMine) return signal.aborted ? { type: 'notSent' } : { type: 'failed', timeout: true };
    try {
      if (signal.aborted || !isCurrent()) return { type: 'notSent' };
      const call = new HttpsCall({
        target,
        path: `${url.path}${request.path}`,
        request,
        headers: headersOf(request, agent),
        pool,
        timeoutMs: Math.max(1, timeoutMs - (performance.now() - begunMs)),
        signal,
        credentials: () => {
          if (!isCurrent()) return undefined;
          return request.authorized ? { Authorization: login.authorizationFor(`${url.href}${request.path}`) } : {};
        },
        dialled: (ms) => this.#watch.dialled(ms),
        refused: (reason) => this.#watch.refused(reason),
      });
      const outcome = await call.outcome;
      if (outcome.type === 'answer' && isRedirect(outcome.status)) this.#watch.refused('redirect');
      return outcome;
    } finally {
      pool.leave();
    }
  }

  /** Connects through the guard and closes at once. */
  connect(signal: AbortSignal): Promise<{ readonly type: 'connected'; readonly ms: number } | NoAnswer> {
    const { target } = this.#parts;
    if (target.type === 'refused') return Promise.resolve(this.#refused(target.reason));
    const begunMs = performance.now();
    return new Promise((resolve) => {
      const { host, port, lookup } = target;
      const socket = connect({ host, port, lookup, autoSelectFamilyAttemptTimeout: 1_000 });
      const end = (error?: Error) => {
        clearTimeout(limit);
        signal.removeEventListener('abort', onAbort);
        socket.destroy();
        if (error === undefined) return resolve({ type: 'connected', ms: performance.now() - begunMs });
        if (error instanceof DialRefused) this.#watch.refused(error.reason);
        resolve(outcomeOf(error, 'dial'));
      };
      const onAbort = () => end(new Error('aborted'));
      const limit = setTimeout(() => end(new TimedOut()), DIAL_MS);
      signal.addEventListener('abort', onAbort, { once: true });
      socket.once('connect', () => end());
      socket.on('error', end);
    });
  }

  /** Idle connections close now, the others with the end of their request. */
  close(): void {
    this.#pools.chunk.retire();
    this.#pools.side.retire();
  }

  #refused(reason: RefusalReason): { readonly type: 'refused' } {
    this.#watch.refused(reason);
    return { type: 'refused' };
  }
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}

function headersOf({ method, body, encoding }: SenderRequest, agent: string): Record<string, string> {
  return {
    'User-Agent': agent,
    'X-Narad-Client': agent,
    ...(method === 'POST' && { 'Content-Type': 'application/json', 'Content-Length': `${body?.length ?? 0}` }),
    ...(encoding && { 'Content-Encoding': encoding }),
  };
}
