/** What is counted of a topic's provisioning: an alert can be set on a reason ("Stops are visible"). */
import type { Creation } from './decide.js';
import type { ProvisioningReason } from './reasons.js';

/** Counts since the machine began. Members that are absent are 0. */
export interface ProvisioningCounters {
  /** Decisions, by reason. */
  readonly decisions: { readonly [reason in ProvisioningReason]?: number };
  /** Creating calls, by kind. */
  readonly creations: { readonly [creation in Creation['type']]?: number };
  /** Times that a replicator was started. */
  readonly starts: number;
  /** Times that a running replicator was stopped. */
  readonly stops: number;
}

export const NO_COUNTS: ProvisioningCounters = Object.freeze({ decisions: {}, creations: {}, starts: 0, stops: 0 });

/** One more under a name. */
export function oneMore<Name extends string>(
  counts: { readonly [name in Name]?: number },
  name: Name,
): { readonly [name in Name]?: number } {
  return { ...counts, [name]: (counts[name] ?? 0) + 1 };
}
