/** Holds events back until the code that awaits an opening has run: what it opened is then in its hands. */

export class Gate {
  private held: (() => void)[] | undefined = [];

  /** Lets through what is held, and all that follows, once this turn of the event loop is over. */
  open(): void {
    setImmediate(() => {
      const held = this.held ?? [];
      this.held = undefined;
      for (const event of held) event();
    });
  }

  pass(event: () => void): void {
    if (this.held === undefined) event();
    else this.held.push(event);
  }
}
