/**
 * The list of mutants is up to date, and its table in docs/testing.md with it. All of them are run by `npm run mutants`;
 * here a few are caught at the seed that the table says.
 */
import { describe, expect, it } from 'vitest';
import { readRows, rowOf } from './mutant-table.js';
import { MUTANTS } from './mutants.js';
import { firstCaught, timesFound } from './mutated.js';

const rows = readRows();

describe('the mutants', () => {
  it('are many, each of another decision, whose line stands in its file once', () => {
    expect(MUTANTS.length).toBeGreaterThan(25);
    expect(new Set(MUTANTS.map(({ what }) => what)).size).toBe(MUTANTS.length);
    const lost = MUTANTS.filter((mutant) => timesFound(mutant) !== 1);
    expect(lost.map((mutant) => `${mutant.what}: ${timesFound(mutant)} times in ${mutant.file}`)).toEqual([]);
  });

  it('are all caught, as docs/testing.md tells', () => {
    expect([...rows.keys()]).toEqual(MUTANTS.map(({ what }) => what));
    for (const mutant of MUTANTS) {
      const [, , invariant = '', found = ''] = rows.get(mutant.what) ?? [];
      expect(mutant.breaks).toContain(invariant);
      expect(rows.get(mutant.what)).toEqual(rowOf(mutant, invariant, Number.parseInt(found, 10)));
    }
  });
});

describe('the simulator catches it when', () => {
  const FEW = [
    'a segment does not wait for its parents to drain',
    'an entry is settled when it is sent',
    'a segment counts as drained as soon as it is read',
    'nothing is read back when a lane opens (R15)',
    'a batch goes as it is though it straddles buckets (R1)',
    'a boundary goes though a peer demands it (C9)',
    'the layout between two steps of a plan is what is stated (C22)',
  ];

  it.each(MUTANTS.filter(({ what }) => FEW.includes(what)))('$what', { timeout: 60_000 }, async (mutant) => {
    const row = rows.get(mutant.what);
    const seed = Number.parseInt(row?.[3] ?? '', 10);
    const failure = await firstCaught(mutant, [seed]);
    expect(rowOf(mutant, failure?.invariant ?? 'nothing', seed)).toEqual(row);
  });

  it('and finds nothing in worlds where nothing is wrong', { timeout: 60_000 }, async () => {
    const none = { what: 'nothing', breaks: [], seeds: 1 };
    expect(await firstCaught(none, [1, 2, 3])).toBeUndefined();
  });
});
