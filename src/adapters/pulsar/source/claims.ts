/**
 * Which segments of a topic this process has: those whose subscription it holds. Others are tried again and again, and
 * what is above this process's share is asked back, the last that was got first.
 */

import { Notifier } from '../../../notifier.js';
import type { Clock, SegmentClaim } from '../../../ports/index.js';
import { type Refusal, SERVER_ERROR } from '../protocol/index.js';
import type { Members } from '../state/index.js';
import { reasonOf } from './feed.js';
import { Hold } from './hold.js';

/** Sealed segments are shared out by themselves: their successors wait for them, wherever those are. */
export type SegmentKind = 'active' | 'sealed';

export interface ClaimsOptions {
  readonly clock: Clock;
  /** Absent: this process takes all that it can get. */
  readonly members: Members | undefined;
  /** Undefined for a segment that is not in the layout any more: it counts as sealed. */
  readonly kindOf: (segmentId: number) => SegmentKind;
  /** How many segments of a kind there are. */
  readonly count: (kind: SegmentKind) => number;
  readonly takeHold: (segmentId: number) => Promise<Hold | Refusal>;
  /** Why a segment is not got, other than that another process has it. */
  readonly onRefused: (segmentId: number, reason: string) => void;
}

interface Claimed {
  readonly hold: Hold;
  /** Undefined once it was asked back. */
  ask: (() => void) | undefined;
}

const RETRY_MS = 1_000;
const MAX_RETRY_MS = 10_000;

export class Claims {
  /** In the order in which they were got. */
  private readonly claimed = new Map<number, Claimed>();
  private readonly changed = new Notifier();

  constructor(private readonly options: ClaimsOptions) {}

  hold(segmentId: number): Hold | undefined {
    return this.claimed.get(segmentId)?.hold;
  }

  async claim(segmentId: number, signal: AbortSignal): Promise<SegmentClaim> {
    for (let waitMs = RETRY_MS; ; waitMs = Math.min(MAX_RETRY_MS, waitMs * 2)) {
      while (!this.hasRoom(segmentId)) await this.changed.changed(signal);
      signal.throwIfAborted();
      const result = await this.options.takeHold(segmentId);
      if (result instanceof Hold) {
        if (!signal.aborted && this.hasRoom(segmentId)) return this.got(segmentId, result);
        await result.close();
      } else if (result.type === 'unreachable' || result.code !== SERVER_ERROR.consumerBusy) {
        this.options.onRefused(segmentId, reasonOf(result));
      }
      await this.pause(waitMs, signal);
    }
  }

  /** Looks again at the shares, once segments or members have come or gone. */
  rebalance(): void {
    for (const kind of ['active', 'sealed'] as const) {
      const mine = [...this.claimed].filter(([segmentId]) => this.options.kindOf(segmentId) === kind);
      const staying = mine.filter(([, { ask }]) => ask !== undefined);
      const surplus = staying.length - this.share(kind);
      if (surplus <= 0) continue;
      for (const [, claimed] of staying.slice(-surplus)) {
        claimed.ask?.();
        claimed.ask = undefined;
      }
    }
    this.changed.wake();
  }

  async close(): Promise<void> {
    const holds = Array.from(this.claimed.values(), ({ hold }) => hold);
    this.claimed.clear();
    await Promise.all(holds.map((hold) => hold.close()));
  }

  private got(segmentId: number, hold: Hold): SegmentClaim {
    const claimed: Claimed = { hold, ask: undefined };
    const asked = new Promise<'asked'>((resolve) => {
      claimed.ask = () => resolve('asked');
    });
    this.claimed.set(segmentId, claimed);
    const lost = hold.lost.then(() => {
      this.forget(segmentId, hold);
      // Its feed may live on another connection, and is of no use any more.
      void hold.close();
      return 'lost' as const;
    });
    return {
      ending: Promise.race([lost, asked]),
      release: async () => {
        this.forget(segmentId, hold);
        await hold.close();
      },
    };
  }

  private forget(segmentId: number, hold: Hold): void {
    if (this.claimed.get(segmentId)?.hold !== hold) return;
    this.claimed.delete(segmentId);
    this.changed.wake();
  }

  private hasRoom(segmentId: number): boolean {
    const kind = this.options.kindOf(segmentId);
    const mine = [...this.claimed.keys()].filter((id) => this.options.kindOf(id) === kind);
    return mine.length < this.share(kind);
  }

  private share(kind: SegmentKind): number {
    const { members, count } = this.options;
    return members === undefined ? Number.POSITIVE_INFINITY : members.share(count(kind));
  }

  /** Until the next try, or something has changed. */
  private async pause(ms: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const either = AbortSignal.any([over.signal, signal]);
    try {
      await Promise.race([this.options.clock.sleep(ms, either), this.changed.changed(either)]);
    } catch {
      signal.throwIfAborted();
    } finally {
      over.abort();
    }
  }
}
