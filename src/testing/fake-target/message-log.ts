/** What a topic of a target holds. */
import { fnv1a } from '../../sender/index.js';
import type { BatchMessage } from './batch.js';
import type { SentMessage } from './topics.js';

/** A message as it is stored. */
export interface StoredMessage extends SentMessage {
  readonly partition: number;
  /** From 0, in its partition. */
  readonly offset: number;
}

export class MessageLog {
  /** In the order in which they came. */
  readonly messages: StoredMessage[] = [];
  private readonly counts = new Map<number, number>();

  /** A key stays on its partition; messages without one go round. */
  append({ key, payload, isRaw, partition: wanted }: BatchMessage, partitions: number): void {
    const partition = wanted ?? (key.length === 0 ? this.messages.length : fnv1a(key)) % partitions;
    const offset = this.counts.get(partition) ?? 0;
    this.counts.set(partition, offset + 1);
    this.messages.push({ key, payload, isRaw, partition, offset });
  }
}
