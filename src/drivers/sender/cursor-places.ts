/**
 * Which cursors run on this node: one for each link of a parent and each partition of it that the node owns. Each begins
 * where the cursor was written last, and ends when the link or the partition goes.
 */
import { messageOf } from '../../errors.js';
import { Notifier } from '../../notifier.js';
import type { Clock, LinkCursors, ParentTopics, PartitionBacklog, StoredLink } from '../../ports/index.js';
import type { CursorReport, SenderInput } from '../../sender/index.js';
import type { SenderVoice } from './log.js';
import type { CursorPlace } from './machine-run.js';

const RETRY_MS = 1_000;
const LAG_MS = 5_000;
const PAUSED_LAG_MS = 30_000;

export interface PlacesParts {
  readonly cursors: LinkCursors;
  readonly parents: ParentTopics;
  readonly clock: Clock;
  readonly voice: SenderVoice;
  readonly links: ReadonlyMap<string, StoredLink>;
  readonly tell: (input: SenderInput) => void;
  readonly detach: (cursor: string) => void;
  readonly signal: AbortSignal;
}

interface Place extends CursorPlace {
  state: 'loading' | 'attached' | 'leaving';
  backlog?: PartitionBacklog;
  lagDueMs: number;
}

export class CursorPlaces {
  private readonly owned = new Map<string, Set<number>>();
  private readonly places = new Map<string, Place>();
  private readonly left = new Notifier();
  private next = 1;

  constructor(private readonly parts: PlacesParts) {}

  place(cursor: string): CursorPlace | undefined {
    return this.places.get(cursor);
  }

  backlog(cursor: string): PartitionBacklog | undefined {
    return this.places.get(cursor)?.backlog;
  }

  own(parent: string, partition: number): void {
    const partitions = this.owned.get(parent) ?? new Set();
    this.owned.set(parent, partitions.add(partition));
    this.reconcile();
  }

  /** Resolves once no cursor of the partition runs here any more; its cursors are written then. */
  async disown(parent: string, partition: number): Promise<void> {
    this.owned.get(parent)?.delete(partition);
    await this.gone((place) => place.link.parent === parent && place.partition === partition);
  }

  async disownAll(): Promise<void> {
    this.owned.clear();
    await this.gone(() => true);
  }

  /** Brings the cursors into line with links and partitions. */
  reconcile(): void {
    for (const place of this.places.values()) if (!this.isWanted(place)) this.leave(place);
    for (const link of this.parts.links.values()) {
      for (const partition of this.owned.get(link.parent) ?? []) {
        // One that still leaves is waited for: two would send the same records side by side.
        if ([...this.places.values()].some((place) => isSamePlace(place, link, partition))) continue;
        const cursor = `${link.child}/${partition}/${this.next++}`;
        const place: Place = { cursor, link, partition, state: 'loading', lagDueMs: 0 };
        this.places.set(cursor, place);
        void this.load(place);
      }
    }
  }

  detached(cursor: string): void {
    this.places.delete(cursor);
    this.left.wake();
    // Not at once: the links may be half taken in.
    queueMicrotask(() => this.reconcile());
  }

  /** Asks for the backlogs that are due to be known anew. */
  async refreshLag(reports: readonly CursorReport[]): Promise<void> {
    const { clock, parents, links } = this.parts;
    const asked = reports.map(async ({ cursor, offset }) => {
      const place = this.places.get(cursor);
      const link = place === undefined ? undefined : links.get(place.link.child);
      if (place === undefined || link === undefined || clock.now() < place.lagDueMs) return;
      place.lagDueMs = clock.now() + (link.paused ? PAUSED_LAG_MS : LAG_MS);
      place.backlog = await parents.backlog(link.parent, place.partition, offset);
    });
    // One that cannot be read keeps what was known.
    await Promise.allSettled(asked);
  }

  private isWanted({ link, partition }: Place): boolean {
    const { child, attachEpoch, parent } = link;
    return this.parts.links.get(child)?.attachEpoch === attachEpoch && this.owned.get(parent)?.has(partition) === true;
  }

  private leave(place: Place): void {
    const wasAttached = place.state === 'attached';
    if (place.state === 'loading') this.places.delete(place.cursor);
    place.state = 'leaving';
    if (wasAttached) this.parts.detach(place.cursor);
    this.left.wake();
  }

  private async load(place: Place): Promise<void> {
    const { cursors, clock, voice, tell, signal } = this.parts;
    const { cursor, link, partition } = place;
    const { child, parent, attachEpoch } = link;
    while (this.places.has(cursor) && place.state === 'loading') {
      try {
        const written = await cursors.read(child, attachEpoch, partition);
        if (!this.places.has(cursor) || place.state !== 'loading') return;
        // A partition that was added after the attach began empty.
        tell({ type: 'attach', cursor, child, partition, offset: written ?? link.startOffsets[partition] ?? 0 });
        place.state = 'attached';
        return;
      } catch (error) {
        const subject = { parent, partition, child, reason: messageOf(error) };
        voice.repeat({ type: 'cursorUnread', level: 'error', ...subject }, clock.now());
        await clock.sleep(RETRY_MS, signal).catch(() => undefined);
        if (signal.aborted) this.places.delete(cursor);
      }
    }
  }

  private async gone(isMeant: (place: Place) => boolean): Promise<void> {
    this.reconcile();
    while ([...this.places.values()].some(isMeant)) await this.left.changed(new AbortController().signal);
  }
}

function isSamePlace(place: Place, link: StoredLink, partition: number): boolean {
  const { child, attachEpoch } = place.link;
  return child === link.child && attachEpoch === link.attachEpoch && place.partition === partition;
}
