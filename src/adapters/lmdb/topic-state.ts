/**
 * What the parts of one topic share: its rows as they are stored, and who waits for them to change. The tables alone
 * are true, since another process may write them too; only the parsed layout is kept, beside the text it came from.
 */
import { IsthmusError, show } from '../../errors.js';
import { type Layout, parseLayout } from '../../layout/index.js';
import { Notifier } from '../../notifier.js';
import type { StoredEntry } from '../../ports/index.js';
import { entryKey, positionOf } from './entry-keys.js';
import type { Environment, SegmentRow, TopicRow } from './environment.js';
import type { WriteQueue } from './write-queue.js';

/** Limits on what is read in one go. */
export interface PageLimits {
  readonly maxEntries: number;
  readonly maxBytes: number;
}

/** One open topic. */
export class TopicState {
  readonly id: number;
  readonly cluster: string;
  /** Woken when this process has changed the layout. */
  readonly layoutChanged = new Notifier();
  private readonly segmentsChanged = new Map<number, Notifier>();
  private parsed: { readonly text: string; readonly layout: Layout } | undefined;

  constructor(
    readonly name: string,
    row: TopicRow,
    readonly maxEntryBytes: number,
    readonly environment: Environment,
    readonly queue: WriteQueue,
  ) {
    this.id = row.id;
    this.cluster = row.cluster;
  }

  /** The layout as it is stored now; within a transaction, as that has it. */
  layout(): Layout {
    const text = this.environment.tables.layouts.get(this.id);
    if (text === undefined) throw new IsthmusError('invalidLayout', `topic ${show(this.name)}: its layout is gone`);
    if (this.parsed?.text !== text) this.parsed = { text, layout: parseLayout(JSON.parse(text)) };
    return this.parsed.layout;
  }

  /** A segment that exists. Throws `invalidArgument` for any other. */
  segment(segmentId: number): SegmentRow {
    const row = this.environment.tables.segments.get([this.id, segmentId]);
    if (row === undefined || row.state === 'deleted') throw unknownSegment(this.name, segmentId);
    return row;
  }

  /** Woken when this process has stored in a segment, or sealed or deleted it. */
  segmentChanged(segmentId: number): Notifier {
    let notifier = this.segmentsChanged.get(segmentId);
    if (notifier === undefined) {
      notifier = new Notifier();
      this.segmentsChanged.set(segmentId, notifier);
    }
    return notifier;
  }

  wakeSegments(segmentIds: Iterable<number>): void {
    for (const segmentId of segmentIds) this.segmentsChanged.get(segmentId)?.wake();
  }

  /** Wakes whoever waits for deleted segments, for the last time. */
  forgetSegments(segmentIds: Iterable<number>): void {
    for (const segmentId of segmentIds) {
      this.segmentsChanged.get(segmentId)?.wake();
      this.segmentsChanged.delete(segmentId);
    }
  }

  /** Wakes everybody, to look again or to find the store closed. */
  wakeAll(): void {
    this.layoutChanged.wake();
    this.wakeSegments(this.segmentsChanged.keys());
  }

  /** The layout now, and again after each change by this process, until the signal aborts. */
  async *layouts<T>(signal: AbortSignal, view: (layout: Layout) => T): AsyncGenerator<T, void, undefined> {
    for (let seen: Layout | undefined; !signal.aborted; ) {
      const layout = this.layout();
      if (layout.epoch !== seen?.epoch) {
        seen = layout;
        yield view(layout);
      } else {
        await this.layoutChanged.changed(signal);
      }
    }
  }

  /** Entries `from` to `to`, without `to`, as copies: as many as the limits let through, and one in any case. */
  page(segmentId: number, from: number, to: number, { maxEntries, maxBytes }: PageLimits): StoredEntry[] {
    const page: StoredEntry[] = [];
    const start = entryKey(this.id, segmentId, from);
    const end = entryKey(this.id, segmentId, Math.min(to, from + maxEntries));
    let bytes = 0;
    for (const { value } of this.environment.tables.entries.getRange({ start, end })) {
      bytes += value.length;
      if (page.length > 0 && bytes > maxBytes) break;
      page.push({ position: positionOf(segmentId, from + page.length), bytes: value });
    }
    return page;
  }
}

export function unknownSegment(topic: string, segmentId: number): IsthmusError {
  return new IsthmusError('invalidArgument', `segment ${show(segmentId)}: topic ${show(topic)} has no such segment`);
}
