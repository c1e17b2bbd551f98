/** Moves the pin on a remote to where it may stand (R15), and knows where remote segments were last seen to end. */
import { comparePositions } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import type { Layout } from '../layout/index.js';
import type { CursorStore, RemotePin, RemoteTopicLayout } from '../ports/index.js';
import { pinPlaces } from '../replication/index.js';

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
    for (const [segmentId, place] of pinPlaces(source, remote, await this.cursors.load())) {
      const moved = this.movedTo.get(segmentId);
      if (moved !== undefined && comparePositions(place, moved) <= 0) continue;
      await this.pin.move(segmentId, place);
      this.movedTo.set(segmentId, place);
    }
    for (const id of [...this.seenAt.keys()]) if (!remote.segments.has(id)) this.seenAt.delete(id);
    for (const id of [...this.movedTo.keys()]) if (!remote.segments.has(id)) this.movedTo.delete(id);
  }
}
