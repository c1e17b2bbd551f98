/**
 * The canonical split tree of a boundary set (C10). It is a function of the set and the base grid alone, never of
 * lineage: pruning forgets lineage, and clusters that met with different histories would disagree about it. The
 * top cells are cut by those base boundaries that the set has. Inside a cell the root is its midpoint if the set
 * has it, else the boundary with the most trailing zero bits, the lowest of several; both sides go on likewise.
 */
import { type HashRange, midpoint, RING_END } from '../ring/index.js';

/** A range that the set cuts, and the boundary at which it is cut first. */
export interface SplitNode {
  readonly range: HashRange;
  readonly root: number;
  /** True when the root is the midpoint of the range, so that a plain split makes it. */
  readonly atMidpoint: boolean;
  /** The boundaries inside the range are `boundaries[first]` to `boundaries[end - 1]`. */
  readonly first: number;
  readonly end: number;
  /** Index of the node that this one is a half of; -1 for a top cell. */
  readonly parent: number;
}

/** Every node of the tree, in range order, parents before their children. `boundaries` and `base` are strictly ascending. */
export function splitTree(boundaries: readonly number[], base: readonly number[] = []): SplitNode[] {
  const rootOf = rootFinder(boundaries);
  const nodes: SplitNode[] = [];
  const pending = topCells(boundaries, base);
  for (let cell = pending.pop(); cell !== undefined; cell = pending.pop()) {
    const { range, first, end, parent } = cell;
    if (first === end) continue;
    const at = rootOf(range, first, end);
    const root = boundaries[at] as number;
    const index = nodes.push({ range, root, atMidpoint: root === midpoint(range), first, end, parent }) - 1;
    pending.push(
      { range: { start: root, end: range.end }, first: at + 1, end, parent: index },
      { range: { start: range.start, end: root - 1 }, first, end: at, parent: index },
    );
  }
  return nodes;
}

type PendingCell = Pick<SplitNode, 'range' | 'first' | 'end' | 'parent'>;

/** The cells between the base boundaries that the set has, the last one first. */
function topCells(boundaries: readonly number[], base: readonly number[]): PendingCell[] {
  const grid = new Set(base);
  const cells: PendingCell[] = [];
  let start = 0;
  let first = 0;
  boundaries.forEach((boundary, i) => {
    if (!grid.has(boundary)) return;
    cells.push({ range: { start, end: boundary - 1 }, first, end: i, parent: -1 });
    start = boundary;
    first = i + 1;
  });
  cells.push({ range: { start, end: RING_END }, first, end: boundaries.length, parent: -1 });
  return cells.reverse();
}

/** Finds the index of the root among boundaries `first..end - 1`, by binary search in one list per count of zero bits. */
function rootFinder(boundaries: readonly number[]) {
  const levels: number[][] = Array.from({ length: 16 }, () => []);
  boundaries.forEach((boundary, i) => {
    levels[trailingZeros(boundary)]?.push(i);
  });
  return (range: HashRange, first: number, end: number): number => {
    const middle = midpoint(range);
    const level = levels[trailingZeros(middle)] ?? [];
    const candidate = level[lowerBound(level.length, (i) => (boundaries[level[i] as number] as number) < middle)];
    if (candidate !== undefined && boundaries[candidate] === middle) return candidate;
    for (let zeros = 15; zeros >= 0; zeros--) {
      const indexes = levels[zeros] as number[];
      const lowest = indexes[lowerBound(indexes.length, (i) => (indexes[i] as number) < first)];
      if (lowest !== undefined && lowest < end) return lowest;
    }
    return first;
  };
}

function trailingZeros(boundary: number): number {
  return 31 - Math.clz32(boundary & -boundary);
}

/** The first index of 0..length for which `isBelow` no longer holds. */
function lowerBound(length: number, isBelow: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBelow(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
