/** The outer metadata under the names of Pulsar's schema, from a view and from the manifest, so that both compare. */
import type { EntryMetadata, Stamp } from '../../src/entry/index.js';
import { hex } from './expect.js';
import type { OuterRecord } from './fixtures.js';

/** Every field that the view shows as present. */
export function outerOf(metadata: EntryMetadata): Record<string, unknown> {
  const { chunk, txn, stamp } = metadata;
  const fields: Record<string, unknown> = {
    producer_name: metadata.producerName,
    sequence_id: metadata.sequenceId,
    publish_time: metadata.publishTimeMs,
    properties: some(metadata.properties),
    replicated_from: metadata.replicatedFrom,
    partition_key: metadata.partitionKey,
    replicate_to: some(metadata.replicateTo),
    compression: metadata.compression,
    uncompressed_size: metadata.uncompressedSize,
    num_messages_in_batch: metadata.numMessagesInBatch,
    event_time: metadata.eventTimeMs,
    encryption_keys: some(
      metadata.encryptionKeys.map(({ key, value, metadata: pairs }) => {
        return { key, value: hex(value), ...(pairs.length > 0 ? { metadata: pairs } : {}) };
      }),
    ),
    encryption_algo: metadata.encryptionAlgo,
    encryption_param: hex(metadata.encryptionParam),
    schema_version: hex(metadata.schemaVersion),
    partition_key_b64_encoded: metadata.partitionKeyB64,
    ordering_key: hex(metadata.orderingKey),
    deliver_at_time: metadata.deliverAtMs,
    marker_type: metadata.markerType,
    txnid_least_bits: txn?.leastBits,
    txnid_most_bits: txn?.mostBits,
    highest_sequence_id: metadata.highestSequenceId,
    null_value: metadata.nullValue,
    uuid: metadata.uuid,
    num_chunks_from_msg: chunk?.numChunks,
    total_chunk_msg_size: chunk?.totalSize,
    chunk_id: chunk?.chunkId,
    null_partition_key: metadata.nullPartitionKey,
    compacted_batch_indexes: some(metadata.compactedBatchIndexes),
    schema_id: hex(metadata.schemaId),
    entry_hash_min: stamp?.min,
    entry_hash_max: stamp?.max,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

const IDS = ['sequence_id', 'highest_sequence_id', 'txnid_least_bits', 'txnid_most_bits'];
const TIMES = ['publish_time', 'event_time', 'deliver_at_time'];

/** The manifest's fields as a view should show them: half a transaction, and a stamp that is none, are absent. */
export function expectedOuter(record: OuterRecord): Record<string, unknown> {
  const fields: Record<string, unknown> = {
    ...record,
    compression: String(record.compression ?? 'NONE').toLowerCase(),
  };
  for (const name of IDS) if (name in fields) fields[name] = BigInt(record[name] as number | string);
  for (const name of TIMES) if (name in fields) fields[name] = Number(record[name]);
  if (!('txnid_least_bits' in record && 'txnid_most_bits' in record)) {
    delete fields.txnid_least_bits;
    delete fields.txnid_most_bits;
  }
  const { entry_hash_min: min, entry_hash_max: max } = record as { entry_hash_min?: number; entry_hash_max?: number };
  if (expectedStamp({ min: min ?? null, max: max ?? null }) === undefined) {
    delete fields.entry_hash_min;
    delete fields.entry_hash_max;
  }
  return fields;
}

/** The stamp that counts: both bounds, in order, 16 bits. */
export function expectedStamp({ min, max }: { min: number | null; max: number | null }): Stamp | undefined {
  return min === null || max === null || min > max || max > 0xffff ? undefined : { min, max };
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}
