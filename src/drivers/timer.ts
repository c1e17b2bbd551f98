/** One timer that can be set anew. */
import type { Clock } from '../ports/index.js';

/** The longest time that a timer of JavaScript can wait; an early call does no harm to a machine. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Timer {
  private pending: AbortController | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly onTime: () => void,
  ) {}

  /** Calls at this time, and no more at the one that was set before. */
  set(atMs: number): void {
    this.clear();
    const pending = new AbortController();
    this.pending = pending;
    const ms = Math.min(MAX_TIMER_MS, Math.max(0, atMs - this.clock.now()));
    void this.clock.sleep(ms, pending.signal).then(
      () => {
        if (this.pending === pending) this.onTime();
      },
      () => undefined,
    );
  }

  clear(): void {
    this.pending?.abort();
    this.pending = undefined;
  }
}
