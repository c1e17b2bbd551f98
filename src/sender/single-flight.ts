/**
 * Work that many ask for and one does: a question that arrives while the work is under way must not have the answer of
 * it, because what is asked for may have changed since it began. It waits for the next, which all who wait share.
 */

export interface FlightOptions {
  /** A new one for the same subject starts so long after the last, at the earliest, unless somebody waited for it. */
  readonly paceMs: number;
  /** How many may be under way at a time, over all subjects. */
  readonly maxRunning: number;
}

/** Unshipped checks of a parent, on the leader. */
export const UNSHIPPED_FLIGHTS: FlightOptions = Object.freeze({ paceMs: 10_000, maxRunning: Number.POSITIVE_INFINITY });

/** Scans of a topic's backlog, on a member. */
export const BACKLOG_SCANS: FlightOptions = Object.freeze({ paceMs: 0, maxRunning: 2 });

export type FlightAnswer =
  /** The answer comes with a flight's end. */
  { readonly type: 'waits' } | { readonly type: 'paced'; readonly retryAfterMs: number };

/** A flight to be started. */
export interface FlightStart {
  readonly subject: string;
  readonly flight: number;
}

interface Subject {
  /** The number of the last that was started. */
  flight: number;
  isRunning: boolean;
  startedMs: number;
  /** Those whose answer is that of the present flight, and those whose answer is the next one's. */
  sharing: string[];
  waiting: string[];
}

export class SingleFlight {
  private readonly subjects = new Map<string, Subject>();
  /** Subjects that somebody waits for, and that there is no room for yet. */
  private readonly line: string[] = [];
  private running = 0;

  constructor(private readonly options: FlightOptions) {}

  /** Somebody asks, under a name. `starts` are to be started now. */
  ask(subject: string, asker: string, nowMs: number): FlightAnswer & { readonly starts: readonly FlightStart[] } {
    const state = this.subject(subject);
    const isIdle = !state.isRunning && state.waiting.length === 0;
    const retryAfterMs = state.startedMs + this.options.paceMs - nowMs;
    if (isIdle && retryAfterMs > 0) return { type: 'paced', retryAfterMs, starts: [] };
    state.waiting.push(asker);
    if (isIdle) this.line.push(subject);
    return { type: 'waits', starts: this.start(nowMs) };
  }

  /** A flight has ended; it is the answer to those named. One that ended in an error does not count for the pace. */
  ended(
    subject: string,
    { isError, nowMs }: { readonly isError: boolean; readonly nowMs: number },
  ): { readonly answers: readonly string[]; readonly starts: readonly FlightStart[] } {
    const state = this.subject(subject);
    if (!state.isRunning) return { answers: [], starts: [] };
    this.running--;
    state.isRunning = false;
    if (isError) state.startedMs = Number.NEGATIVE_INFINITY;
    const answers = state.sharing;
    state.sharing = [];
    if (state.waiting.length > 0) this.line.push(subject);
    return { answers, starts: this.start(nowMs) };
  }

  private start(nowMs: number): FlightStart[] {
    const starts: FlightStart[] = [];
    while (this.running < this.options.maxRunning) {
      const subject = this.line.shift();
      if (subject === undefined) break;
      const state = this.subject(subject);
      this.running++;
      state.isRunning = true;
      state.flight++;
      state.startedMs = nowMs;
      state.sharing = state.waiting;
      state.waiting = [];
      starts.push({ subject, flight: state.flight });
    }
    return starts;
  }

  private subject(name: string): Subject {
    const known = this.subjects.get(name);
    if (known !== undefined) return known;
    const fresh = { flight: 0, isRunning: false, startedMs: Number.NEGATIVE_INFINITY, sharing: [], waiting: [] };
    this.subjects.set(name, fresh);
    return fresh;
  }
}
