/** The limits of a remote: what each may be, and what it is when nothing is said. */
import { IsthmusError, show } from '../../errors.js';
import type { StoredLimits } from '../../ports/index.js';
import { REMOTE_LIMITS } from '../../sender/index.js';

const BOUNDS = Object.freeze({
  ...REMOTE_LIMITS,
  idleConnTimeoutMs: { least: 1_000, most: 300_000, default: 30_000 },
  connMaxAgeMs: { least: 10_000, most: 3_600_000, default: 300_000 },
});

/** The limits of a remote of which nothing is said. */
export const DEFAULT_LIMITS: StoredLimits = Object.freeze({
  maxInFlight: BOUNDS.maxInFlight.default,
  requestTimeoutMs: BOUNDS.requestTimeoutMs.default,
  checkIntervalMs: BOUNDS.checkIntervalMs.default,
  idleConnTimeoutMs: BOUNDS.idleConnTimeoutMs.default,
  connMaxAgeMs: BOUNDS.connMaxAgeMs.default,
  compression: 'none',
});

/** Throws `invalidArgument` for a limit outside its range. */
export function checkLimits(limits: StoredLimits): StoredLimits {
  for (const [name, { least, most }] of Object.entries(BOUNDS)) {
    const value = limits[name as keyof typeof BOUNDS];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw new IsthmusError(
        'invalidArgument',
        `${name} ${show(value)}: it must be an integer from ${least} to ${most}`,
      );
    }
  }
  const { compression } = limits;
  if (compression === 'none' || compression === 'zstd') return limits;
  throw new IsthmusError('invalidArgument', `compression ${show(compression)}: it must be none or zstd`);
}
