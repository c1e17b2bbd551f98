/**
 * The pin: a subscription of the replicator's own on the destination topic, so that nothing is trimmed before it was
 * read back (R15). It is made on the topic, since brokers prune sealed segments whatever is subscribed to on them
 * alone; it is moved by an exclusive consumer on each segment, which gets no permits and so nothing to read, and which
 * stays connected, since a subscription without a consumer may expire.
 */
import { comparePositions } from '../../../dedup/index.js';
import type { SourcePosition } from '../../../entry/index.js';
import type { Clock, RemoteFailure, RemotePin } from '../../../ports/index.js';
import { type Consumer, type PulsarClient, type Refusal, SERVER_ERROR } from '../protocol/index.js';
import { isTaken, type OpenFailure, openFailure, refusalText } from './failures.js';
import type { SegmentTopics } from './segment-topics.js';

/** How it ended to make the subscription on the topic. */
export type PinEnsured = { readonly type: 'ensured' } | RemoteFailure;

export interface PinPlace {
  readonly client: PulsarClient;
  readonly topics: SegmentTopics;
  readonly subscription: string;
  readonly clock: Clock;
  /** Makes the subscription on the topic, of type QUEUE, and what is missing of it; again when a segment has no topic. */
  readonly ensurePin: (subscription: string) => Promise<PinEnsured>;
}

/** After so long a segment is tried again whose consumer was closed, could not be had, or is another's, in milliseconds. */
const CLOSED_RETRY_MS = 1_000;
const REFUSED_RETRY_MS = 5_000;
const TAKEN_RETRY_MS = 30_000;

type Subscribed = { readonly type: 'held'; readonly consumer: Consumer } | Refusal;

export class TopicPin implements RemotePin {
  private ensured: Promise<PinEnsured> | undefined;
  /** By segment; what is not held is not in it. */
  private readonly held = new Map<number, Promise<Subscribed>>();
  /** Takes back the next try, by segment. */
  private readonly retries = new Map<number, AbortController>();
  /** Where the pin was last seen or moved to. */
  private readonly seen = new Map<number, SourcePosition>();
  private isClosed = false;
  private hasReachedSealed = false;

  constructor(private readonly place: PinPlace) {}

  /** What has to be before the first send to a segment; undefined when it is. */
  async ensure(segmentId: number, topic: string): Promise<OpenFailure | undefined> {
    const ensured = await this.ensureOnTopic();
    if (ensured.type !== 'ensured') return ensured;
    await this.reachSealed();
    // A subscription on the topic does not reach legacy segments: there this makes it.
    const held = await this.hold(segmentId, topic);
    return held.type === 'held' || isTaken(held) ? undefined : openFailure(held);
  }

  /**
   * A subscription made on the topic is not on what was sealed before; and a broker prunes no segment on which one of the
   * topic's subscriptions is missing. Where there is something to be read back first, this keeps it as well.
   */
  private async reachSealed(): Promise<void> {
    if (this.hasReachedSealed) return;
    this.hasReachedSealed = true;
    for (const [segmentId, topic] of await this.place.topics.sealed()) void this.hold(segmentId, topic);
  }

  async position(segmentId: number): Promise<SourcePosition | undefined> {
    const consumer = await this.consumerOf(segmentId);
    // Who holds it moves it up to the lowest checkpoint of all processes, this one's included: it is behind ours.
    if (consumer === undefined) return undefined;
    const answer = await consumer.lastMessageId();
    if (answer.type !== 'answered') throw new Error(`where the pin stands is not known: ${refusalText(answer)}`);
    const { markDelete } = answer;
    // Before the first entry of a ledger: at the start of the segment, or where the broker has put it from the end of
    // a ledger that is gone, and no position names that place but the one that it was moved to.
    if (markDelete === undefined || markDelete.entryId < 0n) return this.seen.get(segmentId);
    const position = { ledgerId: markDelete.ledgerId, entryId: markDelete.entryId };
    this.seen.set(segmentId, position);
    return position;
  }

  async move(segmentId: number, position: SourcePosition): Promise<void> {
    const consumer = await this.consumerOf(segmentId);
    // Who holds it moves it as well, by the same checkpoints.
    if (consumer === undefined) return;
    const from = this.seen.get(segmentId) ?? (await this.position(segmentId));
    if (from !== undefined && comparePositions(from, position) >= 0) return;
    const { ledgerId, entryId } = position;
    const answer = await consumer.ackAnswered('cumulative', [{ ledgerId, entryId }]);
    if (answer.type !== 'answered') throw new Error(`the pin was not moved: ${refusalText(answer)}`);
    this.seen.set(segmentId, position);
  }

  /** Gives back all consumers; the subscription stays. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const retry of this.retries.values()) retry.abort();
    this.retries.clear();
    const held = [...this.held.values()];
    this.held.clear();
    for (const subscribed of await Promise.all(held)) {
      if (subscribed.type === 'held') await subscribed.consumer.close();
    }
  }

  private async ensureOnTopic(): Promise<PinEnsured> {
    this.ensured ??= this.place.ensurePin(this.place.subscription);
    const { ensured } = this;
    const forget = () => {
      if (this.ensured === ensured) this.ensured = undefined;
    };
    try {
      const answer = await ensured;
      if (answer.type !== 'ensured') forget();
      return answer;
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** Undefined when another process has it. Rejects when it cannot be had. */
  private async consumerOf(segmentId: number): Promise<Consumer | undefined> {
    const topic = await this.place.topics.of(segmentId);
    if (topic === undefined) throw new Error(`segment ${segmentId} is not in the layout`);
    const held = await this.hold(segmentId, topic);
    if (held.type === 'held') return held.consumer;
    if (isTaken(held)) return undefined;
    throw new Error(`the pin of segment ${segmentId} cannot be had: ${refusalText(held)}`);
  }

  private hold(segmentId: number, topic: string): Promise<Subscribed> {
    if (this.isClosed) return Promise.resolve({ type: 'unreachable', reason: 'the remote is closed' });
    const held = this.held.get(segmentId) ?? this.subscribe(segmentId, topic);
    this.held.set(segmentId, held);
    return held;
  }

  private async subscribe(segmentId: number, topic: string): Promise<Subscribed> {
    const { client, subscription } = this.place;
    this.retries.get(segmentId)?.abort();
    this.retries.delete(segmentId);
    const lost = (retryMs: number) => {
      this.held.delete(segmentId);
      this.retryLater(segmentId, topic, retryMs);
    };
    const subscribed = await client.subscribe(
      { topic, subscription, durable: true },
      { onEntry: () => undefined, onClosed: () => lost(CLOSED_RETRY_MS) },
    );
    if (subscribed.type === 'subscribed') return { type: 'held', consumer: subscribed.consumer };
    const isGone = subscribed.type === 'refused' && subscribed.code === SERVER_ERROR.topicNotFound;
    if (!isGone) {
      lost(isTaken(subscribed) ? TAKEN_RETRY_MS : REFUSED_RETRY_MS);
      return subscribed;
    }
    this.held.delete(segmentId);
    // Making it once more makes what brokers have left out.
    this.ensured = undefined;
    return subscribed;
  }

  private retryLater(segmentId: number, topic: string, ms: number): void {
    if (this.isClosed) return;
    const retry = new AbortController();
    this.retries.set(segmentId, retry);
    void this.place.clock.sleep(ms, retry.signal).then(
      () => {
        if (!retry.signal.aborted) void this.hold(segmentId, topic);
      },
      () => undefined,
    );
  }
}
