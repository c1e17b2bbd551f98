export {
  type BudgetEffect,
  type BudgetOptions,
  type BudgetReport,
  type BudgetSettings,
  DEFAULT_BUDGET,
  SlowPathBudget,
  slowPathBytes,
  type ThrottledTime,
} from './budget.js';
export {
  type DuplicateCause,
  type HoldReason,
  newCounters,
  type PassReason,
  type ReplicatorCounters,
} from './counters.js';
export { FAILURES, type Failure, type FailureAnswer, type FailureClass, type FailureRow } from './failures.js';
export { type FoundCopy, readCopy } from './found.js';
export { canPrune, type DrainAnswer } from './gc-gate.js';
export { pinPlaces } from './pin-places.js';
export { RateLimit, type RateLimitEffect, type RateLimitSettings, type ReadSize } from './rate-limit.js';
export {
  DEFAULT_SEGMENT_OPTIONS,
  type LaneReport,
  type LaneStop,
  type Recovery,
  type SegmentEffect,
  type SegmentEvent,
  type SegmentNotice,
  type SegmentOptions,
  type SegmentReplicatorStart,
  type SegmentReport,
  type SegmentWait,
} from './segment-events.js';
export { SegmentReplicator } from './segment-replicator.js';
export { STOP_REASONS, type StopReason } from './stop-reasons.js';
