/**
 * The re-stamp of the verbatim path (E2, E3, E4): `replicated_from` and the source position are put on, what they
 * replace is taken off, and every other byte of the metadata stays where it was. The payload is not read, not even
 * for the checksum, which is moved: an entry of 5 MiB costs what one of 1 KiB costs, and a corrupt payload stays
 * detectably corrupt.
 */
import { IsthmusError, show } from '../errors.js';
import { copyWithCrc, crc32c, shiftCrc } from './crc32c.js';
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
import { BYTES, varintLength, WireWriter, writeUint32, writeVarint } from './wire.js';

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
  const head = Buffer.allocUnsafe(prefix + 4 + size);
  // The old size field goes along, so that one run gives the CRC of what the stored checksum begins with.
  const before = copyWithCrc(head, prefix, bytes, metadataStart - 4, metadataEnd);
  writeUint32(head, prefix, size);
  const stampStart = prefix + 4 + length;
  writeStamp(head, stampStart, options);
  if (checksum !== undefined) {
    const after = crc32c(head, stampStart, stampStart + stampLength, resizedCrc(before, length, size));
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
  const head = Buffer.allocUnsafe(prefix + 4 + size);
  const at = writeUint32(head, prefix, size);
  head.set(kept, at);
  writeStamp(head, at + kept.length, options);
  if (checksum !== undefined) {
    const difference = crc32c(bytes, metadataStart - 4, metadataEnd) ^ crc32c(head, prefix, head.length);
    writeChecksum(head, (checksum ^ shiftCrc(difference, entry.payloadLength)) >>> 0);
  }
  return head;
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

const POSITION_KEY = new TextEncoder().encode(SOURCE_POSITION_PROPERTY);
/** The property up to its value: its name and the tag of the value. */
const POSITION_PREFIX = Uint8Array.from([
  (KeyValue.key << 3) | BYTES,
  POSITION_KEY.length,
  ...POSITION_KEY,
  (KeyValue.value << 3) | BYTES,
]);
/** Between `prepareStamp` and `writeStamp`: the position's text, and the last cluster name encoded, which a replicator never changes. */
const positionText = new Uint8Array(48);
let positionLength = 0;
let lastName: string | undefined;
/** `replicated_from` as a whole field. */
let lastNameField = new Uint8Array(0);

/** Checks the options and returns how many bytes `writeStamp` will write. @internal */
export function prepareStamp({ replicatedFrom, sourcePosition, schemaVersion }: RestampOptions): number {
  if (replicatedFrom !== lastName) {
    if (typeof replicatedFrom !== 'string' || replicatedFrom === '') {
      throw new IsthmusError('invalidArgument', `replicatedFrom ${show(replicatedFrom)}: a cluster name is not empty`);
    }
    const writer = new WireWriter();
    writer.text(Outer.replicatedFrom, replicatedFrom);
    lastNameField = Uint8Array.from(writer.written());
    lastName = replicatedFrom;
  }
  positionLength = writePosition(positionText, sourcePosition);
  const schema = schemaVersion === undefined ? 0 : 2 + varintLength(schemaVersion.length) + schemaVersion.length;
  return 2 + propertyLength() + lastNameField.length + schema;
}

/** Bytes of the KeyValue: its name, and the position behind a length of one byte. */
function propertyLength(): number {
  return POSITION_PREFIX.length + 1 + positionLength;
}

/** Writes the fields of the stamp that was prepared last. @internal */
export function writeStamp(target: Uint8Array, start: number, { schemaVersion }: RestampOptions): void {
  let at = writeTag(target, start, Outer.properties, propertyLength());
  target.set(POSITION_PREFIX, at);
  at = writeVarint(target, at + POSITION_PREFIX.length, positionLength);
  for (let i = 0; i < positionLength; i++) target[at++] = positionText[i] as number;
  target.set(lastNameField, at);
  if (schemaVersion !== undefined) {
    at = writeTag(target, at + lastNameField.length, Outer.schemaVersion, schemaVersion.length);
    target.set(schemaVersion, at);
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
