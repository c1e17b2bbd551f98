/** The entries under test/fixtures/pulsar and what their manifest says of them; see the README there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../fixtures/pulsar');

/** Numbers beyond 2^53 are decimal text. */
export type Num = number | string;

export interface Content {
  readonly length: number;
  readonly utf8?: string;
  readonly sha256?: string;
}

export interface MessageRecord {
  readonly key: string | null;
  readonly keyB64: boolean;
  readonly orderingKey: string | null;
  readonly nullPartitionKey: boolean;
  readonly properties: readonly (readonly [string, string])[];
  readonly eventTime: Num | null;
  readonly sequenceId: Num | null;
  readonly nullValue: boolean;
  readonly compactedOut: boolean;
  readonly payload: Content;
  readonly hash: {
    readonly keyRaw: string | null;
    readonly segmentHash: number | null;
    readonly legacyMasked: number | null;
    readonly bucketHash: number;
    readonly decodedKeyRaw?: string;
  };
}

export type OuterRecord = Readonly<Record<string, unknown>>;

export interface EntryRecord {
  readonly file: string;
  readonly description: string;
  readonly byteLength: number;
  readonly sha256: string;
  readonly header: string;
  readonly brokerEntry: { headerLength: number; broker_timestamp?: Num; index?: Num } | null;
  readonly checksum: { stored: string; computed: string; valid: boolean } | null;
  readonly metadataOffset: number;
  readonly metadataLength: number;
  readonly payloadLength: number;
  /** Absent where the metadata cannot be read. */
  readonly outer?: OuterRecord;
  readonly unknownFields?: readonly { bytes: string }[];
  readonly compression: string;
  readonly uncompressedSize: number | null;
  readonly stamp: { min: number | null; max: number | null };
  readonly isBatch: boolean;
  readonly encrypted: boolean;
  readonly chunked: boolean;
  readonly storedPayload: Content;
  readonly messages?: readonly MessageRecord[];
}

export interface RestampRecord {
  readonly source: string;
  readonly result: string;
  readonly options: {
    replicatedFrom: string;
    sourcePosition: string;
    removeTransaction: boolean;
    schemaVersion?: string;
  };
  readonly sourceChecksumValid: boolean;
  readonly outer: OuterRecord;
  readonly checksum: { stored: string } | null;
  readonly payloadSha256: string;
}

export interface CrcRecord {
  readonly prefixes: readonly { length: number; crc: string }[];
  readonly concatenations: readonly {
    first: number;
    second: number;
    crcFirst: string;
    crcSecond: string;
    crcBoth: string;
  }[];
  readonly headReplaced: readonly {
    oldHeadLength: number;
    tailLength: number;
    crcOld: string;
    crcOldHead: string;
    crcNewHead: string;
    crcTail: string;
    crcNew: string;
  }[];
  readonly texts: readonly { text?: string; hex?: string; crc: string }[];
}

export function fixtureBytes(path: string): Buffer {
  return readFileSync(join(ROOT, path));
}

function fixtureJson(path: string): unknown {
  return JSON.parse(fixtureBytes(path).toString('utf8'));
}

export const ENTRIES = fixtureJson('entries.json') as readonly EntryRecord[];
export const RESTAMPS = fixtureJson('restamp.json') as readonly RestampRecord[];
export const CRCS = fixtureJson('crc32c.json') as CrcRecord;

/** The record of one entry by the name of its file, without folder and ending. */
export function fixture(name: string): EntryRecord {
  const record = ENTRIES.find(({ file }) => file === `entries/${name}.bin`);
  if (record === undefined) throw new RangeError(`no fixture ${name}`);
  return record;
}

/** The bytes of one entry by name. */
export function fixtureEntry(name: string): Buffer {
  return fixtureBytes(`entries/${name}.bin`);
}
