/**
 * A topic of a Pulsar cluster as the source of replication to one remote. The subscription is made on the topic before
 * anything else: only so do segments keep what is not acknowledged once they are sealed, and children begin with their
 * first entry. Then each segment that this process has is held by an exclusive consumer of that subscription.
 */

import type { SourcePosition } from '../../../entry/index.js';
import { IsthmusError, messageOf, show } from '../../../errors.js';
import { isLegacy, type Layout } from '../../../layout/index.js';
import type { Clock, EntrySource, LayoutReader, SegmentClaim } from '../../../ports/index.js';
import { type PulsarClient, type Refusal, SERVER_ERROR } from '../protocol/index.js';
import { processClock } from '../protocol/time.js';
import { SegmentTopics } from '../remote/segment-topics.js';
import type { Members } from '../state/index.js';
import { Claims, type SegmentKind } from './claims.js';
import { reasonOf } from './feed.js';
import { Hold, takeHold } from './hold.js';
import { entryAt, isBehind, LAST_ID } from './positions.js';
import type { SourceSubscriptions } from './subscriptions.js';

export interface PulsarSourceOptions {
  /** Connected to the source cluster, with the right to consume. */
  readonly client: PulsarClient;
  /** The source cluster's name: what copies are stamped with. */
  readonly cluster: string;
  /** `topic://tenant/namespace/name`. */
  readonly topic: string;
  /** The same for all processes, and for this remote only, as in `isthmus.<remote>`. Not `pulsar.repl.*`. */
  readonly subscription: string;
  readonly subscriptions: SourceSubscriptions;
  readonly layouts: LayoutReader;
  /** Who shares the segments. Absent: this process takes all that it can get. */
  readonly members?: Members;
  /** Where a subscription begins that is new: with what the topic holds (default), or with what comes. */
  readonly startAt?: 'earliest' | 'latest';
  /** Bytes of entries that may lie here unread for one segment, from 1; default 16 MiB. A sudden growth of messages may exceed it. */
  readonly bufferBytes?: number;
  /** Messages that a broker may send ahead for one segment, from 1; default 4,000. */
  readonly flowMessages?: number;
  /** Why a segment is not got, other than that another process has it; told at every try. */
  readonly onRefused?: (segmentId: number, reason: string) => void;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

/** The source. What it still holds is given back by `close`, after the replicator has stopped. */
export interface PulsarSource extends EntrySource {
  claim(segmentId: number, signal: AbortSignal): Promise<SegmentClaim>;
  /** Gives back all segments; the subscription stays. */
  close(): Promise<void>;
}

/** Throws `invalidArgument`. */
export function pulsarSource(options: PulsarSourceOptions): PulsarSource {
  const { subscription, bufferBytes = 16 * 1024 * 1024, flowMessages = 4_000 } = options;
  if (subscription === '' || subscription.startsWith('pulsar.repl.')) {
    throw new IsthmusError('invalidArgument', `subscription ${show(subscription)}: not empty, and not pulsar.repl.*`);
  }
  for (const [name, value] of Object.entries({ bufferBytes, flowMessages })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new IsthmusError('invalidArgument', `${name} is ${show(value)}: an integer from 1`);
    }
  }
  return new TopicSource({ clock: processClock, ...options, bufferBytes, flowMessages });
}

type Resolved = PulsarSourceOptions & Required<Pick<PulsarSourceOptions, 'bufferBytes' | 'flowMessages' | 'clock'>>;

class TopicSource implements PulsarSource {
  readonly cluster: string;
  private readonly topics: SegmentTopics;
  private readonly claims: Claims;
  private readonly unlisten: (() => void) | undefined;
  private layout: Layout | undefined;
  private subscribing: Promise<void> | undefined;
  /** Segments that are used without a claim, by a process that shares nothing. */
  private readonly holds = new Map<number, Promise<Hold>>();
  private isSharing = false;
  private isReleased = false;

  constructor(private readonly options: Resolved) {
    const { cluster, topic, layouts, clock, members, onRefused = () => undefined } = options;
    this.cluster = cluster;
    this.topics = new SegmentTopics(topic, layouts);
    this.claims = new Claims({
      clock,
      members,
      kindOf: (segmentId) => this.kindOf(segmentId),
      count: (kind) => this.count(kind),
      takeHold: (segmentId) => this.takeHold(segmentId),
      onRefused,
    });
    this.unlisten = members?.onChange(() => this.claims.rebalance());
  }

  async *layouts(signal: AbortSignal): AsyncIterable<Layout> {
    await this.subscribed();
    for await (const layout of this.options.layouts.watch(signal)) {
      this.layout = layout;
      this.claims.rebalance();
      yield layout;
    }
  }

  async claim(segmentId: number, signal: AbortSignal): Promise<SegmentClaim> {
    this.isSharing = true;
    return this.claims.claim(segmentId, signal);
  }

  /** With transactions enabled it may be too low: not below what was read, or acknowledged, by this process. */
  async lastPosition(segmentId: number): Promise<SourcePosition | undefined> {
    const hold = await this.hold(segmentId);
    const last = await hold.lastPosition();
    if (last === undefined || last.entryId >= 0n) return entryAt(last);
    // The newest ledger is empty. Nothing is left before it, or it is not known where that ends: not behind this.
    const cursor = await hold.markDelete();
    return isBehind(last, cursor) ? { ledgerId: last.ledgerId - 1n, entryId: LAST_ID } : undefined;
  }

  async acknowledged(segmentId: number): Promise<SourcePosition | undefined> {
    return entryAt(await (await this.hold(segmentId)).markDelete());
  }

  async backlog(segmentId: number): Promise<number> {
    const hold = this.claims.hold(segmentId) ?? (await this.holds.get(segmentId));
    await hold?.passMarkers();
    return this.options.subscriptions.backlog(this.options.subscription, segmentId);
  }

  async read(...[segmentId, after, options]: Parameters<EntrySource['read']>): ReturnType<EntrySource['read']> {
    options.signal.throwIfAborted();
    const hold = await this.hold(segmentId);
    const result = await hold.feed.read(after, options);
    const last = result.entries.at(-1);
    if (last !== undefined) hold.handedOut(last.position);
    if (result.ended) await hold.passMarkers();
    return result;
  }

  async acknowledge(segmentId: number, position: SourcePosition): Promise<void> {
    await (await this.hold(segmentId)).acknowledge(position);
  }

  async release(): Promise<void> {
    this.isReleased = true;
    await this.close();
    const { subscriptions, subscription, layouts } = this.options;
    const { segments } = await layouts.load();
    const legacy = [...segments.values()].filter(isLegacy).flatMap(({ legacyTopicName }) => legacyTopicName ?? []);
    await subscriptions.deleteSubscription(subscription, legacy);
  }

  async close(): Promise<void> {
    this.unlisten?.();
    const holds = await Promise.allSettled(this.holds.values());
    this.holds.clear();
    const open = holds.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    await Promise.all([this.claims.close(), ...open.map((hold) => hold.close())]);
  }

  /** The subscription on the topic, made once by this process; tried again after a failure. */
  private subscribed(): Promise<void> {
    this.subscribing ??= this.subscribe().catch((error: unknown) => {
      this.subscribing = undefined;
      throw error;
    });
    return this.subscribing;
  }

  private async subscribe(): Promise<void> {
    const { subscriptions, subscription, startAt } = this.options;
    const how = await subscriptions.ensureSubscription(subscription);
    if (how === 'existed' || startAt !== 'latest') return;
    await this.reachSealed();
    await subscriptions.skipAll(subscription);
  }

  /** On what was sealed before, a subscription made on the topic is missing: whoever subscribes there begins at the start. */
  private async reachSealed(): Promise<void> {
    const { client, subscription } = this.options;
    for (const [segmentId, topic] of await this.topics.sealed()) {
      const events = { onEntry: () => undefined, onClosed: () => undefined };
      const result = await client.subscribe({ topic, subscription, durable: true }, events);
      if (result.type !== 'subscribed') throw new Error(`segment ${segmentId}: ${reasonOf(result)}`);
      await result.consumer.close();
    }
  }

  /** What this process has of a segment; one that shares nothing takes what it needs. */
  private async hold(segmentId: number): Promise<Hold> {
    const claimed = this.claims.hold(segmentId);
    if (claimed !== undefined) return claimed;
    if (this.isSharing) throw new Error(`segment ${segmentId} is not this process's own`);
    let holding = this.holds.get(segmentId);
    if (holding === undefined) {
      holding = this.takeAlone(segmentId);
      this.holds.set(segmentId, holding);
      holding.catch(() => this.holds.delete(segmentId));
    }
    return holding;
  }

  private async takeAlone(segmentId: number): Promise<Hold> {
    const hold = await this.takeHold(segmentId);
    if (!(hold instanceof Hold)) throw new Error(`segment ${segmentId}: ${reasonOf(hold)}`);
    void hold.lost.then(() => {
      this.holds.delete(segmentId);
      return hold.close();
    });
    return hold;
  }

  private async takeHold(segmentId: number): Promise<Hold | Refusal> {
    if (this.isReleased) throw new Error('the subscription was given up');
    const { client, clock, subscription, bufferBytes, flowMessages } = this.options;
    try {
      await this.subscribed();
      const topic = await this.topicOf(segmentId);
      const readerName = `${subscription}.read`;
      const options = { client, clock, topic, subscription, readerName, bufferBytes, flowMessages };
      const taken = await takeHold(options);
      if (!isMissing(taken)) return taken;
      await this.options.subscriptions.ensureSubscription(subscription);
      return await takeHold(options);
    } catch (error) {
      return { type: 'unreachable', reason: messageOf(error) };
    }
  }

  private async topicOf(segmentId: number): Promise<string> {
    const topic = await this.topics.of(segmentId);
    if (topic === undefined) throw new Error(`segment ${segmentId} is not in the layout`);
    return topic;
  }

  private kindOf(segmentId: number): SegmentKind {
    return this.layout?.segments.get(segmentId)?.state === 'active' ? 'active' : 'sealed';
  }

  private count(kind: SegmentKind): number {
    const { size = 0 } = this.layout?.segments ?? {};
    const active = this.layout?.active.length ?? 0;
    return kind === 'active' ? active : size - active;
  }
}

/** The segment is in the layout, and there is no topic behind it. */
function isMissing(taken: Hold | Refusal): boolean {
  return !(taken instanceof Hold) && taken.type === 'refused' && taken.code === SERVER_ERROR.topicNotFound;
}
