/** The cursor of a segment by itself: when it is written, and what is in what is written. */
import { describe, expect, it } from 'vitest';
import type { SourcePosition } from '../../src/entry/index.js';
import { Cursor } from '../../src/replication/cursor.js';

const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });
const CHECKPOINTS = new Map([[3, at(40)]]);
const LANES = { currentCheckpoints: () => CHECKPOINTS };

function cursorOf(settled?: SourcePosition): Cursor {
  const record = { session: 2, drained: false, skipped: [], checkpoints: new Map(), ...(settled && { settled }) };
  return new Cursor(record, { cursorEntries: 3, cursorDelayMs: 100 });
}

describe('a cursor', () => {
  it('is written by count, or so long after the first entry that was not', () => {
    const cursor = cursorOf();
    expect([cursor.due(0, LANES), cursor.nextAtMs, cursor.isClean]).toEqual([undefined, undefined, true]);
    cursor.advance(at(0), 1, 10);
    cursor.advance(at(1), 1, 60);
    expect([cursor.due(109, LANES), cursor.nextAtMs, cursor.isClean]).toEqual([undefined, 110, false]);
    const expected = { session: 2, settled: at(1), drained: false, skipped: [], checkpoints: CHECKPOINTS };
    expect(cursor.due(110, LANES)).toStrictEqual(expected);
    expect([cursor.isWriting, cursor.nextAtMs, cursor.isClean]).toEqual([true, undefined, false]);
    cursor.advance(at(4), 3, 120);
    // One write is out at a time.
    expect(cursor.due(500, LANES)).toBeUndefined();
    expect(cursor.written()).toStrictEqual(expected);
    expect(cursor.due(120, LANES)?.settled).toEqual(at(4));
    cursor.written();
    expect([cursor.isWriting, cursor.isClean]).toEqual([false, true]);
    expect(cursor.written()).toBeUndefined();
  });

  it('that has settled nothing says nothing of it, and is written when that is urgent', () => {
    const cursor = cursorOf();
    cursor.hurry();
    expect([cursor.isClean, cursor.nextAtMs]).toEqual([false, undefined]);
    expect(cursor.due(0, LANES)).toStrictEqual({ session: 2, drained: false, skipped: [], checkpoints: CHECKPOINTS });
    cursor.written();
    cursor.drain();
    expect(cursor.due(0, LANES)).toMatchObject({ drained: true });
  });

  it('that could not be written is written again, later and later, as it is then', () => {
    const cursor = cursorOf();
    cursor.advance(at(0), 3, 0);
    const waits: number[] = [];
    const retryAt = (nowMs: number) => (failures: number) => {
      waits.push(10 * 2 ** failures);
      return nowMs + 10 * 2 ** failures;
    };
    for (let i = 0, nowMs = 0; i < 3; i++, nowMs = cursor.nextAtMs ?? -1) {
      expect(cursor.due(nowMs, LANES)).toMatchObject({ settled: at(i) });
      cursor.advance(at(i + 1), 1, nowMs);
      cursor.failed(retryAt(nowMs));
      expect(cursor.due((cursor.nextAtMs ?? 0) - 1, LANES)).toBeUndefined();
    }
    expect(waits).toEqual([10, 20, 40]);
    cursor.due(1_000, LANES);
    cursor.written();
    cursor.hurry();
    cursor.due(1_000, LANES);
    cursor.failed(retryAt(1_000));
    expect(waits.at(-1)).toBe(10);
  });

  it('is given up where nobody can write it any more', () => {
    const cursor = cursorOf();
    cursor.advance(at(0), 3, 0);
    cursor.due(0, LANES);
    cursor.advance(at(1), 1, 0);
    cursor.hurry();
    cursor.abandon();
    expect([cursor.isClean, cursor.isWriting, cursor.due(1_000, LANES)]).toEqual([true, false, undefined]);
  });
});

describe('R5: a skip', () => {
  it('counts once it is durable, is named once and in order, and goes when the cursor has passed it', () => {
    const cursor = cursorOf(at(1));
    for (const id of [5, 3, 5]) cursor.skip(at(id));
    expect(cursor.isSkipped(at(3))).toBe(false);
    expect(cursor.due(0, LANES)).toMatchObject({ skipped: [at(3), at(5)] });
    expect(cursor.isSkipped(at(3))).toBe(false);
    cursor.written();
    expect([3, 4, 5].map((id) => cursor.isSkipped(at(id)))).toEqual([true, false, true]);
    expect(cursor.isSkipped({ ...at(3), part: 0x7fff })).toBe(true);
    // It is asked for again, and there is nothing to write.
    cursor.skip(at(3));
    expect(cursor.due(0, LANES)).toBeUndefined();
    cursor.advance(at(3), 3, 0);
    expect(cursor.due(0, LANES)).toMatchObject({ settled: at(3), skipped: [at(5)] });
  });
});
