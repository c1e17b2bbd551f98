export { type CapMismatch, effectiveCaps } from './caps.js';
export type { ExchangeErrorCode, ExchangeRequest, ExchangeResult } from './exchange.js';
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
