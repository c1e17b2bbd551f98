/**
 * The bytes of records that a node keeps in memory of its own while lanes wait, so that a long outage pins nothing of the
 * parent's log; first come, first served. A budget of 0 or less holds nothing.
 */
export class HeldBudget {
  private used = 0;

  constructor(private readonly limit: number) {}

  get bytes(): number {
    return this.used;
  }

  take(bytes: number): boolean {
    if (this.limit <= 0 || this.used + bytes > this.limit) return false;
    this.used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.used -= bytes;
  }
}
