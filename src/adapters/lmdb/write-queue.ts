/**
 * The one way into the store: whatever waits is put into one transaction, in order, and settled in that order once it
 * is on the disk. So a sync is paid by all who wait for it, and a message costs no promise of its own.
 */
import { IsthmusError, messageOf } from '../../errors.js';
import { type Environment, isCommitFailure } from './environment.js';
import { WriteTransaction } from './write-transaction.js';

/** Something to be done in a transaction. */
export interface Work<T> {
  /** About how much it writes, in bytes. */
  readonly bytes: number;
  /** Runs within the transaction. An `IsthmusError` refuses this work alone, so it is thrown before anything changes. */
  run(transaction: WriteTransaction): T;
  /** It is on the disk. */
  done(result: T): void;
  /** It was refused, or is not known to be on the disk. */
  failed(error: unknown): void;
}

/** The store takes no writes any more: nothing of this work was stored. */
export class StoreStopped extends Error {}

/** Bounds on one transaction: this thread waits while its entries are copied. */
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_WORKS = 4096;

/** The outcome of one work within a transaction. */
type Outcome = { readonly result: unknown } | { readonly refused: IsthmusError };

/** The queue of one store. */
export class WriteQueue {
  private waiting: Work<unknown>[] = [];
  private running: Promise<void> | undefined;
  private stopped: StoreStopped | undefined;
  /** How much of what waits is still done; bounded once the store is being closed. */
  private accepted = Number.POSITIVE_INFINITY;

  constructor(private readonly environment: Environment) {}

  /** Puts work at the end of the queue. It is settled later, in any case. */
  submit<T>(work: Work<T>): void {
    this.waiting.push(work as Work<unknown>);
    this.running ??= this.drain();
  }

  /** Runs work in a transaction; resolves when it is on the disk. */
  transact<T>(run: (transaction: WriteTransaction) => T): Promise<T> {
    return new Promise((done, failed) => this.submit({ bytes: 0, run, done, failed }));
  }

  /** Does what waits now, refuses what comes later, and resolves when all that is settled. */
  async stop(): Promise<void> {
    this.accepted = Math.min(this.accepted, this.waiting.length);
    await this.running;
  }

  private async drain(): Promise<void> {
    // What is submitted in this turn comes along.
    await undefined;
    while (this.waiting.length > 0) {
      if (this.accepted === 0) this.stopped ??= new StoreStopped(`the store ${this.environment.folder} is closed`);
      if (this.stopped === undefined) await this.commit();
      else this.refuseAll(this.stopped);
    }
    this.running = undefined;
  }

  private async commit(): Promise<void> {
    let batch: Work<unknown>[] = [];
    const outcomes: Outcome[] = [];
    try {
      await this.environment.transaction((tables) => {
        batch = this.take();
        const transaction = new WriteTransaction(tables);
        for (const work of batch) outcomes.push(attempt(work, transaction));
        transaction.flush();
      });
    } catch (error) {
      // Later transactions would build on a disk of which nobody knows what it holds.
      if (isCommitFailure(error)) this.stopped ??= stoppedBy(error);
      for (const work of batch) settle(() => work.failed(error));
      if (batch.length === 0) this.refuseAll(error);
      return;
    }
    for (const [i, outcome] of outcomes.entries()) settleOutcome(batch[i] as Work<unknown>, outcome);
  }

  /** From the head of the queue, at least one. */
  private take(): Work<unknown>[] {
    let bytes = 0;
    let count = 0;
    for (const work of this.waiting) {
      bytes += work.bytes;
      if (count > 0 && (bytes > MOST_BYTES || count === MOST_WORKS || count === this.accepted)) break;
      count++;
    }
    this.accepted -= count;
    return this.waiting.splice(0, count);
  }

  private refuseAll(error: unknown): void {
    const refused = this.waiting;
    this.waiting = [];
    for (const work of refused) settle(() => work.failed(error));
  }
}

function attempt(work: Work<unknown>, transaction: WriteTransaction): Outcome {
  try {
    return { result: work.run(transaction) };
  } catch (error) {
    if (error instanceof IsthmusError) return { refused: error };
    throw error;
  }
}

function settleOutcome(work: Work<unknown>, outcome: Outcome): void {
  settle(() => ('refused' in outcome ? work.failed(outcome.refused) : work.done(outcome.result)));
}

/** A listener that throws is a defect of its own: the others are told all the same. */
function settle(tell: () => void): void {
  try {
    tell();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function stoppedBy(error: unknown): StoreStopped {
  const reason = messageOf(error);
  return new StoreStopped(`the store takes no more writes until it is opened again: ${reason}`, { cause: error });
}
