/** Effective caps (C20): the least of all clusters'. They bind the local policy; what a peer has is folded all the same. */
import type { Caps, PeerState } from './peer-state.js';

/** A cap of a peer that differs from the own. Reported even where nothing is refused for it. */
export interface CapMismatch {
  readonly cluster: string;
  readonly cap: keyof Caps;
  readonly own: number;
  readonly theirs: number;
}

const CAPS = ['maxSegments', 'maxEntryBucketsPerSegment'] as const;

/** The least caps over a cluster and its peers, and where they differ. */
export function effectiveCaps(
  own: Caps,
  peers: readonly Pick<PeerState, 'cluster' | 'caps'>[],
): { readonly caps: Caps; readonly mismatches: readonly CapMismatch[] } {
  const least = (cap: keyof Caps) => Math.min(own[cap], ...peers.map(({ caps }) => caps[cap]));
  const mismatches = peers.flatMap(({ cluster, caps }) =>
    CAPS.filter((cap) => caps[cap] !== own[cap]).map((cap) => ({ cluster, cap, own: own[cap], theirs: caps[cap] })),
  );
  return {
    caps: { maxSegments: least('maxSegments'), maxEntryBucketsPerSegment: least('maxEntryBucketsPerSegment') },
    mismatches,
  };
}
