/** How many requests with records a remote gets at a time from one node, over all lanes of all cursors; first come, first served. */

/** Somebody who sends: has a slot, or waits for one. */
export interface SlotTaker {
  hasSlot: boolean;
  run(): void;
}

export class Slots {
  /** Changed live; those that are out stay out. */
  limit = 16;
  private used = 0;
  private readonly waiting = new Set<SlotTaker>();

  get inUse(): number {
    return this.used;
  }

  /** Takes one for who has none, unless all are taken or others wait: then it waits, in the place it has. */
  take(taker: SlotTaker): boolean {
    if (taker.hasSlot) return true;
    if (this.waiting.size > 0 || this.used >= this.limit) {
      this.waiting.add(taker);
      return false;
    }
    this.used++;
    taker.hasSlot = true;
    return true;
  }

  /** Gives back what it has, or the place where it waits. */
  leave(taker: SlotTaker): void {
    this.waiting.delete(taker);
    if (!taker.hasSlot) return;
    taker.hasSlot = false;
    this.used--;
  }

  /** Those that have just got a slot. One that cannot use it leaves it to the next. */
  granted(): readonly SlotTaker[] {
    const granted: SlotTaker[] = [];
    for (const taker of this.waiting) {
      if (this.used >= this.limit) break;
      this.waiting.delete(taker);
      taker.hasSlot = true;
      this.used++;
      granted.push(taker);
    }
    return granted;
  }
}
