/**
 * The state topic of a process on a destination cluster: the cursors of all topics that it replicates there, and who
 * else does. One producer and one reader serve all of them. Losing the topic costs duplicates, or reading back remote
 * segments from their start (R15), never entries.
 */
import { randomUUID } from 'node:crypto';
import { IsthmusError, show } from '../../../errors.js';
import type { Clock, CursorStore, CursorWrite } from '../../../ports/index.js';
import type { PulsarClient } from '../protocol/index.js';
import { StateCursors } from './cursors.js';
import { StateFold } from './fold.js';
import { StateLog } from './log.js';
import { Group, isSilent, type Members } from './members.js';
import { memberKey, type StoreName, storeKey } from './records.js';

export interface StateTopicOptions {
  /** Of the destination cluster. */
  readonly client: PulsarClient;
  /** `persistent://tenant/namespace/name`: made ready by `prepareState`, and never created here. */
  readonly topic: string;
  /** Names this process; no two that run have the same. Default: one that nobody has. */
  readonly process?: string;
  /** How often this process says that it lives, in milliseconds, 100..60,000; default 5,000. */
  readonly heartbeatMs?: number;
  /** How long a record may take until it is read back, in milliseconds; default 20,000. */
  readonly timeoutMs?: number;
  readonly clock: Clock;
}

const DEFAULT_HEARTBEAT_MS = 5_000;
const DEFAULT_TIMEOUT_MS = 20_000;

/** Connects when it is used first, and again after a failure; calls in between reject. */
export class StateTopic {
  /** The name of this process in the topic. */
  readonly process: string;
  private readonly clock: Clock;
  private readonly heartbeatMs: number;
  private readonly log: StateLog<CursorWrite>;
  private readonly fold: StateFold;
  private readonly stores = new Map<string, StateCursors>();
  private readonly groups = new Map<string, Group>();
  private readonly closing = new AbortController();
  private beating: Promise<void> | undefined;
  private isLoaded = false;

  /** Throws `invalidArgument` for a heartbeat that is out of range. */
  constructor({ client, topic, clock, ...options }: StateTopicOptions) {
    const { process = randomUUID(), heartbeatMs = DEFAULT_HEARTBEAT_MS, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
    if (!Number.isInteger(heartbeatMs) || heartbeatMs < 100 || heartbeatMs > 60_000) {
      throw new IsthmusError('invalidArgument', `heartbeatMs is ${show(heartbeatMs)}: an integer of 100..60000`);
    }
    this.process = process;
    this.clock = clock;
    this.heartbeatMs = heartbeatMs;
    this.fold = new StateFold(clock, () => this.count());
    this.log = new StateLog({ client, topic, process, clock, timeoutMs }, this.fold, () => this.heartbeat());
  }

  /** The cursors of a topic towards a remote. */
  cursors(name: StoreName): CursorStore {
    const key = storeKey(name);
    let store = this.stores.get(key);
    if (store === undefined) {
      store = new StateCursors(key, this.process, this.log, this.fold, this.clock);
      this.stores.set(key, store);
    }
    return store;
  }

  /** Joins those who share the segments of a topic towards a remote; this process counts as one until it closes. */
  join(name: StoreName): Members {
    const key = storeKey(name);
    let group = this.groups.get(key);
    if (group === undefined) {
      group = new Group(key, this.process, this.clock);
      this.groups.set(key, group);
      void this.beat().catch(() => undefined);
      this.beating ??= this.keepBeating();
    }
    return group;
  }

  /** The processes that are counted as alive now, for people to read. */
  members(): readonly { readonly process: string; readonly lastSeenMsAgo: number }[] {
    const nowMs = this.clock.now();
    return [...this.fold.members]
      .filter(([, member]) => !isSilent(member, nowMs))
      .map(([process, { heardMs }]) => ({ process, lastSeenMsAgo: nowMs - heardMs }));
  }

  /** Takes leave of the other members, and disconnects. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.beating;
    if (this.groups.size > 0 && this.log.isFollowing) {
      await this.log.append(memberKey(this.process), undefined).catch(() => undefined);
    }
    await this.log.close();
  }

  private heartbeat() {
    return {
      key: memberKey(this.process),
      value: { groups: [...this.groups.keys()], intervalMs: this.heartbeatMs },
    };
  }

  private async keepBeating(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted) {
      await this.clock.sleep(this.heartbeatMs, signal).catch(() => undefined);
      // A state topic that cannot be reached shows where cursors are read and written.
      if (!signal.aborted) await this.beat().catch(() => undefined);
    }
  }

  private async beat(): Promise<void> {
    await this.log.sync();
    this.isLoaded = true;
    this.count();
    this.bury();
  }

  /** While nothing is heard because of this process's own connection, nobody dies. */
  private count(): void {
    if (!this.isLoaded || !this.log.isFollowing) return;
    for (const group of this.groups.values()) group.count(this.fold.members);
  }

  /** Deletes what processes that died have left. One that was only slow says again that it lives. */
  private bury(): void {
    const nowMs = this.clock.now();
    for (const [process, member] of this.fold.members) {
      if (process === this.process || !isSilent(member, nowMs)) continue;
      void this.log.append(memberKey(process), undefined).catch(() => undefined);
    }
  }
}
