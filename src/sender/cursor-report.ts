/** How a cursor stands: what is reported of it, and what it is worst off by. */
import type { Lane } from './lane.js';
import type { Link } from './link.js';
import { type SenderState, type StalledState, worstState } from './states.js';

/** How a partition of a link stands on this node. Times are milliseconds since the epoch. */
export interface CursorReport {
  readonly cursor: string;
  readonly child: string;
  readonly partition: number;
  /** Everything before it is at the target, or was counted as skipped or lost. */
  readonly offset: number;
  readonly state: SenderState;
  /** The lowest record that the target refuses. */
  readonly blockedAt?: { readonly offset: number; readonly state: StalledState };
  /** When the parent stored the oldest record that is in hand and unsent. */
  readonly oldestUnsentMs?: number;
  readonly lastSuccessMs?: number;
  /** When the link's target was last found as it should be. */
  readonly targetVerifiedMs?: number;
  /** When the cursor was attached. */
  readonly startedMs: number;
}

/** The worst of what stands in a cursor's way; then whether it is paused. `isIdle`: it has no records in hand. */
export function stateOfCursor(
  { check, record, remote }: Link,
  lanes: readonly Lane[],
  stalled: StalledState | undefined,
  isIdle: boolean,
): SenderState {
  const lookup = remote.lookup.state;
  const worst = worstState([
    lookup === 'ready' ? undefined : lookup,
    stalled,
    check.stop?.state,
    record.paused ? undefined : remote.gate.reason,
    isIdle ? check.failedState : undefined,
    ...lanes.flatMap((lane) => [lane.state, lane.blocked?.state]),
  ]);
  return worst === 'running' && record.paused ? 'paused' : worst;
}

/** What is reported of a cursor besides what it is itself. */
export interface ReportedCursor {
  readonly name: string;
  readonly link: Link;
  readonly partition: number;
  readonly offset: number;
  readonly state: SenderState;
  readonly startedMs: number;
  readonly lastSuccessMs: number | undefined;
  readonly lanes: readonly Lane[];
}

export function reportCursor(cursor: ReportedCursor): CursorReport {
  const { name, link, partition, offset, state, startedMs, lanes, lastSuccessMs } = cursor;
  const blocks = lanes.flatMap(({ blocked }) => (blocked === undefined ? [] : [blocked]));
  const [lowest] = blocks.sort((a, b) => a.offset - b.offset);
  const unsent = lanes.flatMap((lane) => (lane.isDone ? [] : [lane.front?.record.storedAtMs ?? 0]));
  const { verifiedMs } = link.check;
  return {
    cursor: name,
    child: link.record.child,
    partition,
    offset,
    state,
    startedMs,
    ...(lowest === undefined ? {} : { blockedAt: { offset: lowest.offset, state: lowest.state } }),
    ...(unsent.length === 0 ? {} : { oldestUnsentMs: Math.min(...unsent) }),
    ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
    ...(verifiedMs === undefined ? {} : { targetVerifiedMs: verifiedMs }),
  };
}
