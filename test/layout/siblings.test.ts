import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  boundariesOf,
  createLayout,
  type Layout,
  mergeSegments,
  type Shape,
  shapeOf,
  siblingBoundaries,
  splitSegment,
} from '../../src/layout/index.js';
import { arbShape } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;

function shapeAt(...boundaries: number[]): Shape {
  return shapeOf(createLayout({ boundaries, nowMs }));
}

/** C10 written down as it is told, cell by cell. */
function told(start: number, last: number, inside: readonly number[]): number[] {
  if (inside.length === 0) return [];
  const middle = start + Math.floor((last - start) / 2) + 1;
  const zeros = (boundary: number) => /0*$/.exec(boundary.toString(2))?.[0].length ?? 0;
  const [roundest = 0] = [...inside].sort((a, b) => zeros(b) - zeros(a) || a - b);
  const root = inside.includes(middle) ? middle : roundest;
  const left = inside.filter((boundary) => boundary < root);
  const right = inside.filter((boundary) => boundary > root);
  if (left.length === 0 && right.length === 0) return [root];
  return [...told(start, root - 1, left), ...told(root, last, right)];
}

function toldOnBase(shape: Shape, base: readonly number[]): number[] {
  const boundaries = boundariesOf(shape);
  const grid = [0, ...boundaries.filter((boundary) => base.includes(boundary)), 65536];
  return grid.slice(1).flatMap((end, i) => {
    const start = grid[i] as number;
    return told(
      start,
      end - 1,
      boundaries.filter((boundary) => start < boundary && boundary < end),
    );
  });
}

describe('C10: sibling boundaries', () => {
  it('follow the rule as it is told, on any boundary set and base', () => {
    fc.assert(
      fc.property(arbShape({ maxCells: 14 }), arbShape(), (shape, baseShape) => {
        const base = boundariesOf(baseShape);
        expect(siblingBoundaries(shape, base)).toEqual(toldOnBase(shape, base));
        expect(siblingBoundaries(shape)).toEqual(toldOnBase(shape, []));
      }),
      { numRuns: 500 },
    );
  });

  it.each<[string, number[], number[], number[]]>([
    ['one cell has none', [], [], []],
    ['two halves', [0x8000], [], [0x8000]],
    ['an inner node is none', [0x4000, 0x8000], [], [0x4000]],
    ['both quarters', [0x4000, 0x8000, 0xc000], [], [0x4000, 0xc000]],
    ['without a midpoint the roundest is the root', [0x4000, 0x5555], [], [0x5555]],
    ['of equally round ones the lowest', [0x4000, 0xc000], [], [0xc000]],
    ['base boundaries are never siblings', [0x5555, 0xaaaa], [0x5555, 0xaaaa], []],
    ['a base cell is cut by its own midpoint', [0x5555, 0x8000, 0xaaaa], [0x5555, 0xaaaa], [0x8000]],
    ['a base boundary that is gone cuts nothing', [0x5555], [0x5555, 0xaaaa], []],
    ['without the base it would be one', [0x5555], [], [0x5555]],
    ['the first and the last hash', [1, 0xffff], [], [0xffff]],
  ])('%s', (_, boundaries, base, expected) => {
    expect(siblingBoundaries(shapeAt(...boundaries), base)).toEqual(expected);
  });

  it('nest: what midpoint splits of the first segments made, sibling merges take back, in any order', () => {
    const history = fc.record({
      segments: fc.integer({ min: 1, max: 12 }),
      picks: fc.array(fc.nat(), { maxLength: 20 }),
    });
    fc.assert(
      fc.property(history, fc.array(fc.nat(), { maxLength: 30 }), ({ segments, picks }, mergePicks) => {
        const first = createLayout({ segments, nowMs });
        let layout: Layout = picks.reduce((grown, pick) => {
          const segment = grown.active[pick % grown.active.length];
          const split = splitSegment(grown, segment?.segmentId ?? 0, { nowMs });
          expect(siblingBoundaries(shapeOf(split), split.base)).toContain(
            split.segments.get(split.nextSegmentId - 1)?.range.start,
          );
          return split;
        }, first);
        for (const pick of [...mergePicks, ...Array(40).fill(0)]) {
          const siblings = siblingBoundaries(shapeOf(layout), layout.base);
          const boundary = siblings[pick % siblings.length];
          if (boundary === undefined) break;
          const at = layout.active.findIndex((segment) => segment.range.start === boundary);
          const [left, right] = [layout.active[at - 1]?.segmentId ?? -1, layout.active[at]?.segmentId ?? -1];
          layout = mergeSegments(layout, left, right, { nowMs });
        }
        // A power of two merges down to one segment, any other count to its grid.
        const rest = layout.base === undefined ? [] : boundariesOf(shapeOf(first));
        expect(boundariesOf(shapeOf(layout))).toEqual(rest);
      }),
    );
  });

  it('4,096 boundaries of which none is a midpoint, and as many in a long chain', () => {
    const odd = shapeAt(...Array.from({ length: 4096 }, (_, i) => i * 16 + 1));
    expect(siblingBoundaries(odd)).toEqual(toldOnBase(odd, []));
    const chain = shapeAt(...Array.from({ length: 4096 }, (_, i) => i * 2 + 1));
    expect(siblingBoundaries(chain)).toEqual([8191]);
  });
});
