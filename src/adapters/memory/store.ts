/** The state behind one topic: its layout, the logs of its segments, its subscriptions, and the changes of all three. */
import { DedupWindow } from '../../dedup/index.js';
import { IsthmusError, show } from '../../errors.js';
import type { Layout } from '../../layout/index.js';
import { Notifier } from '../../notifier.js';
import type { CursorRecord } from '../../ports/index.js';
import { FULL_RANGE, type HashRange } from '../../ring/index.js';
import { SegmentLog } from './segment-log.js';

/** Whose a subscription is: a consumer's here, a remote's that is replicated to, or a source cluster's that reads back. */
export type SubscriptionKind = 'local' | 'replication' | 'pin';

export class TopicStore {
  readonly logs = new Map<number, SegmentLog>();
  readonly subscriptions = new Map<string, SubscriptionKind>();
  /** The records of the cursor stores, by remote cluster. */
  readonly cursors = new Map<string, Map<number, CursorRecord>>();
  private readonly changed = new Notifier();

  constructor(
    readonly cluster: string,
    public layout: Layout,
    /** Bytes. */
    readonly maxEntryBytes: number,
  ) {
    for (const { segmentId, state } of layout.segments.values()) {
      if (state === 'sealed') this.create(segmentId).seal();
      else this.create(segmentId);
    }
  }

  /** The log of a segment that exists, in the layout or behind it. Throws `invalidArgument`. */
  log(segmentId: number): SegmentLog {
    const log = this.logs.get(segmentId);
    if (log !== undefined) return log;
    throw new IsthmusError('invalidArgument', `segment ${show(segmentId)}: the topic has no such segment`);
  }

  /** The log of a segment, made when there is none. */
  create(segmentId: number): SegmentLog {
    let log = this.logs.get(segmentId);
    if (log === undefined) {
      log = new SegmentLog(segmentId, new DedupWindow());
      this.logs.set(segmentId, log);
    }
    return log;
  }

  /** Removes a segment that no layout holds any more. */
  drop(segmentId: number): void {
    const log = this.logs.get(segmentId);
    if (log === undefined) return;
    log.pruned = true;
    log.seal();
    this.logs.delete(segmentId);
  }

  /** Makes a layout the present one: new segments begin with what their parents hand on (R13), sealed ones end, pruned ones go. */
  record(next: Layout): void {
    const before = this.layout;
    for (const { segmentId, parentIds, state } of next.segments.values()) {
      const log = this.create(segmentId);
      if (!before.segments.has(segmentId)) log.window = DedupWindow.inherit(this.parents(next, parentIds));
      if (state === 'sealed') log.seal();
    }
    for (const segmentId of before.segments.keys()) if (!next.segments.has(segmentId)) this.drop(segmentId);
    this.layout = next;
    this.changed.wake();
  }

  /** A parent that is gone counts as one that stored nothing: twice is better than never (R13). */
  private parents(layout: Layout, parentIds: readonly number[]): { window: DedupWindow; range: HashRange }[] {
    return parentIds.map((id) => ({
      window: this.logs.get(id)?.window ?? new DedupWindow(),
      range: layout.segments.get(id)?.range ?? FULL_RANGE,
    }));
  }

  /** The layout now, and again after every change, until the signal aborts. */
  async *watch(signal: AbortSignal): AsyncGenerator<Layout, void, undefined> {
    for (let seen: Layout | undefined; !signal.aborted; ) {
      if (this.layout !== seen) {
        seen = this.layout;
        yield seen;
      } else {
        await this.changed.changed(signal);
      }
    }
  }

  /** Adds a subscription at the start of all segments; one that exists stays as it is. Throws `invalidArgument`. */
  subscribe(name: string, kind: SubscriptionKind): void {
    const existing = this.subscriptions.get(name) ?? kind;
    if (existing !== kind) {
      throw new IsthmusError('invalidArgument', `subscription ${show(name)}: the name is one of kind ${existing}`);
    }
    this.subscriptions.set(name, kind);
  }

  /** Gives up a subscription on all segments. */
  unsubscribe(name: string): void {
    this.subscriptions.delete(name);
    for (const log of this.logs.values()) log.forget(name);
  }
}
