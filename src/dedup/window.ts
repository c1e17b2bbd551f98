/**
 * What one destination segment knows of the producers that replicate into it: for each the position of the last
 * send it stored. Sends of one producer come in ascending position, so that one watermark decides (R12); a send also
 * names the one before it, so that a failed head is not overtaken and then taken for a duplicate (R12b).
 */
import { formatSourcePosition, parseSourcePosition, type SourcePosition } from '../entry/index.js';
import { IsthmusError, show } from '../errors.js';
import { FULL_RANGE, type HashRange, overlaps, RING_END } from '../ring/index.js';
import { comparePositions, isSameEntry } from './order.js';

/** A send that asks to be stored. */
export interface Offer {
  readonly position: SourcePosition;
  /** The position sent just before in this lane since it was opened or rewound; absent on the first send. */
  readonly previous?: SourcePosition | undefined;
  /** The lowest bucket hash among its messages, 0..0xFFFF; without it the send may hold any (R11). */
  readonly lowestHash?: number | undefined;
}

/**
 * - `accept`: store it; the watermark has moved.
 * - `duplicate`: it is stored already; acknowledge it, store nothing.
 * - `gap`: the send before it is not stored; store nothing, the lane rewinds to its first unsettled send (R12b).
 * - `partial`: its messages with a bucket hash of at most `partial` are stored already; store nothing, the lane drops
 *   them and offers the rest at the same position (R11).
 */
export type OfferAnswer = 'accept' | 'duplicate' | 'gap' | { readonly partial: number };

/** The stored form of a window: plain JSON, positions as text in the form of E10. */
export interface DedupSnapshot {
  readonly producers: Readonly<Record<string, string>>;
}

/** The dedup state of one destination segment. */
export class DedupWindow {
  private readonly watermarks = new Map<string, SourcePosition>();

  /** Decides about one send, and on `accept` moves the producer's watermark to it. */
  offer(producer: string, { position, previous, lowestHash = 0 }: Offer): OfferAnswer {
    const watermark = this.watermarks.get(producer);
    if (watermark === undefined) {
      if (previous !== undefined) return 'gap';
    } else {
      if (comparePositions(position, watermark) <= 0) return 'duplicate';
      if (previous !== undefined && comparePositions(watermark, previous) < 0) return 'gap';
      if (isSameEntry(position, watermark)) {
        // Not a duplicate, so the watermark is a part that ends before this one: an earlier, finer attempt.
        const stored = watermark.part ?? RING_END;
        if (stored >= lowestHash) return { partial: stored };
      }
    }
    this.watermarks.set(producer, position);
    return 'accept';
  }

  /** The last stored position of a producer; undefined when it has stored nothing here. */
  watermark(producer: string): SourcePosition | undefined {
    return this.watermarks.get(producer);
  }

  /** The window as plain JSON. */
  snapshot(): DedupSnapshot {
    const entries = [...this.watermarks].map(([producer, position]) => [producer, formatSourcePosition(position)]);
    return { producers: Object.fromEntries(entries) };
  }

  /** A window from its snapshot. Throws `invalidPosition` or `invalidArgument`. */
  static restore(snapshot: unknown): DedupWindow {
    const producers = (snapshot as Partial<DedupSnapshot> | null | undefined)?.producers;
    if (typeof producers !== 'object' || producers === null) {
      throw new IsthmusError('invalidArgument', `dedup snapshot ${show(snapshot)}: it has an object of producers`);
    }
    const window = new DedupWindow();
    for (const [producer, text] of Object.entries(producers)) {
      window.watermarks.set(producer, parseSourcePosition(text));
    }
    return window;
  }

  /**
   * What the successor of sealed segments knows (R13). From one parent it takes all; from several the minimum over
   * the parents that can have received from the producer, since a position above it may be missing in another: a
   * parent that does not know the producer counts as having stored nothing, unless the producer's source range does
   * not touch it. `sourceRange` tells that range; a producer of which nothing is told touches everything.
   */
  static inherit(
    parents: readonly { readonly window: DedupWindow; readonly range: HashRange }[],
    options: { readonly sourceRange?: (producer: string) => HashRange | undefined } = {},
  ): DedupWindow {
    const child = new DedupWindow();
    const producers = new Set(parents.flatMap(({ window }) => [...window.watermarks.keys()]));
    for (const producer of producers) {
      const source = options.sourceRange?.(producer) ?? FULL_RANGE;
      const touched = parents.filter(({ window, range }) => window.watermarks.has(producer) || overlaps(source, range));
      const lowest = lowestWatermark(touched.map(({ window }) => window.watermarks.get(producer)));
      if (lowest !== undefined) child.watermarks.set(producer, lowest);
    }
    return child;
  }
}

/** Undefined when any of them is: nothing is below every position. */
function lowestWatermark(watermarks: readonly (SourcePosition | undefined)[]): SourcePosition | undefined {
  let lowest: SourcePosition | undefined;
  for (const watermark of watermarks) {
    if (watermark === undefined) return undefined;
    if (lowest === undefined || comparePositions(watermark, lowest) < 0) lowest = watermark;
  }
  return lowest;
}
