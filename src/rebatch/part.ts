/**
 * Writes the parts of one source entry (E7, E8, R7, R8). What all parts share, the source's metadata without what
 * describes its batch, is gathered once; records are copied as they stand, neighbours in one run.
 */
import {
  allocate,
  type BatchTable,
  CHECKSUM_BLOCK,
  type Codecs,
  codecFor,
  compressionCode,
  copyBytes,
  crc32c,
  type Entry,
  type EntryBuffers,
  fieldsToRemove,
  Inner,
  isRemoved,
  Outer,
  prepareStamp,
  type RestampOptions,
  RunCopier,
  type SourcePosition,
  WireReader,
  WireWriter,
  writeChecksum,
  writeStamp,
  writeUint32,
} from '../entry/index.js';

/** How the parts of an entry are written. */
export interface PartOptions {
  readonly codecs: Codecs;
  /** What is put on every part; the part number is added to the position. */
  readonly stamp: RestampOptions;
  /** Parts keep the source's codec (default); false sends them plain where they then still fit (R8). */
  readonly keepCodec?: boolean | undefined;
  /** The largest entry that the destination takes, head and payload together, in bytes. */
  readonly maxEntryBytes: number;
}

/** A part as bytes; `length` is that of the whole entry. */
export interface EncodedPart {
  readonly buffers: EntryBuffers;
  readonly length: number;
  readonly lowestHash: number;
}

/** The outer fields of a record's key, and where they stand in a record's own metadata. */
const KEY_FIELDS: ReadonlyMap<number, number> = new Map([
  [Inner.partitionKey, Outer.partitionKey],
  [Inner.partitionKeyB64, Outer.partitionKeyB64],
  [Inner.orderingKey, Outer.orderingKey],
  [Inner.nullPartitionKey, Outer.nullPartitionKey],
]);

/** What describes the source's batch and is written anew, or not at all, on a part. */
const BATCH_FIELDS: ReadonlySet<number> = new Set([
  Outer.compression,
  Outer.uncompressedSize,
  Outer.numMessagesInBatch,
  Outer.compactedIndexes,
  Outer.stampMin,
  Outer.stampMax,
  ...KEY_FIELDS.values(),
]);

/** Encodes parts of one entry. */
export class PartEncoder {
  private readonly shared = new WireWriter();
  /** The source's own sequence fields, for a part in which no record has a sequence id. */
  private readonly sourceSequence = new WireWriter();
  private readonly writer = new WireWriter();
  private memory: { readonly regions: Uint8Array; readonly copier: RunCopier } | undefined;
  private used = 0;

  constructor(
    private readonly entry: Entry,
    private readonly table: BatchTable,
    private readonly bucketHashes: Uint16Array,
    private readonly options: PartOptions,
  ) {
    const { bytes, metadata } = entry;
    const remove = fieldsToRemove(metadata, options.stamp);
    const reader = metadata.fields();
    while (reader.next()) {
      const { field, tagStart, valueEnd } = reader;
      if (BATCH_FIELDS.has(field) || isRemoved(reader, bytes, remove)) continue;
      const sequence = field === Outer.sequenceId || field === Outer.highestSequenceId;
      (sequence ? this.sourceSequence : this.shared).copy(bytes, tagStart, valueEnd);
    }
  }

  /** Writes these messages, which are not none, as one entry. */
  encode(messages: Int32Array, position: SourcePosition): EncodedPart {
    const { compression } = this.entry.metadata;
    const { keepCodec = true, maxEntryBytes } = this.options;
    const region = this.copyRecords(messages);
    if (compression === 'none' || !keepCodec) {
      const plain = this.frame(messages, position, region, undefined);
      if (compression === 'none' || plain.length <= maxEntryBytes) return plain;
    }
    const compressed = codecFor(compression, this.options.codecs).compress(region);
    const kept = this.frame(messages, position, compressed, region.length);
    if (kept.length <= maxEntryBytes || compressed.length <= region.length) return kept;
    // A codec makes what it cannot compress larger: plain, it may still fit.
    return this.frame(messages, position, region, undefined);
  }

  /** The records of these messages, one behind the other, in memory that nobody else writes. */
  private copyRecords(messages: Int32Array): Uint8Array {
    const { start, end } = this.table;
    let length = 0;
    for (const i of messages) length += (end[i] as number) - (start[i] as number);
    const { regions, copier } = this.reserve(length);
    const regionStart = this.used;
    let at = regionStart;
    for (let m = 0; m < messages.length; ) {
      const from = start[messages[m] as number] as number;
      let to = end[messages[m] as number] as number;
      // Records that are neighbours in the source are copied in one go.
      for (m++; m < messages.length && start[messages[m] as number] === to; m++)
        to = end[messages[m] as number] as number;
      at = copier.copy(at, from, to);
    }
    this.used = at;
    return regions.subarray(regionStart, at);
  }

  /** Room for another region. All parts of an entry together hold its records once, so one buffer serves them all, unless one had to be written again. */
  private reserve(length: number): { readonly regions: Uint8Array; readonly copier: RunCopier } {
    const { memory, table } = this;
    if (memory !== undefined && this.used + length <= memory.regions.length) return memory;
    const regions = Buffer.allocUnsafe(Math.max(length, memory === undefined ? table.bytes.length : length));
    this.used = 0;
    this.memory = { regions, copier: new RunCopier(regions, table.bytes) };
    return this.memory;
  }

  private frame(
    messages: Int32Array,
    position: SourcePosition,
    payload: Uint8Array,
    uncompressedSize: number | undefined,
  ): EncodedPart {
    const { writer, entry, bucketHashes } = this;
    let lowestHash = 0xffff;
    let highestHash = 0;
    for (const i of messages) {
      const hash = bucketHashes[i] as number;
      if (hash < lowestHash) lowestHash = hash;
      if (hash > highestHash) highestHash = hash;
    }
    writer.clear();
    writer.raw(this.shared.written());
    this.writeSequence(messages);
    this.writeKey(messages[0] as number);
    if (uncompressedSize !== undefined) {
      writer.uint32(Outer.compression, compressionCode(entry.metadata.compression));
      writer.uint32(Outer.uncompressedSize, uncompressedSize);
    }
    writer.uint32(Outer.numMessagesInBatch, messages.length);
    writer.uint32(Outer.stampMin, lowestHash);
    writer.uint32(Outer.stampMax, highestHash);
    const described = writer.written();

    const stamp: RestampOptions = { ...this.options.stamp, sourcePosition: position };
    const size = described.length + prepareStamp(stamp);
    const prefix = entry.checksum === undefined ? 0 : CHECKSUM_BLOCK;
    const head = allocate(prefix + 4 + size);
    const at = copyBytes(head, writeUint32(head, prefix, size), described, 0, described.length);
    writeStamp(head, at, stamp);
    if (entry.checksum !== undefined) {
      writeChecksum(head, crc32c(payload, 0, payload.length, crc32c(head, prefix, head.length)));
    }
    return { buffers: { head, payload }, length: head.length + payload.length, lowestHash };
  }

  /** Both ids are the highest of the part's records, as a bucket batcher writes them; signed, since -1 is the lowest. */
  private writeSequence(messages: Int32Array): void {
    const { sequenceHigh, sequenceLow, hasSequenceId } = this.table;
    let high = 0;
    let low = 0;
    let found = false;
    for (const i of messages) {
      if (hasSequenceId[i] === 0) continue;
      const h = sequenceHigh[i] as number;
      const l = (sequenceLow[i] as number) >>> 0;
      if (!found || h > high || (h === high && l > low)) {
        high = h;
        low = l;
        found = true;
      }
    }
    if (!found) {
      this.writer.raw(this.sourceSequence.written());
      return;
    }
    this.writer.uint64Halves(Outer.sequenceId, high, low);
    this.writer.uint64Halves(Outer.highestSequenceId, high, low);
  }

  private writeKey(message: number): void {
    const { bytes, start, metadataEnd } = this.table;
    const metadataStart = (start[message] as number) + 4;
    const reader = new WireReader(
      bytes,
      metadataStart,
      metadataEnd[message] as number,
      'undecodableBatch',
      'a message',
    );
    while (reader.next()) {
      const outer = KEY_FIELDS.get(reader.field);
      if (outer !== undefined) this.writer.retagged(outer, reader, bytes);
    }
  }
}
