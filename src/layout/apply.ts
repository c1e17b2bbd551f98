/**
 * The fold: bringing a layout onto a shape in one mutation (C5). An active segment that is a cell of the target
 * stays; all others are sealed and replaced by exactly the target's cells that they overlap. Splits, merges and
 * rebuckets, at midpoints or anywhere else, are all this one step, so no empty segments in between need draining.
 */
import { unionBoundaries } from '../ring/index.js';
import { type NewSegment, replaceSegments } from './assemble.js';
import { readBoundaries, requireShape } from './checks.js';
import type { Layout, Segment } from './segment.js';
import { type Cell, checkShape, equalCells, type Shape } from './shape.js';

export interface ApplyShapeOptions {
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** A peer's base boundaries; they join the layout's own with the mutation, and alone cause none (C10). */
  readonly base?: readonly number[];
}

/**
 * The layout brought onto `target` under one new epoch, or the same object where it already has that shape (C6).
 * New ids ascend with the ranges (C8). Throws `invalidShape` for a bad target, `invalidArgument` for a bad option,
 * and `invalidOperation` while several legacy segments are active.
 */
export function applyShape(layout: Layout, target: Shape, options: ApplyShapeOptions): Layout {
  checkShape(target);
  requireShape(layout);
  const created = newSegments(layout.active, target.cells);
  if (created.length === 0) return layout;
  return replaceSegments(layout, created, options.nowMs, joinedBase(layout.base, options.base));
}

/** One sweep over both tilings: the target's cells that are not there yet, each with the active segments it overlaps. */
function newSegments(active: readonly Segment[], cells: readonly Cell[]): NewSegment[] {
  const created: NewSegment[] = [];
  let first = 0;
  for (const cell of cells) {
    while ((active[first] as Segment).range.end < cell.range.start) first++;
    if (equalCells(cell, active[first])) continue;
    const parentIds: number[] = [];
    for (let i = first; i < active.length; i++) {
      const segment = active[i] as Segment;
      if (segment.range.start > cell.range.end) break;
      parentIds.push(segment.segmentId);
    }
    created.push({ range: cell.range, entryBucketSplits: cell.entryBucketSplits, parentIds });
  }
  return created;
}

function joinedBase(own: readonly number[] | undefined, other: readonly number[] | undefined) {
  if (other === undefined || other.length === 0) return own;
  return unionBoundaries(own ?? [], readBoundaries(other, 'base', 'invalidArgument'));
}
