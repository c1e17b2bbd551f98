/**
 * The re-stamp of the verbatim path (E2, E3, E4): `replicated_from` and the source position are put on, what they
 * replace is taken off, and every other byte of the metadata stays where it was. The payload is not read, not even
 * for the checksum, which is moved: an entry of 5 MiB costs what one of 1 KiB costs, and a corrupt payload stays
 * detectably corrupt.
 */
import { IsthmusError, show } from '../errors.js';
import { crc32c, shiftCrc } from './crc32c.js';
import type { Entry } from './entry.js';
import { KeyValue, Outer, SOURCE_POSITION_PROPERTY } from './fields.js';
import { isPositionProperty } from './keyvalue.js';
import {
  type EntryMetadata,
  HAS_POSITION,
  HAS_REPLICATED_FROM,
  HAS_SCHEMA_VERSION,
  HAS_TRANSACTION,
} from './metadata.js';
import { type SourcePosition, writePosition } from './position.js';
import { BYTES, copyBytes, varintLength, writeUint32, writeVarint } from './wire.js';

/** An entry ready to send: `head` is new memory, `payload` may be the source entry's own. */
export interface EntryBuffers {
  readonly head: Uint8Array;
  readonly payload: Uint8Array;
}

/** What a replicator puts on an entry. */
export interface RestampOptions {
  /** The source cluster's name; not empty. */
  readonly replicatedFrom: string;
  /** Where the entry lies in its source segment; text in the form of E10 is taken as it stands. */
  readonly sourcePosition: SourcePosition | string;
  /** The remote's schema version, where a translator has given one; the source's is kept without it. */
  readonly schemaVersion?: Uint8Array | undefined;
  /** Removes both transaction ids: right for the messages of a committed transaction. Default true. */
  readonly removeTransaction?: boolean | undefined;
}

/** Bytes of `[0x0e01 crc]`. @internal */
export const CHECKSUM_BLOCK = 6;

/**
 * Stamps an entry for a remote. The broker header is dropped; an entry without a checksum stays without; a wrong
 * checksum stays wrong. Throws `invalidArgument` on an empty `replicatedFrom`.
 */
export function restamp(entry: Entry, options: RestampOptions): EntryBuffers {
  const { bytes, metadataStart, metadataEnd, checksum } = entry;
  const stampLength = prepareStamp(options);
  const remove = fieldsToRemove(entry.metadata, options);
  const kept = remove === 0 ? undefined : keptFields(entry, remove);
  const keptLength = kept === undefined ? metadataEnd - metadataStart : kept.length;
  const prefix = checksum === undefined ? 0 : CHECKSUM_BLOCK;
  const size = keptLength + stampLength;
  const head = Buffer.allocUnsafe(prefix + 4 + size);

  let at = writeUint32(head, prefix, size);
  if (kept === undefined) copyBytes(head, at, bytes, metadataStart, metadataEnd);
  else head.set(kept, at);
  at += keptLength;
  writeStamp(head, at, options);

  if (checksum !== undefined) {
    const before = crc32c(bytes, metadataStart - 4, metadataEnd);
    const after =
      kept === undefined
        ? // The same metadata under another size, then the stamp: only what is new is read.
          crc32c(head, at, prefix + 4 + size, resizedCrc(before, metadataEnd - metadataStart, size))
        : crc32c(head, prefix, prefix + 4 + size);
    writeChecksum(head, (checksum ^ shiftCrc(before ^ after, entry.payloadLength)) >>> 0);
  }
  return { head, payload: entry.payload };
}

/** The CRC of a size field and metadata of `length` bytes, when the size field says `size` instead of `length`. */
function resizedCrc(crc: number, length: number, size: number): number {
  writeUint32(sizeFields, 0, length);
  writeUint32(sizeFields, 4, size);
  return (crc ^ shiftCrc(crc32c(sizeFields, 0, 4) ^ crc32c(sizeFields, 4, 8), length)) >>> 0;
}

const sizeFields = new Uint8Array(8);

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
export function isRemoved(reader: ReturnType<EntryMetadata['fields']>, bytes: Uint8Array, remove: number): boolean {
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
  const kept = Buffer.allocUnsafe(metadataEnd - metadataStart);
  let length = 0;
  const reader = entry.metadata.fields();
  while (reader.next()) {
    if (isRemoved(reader, bytes, remove)) continue;
    kept.set(bytes.subarray(reader.tagStart, reader.valueEnd), length);
    length += reader.valueEnd - reader.tagStart;
  }
  return kept.subarray(0, length);
}

const POSITION_KEY = Buffer.from(SOURCE_POSITION_PROPERTY, 'latin1');
/** Between `prepareStamp` and `writeStamp`: the position's text, and the last cluster name encoded, which a replicator never changes. */
const positionText = new Uint8Array(48);
let positionLength = 0;
let lastName: string | undefined;
let lastNameBytes = new Uint8Array(0);

/** Checks the options and returns how many bytes `writeStamp` will write. @internal */
export function prepareStamp({ replicatedFrom, sourcePosition, schemaVersion }: RestampOptions): number {
  if (replicatedFrom !== lastName) {
    if (typeof replicatedFrom !== 'string' || replicatedFrom === '') {
      throw new IsthmusError('invalidArgument', `replicatedFrom ${show(replicatedFrom)}: a cluster name is not empty`);
    }
    lastNameBytes = Buffer.from(replicatedFrom, 'utf8');
    lastName = replicatedFrom;
  }
  positionLength = writePosition(positionText, sourcePosition);
  const name = lastNameBytes.length;
  const schema = schemaVersion === undefined ? 0 : 2 + varintLength(schemaVersion.length) + schemaVersion.length;
  return 2 + propertyLength() + 1 + varintLength(name) + name + schema;
}

/** Bytes of the KeyValue: two one-byte tags, two one-byte lengths, the name and the position. */
function propertyLength(): number {
  return 4 + POSITION_KEY.length + positionLength;
}

/** Writes the fields of the stamp that was prepared last. @internal */
export function writeStamp(target: Uint8Array, start: number, { schemaVersion }: RestampOptions): void {
  let at = writeTag(target, start, Outer.properties, propertyLength());
  at = writeTag(target, at, KeyValue.key, POSITION_KEY.length);
  at = copyBytes(target, at, POSITION_KEY, 0, POSITION_KEY.length);
  at = writeTag(target, at, KeyValue.value, positionLength);
  at = copyBytes(target, at, positionText, 0, positionLength);
  at = writeTag(target, at, Outer.replicatedFrom, lastNameBytes.length);
  at = copyBytes(target, at, lastNameBytes, 0, lastNameBytes.length);
  if (schemaVersion !== undefined) {
    at = writeTag(target, at, Outer.schemaVersion, schemaVersion.length);
    copyBytes(target, at, schemaVersion, 0, schemaVersion.length);
  }
}

/** Writes `[0x0e01 crc]` at the start of a head. @internal */
export function writeChecksum(head: Uint8Array, checksum: number): void {
  head[0] = 0x0e;
  head[1] = 0x01;
  writeUint32(head, 2, checksum);
}

function writeTag(target: Uint8Array, at: number, field: number, length: number): number {
  return writeVarint(target, writeVarint(target, at, (field << 3) | BYTES), length);
}
