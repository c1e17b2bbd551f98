/**
 * Shapes: what two clusters compare and join. A shape is the boundary set of a layout on both rings, written as
 * cells that tile the segment ring; ids, epochs and lineage are no part of it. Under "finer or equal" shapes form a
 * join-semilattice (C1, C2): a boundary is in the join if either side has it, so the order in which states arrive
 * does not matter. All functions sweep the cells once, from left to right.
 */
import { IsthmusError, show } from '../errors.js';
import {
  equalBoundaries,
  equalRanges,
  type HashRange,
  includesBoundaries,
  parseBoundaries,
  parseRange,
  RING_END,
  unionBoundaries,
} from '../ring/index.js';
import { isRecord, requireShape } from './checks.js';
import type { Layout } from './segment.js';

/** One range of the segment ring and the bucket boundaries that hold on all of it. */
export interface Cell {
  readonly range: HashRange;
  /** Starts of buckets 1..N-1, strictly ascending in 1..0xFFFF. */
  readonly entryBucketSplits: readonly number[];
}

/** Cells in range order that tile the ring. */
export interface Shape {
  readonly cells: readonly Cell[];
}

/** The shape of a layout, from its active segments only (C4). Throws `invalidOperation` when they are several legacy ones. */
export function shapeOf(layout: Layout): Shape {
  requireShape(layout);
  return { cells: layout.active.map(({ range, entryBucketSplits }) => ({ range, entryBucketSplits })) };
}

/** The segment boundaries of a shape: the starts of its cells but the first. */
export function boundariesOf(shape: Shape): number[] {
  return shape.cells.slice(1).map((cell) => cell.range.start);
}

/** Refuses, as `invalidShape`, what is not a shape (C4). The message names the field. */
export function checkShape(value: unknown): asserts value is Shape {
  const cells = isRecord(value) ? value.cells : undefined;
  if (!Array.isArray(cells)) {
    throw new IsthmusError('invalidShape', `shape is ${show(value)}: it needs an array of cells`);
  }
  let next = 0;
  for (const [i, cell] of (cells as unknown[]).entries()) {
    const { range: rangeValue, entryBucketSplits } = isRecord(cell) ? cell : {};
    const range = parseRange(rangeValue, `cells[${i}].range`);
    if (range.start !== next) {
      throw new IsthmusError(
        'invalidShape',
        `cells[${i}].range.start is ${range.start}, not ${next}: cells tile the ring without gap or overlap`,
      );
    }
    parseBoundaries(entryBucketSplits, `cells[${i}].entryBucketSplits`);
    next = range.end + 1;
  }
  if (next !== RING_END + 1) {
    throw new IsthmusError('invalidShape', `cells end before ${next}, not before 65536: cells tile the ring`);
  }
}

/** A shape that came from outside, checked and copied; members that a shape does not have are dropped. Throws `invalidShape`. */
export function parseShape(value: unknown): Shape {
  checkShape(value);
  const cells = value.cells.map(({ range, entryBucketSplits }) => ({
    range: { start: range.start, end: range.end },
    entryBucketSplits: [...entryBucketSplits],
  }));
  return { cells };
}

/**
 * The coarsest shape that is at least as fine as all of them (C1). Boundary lists are shared with the arguments,
 * and an argument that already is the join is returned itself.
 */
export function joinShapes(a: Shape, b: Shape, ...more: readonly Shape[]): Shape {
  return more.reduce(joinTwo, joinTwo(a, b));
}

function joinTwo(a: Shape, b: Shape): Shape {
  const cells: Cell[] = [];
  const unite = rememberingUnion();
  let isA = true;
  let isB = true;
  let start = 0;
  for (let i = 0, j = 0; start <= RING_END; ) {
    const x = a.cells[i] as Cell;
    const y = b.cells[j] as Cell;
    const range = { start, end: Math.min(x.range.end, y.range.end) };
    const entryBucketSplits = unite(x.entryBucketSplits, y.entryBucketSplits);
    // A union as long as one of its sides is that side.
    const isX = equalRanges(range, x.range) && entryBucketSplits.length === x.entryBucketSplits.length;
    const isY = equalRanges(range, y.range) && entryBucketSplits.length === y.entryBucketSplits.length;
    isA &&= isX;
    isB &&= isY;
    cells.push(isX ? x : isY ? y : { range, entryBucketSplits });
    if (x.range.end === range.end) i++;
    if (y.range.end === range.end) j++;
    start = range.end + 1;
  }
  return isA ? a : isB ? b : { cells };
}

/** The union of two lists; neighbouring cells often share theirs, so the last result is used again. */
function rememberingUnion(): (a: readonly number[], b: readonly number[]) => readonly number[] {
  let lastA: readonly number[] | undefined;
  let lastB: readonly number[] | undefined;
  let union: readonly number[] = [];
  return (a, b) => {
    if (a !== lastA || b !== lastB) union = unionBoundaries(a, b);
    lastA = a;
    lastB = b;
    return union;
  };
}

/** True when `a` has every boundary of `b`, on both rings, at every point (C2: b is less than or equal to a). */
export function isAtLeastAsFine(a: Shape, b: Shape): boolean {
  let j = 0;
  return a.cells.every((cell) => {
    const coarse = b.cells[j] as Cell;
    if (cell.range.end === coarse.range.end) j++;
    return cell.range.end <= coarse.range.end && includesBoundaries(cell.entryBucketSplits, coarse.entryBucketSplits);
  });
}

/** True when both have the same boundaries. */
export function equalShapes(a: Shape, b: Shape): boolean {
  return a === b || (a.cells.length === b.cells.length && a.cells.every((cell, i) => equalCells(cell, b.cells[i])));
}

/** True when both are the same range with the same bucket boundaries. */
export function equalCells(a: Cell, b: Cell | undefined): boolean {
  if (b === undefined) return false;
  return equalRanges(a.range, b.range) && equalBoundaries(a.entryBucketSplits, b.entryBucketSplits);
}
