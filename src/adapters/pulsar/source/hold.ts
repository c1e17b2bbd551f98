/**
 * A segment as long as this process has it: the exclusive consumer that keeps others away and the subscription alive,
 * and acknowledges; it never gets a permit. Entries come by the feed beside it.
 */
import { randomUUID } from 'node:crypto';
import type { SourcePosition } from '../../../entry/index.js';
import type { Consumer, EntryPosition, PulsarClient, Refusal } from '../protocol/index.js';
import { Feed, type FeedOptions, reasonOf } from './feed.js';
import { entryAt, isBehind, LATEST, later } from './positions.js';

export interface HoldOptions extends Omit<FeedOptions, 'lastPosition'> {
  readonly subscription: string;
}

/** Subscribes to a segment; refused with 5 while another process has it. */
export async function takeHold(options: HoldOptions): Promise<Hold | Refusal> {
  const { client, topic, subscription } = options;
  let end: (reason: string) => void = () => undefined;
  const lost = new Promise<string>((resolve) => {
    end = resolve;
  });
  const result = await client.subscribe(
    { topic, subscription, durable: true },
    { onEntry: () => undefined, onClosed: (closed) => end(reasonOf(closed)) },
  );
  if (result.type !== 'subscribed') return result;
  return new Hold(result.consumer, lost, options);
}

export class Hold {
  readonly feed: Feed;
  /** Up to where the subscription stands, as far as this process knows. */
  private acknowledged: SourcePosition | undefined;
  /** The last entry that was read. */
  private read: SourcePosition | undefined;

  constructor(
    private readonly consumer: Consumer,
    /** Resolves with the reason when the consumer has ended that was not closed from here. */
    readonly lost: Promise<string>,
    private readonly options: HoldOptions,
  ) {
    const { client, topic, readerName } = options;
    this.feed = new Feed({
      ...options,
      lastPosition: () => lastPositionOf(client, topic, `${readerName}.${randomUUID()}`),
    });
  }

  /** Where the subscription stands, as the broker says. */
  async markDelete(): Promise<EntryPosition | undefined> {
    const told = await this.consumer.lastMessageId();
    if (told.type !== 'answered') throw new Error(`the cursor of ${this.options.topic}: ${reasonOf(told)}`);
    this.acknowledged = later(entryAt(told.markDelete), this.acknowledged);
    return told.markDelete;
  }

  /** The last position that is known to this process. */
  async lastPosition(): Promise<EntryPosition | undefined> {
    const { client, topic, readerName } = this.options;
    const known = later(this.feed.newest, await this.markDelete());
    return later(known, await lastPositionOf(client, topic, `${readerName}.${randomUUID()}`));
  }

  /** An entry was handed out. */
  handedOut(position: SourcePosition): void {
    if (isBehind(position, this.read)) this.read = position;
  }

  async acknowledge(position: SourcePosition): Promise<void> {
    const { ledgerId, entryId } = position;
    const result = await this.consumer.ackAnswered('cumulative', [{ ledgerId, entryId }]);
    if (result.type !== 'answered') throw new Error(`acknowledging ${this.options.topic}: ${reasonOf(result)}`);
    this.acknowledged = later(position, this.acknowledged);
    await this.passMarkers();
  }

  /**
   * Markers behind the last entry, such as the barriers of the other direction, are nobody's to settle; unacknowledged
   * they would count as backlog, and keep a sealed segment from ever being pruned.
   */
  async passMarkers(): Promise<void> {
    if (isBehind(this.read, this.acknowledged)) return;
    const empty = await this.feed.emptyTo(this.acknowledged);
    if (empty !== undefined && !isBehind(this.read, this.acknowledged)) this.consumer.ack('cumulative', [empty]);
  }

  async close(): Promise<void> {
    await Promise.all([this.feed.close(), this.consumer.close()]);
  }
}

/**
 * The last position of a topic, as far as the broker tells: what it calls the last message, which stands still where
 * transactions are enabled; or where a reader stands that begins with the next entry to come. An entry id of -1 is
 * before a ledger's first entry.
 */
export async function lastPositionOf(
  client: PulsarClient,
  topic: string,
  subscription: string,
): Promise<EntryPosition> {
  const result = await client.subscribe(
    { topic, subscription, durable: false, from: LATEST },
    { onEntry: () => undefined, onClosed: () => undefined },
  );
  if (result.type !== 'subscribed') throw new Error(`the end of ${topic}: ${reasonOf(result)}`);
  const told = await result.consumer.lastMessageId();
  await result.consumer.close();
  if (told.type !== 'answered') throw new Error(`the end of ${topic}: ${reasonOf(told)}`);
  const last = later(told.last, told.markDelete);
  if (last === undefined) throw new Error(`the end of ${topic}: the broker does not tell`);
  return last;
}
