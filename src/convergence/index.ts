export { type CapMismatch, effectiveCaps } from './caps.js';
export { type ControllerStart, startController, stepController } from './controller.js';
export type {
  ControllerEffect,
  ControllerEvent,
  ControllerOptions,
  ControllerReport,
  ControllerState,
  ControllerStep,
  ManualOperation,
  PeerRecord,
  ResolvedControllerOptions,
} from './controller-state.js';
export type { ExchangeErrorCode, ExchangeRequest, ExchangeResult } from './exchange.js';
export {
  DEFAULT_BUCKET_LIMIT,
  type NextShape,
  type NextShapeInput,
  nextShape,
  type ShapeDifference,
} from './next-shape.js';
export {
  formatPeerState,
  isExchangeErrorCode,
  parseExchangeRequests,
  parseExchangeResults,
  parsePeerState,
  type RefusedTopic,
  readExchangeRequests,
  readExchangeResults,
} from './parse-state.js';
export {
  type BucketMarks,
  type Caps,
  type ColdMarks,
  isNewer,
  NO_MARKS,
  type PeerState,
  PROTOCOL_VERSION,
} from './peer-state.js';
export type { LocalPolicy, PolicyDecision, PolicyView, SegmentLoad } from './policy.js';
export { heardStates, joinedBase, statedShape } from './statement.js';
export { type ControllerStatus, compareRanges, controllerStatus, type PeerStatus } from './status.js';
export { thresholdPolicy } from './threshold-policy.js';
export { DEFAULT_THRESHOLDS, type ThresholdSettings } from './threshold-settings.js';
