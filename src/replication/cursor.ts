/**
 * How far a segment has come, and what of that is durable. The record is written in batches, by count and by time,
 * never ahead of what is settled; the source is told only what is written. A skip is durable before anything behind it
 * is sent: after a crash and a layout change the entry might fit, and would come after its successors (R5).
 */
import { comparePositions, isSameEntry } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import type { CursorRecord } from '../ports/index.js';

export interface CursorOptions {
  readonly cursorEntries: number;
  readonly cursorDelayMs: number;
}

/** Who knows the checkpoints (R15). */
export interface CheckpointSource {
  currentCheckpoints(): Map<number, SourcePosition>;
}

export class Cursor {
  /** The last position of the settled prefix. */
  settled: SourcePosition | undefined;
  private readonly session: number;
  private skipped: readonly SourcePosition[];
  private durableSkips: readonly SourcePosition[];
  private isDrained = false;
  /** Settled and not written yet: how many, since when. */
  private unwritten = 0;
  private sinceMs = 0;
  private isUrgent = false;
  private out: CursorRecord | undefined;
  private failures = 0;
  private retryAtMs: number | undefined;

  constructor(
    record: CursorRecord,
    private readonly options: CursorOptions,
  ) {
    this.settled = record.settled;
    this.session = record.session;
    this.skipped = record.skipped;
    this.durableSkips = record.skipped;
  }

  /** Everything up to here is settled, `entries` more than before. */
  advance(position: SourcePosition, entries: number, nowMs: number): void {
    if (this.unwritten === 0) this.sinceMs = nowMs;
    this.settled = position;
    this.unwritten += entries;
  }

  /** The next write does not wait. */
  hurry(): void {
    this.isUrgent = true;
  }

  drain(): void {
    this.isDrained = true;
    this.isUrgent = true;
  }

  skip(position: SourcePosition): void {
    if (this.skipped.some((other) => isSameEntry(other, position))) return;
    this.skipped = [...this.skipped, position].sort(comparePositions);
    this.isUrgent = true;
  }

  /** An operator lets it pass, and that is durable. */
  isSkipped(position: SourcePosition): boolean {
    return this.durableSkips.length > 0 && this.durableSkips.some((other) => isSameEntry(other, position));
  }

  /** Gives up what is not written: it is settled once more after the next start. */
  abandon(): void {
    this.out = undefined;
    this.unwritten = 0;
    this.isUrgent = false;
  }

  /** True when everything is written. */
  get isClean(): boolean {
    return this.unwritten === 0 && !this.isUrgent && this.out === undefined;
  }

  get isWriting(): boolean {
    return this.out !== undefined;
  }

  /** The record to write now, if one is due and none is out. */
  due(nowMs: number, lanes: CheckpointSource): CursorRecord | undefined {
    if (this.out !== undefined || (this.retryAtMs !== undefined && this.retryAtMs > nowMs)) return undefined;
    const { cursorEntries, cursorDelayMs } = this.options;
    const isDue =
      this.isUrgent || this.unwritten >= cursorEntries || (this.unwritten > 0 && nowMs - this.sinceMs >= cursorDelayMs);
    if (!isDue) return undefined;
    const { settled, session } = this;
    const skipped = this.skipped.filter((other) => settled === undefined || comparePositions(other, settled) > 0);
    this.skipped = skipped;
    this.out = {
      session,
      ...(settled === undefined ? {} : { settled }),
      drained: this.isDrained,
      skipped,
      checkpoints: lanes.currentCheckpoints(),
    };
    this.unwritten = 0;
    this.isUrgent = false;
    this.retryAtMs = undefined;
    return this.out;
  }

  /** The record that was out is durable: gives it. */
  written(): CursorRecord | undefined {
    const { out } = this;
    if (out !== undefined) this.durableSkips = out.skipped;
    this.out = undefined;
    this.failures = 0;
    return out;
  }

  /** It is not known to be: the present state is written again. */
  failed(retryAt: (failures: number) => number): void {
    this.out = undefined;
    this.isUrgent = true;
    this.retryAtMs = retryAt(this.failures++);
  }

  /** When something falls due by time. */
  get nextAtMs(): number | undefined {
    if (this.out !== undefined) return undefined;
    if (this.retryAtMs !== undefined) return this.retryAtMs;
    return this.unwritten > 0 ? this.sinceMs + this.options.cursorDelayMs : undefined;
  }
}
