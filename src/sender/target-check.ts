/**
 * The running check of a link's target: one schedule, one verdict and one request at a time for all its partitions on a
 * node. It reads the target's children listing. A remote child there, or another topic under the name, stops the link
 * before anything is sent to it; a check that errs stops nothing by itself.
 */
import {
  type ChildrenListing,
  childrenListing,
  describeRequest,
  jsonObject,
  listingRequest,
  type ReadClass,
  readClass,
  retryAfterMs,
} from './answers.js';
import { count, type LinkCounters } from './counters.js';
import type { GateFailure, GateWaiter } from './gate.js';
import type { Hub } from './hub.js';
import type { HttpOutcome, LinkRecord } from './ports.js';
import type { RemoteShare } from './remote-share.js';
import { type SenderState, stateOfClass } from './states.js';

export const STOP_RETRY_MS = 30_000;
const ERROR_RETRY_MS = 30_000;
const SHORTEST_INTERVAL_MS = 1_000;
const JITTER = 0.2;

/** Somebody who may not go on before a check has ended: a lane with records, or a cursor that has none. */
export interface CheckAsker extends GateWaiter {
  readonly hasRecords: boolean;
  /** The check it started, or waited for, has ended. */
  checked(): void;
}

/** What a check finds on the target, for good or bad. */
export type TargetVerdict = 'fine' | 'target_has_remote_children' | 'target_replaced';

/**
 * The verdict on a target that serves a listing. `describedId` is the ID of its description, which is asked for when the
 * listing has none; an empty one says nothing there.
 */
export function judgeTarget(listing: ChildrenListing, recordedId: string, describedId?: string): TargetVerdict {
  if (listing.hasRemoteChild) return 'target_has_remote_children';
  const id = listing.topicId ?? (describedId === '' ? undefined : describedId);
  return id !== undefined && id !== recordedId ? 'target_replaced' : 'fine';
}

/** How a check ended. */
type CheckResult =
  | { readonly type: 'verdict'; readonly verdict: TargetVerdict }
  | { readonly type: 'failed'; readonly class: ReadClass; readonly retryAfterMs: number; readonly wasSent: boolean };

/** Classes by which the target itself refuses to be read: the check has reached it. */
const REACHED: ReadonlySet<ReadClass> = new Set(['forbidden', 'target_missing', 'redirect_refused', 'unknown']);

/** A check that is out. */
interface Running {
  readonly key: string;
  readonly starter: CheckAsker;
  readonly wasGateOpen: boolean;
}

export class TargetCheck {
  /** Why nothing may be sent, and when to look again. */
  stop: { readonly state: Exclude<TargetVerdict, 'fine'>; dueMs: number } | undefined;
  /** How the last check failed; undefined when it came to a verdict. */
  failedState: SenderState | undefined;
  /** When a check last found all well. */
  verifiedMs: number | undefined;
  private covered: string | undefined;
  private nextMs = 0;
  /** An errored check of this key is tried again then, and not before. */
  private retry: { readonly key: string; readonly atMs: number } | undefined;
  private isForced = false;
  private running: Running | undefined;
  private readonly waiting = new Set<CheckAsker>();

  constructor(
    private readonly hub: Hub,
    private readonly remote: RemoteShare,
    private readonly link: () => LinkRecord,
    private readonly counters: LinkCounters,
    private readonly told: () => void,
  ) {}

  /** Checked anew before anything else is sent. */
  force(): void {
    this.isForced = true;
    this.retry = undefined;
  }

  /** Somebody may have acted: what stopped the link is looked at now. */
  hurry(): void {
    if (this.stop !== undefined) this.stop.dueMs = this.hub.nowMs;
  }

  /** When a check is due. */
  get dueMs(): number {
    if (this.running !== undefined) return Number.POSITIVE_INFINITY;
    const { key } = this;
    if (this.retry?.key === key) return this.retry.atMs;
    if (this.isForced || key !== this.covered) return 0;
    return Math.min(this.nextMs, this.stop?.dueMs ?? Number.POSITIVE_INFINITY);
  }

  /** Whether who asks may go on; if not, `checked` tells it when. Starts the check that is due. */
  passes(asker: CheckAsker): boolean {
    if (this.running !== undefined) {
      // Merely due by the clock: the last verdict serves meanwhile.
      if (!this.mustBeAwaited()) return true;
    } else {
      if (this.hub.nowMs < this.dueMs) return true;
      this.start(asker);
    }
    this.waiting.add(asker);
    return false;
  }

  leave(asker: CheckAsker): void {
    this.waiting.delete(asker);
  }

  private get key(): string {
    return `${this.remote.credential} ${this.remote.gate.epoch} ${this.link().targetId}`;
  }

  private mustBeAwaited(): boolean {
    const { key } = this;
    return this.isForced || (key !== this.covered && this.retry?.key !== key);
  }

  private start(starter: CheckAsker): void {
    this.running = { key: this.key, starter, wasGateOpen: this.remote.gate.isOpen };
    const { topic } = this.link();
    this.remote.request(listingRequest(topic), (outcome, isCurrent) => {
      const listing = childrenListing(outcome);
      if (listing === undefined) return this.ended(this.failure(outcome), isCurrent);
      if (listing.hasRemoteChild || listing.topicId !== undefined) return this.found(listing, isCurrent);
      this.remote.request(describeRequest(topic), (described, isStillCurrent) => {
        const id = described.type === 'answer' && described.status === 200 ? jsonObject(described)?.id : undefined;
        const isRead = described.type === 'answer' && described.status === 200 && jsonObject(described) !== undefined;
        if (!isRead) return this.ended(this.failure(described), isStillCurrent);
        this.found(listing, isStillCurrent, typeof id === 'string' ? id : '');
      });
    });
  }

  private found(listing: ChildrenListing, isCurrent: boolean, describedId?: string): void {
    this.ended({ type: 'verdict', verdict: judgeTarget(listing, this.link().targetId, describedId) }, isCurrent);
  }

  /** A 200 in another shape was not the target's. */
  private failure(outcome: HttpOutcome): CheckResult {
    return {
      type: 'failed',
      class: readClass(outcome) ?? 'edge',
      retryAfterMs: retryAfterMs(outcome.type === 'answer' ? outcome.retryAfter : undefined, this.hub.nowMs),
      wasSent: outcome.type !== 'notSent' && outcome.type !== 'refused',
    };
  }

  private ended(result: CheckResult, isCurrent: boolean): void {
    const { running } = this;
    if (running === undefined) return;
    this.running = undefined;
    const askers = [...this.waiting];
    this.waiting.clear();
    if (this.stop !== undefined) this.stop.dueMs = this.hub.nowMs + STOP_RETRY_MS;
    if (result.type === 'verdict') this.take(result.verdict);
    else this.countFailure(result.class);
    const isReached = result.type === 'verdict' || REACHED.has(result.class);
    if (isReached) this.cover(running.key);
    this.tellGate(result, isReached, [running.starter, ...askers], isCurrent);
    if (!isReached && result.type === 'failed') this.owe(running, result);
    this.failedState = result.type === 'failed' ? stateOfClass(result.class) : undefined;
    this.told();
    for (const asker of askers) asker.checked();
  }

  private take(verdict: TargetVerdict): void {
    const { nowMs } = this.hub;
    if (verdict === 'fine') {
      this.stop = undefined;
      this.verifiedMs = nowMs;
    } else this.stop = { state: verdict, dueMs: nowMs + STOP_RETRY_MS };
  }

  private countFailure(name: ReadClass): void {
    this.counters.fanoutRemoteCheckFailuresTotal++;
    count(this.remote.counters.remoteErrorsTotal, name);
  }

  private cover(key: string): void {
    this.covered = key;
    this.isForced = false;
    this.retry = undefined;
    this.nextMs = this.hub.nowMs + this.intervalMs * (1 - JITTER + 2 * JITTER * this.hub.random.next());
  }

  /**
   * An error covers nothing. Beside an open gate it is tried again after a while, and sending goes on; while the gate is
   * closed, and once it has opened, the check stays owed. What never left the node is not tried at once either.
   */
  private owe({ key, wasGateOpen }: Running, { wasSent }: { readonly wasSent: boolean }): void {
    if (wasSent && !(wasGateOpen && this.remote.gate.isOpen)) return;
    this.isForced = false;
    this.retry = { key, atMs: this.hub.nowMs + Math.min(this.intervalMs, ERROR_RETRY_MS) };
  }

  /**
   * A check is a request like any other. One that is the gate's probe reports for it, but for a lane's whose check passed
   * or failed in passing: that lane's records go, and report.
   */
  private tellGate(result: CheckResult, isReached: boolean, askers: readonly CheckAsker[], isCurrent: boolean): void {
    const { gate } = this.remote;
    const asker = askers.find((one) => gate.isProber(one)) ?? (askers[0] as CheckAsker);
    if (isReached) {
      if (!asker.hasRecords) gate.succeeded(asker);
      return;
    }
    if (result.type !== 'failed') return;
    const failure = gateFailure(result.class);
    if (!isCurrent || !result.wasSent || failure === undefined) {
      if (!asker.hasRecords || !isCurrent) gate.handBack(asker);
    } else if (failure !== 'unavailable' || (gate.isProber(asker) && !asker.hasRecords)) {
      gate.failed(asker, failure, this.hub.nowMs, result.retryAfterMs);
    }
  }

  private get intervalMs(): number {
    return Math.max(this.remote.limits.checkIntervalMs, SHORTEST_INTERVAL_MS);
  }
}

/** What an errored check means to the gate; undefined for one that the guard refused. */
function gateFailure(name: ReadClass): GateFailure | undefined {
  if (name === 'auth_failed' || name === 'throttled' || name === 'tls_failed') return name;
  return name === 'destination_refused' ? undefined : 'unavailable';
}
