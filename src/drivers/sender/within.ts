/** A limit on what others do. */
import type { Clock } from '../../ports/index.js';

/** What `work` comes to, or `late` when it takes longer than `ms`; then its signal is aborted. Rejects as `work` does. */
export async function within<Result>(
  clock: Clock,
  ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | 'late'> {
  const done = new AbortController();
  try {
    return await Promise.race([work(done.signal), clock.sleep(ms, done.signal).then(() => 'late' as const)]);
  } finally {
    done.abort();
  }
}
