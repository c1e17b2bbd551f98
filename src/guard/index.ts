export { type CanonicalUrl, canonicalHost, canonicalUrl } from './canonical.js';
export type { AddressVerdict, DenialCause, PinnedAddress } from './classify.js';
export {
  type DialPermit,
  type DialRefusal,
  type DialVerdict,
  Guard,
  type GuardOptions,
  type RefusalReason,
} from './guard.js';
export { DialRefused, type GuardedTarget, guardTarget, type ResolveHost } from './lookup.js';
