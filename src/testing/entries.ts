/**
 * Arbitraries for stored entries: every header form, codec, key, stamp and oddity that a replicator meets, built
 * field by field so that a failing case shrinks to one that can be read. With them the few wire helpers that tests
 * of entries need; their scanner shares no code with the one under test.
 */
import fc from 'fast-check';
import {
  batchMessage,
  type Codecs,
  type CompressionType,
  crc32c,
  type Entry,
  encodeBatch,
  encodeMessage,
  joinBuffers,
  type MessageFields,
  Outer,
  type OuterFields,
  parseEntry,
  SOURCE_POSITION_PROPERTY,
  type Stamp,
} from '../entry/index.js';
import { bucketHash, hashKey } from '../ring/index.js';

/** How an entry is stamped: not at all, as its producer should, with one bound, over the whole ring, or min above max. */
export type StampForm = 'none' | 'right' | 'only-min' | 'only-max' | 'full' | 'inverted';

/** What the payload of a generated entry holds. */
export type GeneratedContent =
  | { readonly kind: 'batch'; readonly messages: readonly MessageFields[] }
  | { readonly kind: 'single'; readonly body: Uint8Array };

/** An entry and what it was built from. Prints as one line. */
export interface GeneratedEntry {
  readonly bytes: Uint8Array;
  readonly header: Entry['header'];
  readonly outer: OuterFields;
  readonly content: GeneratedContent;
  readonly compression: CompressionType;
  readonly encrypted: boolean;
  readonly stampForm: StampForm;
  /** What a reader must see: absent where the form is not a whole stamp. */
  readonly stamp: Stamp | undefined;
  /** Whole encodings of the fields that no schema declares. */
  readonly unknownFields: readonly Uint8Array[];
}

/** Narrows what `arbEntry` makes; everything is on without it. */
export interface EntryOptions {
  readonly kinds?: readonly GeneratedContent['kind'][];
  readonly headers?: readonly Entry['header'][];
  readonly stamps?: readonly StampForm[];
  /** The most messages of a batch; default 5. */
  readonly maxMessages?: number;
  /** The messages of batches, and the bodies of singles; default `arbMessageFields()`. */
  readonly message?: fc.Arbitrary<MessageFields>;
  /** Outer fields beyond the producer's three; default `arbOuterFields()`. */
  readonly outer?: fc.Arbitrary<OuterFields>;
  readonly unknownFields?: boolean;
  readonly encrypted?: boolean;
}

const HEADERS = ['checksum', 'none', 'broker+checksum', 'broker'] as const;
const STAMPS = ['right', 'none', 'full', 'only-min', 'only-max', 'inverted'] as const;
const CODEC_NAMES = ['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const;
const LAST_UINT64 = (1n << 64n) - 1n;

/** The compression types of Pulsar 5.0.1, or those of them that `codecs` can do. */
export function arbCodecNames(codecs?: Codecs): fc.Arbitrary<(typeof CODEC_NAMES)[number]> {
  return fc.constantFrom(
    ...CODEC_NAMES.filter((name) => codecs === undefined || name === 'none' || codecs[name] !== undefined),
  );
}

/** The fields of one message of a batch: keys of every kind, repeated properties, null values, extreme numbers. */
export function arbMessageFields(): fc.Arbitrary<MessageFields> {
  return fc
    .record({
      payload: fc.uint8Array({ maxLength: 24 }),
      key: arbKey(),
      properties: seldom(fc.array(arbProperty(), { minLength: 1, maxLength: 3 })),
      eventTimeMs: seldom(arbTime()),
      sequenceId: fc.option(arbUint64(), { nil: undefined }),
      nullValue: seldom(fc.boolean()),
      compactedOut: seldom(fc.boolean()),
    })
    .map(({ key, ...fields }) => present<MessageFields>({ ...fields, ...key }));
}

/** The outer fields of an entry: those of a single message, or of the first message of a batch. */
export function arbOuterFields(): fc.Arbitrary<OuterFields> {
  return fc
    .record({
      producerName: fc.constantFrom('p', 'writer-seg-3', 'größe'),
      sequenceId: arbUint64(),
      publishTimeMs: arbTime(),
      key: arbKey(),
      properties: seldom(fc.array(fc.oneof(arbProperty(), arbStalePosition()), { minLength: 1, maxLength: 4 })),
      replicatedFrom: seldom(fc.constantFrom('b', 'us-east')),
      replicateTo: seldom(fc.array(fc.constantFrom('a', 'c', '__local__'), { minLength: 1, maxLength: 3 })),
      eventTimeMs: seldom(arbTime()),
      schemaVersion: seldom(fc.uint8Array({ minLength: 8, maxLength: 8 })),
      txn: seldom(fc.record({ mostBits: arbUint64(), leastBits: arbUint64() })),
      own: arbSingleFields(),
    })
    .map(({ key, own, ...fields }) => present<OuterFields>({ ...fields, ...key, ...own }));
}

/**
 * Whole entries, with what they were built from. Compression is drawn from 'none' and the codecs given; without any
 * the payloads are plain. Encrypted entries carry a payload that is no batch and no body any more.
 */
export function arbEntry(codecs: Codecs = {}, options: EntryOptions = {}): fc.Arbitrary<GeneratedEntry> {
  const { kinds = ['single', 'batch'], headers = HEADERS, stamps = STAMPS, maxMessages = 5 } = options;
  const message = options.message ?? arbMessageFields();
  const single = message.map(({ payload }): GeneratedContent => ({ kind: 'single', body: payload }));
  const batch = fc
    .array(message, { minLength: 1, maxLength: maxMessages })
    .map((messages): GeneratedContent => ({ kind: 'batch', messages }));
  const unknown = fc.array(fc.record({ at: fc.nat({ max: 24 }), field: arbUnknownField() }), { maxLength: 3 });
  return fc
    .record({
      content: fc.oneof(...kinds.map((kind) => (kind === 'single' ? single : batch))),
      header: fc.constantFrom(...headers),
      outer: options.outer ?? arbOuterFields(),
      compression: arbCodecNames(codecs),
      stampForm: fc.constantFrom(...stamps),
      encrypted: options.encrypted === false ? fc.constant(false) : seldom(fc.constant(true)).map((on) => on === true),
      unknown: options.unknownFields === false ? fc.constant([]) : unknown,
    })
    .map((plan) => build(plan, codecs));
}

/** A field with a number above 34, as its whole encoding: what a newer version of Pulsar might write. */
export function arbUnknownField(): fc.Arbitrary<Uint8Array> {
  const number = fc.oneof(fc.constantFrom(35, 100, 2047, 2 ** 29 - 1), fc.integer({ min: 35, max: 2 ** 29 - 1 }));
  const value = fc.oneof(
    arbUint64(),
    fc.uint8Array({ maxLength: 6 }),
    fc
      .constantFrom(4, 8)
      .chain((width) => fc.uint8Array({ minLength: width, maxLength: width }).map((fixed) => ({ fixed }))),
  );
  return fc.tuple(number, value).map(([field, content]) => rawField(field, content));
}

/** One field of a message in protobuf's encoding; `fixed` is 4 or 8 bytes as they go out. */
export function rawField(
  field: number,
  value: bigint | string | Uint8Array | { readonly fixed: Uint8Array },
): Uint8Array {
  if (typeof value === 'bigint') return concat(varint(BigInt(field) << 3n), varint(value));
  if (typeof value !== 'string' && 'fixed' in value) {
    return concat(varint((BigInt(field) << 3n) | (value.fixed.length === 4 ? 5n : 1n)), value.fixed);
  }
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
  return concat(varint((BigInt(field) << 3n) | 2n), varint(BigInt(bytes.length)), bytes);
}

/** A field as it lies in a message. */
export interface RawField {
  readonly field: number;
  /** The whole encoding, tag included. */
  readonly bytes: Uint8Array;
  /** A varint's number, or the bytes of any other field. */
  readonly value: bigint | Uint8Array;
}

/** The fields of a well-formed message in wire order. */
export function splitFields(message: Uint8Array): RawField[] {
  const fields: RawField[] = [];
  let at = 0;
  const number = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new RangeError(`the message is cut at byte ${at - 1}`);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
  };
  while (at < message.length) {
    const start = at;
    const tag = Number(number());
    let value: bigint | Uint8Array;
    if ((tag & 7) === 0) value = number();
    else {
      const length = (tag & 7) === 2 ? Number(number()) : (tag & 7) === 5 ? 4 : 8;
      value = message.subarray(at, at + length);
      at += length;
    }
    fields.push({ field: Math.floor(tag / 8), bytes: message.subarray(start, at), value });
  }
  return fields;
}

/** What `frameEntry` puts together. */
export interface EntryFrame {
  readonly metadata: Uint8Array;
  readonly payload: Uint8Array;
  /** True for the right one, a number for another; default none. */
  readonly checksum?: boolean | number;
  /** The bytes of a BrokerEntryMetadata; default none. */
  readonly broker?: Uint8Array;
}

/** The bytes of an entry from its pieces, which need not make sense. */
export function frameEntry({ metadata, payload, checksum = false, broker }: EntryFrame): Uint8Array {
  const covered = concat(uint32(metadata.length), metadata, payload);
  const crc = checksum === true ? crc32c(covered) : checksum;
  return concat(
    broker === undefined ? new Uint8Array(0) : concat(Uint8Array.of(0x0e, 0x02), uint32(broker.length), broker),
    crc === false ? new Uint8Array(0) : concat(Uint8Array.of(0x0e, 0x01), uint32(crc)),
    covered,
  );
}

interface Plan {
  readonly content: GeneratedContent;
  readonly header: Entry['header'];
  readonly outer: OuterFields;
  readonly compression: CompressionType;
  readonly stampForm: StampForm;
  readonly encrypted: boolean;
  readonly unknown: readonly { readonly at: number; readonly field: Uint8Array }[];
}

/** Fields that only a single message has. */
const SINGLE_ONLY = ['markerType', 'deliverAtMs', 'nullValue', 'chunk'] as const;
const KEY_FIELDS = ['partitionKey', 'partitionKeyB64', 'orderingKey', 'nullPartitionKey'] as const;

function build(plan: Plan, codecs: Codecs): GeneratedEntry {
  const { content, header, compression, stampForm, encrypted } = plan;
  const outer = outerOf(plan);
  const options = { outer, compression, codecs, stamp: false, checksum: false };
  const encoded =
    content.kind === 'single'
      ? encodeMessage(content.body, options)
      : encodeBatch(content.messages.map(batchMessage), options);
  const { metadataBytes, payload } = parseEntry(joinBuffers(encoded));
  const { min, max, stamp } = stampOf(stampForm, content, outer);
  const fields = splitFields(metadataBytes).map(({ bytes }) => bytes);
  if (min !== undefined) fields.push(rawField(Outer.stampMin, BigInt(min)));
  if (max !== undefined) fields.push(rawField(Outer.stampMax, BigInt(max)));
  for (const { at, field } of plan.unknown) fields.splice(Math.min(at, fields.length), 0, field);
  const bytes = frameEntry({
    metadata: concat(...fields),
    payload: encrypted ? payload.map((byte) => byte ^ 0x5a) : payload,
    checksum: header.endsWith('checksum'),
    ...(header.startsWith('broker') ? { broker: concat(rawField(1, 1700000005000n), rawField(2, 42n)) } : {}),
  });
  const unknownFields = plan.unknown.map(({ field }) => field);
  const entry = { bytes, header, outer, content, compression, encrypted, stampForm, stamp, unknownFields };
  // Not enumerable, so that comparing and copying an entry sees its fields alone.
  return Object.defineProperty(entry, fc.toStringMethod, { value: () => describe(entry) });
}

/** A batch carries its first message's keys and none of the fields that only singles have. */
function outerOf({ content, outer, encrypted }: Plan): OuterFields {
  const encryption = encrypted ? { encryptionKeys: [{ key: 'k', value: Uint8Array.of(1, 2) }] } : {};
  if (content.kind === 'single') return { ...outer, ...encryption };
  const first = content.messages[0] ?? {};
  const kept = Object.entries(outer).filter(
    ([name]) => ![...SINGLE_ONLY, ...KEY_FIELDS].some((other) => other === name),
  );
  const keys = Object.entries(first).filter(([name]) => KEY_FIELDS.some((other) => other === name));
  return { ...(Object.fromEntries([...kept, ...keys]) as unknown as OuterFields), ...encryption };
}

function stampOf(form: StampForm, content: GeneratedContent, outer: OuterFields) {
  const hashes = (content.kind === 'single' ? [outer] : content.messages).map((keys) => {
    const key = keys.orderingKey ?? keys.partitionKey;
    return key === undefined ? 0 : bucketHash(hashKey(key));
  });
  const right = { min: Math.min(...hashes), max: Math.max(...hashes) };
  const written: { min?: number; max?: number } = {
    none: {},
    right,
    full: { min: 0, max: 0xffff },
    'only-min': { min: right.min },
    'only-max': { max: right.max },
    inverted: { min: Math.max(right.max, 1), max: Math.max(right.max, 1) - 1 },
  }[form];
  const stamp: Stamp | undefined = form === 'right' ? right : form === 'full' ? { min: 0, max: 0xffff } : undefined;
  return { min: written.min, max: written.max, stamp };
}

function describe({ bytes, ...parts }: GeneratedEntry): string {
  const short = JSON.stringify(parts, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`;
    return value instanceof Uint8Array ? `0x${Buffer.from(value).toString('hex')}` : value;
  });
  return `entry(${short}, bytes 0x${Buffer.from(bytes).toString('hex')})`;
}

type KeyFields = Pick<MessageFields, (typeof KEY_FIELDS)[number]>;

/** No key, an empty one, text, base64 of bytes, or null; an ordering key beside it now and then, empty ones too. */
function arbKey(): fc.Arbitrary<KeyFields> {
  const text = fc.oneof(
    fc.constantFrom('', 'k1', 'order-42', 'key-30884'),
    fc.string({ unit: 'grapheme', maxLength: 6 }),
  );
  const key = fc.oneof(
    { withCrossShrink: true },
    fc.constant<KeyFields>({}),
    text.map((partitionKey): KeyFields => ({ partitionKey })),
    text.map((partitionKey): KeyFields => ({ partitionKey, partitionKeyB64: false })),
    fc.uint8Array({ maxLength: 5 }).map(
      (bytes): KeyFields => ({
        partitionKey: Buffer.from(bytes).toString('base64'),
        partitionKeyB64: true,
      }),
    ),
    fc.constant<KeyFields>({ nullPartitionKey: true }),
  );
  const ordering = seldom(fc.uint8Array({ maxLength: 4 }));
  return fc.tuple(key, ordering).map(([fields, orderingKey]) => present<KeyFields>({ ...fields, orderingKey }));
}

type SingleFields = Pick<OuterFields, (typeof SINGLE_ONLY)[number]>;

function arbSingleFields(): fc.Arbitrary<SingleFields> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 6, arbitrary: fc.constant<SingleFields>({}) },
    { weight: 1, arbitrary: fc.boolean().map((nullValue): SingleFields => ({ nullValue })) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: -5, max: 2 ** 45 }).map((deliverAtMs): SingleFields => ({ deliverAtMs })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(0, 10, 13, 21, 99, -1).map((markerType): SingleFields => ({ markerType })),
    },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 2, max: 4 }).chain((numChunks) =>
        fc.nat({ max: numChunks - 1 }).map((chunkId): SingleFields => {
          return { chunk: { uuid: 'p-7', chunkId, numChunks, totalSize: 24 * numChunks } };
        }),
      ),
    },
  );
}

/** Few names, so that they repeat. */
function arbProperty(): fc.Arbitrary<readonly [string, string]> {
  return fc.tuple(fc.constantFrom('a', 'b', 'größe', ''), fc.string({ unit: 'grapheme', maxLength: 4 }));
}

/** A position that an application copied along, well-formed or not. */
function arbStalePosition(): fc.Arbitrary<readonly [string, string]> {
  const value = fc.constantFrom('900:12', '9223372036854775807:9223372036854775807', '1:2:65535', 'abc', '', '-1:5');
  return value.map((position) => [SOURCE_POSITION_PROPERTY, position] as const);
}

function arbTime(): fc.Arbitrary<number> {
  return fc.oneof(
    { withCrossShrink: true },
    fc.constantFrom(0, 1, 1700000000000),
    fc.integer({ min: 0, max: 2 ** 45 }),
  );
}

function arbUint64(): fc.Arbitrary<bigint> {
  return fc.oneof(
    { withCrossShrink: true },
    fc.bigInt({ min: 0n, max: 9n }),
    fc.constantFrom(LAST_UINT64, 2n ** 53n + 1n, 2n ** 63n),
    fc.bigInt({ min: 0n, max: LAST_UINT64 }),
  );
}

/** Absent five times in six; shrinks to absent. */
function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 5, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary },
  );
}

/** The fields that are not undefined. */
function present<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Uint8Array.of(...bytes, Number(rest));
}

function uint32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
}

function concat(...pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
