/**
 * The cursors of one topic towards one remote, on a state topic. A write of one segment is one record. Several at once
 * are one record too, a bundle, whose place in the log says for all of them whether they count; then it is written out
 * record by record and deleted. Who finds a bundle of a process that died in between does that in its place.
 */
import type { Clock, CursorRecord, CursorStore, CursorWrite } from '../../../ports/index.js';
import type { OpenBundle, StateFold, StoreFold } from './fold.js';
import type { StateLog } from './log.js';
import { bundleKey, cursorKey, formatBundle, formatCursor } from './records.js';

/** After this time a bundle's own process has either deleted it or died, in milliseconds. */
const BUNDLE_MS = 30_000;
const LOOK_MS = 100;

type Changes = ReadonlyMap<number, CursorRecord | undefined>;

export class StateCursors implements CursorStore {
  /** Single records on their way. */
  private readonly singles = new Set<Promise<unknown>>();
  /** The last write of several segments: others wait for its end, so that none is overtaken by its own past. */
  private whole: Promise<unknown> = Promise.resolve();
  private bundles = 0;

  constructor(
    private readonly store: string,
    private readonly process: string,
    private readonly log: StateLog<CursorWrite>,
    private readonly fold: StateFold,
    private readonly clock: Clock,
  ) {}

  async load(): Promise<ReadonlyMap<number, CursorRecord>> {
    await this.log.sync();
    return this.present.records();
  }

  async write(changes: Changes): Promise<CursorWrite> {
    const [only, another] = [...changes];
    if (only === undefined) return { type: 'written' };
    const [segmentId, record] = only;
    if (another !== undefined || record === undefined) return this.writeWhole(changes);
    // Made now: what the caller goes on changing is not what is written.
    return this.writeSingle(segmentId, record.session, formatCursor(record));
  }

  private get present(): StoreFold {
    return this.fold.store(this.store);
  }

  private async writeSingle(segmentId: number, session: number, value: object): Promise<CursorWrite> {
    const before = this.whole;
    const writing = (async () => {
      await before;
      const verdict = await this.log.append(cursorKey(this.store, segmentId, session), value);
      this.sweep(segmentId);
      return verdict;
    })();
    this.singles.add(writing);
    return writing.finally(() => this.singles.delete(writing));
  }

  private writeWhole(changes: Changes): Promise<CursorWrite> {
    const puts = new Map<number, CursorRecord>();
    const removed: number[] = [];
    for (const [segmentId, record] of changes) {
      if (record === undefined) removed.push(segmentId);
      else puts.set(segmentId, record);
    }
    // Formatted now, as a single record is.
    const value = formatBundle({ puts, removed });
    const earlier = [this.whole, ...this.singles];
    const writing = Promise.allSettled(earlier).then(() => this.writeBundle(value, removed));
    this.whole = writing.catch(() => undefined);
    return writing;
  }

  private async writeBundle(value: object, removed: readonly number[]): Promise<CursorWrite> {
    await this.log.sync();
    await this.finishOthers();
    const key = bundleKey(this.store, this.process, ++this.bundles);
    const verdict = await this.log.append(key, value);
    const bundle = this.present.bundles.get(key);
    if (bundle !== undefined) await this.finish(bundle);
    // A replaced owner's record may have come in between, below the one that was removed.
    if (verdict.type === 'written') await Promise.all(removed.flatMap((id) => this.delete(this.present.keysOf(id))));
    return verdict;
  }

  /** Bundles of processes that have died, and of own connections that were cut. */
  private async finishOthers(): Promise<void> {
    for (;;) {
      const [bundle] = this.present.bundles.values();
      if (bundle === undefined) return;
      if (bundle.process === this.process || this.clock.now() - bundle.seenMs > BUNDLE_MS) await this.finish(bundle);
      else await this.clock.sleep(LOOK_MS, new AbortController().signal);
    }
  }

  private async finish({ key, rest }: OpenBundle): Promise<void> {
    await Promise.all(Array.from(rest, ([record, value]) => this.log.append(record, value)));
    await this.log.append(key, undefined);
  }

  /** Deletes what a later session has replaced. What is left after a failure does no harm. */
  private sweep(segmentId: number): void {
    const replaced = this.present.keysOf(segmentId).slice(0, -1);
    void this.delete(replaced).catch(() => undefined);
  }

  private async delete(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.log.append(key, undefined)));
  }
}
