/** What all parts of a node's sender share: the time, the effects, who is to be run next, and the requests that are out. */
import { Agenda } from './agenda.js';
import type { Compress } from './chunk.js';
import type { SenderEffect, SenderLog } from './events.js';
import type { GateWaiter } from './gate.js';
import type { HeldBudget } from './held.js';
import type { HttpOutcome, Jitter } from './ports.js';

/** Told of at the end of a step in which something of it may have changed. */
export interface Observed {
  tell(): void;
}

type RequestEffect = Extract<SenderEffect, { readonly type: 'request' }>;

export class Hub {
  nowMs = 0;
  readonly agenda = new Agenda();
  private effects: SenderEffect[] = [];
  private readonly ready = new Set<GateWaiter>();
  private readonly touched = new Set<Observed>();
  private readonly requests = new Map<number, (outcome: HttpOutcome) => void>();
  private nextRequest = 1;

  constructor(
    readonly random: Jitter,
    readonly held: HeldBudget,
    readonly compress: Compress,
  ) {}

  emit(effect: SenderEffect): void {
    this.effects.push(effect);
  }

  log(entry: SenderLog): void {
    this.emit({ type: 'log', entry });
  }

  /** To be run in this step. */
  run(who: GateWaiter): void {
    this.ready.add(who);
  }

  touch(who: Observed): void {
    this.touched.add(who);
  }

  request(request: Omit<RequestEffect, 'type' | 'id'>, answered: (outcome: HttpOutcome) => void): void {
    const id = this.nextRequest++;
    this.requests.set(id, answered);
    this.emit({ type: 'request', id, ...request });
  }

  /** Takes the answer to where it is waited for; false when nobody waits. */
  answered(id: number, outcome: HttpOutcome): boolean {
    const answered = this.requests.get(id);
    this.requests.delete(id);
    answered?.(outcome);
    return answered !== undefined;
  }

  /** Runs all that is to be run, and what becomes ready by it: `more` says who. */
  settle(more: () => Iterable<GateWaiter>): void {
    for (;;) {
      for (let due = this.agenda.take(this.nowMs); due; due = this.agenda.take(this.nowMs)) this.ready.add(due);
      for (const who of this.ready) {
        this.ready.delete(who);
        who.run();
      }
      for (const who of more()) this.ready.add(who);
      if (this.ready.size === 0) break;
    }
    for (const who of this.touched) who.tell();
    this.touched.clear();
  }

  takeEffects(): readonly SenderEffect[] {
    const { effects } = this;
    this.effects = [];
    return effects;
  }
}
