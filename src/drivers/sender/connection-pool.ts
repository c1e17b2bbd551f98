/**
 * The connections of one kind to one remote: at most so many, each closed when it was idle for a while and used no more
 * once it is old. Who wants one waits in line here and not in the agent, so that what is sent is decided when it can be.
 */
import { Agent, type AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';

export interface PoolLimits {
  /** At least 1. */
  readonly maxConnections: number;
  readonly idleMs: number;
  /** A connection that is older serves no further request. */
  readonly maxAgeMs: number;
}

export class ConnectionPool extends Agent {
  readonly #limits: PoolLimits;
  readonly #bornMs = new WeakMap<Duplex, number>();
  readonly #line = new Set<(isMine: boolean) => void>();
  #inUse = 0;
  #isRetired = false;

  /** `connection` is what each connection is made with. */
  constructor(limits: PoolLimits, connection: AgentOptions) {
    super({ ...connection, keepAlive: true, keepAliveMsecs: 30_000, timeout: limits.idleMs, maxCachedSessions: 64 });
    this.#limits = limits;
  }

  /** Takes a place, in turn; false when the signal aborts first. Who has one gives it back by `leave`. */
  enter(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#inUse < this.#limits.maxConnections) {
      this.#inUse++;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const onAbort = () => turn(false);
      const turn = (isMine: boolean) => {
        this.#line.delete(turn);
        signal.removeEventListener('abort', onAbort);
        resolve(isMine);
      };
      this.#line.add(turn);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  leave(): void {
    const [next] = this.#line;
    if (next === undefined) this.#inUse--;
    else next(true);
  }

  /** A connection has been made. */
  made(socket: Duplex): void {
    this.#bornMs.set(socket, performance.now());
  }

  /** Asked by the agent when a request leaves its connection. */
  override keepSocketAlive(socket: Duplex): boolean {
    const ageMs = performance.now() - (this.#bornMs.get(socket) ?? Number.NEGATIVE_INFINITY);
    if (this.#isRetired || ageMs > this.#limits.maxAgeMs) return false;
    // The agent's own answer is whether the other side wants to keep it.
    return Boolean(super.keepSocketAlive(socket));
  }

  /** Closes what is idle, and every other connection once its request is over. */
  retire(): void {
    this.#isRetired = true;
    for (const sockets of Object.values(this.freeSockets)) for (const socket of [...(sockets ?? [])]) socket.destroy();
  }
}
