/**
 * The payload of a batch: records of `[size][metadata][body]` one behind the other (E7). Records are located once
 * into a table of offsets; the re-batcher copies whole records by it, and `readBatch` hands out views over it.
 */
import { IsthmusError } from '../errors.js';
import { hashBytes } from '../ring/index.js';
import { type Codecs, type DecodeLimits, decompressPayload } from './codec.js';
import { type Entry, verifyChecksum } from './entry.js';
import { Inner } from './fields.js';
import { readKeyValue } from './keyvalue.js';
import { BYTES, decodeText, readUint32, toUint64, uint64At, VARINT, WireReader } from './wire.js';

/** The smallest record: a size field and a metadata that holds payload_size alone. */
const MIN_RECORD = 6;

/** Where the records of a batch lie in its uncompressed bytes; one column a member, -1 for what is absent. */
export class BatchTable {
  readonly count: number;
  /** Of the whole record, size field included. */
  readonly start: Int32Array;
  readonly end: Int32Array;
  readonly metadataEnd: Int32Array;
  readonly keyStart: Int32Array;
  readonly keyEnd: Int32Array;
  readonly orderingKeyStart: Int32Array;
  readonly orderingKeyEnd: Int32Array;
  /** Signed halves of the sequence id; meaningful where `hasSequenceId` is 1. */
  readonly sequenceHigh: Int32Array;
  readonly sequenceLow: Int32Array;
  readonly hasSequenceId: Uint8Array;

  /** Locates the records. Throws `undecodableBatch` when sizes and count do not meet the end of the bytes. */
  constructor(
    readonly bytes: Uint8Array,
    count: number,
    compactedCount: number,
  ) {
    const capacity = Math.floor(bytes.length / MIN_RECORD);
    if (count < 0 || (count > capacity && compactedCount === 0)) {
      refuse(`says it holds ${count} messages in ${bytes.length} bytes`);
    }
    const rows = Math.min(count, capacity);
    const columns = new Int32Array(rows * 9);
    const column = (i: number) => columns.subarray(i * rows, (i + 1) * rows);
    this.start = column(0);
    this.end = column(1);
    this.metadataEnd = column(2);
    this.keyStart = column(3);
    this.keyEnd = column(4);
    this.orderingKeyStart = column(5);
    this.orderingKeyEnd = column(6);
    this.sequenceHigh = column(7);
    this.sequenceLow = column(8);
    this.hasSequenceId = new Uint8Array(rows);
    let at = 0;
    let found = 0;
    const reader = new WireReader(bytes, 0, 0, 'undecodableBatch', 'the metadata of a message');
    for (; found < count && at < bytes.length; found++) at = this.locate(reader, found, at);
    // A compacted batch may hold only the records it kept, under the count it had before.
    if (found !== count && (compactedCount === 0 || found !== compactedCount)) {
      refuse(`says it holds ${count} messages, but ends after ${found}`);
    }
    if (at !== bytes.length) refuse(`has ${bytes.length - at} bytes behind its ${count} messages`);
    this.count = found;
  }

  private locate(reader: WireReader, index: number, at: number): number {
    const { bytes } = this;
    if (at + 4 > bytes.length) refuse(`is cut in the size of message ${index}`);
    const size = readUint32(bytes, at);
    if (size > bytes.length - at - 4) refuse(`is cut in the metadata of message ${index}`);
    const metadataEnd = at + 4 + size;
    reader.moveTo(at + 4, metadataEnd);
    let payloadSize = -1;
    let keyStart = -1;
    let keyEnd = -1;
    let orderingKeyStart = -1;
    let orderingKeyEnd = -1;
    while (reader.next()) {
      switch (reader.field) {
        case Inner.partitionKey:
          reader.expect(BYTES);
          keyStart = reader.valueStart;
          keyEnd = reader.valueEnd;
          break;
        case Inner.orderingKey:
          reader.expect(BYTES);
          orderingKeyStart = reader.valueStart;
          orderingKeyEnd = reader.valueEnd;
          break;
        case Inner.payloadSize:
          reader.expect(VARINT);
          payloadSize = reader.low;
          if (payloadSize < 0) reader.refuse(`has a payload size of ${payloadSize}`);
          break;
        case Inner.sequenceId:
          reader.expect(VARINT);
          this.sequenceHigh[index] = reader.high;
          this.sequenceLow[index] = reader.low;
          this.hasSequenceId[index] = 1;
          break;
        case Inner.properties:
          reader.expect(BYTES);
          readKeyValue(bytes, reader.valueStart, reader.valueEnd, 'undecodableBatch');
          break;
        case Inner.compactedOut:
        case Inner.eventTime:
        case Inner.partitionKeyB64:
        case Inner.nullValue:
        case Inner.nullPartitionKey:
          reader.expect(VARINT);
          break;
      }
    }
    if (payloadSize < 0) reader.refuse('has no payload_size, which is required');
    if (payloadSize > bytes.length - metadataEnd) refuse(`is cut in the payload of message ${index}`);
    this.start[index] = at;
    this.end[index] = metadataEnd + payloadSize;
    this.metadataEnd[index] = metadataEnd;
    this.keyStart[index] = keyStart;
    this.keyEnd[index] = keyEnd;
    this.orderingKeyStart[index] = orderingKeyStart;
    this.orderingKeyEnd[index] = orderingKeyEnd;
    return metadataEnd + payloadSize;
  }

  /** The raw hash of message `index`'s partition key (E9), or -1 without one. */
  keyHash(index: number): number {
    const start = this.keyStart[index] as number;
    return start < 0 ? -1 : hashBytes(this.bytes, start, this.keyEnd[index] as number);
  }

  /** The bucket hash of message `index` whose key hash is known: of its ordering key if present, else of its key, else 0 (R9). */
  bucketHash(index: number, keyHash: number): number {
    const start = this.orderingKeyStart[index] as number;
    if (start >= 0) return hashBytes(this.bytes, start, this.orderingKeyEnd[index] as number) & 0xffff;
    return keyHash < 0 ? 0 : keyHash & 0xffff;
  }

  /** True when message `index` has neither a partition key nor an ordering key. */
  isUnkeyed(index: number): boolean {
    return (this.keyStart[index] as number) < 0 && (this.orderingKeyStart[index] as number) < 0;
  }
}

function refuse(rule: string): never {
  throw new IsthmusError('undecodableBatch', `the batch ${rule}`);
}

/** One message of a batch: views over its uncompressed bytes, fields read when asked for. */
export class BatchMessage {
  /** @internal */
  constructor(
    private readonly table: BatchTable,
    private readonly index: number,
  ) {}

  /** The message's own metadata, without the size field before it. */
  get metadataBytes(): Uint8Array {
    return this.table.bytes.subarray(this.metadataStart, this.table.metadataEnd[this.index]);
  }

  get payload(): Uint8Array {
    return this.table.bytes.subarray(this.table.metadataEnd[this.index], this.table.end[this.index]);
  }

  private get metadataStart(): number {
    return (this.table.start[this.index] as number) + 4;
  }

  /** The key's wire text: base64 when `partitionKeyB64` is true. */
  get partitionKey(): string | undefined {
    const start = this.table.keyStart[this.index] as number;
    return start < 0 ? undefined : decodeText(this.table.bytes, start, this.table.keyEnd[this.index] as number);
  }

  /** The bytes of the key's wire text: what is hashed (E9). */
  get partitionKeyBytes(): Uint8Array | undefined {
    const start = this.table.keyStart[this.index] as number;
    return start < 0 ? undefined : this.table.bytes.subarray(start, this.table.keyEnd[this.index]);
  }

  get partitionKeyB64(): boolean | undefined {
    return this.flag(Inner.partitionKeyB64);
  }

  get nullPartitionKey(): boolean | undefined {
    return this.flag(Inner.nullPartitionKey);
  }

  get orderingKey(): Uint8Array | undefined {
    const start = this.table.orderingKeyStart[this.index] as number;
    return start < 0 ? undefined : this.table.bytes.subarray(start, this.table.orderingKeyEnd[this.index]);
  }

  get properties(): readonly (readonly [string, string])[] {
    const properties: [string, string][] = [];
    const reader = this.fields();
    while (reader.next()) {
      if (reader.field === Inner.properties) {
        properties.push(readKeyValue(this.table.bytes, reader.valueStart, reader.valueEnd, 'undecodableBatch'));
      }
    }
    return properties;
  }

  /** Unsigned; -1 reads as 2^64-1 (E11). */
  get sequenceId(): bigint | undefined {
    if (this.table.hasSequenceId[this.index] === 0) return undefined;
    return toUint64(this.table.sequenceHigh[this.index] as number, this.table.sequenceLow[this.index] as number);
  }

  get eventTimeMs(): number | undefined {
    const reader = this.fields();
    let time: number | undefined;
    while (reader.next()) {
      if (reader.field === Inner.eventTime) time = Number(uint64At(this.table.bytes, reader.valueStart));
    }
    return time;
  }

  get nullValue(): boolean | undefined {
    return this.flag(Inner.nullValue);
  }

  /** A placeholder that compaction left in place of a message. */
  get compactedOut(): boolean | undefined {
    return this.flag(Inner.compactedOut);
  }

  /** Where the message lies on the segment ring; undefined without a partition key. */
  get segmentHash(): number | undefined {
    const hash = this.table.keyHash(this.index);
    return hash < 0 ? undefined : hash >>> 16;
  }

  /** Where the message lies on the bucket ring; 0 without any key. */
  get bucketHash(): number {
    return this.table.bucketHash(this.index, this.table.keyHash(this.index));
  }

  private fields(): WireReader {
    const end = this.table.metadataEnd[this.index] as number;
    return new WireReader(this.table.bytes, this.metadataStart, end, 'undecodableBatch', 'the metadata of a message');
  }

  private flag(field: number): boolean | undefined {
    const reader = this.fields();
    let value: boolean | undefined;
    while (reader.next()) if (reader.field === field) value = reader.low !== 0 || reader.high !== 0;
    return value;
  }
}

/**
 * Opens a batch and locates its records. A stored checksum is verified first, since whoever re-batches writes new
 * checksums and would bless a corrupt payload (E3). Throws `encryptedBatch`, `checksumMismatch`, `undecodableBatch`
 * or `codecUnavailable`, and `invalidArgument` on an entry that is no batch.
 */
export function openBatch(entry: Entry, codecs: Codecs, limits?: DecodeLimits): BatchTable {
  const { metadata } = entry;
  const count = metadata.numMessagesInBatch;
  if (count === undefined) {
    throw new IsthmusError('invalidArgument', 'num_messages_in_batch is absent: a single message has no records');
  }
  if (metadata.encrypted) throw new IsthmusError('encryptedBatch', 'the batch is encrypted and cannot be opened');
  if (verifyChecksum(entry) === 'mismatch') {
    throw new IsthmusError(
      'checksumMismatch',
      `the stored checksum ${entry.checksum} does not match the entry's bytes`,
    );
  }
  const bytes = decompressPayload(entry.payload, metadata.compression, metadata.uncompressedSize, codecs, limits);
  return new BatchTable(bytes, count, metadata.compactedBatchIndexes.length);
}

/** The messages of a batch, in order. Throws as `openBatch` does; see `DecodeLimits` for what it may allocate. */
export function readBatch(entry: Entry, codecs: Codecs, limits?: DecodeLimits): BatchMessage[] {
  const table = openBatch(entry, codecs, limits);
  return Array.from({ length: table.count }, (_, index) => new BatchMessage(table, index));
}
