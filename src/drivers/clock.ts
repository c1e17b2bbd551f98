/** The clock of this process. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../ports/index.js';

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};
