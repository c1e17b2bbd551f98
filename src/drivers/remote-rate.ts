/** The rate limit towards one remote cluster, shared by all replicators of the process that write to it. */
import type { Clock } from '../ports/index.js';
import { RateLimit, type RateLimitEffect, type RateLimitSettings, type ReadSize } from '../replication/index.js';
import { systemClock } from './clock.js';
import { Timer } from './timer.js';

export class RemoteRate {
  private readonly limit: RateLimit;
  private readonly admitted = new Map<string, (allowed: ReadSize) => void>();
  private readonly timer: Timer;

  /** No member, no limit. Throws `invalidArgument` for a limit that would allow nothing. */
  constructor(
    settings: RateLimitSettings = {},
    private readonly clock: Clock = systemClock,
  ) {
    this.limit = new RateLimit(settings, clock.now());
    this.timer = new Timer(clock, () => this.perform(this.limit.tick(this.clock.now())));
  }

  /** Calls `onAdmitted`, at once or later, when a key may issue one read, with what that read may bring. */
  admit(key: string, want: ReadSize, onAdmitted: (allowed: ReadSize) => void): void {
    this.admitted.set(key, onAdmitted);
    this.perform(this.limit.admit(key, want, this.clock.now()));
  }

  /** Charges what the admitted read of a key has brought. */
  charge(key: string, brought: ReadSize): void {
    this.perform(this.limit.charge(key, brought, this.clock.now()));
  }

  /** Ends what a key has, at no charge. */
  release(key: string): void {
    this.admitted.delete(key);
    this.perform(this.limit.release(key, this.clock.now()));
  }

  /** Sets the limits anew, as a whole: an absent member switches its limit off. Throws `invalidArgument`. */
  configure(settings: RateLimitSettings): void {
    this.perform(this.limit.configure(settings, this.clock.now()));
  }

  /** How many segments wait to read. */
  get waiting(): number {
    return this.limit.waitingCount;
  }

  private perform(effects: readonly RateLimitEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'wake') this.timer.set(effect.atMs);
      else {
        const onAdmitted = this.admitted.get(effect.key);
        this.admitted.delete(effect.key);
        onAdmitted?.(effect.allowed);
      }
    }
  }
}
