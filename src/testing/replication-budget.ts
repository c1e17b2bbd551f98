/**
 * The slow-path budget of one cluster of a simulated world, in virtual time, with a second bookkeeping beside it: over
 * any span of time no more is granted than the rate and the burst allow, but for the debt of one entry larger than the
 * burst.
 */
import { SlowPathBudget } from '../replication/index.js';
import { BrokenInvariant } from './convergence-invariants.js';
import type { VirtualClock } from './virtual-clock.js';

export interface WorldBudgetOptions {
  readonly bytesPerSecond: number;
  readonly burstBytes: number;
  readonly slots: number;
}

export class WorldBudget {
  private readonly budget: SlowPathBudget;
  /** By key: how many bytes it asked for, and whom to tell. */
  private readonly asked = new Map<string, { readonly bytes: number; readonly onGranted: () => void }>();
  /** By key: the bytes that were granted and not given back. */
  private readonly held = new Map<string, number>();
  private cancelTick: () => void = () => undefined;
  private level: number;
  private settledMs: number;

  constructor(
    private readonly options: WorldBudgetOptions,
    private readonly clock: VirtualClock,
  ) {
    this.budget = new SlowPathBudget(options, clock.nowMs);
    this.level = options.burstBytes;
    this.settledMs = clock.nowMs;
  }

  acquire(key: string, bytes: number, onGranted: () => void): void {
    this.asked.set(key, { bytes, onGranted });
    this.perform(this.budget.acquire(key, bytes, this.clock.nowMs));
  }

  release(key: string): void {
    this.asked.delete(key);
    this.held.delete(key);
    this.perform(this.budget.release(key, this.clock.nowMs));
  }

  /** The bytes that a key may open now. */
  heldBy(key: string): number | undefined {
    return this.held.get(key);
  }

  private perform(effects: ReturnType<SlowPathBudget['tick']>): void {
    for (const effect of effects) {
      if (effect.type === 'wake') {
        this.cancelTick();
        const { clock } = this;
        const waitMs = Math.max(0, Math.ceil(effect.atMs - clock.nowMs));
        this.cancelTick = clock.schedule(waitMs, () => this.perform(this.budget.tick(clock.nowMs)));
        continue;
      }
      const waiting = this.asked.get(effect.key);
      this.asked.delete(effect.key);
      if (waiting === undefined) continue;
      this.charge(effect.key, waiting.bytes);
      waiting.onGranted();
    }
  }

  private charge(key: string, bytes: number): void {
    const { bytesPerSecond, burstBytes, slots } = this.options;
    const { nowMs } = this.clock;
    this.level = Math.min(burstBytes, this.level + ((nowMs - this.settledMs) * bytesPerSecond) / 1_000);
    this.settledMs = nowMs;
    // A millisecond of grace: timers go by whole ones.
    if (this.level + bytesPerSecond / 1_000 < Math.min(bytes, burstBytes)) {
      throw new BrokenInvariant(`budget: ${bytes} bytes are granted to ${key} with ${this.level} to spend`);
    }
    this.level -= bytes;
    this.held.set(key, bytes);
    if (this.held.size > slots) throw new BrokenInvariant(`budget: ${this.held.size} operations hold ${slots} slots`);
  }
}
