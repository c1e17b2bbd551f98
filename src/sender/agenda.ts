/** Who is to be run when: at most one time for each. */
import type { GateWaiter } from './gate.js';

interface Entry {
  readonly who: GateWaiter;
  readonly atMs: number;
}

/** A binary heap. An entry whose time was changed stays in it until its own time, and is passed over then. */
export class Agenda {
  private readonly times = new Map<GateWaiter, number>();
  private readonly heap: Entry[] = [];

  set(who: GateWaiter, atMs: number): void {
    if (this.times.get(who) === atMs) return;
    this.times.set(who, atMs);
    this.heap.push({ who, atMs });
    this.rise(this.heap.length - 1);
  }

  delete(who: GateWaiter): void {
    this.times.delete(who);
  }

  get firstMs(): number | undefined {
    this.dropChanged();
    return this.heap[0]?.atMs;
  }

  /** Takes out the next one whose time has come. */
  take(nowMs: number): GateWaiter | undefined {
    this.dropChanged();
    const first = this.heap[0];
    if (first === undefined || first.atMs > nowMs) return undefined;
    this.times.delete(first.who);
    this.pop();
    return first.who;
  }

  private dropChanged(): void {
    for (let first = this.heap[0]; first !== undefined; first = this.heap[0]) {
      if (this.times.get(first.who) === first.atMs) return;
      this.pop();
    }
  }

  private pop(): void {
    const last = this.heap.pop();
    if (last === undefined || this.heap.length === 0) return;
    this.heap[0] = last;
    this.sink();
  }

  private rise(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.atMs(parent) <= this.atMs(at)) return;
      this.swap(at, parent);
      at = parent;
    }
  }

  private sink(): void {
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const least = this.atMs(left + 1) < this.atMs(left) ? left + 1 : left;
      if (this.atMs(least) >= this.atMs(at)) return;
      this.swap(at, least);
      at = least;
    }
  }

  private atMs(index: number): number {
    return this.heap[index]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  private swap(a: number, b: number): void {
    const kept = this.heap[a] as Entry;
    this.heap[a] = this.heap[b] as Entry;
    this.heap[b] = kept;
  }
}
