/** Events of a driver as async iterators: each reader gets all that happens from the moment it began to read. */

export class EventStream<T> {
  private readonly readers = new Set<{ queue: T[]; wake: (() => void) | undefined }>();
  private closed = false;

  emit(event: T): void {
    for (const reader of this.readers) {
      reader.queue.push(event);
      reader.wake?.();
    }
  }

  /** Ends every reader once it has taken what is queued. */
  close(): void {
    this.closed = true;
    for (const reader of this.readers) reader.wake?.();
  }

  async *read(): AsyncGenerator<T, void, undefined> {
    const reader: { queue: T[]; wake: (() => void) | undefined } = { queue: [], wake: undefined };
    this.readers.add(reader);
    try {
      for (;;) {
        while (reader.queue.length > 0) yield reader.queue.shift() as T;
        if (this.closed) return;
        await new Promise<void>((resolve) => {
          reader.wake = resolve;
        });
      }
    } finally {
      this.readers.delete(reader);
    }
  }
}
