/** Joins and folds: the cost of 4,096 cells over 64 times that of 64, which is 1 where it is linear. */
import { applyShape, createLayout, equalWidthSplits, joinShapes, type Layout, type Shape, shapeOf } from 'isthmus';
import { atMost, measure, type Row } from './harness.js';

const FEW = 64;
const MANY = 4096;

/** A layout of so many segments, and peers that each hold other boundaries beside the same ones. */
function world(cells: number, peers: number): { layout: Layout; shapes: Shape[] } {
  const layout = createLayout({ segments: cells, buckets: 4, nowMs: 0 });
  const width = 0x10000 / cells;
  const shapes = Array.from({ length: peers }, (_, peer) => {
    const boundaries = layout.active.slice(1).map(({ range }) => range.start);
    const own = boundaries.map((boundary) => boundary - 1 - (peer % (width - 1)));
    const all = [...new Set(peer === 0 ? boundaries : [...boundaries, ...own.slice(0, cells / 8)])];
    const shape = shapeOf(createLayout({ boundaries: all.sort((a, b) => a - b), buckets: 1 + (peer % 4), nowMs: 0 }));
    return { cells: shape.cells.map((cell) => ({ ...cell, entryBucketSplits: equalWidthSplits(1 + (peer % 4)) })) };
  });
  return { layout, shapes };
}

export async function layoutRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const peers of [2, 16]) {
    const few = world(FEW, peers);
    const many = world(MANY, peers);
    const join = ({ layout, shapes }: typeof few) =>
      joinShapes(shapeOf(layout), shapes[0] as Shape, ...shapes.slice(1));
    const joinedFew = join(few);
    const joinedMany = join(many);
    const timings = await measure([
      { name: 'join few', run: repeat(() => join(few)) },
      { name: 'join many', run: repeat(() => join(many)) },
      { name: 'fold few', run: repeat(() => applyShape(few.layout, joinedFew, { nowMs: 1 })) },
      { name: 'fold many', run: repeat(() => applyShape(many.layout, joinedMany, { nowMs: 1 })) },
    ]);
    const [joinFew = 0, joinMany = 0, foldFew = 0, foldMany = 0] = timings.map(({ medianNs }) => medianNs);
    // The cells that the work really goes over: the joined shape's, which the sketch above does not fix exactly.
    const growth = joinedMany.cells.length / joinedFew.cells.length;
    const against = (what: string) => `${growth.toFixed(0)} x ${what} of ${joinedFew.cells.length}`;
    const cells = `${joinedMany.cells.length} cells, ${peers} peers`;
    rows.push(atMost(`join, ${cells}`, against('join'), joinMany, growth * joinFew, 1.2));
    rows.push(atMost(`applyShape, ${cells}`, against('applyShape'), foldMany, growth * foldFew, 1.2));
  }
  return rows;
}

function repeat(work: () => unknown): (iterations: number) => undefined {
  return (iterations) => {
    for (let i = 0; i < iterations; i++) work();
  };
}
