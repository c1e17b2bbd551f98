import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EntryWindow } from '../../src/replication/entry-window.js';

const at = (index: number) => ({ ledgerId: 7n, entryId: BigInt(index) });

describe('the window of a segment', () => {
  it('gives what a list gives from which the settled prefix is taken, however long it is', () => {
    const step = fc.oneof(
      fc.record({ add: fc.nat({ max: 3 }) }),
      fc.record({ addMany: fc.constant(3_000) }),
      fc.record({ settle: fc.nat() }),
      fc.record({ settleAlmostAll: fc.constant(true) }),
    );
    const property = fc.property(fc.array(step, { maxLength: 16, size: 'max' }), (steps) => {
      const window = new EntryWindow();
      const settled: boolean[] = [];
      let start = 0;
      for (const now of steps) {
        const indexes = 'settle' in now ? [start + (now.settle % Math.max(1, settled.length - start))] : [];
        if ('settleAlmostAll' in now) for (let i = start; i < settled.length - 5; i++) indexes.push(i);
        for (const index of indexes.filter((i) => settled[i] === false)) {
          settled[index] = true;
          window.settle(window.at(index));
        }
        const count = 'add' in now ? now.add : 'addMany' in now ? now.addMany : 0;
        for (let i = 0; i < count; i++) {
          window.add(at(settled.length), new Uint8Array(2));
          settled.push(false);
        }
        const before = start;
        while (settled[start] === true) start++;
        const passed: bigint[] = [];
        const last = window.trim((position) => passed.push(position.entryId));
        expect(last).toEqual(start > before ? at(start - 1) : undefined);
        expect([passed.length, passed.at(-1)]).toEqual([start - before, last?.entryId]);

        const unsettled = settled.filter((isSettled) => !isSettled).length;
        const { unsettledEntries, unsettledBytes, size, end } = window;
        expect({ start: window.start, end, size }).toEqual({
          start,
          end: settled.length,
          size: settled.length - start,
        });
        expect({ unsettledEntries, unsettledBytes }).toEqual({
          unsettledEntries: unsettled,
          unsettledBytes: 2 * unsettled,
        });
        expect(window.last?.index).toBe(start === settled.length ? undefined : settled.length - 1);
        for (const index of [start, settled.length - 1]) {
          if (index >= start && index < settled.length)
            expect(window.at(index)).toMatchObject({ index, position: at(index) });
        }
      }
    });
    fc.assert(property, { seed: 1, numRuns: 60 });
  });
});
