export type { PartOptions } from './part.js';
export { choosePath, inspectBatch, type Path, type PathOptions, type SkipReason } from './path.js';
export { type Part, type RebatchOptions, rebatch } from './rebatch.js';
export { isDone, type Rectangle } from './rectangle.js';
export { type RemoteLayout, routesOf, type SourceSegment } from './routes.js';
