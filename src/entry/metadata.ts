/**
 * The outer metadata of an entry as a view over its bytes (E2). One scan checks every field and notes where the
 * values lie; a value is decoded when somebody asks for it, and reading one never throws. A field that is present
 * twice counts with its last value, as proto2 says; repeated fields keep all.
 */
import { IsthmusError } from '../errors.js';
import { hashBytes } from '../ring/index.js';
import { Outer, SOURCE_POSITION_PROPERTY } from './fields.js';
import { isPositionProperty, readKeyValue } from './keyvalue.js';
import { BYTES, decodeText, toUint64, VARINT, viewOf, WireReader } from './wire.js';

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

/** The wire type of each field of Pulsar 5.0.1 by its number; 255 where no field is declared, so that any will do. */
const WIRE_TYPES = new Uint8Array(Outer.stampMax + 1).fill(255);
for (const field of Object.values(Outer)) WIRE_TYPES[field] = VARINT;
for (const field of [
  Outer.producerName,
  Outer.properties,
  Outer.replicatedFrom,
  Outer.partitionKey,
  Outer.replicateTo,
  Outer.encryptionKeys,
  Outer.encryptionAlgo,
  Outer.encryptionParam,
  Outer.schemaVersion,
  Outer.orderingKey,
  Outer.uuid,
  Outer.schemaId,
]) {
  WIRE_TYPES[field] = BYTES;
}

/** `present` bits of the fields that must be there. */
const REQUIRED = (1 << Outer.producerName) | (1 << Outer.sequenceId) | (1 << Outer.publishTime);

/**
 * The outer metadata of an entry. Numbers are the wire's: ids are unsigned 64-bit bigint (-1 reads as 2^64-1, E11),
 * times milliseconds since the epoch (a time beyond 2^53 loses its last digits), absent fields `undefined`.
 *
 * What decisions need of every entry is noted by the scan; the rest is looked up again when somebody asks.
 */
export class EntryMetadata {
  /** Bit set of `HAS_*`. @internal */
  owned: number;
  /** Bit n is set when field n is present; fields 32 and above are not in it. */
  private readonly present: number;
  private readonly keyStart: number;
  private readonly keyEnd: number;
  private readonly batchCount: number;
  private readonly stampMin: number;
  private readonly stampMax: number;

  /** Scans `bytes[start..end)`. Throws `malformedEntry`. @internal */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly start: number,
    private readonly end: number,
  ) {
    const reader = this.fields();
    let owned = 0;
    let present = 0;
    let keyStart = -1;
    let keyEnd = -1;
    let batchCount = 0;
    let stampMin = -1;
    let stampMax = -1;
    while (reader.next()) {
      const { field } = reader;
      if (field > Outer.stampMax) continue;
      const expected = WIRE_TYPES[field] as number;
      if (expected !== reader.wireType && expected !== 255) checkPacked(reader, bytes);
      if (field < 32) present |= 1 << field;
      switch (field) {
        case Outer.properties:
          if (isPositionProperty(bytes, reader.valueStart, reader.valueEnd)) owned |= HAS_POSITION;
          break;
        case Outer.replicatedFrom:
          owned |= HAS_REPLICATED_FROM;
          break;
        case Outer.partitionKey:
          keyStart = reader.valueStart;
          keyEnd = reader.valueEnd;
          break;
        case Outer.numMessagesInBatch:
          batchCount = reader.low;
          break;
        case Outer.encryptionKeys:
          readEncryptionKey(bytes, reader.valueStart, reader.valueEnd);
          break;
        case Outer.schemaVersion:
          owned |= HAS_SCHEMA_VERSION;
          break;
        case Outer.txnLeastBits:
        case Outer.txnMostBits:
          owned |= HAS_TRANSACTION;
          break;
        case Outer.stampMin:
          stampMin = reader.low >>> 0;
          break;
        case Outer.stampMax:
          stampMax = reader.low >>> 0;
          break;
      }
    }
    if ((present & REQUIRED) !== REQUIRED) {
      reader.refuse('lacks one of producer_name, sequence_id and publish_time, which are required');
    }
    this.owned = owned;
    this.present = present;
    this.keyStart = keyStart;
    this.keyEnd = keyEnd;
    this.batchCount = batchCount;
    this.stampMin = stampMin;
    this.stampMax = stampMax;
  }

  /** A fresh walk over the fields, for those that look at every occurrence. @internal */
  fields(): WireReader {
    return new WireReader(this.bytes, this.start, this.end, 'malformedEntry', 'the metadata');
  }

  /** A reader at the last occurrence of a field, which is the one that counts; undefined where it is absent. */
  private last(field: number): WireReader | undefined {
    if (field < 32 && (this.present & (1 << field)) === 0) return undefined;
    const walk = this.fields();
    let found: WireReader | undefined;
    while (walk.next()) {
      if (walk.field === field) found = Object.assign(this.fields(), walk);
    }
    return found;
  }

  private text(field: number): string | undefined {
    const at = this.last(field);
    return at === undefined ? undefined : decodeText(this.bytes, at.valueStart, at.valueEnd);
  }

  private view(field: number): Uint8Array | undefined {
    const at = this.last(field);
    return at === undefined ? undefined : viewOf(this.bytes, at.valueStart, at.valueEnd);
  }

  private uint64(field: number): bigint | undefined {
    const at = this.last(field);
    return at === undefined ? undefined : toUint64(at.high, at.low);
  }

  private flag(field: number): boolean | undefined {
    const at = this.last(field);
    return at === undefined ? undefined : at.low !== 0 || at.high !== 0;
  }

  /** All occurrences of a repeated field, in wire order. */
  private all<T>(field: number, read: (start: number, end: number) => T): readonly T[] {
    if ((this.present & (1 << field)) === 0) return NONE;
    const values: T[] = [];
    const reader = this.fields();
    while (reader.next()) if (reader.field === field) values.push(read(reader.valueStart, reader.valueEnd));
    return values;
  }

  /** The producer that first published the message; kept by every replicator. */
  get producerName(): string {
    return this.text(Outer.producerName) ?? '';
  }

  get sequenceId(): bigint {
    return this.uint64(Outer.sequenceId) ?? 0n;
  }

  get publishTimeMs(): number {
    return Number(this.uint64(Outer.publishTime));
  }

  /** Name and value pairs in wire order; a name may repeat. */
  get properties(): readonly (readonly [string, string])[] {
    return this.all(Outer.properties, (start, end) => readKeyValue(this.bytes, start, end, 'malformedEntry'));
  }

  /** The cluster that a replicator copied this entry from; present means it is never copied on (loop prevention). */
  get replicatedFrom(): string | undefined {
    return this.text(Outer.replicatedFrom);
  }

  /** The value of the source-position property, as text; the last one if there are several. */
  get sourcePosition(): string | undefined {
    if ((this.owned & HAS_POSITION) === 0) return undefined;
    return this.properties.findLast(([name]) => name === SOURCE_POSITION_PROPERTY)?.[1];
  }

  /** The key's wire text: base64 when `partitionKeyB64` is true. */
  get partitionKey(): string | undefined {
    return this.keyStart < 0 ? undefined : decodeText(this.bytes, this.keyStart, this.keyEnd);
  }

  /** The bytes of the key's wire text: what is hashed (E9). */
  get partitionKeyBytes(): Uint8Array | undefined {
    return this.keyStart < 0 ? undefined : viewOf(this.bytes, this.keyStart, this.keyEnd);
  }

  /** The raw hash of the partition key (E9), or -1 without one; hashed in place. */
  get keyHash(): number {
    return this.keyStart < 0 ? -1 : hashBytes(this.bytes, this.keyStart, this.keyEnd);
  }

  get partitionKeyB64(): boolean | undefined {
    return this.flag(Outer.partitionKeyB64);
  }

  get nullPartitionKey(): boolean | undefined {
    return this.flag(Outer.nullPartitionKey);
  }

  get orderingKey(): Uint8Array | undefined {
    return this.view(Outer.orderingKey);
  }

  /** The only clusters that may receive the entry; empty means all. */
  get replicateTo(): readonly string[] {
    return this.all(Outer.replicateTo, (start, end) => decodeText(this.bytes, start, end));
  }

  get compression(): CompressionType {
    const code = this.last(Outer.compression)?.low ?? 0;
    return COMPRESSIONS[code] ?? code;
  }

  /** Bytes of the payload before compression, as declared. */
  get uncompressedSize(): number | undefined {
    const size = this.last(Outer.uncompressedSize)?.low;
    return size === undefined ? undefined : size >>> 0;
  }

  /** Present, whatever its value, means that the payload is a batch (E5). */
  get numMessagesInBatch(): number | undefined {
    return (this.present & (1 << Outer.numMessagesInBatch)) === 0 ? undefined : this.batchCount;
  }

  /** The bucket hashes in the entry; a stamp with one bound, with min > max or beyond 16 bits counts as absent (E2). */
  get stamp(): Stamp | undefined {
    if (this.stampMin < 0 || this.stampMin > this.stampMax || this.stampMax > 0xffff) return undefined;
    return { min: this.stampMin, max: this.stampMax };
  }

  get encrypted(): boolean {
    return (this.present & (1 << Outer.encryptionKeys)) !== 0;
  }

  get encryptionKeys(): readonly EncryptionKey[] {
    return this.all(Outer.encryptionKeys, (start, end) => readEncryptionKey(this.bytes, start, end));
  }

  get encryptionAlgo(): string | undefined {
    return this.text(Outer.encryptionAlgo);
  }

  get encryptionParam(): Uint8Array | undefined {
    return this.view(Outer.encryptionParam);
  }

  /** Present means a marker, not user data. */
  get markerType(): number | undefined {
    return this.last(Outer.markerType)?.low;
  }

  /** The transaction the message belongs to; absent unless both halves are present. */
  get txn(): { readonly mostBits: bigint; readonly leastBits: bigint } | undefined {
    const mostBits = this.uint64(Outer.txnMostBits);
    const leastBits = this.uint64(Outer.txnLeastBits);
    return mostBits === undefined || leastBits === undefined ? undefined : { mostBits, leastBits };
  }

  /** Present on each piece of a message that was cut into several entries. */
  get chunk(): ChunkInfo | undefined {
    const numChunks = this.last(Outer.numChunks)?.low ?? 0;
    const chunkId = this.last(Outer.chunkId)?.low ?? -1;
    const uuid = numChunks > 1 && chunkId >= 0 ? this.uuid : undefined;
    return uuid === undefined
      ? undefined
      : { uuid, chunkId, numChunks, totalSize: this.last(Outer.totalChunkSize)?.low ?? 0 };
  }

  get uuid(): string | undefined {
    return this.text(Outer.uuid);
  }

  get highestSequenceId(): bigint | undefined {
    return this.uint64(Outer.highestSequenceId);
  }

  /** Opaque and local to a cluster: translated before an entry is written to another. */
  get schemaVersion(): Uint8Array | undefined {
    return this.view(Outer.schemaVersion);
  }

  get schemaId(): Uint8Array | undefined {
    return this.view(Outer.schemaId);
  }

  get eventTimeMs(): number | undefined {
    const time = this.uint64(Outer.eventTime);
    return time === undefined ? undefined : Number(time);
  }

  /** Signed. */
  get deliverAtMs(): number | undefined {
    const time = this.uint64(Outer.deliverAtTime);
    return time === undefined ? undefined : Number(BigInt.asIntN(64, time));
  }

  get nullValue(): boolean | undefined {
    return this.flag(Outer.nullValue);
  }

  /** The records of a batch that compaction kept, by index; empty on all others. */
  get compactedBatchIndexes(): readonly number[] {
    if ((this.present & (1 << Outer.compactedIndexes)) === 0) return NONE;
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

/** Refuses a field of another wire type than declared; the one list of numbers may also come packed. */
function checkPacked(reader: WireReader, bytes: Uint8Array): void {
  if (reader.field !== Outer.compactedIndexes || reader.wireType !== BYTES) {
    reader.expect(WIRE_TYPES[reader.field] as number);
  }
  packedNumbers(bytes, reader.valueStart, reader.valueEnd);
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
