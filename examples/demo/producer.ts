/**
 * A small bucket-batching producer: messages for one bucket of one segment are collected and written as one entry, as
 * the clients of scalable topics do it. When the layout changes, what was collected under the old one goes out first,
 * under the new one, so that each key's order holds.
 */
import {
  type BatchMessage,
  batchMessage,
  bucketHash,
  bucketIndex,
  type Codecs,
  encodeBatch,
  hashKey,
  type Layout,
  segmentHash,
} from 'isthmus';
import type { MemoryTopic } from 'isthmus/adapters/memory';
import type { FlightRecord } from './flights.js';

interface Batch {
  readonly segmentId: number;
  readonly messages: BatchMessage[];
  readonly firstKey: string;
}

export interface ProducerOptions {
  readonly compression: 'lz4' | 'zstd';
  readonly codecs: Codecs;
  readonly maxMessages: number;
  /** The publish time of every entry: the demo's data is older than any clock. */
  readonly nowMs: number;
}

export class BatchingProducer {
  private readonly batches = new Map<string, Batch>();
  private layout: Layout;
  private sequenceId = 0n;

  constructor(
    private readonly topic: MemoryTopic,
    private readonly options: ProducerOptions,
  ) {
    this.layout = topic.layout;
  }

  send({ key, value }: FlightRecord): void {
    if (this.topic.layout !== this.layout) this.flush();
    this.add(batchMessage({ partitionKey: key, payload: value, sequenceId: this.sequenceId++ }), key);
  }

  /** Writes everything that is collected. */
  flush(): void {
    while (this.batches.size > 0) {
      this.layout = this.topic.layout;
      for (const [place, batch] of this.batches) {
        this.batches.delete(place);
        this.write(batch);
      }
    }
    this.layout = this.topic.layout;
  }

  private add(message: BatchMessage, key: string): void {
    const hash = hashKey(key);
    const segment = this.topic.route(segmentHash(hash));
    const place = `${segment.segmentId}/${bucketIndex(segment.entryBucketSplits, bucketHash(hash))}`;
    let batch = this.batches.get(place);
    if (batch === undefined) {
      batch = { segmentId: segment.segmentId, messages: [], firstKey: key };
      this.batches.set(place, batch);
    }
    batch.messages.push(message);
    if (batch.messages.length >= this.options.maxMessages) {
      this.batches.delete(place);
      this.write(batch);
    }
  }

  private write({ segmentId, messages, firstKey }: Batch): void {
    const { compression, codecs, nowMs } = this.options;
    const outer = {
      producerName: `flights-${this.topic.cluster}`,
      sequenceId: messages[0]?.sequenceId ?? 0n,
      publishTimeMs: nowMs,
      partitionKey: firstKey,
    };
    const stored = this.topic.append(segmentId, encodeBatch(messages, { outer, compression, codecs }));
    if (stored !== 'sealed') return;
    for (const message of messages) this.add(message, message.partitionKey ?? '');
  }
}
