/**
 * A small bucket-batching producer: messages for one bucket of one segment are collected and written as one entry, as
 * the clients of scalable topics do it. What a seal refuses is collected again in order, under the layout that
 * followed, so that each key's order holds.
 */
import {
  type BatchMessage,
  batchMessage,
  bucketHash,
  bucketIndex,
  type Codecs,
  encodeBatch,
  hashKey,
  segmentHash,
} from 'isthmus';
import type { LmdbTopic } from 'isthmus/adapters/lmdb';
import type { FlightRecord } from './flights.js';

interface Batch {
  readonly segmentId: number;
  readonly messages: BatchMessage[];
}

export interface ProducerOptions {
  readonly compression: 'lz4' | 'zstd';
  readonly codecs: Codecs;
  readonly maxMessages: number;
  /** The publish time of every entry: the demo's data is older than any clock. */
  readonly nowMs: number;
}

export class BatchingProducer {
  private batches = new Map<string, Batch>();
  /** Of the layout by which they were collected. */
  private epoch = 0;

  constructor(
    private readonly topic: LmdbTopic,
    private readonly options: ProducerOptions,
  ) {}

  /** Collects records under their sequence ids, and resolves when all batches that were full are durable. */
  async send(records: readonly (readonly [sequenceId: number, record: FlightRecord])[]): Promise<void> {
    const full: Batch[] = [];
    if (this.topic.layout.epoch !== this.epoch) this.collectAgain([], full);
    for (const [sequenceId, { key, value }] of records) {
      this.add(batchMessage({ partitionKey: key, payload: value, sequenceId: BigInt(sequenceId) }), full);
    }
    await this.write(full);
  }

  /** Writes everything that is collected. */
  async flush(): Promise<void> {
    while (this.batches.size > 0) {
      const all = [...this.batches.values()];
      this.batches = new Map();
      await this.write(all);
    }
  }

  private add(message: BatchMessage, full: Batch[]): void {
    const hash = hashKey(message.partitionKey ?? '');
    const segment = this.topic.route(segmentHash(hash));
    const place = `${segment.segmentId}/${bucketIndex(segment.entryBucketSplits, bucketHash(hash))}`;
    const batch = this.batches.get(place) ?? { segmentId: segment.segmentId, messages: [] };
    this.batches.set(place, batch);
    batch.messages.push(message);
    if (batch.messages.length < this.options.maxMessages) return;
    this.batches.delete(place);
    full.push(batch);
  }

  private async write(batches: readonly Batch[]): Promise<void> {
    const results = await Promise.all(batches.map((batch) => this.append(batch)));
    const refused = batches.filter((_, i) => results[i] === 'sealed');
    if (refused.length === 0) return;
    const full: Batch[] = [];
    this.collectAgain(refused, full);
    await this.write(full);
  }

  /** Sorts what is collected, and what was refused, by the present layout, in the old order. */
  private collectAgain(refused: readonly Batch[], full: Batch[]): void {
    this.epoch = this.topic.layout.epoch;
    const again = [...refused, ...this.batches.values()].flatMap(({ messages }) => messages);
    again.sort((a, b) => Number((a.sequenceId ?? 0n) - (b.sequenceId ?? 0n)));
    this.batches = new Map();
    for (const message of again) this.add(message, full);
  }

  private async append({ segmentId, messages }: Batch): Promise<'stored' | 'sealed'> {
    const { compression, codecs, nowMs } = this.options;
    const outer = {
      producerName: `flights-${this.topic.cluster}`,
      sequenceId: messages[0]?.sequenceId ?? 0n,
      publishTimeMs: nowMs,
      partitionKey: messages[0]?.partitionKey,
    };
    const { type } = await this.topic.append(segmentId, encodeBatch(messages, { outer, compression, codecs }));
    if (type !== 'stored' && type !== 'sealed') throw new Error(`an entry of a local producer is ${type}`);
    return type;
  }
}
