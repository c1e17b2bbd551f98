/**
 * A stored entry as it lies in the ledger: `[0x0e02 size broker-header]? [0x0e01 crc]? [size][metadata][payload]`,
 * numbers big-endian (E1). Parsing reads the headers and scans the outer metadata; the payload is never looked at.
 */
import { IsthmusError } from '../errors.js';
import { crc32c } from './crc32c.js';
import { Broker } from './fields.js';
import { EntryMetadata } from './metadata.js';
import { readUint32, uint64At, VARINT, viewOf, WireReader } from './wire.js';

const BROKER_MAGIC = 0x0e02;
const CHECKSUM_MAGIC = 0x0e01;

/** What the source cluster's broker noted when it stored the entry. Belongs to that cluster and is never forwarded. */
export interface BrokerEntry {
  readonly timestampMs?: number;
  readonly index?: bigint;
}

/** A parsed entry: views over the bytes given to `parseEntry`, which must not change while it is in use. */
export class Entry {
  /** Where the metadata lies in `bytes`; its size field is the four bytes before. @internal */
  constructor(
    readonly bytes: Uint8Array,
    readonly header: 'none' | 'checksum' | 'broker' | 'broker+checksum',
    /** The stored CRC32C, unsigned; absent on an entry without a checksum. */
    readonly checksum: number | undefined,
    /** @internal */
    readonly metadataStart: number,
    /** @internal */
    readonly metadataEnd: number,
    private readonly brokerStart: number,
    private readonly brokerEnd: number,
    readonly metadata: EntryMetadata,
  ) {}

  /** The metadata proper, a view. */
  get metadataBytes(): Uint8Array {
    return viewOf(this.bytes, this.metadataStart, this.metadataEnd);
  }

  /** All that follows the metadata, a view; never copied. */
  get payload(): Uint8Array {
    return viewOf(this.bytes, this.metadataEnd, this.bytes.length);
  }

  /** Bytes of the payload. */
  get payloadLength(): number {
    return this.bytes.length - this.metadataEnd;
  }

  /** The broker header's fields; absent on an entry without one. */
  get broker(): BrokerEntry | undefined {
    return this.brokerStart < 0 ? undefined : readBrokerEntry(this.bytes, this.brokerStart, this.brokerEnd);
  }
}

/**
 * Parses a stored entry. Throws `malformedEntry` when a header or the metadata is cut, a required field is missing
 * or a field has a wrong type.
 */
export function parseEntry(bytes: Uint8Array): Entry {
  let at = 0;
  let brokerStart = -1;
  let brokerEnd = -1;
  if (magicAt(bytes, at) === BROKER_MAGIC) {
    brokerStart = at + 6;
    brokerEnd = brokerStart + sizeAt(bytes, at + 2, 'the broker header');
    readBrokerEntry(bytes, brokerStart, brokerEnd);
    at = brokerEnd;
  }
  let checksum: number | undefined;
  if (magicAt(bytes, at) === CHECKSUM_MAGIC) {
    if (at + 6 > bytes.length) cut('the checksum', at + 6, bytes.length);
    checksum = readUint32(bytes, at + 2);
    at += 6;
  }
  const metadataStart = at + 4;
  const metadataEnd = metadataStart + sizeAt(bytes, at, 'the metadata');
  const metadata = new EntryMetadata(bytes, metadataStart, metadataEnd);
  const broker = brokerStart >= 0;
  const header = checksum === undefined ? (broker ? 'broker' : 'none') : broker ? 'broker+checksum' : 'checksum';
  return new Entry(bytes, header, checksum, metadataStart, metadataEnd, brokerStart, brokerEnd, metadata);
}

/** Compares the stored checksum with one computed over metadata and payload: reads the whole entry. */
export function verifyChecksum(entry: Entry): 'ok' | 'absent' | 'mismatch' {
  if (entry.checksum === undefined) return 'absent';
  return crc32c(entry.bytes, entry.metadataStart - 4) === entry.checksum ? 'ok' : 'mismatch';
}

function magicAt(bytes: Uint8Array, at: number): number {
  return at + 2 > bytes.length ? -1 : ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

/** Reads a size field and checks that so many bytes follow it. */
function sizeAt(bytes: Uint8Array, at: number, what: string): number {
  if (at + 4 > bytes.length) cut(`the size of ${what}`, at + 4, bytes.length);
  const size = readUint32(bytes, at);
  if (size > bytes.length - at - 4) cut(`${what}, of ${size} bytes,`, at + 4 + size, bytes.length);
  return size;
}

function cut(what: string, end: number, length: number): never {
  throw new IsthmusError('malformedEntry', `${what} ends at byte ${end}, but the entry has ${length} bytes`);
}

function readBrokerEntry(bytes: Uint8Array, start: number, end: number): BrokerEntry {
  const reader = new WireReader(bytes, start, end, 'malformedEntry', 'the broker header');
  const fields: { timestampMs?: number; index?: bigint } = {};
  while (reader.next()) {
    if (reader.field !== Broker.timestamp && reader.field !== Broker.index) continue;
    reader.expect(VARINT);
    const value = uint64At(bytes, reader.valueStart);
    if (reader.field === Broker.timestamp) fields.timestampMs = Number(value);
    else fields.index = value;
  }
  return fields;
}
