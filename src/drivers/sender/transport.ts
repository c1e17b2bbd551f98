/**
 * The HTTPS transport of a node: one client for each remote, made anew when what it is made of has moved. It shows
 * nothing of itself: clients hold logins, and requests in flight hold headers.
 */
import { lookup } from 'node:dns/promises';
import { setMaxListeners } from 'node:events';
import type { RemoteLogin } from '../../credentials/index.js';
import { IsthmusError } from '../../errors.js';
import { canonicalUrl, type Guard, guardTarget, type RefusalReason, type ResolveHost } from '../../guard/index.js';
import type { StoredRemote } from '../../ports/index.js';
import type { HttpOutcome, MemberPorts, SenderRequest } from '../../sender/index.js';
import { type KeyExchange, offeredKeyExchange } from './key-exchange.js';
import { checkLimits } from './limits.js';
import { RemoteClient } from './remote-client.js';

/** All addresses of a name, as the system resolves it. */
export const systemResolver: ResolveHost = async (host) =>
  (await lookup(host, { all: true, order: 'verbatim' })).map(({ address }) => address);

export interface TransportOptions {
  readonly guard: Guard;
  readonly resolve: ResolveHost;
  /** What the sender calls itself: `narad-replicator/<version>`. */
  readonly agent: string;
}

/** What is counted of the dials to a remote. */
export interface DialCounts {
  /** How long the last dial took, name look-up included. */
  lastDialMs?: number;
  readonly refused: { [reason in RefusalReason]?: number };
}

export class HttpsTransport {
  readonly keyExchange: KeyExchange = offeredKeyExchange();
  /** By remote; they stay when it is gone. */
  readonly dials = new Map<string, DialCounts>();
  readonly #options: TransportOptions;
  readonly #clients = new Map<string, RemoteClient>();
  readonly #closing = new AbortController();

  constructor(options: TransportOptions) {
    this.#options = options;
    // Every request that is out listens, and there may be hundreds.
    setMaxListeners(0, this.#closing.signal);
  }

  /**
   * Reaches a remote from now on as it is stored here, with this login. Throws `invalidArgument`, and changes nothing,
   * for a URL or certificates that cannot be.
   */
  set(remote: StoredRemote, login: RemoteLogin): void {
    const { name, id, url: text } = remote.binding;
    const { guard, resolve, agent } = this.#options;
    const url = canonicalUrl(text);
    if (url.href !== text)
      throw new IsthmusError('invalidArgument', `the URL of remote ${name} is not in its canonical form`);
    checkLimits(remote.limits);
    const counts = this.dials.get(name) ?? { refused: {} };
    this.dials.set(name, counts);
    const client = new RemoteClient(
      {
        url,
        target: guardTarget(guard, url, resolve),
        caPem: remote.caPem,
        login,
        credential: `${id}/${remote.credentialVersion}`,
        limits: remote.limits,
        agent,
        groups: this.keyExchange.groups,
      },
      {
        dialled: (ms) => {
          counts.lastDialMs = ms;
        },
        refused: (reason) => {
          counts.refused[reason] = (counts.refused[reason] ?? 0) + 1;
        },
      },
    );
    this.drop(name);
    this.#clients.set(name, client);
  }

  /** Reaches it no more; requests that are out get their answers. */
  drop(name: string): void {
    this.#clients.get(name)?.close();
    this.#clients.delete(name);
  }

  /** One outcome for each request, by `timeoutMs`; it does not reject. */
  async send(remote: string, credential: string, request: SenderRequest, timeoutMs: number): Promise<HttpOutcome> {
    const isCurrent = () => this.#clients.get(remote)?.credential === credential;
    const client = this.#clients.get(remote);
    if (client === undefined || !isCurrent()) return { type: 'notSent' };
    const sent = client.send(request, { timeoutMs, signal: this.#closing.signal, isCurrent });
    // What Node refuses to send at all is said no more of than of any other failure.
    return sent.catch(() => ({ type: 'failed', timeout: false }));
  }

  /** A guarded TCP connection, closed at once. */
  connect(remote: string): ReturnType<MemberPorts['connect']> {
    return this.#clients.get(remote)?.connect(this.#closing.signal) ?? Promise.resolve({ type: 'notSent' });
  }

  /** Ends requests that are out, and closes every connection. */
  close(): void {
    this.#closing.abort();
    for (const name of [...this.#clients.keys()]) this.drop(name);
  }

  toJSON(): object {
    return { keyExchange: this.keyExchange };
  }
}
