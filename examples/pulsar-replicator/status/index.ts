/** What an operator sees of the program. */
export { type ComparedRange, type Convergence, compareLayouts } from './compare.js';
export {
  type BudgetLine,
  type ClusterLine,
  type ClusterView,
  type CreationLine,
  type CreationView,
  type DirectionLine,
  type DirectionSegment,
  type DirectionView,
  type MemberView,
  type SegmentBar,
  type StatusDocument,
  type StatusView,
  statusDocument,
  type TopicLine,
  type TopicView,
} from './document.js';
export { metricsText } from './metrics.js';
export { Progress, type ProgressOutput, progressText } from './progress.js';
export { type StatusServer, type StatusServerFailure, type StatusServerOptions, startStatusServer } from './server.js';
