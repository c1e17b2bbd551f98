export { type ApplyShapeOptions, applyShape } from './apply.js';
export { type CreateLayoutOptions, createLayout } from './create.js';
export { equalWidthCount, isEqualWidth } from './equal-width.js';
export { executeOperation } from './execute.js';
export { findActiveSegment } from './find.js';
export { goalShape } from './goal.js';
export {
  type MergeOptions,
  mergeSegments,
  pruneSegment,
  rebucketSegment,
  rolloverSegments,
  type SplitOptions,
  splitSegment,
} from './mutate.js';
export { type HostCapabilities, type OperationPlan, planOperations, type Unreachable } from './operations.js';
export type { Operation } from './planned-host.js';
export { formatLayout, parseLayout } from './record.js';
export { isLegacy, type Layout, type Segment } from './segment.js';
export {
  boundariesOf,
  type Cell,
  equalCells,
  equalShapes,
  isAtLeastAsFine,
  joinShapes,
  parseShape,
  type Shape,
  shapeOf,
} from './shape.js';
export { siblingBoundaries } from './siblings.js';
