/** The newest value of a stream, for those who need it now and for those who wait for the next. */
import { Notifier } from '../notifier.js';

export class Latest<T> {
  private current: T | undefined;
  private readonly notifier = new Notifier();

  /** Undefined until there is one. */
  get value(): T | undefined {
    return this.current;
  }

  set(value: T): void {
    this.current = value;
    this.wake();
  }

  /** Lets everybody who waits look again. */
  wake(): void {
    this.notifier.wake();
  }

  /** Resolves with the first value, present or later, that `accept` takes; rejects when the signal aborts. */
  async when(accept: (value: T) => boolean, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const { current } = this;
      if (current !== undefined && accept(current)) return current;
      await this.notifier.changed(signal);
    }
  }

  /** Follows a stream until it ends. */
  async follow(stream: AsyncIterable<T>): Promise<void> {
    for await (const value of stream) this.set(value);
  }
}
