/**
 * The slow-path budget of a process: replicators of all topics share one, wait here before they open a batch, and give
 * back when they have. Verbatim forwarding never comes here.
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
import { Timer } from './timer.js';

/** One budget for all replicators of a process. */
export class SlowPath {
  private readonly budget: SlowPathBudget;
  private readonly granted = new Map<string, () => void>();
  private readonly timer: Timer;

  /** Throws `invalidArgument` for a rate, a size or a number of slots that would allow nothing. */
  constructor(
    options: BudgetOptions = {},
    private readonly clock: Clock = systemClock,
  ) {
    this.budget = new SlowPathBudget(options, clock.now());
    this.timer = new Timer(clock, () => this.perform(this.budget.tick(this.clock.now())));
  }

  /** Calls `onGranted`, at once or later, when the budget has a slot and this many bytes for a key; one operation a key. */
  acquire(key: string, bytes: number, onGranted: () => void): void {
    const effects = this.budget.acquire(key, bytes, this.clock.now());
    this.granted.set(key, onGranted);
    this.perform(effects);
  }

  /** Ends the operation of a key: gives its slot back, or takes it out of the line with nothing charged. */
  release(key: string): void {
    this.granted.delete(key);
    this.perform(this.budget.release(key, this.clock.now()));
  }

  /** Forgets how long a key has waited, when its segment is gone. */
  forget(key: string): void {
    this.granted.delete(key);
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

  private perform(effects: readonly BudgetEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'wake') this.timer.set(effect.atMs);
      else {
        const onGranted = this.granted.get(effect.key);
        this.granted.delete(effect.key);
        onGranted?.();
      }
    }
  }
}
