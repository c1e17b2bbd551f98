// src/errors.ts
var IsthmusError = class extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.code = code;
  }
  code;
  name = "IsthmusError";
};
function show(value) {
  let text;
  try {
    text = JSON.stringify(value, (_, v) => typeof v === "bigint" ? `${v}n` : v);
  } catch {
    text = void 0;
  }
  text ??= String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

// src/ring/range.ts
var RING_END = 65535;
var FULL_RANGE = Object.freeze({ start: 0, end: RING_END });
function covers(outer2, inner) {
  return outer2.start <= inner.start && inner.end <= outer2.end;
}
function contains(range, hash) {
  return range.start <= hash && hash <= range.end;
}

// src/ring/buckets.ts
function equalWidthSplits(buckets) {
  if (!Number.isInteger(buckets) || buckets < 1 || buckets > RING_END + 1) {
    throw new IsthmusError(
      "invalidArgument",
      `bucket count ${show(buckets)}: a segment has an integer of 1..65536 buckets`
    );
  }
  return Array.from({ length: buckets - 1 }, (_, i) => Math.floor((i + 1) * (RING_END + 1) / buckets));
}
function bucketIndex(splits, hashB) {
  let low = 0;
  let high = splits.length;
  while (low < high) {
    const middle = low + high >>> 1;
    if (splits[middle] <= hashB) low = middle + 1;
    else high = middle;
  }
  return low;
}
function parseBoundaries(value, where) {
  if (!Array.isArray(value)) {
    throw new IsthmusError("invalidShape", `${where} is ${show(value)}: boundaries are an array of integers`);
  }
  let last = 0;
  for (const boundary of value) {
    if (!Number.isInteger(boundary) || boundary <= last || boundary > RING_END) {
      throw new IsthmusError(
        "invalidShape",
        `${where} holds ${show(boundary)} after ${last}: boundaries are strictly ascending integers in 1..0xFFFF`
      );
    }
    last = boundary;
  }
  return value;
}

// src/ring/hash.ts
var C1 = 3432918353;
var C2 = 461845907;
var encoder = new TextEncoder();
var LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;
function hashBytes(bytes, start, end) {
  let h = 0;
  let at = start;
  for (const blocksEnd = end - (end - start & 3); at < blocksEnd; at += 4) {
    let k = bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24;
    k = Math.imul(k, C1);
    k = k << 15 | k >>> 17;
    h ^= Math.imul(k, C2);
    h = h << 13 | h >>> 19;
    h = Math.imul(h, 5) + 3864292196 | 0;
  }
  if (at < end) {
    let k = 0;
    for (let i = end - 1; i >= at; i--) k = k << 8 | bytes[i];
    k = Math.imul(k, C1);
    k = k << 15 | k >>> 17;
    h ^= Math.imul(k, C2);
  }
  h ^= end - start;
  h ^= h >>> 16;
  h = Math.imul(h, 2246822507);
  h ^= h >>> 13;
  h = Math.imul(h, 3266489909);
  h ^= h >>> 16;
  return h >>> 0;
}
function hashKey(key) {
  if (typeof key !== "string") return hashBytes(key, 0, key.length);
  const bytes = encoder.encode(key.replace(LONE_SURROGATE, "?"));
  return hashBytes(bytes, 0, bytes.length);
}
function bucketHash(hash) {
  return hash & 65535;
}
function classicPartition(hash, partitions) {
  return (hash & 2147483647) % partitions;
}

// src/entry/codecs.ts
var DEFAULT_MAX_UNCOMPRESSED_BYTES = 64 * 1024 * 1024;
var PACKAGES = { lz4: "lz4-napi", zlib: "node:zlib", zstd: "@foxglove/wasm-zstd or zstd-napi", snappy: "snappy" };
function codecFor(compression, codecs) {
  if (typeof compression === "number") {
    throw new IsthmusError("codecUnavailable", `compression type ${compression} is unknown: Pulsar 5.0.1 has 0..4`);
  }
  const codec = codecs[compression];
  if (codec === void 0) {
    throw new IsthmusError("codecUnavailable", `no codec for ${compression}: install ${PACKAGES[compression]}`);
  }
  return codec;
}

// src/entry/crc32c.ts
import { crc32c as nativeCrc32c } from "@node-rs/crc32";
var POLYNOMIAL = 2197175160;
var NATIVE_FROM = 192;
var SLICES = buildSlices();
function buildSlices() {
  const slices = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >>> 1 ^ POLYNOMIAL : crc >>> 1;
    slices[byte] = crc;
  }
  for (let i = 256; i < slices.length; i++) {
    const previous = slices[i - 256];
    slices[i] = slices[previous & 255] ^ previous >>> 8;
  }
  return slices;
}
function crc32c(bytes, start = 0, end = bytes.length, previous = 0) {
  if (end - start >= NATIVE_FROM) return nativeCrc32c(view(bytes, start, end), previous) >>> 0;
  const t2 = SLICES;
  let crc = ~previous;
  let at = start;
  for (const stop = end - (end - start & 7); at < stop; at += 8) {
    const low = crc ^ (bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24);
    crc = t2[1792 + (low & 255)] ^ t2[1536 + (low >>> 8 & 255)] ^ t2[1280 + (low >>> 16 & 255)] ^ t2[1024 + (low >>> 24)] ^ t2[768 + bytes[at + 4]] ^ t2[512 + bytes[at + 5]] ^ t2[256 + bytes[at + 6]] ^ t2[bytes[at + 7]];
  }
  for (; at < end; at++) crc = t2[(crc ^ bytes[at]) & 255] ^ crc >>> 8;
  return ~crc >>> 0;
}
function copyWithCrc(target, to, source, start, end) {
  const length = end - start;
  if (length >= NATIVE_FROM) {
    const run = view(source, start, end);
    target.set(run, to);
    return nativeCrc32c(run, 0) >>> 0;
  }
  const t2 = SLICES;
  let crc = -1;
  let at = start;
  let out = to;
  for (const stop = end - (length & 7); at < stop; at += 8, out += 8) {
    const b0 = source[at];
    const b1 = source[at + 1];
    const b2 = source[at + 2];
    const b3 = source[at + 3];
    const b4 = source[at + 4];
    const b5 = source[at + 5];
    const b6 = source[at + 6];
    const b7 = source[at + 7];
    target[out] = b0;
    target[out + 1] = b1;
    target[out + 2] = b2;
    target[out + 3] = b3;
    target[out + 4] = b4;
    target[out + 5] = b5;
    target[out + 6] = b6;
    target[out + 7] = b7;
    const low = crc ^ (b0 | b1 << 8 | b2 << 16 | b3 << 24);
    crc = t2[1792 + (low & 255)] ^ t2[1536 + (low >>> 8 & 255)] ^ t2[1280 + (low >>> 16 & 255)] ^ t2[1024 + (low >>> 24)] ^ t2[768 + b4] ^ t2[512 + b5] ^ t2[256 + b6] ^ t2[b7];
  }
  for (; at < end; at++, out++) {
    const byte = source[at];
    target[out] = byte;
    crc = t2[(crc ^ byte) & 255] ^ crc >>> 8;
  }
  return ~crc >>> 0;
}
function view(bytes, start, end) {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
}
function multiply(a, b) {
  let product = 0;
  let factor = b;
  for (let mask = 2147483648; mask !== 0; mask >>>= 1) {
    if (a & mask) product ^= factor;
    factor = factor & 1 ? factor >>> 1 ^ POLYNOMIAL : factor >>> 1;
  }
  return product;
}
var OPERATORS = [];
var POWERS = [8388608];
function operator(place, digit) {
  const index = place * 64 + digit;
  const known = OPERATORS[index];
  if (known !== void 0) return known;
  for (let p = POWERS.length; p <= place; p++) {
    let power = POWERS[p - 1];
    for (let square = 0; square < 6; square++) power = multiply(power, power);
    POWERS.push(power);
  }
  let factor = 2147483648;
  for (let i = 0; i < digit; i++) factor = multiply(factor, POWERS[place]);
  const built = new Int32Array(4 * 256);
  for (let bit = 0; bit < 32; bit++) {
    const image = multiply(factor, 1 << bit);
    const table = (bit >>> 3) * 256;
    const step = 1 << (bit & 7);
    for (let i = 0; i < step; i++) built[table + step + i] = built[table + i] ^ image;
  }
  OPERATORS[index] = built;
  return built;
}
function shiftCrc(difference, length) {
  let crc = difference;
  let rest = length;
  for (let place = 0; rest > 0; place++) {
    const digit = rest % 64;
    if (digit !== 0) {
      const t2 = operator(place, digit);
      crc = t2[crc & 255] ^ t2[256 + (crc >>> 8 & 255)] ^ t2[512 + (crc >>> 16 & 255)] ^ t2[768 + (crc >>> 24)];
    }
    rest = (rest - digit) / 64;
  }
  return crc >>> 0;
}

// src/entry/fields.ts
var Outer = {
  producerName: 1,
  sequenceId: 2,
  publishTime: 3,
  properties: 4,
  replicatedFrom: 5,
  partitionKey: 6,
  replicateTo: 7,
  compression: 8,
  uncompressedSize: 9,
  numMessagesInBatch: 11,
  eventTime: 12,
  encryptionKeys: 13,
  encryptionAlgo: 14,
  encryptionParam: 15,
  schemaVersion: 16,
  partitionKeyB64: 17,
  orderingKey: 18,
  deliverAtTime: 19,
  markerType: 20,
  txnLeastBits: 22,
  txnMostBits: 23,
  highestSequenceId: 24,
  nullValue: 25,
  uuid: 26,
  numChunks: 27,
  totalChunkSize: 28,
  chunkId: 29,
  nullPartitionKey: 30,
  compactedIndexes: 31,
  schemaId: 32,
  stampMin: 33,
  stampMax: 34
};
var KeyValue = { key: 1, value: 2 };
var Broker = { timestamp: 1, index: 2 };
var SOURCE_POSITION_PROPERTY = "__MSG_PROP_REPL_SOURCE_POSITION";

// src/entry/wire.ts
var VARINT = 0;
var FIXED64 = 1;
var BYTES = 2;
var FIXED32 = 5;
var WireReader = class {
  constructor(bytes, at, end, code, what) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
    this.code = code;
    this.what = what;
  }
  bytes;
  at;
  end;
  code;
  what;
  field = 0;
  wireType = 0;
  tagStart = 0;
  /** For BYTES: behind the length; for the others: at the value. */
  valueStart = 0;
  valueEnd = 0;
  /** The low and high 32 bits of the last varint value. */
  low = 0;
  high = 0;
  /** Moves to the next field; false at the end of the message. Numbers of one byte, the most by far, take a short way. */
  next() {
    const { bytes, end } = this;
    if (this.at >= end) return false;
    this.tagStart = this.at;
    let tag = bytes[this.at];
    if (tag < 128) this.at++;
    else {
      this.varint();
      tag = this.low;
      if (this.high !== 0) tag = 0;
    }
    const field = tag >>> 3;
    if (field === 0) this.refuse("holds a field number outside 1..2^29-1");
    const wireType = tag & 7;
    this.field = field;
    this.wireType = wireType;
    this.valueStart = this.at;
    if (wireType === VARINT || wireType === BYTES) {
      const byte = this.at < end ? bytes[this.at] : 128;
      if (byte < 128) {
        this.at++;
        this.low = byte;
        this.high = 0;
      } else {
        this.varint();
      }
      if (wireType === BYTES) {
        this.valueStart = this.at;
        if (this.high !== 0 || this.low >>> 0 > end - this.at) this.refuse("holds a length beyond its end");
        this.at += this.low >>> 0;
      }
    } else {
      if (wireType === FIXED64) this.at += 8;
      else if (wireType === FIXED32) this.at += 4;
      else this.refuse(`holds wire type ${wireType}, which no field here has`);
      if (this.at > end) this.refuse("is cut");
    }
    this.valueEnd = this.at;
    return true;
  }
  /** Refuses the field just read unless it has this wire type. */
  expect(wireType) {
    if (this.wireType !== wireType) {
      this.refuse(`holds field ${this.field} with wire type ${this.wireType} instead of ${wireType}`);
    }
  }
  refuse(rule) {
    throw new IsthmusError(this.code, `${this.what} ${rule} (at byte ${this.tagStart})`);
  }
  varint() {
    const bytes = this.bytes;
    let at = this.at;
    const end = this.end;
    let byte = at < end ? bytes[at++] : this.refuse("is cut inside a number");
    let low = byte & 127;
    let high = 0;
    if (byte > 127) {
      let shift = 7;
      do {
        byte = at < end ? bytes[at++] : this.refuse("is cut inside a number");
        const bits = byte & 127;
        if (shift < 28) low |= bits << shift;
        else if (shift === 28) {
          low |= bits << 28;
          high = bits >>> 4;
        } else if (shift < 64) high |= bits << shift - 32;
        else this.refuse("holds a number of more than ten bytes");
        shift += 7;
      } while (byte > 127);
    }
    this.low = low;
    this.high = high;
    this.at = at;
  }
};
function viewOf(bytes, start, end) {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}
var decoder = new TextDecoder("utf-8", { ignoreBOM: true });
function decodeText(bytes, start, end) {
  return decoder.decode(bytes.subarray(start, end));
}
function toUint64(high, low) {
  return high === 0 ? BigInt(low >>> 0) : BigInt(high >>> 0) << 32n | BigInt(low >>> 0);
}
function uint64At(bytes, start) {
  let low = 0;
  let high = 0;
  let shift = 0;
  for (let at = start; ; at++) {
    const byte = bytes[at];
    const bits = byte & 127;
    if (shift < 28) low |= bits << shift;
    else if (shift === 28) {
      low |= bits << 28;
      high = bits >>> 4;
    } else high |= bits << shift - 32;
    if (byte < 128) return toUint64(high, low);
    shift += 7;
  }
}
function varintLength(value) {
  if (value < 128) return 1;
  if (value < 16384) return 2;
  if (value < 2097152) return 3;
  return value < 268435456 ? 4 : 5;
}
function writeVarint(target, at, value) {
  let rest = value;
  let to = at;
  while (rest > 127) {
    target[to++] = rest & 127 | 128;
    rest >>>= 7;
  }
  target[to++] = rest;
  return to;
}
function writeUint32(target, at, value) {
  target[at] = value >>> 24;
  target[at + 1] = value >>> 16 & 255;
  target[at + 2] = value >>> 8 & 255;
  target[at + 3] = value & 255;
  return at + 4;
}
function readUint32(bytes, at) {
  return (bytes[at] << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3]) >>> 0;
}
function copyBytes(target, at, source, start, end) {
  if (end - start > 24) target.set(viewOf(source, start, end), at);
  else for (let from = start, to = at; from < end; from++, to++) target[to] = source[from];
  return at + end - start;
}
var WireWriter = class {
  bytes = Buffer.allocUnsafe(256);
  length = 0;
  reserve(more) {
    if (this.length + more <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + more));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }
  /** A field with an unsigned number of up to 64 bits; a negative one is written as its two's complement. */
  uint64(field, value) {
    this.reserve(20);
    this.length = writeVarint(this.bytes, this.length, field << 3 | VARINT);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 0x7fn) {
      this.bytes[this.length++] = Number(rest & 0x7fn) | 128;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }
  /** A field with an unsigned 32-bit number. */
  uint32(field, value) {
    this.reserve(10);
    this.length = writeVarint(this.bytes, this.length, field << 3 | VARINT);
    this.length = writeVarint(this.bytes, this.length, value);
  }
  bytesField(field, value) {
    this.reserve(10 + value.length);
    this.length = writeVarint(this.bytes, this.length, (field << 3 | BYTES) >>> 0);
    this.length = writeVarint(this.bytes, this.length, value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }
  text(field, value) {
    this.bytesField(field, Buffer.from(value, "utf8"));
  }
  /** A field with a 64-bit number given as halves, of which only the bits count. */
  uint64Halves(field, high, low) {
    if (high === 0) this.uint32(field, low >>> 0);
    else this.uint64(field, toUint64(high, low));
  }
  /** Bytes that are whole fields already. */
  raw(source) {
    this.copy(source, 0, source.length);
  }
  /** `source[start..end)`, whole fields already. */
  copy(source, start, end) {
    this.reserve(end - start);
    this.length = copyBytes(this.bytes, this.length, source, start, end);
  }
  /** The field under a reader over `source`, under another number. */
  retagged(field, reader, source) {
    this.reserve(20);
    this.length = writeVarint(this.bytes, this.length, (field << 3 | reader.wireType) >>> 0);
    if (reader.wireType === BYTES) {
      this.length = writeVarint(this.bytes, this.length, reader.valueEnd - reader.valueStart);
    }
    this.copy(source, reader.valueStart, reader.valueEnd);
  }
  /** Begins anew in the same memory. */
  clear() {
    this.length = 0;
  }
  /** What has been written: a view that the next write may invalidate. */
  written() {
    return this.bytes.subarray(0, this.length);
  }
};

// src/entry/keyvalue.ts
var POSITION_KEY = new TextEncoder().encode(SOURCE_POSITION_PROPERTY);
function locate(bytes, start, end, code) {
  const reader = new WireReader(bytes, start, end, code, "a property");
  let keyStart = -1;
  let keyEnd = -1;
  let valueStart = -1;
  let valueEnd = -1;
  while (reader.next()) {
    if (reader.field === KeyValue.key) {
      reader.expect(BYTES);
      keyStart = reader.valueStart;
      keyEnd = reader.valueEnd;
    } else if (reader.field === KeyValue.value) {
      reader.expect(BYTES);
      valueStart = reader.valueStart;
      valueEnd = reader.valueEnd;
    }
  }
  if (keyStart < 0 || valueStart < 0) reader.refuse("has no key or no value, which are required");
  return [keyStart, keyEnd, valueStart, valueEnd];
}
function readKeyValue(bytes, start, end, code) {
  const [keyStart, keyEnd, valueStart, valueEnd] = locate(bytes, start, end, code);
  return [decodeText(bytes, keyStart, keyEnd), decodeText(bytes, valueStart, valueEnd)];
}
function isPositionProperty(bytes, start, end) {
  const [keyStart, keyEnd] = locate(bytes, start, end, "malformedEntry");
  if (keyEnd - keyStart !== POSITION_KEY.length) return false;
  for (let i = 0; i < POSITION_KEY.length; i++) if (bytes[keyStart + i] !== POSITION_KEY[i]) return false;
  return true;
}

// src/entry/metadata.ts
var COMPRESSIONS = ["none", "lz4", "zlib", "zstd", "snappy"];
function compressionCode(compression) {
  return typeof compression === "number" ? compression : COMPRESSIONS.indexOf(compression);
}
var NONE = Object.freeze([]);
var HAS_REPLICATED_FROM = 1;
var HAS_POSITION = 2;
var HAS_SCHEMA_VERSION = 4;
var HAS_TRANSACTION = 8;
var WIRE_TYPES = new Uint8Array(Outer.stampMax + 1).fill(255);
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
  Outer.schemaId
]) {
  WIRE_TYPES[field] = BYTES;
}
var REQUIRED = 1 << Outer.producerName | 1 << Outer.sequenceId | 1 << Outer.publishTime;
var EntryMetadata = class {
  /** Scans `bytes[start..end)`. Throws `malformedEntry`. @internal */
  constructor(bytes, start, end) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
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
      const expected = WIRE_TYPES[field];
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
      reader.refuse("lacks one of producer_name, sequence_id and publish_time, which are required");
    }
    this.owned = owned;
    this.present = present;
    this.keyStart = keyStart;
    this.keyEnd = keyEnd;
    this.batchCount = batchCount;
    this.stampMin = stampMin;
    this.stampMax = stampMax;
  }
  bytes;
  start;
  end;
  /** Bit set of `HAS_*`. @internal */
  owned;
  /** Bit n is set when field n is present; fields 32 and above are not in it. */
  present;
  keyStart;
  keyEnd;
  batchCount;
  stampMin;
  stampMax;
  /** A fresh walk over the fields, for those that look at every occurrence. @internal */
  fields() {
    return new WireReader(this.bytes, this.start, this.end, "malformedEntry", "the metadata");
  }
  /** A reader at the last occurrence of a field, which is the one that counts; undefined where it is absent. */
  last(field) {
    if (field < 32 && (this.present & 1 << field) === 0) return void 0;
    const walk = this.fields();
    let found;
    while (walk.next()) {
      if (walk.field === field) found = Object.assign(this.fields(), walk);
    }
    return found;
  }
  text(field) {
    const at = this.last(field);
    return at === void 0 ? void 0 : decodeText(this.bytes, at.valueStart, at.valueEnd);
  }
  view(field) {
    const at = this.last(field);
    return at === void 0 ? void 0 : viewOf(this.bytes, at.valueStart, at.valueEnd);
  }
  uint64(field) {
    const at = this.last(field);
    return at === void 0 ? void 0 : toUint64(at.high, at.low);
  }
  flag(field) {
    const at = this.last(field);
    return at === void 0 ? void 0 : at.low !== 0 || at.high !== 0;
  }
  /** All occurrences of a repeated field, in wire order. */
  all(field, read) {
    if ((this.present & 1 << field) === 0) return NONE;
    const values = [];
    const reader = this.fields();
    while (reader.next()) if (reader.field === field) values.push(read(reader.valueStart, reader.valueEnd));
    return values;
  }
  /** The producer that first published the message; kept by every replicator. */
  get producerName() {
    return this.text(Outer.producerName) ?? "";
  }
  get sequenceId() {
    return this.uint64(Outer.sequenceId) ?? 0n;
  }
  get publishTimeMs() {
    return Number(this.uint64(Outer.publishTime));
  }
  /** Name and value pairs in wire order; a name may repeat. */
  get properties() {
    return this.all(Outer.properties, (start, end) => readKeyValue(this.bytes, start, end, "malformedEntry"));
  }
  /** The cluster that a replicator copied this entry from; present means it is never copied on (loop prevention). */
  get replicatedFrom() {
    return this.text(Outer.replicatedFrom);
  }
  /** The value of the source-position property, as text; the last one if there are several. */
  get sourcePosition() {
    if ((this.owned & HAS_POSITION) === 0) return void 0;
    return this.properties.findLast(([name]) => name === SOURCE_POSITION_PROPERTY)?.[1];
  }
  /** The key's wire text: base64 when `partitionKeyB64` is true. */
  get partitionKey() {
    return this.keyStart < 0 ? void 0 : decodeText(this.bytes, this.keyStart, this.keyEnd);
  }
  /** The bytes of the key's wire text: what is hashed (E9). */
  get partitionKeyBytes() {
    return this.keyStart < 0 ? void 0 : viewOf(this.bytes, this.keyStart, this.keyEnd);
  }
  /** The raw hash of the partition key (E9), or -1 without one; hashed in place. */
  get keyHash() {
    return this.keyStart < 0 ? -1 : hashBytes(this.bytes, this.keyStart, this.keyEnd);
  }
  get partitionKeyB64() {
    return this.flag(Outer.partitionKeyB64);
  }
  get nullPartitionKey() {
    return this.flag(Outer.nullPartitionKey);
  }
  get orderingKey() {
    return this.view(Outer.orderingKey);
  }
  /** The only clusters that may receive the entry; empty means all. */
  get replicateTo() {
    return this.all(Outer.replicateTo, (start, end) => decodeText(this.bytes, start, end));
  }
  get compression() {
    const code = this.last(Outer.compression)?.low ?? 0;
    return COMPRESSIONS[code] ?? code;
  }
  /** Bytes of the payload before compression, as declared. */
  get uncompressedSize() {
    const size = this.last(Outer.uncompressedSize)?.low;
    return size === void 0 ? void 0 : size >>> 0;
  }
  /** Present, whatever its value, means that the payload is a batch (E5). */
  get numMessagesInBatch() {
    return (this.present & 1 << Outer.numMessagesInBatch) === 0 ? void 0 : this.batchCount;
  }
  /** The bucket hashes in the entry; a stamp with one bound, with min > max or beyond 16 bits counts as absent (E2). */
  get stamp() {
    if (this.stampMin < 0 || this.stampMin > this.stampMax || this.stampMax > 65535) return void 0;
    return { min: this.stampMin, max: this.stampMax };
  }
  get encrypted() {
    return (this.present & 1 << Outer.encryptionKeys) !== 0;
  }
  get encryptionKeys() {
    return this.all(Outer.encryptionKeys, (start, end) => readEncryptionKey(this.bytes, start, end));
  }
  get encryptionAlgo() {
    return this.text(Outer.encryptionAlgo);
  }
  get encryptionParam() {
    return this.view(Outer.encryptionParam);
  }
  /** Present means a marker, not user data. */
  get markerType() {
    return this.last(Outer.markerType)?.low;
  }
  /** The transaction the message belongs to; absent unless both halves are present. */
  get txn() {
    const mostBits = this.uint64(Outer.txnMostBits);
    const leastBits = this.uint64(Outer.txnLeastBits);
    return mostBits === void 0 || leastBits === void 0 ? void 0 : { mostBits, leastBits };
  }
  /** Present on each piece of a message that was cut into several entries. */
  get chunk() {
    const numChunks = this.last(Outer.numChunks)?.low ?? 0;
    const chunkId = this.last(Outer.chunkId)?.low ?? -1;
    const uuid = numChunks > 1 && chunkId >= 0 ? this.uuid : void 0;
    return uuid === void 0 ? void 0 : { uuid, chunkId, numChunks, totalSize: this.last(Outer.totalChunkSize)?.low ?? 0 };
  }
  get uuid() {
    return this.text(Outer.uuid);
  }
  get highestSequenceId() {
    return this.uint64(Outer.highestSequenceId);
  }
  /** Opaque and local to a cluster: translated before an entry is written to another. */
  get schemaVersion() {
    return this.view(Outer.schemaVersion);
  }
  get schemaId() {
    return this.view(Outer.schemaId);
  }
  get eventTimeMs() {
    const time = this.uint64(Outer.eventTime);
    return time === void 0 ? void 0 : Number(time);
  }
  /** Signed. */
  get deliverAtMs() {
    const time = this.uint64(Outer.deliverAtTime);
    return time === void 0 ? void 0 : Number(BigInt.asIntN(64, time));
  }
  get nullValue() {
    return this.flag(Outer.nullValue);
  }
  /** The records of a batch that compaction kept, by index; empty on all others. */
  get compactedBatchIndexes() {
    if ((this.present & 1 << Outer.compactedIndexes) === 0) return NONE;
    const indexes = [];
    const reader = this.fields();
    while (reader.next()) {
      if (reader.field !== Outer.compactedIndexes) continue;
      if (reader.wireType === VARINT) indexes.push(reader.low);
      else indexes.push(...packedNumbers(this.bytes, reader.valueStart, reader.valueEnd));
    }
    return indexes;
  }
};
function checkPacked(reader, bytes) {
  if (reader.field !== Outer.compactedIndexes || reader.wireType !== BYTES) {
    reader.expect(WIRE_TYPES[reader.field]);
  }
  packedNumbers(bytes, reader.valueStart, reader.valueEnd);
}
function packedNumbers(bytes, start, end) {
  const numbers = [];
  let value = 0;
  let shift = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (shift < 32) value |= (byte & 127) << shift;
    shift += 7;
    if (byte < 128) {
      numbers.push(value);
      value = 0;
      shift = 0;
    } else if (shift >= 70) {
      throw new IsthmusError("malformedEntry", "a packed field of the metadata holds a number of more than ten bytes");
    }
  }
  if (shift !== 0) throw new IsthmusError("malformedEntry", "a packed field of the metadata is cut inside a number");
  return numbers;
}
function readEncryptionKey(bytes, start, end) {
  const reader = new WireReader(bytes, start, end, "malformedEntry", "an encryption key");
  let key;
  let value;
  const metadata = [];
  while (reader.next()) {
    if (reader.field < 1 || reader.field > 3) continue;
    reader.expect(BYTES);
    if (reader.field === 1) key = decodeText(bytes, reader.valueStart, reader.valueEnd);
    else if (reader.field === 2) value = bytes.subarray(reader.valueStart, reader.valueEnd);
    else metadata.push(readKeyValue(bytes, reader.valueStart, reader.valueEnd, "malformedEntry"));
  }
  if (key === void 0 || value === void 0) {
    return reader.refuse("has no key or no value, which are required");
  }
  return { key, value, metadata };
}

// src/entry/entry.ts
var BROKER_MAGIC = 3586;
var CHECKSUM_MAGIC = 3585;
var Entry = class {
  /** Where the metadata lies in `bytes`; its size field is the four bytes before. @internal */
  constructor(bytes, header, checksum, metadataStart, metadataEnd, brokerStart, brokerEnd, metadata) {
    this.bytes = bytes;
    this.header = header;
    this.checksum = checksum;
    this.metadataStart = metadataStart;
    this.metadataEnd = metadataEnd;
    this.brokerStart = brokerStart;
    this.brokerEnd = brokerEnd;
    this.metadata = metadata;
  }
  bytes;
  header;
  checksum;
  metadataStart;
  metadataEnd;
  brokerStart;
  brokerEnd;
  metadata;
  /** The metadata proper, a view. */
  get metadataBytes() {
    return viewOf(this.bytes, this.metadataStart, this.metadataEnd);
  }
  /** All that follows the metadata, a view; never copied. */
  get payload() {
    return viewOf(this.bytes, this.metadataEnd, this.bytes.length);
  }
  /** Bytes of the payload. */
  get payloadLength() {
    return this.bytes.length - this.metadataEnd;
  }
  /** The broker header's fields; absent on an entry without one. */
  get broker() {
    return this.brokerStart < 0 ? void 0 : readBrokerEntry(this.bytes, this.brokerStart, this.brokerEnd);
  }
};
function parseEntry(bytes) {
  let at = 0;
  let brokerStart = -1;
  let brokerEnd = -1;
  if (magicAt(bytes, at) === BROKER_MAGIC) {
    brokerStart = at + 6;
    brokerEnd = brokerStart + sizeAt(bytes, at + 2, "the broker header");
    readBrokerEntry(bytes, brokerStart, brokerEnd);
    at = brokerEnd;
  }
  let checksum;
  if (magicAt(bytes, at) === CHECKSUM_MAGIC) {
    if (at + 6 > bytes.length) cut("the checksum", at + 6, bytes.length);
    checksum = readUint32(bytes, at + 2);
    at += 6;
  }
  const metadataStart = at + 4;
  const metadataEnd = metadataStart + sizeAt(bytes, at, "the metadata");
  const metadata = new EntryMetadata(bytes, metadataStart, metadataEnd);
  const broker = brokerStart >= 0;
  const header = checksum === void 0 ? broker ? "broker" : "none" : broker ? "broker+checksum" : "checksum";
  return new Entry(bytes, header, checksum, metadataStart, metadataEnd, brokerStart, brokerEnd, metadata);
}
function magicAt(bytes, at) {
  return at + 2 > bytes.length ? -1 : bytes[at] << 8 | bytes[at + 1];
}
function sizeAt(bytes, at, what) {
  if (at + 4 > bytes.length) cut(`the size of ${what}`, at + 4, bytes.length);
  const size = readUint32(bytes, at);
  if (size > bytes.length - at - 4) cut(`${what}, of ${size} bytes,`, at + 4 + size, bytes.length);
  return size;
}
function cut(what, end, length) {
  throw new IsthmusError("malformedEntry", `${what} ends at byte ${end}, but the entry has ${length} bytes`);
}
function readBrokerEntry(bytes, start, end) {
  const reader = new WireReader(bytes, start, end, "malformedEntry", "the broker header");
  const fields = {};
  while (reader.next()) {
    if (reader.field !== Broker.timestamp && reader.field !== Broker.index) continue;
    reader.expect(VARINT);
    const value = uint64At(bytes, reader.valueStart);
    if (reader.field === Broker.timestamp) fields.timestampMs = Number(value);
    else fields.index = value;
  }
  return fields;
}

// src/entry/position.ts
var LAST_ID = (1n << 63n) - 1n;
var FORM = /^(\d{1,19}):(\d{1,19})(?::(\d{1,5}))?$/;
function formatSourcePosition(position) {
  const { ledgerId, entryId, part } = position;
  checkPosition(position, position);
  return part === void 0 ? `${ledgerId}:${entryId}` : `${ledgerId}:${entryId}:${part}`;
}
function parseSourcePosition(text) {
  const match = FORM.exec(text);
  if (match === null) {
    throw new IsthmusError(
      "invalidPosition",
      `source position ${show(text)}: two or three decimal numbers with colons`
    );
  }
  const [, ledger, entry2, part] = match;
  const position = {
    ledgerId: BigInt(ledger),
    entryId: BigInt(entry2),
    ...part === void 0 ? {} : { part: Number(part) }
  };
  checkPosition(position, text);
  return position;
}
function writePosition(target, position) {
  if (typeof position !== "string") {
    const ledgerId = Number(position.ledgerId);
    const entryId = Number(position.entryId);
    if (isSmallId(position.ledgerId, ledgerId) && isSmallId(position.entryId, entryId) && position.part === void 0) {
      const at = writeDecimal(target, 0, ledgerId);
      target[at] = COLON;
      return writeDecimal(target, at + 1, entryId);
    }
  } else parseSourcePosition(position);
  const text = typeof position === "string" ? position : formatSourcePosition(position);
  for (let i = 0; i < text.length; i++) target[i] = text.charCodeAt(i);
  return text.length;
}
var COLON = 58;
function isSmallId(id, value) {
  return typeof id === "bigint" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
function writeDecimal(target, at, value) {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  let rest = value;
  for (let to = at + digits - 1; to >= at; to--) {
    const tenth = Math.floor(rest / 10);
    target[to] = 48 + (rest - tenth * 10);
    rest = tenth;
  }
  return at + digits;
}
function checkPosition({ ledgerId, entryId, part }, shown) {
  if (typeof ledgerId !== "bigint" || typeof entryId !== "bigint") {
    throw new IsthmusError("invalidPosition", `source position ${show(shown)}: ledger and entry ids are bigint`);
  }
  if (ledgerId < 0n || ledgerId > LAST_ID || entryId < 0n || entryId > LAST_ID) {
    throw new IsthmusError("invalidPosition", `source position ${show(shown)}: ids are 0..2^63-1`);
  }
  if (part !== void 0 && !(Number.isInteger(part) && part >= 0 && part <= 65535)) {
    throw new IsthmusError("invalidPosition", `source position ${show(shown)}: a part is an integer of 0..0xFFFF`);
  }
}

// src/entry/restamp.ts
var CHECKSUM_BLOCK = 6;
function restamp(entry2, options) {
  const stampLength = prepareStamp(options);
  const remove = fieldsToRemove(entry2.metadata, options);
  const head = remove === 0 ? appendStamp(entry2, stampLength, options) : replaceFields(entry2, remove, stampLength, options);
  return { head, payload: entry2.payload };
}
function appendStamp(entry2, stampLength, options) {
  const { bytes, metadataStart, metadataEnd, checksum } = entry2;
  const length = metadataEnd - metadataStart;
  const size = length + stampLength;
  const prefix = checksum === void 0 ? 0 : CHECKSUM_BLOCK;
  const head = Buffer.allocUnsafe(prefix + 4 + size);
  const before = copyWithCrc(head, prefix, bytes, metadataStart - 4, metadataEnd);
  writeUint32(head, prefix, size);
  const stampStart = prefix + 4 + length;
  writeStamp(head, stampStart, options);
  if (checksum !== void 0) {
    const after = crc32c(head, stampStart, stampStart + stampLength, resizedCrc(before, length, size));
    writeChecksum(head, (checksum ^ shiftCrc(before ^ after, entry2.payloadLength)) >>> 0);
  }
  return head;
}
function replaceFields(entry2, remove, stampLength, options) {
  const { bytes, metadataStart, metadataEnd, checksum } = entry2;
  const kept = keptFields(entry2, remove);
  const size = kept.length + stampLength;
  const prefix = checksum === void 0 ? 0 : CHECKSUM_BLOCK;
  const head = Buffer.allocUnsafe(prefix + 4 + size);
  const at = writeUint32(head, prefix, size);
  head.set(kept, at);
  writeStamp(head, at + kept.length, options);
  if (checksum !== void 0) {
    const difference = crc32c(bytes, metadataStart - 4, metadataEnd) ^ crc32c(head, prefix, head.length);
    writeChecksum(head, (checksum ^ shiftCrc(difference, entry2.payloadLength)) >>> 0);
  }
  return head;
}
function resizedCrc(crc, length, size) {
  writeUint32(sizeFields, 0, length);
  writeUint32(sizeFields, 4, size);
  return (crc ^ shiftCrc(crc32c(sizeFields, 0, 4) ^ crc32c(sizeFields, 4, 8), length)) >>> 0;
}
var sizeFields = new Uint8Array(8);
function joinBuffers(buffers) {
  const joined = new Uint8Array(buffers.head.length + buffers.payload.length);
  joined.set(buffers.head);
  joined.set(buffers.payload, buffers.head.length);
  return joined;
}
function fieldsToRemove(metadata, options) {
  let owned = HAS_REPLICATED_FROM | HAS_POSITION;
  if (options.schemaVersion !== void 0) owned |= HAS_SCHEMA_VERSION;
  if (options.removeTransaction !== false) owned |= HAS_TRANSACTION;
  return metadata.owned & owned;
}
function isRemoved(reader, bytes, remove) {
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
function keptFields(entry2, remove) {
  const { bytes, metadataStart, metadataEnd } = entry2;
  const kept = Buffer.allocUnsafe(metadataEnd - metadataStart);
  let length = 0;
  const reader = entry2.metadata.fields();
  while (reader.next()) {
    if (isRemoved(reader, bytes, remove)) continue;
    kept.set(bytes.subarray(reader.tagStart, reader.valueEnd), length);
    length += reader.valueEnd - reader.tagStart;
  }
  return kept.subarray(0, length);
}
var POSITION_KEY2 = new TextEncoder().encode(SOURCE_POSITION_PROPERTY);
var POSITION_PREFIX = Uint8Array.from([
  KeyValue.key << 3 | BYTES,
  POSITION_KEY2.length,
  ...POSITION_KEY2,
  KeyValue.value << 3 | BYTES
]);
var positionText = new Uint8Array(48);
var positionLength = 0;
var lastName;
var lastNameField = new Uint8Array(0);
function prepareStamp({ replicatedFrom, sourcePosition, schemaVersion: schemaVersion2 }) {
  if (replicatedFrom !== lastName) {
    if (typeof replicatedFrom !== "string" || replicatedFrom === "") {
      throw new IsthmusError("invalidArgument", `replicatedFrom ${show(replicatedFrom)}: a cluster name is not empty`);
    }
    const writer = new WireWriter();
    writer.text(Outer.replicatedFrom, replicatedFrom);
    lastNameField = Uint8Array.from(writer.written());
    lastName = replicatedFrom;
  }
  positionLength = writePosition(positionText, sourcePosition);
  const schema = schemaVersion2 === void 0 ? 0 : 2 + varintLength(schemaVersion2.length) + schemaVersion2.length;
  return 2 + propertyLength() + lastNameField.length + schema;
}
function propertyLength() {
  return POSITION_PREFIX.length + 1 + positionLength;
}
function writeStamp(target, start, { schemaVersion: schemaVersion2 }) {
  let at = writeTag(target, start, Outer.properties, propertyLength());
  target.set(POSITION_PREFIX, at);
  at = writeVarint(target, at + POSITION_PREFIX.length, positionLength);
  for (let i = 0; i < positionLength; i++) target[at++] = positionText[i];
  target.set(lastNameField, at);
  if (schemaVersion2 !== void 0) {
    at = writeTag(target, at + lastNameField.length, Outer.schemaVersion, schemaVersion2.length);
    target.set(schemaVersion2, at);
  }
}
function writeChecksum(head, checksum) {
  head[0] = 14;
  head[1] = 1;
  writeUint32(head, 2, checksum);
}
function writeTag(target, at, field, length) {
  return writeVarint(target, writeVarint(target, at, field << 3 | BYTES), length);
}

// src/entry/encode.ts
function encodeMessage(body, options) {
  const { outer: outer2, compression = "none", codecs = {} } = options;
  const key = outer2.orderingKey ?? keyBytes(outer2);
  const hash = key === void 0 ? 0 : bucketHash(hashBytes(key, 0, key.length));
  const metadata = encodeOuter(outer2, {
    sequenceId: outer2.sequenceId,
    compression,
    uncompressedSize: body.length,
    numMessagesInBatch: void 0,
    highestSequenceId: void 0,
    stamp: options.stamp === false ? void 0 : { min: hash, max: hash }
  });
  const payload = compression === "none" ? body : codecFor(compression, codecs).compress(body);
  return frame(metadata, payload, options.checksum !== false);
}
function frame(metadata, payload, checksum) {
  const prefix = checksum ? CHECKSUM_BLOCK : 0;
  const head = new Uint8Array(prefix + 4 + metadata.length);
  writeUint32(head, prefix, metadata.length);
  head.set(metadata, prefix + 4);
  if (checksum) writeChecksum(head, crc32c(payload, 0, payload.length, crc32c(head, prefix)));
  return { head, payload };
}
function encodeOuter(outer2, computed) {
  const writer = new WireWriter();
  const { chunk, txn } = outer2;
  writer.text(Outer.producerName, outer2.producerName);
  writer.uint64(Outer.sequenceId, computed.sequenceId);
  writer.uint64(Outer.publishTime, outer2.publishTimeMs);
  for (const [key2, value] of outer2.properties ?? []) writer.bytesField(Outer.properties, keyValue(key2, value));
  if (outer2.replicatedFrom !== void 0) writer.text(Outer.replicatedFrom, outer2.replicatedFrom);
  const key = keyBytes(outer2);
  if (key !== void 0) writer.bytesField(Outer.partitionKey, key);
  for (const cluster of outer2.replicateTo ?? []) writer.text(Outer.replicateTo, cluster);
  if (computed.compression !== "none") {
    writer.uint64(Outer.compression, compressionCode(computed.compression));
  }
  if (computed.uncompressedSize !== void 0) writer.uint32(Outer.uncompressedSize, computed.uncompressedSize);
  if (computed.numMessagesInBatch !== void 0) writer.uint32(Outer.numMessagesInBatch, computed.numMessagesInBatch);
  if (outer2.eventTimeMs !== void 0) writer.uint64(Outer.eventTime, outer2.eventTimeMs);
  for (const recipient of outer2.encryptionKeys ?? []) {
    writer.bytesField(Outer.encryptionKeys, keyValue(recipient.key, recipient.value));
  }
  if (outer2.encryptionParam !== void 0) writer.bytesField(Outer.encryptionParam, outer2.encryptionParam);
  if (outer2.schemaVersion !== void 0) writer.bytesField(Outer.schemaVersion, outer2.schemaVersion);
  if (outer2.partitionKeyB64 !== void 0) writer.uint32(Outer.partitionKeyB64, Number(outer2.partitionKeyB64));
  if (outer2.orderingKey !== void 0) writer.bytesField(Outer.orderingKey, outer2.orderingKey);
  if (outer2.deliverAtMs !== void 0) writer.uint64(Outer.deliverAtTime, outer2.deliverAtMs);
  if (outer2.markerType !== void 0) writer.uint64(Outer.markerType, outer2.markerType);
  if (txn !== void 0) {
    writer.uint64(Outer.txnLeastBits, txn.leastBits);
    writer.uint64(Outer.txnMostBits, txn.mostBits);
  }
  if (computed.highestSequenceId !== void 0) writer.uint64(Outer.highestSequenceId, computed.highestSequenceId);
  if (outer2.nullValue !== void 0) writer.uint32(Outer.nullValue, Number(outer2.nullValue));
  if (chunk !== void 0) {
    writer.text(Outer.uuid, chunk.uuid);
    writer.uint64(Outer.numChunks, chunk.numChunks);
    writer.uint64(Outer.totalChunkSize, chunk.totalSize);
    writer.uint64(Outer.chunkId, chunk.chunkId);
  }
  if (outer2.nullPartitionKey !== void 0) writer.uint32(Outer.nullPartitionKey, Number(outer2.nullPartitionKey));
  if (computed.stamp !== void 0) {
    writer.uint32(Outer.stampMin, computed.stamp.min);
    writer.uint32(Outer.stampMax, computed.stamp.max);
  }
  return writer.written();
}
function keyBytes(outer2) {
  return outer2.partitionKeyBytes ?? (outer2.partitionKey === void 0 ? void 0 : Buffer.from(outer2.partitionKey));
}
function keyValue(key, value) {
  const writer = new WireWriter();
  writer.text(KeyValue.key, key);
  if (typeof value === "string") writer.text(KeyValue.value, value);
  else writer.bytesField(KeyValue.value, value);
  return writer.written();
}

// src/layout/segment.ts
function isLegacy(segment) {
  return segment.legacyTopicName !== void 0 && segment.legacyTopicName !== "";
}

// src/layout/checks.ts
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
function restated(code, check) {
  try {
    return check();
  } catch (cause) {
    if (cause instanceof IsthmusError) throw new IsthmusError(code, cause.message, { cause });
    throw cause;
  }
}
function readBoundaries(value, where, code) {
  return restated(code, () => [...parseBoundaries(value, where)]);
}
function checkTime(nowMs) {
  if (!Number.isSafeInteger(nowMs) || nowMs < 0) {
    throw new IsthmusError("invalidArgument", `nowMs is ${show(nowMs)}: a time is a safe integer of 0 or more ms`);
  }
}

// src/layout/assemble.ts
function byRange(a, b) {
  return isLegacy(a) && isLegacy(b) ? a.segmentId - b.segmentId : a.range.start - b.range.start;
}
function assembleLayout(members) {
  const active = [...members.segments.values()].filter((segment) => segment.state === "active").sort(byRange);
  return { ...members, active };
}
function bornSegment(segmentId, from, epoch, nowMs) {
  return {
    segmentId,
    range: from.range,
    state: "active",
    parentIds: from.parentIds,
    childIds: [],
    entryBucketSplits: from.entryBucketSplits,
    createdAtEpoch: epoch,
    sealedAtEpoch: -1,
    createdAtMs: nowMs,
    sealedAtMs: -1
  };
}

// src/layout/base.ts
function deriveBase(segments) {
  const first = [...segments].filter((segment) => segment.createdAtEpoch === 0 && !isLegacy(segment));
  if ((first.length & first.length - 1) === 0) return void 0;
  first.sort((a, b) => a.range.start - b.range.start);
  let next = 0;
  for (const { range } of first) {
    if (range.start !== next) return void 0;
    next = range.end + 1;
  }
  return next === RING_END + 1 ? first.slice(1).map((segment) => segment.range.start) : void 0;
}

// src/layout/create.ts
var BUCKET_BUDGET = 4;
function createLayout(options) {
  checkTime(options.nowMs);
  const starts = [0, ...firstBoundaries(options)];
  const entryBucketSplits = equalWidthSplits(options.buckets ?? Math.max(1, Math.floor(BUCKET_BUDGET / starts.length)));
  const properties = readProperties(options.properties ?? {});
  const segments = /* @__PURE__ */ new Map();
  starts.forEach((start, segmentId) => {
    const range = { start, end: (starts[segmentId + 1] ?? RING_END + 1) - 1 };
    segments.set(segmentId, bornSegment(segmentId, { range, entryBucketSplits, parentIds: [] }, 0, options.nowMs));
  });
  const base = deriveBase(segments.values());
  return assembleLayout({
    epoch: 0,
    nextSegmentId: starts.length,
    segments,
    ...base === void 0 ? {} : { base },
    properties,
    deleted: false
  });
}
function firstBoundaries({ segments, boundaries }) {
  if (boundaries !== void 0) {
    if (segments === void 0) return readBoundaries(boundaries, "boundaries", "invalidArgument");
    throw new IsthmusError("invalidArgument", `segments is ${show(segments)} beside boundaries: give one of the two`);
  }
  const count = segments ?? 1;
  if (!Number.isInteger(count) || count < 1 || count > RING_END + 1) {
    throw new IsthmusError("invalidArgument", `segments is ${show(count)}: a topic begins with 1..65536 segments`);
  }
  const width = Math.floor((RING_END + 1) / count);
  return Array.from({ length: count - 1 }, (_, i) => (i + 1) * width);
}
function readProperties(properties) {
  if (!isRecord(properties) || !Object.values(properties).every((value) => typeof value === "string")) {
    throw new IsthmusError("invalidArgument", `properties is ${show(properties)}: a map of texts to texts`);
  }
  return { ...properties };
}

// src/rebatch/rectangle.ts
function isDone(done, source, keyHash, bucketHash2) {
  return done.some((rectangle) => holds(rectangle, source, keyHash, bucketHash2));
}
function holds(rectangle, source, keyHash, bucketHash2) {
  const { range, buckets, residue, unkeyed } = rectangle;
  if (!contains(buckets, bucketHash2)) return false;
  if (keyHash < 0) {
    return source.legacy || residue !== void 0 ? unkeyed === true : contains(range, source.range.start);
  }
  if (residue !== void 0) return classicPartition(keyHash, residue.modulus) === residue.remainder;
  return contains(range, keyHash >>> 16) || !source.legacy && covers(range, source.range);
}

// src/rebatch/routes.ts
var Routes = class {
  /** By range; by id where all are legacy. */
  segments;
  /** All are legacy and there are several: keys go by the classic hash modulo their number (E9). */
  classic;
  /** The number of the first cell of each segment: cells are all buckets of all segments, in ring order. */
  firstCell;
  /** One number for each cell, all 0: scratch memory of whoever groups messages, who leaves it all 0. */
  scratch;
  /** The starts of all segments but the first: the segment ring's splits. */
  innerStarts;
  covering = /* @__PURE__ */ new Map();
  /** Throws `invalidLayout` when the segments neither tile the ring nor are all legacy. */
  constructor(remote2) {
    const legacy = remote2.active.filter(isLegacy).length;
    if (remote2.active.length === 0 || legacy !== 0 && legacy !== remote2.active.length) {
      refuse(remote2, "has no active segment, or legacy ones beside others");
    }
    this.classic = legacy > 1;
    this.segments = [...remote2.active].sort(
      (a, b) => legacy > 0 ? a.segmentId - b.segmentId : a.range.start - b.range.start
    );
    this.innerStarts = this.segments.slice(1).map(({ range }) => range.start);
    this.firstCell = new Int32Array(this.segments.length);
    let next = 0;
    let cells = 0;
    for (const [i, { range, entryBucketSplits }] of this.segments.entries()) {
      if (legacy === 0 && range.start !== next) refuse(remote2, `has a gap or an overlap at ${range.start}`);
      next = range.end + 1;
      this.firstCell[i] = cells;
      cells += entryBucketSplits.length + 1;
    }
    if (legacy === 0 && next !== RING_END + 1) refuse(remote2, `ends at ${next - 1}`);
    this.scratch = new Int32Array(cells);
  }
  /** The one segment that takes all of a source segment; undefined where its keys are spread (R1). */
  cover(source) {
    return this.segments[this.indexOfCover(source)];
  }
  /** The index of that segment, or -1. The range of a legacy source proves nothing, so only a lone segment covers it. */
  indexOfCover({ range, legacy }) {
    if (this.segments.length === 1) return 0;
    if (this.classic || legacy) return -1;
    const key = range.start * 65536 + range.end;
    let index = this.covering.get(key);
    if (index === void 0) {
      index = this.indexOfHash(range.start);
      if (!covers(this.segments[index].range, range)) index = -1;
      this.covering.set(key, index);
    }
    return index;
  }
  /** The index of the segment for a raw key hash. */
  indexOfKey(keyHash) {
    return this.classic ? classicPartition(keyHash, this.segments.length) : this.indexOfHash(keyHash >>> 16);
  }
  /** The index of the segment for messages without a partition key (R3): the same for all of one source segment. */
  indexOfUnkeyed(source) {
    return source.legacy || this.classic ? source.segmentId % this.segments.length : this.indexOfHash(source.range.start);
  }
  indexOfHash(segmentHash2) {
    return bucketIndex(this.innerStarts, segmentHash2);
  }
};
function refuse(remote2, rule) {
  throw new IsthmusError("invalidLayout", `the layout of ${show(remote2.cluster)} at epoch ${remote2.epoch} ${rule}`);
}
var ROUTES = /* @__PURE__ */ new WeakMap();
function routesOf(remote2) {
  let routes = ROUTES.get(remote2);
  if (routes === void 0) {
    routes = new Routes(remote2);
    ROUTES.set(remote2, routes);
  }
  return routes;
}

// src/rebatch/path.ts
function choosePath(entry2, source, remote2, options = {}) {
  const { metadata } = entry2;
  const skipped = skipReason(entry2, remote2, options);
  if (skipped !== void 0) return { kind: "skip", reason: skipped };
  const routes = routesOf(remote2);
  const cover = routes.cover(source);
  if (metadata.numMessagesInBatch === void 0) return singlePath(entry2, source, routes, cover, options);
  if (options.done !== void 0 && options.done.length > 0) {
    return metadata.encrypted ? HELD : { kind: "rebatch", reason: "partlyDone" };
  }
  const stamp = metadata.stamp;
  if (stamp !== void 0 && cover !== void 0 && isInOneBucket(cover, stamp.min, stamp.max)) {
    return { kind: "verbatim", reason: "fits", segmentId: cover.segmentId };
  }
  const looksUnkeyed = stamp?.max === 0 && metadata.partitionKeyBytes === void 0 && metadata.orderingKey === void 0;
  if (looksUnkeyed && options.unkeyedBatches === "trust") return unkeyedPath(source, routes);
  if (metadata.encrypted) return HELD;
  if (looksUnkeyed) return { kind: "inspect", reason: "zeroStamp" };
  if (stamp === void 0) return { kind: "rebatch", reason: "unstamped" };
  return { kind: "rebatch", reason: cover === void 0 ? "segmentFit" : "bucketFit" };
}
var HELD = { kind: "hold", reason: "encryptedBatch" };
function unkeyedPath(source, routes) {
  const segment = routes.segments[routes.indexOfUnkeyed(source)];
  return { kind: "verbatim", reason: "unkeyed", segmentId: segment.segmentId };
}
function isInOneBucket(segment, min, max) {
  const splits = segment.entryBucketSplits;
  return splits.length === 0 || bucketIndex(splits, min) === bucketIndex(splits, max);
}
function singlePath(entry2, source, routes, cover, { done }) {
  const { metadata } = entry2;
  if (done !== void 0 && done.length > 0) {
    const { keyHash: keyHash2, orderingKey } = metadata;
    const bucket = orderingKey !== void 0 ? hashKey(orderingKey) & 65535 : keyHash2 < 0 ? 0 : keyHash2 & 65535;
    if (isDone(done, source, keyHash2, bucket)) return { kind: "skip", reason: "done" };
  }
  if (cover !== void 0) return { kind: "verbatim", reason: "single", segmentId: cover.segmentId };
  const { keyHash } = metadata;
  if (keyHash < 0) return unkeyedPath(source, routes);
  const segment = routes.segments[routes.indexOfKey(keyHash)];
  return { kind: "verbatim", reason: "single", segmentId: segment.segmentId };
}
function skipReason(entry2, remote2, options) {
  const { metadata } = entry2;
  if (metadata.markerType !== void 0) return "marker";
  if (metadata.replicatedFrom !== void 0) return "replicated";
  const { replicateTo } = metadata;
  if (replicateTo.length > 0 && !replicateTo.includes(remote2.cluster)) return "notListed";
  return isExpired(entry2, options) ? "expired" : void 0;
}
function isExpired(entry2, { ttlMs, nowMs }) {
  if (ttlMs === void 0 || ttlMs === 0) return false;
  if (nowMs === void 0) {
    throw new IsthmusError("invalidArgument", `a TTL of ${show(ttlMs)} ms needs nowMs to be compared with`);
  }
  return nowMs - (entry2.broker?.timestampMs ?? entry2.metadata.publishTimeMs) > ttlMs;
}

// bench/entries.ts
var outer = { producerName: "writer-1-seg-0", sequenceId: 0n, publishTimeMs: 1795990211290 };
var schemaVersion = new Uint8Array(8);
function singleEntry(bodyBytes) {
  const body = new Uint8Array(bodyBytes).map((_, i) => i * 31 + 7 & 255);
  return joinBuffers(encodeMessage(body, { outer: { ...outer, partitionKey: "order-42", schemaVersion } }));
}

// ../../tmp/micro.mts
var e = singleEntry(1024);
var layout = createLayout({ segments: 4, buckets: 4, nowMs: 0 });
var remote = { cluster: "b", epoch: 0, active: layout.active };
var src = { segmentId: 1, range: { start: 16384, end: 32767 }, legacy: false };
var entry = parseEntry(e);
function t(name, f) {
  let best = 1e9;
  let s = 0;
  for (let r = 0; r < 15; r++) {
    const t0 = process.hrtime.bigint();
    for (let i = 0; i < 5e4; i++) s += f(i);
    best = Math.min(best, Number(process.hrtime.bigint() - t0) / 5e4);
  }
  console.log(name.padEnd(12), best.toFixed(0), "ns");
  return s;
}
t("parse", () => parseEntry(e).metadataEnd);
t("choose", () => choosePath(entry, src, remote).kind.length);
t("restamp", (i) => restamp(entry, { replicatedFrom: "a", sourcePosition: { ledgerId: 1007n, entryId: BigInt(i) } }).head.length);
t("all", (i) => {
  const x = parseEntry(e);
  choosePath(x, src, remote);
  return restamp(x, { replicatedFrom: "a", sourcePosition: { ledgerId: 1007n, entryId: BigInt(i) } }).head.length;
});
