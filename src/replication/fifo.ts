/** A queue whose both ends cost the same however long it is. */
export class Fifo<T> {
  private arrived: T[] = [];
  /** What leaves first, last in the array; filled from `arrived` when it is empty. */
  private leaving: T[] = [];

  get size(): number {
    return this.arrived.length + this.leaving.length;
  }

  push(item: T): void {
    this.arrived.push(item);
  }

  shift(): T | undefined {
    if (this.leaving.length === 0) {
      this.leaving = this.arrived.reverse();
      this.arrived = [];
    }
    return this.leaving.pop();
  }

  /** Takes everything out, in order. */
  takeAll(): T[] {
    const all = [...this.leaving.reverse(), ...this.arrived];
    this.arrived = [];
    this.leaving = [];
    return all;
  }
}
