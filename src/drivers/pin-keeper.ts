/**
 * Moves the pin on a remote (R15): in each remote segment to the lowest durable checkpoint of all source segments that
 * touch it, whichever process replicates them, so that what has to be read back is never trimmed before.
 */
import { comparePositions } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import { isLegacy, type Layout, type Segment } from '../layout/index.js';
import type { CursorStore, RemotePin, RemoteTopicLayout } from '../ports/index.js';
import { overlaps } from '../ring/index.js';

export class PinKeeper {
  private readonly seenAt = new Map<number, SourcePosition>();
  private readonly movedTo = new Map<number, SourcePosition>();

  constructor(
    private readonly pin: RemotePin,
    private readonly cursors: CursorStore,
  ) {}

  /** Something was stored at this place of a remote segment. */
  seen(segmentId: number, at: SourcePosition): void {
    this.seenAt.set(segmentId, at);
  }

  /** The last places seen. */
  places(): ReadonlyMap<number, SourcePosition> {
    return new Map(this.seenAt);
  }

  async move(source: Layout, remote: RemoteTopicLayout): Promise<void> {
    const records = await this.cursors.load();
    const reading = [...source.segments.values()].filter(({ segmentId }) => records.get(segmentId)?.drained !== true);
    for (const segment of remote.segments.values()) {
      const { segmentId } = segment;
      const places = reading
        .filter((one) => touches(one, segment))
        .map((one) => records.get(one.segmentId)?.checkpoints.get(segmentId));
      const lowest = lowestOf(places);
      const moved = this.movedTo.get(segmentId);
      if (lowest === undefined || (moved !== undefined && comparePositions(lowest, moved) <= 0)) continue;
      await this.pin.move(segmentId, lowest);
      this.movedTo.set(segmentId, lowest);
    }
    for (const id of [...this.seenAt.keys()]) if (!remote.segments.has(id)) this.seenAt.delete(id);
    for (const id of [...this.movedTo.keys()]) if (!remote.segments.has(id)) this.movedTo.delete(id);
  }
}

function touches(source: Segment, remote: Segment): boolean {
  return isLegacy(source) || isLegacy(remote) || overlaps(source.range, remote.range);
}

/** Undefined when one of them has none, or there is none: nothing may be let go then. */
function lowestOf(places: readonly (SourcePosition | undefined)[]): SourcePosition | undefined {
  let lowest: SourcePosition | undefined;
  for (const place of places) {
    if (place === undefined) return undefined;
    if (lowest === undefined || comparePositions(place, lowest) < 0) lowest = place;
  }
  return lowest;
}
