/**
 * Writing entries from values: what producers, tests and hosts need, never the verbatim path. Fields go out in
 * ascending order, as Pulsar's own writer has it.
 */
import { bucketHash, hashBytes } from '../ring/index.js';
import { BatchMessage, BatchTable } from './batch.js';
import { type Codecs, codecFor } from './codec.js';
import { crc32c } from './crc32c.js';
import { Inner, KeyValue, Outer } from './fields.js';
import { type CompressionType, compressionCode, type Stamp } from './metadata.js';
import { CHECKSUM_BLOCK, type EntryBuffers, writeChecksum } from './restamp.js';
import { WireWriter, writeUint32 } from './wire.js';

/** The outer fields a producer sets; those that describe the batch are computed. An `Entry`'s metadata serves as well. */
export interface OuterFields {
  readonly producerName: string;
  /** The first message's for a single; a batch takes the highest of its messages' instead, if they have any (E8). */
  readonly sequenceId: bigint;
  readonly publishTimeMs: number;
  readonly properties?: readonly (readonly [string, string])[] | undefined;
  readonly replicatedFrom?: string | undefined;
  /** The key's wire text, or its bytes in `partitionKeyBytes`, which win. */
  readonly partitionKey?: string | undefined;
  readonly partitionKeyBytes?: Uint8Array | undefined;
  readonly partitionKeyB64?: boolean | undefined;
  readonly orderingKey?: Uint8Array | undefined;
  readonly replicateTo?: readonly string[] | undefined;
  readonly eventTimeMs?: number | undefined;
  readonly schemaVersion?: Uint8Array | undefined;
  readonly deliverAtMs?: number | undefined;
  readonly markerType?: number | undefined;
  readonly txn?: { readonly mostBits: bigint; readonly leastBits: bigint } | undefined;
  readonly nullValue?: boolean | undefined;
  readonly chunk?: { uuid: string; chunkId: number; numChunks: number; totalSize: number } | undefined;
  readonly nullPartitionKey?: boolean | undefined;
  readonly encryptionKeys?: readonly { readonly key: string; readonly value: Uint8Array }[] | undefined;
  readonly encryptionParam?: Uint8Array | undefined;
}

/** A message to be put in a batch. */
export interface MessageFields {
  readonly payload: Uint8Array;
  readonly properties?: readonly (readonly [string, string])[];
  readonly partitionKey?: string;
  readonly partitionKeyB64?: boolean;
  readonly orderingKey?: Uint8Array;
  readonly eventTimeMs?: number;
  readonly sequenceId?: bigint;
  readonly nullValue?: boolean;
  readonly compactedOut?: boolean;
  readonly nullPartitionKey?: boolean;
}

/** What is put around the messages of a batch. */
export interface EncodeBatchOptions {
  readonly outer: OuterFields;
  readonly compression: CompressionType;
  readonly codecs: Codecs;
  /** Stamps the lowest and highest bucket hash (PIP-486). Default true. */
  readonly stamp?: boolean;
  /** Writes the CRC32C block. Default true. */
  readonly checksum?: boolean;
}

/** What is put around the body of a single message. */
export interface EncodeMessageOptions {
  readonly outer: OuterFields;
  readonly compression?: CompressionType;
  readonly codecs?: Codecs;
  /** Stamps the message's bucket hash as both bounds. Default true. */
  readonly stamp?: boolean;
  readonly checksum?: boolean;
}

/** A message for `encodeBatch`, built from its fields. */
export function batchMessage(fields: MessageFields): BatchMessage {
  const writer = new WireWriter();
  for (const [key, value] of fields.properties ?? []) writer.bytesField(Inner.properties, keyValue(key, value));
  if (fields.partitionKey !== undefined) writer.text(Inner.partitionKey, fields.partitionKey);
  writer.uint64(Inner.payloadSize, fields.payload.length);
  if (fields.compactedOut !== undefined) writer.uint32(Inner.compactedOut, Number(fields.compactedOut));
  if (fields.eventTimeMs !== undefined) writer.uint64(Inner.eventTime, fields.eventTimeMs);
  if (fields.partitionKeyB64 !== undefined) writer.uint32(Inner.partitionKeyB64, Number(fields.partitionKeyB64));
  if (fields.orderingKey !== undefined) writer.bytesField(Inner.orderingKey, fields.orderingKey);
  if (fields.sequenceId !== undefined) writer.uint64(Inner.sequenceId, fields.sequenceId);
  if (fields.nullValue !== undefined) writer.uint32(Inner.nullValue, Number(fields.nullValue));
  if (fields.nullPartitionKey !== undefined) writer.uint32(Inner.nullPartitionKey, Number(fields.nullPartitionKey));
  const metadata = writer.written();
  const record = new Uint8Array(4 + metadata.length + fields.payload.length);
  writeUint32(record, 0, metadata.length);
  record.set(metadata, 4);
  record.set(fields.payload, 4 + metadata.length);
  return new BatchMessage(new BatchTable(record, 1, 0), 0);
}

/** Writes a batch of these messages. Throws `codecUnavailable`. */
export function encodeBatch(messages: readonly BatchMessage[], options: EncodeBatchOptions): EntryBuffers {
  const { compression, codecs, outer } = options;
  const region = concatRecords(messages);
  let lowest = 0xffff;
  let highest = 0;
  let sequenceId: bigint | undefined;
  for (const message of messages) {
    const hash = message.bucketHash;
    lowest = Math.min(lowest, hash);
    highest = Math.max(highest, hash);
    const own = message.sequenceId;
    if (own !== undefined) {
      const signed = BigInt.asIntN(64, own);
      if (sequenceId === undefined || signed > sequenceId) sequenceId = signed;
    }
  }
  const stamped = options.stamp !== false && messages.length > 0;
  const metadata = encodeOuter(outer, {
    sequenceId: sequenceId ?? outer.sequenceId,
    compression,
    uncompressedSize: compression === 'none' ? undefined : region.length,
    numMessagesInBatch: messages.length,
    highestSequenceId: sequenceId,
    stamp: stamped ? { min: lowest, max: highest } : undefined,
  });
  const payload = compression === 'none' ? region : codecFor(compression, codecs).compress(region);
  return frame(metadata, payload, options.checksum !== false);
}

/** Writes a single message: its metadata is the outer one. Throws `codecUnavailable`. */
export function encodeMessage(body: Uint8Array, options: EncodeMessageOptions): EntryBuffers {
  const { outer, compression = 'none', codecs = {} } = options;
  const key = outer.orderingKey ?? keyBytes(outer);
  const hash = key === undefined ? 0 : bucketHash(hashBytes(key, 0, key.length));
  const metadata = encodeOuter(outer, {
    sequenceId: outer.sequenceId,
    compression,
    uncompressedSize: body.length,
    numMessagesInBatch: undefined,
    highestSequenceId: undefined,
    stamp: options.stamp === false ? undefined : { min: hash, max: hash },
  });
  const payload = compression === 'none' ? body : codecFor(compression, codecs).compress(body);
  return frame(metadata, payload, options.checksum !== false);
}

function concatRecords(messages: readonly BatchMessage[]): Uint8Array {
  const records = messages.map((message) => [message.metadataBytes, message.payload] as const);
  const length = records.reduce((sum, [metadata, payload]) => sum + 4 + metadata.length + payload.length, 0);
  const region = new Uint8Array(length);
  let at = 0;
  for (const [metadata, payload] of records) {
    at = writeUint32(region, at, metadata.length);
    region.set(metadata, at);
    region.set(payload, at + metadata.length);
    at += metadata.length + payload.length;
  }
  return region;
}

function frame(metadata: Uint8Array, payload: Uint8Array, checksum: boolean): EntryBuffers {
  const prefix = checksum ? CHECKSUM_BLOCK : 0;
  const head = new Uint8Array(prefix + 4 + metadata.length);
  writeUint32(head, prefix, metadata.length);
  head.set(metadata, prefix + 4);
  if (checksum) writeChecksum(head, crc32c(payload, 0, payload.length, crc32c(head, prefix)));
  return { head, payload };
}

interface Computed {
  readonly sequenceId: bigint;
  readonly compression: CompressionType;
  readonly uncompressedSize: number | undefined;
  readonly numMessagesInBatch: number | undefined;
  readonly highestSequenceId: bigint | undefined;
  readonly stamp: Stamp | undefined;
}

function encodeOuter(outer: OuterFields, computed: Computed): Uint8Array {
  const writer = new WireWriter();
  const { chunk, txn } = outer;
  writer.text(Outer.producerName, outer.producerName);
  writer.uint64(Outer.sequenceId, computed.sequenceId);
  writer.uint64(Outer.publishTime, outer.publishTimeMs);
  for (const [key, value] of outer.properties ?? []) writer.bytesField(Outer.properties, keyValue(key, value));
  if (outer.replicatedFrom !== undefined) writer.text(Outer.replicatedFrom, outer.replicatedFrom);
  const key = keyBytes(outer);
  if (key !== undefined) writer.bytesField(Outer.partitionKey, key);
  for (const cluster of outer.replicateTo ?? []) writer.text(Outer.replicateTo, cluster);
  if (computed.compression !== 'none') {
    writer.uint64(Outer.compression, compressionCode(computed.compression));
  }
  if (computed.uncompressedSize !== undefined) writer.uint32(Outer.uncompressedSize, computed.uncompressedSize);
  if (computed.numMessagesInBatch !== undefined) writer.uint32(Outer.numMessagesInBatch, computed.numMessagesInBatch);
  if (outer.eventTimeMs !== undefined) writer.uint64(Outer.eventTime, outer.eventTimeMs);
  for (const recipient of outer.encryptionKeys ?? []) {
    writer.bytesField(Outer.encryptionKeys, keyValue(recipient.key, recipient.value));
  }
  if (outer.encryptionParam !== undefined) writer.bytesField(Outer.encryptionParam, outer.encryptionParam);
  if (outer.schemaVersion !== undefined) writer.bytesField(Outer.schemaVersion, outer.schemaVersion);
  if (outer.partitionKeyB64 !== undefined) writer.uint32(Outer.partitionKeyB64, Number(outer.partitionKeyB64));
  if (outer.orderingKey !== undefined) writer.bytesField(Outer.orderingKey, outer.orderingKey);
  if (outer.deliverAtMs !== undefined) writer.uint64(Outer.deliverAtTime, outer.deliverAtMs);
  if (outer.markerType !== undefined) writer.uint64(Outer.markerType, outer.markerType);
  if (txn !== undefined) {
    writer.uint64(Outer.txnLeastBits, txn.leastBits);
    writer.uint64(Outer.txnMostBits, txn.mostBits);
  }
  if (computed.highestSequenceId !== undefined) writer.uint64(Outer.highestSequenceId, computed.highestSequenceId);
  if (outer.nullValue !== undefined) writer.uint32(Outer.nullValue, Number(outer.nullValue));
  if (chunk !== undefined) {
    writer.text(Outer.uuid, chunk.uuid);
    writer.uint64(Outer.numChunks, chunk.numChunks);
    writer.uint64(Outer.totalChunkSize, chunk.totalSize);
    writer.uint64(Outer.chunkId, chunk.chunkId);
  }
  if (outer.nullPartitionKey !== undefined) writer.uint32(Outer.nullPartitionKey, Number(outer.nullPartitionKey));
  if (computed.stamp !== undefined) {
    writer.uint32(Outer.stampMin, computed.stamp.min);
    writer.uint32(Outer.stampMax, computed.stamp.max);
  }
  return writer.written();
}

function keyBytes(outer: OuterFields): Uint8Array | undefined {
  return outer.partitionKeyBytes ?? (outer.partitionKey === undefined ? undefined : Buffer.from(outer.partitionKey));
}

/** A KeyValue; an encryption key begins with the same two fields, its value being bytes. */
function keyValue(key: string, value: string | Uint8Array): Uint8Array {
  const writer = new WireWriter();
  writer.text(KeyValue.key, key);
  if (typeof value === 'string') writer.text(KeyValue.value, value);
  else writer.bytesField(KeyValue.value, value);
  return writer.written();
}
