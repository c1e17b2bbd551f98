/**
 * What one transaction knows of segments while it runs. Rows and windows are read at most once and written once at
 * the end, however many entries the transaction stores: the entries themselves are most of its cost.
 */
import { DedupWindow } from '../../dedup/index.js';
import type { SegmentRow, Tables } from './environment.js';

/** A segment within the transaction. */
interface TouchedSegment {
  row: SegmentRow | undefined;
  changed: boolean;
  /** Windows of single producers, with whether they have changed. */
  readonly windows: Map<string, { readonly window: DedupWindow; changed: boolean }>;
}

/** One running transaction. Other processes cannot write meanwhile, so what it has read stays true. */
export class WriteTransaction {
  private readonly topics = new Map<number, Map<number, TouchedSegment>>();

  constructor(readonly tables: Tables) {}

  /** A segment's row; undefined when there is none. */
  segment(topicId: number, segmentId: number): SegmentRow | undefined {
    return this.touched(topicId, segmentId).row;
  }

  /** Without a row, the segment is gone. */
  putSegment(topicId: number, segmentId: number, row: SegmentRow | undefined): void {
    const touched = this.touched(topicId, segmentId);
    touched.row = row;
    touched.changed = true;
  }

  /** What a segment knows of one producer. `windowMoved` says that it is to be written. */
  window(topicId: number, segmentId: number, producer: string): DedupWindow {
    const { windows } = this.touched(topicId, segmentId);
    let entry = windows.get(producer);
    if (entry === undefined) {
      const snapshot = this.tables.windows.get([topicId, segmentId, producer]);
      entry = { window: snapshot === undefined ? new DedupWindow() : DedupWindow.restore(snapshot), changed: false };
      windows.set(producer, entry);
    }
    return entry.window;
  }

  windowMoved(topicId: number, segmentId: number, producer: string): void {
    const entry = this.touched(topicId, segmentId).windows.get(producer);
    if (entry !== undefined) entry.changed = true;
  }

  /** Writes what has changed and forgets what was read, so that the tables alone are true. */
  flush(): void {
    for (const [topicId, segments] of this.topics) {
      for (const [segmentId, { row, changed, windows }] of segments) {
        if (changed && row === undefined) this.tables.segments.removeSync([topicId, segmentId]);
        if (changed && row !== undefined) this.tables.segments.putSync([topicId, segmentId], row);
        for (const [producer, { window, changed: moved }] of windows) {
          if (moved) this.tables.windows.putSync([topicId, segmentId, producer], window.snapshot());
        }
      }
    }
    this.topics.clear();
  }

  private touched(topicId: number, segmentId: number): TouchedSegment {
    let segments = this.topics.get(topicId);
    if (segments === undefined) {
      segments = new Map();
      this.topics.set(topicId, segments);
    }
    let touched = segments.get(segmentId);
    if (touched === undefined) {
      touched = { row: this.tables.segments.get([topicId, segmentId]), changed: false, windows: new Map() };
      segments.set(segmentId, touched);
    }
    return touched;
  }
}
