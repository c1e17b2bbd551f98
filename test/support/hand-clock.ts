/** A clock that stands still until it is moved, and tells who waits for it. */
import type { Clock } from '../../src/ports/index.js';

export class HandClock implements Clock {
  private readonly sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>();

  constructor(private nowMs = 1_700_000_000_000) {}

  now(): number {
    return this.nowMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { atMs: this.nowMs + ms, wake: resolve };
      this.sleepers.add(sleeper);
      const onAbort = () => {
        this.sleepers.delete(sleeper);
        reject(signal.reason);
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** The times that are waited for. */
  get awaited(): readonly number[] {
    return [...this.sleepers].map(({ atMs }) => atMs);
  }

  advance(ms: number): void {
    this.nowMs += ms;
    for (const sleeper of [...this.sleepers]) {
      if (sleeper.atMs > this.nowMs) continue;
      this.sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}
