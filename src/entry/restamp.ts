/**
 * The re-stamp of the verbatim path (E2, E3, E4): `replicated_from` and the source position are put on, what they
 * replace is taken off, and every other byte of the metadata stays where it was. The payload is not read, not even
 * for the checksum, which is moved: an entry of 5 MiB costs what one of 1 KiB costs, and a corrupt payload stays
 * detectably corrupt.
 */
import { copyWithCrc, crc32c, shiftCrc, wordCrc } from './crc32c.js';
import type { Entry } from './entry.js';
import { Outer } from './fields.js';
import { isPositionProperty } from './keyvalue.js';
import {
  type EntryMetadata,
  HAS_POSITION,
  HAS_REPLICATED_FROM,
  HAS_SCHEMA_VERSION,
  HAS_TRANSACTION,
} from './metadata.js';
import { crcWithStamp, prepareStamp, type RestampOptions, writeStamp } from './stamp.js';
import { allocate, type WireReader, writeUint32 } from './wire.js';

/** An entry ready to send: `head` is new memory, `payload` may be the source entry's own. */
export interface EntryBuffers {
  readonly head: Uint8Array;
  readonly payload: Uint8Array;
}

/** Bytes of `[0x0e01 crc]`. @internal */
export const CHECKSUM_BLOCK = 6;

/**
 * Stamps an entry for a remote. The broker header is dropped; an entry without a checksum stays without; a wrong
 * checksum stays wrong. Throws `invalidArgument` on an empty `replicatedFrom`.
 */
export function restamp(entry: Entry, options: RestampOptions): EntryBuffers {
  const stampLength = prepareStamp(options);
  const remove = fieldsToRemove(entry.metadata, options);
  const head =
    remove === 0 ? appendStamp(entry, stampLength, options) : replaceFields(entry, remove, stampLength, options);
  return { head, payload: entry.payload };
}

/** The usual case: nothing is taken off, so only what is new adds to the checksum, and the metadata is walked once. */
function appendStamp(entry: Entry, stampLength: number, options: RestampOptions): Uint8Array {
  const { bytes, metadataStart, metadataEnd, checksum } = entry;
  const length = metadataEnd - metadataStart;
  const size = length + stampLength;
  const prefix = checksum === undefined ? 0 : CHECKSUM_BLOCK;
  const head = allocate(prefix + 4 + size);
  // The old size field goes along, so that one run gives the CRC of what the stored checksum begins with.
  const before = copyWithCrc(head, prefix, bytes, metadataStart - 4, metadataEnd);
  writeUint32(head, prefix, size);
  const stampStart = prefix + 4 + length;
  writeStamp(head, stampStart, options);
  if (checksum !== undefined) {
    // The same metadata behind another size field: its CRC differs by that of the sizes' difference, shifted over it.
    const resized = (before ^ shiftCrc(wordCrc(length ^ size), length)) >>> 0;
    const after = crcWithStamp(resized, head, stampStart, stampStart + stampLength);
    writeChecksum(head, (checksum ^ shiftCrc(before ^ after, entry.payloadLength)) >>> 0);
  }
  return head;
}

/** The stamp replaces fields that are there: the rest of the metadata is gathered around them. */
function replaceFields(entry: Entry, remove: number, stampLength: number, options: RestampOptions): Uint8Array {
  const { bytes, metadataStart, metadataEnd, checksum } = entry;
  const kept = keptFields(entry, remove);
  const size = kept.length + stampLength;
  const prefix = checksum === undefined ? 0 : CHECKSUM_BLOCK;
  const head = allocate(prefix + 4 + size);
  const at = writeUint32(head, prefix, size);
  head.set(kept, at);
  writeStamp(head, at + kept.length, options);
  if (checksum !== undefined) {
    const difference = crc32c(bytes, metadataStart - 4, metadataEnd) ^ crc32c(head, prefix, head.length);
    writeChecksum(head, (checksum ^ shiftCrc(difference, entry.payloadLength)) >>> 0);
  }
  return head;
}

/** One buffer with both parts of an entry, for those who cannot gather. */
export function joinBuffers(buffers: EntryBuffers): Uint8Array {
  const joined = new Uint8Array(buffers.head.length + buffers.payload.length);
  joined.set(buffers.head);
  joined.set(buffers.payload, buffers.head.length);
  return joined;
}

/** Which `HAS_*` fields of the source a stamp replaces or takes off. @internal */
export function fieldsToRemove(metadata: EntryMetadata, options: RestampOptions): number {
  let owned = HAS_REPLICATED_FROM | HAS_POSITION;
  if (options.schemaVersion !== undefined) owned |= HAS_SCHEMA_VERSION;
  if (options.removeTransaction !== false) owned |= HAS_TRANSACTION;
  return metadata.owned & owned;
}

/** True when the field under the reader is one of those in `remove`. @internal */
export function isRemoved(reader: WireReader, bytes: Uint8Array, remove: number): boolean {
  switch (reader.field) {
    case Outer.replicatedFrom:
      return (remove & HAS_REPLICATED_FROM) !== 0;
    case Outer.properties:
      return (remove & HAS_POSITION) !== 0 && isPositionProperty(bytes, reader.valueStart, reader.valueEnd);
    case Outer.schemaVersion:
      return (remove & HAS_SCHEMA_VERSION) !== 0;
    case Outer.txnLeastBits:
    case Outer.txnMostBits:
      return (remove & HAS_TRANSACTION) !== 0;
    default:
      return false;
  }
}

function keptFields(entry: Entry, remove: number): Uint8Array {
  const { bytes, metadataStart, metadataEnd } = entry;
  const kept = allocate(metadataEnd - metadataStart);
  let length = 0;
  const reader = entry.metadata.fields();
  while (reader.next()) {
    if (isRemoved(reader, bytes, remove)) continue;
    kept.set(bytes.subarray(reader.tagStart, reader.valueEnd), length);
    length += reader.valueEnd - reader.tagStart;
  }
  return kept.subarray(0, length);
}

/** Writes `[0x0e01 crc]` at the start of a head. @internal */
export function writeChecksum(head: Uint8Array, checksum: number): void {
  head[0] = 0x0e;
  head[1] = 0x01;
  writeUint32(head, 2, checksum);
}
