/** The GC gate: a sealed segment is pruned only when everybody has answered that it is drained; unknown is not no. */
import { expect, it } from 'vitest';
import { createLayout, type Segment, splitSegment } from '../../src/layout/index.js';
import { canPrune, type DrainAnswer } from '../../src/replication/index.js';

const nowMs = 1_700_000_000_000;
const split = splitSegment(createLayout({ segments: 1, nowMs }), 0, { nowMs });
const SEALED = split.segments.get(0) as Segment;
const ACTIVE = split.segments.get(1) as Segment;

const ROWS: readonly (readonly [what: string, answers: readonly DrainAnswer[], canBePruned: boolean])[] = [
  ['nobody is there to need it', [], true],
  ['all have drained it', [true, true, true], true],
  ['one has not', [true, false, true], false],
  ['of one it is not known', [true, undefined, true], false],
  ['of none it is known', [undefined], false],
];

it.each(ROWS)('a sealed segment: %s', (_what, answers, canBePruned) => {
  expect(canPrune(SEALED, answers)).toBe(canBePruned);
});

it('never an active segment, nor one without successors, whose keys would have nowhere to go, nor one before its parents', () => {
  expect(canPrune(ACTIVE, [true])).toBe(false);
  expect(canPrune({ ...SEALED, childIds: [] }, [true])).toBe(false);
  expect(canPrune({ ...SEALED, parentIds: [7] }, [true])).toBe(false);
});
