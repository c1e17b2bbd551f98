/** Which boundaries a cluster may mark cold: those between two halves of one cell of the canonical split tree. */
import { boundariesOf, type Shape } from './shape.js';
import { splitTree } from './split-tree.js';

/**
 * The boundaries between sibling cells, ascending (C10). They are judged on the shape as given (callers pass the
 * joined one) and on `base`, the grid of the layout's first boundaries, none of which is ever a sibling.
 */
export function siblingBoundaries(shape: Shape, base?: readonly number[]): number[] {
  return splitTree(boundariesOf(shape), base)
    .filter((node) => node.end - node.first === 1)
    .map((node) => node.root);
}
