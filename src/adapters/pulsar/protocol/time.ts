/** Time limits by an injected clock. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../../ports/index.js';

export const processClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};

/** Runs a callback after `ms` milliseconds. Returns what takes it back. */
export function after(clock: Clock, ms: number, run: () => void): () => void {
  const pending = new AbortController();
  void clock.sleep(ms, pending.signal).then(
    // An abort between the end of the sleep and this turn counts as well.
    () => {
      if (!pending.signal.aborted) run();
    },
    () => undefined,
  );
  return () => pending.abort();
}
