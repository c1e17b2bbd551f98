import { describe, expect, it } from 'vitest';
import type { SourcePosition } from '../../src/entry/index.js';
import { createLayout, type Layout, mergeSegments, splitSegment } from '../../src/layout/index.js';
import { pinPlaces } from '../../src/replication/index.js';

const there = (entryId: number): SourcePosition => ({ ledgerId: 1n, entryId: BigInt(entryId) });
const nowMs = 1_700_000_000_000;
const halves = createLayout({ segments: 2, nowMs });
const whole = createLayout({ nowMs });

/** Cursors by source segment: the entry of each checkpoint by remote segment, or `drained`. */
function places(source: Layout, remote: Layout, cursors: Record<number, Record<number, number> | 'drained'>) {
  const records = Object.entries(cursors).map(([segmentId, checkpoints]) => {
    const isDrained = checkpoints === 'drained';
    const list = Object.entries(isDrained ? {} : checkpoints).map(([id, at]) => [Number(id), there(at)] as const);
    return [Number(segmentId), { session: 1, drained: isDrained, skipped: [], checkpoints: new Map(list) }] as const;
  });
  return Object.fromEntries(
    [...pinPlaces(source, remote, new Map(records))].map(([id, at]) => [id, Number(at.entryId)]),
  );
}

/** Every segment of a classic topic takes any key. */
const classic = (layout: Layout): Layout => ({
  ...layout,
  segments: new Map(
    [...layout.segments].map(([id, one]) => [id, { ...one, legacyTopicName: `persistent://t/n/x-${id}` }]),
  ),
});

describe('R15: where a pin may stand', () => {
  it.each<[string, Record<number, unknown>, Record<number, number>]>([
    ['at the lowest checkpoint of all who send there', places(halves, whole, { 0: { 0: 9 }, 1: { 0: 4 } }), { 0: 4 }],
    ['whichever comes first', places(halves, whole, { 0: { 0: 4 }, 1: { 0: 9 } }), { 0: 4 }],
    ['nowhere while one of them has none', places(halves, whole, { 0: { 0: 9 }, 1: {} }), {}],
    ['nowhere while one of them has no cursor', places(halves, whole, { 1: { 0: 4 } }), {}],
    ['who cannot send there does not count', places(halves, halves, { 0: { 0: 9 }, 1: { 1: 4 } }), { 0: 9, 1: 4 }],
    ['nor does who has drained', places(halves, whole, { 0: 'drained', 1: { 0: 4 } }), { 0: 4 }],
    ['nowhere where nobody sends any more', places(halves, whole, { 0: 'drained', 1: 'drained' }), {}],
    [
      'all count towards a classic segment',
      places(halves, classic(halves), { 0: { 0: 9 }, 1: { 0: 5, 1: 4 } }),
      { 0: 5 },
    ],
    ['and from one', places(classic(halves), halves, { 0: { 0: 9, 1: 3 }, 1: { 0: 5, 1: 4 } }), { 0: 5, 1: 3 }],
  ])('%s', (_, found, expected) => {
    expect(found).toEqual(expected);
  });

  it('in sealed segments of either side too', () => {
    const source = splitSegment(whole, 0, { nowMs });
    const remote = mergeSegments(halves, 0, 1, { nowMs });
    expect(places(source, remote, { 0: { 0: 1, 1: 2 }, 1: { 0: 3, 2: 6 }, 2: { 1: 1, 2: 5 } })).toEqual({ 0: 1, 1: 1 });
    expect(places(source, remote, { 0: 'drained', 1: { 0: 3, 2: 6 }, 2: { 1: 1, 2: 5 } })).toEqual({
      0: 3,
      1: 1,
      2: 5,
    });
  });
});
