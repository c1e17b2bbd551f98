/**
 * One line that says how replication goes: rewritten in place on a terminal, a plain line every ten seconds where the
 * output is a file or a log. What happens in between is said on lines of its own.
 */
import type { StatusDocument } from './document.js';

/** What is used of `process.stdout`. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  /** Of the terminal. */
  readonly columns?: number;
  write(text: string): unknown;
}

/** How often a line is shown, in milliseconds. */
const TERMINAL_MS = 250;
const PLAIN_MS = 10_000;

const CLEAR = '\r\x1b[K';

export class Progress {
  private readonly isTerminal: boolean;
  private shownAtMs = Number.NEGATIVE_INFINITY;
  private line = '';
  private before: Moment | undefined;

  constructor(private readonly output: ProgressOutput) {
    this.isTerminal = output.isTTY === true;
  }

  /** Shows the state, unless the last one was shown too short a time ago. May be called as often as one likes. */
  show(document: StatusDocument): void {
    const { atMs } = document;
    if (atMs - this.shownAtMs < (this.isTerminal ? TERMINAL_MS : PLAIN_MS)) return;
    this.shownAtMs = atMs;
    const text = progressText(document, this.perSecond(document));
    if (this.isTerminal) this.draw(text);
    else this.output.write(`${text}\n`);
  }

  /** Says something on a line of its own. Control characters of foreign texts are left out. */
  say(text: string): void {
    this.output.write(`${this.isTerminal ? CLEAR : ''}${printable(text)}\n`);
    if (this.isTerminal) this.draw(this.line);
  }

  /** Takes the line off the terminal. */
  end(): void {
    if (this.isTerminal) this.output.write(CLEAR);
    this.line = '';
  }

  /** Cut to the width of the terminal, since a line that wraps cannot be rewritten. */
  private draw(text: string): void {
    this.line = text;
    this.output.write(CLEAR + text.slice(0, (this.output.columns ?? 80) - 1));
  }

  /** Entries a second, measured over a second at least so that the figure does not flicker. */
  private perSecond(document: StatusDocument): number {
    const now = { atMs: document.atMs, entries: entriesOf(document) };
    const { before } = this;
    if (before === undefined) {
      this.before = { ...now, rate: 0 };
      return 0;
    }
    const elapsedMs = now.atMs - before.atMs;
    if (elapsedMs < 1_000) return before.rate;
    // A topic that has left takes its count with it.
    const rate = Math.max(0, ((now.entries - before.entries) * 1_000) / elapsedMs);
    this.before = { ...now, rate };
    return rate;
  }
}

interface Moment {
  readonly atMs: number;
  readonly entries: number;
  readonly rate: number;
}

/** The line. `perSecond` is entries a second. */
export function progressText({ topics, creations = [] }: StatusDocument, perSecond: number): string {
  const directions = topics.flatMap((topic) => topic.directions);
  const segments = directions.flatMap((direction) => direction.segments);
  const converged = topics.filter(({ convergence }) => convergence.state === 'converged').length;
  const verbatim = sum(directions.map(({ counters }) => counters.verbatimEntries));
  const rebatched = sum(directions.map(({ counters }) => counters.rebatchedEntries));
  const backlog = sum(directions.map((direction) => direction.backlog ?? 0));
  const stuck = segments.filter(({ needsOperator }) => needsOperator).length;
  const incomplete = creations.filter(({ isReady }) => !isReady).length;
  const failed = directions.find(({ failure }) => failure !== undefined);
  return [
    `${converged} of ${topics.length} ${topics.length === 1 ? 'topic' : 'topics'} converged`,
    `${Math.round(perSecond)} entries/s`,
    `${verbatim} verbatim, ${rebatched} re-batched`,
    `backlog ${backlog}`,
    ...(stuck === 0 ? [] : [`${stuck} ${stuck === 1 ? 'segment needs' : 'segments need'} an operator`]),
    ...(incomplete === 0 ? [] : [`${incomplete} ${incomplete === 1 ? 'topic is' : 'topics are'} not on every cluster`]),
    ...(failed === undefined ? [] : [printable(`${failed.from} to ${failed.to}: ${failed.failure}`)]),
  ].join(' · ');
}

function entriesOf({ topics }: StatusDocument): number {
  const directions = topics.flatMap((topic) => topic.directions);
  return sum(directions.map(({ counters }) => counters.verbatimEntries + counters.rebatchedEntries));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Texts that come from elsewhere must not move the cursor. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ');
}
