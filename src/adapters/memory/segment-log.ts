/**
 * What a topic keeps of one segment: the entries that are not trimmed yet, the dedup window, and how far each
 * subscription has come. A place is the number of entries ever written before it, trimmed ones included.
 */
import type { DedupWindow } from '../../dedup/index.js';
import { type EntryBuffers, encodeMessage, joinBuffers, type SourcePosition } from '../../entry/index.js';
import { Notifier } from '../../notifier.js';
import type { StoredEntry } from '../../ports/index.js';

/** The type of the marker that a barrier is: a number that no client and no broker gives a meaning. */
export const BARRIER_MARKER_TYPE = 1000;

/** An open producer, as the segment sees it: who holds a name, and what its connection's end does to it. */
export interface NameHolder {
  readonly sourceCluster: string;
  /** The connection has ended: from now on its sends are ambiguous. */
  cut(): void;
}

export class SegmentLog {
  readonly ledgerId: bigint;
  /** The entries that are stored and not trimmed, in order. */
  readonly entries: StoredEntry[] = [];
  /** Takes no more writes, for good. */
  sealed = false;
  /** Not among the topic's segments any more; what is left is for reads that began before. */
  pruned = false;
  /** Who sends here, by producer name: each name is a lock (R14). */
  readonly producers = new Map<string, NameHolder>();
  /** Wakes readers when an entry is stored, and at the seal. */
  readonly changed = new Notifier();
  /** The place of the first entry that is not trimmed. */
  private first = 0;
  /** Places of barriers, ascending. */
  private readonly barriers: number[] = [];
  /** The place of each subscription, by name: that of its first entry not acknowledged. */
  private readonly places = new Map<string, number>();

  constructor(
    segmentId: number,
    /** Set when the segment enters the layout: by then its parents take no more sends. */
    public window: DedupWindow,
  ) {
    this.ledgerId = BigInt(segmentId);
  }

  /** The place behind the last entry. */
  get end(): number {
    return this.first + this.entries.length;
  }

  /** The place of the first entry that can still be read. */
  get start(): number {
    return this.first;
  }

  /** Stores an entry, and copies its bytes. */
  append(buffers: EntryBuffers): SourcePosition {
    const position = { ledgerId: this.ledgerId, entryId: BigInt(this.end) };
    this.entries.push({ position, bytes: joinBuffers(buffers) });
    this.changed.wake();
    return position;
  }

  /** Stores an entry that consumers never see. */
  appendBarrier(producerName: string): SourcePosition {
    const outer = { producerName, sequenceId: 0n, publishTimeMs: 0, markerType: BARRIER_MARKER_TYPE };
    this.barriers.push(this.end);
    return this.append(encodeMessage(new Uint8Array(0), { outer, stamp: false }));
  }

  /** Ends writes, and lets the readers that wait see it. */
  seal(): void {
    if (this.sealed) return;
    this.sealed = true;
    this.changed.wake();
  }

  /** The position of the entry before a place; undefined at the segment's start. */
  positionBefore(place: number): SourcePosition | undefined {
    return place === 0 ? undefined : { ledgerId: this.ledgerId, entryId: BigInt(place - 1) };
  }

  /** The place behind a position, wherever that lies; 0 without one. */
  placeBehind(position: SourcePosition | undefined): number {
    if (position === undefined || position.ledgerId < this.ledgerId) return 0;
    return position.ledgerId === this.ledgerId ? Number(position.entryId) + 1 : Number.POSITIVE_INFINITY;
  }

  /** The entries from one place to before another, as far as they are stored. */
  slice(from: number, to: number): StoredEntry[] {
    return this.entries.slice(Math.max(0, from - this.first), Math.max(0, to - this.first));
  }

  /** The place of a subscription. */
  place(subscription: string): number {
    return this.places.get(subscription) ?? 0;
  }

  /** Moves a subscription forward; one that is further already stays. */
  acknowledge(subscription: string, place: number): void {
    this.places.set(subscription, Math.max(this.place(subscription), Math.min(place, this.end)));
  }

  forget(subscription: string): void {
    this.places.delete(subscription);
  }

  /** Entries that a subscription has not acknowledged; barriers are none. */
  backlog(subscription: string): number {
    const from = Math.max(this.first, this.place(subscription));
    return this.end - from - this.barriers.filter((place) => place >= from).length;
  }

  /**
   * Drops the entries before a place, and returns how many. What a subscription has not acknowledged stays, unless
   * forced: then the subscriptions move.
   */
  trim(place: number, subscriptions: Iterable<string>, force: boolean): number {
    let to = Math.min(place, this.end);
    for (const subscription of subscriptions) {
      if (force) this.acknowledge(subscription, to);
      else to = Math.min(to, this.place(subscription));
    }
    const dropped = Math.max(0, to - this.first);
    this.entries.splice(0, dropped);
    this.first += dropped;
    return dropped;
  }
}
