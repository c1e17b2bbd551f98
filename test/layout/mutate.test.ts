import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createLayout,
  formatLayout,
  type Layout,
  mergeSegments,
  parseLayout,
  pruneSegment,
  rebucketSegment,
  rolloverSegments,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits, RING_END } from '../../src/ring/index.js';
import { arbLayout } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;

function activeCells(layout: Layout): unknown[] {
  return layout.active.map(({ segmentId, range, entryBucketSplits }) => [
    segmentId,
    range.start,
    entryBucketSplits.length + 1,
  ]);
}

describe('layout operations', () => {
  it('leave every layout valid: active segments tile the ring, edges stand at both ends', () => {
    fc.assert(
      fc.property(arbLayout({ maxSteps: 20 }), (layout) => {
        expect(() => parseLayout(formatLayout(layout))).not.toThrow();
        expect(layout.active[0]?.range.start).toBe(0);
        expect(layout.active.at(-1)?.range.end).toBe(RING_END);
      }),
    );
  });

  it('C3: a split child inherits the buckets, a merged segment takes the union; both axes are independent', () => {
    const split = splitSegment(createLayout({ buckets: 4, nowMs }), 0, { nowMs });
    expect(activeCells(split)).toEqual([
      [1, 0, 4],
      [2, 0x8000, 4],
    ]);
    const thirds = rebucketSegment(split, 2, equalWidthSplits(3), { nowMs });
    const merged = mergeSegments(thirds, 1, 3, { nowMs });
    expect(merged.active[0]?.entryBucketSplits).toEqual([0x4000, 0x5555, 0x8000, 0xaaaa, 0xc000]);
    // A cycle of split and merge ends where it began.
    const again = mergeSegments(split, 1, 2, { nowMs });
    expect(activeCells(again)).toEqual([[3, 0, 4]]);
  });

  it('the classic policies divide and sum the bucket counts, equal-width', () => {
    const odd = createLayout({ buckets: 5, nowMs });
    const split = splitSegment(odd, 0, { bucketPolicy: 'divide', nowMs });
    expect(activeCells(split)).toEqual([
      [1, 0, 2],
      [2, 0x8000, 2],
    ]);
    expect(activeCells(mergeSegments(split, 1, 2, { bucketPolicy: 'sum', nowMs }))).toEqual([[3, 0, 4]]);
    const one = createLayout({ buckets: 1, nowMs });
    expect(activeCells(splitSegment(one, 0, { bucketPolicy: 'divide', nowMs }))[0]).toEqual([1, 0, 1]);
  });

  it('C8: a split at explicit boundaries numbers its children by range, in one epoch', () => {
    const layout = splitSegment(createLayout({ nowMs }), 0, { at: [1, 0x5555, 0xffff], nowMs: nowMs + 1 });
    expect(layout.active.map((segment) => [segment.segmentId, segment.range.start])).toEqual([
      [1, 0],
      [2, 1],
      [3, 0x5555],
      [4, 0xffff],
    ]);
    expect(layout).toMatchObject({ epoch: 1, nextSegmentId: 5 });
    expect(layout.segments.get(0)).toMatchObject({
      state: 'sealed',
      childIds: [1, 2, 3, 4],
      sealedAtEpoch: 1,
      sealedAtMs: nowMs + 1,
    });
  });

  it('a merge keeps the order of the ids as given', () => {
    const layout = mergeSegments(createLayout({ segments: 2, nowMs }), 1, 0, { nowMs });
    expect(layout.active[0]?.parentIds).toEqual([1, 0]);
  });

  it('a rollover replaces segments by their like, numbered by range, in one epoch', () => {
    const grown = rebucketSegment(createLayout({ segments: 4, buckets: 2, nowMs }), 1, equalWidthSplits(4), { nowMs });
    const layout = rolloverSegments(grown, [2, 4], { nowMs });
    expect(activeCells(layout)).toEqual([
      [0, 0, 2],
      [5, 0x4000, 4],
      [6, 0x8000, 2],
      [3, 0xc000, 2],
    ]);
    expect(layout.segments.get(6)?.parentIds).toEqual([2]);
    expect(layout.epoch).toBe(grown.epoch + 1);
    expect(rolloverSegments(grown, [], { nowMs })).toBe(grown);
  });

  it('pruning takes the id out of the lists of parents and children, and leaves the old layout as it was', () => {
    const split = splitSegment(splitSegment(createLayout({ nowMs }), 0, { nowMs }), 1, { nowMs });
    const before = formatLayout(split);
    const pruned = pruneSegment(split, 1);
    expect(pruned.epoch).toBe(split.epoch + 1);
    expect(pruned.segments.has(1)).toBe(false);
    expect(pruned.segments.get(0)?.childIds).toEqual([2]);
    expect(pruned.segments.get(3)?.parentIds).toEqual([]);
    expect(pruned.active.map((segment) => segment.range)).toEqual(split.active.map((segment) => segment.range));
    expect(formatLayout(split)).toEqual(before);
  });

  // Segment 0 is sealed, 1 and 2 are its halves.
  const halves = splitSegment(createLayout({ nowMs }), 0, { nowMs });
  const oneHash = createLayout({ boundaries: [1], nowMs });
  it.each<[string, string, () => unknown]>([
    ['segment 9 does not exist', 'invalidOperation', () => splitSegment(halves, 9, { nowMs })],
    ['segment 0 is sealed', 'invalidOperation', () => splitSegment(halves, 0, { nowMs })],
    ['segment 0 holds one hash', 'invalidOperation', () => splitSegment(oneHash, 0, { nowMs })],
    ['at is []', 'invalidOperation', () => splitSegment(halves, 1, { at: [], nowMs })],
    ['at holds 0', 'invalidArgument', () => splitSegment(halves, 1, { at: [0], nowMs })],
    ['at is [32768]', 'invalidOperation', () => splitSegment(halves, 1, { at: [32768], nowMs })],
    ['at is [32768]', 'invalidOperation', () => splitSegment(halves, 2, { at: [32768], nowMs })],
    ['at holds 5 after 9', 'invalidArgument', () => splitSegment(halves, 1, { at: [9, 5], nowMs })],
    ['segments 1 (0000-7fff) and 1', 'invalidOperation', () => mergeSegments(halves, 1, 1, { nowMs })],
    ['segment 0 is sealed', 'invalidOperation', () => mergeSegments(halves, 0, 1, { nowMs })],
    ['segment 1 already has', 'invalidOperation', () => rebucketSegment(halves, 1, equalWidthSplits(4), { nowMs })],
    ['splits holds 1.5', 'invalidArgument', () => rebucketSegment(halves, 1, [1.5], { nowMs })],
    ['segment 1 is active', 'invalidOperation', () => pruneSegment(halves, 1)],
    ['segment 9 does not exist', 'invalidOperation', () => pruneSegment(halves, 9)],
    ['segment 0 is sealed', 'invalidOperation', () => rolloverSegments(halves, [1, 0], { nowMs })],
    ['nowMs is 0.5', 'invalidArgument', () => splitSegment(halves, 1, { nowMs: 0.5 })],
  ])('%s: %s', (message, code, operation) => {
    expect(operation).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });

  it('B46: an epoch or an id never leaves the safe integers', () => {
    const last = { ...createLayout({ nowMs }), epoch: Number.MAX_SAFE_INTEGER };
    expect(() => splitSegment(last, 0, { nowMs })).toThrow(expect.objectContaining({ code: 'invalidOperation' }));
    expect(() => pruneSegment({ ...halves, epoch: Number.MAX_SAFE_INTEGER }, 0)).toThrow(
      expect.objectContaining({ code: 'invalidOperation', message: expect.stringContaining('last safe integer') }),
    );
  });
});
