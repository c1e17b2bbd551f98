/** What a machine of a segment was told is stored, by which its cursor is judged. */
import { comparePositions, isSameEntry } from '../../src/dedup/index.js';
import type { SourcePosition } from '../../src/entry/index.js';
import type { CursorRecord, SendResult } from '../../src/ports/index.js';
import type { SegmentEvent, SegmentNotice } from '../../src/replication/index.js';

/** Of which entries it was said that they are stored, or need not be. */
export class Accounts {
  private readonly entries: SourcePosition[] = [];
  private readonly stored: SourcePosition[];
  /** All up to here. */
  private upTo: SourcePosition | undefined;

  constructor({ settled, skipped }: CursorRecord) {
    this.upTo = settled;
    this.stored = [...skipped];
  }

  read(entries: readonly { readonly position: SourcePosition }[]): void {
    this.entries.push(...entries.map(({ position }) => position));
  }

  /** A partial answer says of some of an entry that it is stored, and the rest may be nothing. */
  answered(position: SourcePosition | undefined, { type }: SendResult): void {
    if (position === undefined) return;
    if (type === 'stored' || type === 'duplicate' || type === 'partial') this.stored.push(position);
  }

  note(event: SegmentEvent): void {
    const said = event.type === 'recovered' ? event.recovery : event;
    if (said.type === 'start') this.reach(said.acknowledged);
    if (said.type === 'opened' || said.type === 'watermark') this.reach(said.watermark);
    if (said.type === 'opened' || said.type === 'copies') {
      this.stored.push(...(said.copies ?? []).map(({ position }) => position));
    }
  }

  noticed(notice: SegmentNotice): void {
    if (notice.type === 'skipped') this.stored.push(notice.position);
    if (notice.type === 'lostAtSource') this.stored.push(notice.to);
  }

  private reach(position: SourcePosition | undefined): void {
    if (isBehind(position, this.upTo)) this.upTo = position;
  }

  /** What a cursor has passed without a word, or while an answer was to come. */
  ahead(
    settled: SourcePosition | undefined,
    wires: Iterable<{ readonly out: readonly SourcePosition[] }>,
  ): SourcePosition[] {
    const out = [...wires].flatMap((wire) => wire.out);
    const has = (list: readonly SourcePosition[], at: SourcePosition) => list.some((other) => isSameEntry(other, at));
    const passed = this.entries.filter((at) => !isBehind(at, settled) && isBehind(at, this.upTo));
    return passed.filter((at) => !has(this.stored, at) || has(out, at));
  }
}

/** True when the first lies behind the second; nothing lies behind nothing. */
export function isBehind(a: SourcePosition | undefined, b: SourcePosition | undefined): boolean {
  return a !== undefined && (b === undefined || comparePositions(a, b) > 0);
}
