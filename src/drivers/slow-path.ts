/**
 * The slow-path budget of a process as promises: replicators of all topics share one, wait here before they open a
 * batch, and give back when they have. Verbatim forwarding never comes here.
 */
import type { Clock } from '../ports/index.js';
import {
  type BudgetEffect,
  type BudgetOptions,
  type BudgetReport,
  type BudgetSettings,
  SlowPathBudget,
} from '../replication/index.js';
import { systemClock } from './clock.js';

/** The longest time that a timer of JavaScript can wait; an early tick does no harm. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One budget for all replicators of a process. */
export class SlowPath {
  private readonly budget: SlowPathBudget;
  private readonly granted = new Map<string, () => void>();
  private timer: AbortController | undefined;

  /** Throws `invalidArgument` for a rate, a size or a number of slots that would allow nothing. */
  constructor(
    options: BudgetOptions = {},
    private readonly clock: Clock = systemClock,
  ) {
    this.budget = new SlowPathBudget(options, clock.now());
  }

  /**
   * Runs `work` once the budget has a slot and this many bytes for it; one operation a key. Rejects, with nothing
   * taken, when the signal aborts before.
   */
  async run<T>(key: string, bytes: number, signal: AbortSignal, work: () => T): Promise<T> {
    await this.acquire(key, bytes, signal);
    try {
      return work();
    } finally {
      this.release(key);
    }
  }

  /** Forgets how long a key has waited, when its segment is gone. */
  forget(key: string): void {
    this.perform(this.budget.forget(key, this.clock.now()));
  }

  /** Changes the rate or the slots while work goes on. Throws `invalidArgument`, and then nothing has changed. */
  configure(settings: BudgetSettings): void {
    this.perform(this.budget.configure(settings, this.clock.now()));
  }

  /** How much of the budget is used, and who has waited how long for it. */
  report(): BudgetReport {
    return this.budget.report(this.clock.now());
  }

  private acquire(key: string, bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const effects = this.budget.acquire(key, bytes, this.clock.now());
      const onAbort = () => {
        this.granted.delete(key);
        this.release(key);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.granted.set(key, () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
      this.perform(effects);
    });
  }

  private release(key: string): void {
    this.perform(this.budget.release(key, this.clock.now()));
  }

  private perform(effects: readonly BudgetEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'wake') this.arm(effect.atMs);
      else {
        this.granted.get(effect.key)?.();
        this.granted.delete(effect.key);
      }
    }
  }

  private arm(atMs: number): void {
    this.timer?.abort();
    const timer = new AbortController();
    this.timer = timer;
    const ms = Math.min(MAX_TIMER_MS, Math.max(0, atMs - this.clock.now()));
    void this.clock.sleep(ms, timer.signal).then(
      () => this.perform(this.budget.tick(this.clock.now())),
      () => undefined,
    );
  }
}
