/** Lets tasks wait until something has changed, and look again for themselves. */
export class Notifier {
  private waiting: (() => void)[] = [];

  /** Wakes everybody who waits now. */
  wake(): void {
    const { waiting } = this;
    // Often nobody waits, and every entry that is stored comes by here.
    if (waiting.length === 0) return;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves at the next `wake`; rejects when the signal aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      this.waiting.push(() => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
    });
  }
}
