/**
 * The gate of a remote on a node: every request with records, and every target check, passes it. A failure of the remote
 * as a whole, or three transient ones in a row, closes it, and then one request per backoff goes through, as the probe
 * for all. What waited is let go a few at a time once it opens, 1, 2, 4 ... every 50 ms: a target that has just come
 * back must not meet everybody at once.
 */
import type { Jitter } from './ports.js';

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 30_000;
const AUTH_BACKOFF_MS = 30_000;
const TRIP_AFTER = 3;
const RELEASE_EVERY_MS = 50;

/**
 * What a target asks to wait is the least, and up to a tenth is added: otherwise all nodes that heard the same answer
 * come back together.
 */
const RETRY_AFTER_SPREAD = 0.1;

/** Why a request failed, as far as the gate is concerned. */
export type GateFailure = 'auth_failed' | 'throttled' | 'tls_failed' | 'unavailable';

/** Somebody who waits to be let through. */
export interface GateWaiter {
  run(): void;
}

/** Leave to send: as the probe, or for as long as the gate stays open. */
export interface GatePass {
  readonly isProbe: boolean;
  readonly epoch: number;
}

export class Gate {
  /** One more with every closing of an open gate: what was found out before is to be found out again. */
  epoch = 0;
  /** The ceiling of the present wait; 0 when open. */
  backoffMs = 0;
  /** Why it is closed. */
  reason: GateFailure | undefined;
  private untilMs = 0;
  private failures = 0;
  private prober: GateWaiter | undefined;
  /**
   * Something was answered with this credential. Until then one goes at a time, although nothing has failed: a wrong
   * password must cost one failed login, not one for each lane that starts.
   */
  private isProven = false;
  private readonly waiting = new Set<GateWaiter>();
  /** Those without records: they probe where nobody else can. */
  private readonly idle = new Set<GateWaiter>();
  private readonly released = new Set<GateWaiter>();
  private release: { readonly count: number; readonly atMs: number } | undefined;

  constructor(private readonly random: Jitter) {}

  get isOpen(): boolean {
    return this.reason === undefined;
  }

  /** It is closed, and whoever asks next becomes the probe. */
  isDue(nowMs: number): boolean {
    return !this.isOpen && this.prober === undefined && nowMs >= this.untilMs;
  }

  isProber(waiter: GateWaiter): boolean {
    return this.prober === waiter;
  }

  /** Leave to send; undefined: wait. Whoever becomes the probe must report an outcome, or hand it back. */
  ask(waiter: GateWaiter, nowMs: number): GatePass | undefined {
    const isForAll = this.isOpen && this.isProven;
    const mayGo = isForAll
      ? this.released.has(waiter) || this.waiting.size + this.idle.size === 0
      : this.isOneWanted(nowMs);
    if (!mayGo) return undefined;
    this.leave(waiter);
    if (!isForAll) this.prober = waiter;
    return { isProbe: !isForAll, epoch: this.epoch };
  }

  /** Whether a pass still lets its holder send. */
  isGood(pass: GatePass | undefined, waiter: GateWaiter): boolean {
    if (pass === undefined) return false;
    return pass.isProbe ? this.prober === waiter : this.isOpen && pass.epoch === this.epoch;
  }

  /** Waits until it is let go, or may probe; in the place it has, if it waits already. */
  wait(waiter: GateWaiter, kind: 'withRecords' | 'idle'): void {
    (kind === 'idle' ? this.idle : this.waiting).add(waiter);
    this.beginRelease();
  }

  /** It waits no more. */
  leave(waiter: GateWaiter): void {
    this.waiting.delete(waiter);
    this.idle.delete(waiter);
    this.released.delete(waiter);
  }

  /** The target answered. */
  succeeded(waiter: GateWaiter): void {
    if (this.prober === waiter) this.prober = undefined;
    this.isProven = true;
    this.open();
  }

  /** Another remote under this name, or another credential: what failed before says nothing. */
  reset(): void {
    this.prober = undefined;
    this.isProven = false;
    this.open();
  }

  /** Nothing was found out: the probe, if it was one, is due at once for the next. */
  handBack(waiter: GateWaiter): void {
    if (this.prober === waiter) this.prober = undefined;
  }

  /** A request failed. `retryAfterMs` is what a throttling target asked for, 0 when it did not. */
  failed(waiter: GateWaiter, reason: GateFailure, nowMs: number, retryAfterMs = 0): void {
    const wasProbe = this.prober === waiter;
    if (wasProbe) this.prober = undefined;
    this.failures++;
    if (!this.isOpen && !wasProbe) return this.failedBeside(reason, nowMs, retryAfterMs);
    if (reason === 'auth_failed') return this.close(reason, nowMs, AUTH_BACKOFF_MS, AUTH_BACKOFF_MS);
    const isFirstContact = this.isOpen && !this.isProven;
    if (reason === 'unavailable' && (isFirstContact || !wasProbe) && this.failures < TRIP_AFTER) return;
    const next = Math.min(MAX_BACKOFF_MS, Math.max(FIRST_BACKOFF_MS, this.backoffMs * 2));
    if (reason !== 'throttled' || retryAfterMs === 0) return this.close(reason, nowMs, next, this.drawn(next));
    const told = Math.max(retryAfterMs, next);
    this.close(reason, nowMs, told, this.spread(told));
  }

  /** Whom to run now: the next probe, or the next of those that are let go. */
  due(nowMs: number): readonly GateWaiter[] {
    if (this.isOneWanted(nowMs)) return this.take(1);
    if (!this.isOpen || this.release === undefined || nowMs < this.release.atMs) return [];
    const { count } = this.release;
    const released = this.take(count);
    for (const waiter of released) this.released.add(waiter);
    const isOver = this.waiting.size + this.idle.size === 0;
    this.release = isOver ? undefined : { count: count * 2, atMs: nowMs + RELEASE_EVERY_MS };
    return released;
  }

  /** When `due` has somebody; undefined when only an outcome can change that. */
  get dueAtMs(): number | undefined {
    if (this.isOpen) return this.release?.atMs;
    return this.prober === undefined && this.waiting.size + this.idle.size > 0 ? this.untilMs : undefined;
  }

  /** A late answer beside a closed gate: it never doubles the wait, but may lengthen it. */
  private failedBeside(reason: GateFailure, nowMs: number, retryAfterMs: number): void {
    if (reason === 'auth_failed' && this.backoffMs < AUTH_BACKOFF_MS) {
      this.close(reason, nowMs, AUTH_BACKOFF_MS, AUTH_BACKOFF_MS);
    } else if (reason === 'throttled' && retryAfterMs > 0) {
      this.untilMs = Math.max(this.untilMs, nowMs + this.spread(retryAfterMs));
    }
  }

  private close(reason: GateFailure, nowMs: number, backoffMs: number, waitMs: number): void {
    if (this.isOpen) this.epoch++;
    this.reason = reason;
    this.backoffMs = backoffMs;
    this.untilMs = nowMs + waitMs;
    this.release = undefined;
    this.released.clear();
  }

  private open(): void {
    this.failures = 0;
    this.backoffMs = 0;
    this.reason = undefined;
    this.beginRelease();
  }

  private beginRelease(): void {
    const isWanted = this.isOpen && this.isProven && this.waiting.size + this.idle.size > 0;
    if (isWanted) this.release ??= { count: 1, atMs: 0 };
  }

  /** Nobody may go but one, who is to find out, and nobody does so yet. */
  private isOneWanted(nowMs: number): boolean {
    return this.isDue(nowMs) || (this.isOpen && !this.isProven && this.prober === undefined);
  }

  private take(count: number): GateWaiter[] {
    const taken: GateWaiter[] = [];
    for (const waiters of [this.waiting, this.idle]) {
      for (const waiter of waiters) {
        if (taken.length >= count) return taken;
        waiters.delete(waiter);
        taken.push(waiter);
      }
    }
    return taken;
  }

  private drawn(ceilingMs: number): number {
    return ceilingMs * (1 - this.random.next());
  }

  private spread(leastMs: number): number {
    return leastMs * (1 + RETRY_AFTER_SPREAD * this.random.next());
  }
}
