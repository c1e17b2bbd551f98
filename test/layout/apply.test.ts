import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyShape,
  createLayout,
  equalShapes,
  formatLayout,
  joinShapes,
  type Layout,
  parseLayout,
  pruneSegment,
  type Segment,
  type Shape,
  shapeOf,
} from '../../src/layout/index.js';
import { overlaps } from '../../src/ring/index.js';
import { arbLayout, arbShape } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;

function shapeAt(...starts: number[]): Shape {
  return shapeOf(createLayout({ boundaries: starts, buckets: 1, nowMs }));
}

/** What the fold sealed and what it made. */
function difference(before: Layout, after: Layout): { sealed: Segment[]; created: Segment[] } {
  return {
    sealed: [...after.segments.values()].filter((s) => s.state === 'sealed' && s.sealedAtEpoch > before.epoch),
    created: [...after.segments.values()].filter((s) => !before.segments.has(s.segmentId)),
  };
}

describe('folding a shape into a layout', () => {
  it('C5: is one mutation that reaches exactly the shape, whatever it was before', () => {
    fc.assert(
      fc.property(arbLayout(), arbShape(), (layout, target) => {
        const folded = applyShape(layout, target, { nowMs });
        expect(shapeOf(folded)).toEqual(target);
        expect(folded.epoch - layout.epoch).toBe(equalShapes(shapeOf(layout), target) ? 0 : 1);
        expect(parseLayout(formatLayout(folded))).toEqual(folded);
      }),
    );
  });

  it('C5: replaces only cells that differ; parents are all replaced segments that overlap, children likewise', () => {
    fc.assert(
      fc.property(arbLayout(), arbShape(), (layout, other) => {
        const target = joinShapes(shapeOf(layout), other);
        const folded = applyShape(layout, target, { nowMs });
        const { sealed, created } = difference(layout, folded);
        const kept = layout.active.filter((segment) => folded.segments.get(segment.segmentId) === segment);
        expect(kept.length + sealed.length).toBe(layout.active.length);
        expect(kept.length + created.length).toBe(folded.active.length);
        const overlapping = (segment: Segment, among: Segment[]) =>
          among.filter((s) => overlaps(s.range, segment.range)).map((s) => s.segmentId);
        const byRange = [...sealed].sort((a, b) => a.range.start - b.range.start);
        for (const segment of created) expect(segment.parentIds).toEqual(overlapping(segment, byRange));
        for (const segment of sealed) expect(segment.childIds).toEqual(overlapping(segment, created));
      }),
    );
  });

  it('C6: folding what is already there returns the same object', () => {
    fc.assert(
      fc.property(arbLayout(), arbShape(), (layout, other) => {
        expect(applyShape(layout, shapeOf(layout), { nowMs })).toBe(layout);
        const folded = applyShape(layout, other, { nowMs });
        expect(applyShape(folded, other, { nowMs: nowMs + 1 })).toBe(folded);
      }),
    );
  });

  it('C8: new ids ascend with the ranges', () => {
    fc.assert(
      fc.property(arbLayout(), arbShape(), (layout, target) => {
        const { created } = difference(layout, applyShape(layout, target, { nowMs }));
        const byRange = [...created].sort((a, b) => a.range.start - b.range.start);
        expect(byRange.map((s) => s.segmentId)).toEqual(byRange.map((_, i) => layout.nextSegmentId + i));
      }),
    );
  });

  it('a merge and a split off the midpoint are the same mutation', () => {
    const layout = createLayout({ segments: 2, buckets: 1, nowMs });
    const folded = applyShape(layout, shapeAt(0x1234), { nowMs });
    expect(folded.active.map((s) => [s.segmentId, s.range.start, s.parentIds])).toEqual([
      [2, 0, [0]],
      [3, 0x1234, [0, 1]],
    ]);
    expect([0, 1].map((id) => folded.segments.get(id)?.childIds)).toEqual([[2, 3], [3]]);
  });

  it('C10: a peer base is recorded with a mutation, and alone causes none', () => {
    const layout = createLayout({ nowMs });
    expect(applyShape(layout, shapeOf(layout), { nowMs, base: [21845, 43690] })).toBe(layout);
    const folded = applyShape(layout, shapeAt(21845, 43690), { nowMs, base: [21845, 43690] });
    expect(folded.base).toEqual([21845, 43690]);
    expect(pruneSegment(folded, 0).base).toEqual([21845, 43690]);
    const both = applyShape(folded, shapeAt(0x8000), { nowMs, base: [0x8000] });
    expect(both.base).toEqual([21845, 0x8000, 43690]);
    expect(parseLayout(formatLayout(both)).base).toEqual(both.base);
  });

  it('C4: refuses a bad shape before anything changes', () => {
    const layout = createLayout({ nowMs });
    const gap = { cells: shapeAt(9, 20).cells.filter((_, i) => i !== 1) };
    expect(() => applyShape(layout, gap, { nowMs })).toThrow(
      expect.objectContaining({ code: 'invalidShape', message: expect.stringContaining('cells[1].range.start is 20') }),
    );
    expect(() => applyShape(layout, shapeAt(9), { nowMs: -1 })).toThrow(/nowMs is -1/);
    expect(() => applyShape(layout, shapeAt(9), { nowMs, base: [0] })).toThrow(/base holds 0/);
  });

  it('4,096 cells: all replaced by as many others, then half of them kept', () => {
    const starts = (offset: number) => Array.from({ length: 4095 }, (_, i) => (i + 1) * 16 + offset);
    const layout = createLayout({ boundaries: starts(0), nowMs });
    const moved = applyShape(layout, shapeAt(...starts(3)), { nowMs });
    expect(shapeOf(moved)).toEqual(shapeAt(...starts(3)));
    expect(moved.active.every((segment, i) => segment.segmentId === 4096 + i)).toBe(true);
    const overlapped = moved.active.map((_, i) => (i < 4095 ? [i, i + 1] : [i]));
    expect(moved.active.map((segment) => segment.parentIds)).toEqual(overlapped);

    const half = shapeAt(...starts(3).slice(0, 2048), ...starts(5).slice(2048));
    const folded = applyShape(moved, half, { nowMs });
    expect(shapeOf(folded)).toEqual(half);
    expect(folded.active.filter((segment) => moved.segments.has(segment.segmentId))).toHaveLength(2048);
  });
});
