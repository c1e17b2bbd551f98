/** Flies what `SingleFlight` starts: everybody who asks gets the answer of a flight that began after the question. */
import { messageOf } from '../../errors.js';
import type { Clock } from '../../ports/index.js';
import { type FlightOptions, type FlightStart, SingleFlight } from '../../sender/index.js';

export type Flown<Answer> =
  | { readonly type: 'answer'; readonly answer: Answer }
  | { readonly type: 'paced'; readonly retryAfterMs: number }
  | { readonly type: 'failed'; readonly reason: string };

export class Flights<Answer> {
  private readonly flights: SingleFlight;
  private readonly askers = new Map<string, (flown: Flown<Answer>) => void>();
  private next = 1;

  constructor(
    options: FlightOptions,
    private readonly clock: Clock,
    private readonly work: (subject: string) => Promise<Answer>,
  ) {
    this.flights = new SingleFlight(options);
  }

  /** Does not reject. The flight goes on when nobody waits for it any more. */
  ask(subject: string): Promise<Flown<Answer>> {
    return new Promise((resolve) => {
      const asker = `${this.next++}`;
      const { starts, ...said } = this.flights.ask(subject, asker, this.clock.now());
      if (said.type === 'paced') resolve(said);
      else this.askers.set(asker, resolve);
      this.start(starts);
    });
  }

  private start(starts: readonly FlightStart[]): void {
    for (const { subject } of starts) void this.fly(subject);
  }

  private async fly(subject: string): Promise<void> {
    let flown: Flown<Answer>;
    try {
      flown = { type: 'answer', answer: await this.work(subject) };
    } catch (error) {
      flown = { type: 'failed', reason: messageOf(error) };
    }
    const ended = { isError: flown.type === 'failed', nowMs: this.clock.now() };
    const { answers, starts } = this.flights.ended(subject, ended);
    for (const asker of answers) {
      this.askers.get(asker)?.(flown);
      this.askers.delete(asker);
    }
    this.start(starts);
  }
}
