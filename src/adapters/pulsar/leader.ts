/**
 * Which process leads: whoever has the exclusive producer on a lock topic. The epoch that the broker grants with it is
 * the term (C14): it rises with every grant and outlives restarts of the broker. It fences nothing but the lock itself,
 * so the holder deposes itself once its connection has been silent for a time, before the broker would.
 */
import { IsthmusError, show } from '../../errors.js';
import type { Clock } from '../../ports/index.js';
import {
  type Closed,
  type Producer,
  type ProducerOptions,
  type PulsarClient,
  type Refusal,
  SERVER_ERROR,
} from './protocol/index.js';
import { processClock } from './protocol/time.js';

export interface LeaderOptions {
  /** With the right to produce. */
  readonly client: PulsarClient;
  /** `persistent://tenant/namespace/name`: an ordinary topic that keeps a durable subscription, else it is deleted when idle and its terms begin anew. */
  readonly topic: string;
  /** Names this process; no two that run have the same. */
  readonly name: string;
  /**
   * How long nothing may be heard on the lock's connection, in milliseconds, 1,000..29,000; default 20,000. A broker
   * gives the lock of a silent holder away after 30 to 60 s. It must leave time for a ping of the client to be answered.
   */
  readonly silenceMs?: number;
  /** Why an attempt at the lock came to nothing; the next one comes with a backoff. Must not throw. */
  readonly onFailure?: (reason: string) => void;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

/** One turn as the leader. A connection that breaks does not end it if the lock can be had back under the same term. */
export interface Leadership {
  readonly term: number;
  /** Resolves, with the reason, when it is over. */
  readonly ended: Promise<string>;
  /** False as soon as it is over, and by the clock: a process that was held up learns it before `ended` has come. */
  holds(): boolean;
}

const RETRY_INITIAL_MS = 500;
const RETRY_MAX_MS = 10_000;
const RETURN_MS = 250;
const CHECK_MS = 500;

/**
 * The turns of this process as the leader, one after the other; between them it waits in line. Ends with the signal, and
 * gives the lock back. Throws `invalidArgument`.
 */
export async function* leaderships(options: LeaderOptions, signal: AbortSignal): AsyncIterable<Leadership> {
  const { clock = processClock, silenceMs = 20_000 } = options;
  if (!Number.isSafeInteger(silenceMs) || silenceMs < 1_000 || silenceMs > 29_000) {
    throw new IsthmusError('invalidArgument', `silenceMs is ${show(silenceMs)}: an integer of 1000..29000`);
  }
  let retryMs = RETRY_INITIAL_MS;
  while (!signal.aborted) {
    const turn = new Turn(options, clock, silenceMs);
    const stop = () => turn.end('this process gives up the lead');
    signal.addEventListener('abort', stop, { once: true });
    try {
      const term = await turn.begin();
      if (term !== undefined) {
        retryMs = RETRY_INITIAL_MS;
        yield { term, ended: turn.ended, holds: () => turn.holds() };
        await turn.ended;
      }
    } finally {
      signal.removeEventListener('abort', stop);
      await turn.close();
    }
    if (signal.aborted) return;
    await clock.sleep(retryMs, signal).catch(() => undefined);
    retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
  }
}

/** One place in the line for the lock, from the waiting to the end. */
class Turn {
  readonly ended: Promise<string>;
  private producer: Producer | undefined;
  /** Once the lock is held. */
  private epoch: bigint | undefined;
  private readonly over = new AbortController();
  private tellEnd: (reason: string) => void = () => undefined;

  constructor(
    private readonly options: LeaderOptions,
    private readonly clock: Clock,
    private readonly silenceMs: number,
  ) {
    this.ended = new Promise((resolve) => {
      this.tellEnd = resolve;
    });
  }

  /** The term, once the lock is this process's own; undefined when that came to nothing. */
  async begin(): Promise<number | undefined> {
    let onReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => {
      onReady = resolve;
    });
    const refusal = await this.open({ access: 'waitForExclusive' }, onReady);
    if (refusal !== undefined) {
      this.options.onFailure?.(textOf(refusal));
      return undefined;
    }
    if (this.producer?.ready === false) await Promise.race([ready, this.ended]);
    if (this.over.signal.aborted) return undefined;
    this.epoch = this.producer?.topicEpoch;
    if (this.epoch === undefined) return undefined;
    void this.watchSilence();
    return Number(this.epoch);
  }

  holds(): boolean {
    this.checkSilence();
    return this.epoch !== undefined && !this.over.signal.aborted;
  }

  end(reason: string): void {
    this.over.abort();
    this.tellEnd(reason);
  }

  async close(): Promise<void> {
    this.end('closed here');
    await this.producer?.close();
  }

  /** Why there is no producer on the lock. One that comes when the turn is over is given back. */
  private async open(
    access: Pick<ProducerOptions, 'access' | 'topicEpoch'>,
    onReady: () => void,
  ): Promise<Refusal | undefined> {
    const { client, topic, name } = this.options;
    const result = await client.openProducer(
      { topic, name, connection: 'control', ...access },
      {
        onReceipt: () => undefined,
        onSendError: () => undefined,
        onReady,
        onClosed: (closed) => this.lost(closed),
      },
    );
    if (result.type !== 'opened') return result;
    if (this.over.signal.aborted) void result.producer.close();
    else this.producer = result.producer;
    return undefined;
  }

  private lost(closed: Closed): void {
    if (this.epoch === undefined) {
      this.options.onFailure?.(reasonOf(closed));
      this.end(reasonOf(closed));
    } else void this.comeBack(this.epoch);
  }

  /** Asks for the lock under the same term, until it is had, or somebody else has it, or the silence lasts too long. */
  private async comeBack(epoch: bigint): Promise<void> {
    while (!this.over.signal.aborted) {
      const refusal = await this.open({ access: 'exclusive', topicEpoch: epoch }, () => undefined);
      if (refusal === undefined) {
        const granted = this.producer?.topicEpoch;
        if (granted !== epoch) this.end(`the lock has another epoch: ${granted} instead of ${epoch}`);
        return;
      }
      if (isFinal(refusal)) return this.end(`the lock is lost: ${textOf(refusal)}`);
      await this.clock.sleep(RETURN_MS, this.over.signal).catch(() => undefined);
    }
  }

  /** Ends the turn where nothing was heard for too long: for good, so that nobody who has seen it end sees it go on. */
  private checkSilence(): void {
    const silentMs = this.clock.now() - (this.producer?.lastHeardMs ?? 0);
    if (silentMs > this.silenceMs) this.end(`nothing was heard of the broker for ${silentMs} ms`);
  }

  private async watchSilence(): Promise<void> {
    while (!this.over.signal.aborted) {
      await this.clock.sleep(CHECK_MS, this.over.signal).catch(() => undefined);
      if (!this.over.signal.aborted) this.checkSilence();
    }
  }
}

/** Somebody else holds the lock now, or this process may not. Anything else, such as its own dead connection, may pass. */
function isFinal(refusal: Refusal): boolean {
  const { producerFenced, authorization } = SERVER_ERROR;
  return refusal.type === 'refused' && (refusal.code === producerFenced || refusal.code === authorization);
}

function textOf(refusal: Refusal): string {
  return refusal.type === 'refused' ? `${refusal.message} (error ${refusal.code})` : refusal.reason;
}

function reasonOf(closed: Closed): string {
  switch (closed.type) {
    case 'closedByBroker':
      return 'the broker has taken the lock back';
    case 'refused':
      return textOf(closed);
    case 'disconnected':
      return closed.reason;
  }
}
