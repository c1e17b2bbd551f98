/**
 * The outer metadata of an entry as a view over its bytes (E2). One scan checks every field and notes where the
 * values lie; a value is decoded when somebody asks for it, and reading one never throws. A field that is present
 * twice counts with its last value, as proto2 says; repeated fields keep all.
 */
import { IsthmusError } from '../errors.js';
import { Outer, SOURCE_POSITION_PROPERTY } from './fields.js';
import { isPositionProperty, readKeyValue } from './keyvalue.js';
import { BYTES, decodeText, uint64At, VARINT, WireReader } from './wire.js';

/** The compression of an entry's payload; a number is a codec that isthmus does not know. */
export type CompressionType = 'none' | 'lz4' | 'zlib' | 'zstd' | 'snappy' | number;

/** The bucket hashes in an entry: lowest and highest, inclusive, both 0..0xFFFF (PIP-486). */
export interface Stamp {
  readonly min: number;
  readonly max: number;
}

/** One piece of a message that was too large for one entry. */
export interface ChunkInfo {
  readonly uuid: string;
  /** 0-based. */
  readonly chunkId: number;
  readonly numChunks: number;
  /** Bytes of the whole message after compression. */
  readonly totalSize: number;
}

/** One recipient's copy of the key that encrypts a payload. */
export interface EncryptionKey {
  readonly key: string;
  readonly value: Uint8Array;
  readonly metadata: readonly (readonly [string, string])[];
}

const COMPRESSIONS = ['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const;
/** The number that stands for a codec on the wire. */
export function compressionCode(compression: CompressionType): number {
  return typeof compression === 'number' ? compression : COMPRESSIONS.indexOf(compression);
}

const NONE: readonly never[] = Object.freeze([]);

/** Which of the fields that a re-stamp owns are present. */
export const HAS_REPLICATED_FROM = 1;
export const HAS_POSITION = 2;
export const HAS_SCHEMA_VERSION = 4;
export const HAS_TRANSACTION = 8;

/**
 * The outer metadata of an entry. Numbers are the wire's: ids are unsigned 64-bit bigint (-1 reads as 2^64-1, E11),
 * times milliseconds since the epoch (a time beyond 2^53 loses its last digits), absent fields `undefined`.
 */
export class EntryMetadata {
  /** Bit set of `HAS_*`. @internal */
  owned = 0;
  private producerNameStart = -1;
  private producerNameEnd = -1;
  private sequenceIdStart = -1;
  private publishTimeStart = -1;
  private propertyCount = 0;
  private replicatedFromStart = -1;
  private replicatedFromEnd = -1;
  private partitionKeyStart = -1;
  private partitionKeyEnd = -1;
  private replicateToCount = 0;
  private compressionCode = 0;
  private uncompressedSizeValue = -1;
  private batchCount: number | undefined = undefined;
  private eventTimeStart = -1;
  private encryptionKeyCount = 0;
  private encryptionAlgoStart = -1;
  private encryptionAlgoEnd = -1;
  private encryptionParamStart = -1;
  private encryptionParamEnd = -1;
  private schemaVersionStart = -1;
  private schemaVersionEnd = -1;
  private partitionKeyB64Value: boolean | undefined = undefined;
  private orderingKeyStart = -1;
  private orderingKeyEnd = -1;
  private deliverAtStart = -1;
  private markerTypeValue: number | undefined = undefined;
  private txnLeastStart = -1;
  private txnMostStart = -1;
  private highestSequenceIdStart = -1;
  private nullValueFlag: boolean | undefined = undefined;
  private uuidStart = -1;
  private uuidEnd = -1;
  private numChunks = 0;
  private totalChunkSize = 0;
  private chunkIdValue = -1;
  private nullPartitionKeyFlag: boolean | undefined = undefined;
  private compactedIndexCount = 0;
  private schemaIdStart = -1;
  private schemaIdEnd = -1;
  private stampMin = -1;
  private stampMax = -1;

  /** Scans `bytes[start..end)`. Throws `malformedEntry`. @internal */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly start: number,
    private readonly end: number,
  ) {
    const reader = this.fields();
    while (reader.next()) {
      const field = reader.field;
      if (field > Outer.stampMax) continue;
      if (reader.wireType === BYTES) this.noteBytes(reader, field);
      else if (reader.wireType === VARINT) this.noteNumber(reader, field);
      else if (field !== 10 && field !== 21) reader.refuse(`holds field ${field} with wire type ${reader.wireType}`);
    }
    if (this.producerNameStart < 0) reader.refuse('has no producer_name, which is required');
    if (this.sequenceIdStart < 0) reader.refuse('has no sequence_id, which is required');
    if (this.publishTimeStart < 0) reader.refuse('has no publish_time, which is required');
  }

  private noteBytes(reader: WireReader, field: number): void {
    const { valueStart, valueEnd } = reader;
    switch (field) {
      case Outer.producerName:
        this.producerNameStart = valueStart;
        this.producerNameEnd = valueEnd;
        break;
      case Outer.properties:
        this.propertyCount++;
        if (isPositionProperty(this.bytes, valueStart, valueEnd)) this.owned |= HAS_POSITION;
        break;
      case Outer.replicatedFrom:
        this.replicatedFromStart = valueStart;
        this.replicatedFromEnd = valueEnd;
        this.owned |= HAS_REPLICATED_FROM;
        break;
      case Outer.partitionKey:
        this.partitionKeyStart = valueStart;
        this.partitionKeyEnd = valueEnd;
        break;
      case Outer.replicateTo:
        this.replicateToCount++;
        break;
      case Outer.encryptionKeys:
        this.encryptionKeyCount++;
        readEncryptionKey(this.bytes, valueStart, valueEnd);
        break;
      case Outer.encryptionAlgo:
        this.encryptionAlgoStart = valueStart;
        this.encryptionAlgoEnd = valueEnd;
        break;
      case Outer.encryptionParam:
        this.encryptionParamStart = valueStart;
        this.encryptionParamEnd = valueEnd;
        break;
      case Outer.schemaVersion:
        this.schemaVersionStart = valueStart;
        this.schemaVersionEnd = valueEnd;
        this.owned |= HAS_SCHEMA_VERSION;
        break;
      case Outer.orderingKey:
        this.orderingKeyStart = valueStart;
        this.orderingKeyEnd = valueEnd;
        break;
      case Outer.uuid:
        this.uuidStart = valueStart;
        this.uuidEnd = valueEnd;
        break;
      case Outer.compactedIndexes:
        this.compactedIndexCount += packedNumbers(this.bytes, valueStart, valueEnd).length;
        break;
      case Outer.schemaId:
        this.schemaIdStart = valueStart;
        this.schemaIdEnd = valueEnd;
        break;
      case 10:
      case 21:
        break;
      default:
        reader.expect(VARINT);
    }
  }

  private noteNumber(reader: WireReader, field: number): void {
    const { valueStart, low } = reader;
    switch (field) {
      case Outer.sequenceId:
        this.sequenceIdStart = valueStart;
        break;
      case Outer.publishTime:
        this.publishTimeStart = valueStart;
        break;
      case Outer.compression:
        this.compressionCode = low;
        break;
      case Outer.uncompressedSize:
        this.uncompressedSizeValue = low >>> 0;
        break;
      case Outer.numMessagesInBatch:
        this.batchCount = low;
        break;
      case Outer.eventTime:
        this.eventTimeStart = valueStart;
        break;
      case Outer.partitionKeyB64:
        this.partitionKeyB64Value = isTrue(reader);
        break;
      case Outer.deliverAtTime:
        this.deliverAtStart = valueStart;
        break;
      case Outer.markerType:
        this.markerTypeValue = low;
        break;
      case Outer.txnLeastBits:
        this.txnLeastStart = valueStart;
        this.owned |= HAS_TRANSACTION;
        break;
      case Outer.txnMostBits:
        this.txnMostStart = valueStart;
        this.owned |= HAS_TRANSACTION;
        break;
      case Outer.highestSequenceId:
        this.highestSequenceIdStart = valueStart;
        break;
      case Outer.nullValue:
        this.nullValueFlag = isTrue(reader);
        break;
      case Outer.numChunks:
        this.numChunks = low;
        break;
      case Outer.totalChunkSize:
        this.totalChunkSize = low;
        break;
      case Outer.chunkId:
        this.chunkIdValue = low;
        break;
      case Outer.nullPartitionKey:
        this.nullPartitionKeyFlag = isTrue(reader);
        break;
      case Outer.compactedIndexes:
        this.compactedIndexCount++;
        break;
      case Outer.stampMin:
        this.stampMin = low >>> 0;
        break;
      case Outer.stampMax:
        this.stampMax = low >>> 0;
        break;
      case 10:
      case 21:
        break;
      default:
        reader.expect(BYTES);
    }
  }

  /** A fresh walk over the fields, for those that look at every occurrence. @internal */
  fields(): WireReader {
    return new WireReader(this.bytes, this.start, this.end, 'malformedEntry', 'the metadata');
  }

  private text(start: number, end: number): string | undefined {
    return start < 0 ? undefined : decodeText(this.bytes, start, end);
  }

  private view(start: number, end: number): Uint8Array | undefined {
    return start < 0 ? undefined : this.bytes.subarray(start, end);
  }

  private uint64(start: number): bigint | undefined {
    return start < 0 ? undefined : uint64At(this.bytes, start);
  }

  private time(start: number): number | undefined {
    return start < 0 ? undefined : Number(uint64At(this.bytes, start));
  }

  /** The producer that first published the message; kept by every replicator. */
  get producerName(): string {
    return this.text(this.producerNameStart, this.producerNameEnd) as string;
  }

  get sequenceId(): bigint {
    return uint64At(this.bytes, this.sequenceIdStart);
  }

  get publishTimeMs(): number {
    return Number(uint64At(this.bytes, this.publishTimeStart));
  }

  /** Name and value pairs in wire order; a name may repeat. */
  get properties(): readonly (readonly [string, string])[] {
    if (this.propertyCount === 0) return NONE;
    const properties: [string, string][] = [];
    const reader = this.fields();
    while (reader.next()) {
      if (reader.field === Outer.properties) {
        properties.push(readKeyValue(this.bytes, reader.valueStart, reader.valueEnd, 'malformedEntry'));
      }
    }
    return properties;
  }

  /** The cluster that a replicator copied this entry from; present means it is never copied on (loop prevention). */
  get replicatedFrom(): string | undefined {
    return this.text(this.replicatedFromStart, this.replicatedFromEnd);
  }

  /** The value of the source-position property, as text; the last one if there are several. */
  get sourcePosition(): string | undefined {
    if ((this.owned & HAS_POSITION) === 0) return undefined;
    return this.properties.findLast(([name]) => name === SOURCE_POSITION_PROPERTY)?.[1];
  }

  /** The key's wire text: base64 when `partitionKeyB64` is true. */
  get partitionKey(): string | undefined {
    return this.text(this.partitionKeyStart, this.partitionKeyEnd);
  }

  /** The bytes of the key's wire text: what is hashed (E9). */
  get partitionKeyBytes(): Uint8Array | undefined {
    return this.view(this.partitionKeyStart, this.partitionKeyEnd);
  }

  get partitionKeyB64(): boolean | undefined {
    return this.partitionKeyB64Value;
  }

  get nullPartitionKey(): boolean | undefined {
    return this.nullPartitionKeyFlag;
  }

  get orderingKey(): Uint8Array | undefined {
    return this.view(this.orderingKeyStart, this.orderingKeyEnd);
  }

  /** The only clusters that may receive the entry; empty means all. */
  get replicateTo(): readonly string[] {
    if (this.replicateToCount === 0) return NONE;
    const clusters: string[] = [];
    const reader = this.fields();
    while (reader.next()) {
      if (reader.field === Outer.replicateTo) {
        clusters.push(decodeText(this.bytes, reader.valueStart, reader.valueEnd));
      }
    }
    return clusters;
  }

  get compression(): CompressionType {
    return COMPRESSIONS[this.compressionCode] ?? this.compressionCode;
  }

  /** Bytes of the payload before compression, as declared. */
  get uncompressedSize(): number | undefined {
    return this.uncompressedSizeValue < 0 ? undefined : this.uncompressedSizeValue;
  }

  /** Present, whatever its value, means that the payload is a batch (E5). */
  get numMessagesInBatch(): number | undefined {
    return this.batchCount;
  }

  /** The bucket hashes in the entry; a stamp with one bound, with min > max or beyond 16 bits counts as absent (E2). */
  get stamp(): Stamp | undefined {
    if (this.stampMin < 0 || this.stampMin > this.stampMax || this.stampMax > 0xffff) return undefined;
    return { min: this.stampMin, max: this.stampMax };
  }

  get encrypted(): boolean {
    return this.encryptionKeyCount > 0;
  }

  get encryptionKeys(): readonly EncryptionKey[] {
    if (this.encryptionKeyCount === 0) return NONE;
    const keys: EncryptionKey[] = [];
    const reader = this.fields();
    while (reader.next()) {
      if (reader.field === Outer.encryptionKeys) {
        keys.push(readEncryptionKey(this.bytes, reader.valueStart, reader.valueEnd));
      }
    }
    return keys;
  }

  get encryptionAlgo(): string | undefined {
    return this.text(this.encryptionAlgoStart, this.encryptionAlgoEnd);
  }

  get encryptionParam(): Uint8Array | undefined {
    return this.view(this.encryptionParamStart, this.encryptionParamEnd);
  }

  /** Present means a marker, not user data. */
  get markerType(): number | undefined {
    return this.markerTypeValue;
  }

  /** The transaction the message belongs to; absent unless both halves are present. */
  get txn(): { readonly mostBits: bigint; readonly leastBits: bigint } | undefined {
    const mostBits = this.uint64(this.txnMostStart);
    const leastBits = this.uint64(this.txnLeastStart);
    return mostBits === undefined || leastBits === undefined ? undefined : { mostBits, leastBits };
  }

  /** Present on each piece of a message that was cut into several entries. */
  get chunk(): ChunkInfo | undefined {
    const uuid = this.numChunks > 1 && this.chunkIdValue >= 0 ? this.text(this.uuidStart, this.uuidEnd) : undefined;
    if (uuid === undefined) return undefined;
    return { uuid, chunkId: this.chunkIdValue, numChunks: this.numChunks, totalSize: this.totalChunkSize };
  }

  get uuid(): string | undefined {
    return this.text(this.uuidStart, this.uuidEnd);
  }

  get highestSequenceId(): bigint | undefined {
    return this.uint64(this.highestSequenceIdStart);
  }

  /** Opaque and local to a cluster: translated before an entry is written to another. */
  get schemaVersion(): Uint8Array | undefined {
    return this.view(this.schemaVersionStart, this.schemaVersionEnd);
  }

  get schemaId(): Uint8Array | undefined {
    return this.view(this.schemaIdStart, this.schemaIdEnd);
  }

  get eventTimeMs(): number | undefined {
    return this.time(this.eventTimeStart);
  }

  /** Signed. */
  get deliverAtMs(): number | undefined {
    return this.deliverAtStart < 0 ? undefined : Number(BigInt.asIntN(64, uint64At(this.bytes, this.deliverAtStart)));
  }

  get nullValue(): boolean | undefined {
    return this.nullValueFlag;
  }

  /** The records of a batch that compaction kept, by index; empty on all others. */
  get compactedBatchIndexes(): readonly number[] {
    if (this.compactedIndexCount === 0) return NONE;
    const indexes: number[] = [];
    const reader = this.fields();
    while (reader.next()) {
      if (reader.field !== Outer.compactedIndexes) continue;
      if (reader.wireType === VARINT) indexes.push(reader.low);
      else indexes.push(...packedNumbers(this.bytes, reader.valueStart, reader.valueEnd));
    }
    return indexes;
  }
}

function isTrue(reader: WireReader): boolean {
  return reader.low !== 0 || reader.high !== 0;
}

/** The numbers of a packed field: those of a message whose tags are left out. Throws `malformedEntry`. */
function packedNumbers(bytes: Uint8Array, start: number, end: number): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    if (shift < 32) value |= (byte & 0x7f) << shift;
    shift += 7;
    if (byte < 0x80) {
      numbers.push(value);
      value = 0;
      shift = 0;
    } else if (shift >= 70) {
      throw new IsthmusError('malformedEntry', 'a packed field of the metadata holds a number of more than ten bytes');
    }
  }
  if (shift !== 0) throw new IsthmusError('malformedEntry', 'a packed field of the metadata is cut inside a number');
  return numbers;
}

/** Throws `malformedEntry`. */
function readEncryptionKey(bytes: Uint8Array, start: number, end: number): EncryptionKey {
  const reader = new WireReader(bytes, start, end, 'malformedEntry', 'an encryption key');
  let key: string | undefined;
  let value: Uint8Array | undefined;
  const metadata: (readonly [string, string])[] = [];
  while (reader.next()) {
    if (reader.field < 1 || reader.field > 3) continue;
    reader.expect(BYTES);
    if (reader.field === 1) key = decodeText(bytes, reader.valueStart, reader.valueEnd);
    else if (reader.field === 2) value = bytes.subarray(reader.valueStart, reader.valueEnd);
    else metadata.push(readKeyValue(bytes, reader.valueStart, reader.valueEnd, 'malformedEntry'));
  }
  if (key === undefined || value === undefined) {
    return reader.refuse('has no key or no value, which are required');
  }
  return { key, value, metadata };
}
