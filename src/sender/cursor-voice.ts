/** What a cursor tells operators: each stall once as it is entered, what nobody need act on at most once a minute. */
import type { CursorName, SenderLog } from './events.js';
import type { Hub } from './hub.js';
import type { Link } from './link.js';
import { isStalled, needsFix, type SenderState, type StalledState } from './states.js';

const REPEAT_MS = 60_000;

export class CursorVoice {
  private state: SenderState = 'running';
  /** The stall that was told last, until it is over. */
  private told: StalledState | undefined;
  private warnedMs = Number.NEGATIVE_INFINITY;
  private fullMs = Number.NEGATIVE_INFINITY;
  /** Blocked records that were told of, until the cursor advances. */
  private readonly blockedOffsets = new Set<number>();

  constructor(
    private readonly hub: Hub,
    private readonly link: Link,
    private readonly partition: number,
  ) {}

  /** The state as it is now; `status` is that of the answer that stalled the cursor, if one did. */
  tell(state: SenderState, status: number | undefined): void {
    if (state === this.state) return;
    this.state = state;
    if (isStalled(state)) return this.stalled(state, status);
    if (state !== 'running' || this.told === undefined) return;
    this.log({ type: 'runningAgain', level: 'info', ...this.name, after: this.told });
    this.told = undefined;
  }

  blocked(offset: number, state: StalledState): void {
    if (this.blockedOffsets.has(offset)) return;
    this.blockedOffsets.add(offset);
    this.log({ type: 'blocked', level: 'warn', ...this.name, offset, state });
  }

  skipped(offset: number): void {
    this.log({ type: 'skipped', level: 'warn', ...this.name, offset });
  }

  advanced(): void {
    this.blockedOffsets.clear();
  }

  heldFull(unsentRecords: number): void {
    if (this.hub.nowMs - this.fullMs < REPEAT_MS) return;
    this.fullMs = this.hub.nowMs;
    this.log({ type: 'heldFull', level: 'error', ...this.name, remote: this.link.remote.name, unsentRecords });
  }

  fewerMessages(): void {
    this.log({ type: 'fewerMessages', level: 'warn', ...this.name, remote: this.link.remote.name });
  }

  lost({ from, to }: { readonly from: number; readonly to: number }): void {
    this.log({ type: 'lost', level: 'error', ...this.name, from, to });
  }

  private stalled(state: StalledState, status: number | undefined): void {
    const level = needsFix(state) ? 'error' : 'warn';
    if (level === 'warn') {
      if (this.hub.nowMs - this.warnedMs < REPEAT_MS) return;
      this.warnedMs = this.hub.nowMs;
    }
    this.told = state;
    const { remote } = this.link;
    const entry = { type: 'stalled', level, ...this.name, remote: remote.name, state } as const;
    this.log(status === undefined ? entry : { ...entry, status });
  }

  private get name(): CursorName {
    const { parent, child } = this.link.record;
    return { parent, partition: this.partition, child };
  }

  private log(entry: SenderLog): void {
    this.hub.log(entry);
  }
}
