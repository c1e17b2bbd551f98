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
  /**
   * While a chunked message is incomplete here: the position before its first chunk, null when nothing precedes it;
   * absent when none is (R6).
   */
  readonly completeTo?: SourcePosition | null | undefined;
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
  /** Watermarks by producer. */
  readonly producers: Readonly<Record<string, string>>;
  /** Of the producers in the middle of a chunked message; absent when there are none. */
  readonly completeTo?: Readonly<Record<string, string | null>>;
}

/** The dedup state of one destination segment. */
export class DedupWindow {
  private readonly watermarks = new Map<string, SourcePosition>();
  /** Of the producers whose last accepted send left a chunked message incomplete. */
  private readonly completeTo = new Map<string, SourcePosition | null>();

  /** Decides about one send, and on `accept` moves the producer's watermark to it and remembers its `completeTo`. */
  offer(producer: string, { position, previous, lowestHash = 0, completeTo }: Offer): OfferAnswer {
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
    if (completeTo !== undefined) this.completeTo.set(producer, completeTo);
    else if (this.completeTo.size > 0) this.completeTo.delete(producer);
    return 'accept';
  }

  /** The last stored position of a producer; undefined when it has stored nothing here. */
  watermark(producer: string): SourcePosition | undefined {
    return this.watermarks.get(producer);
  }

  /**
   * What a segment that is sealed now has whole of a producer, and hands on (R13): its watermark, but no more than
   * precedes a chunked message that is incomplete in it, since chunks stay together and that message is sent again
   * from its first (R6). Undefined when that is nothing.
   */
  handedOn(producer: string): SourcePosition | undefined {
    const watermark = this.watermarks.get(producer);
    const completeTo = this.completeTo.get(producer);
    if (watermark === undefined || completeTo === null) return undefined;
    return completeTo !== undefined && comparePositions(completeTo, watermark) < 0 ? completeTo : watermark;
  }

  /** The window as plain JSON. */
  snapshot(): DedupSnapshot {
    const producers = [...this.watermarks].map(([producer, position]) => [producer, formatSourcePosition(position)]);
    const incomplete = [...this.completeTo].map(([producer, position]) => {
      return [producer, position === null ? null : formatSourcePosition(position)];
    });
    return {
      producers: Object.fromEntries(producers),
      ...(incomplete.length === 0 ? {} : { completeTo: Object.fromEntries(incomplete) }),
    };
  }

  /** A window from its snapshot. Throws `invalidPosition` or `invalidArgument`. */
  static restore(snapshot: unknown): DedupWindow {
    const { producers, completeTo = {} } = (snapshot ?? {}) as Partial<DedupSnapshot>;
    if (!isRecord(producers) || !isRecord(completeTo)) {
      throw new IsthmusError('invalidArgument', `dedup snapshot ${show(snapshot)}: it has an object of producers`);
    }
    const window = new DedupWindow();
    for (const [producer, text] of Object.entries(producers)) {
      window.watermarks.set(producer, parseSourcePosition(text));
    }
    for (const [producer, text] of Object.entries(completeTo)) {
      window.completeTo.set(producer, text === null ? null : parseSourcePosition(text));
    }
    return window;
  }

  /**
   * What the successor of sealed segments knows (R13). From one parent it takes all that is handed on; from several
   * the minimum over the parents that can have received from the producer, since a position above it may be missing in
   * another: a parent that does not know the producer counts as having stored nothing, unless the producer's source
   * range does not touch it. `sourceRange` tells that range; a producer of which nothing is told touches everything.
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
      const lowest = lowestWatermark(touched.map(({ window }) => window.handedOn(producer)));
      if (lowest !== undefined) child.watermarks.set(producer, lowest);
    }
    return child;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
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
