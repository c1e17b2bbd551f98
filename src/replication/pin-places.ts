/**
 * Where the pin on a remote may stand (R15): in each remote segment at the lowest durable checkpoint of all source
 * segments that touch it, whichever process replicates them, so that what has to be read back is never trimmed before.
 */
import { comparePositions } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import { isLegacy, type Layout, type Segment } from '../layout/index.js';
import type { CursorRecord, RemoteTopicLayout } from '../ports/index.js';
import { overlaps } from '../ring/index.js';

/** By remote segment; one that is missing must keep everything. */
export function pinPlaces(
  source: Pick<Layout, 'segments'>,
  remote: Pick<RemoteTopicLayout, 'segments'>,
  records: ReadonlyMap<number, CursorRecord>,
): Map<number, SourcePosition> {
  const places = new Map<number, SourcePosition>();
  const reading = [...source.segments.values()].filter(({ segmentId }) => records.get(segmentId)?.drained !== true);
  for (const segment of remote.segments.values()) {
    const { segmentId } = segment;
    const lowest = lowestOf(
      reading
        .filter((one) => touches(one, segment))
        .map((one) => records.get(one.segmentId)?.checkpoints.get(segmentId)),
    );
    if (lowest !== undefined) places.set(segmentId, lowest);
  }
  return places;
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
