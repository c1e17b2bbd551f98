/**
 * A reader of protobuf's wire format that hands out offsets instead of values, and the few writers that a re-stamp
 * needs. It decodes nothing it is not asked for, and every byte it walks over is checked: a varint of more than ten
 * bytes, a length beyond the end, field number 0 and the group types are refused.
 */
import { IsthmusError, type IsthmusErrorCode } from '../errors.js';

export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const FIXED32 = 5;

/** Walks the fields of one message. After `next()`, `field`, `wireType`, `tagStart`, `valueStart`, `valueEnd` tell the field. */
export class WireReader {
  field = 0;
  wireType = 0;
  tagStart = 0;
  /** For BYTES: behind the length; for the others: at the value. */
  valueStart = 0;
  valueEnd = 0;
  /** The low and high 32 bits of the last varint value. */
  low = 0;
  high = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
    private end: number,
    private readonly code: IsthmusErrorCode,
    private readonly what: string,
  ) {}

  /** Begins anew with another message in the same bytes. */
  moveTo(start: number, end: number): void {
    this.at = start;
    this.end = end;
  }

  /** Moves to the next field; false at the end of the message. Numbers of one byte, the most by far, take a short way. */
  next(): boolean {
    const { bytes, end } = this;
    if (this.at >= end) return false;
    this.tagStart = this.at;
    let tag = bytes[this.at] as number;
    if (tag < 0x80) this.at++;
    else {
      this.varint();
      tag = this.low;
      // A tag is a 32-bit number; larger ones have no field number that anyone could have declared.
      if (this.high !== 0) tag = 0;
    }
    const field = tag >>> 3;
    if (field === 0) this.refuse('holds a field number outside 1..2^29-1');
    const wireType = tag & 7;
    this.field = field;
    this.wireType = wireType;
    this.valueStart = this.at;
    if (wireType === VARINT || wireType === BYTES) {
      const byte = this.at < end ? (bytes[this.at] as number) : 0x80;
      if (byte < 0x80) {
        this.at++;
        this.low = byte;
        this.high = 0;
      } else {
        this.varint();
      }
      if (wireType === BYTES) {
        this.valueStart = this.at;
        if (this.high !== 0 || this.low >>> 0 > end - this.at) this.refuse('holds a length beyond its end');
        this.at += this.low >>> 0;
      }
    } else {
      if (wireType === FIXED64) this.at += 8;
      else if (wireType === FIXED32) this.at += 4;
      else this.refuse(`holds wire type ${wireType}, which no field here has`);
      if (this.at > end) this.refuse('is cut');
    }
    this.valueEnd = this.at;
    return true;
  }

  /** Refuses the field just read unless it has this wire type. */
  expect(wireType: number): void {
    if (this.wireType !== wireType) {
      this.refuse(`holds field ${this.field} with wire type ${this.wireType} instead of ${wireType}`);
    }
  }

  refuse(rule: string): never {
    throw new IsthmusError(this.code, `${this.what} ${rule} (at byte ${this.tagStart})`);
  }

  private varint(): void {
    const bytes = this.bytes;
    let at = this.at;
    const end = this.end;
    let byte = at < end ? (bytes[at++] as number) : this.refuse('is cut inside a number');
    let low = byte & 0x7f;
    let high = 0;
    if (byte > 0x7f) {
      let shift = 7;
      do {
        byte = at < end ? (bytes[at++] as number) : this.refuse('is cut inside a number');
        const bits = byte & 0x7f;
        if (shift < 28) low |= bits << shift;
        else if (shift === 28) {
          low |= bits << 28;
          high = bits >>> 4;
        } else if (shift < 64) high |= bits << (shift - 32);
        else this.refuse('holds a number of more than ten bytes');
        shift += 7;
      } while (byte > 0x7f);
    }
    this.low = low;
    this.high = high;
    this.at = at;
  }
}

/** `bytes[start..end)` as a plain Uint8Array over the same memory: cheaper than `subarray`, which asks a Buffer what to make. */
export function viewOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}

/** Heads are cut from slabs of this size: making a small array of its own costs ten times as much. */
const SLAB_BYTES = 32 * 1024;
let slab = new ArrayBuffer(SLAB_BYTES);
let slabUsed = 0;

/** Memory for `length` bytes, to be written whole by the caller; a short one shares its buffer with others. */
export function allocate(length: number): Uint8Array {
  if (length > SLAB_BYTES / 8) return new Uint8Array(length);
  if (slabUsed + length > SLAB_BYTES) {
    slab = new ArrayBuffer(SLAB_BYTES);
    slabUsed = 0;
  }
  const memory = new Uint8Array(slab, slabUsed, length);
  slabUsed += length;
  return memory;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The text of `bytes[start..end)`; what is not UTF-8 reads as U+FFFD. */
export function decodeText(bytes: Uint8Array, start: number, end: number): string {
  return decoder.decode(bytes.subarray(start, end));
}

/** The 64-bit number of two 32-bit halves, unsigned. */
export function toUint64(high: number, low: number): bigint {
  return high === 0 ? BigInt(low >>> 0) : (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

/** Reads a varint whose bounds a WireReader has checked before; unsigned 64 bit. */
export function uint64At(bytes: Uint8Array, start: number): bigint {
  let low = 0;
  let high = 0;
  let shift = 0;
  for (let at = start; ; at++) {
    const byte = bytes[at] as number;
    const bits = byte & 0x7f;
    if (shift < 28) low |= bits << shift;
    else if (shift === 28) {
      low |= bits << 28;
      high = bits >>> 4;
    } else high |= bits << (shift - 32);
    if (byte < 0x80) return toUint64(high, low);
    shift += 7;
  }
}

/** The bytes that a varint of an unsigned 32-bit number takes. */
export function varintLength(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x200000) return 3;
  return value < 0x10000000 ? 4 : 5;
}

/** Writes an unsigned 32-bit number and returns the offset behind it. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let rest = value;
  let to = at;
  while (rest > 0x7f) {
    target[to++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[to++] = rest;
  return to;
}

/** Writes a big-endian unsigned 32-bit number and returns the offset behind it. */
export function writeUint32(target: Uint8Array, at: number, value: number): number {
  target[at] = value >>> 24;
  target[at + 1] = (value >>> 16) & 0xff;
  target[at + 2] = (value >>> 8) & 0xff;
  target[at + 3] = value & 0xff;
  return at + 4;
}

/** Reads a big-endian unsigned 32-bit number; the caller has checked the bounds. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  );
}

/** Copies `source[start..end)` and returns the offset behind the copy. A loop beats making a view for a short run. */
export function copyBytes(target: Uint8Array, at: number, source: Uint8Array, start: number, end: number): number {
  if (end - start > 24) target.set(viewOf(source, start, end), at);
  else for (let from = start, to = at; from < end; from++, to++) target[to] = source[from] as number;
  return at + end - start;
}

/** A run of this many bytes is copied word by word; a longer one is worth a view and a native copy. */
const WORDS_UP_TO = 320;

/** Copies many short runs between two buffers: a view for each run would cost more than the copy itself. */
export class RunCopier {
  private readonly from: DataView;
  private readonly to: DataView;

  constructor(
    private readonly target: Uint8Array,
    private readonly source: Uint8Array,
  ) {
    this.from = new DataView(source.buffer, source.byteOffset, source.byteLength);
    this.to = new DataView(target.buffer, target.byteOffset, target.byteLength);
  }

  /** Copies `source[start..end)` and returns the offset behind the copy. */
  copy(at: number, start: number, end: number): number {
    if (end - start > WORDS_UP_TO) {
      this.target.set(viewOf(this.source, start, end), at);
      return at + end - start;
    }
    const { from, to, source, target } = this;
    let read = start;
    let write = at;
    for (const stop = end - 3; read < stop; read += 4, write += 4) {
      to.setInt32(write, from.getInt32(read, true), true);
    }
    for (; read < end; read++, write++) target[write] = source[read] as number;
    return write;
  }
}

/** A growing buffer for building a message; for producers and parts, not for the verbatim path. */
export class WireWriter {
  private bytes = new Uint8Array(256);
  private length = 0;

  private reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }

  /** A field with an unsigned number of up to 64 bits; a negative one is written as its two's complement. */
  uint64(field: number, value: bigint | number): void {
    this.reserve(20);
    this.length = writeVarint(this.bytes, this.length, (field << 3) | VARINT);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 0x7fn) {
      this.bytes[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  /** A field with an unsigned 32-bit number. */
  uint32(field: number, value: number): void {
    this.reserve(10);
    this.length = writeVarint(this.bytes, this.length, (field << 3) | VARINT);
    this.length = writeVarint(this.bytes, this.length, value);
  }

  bytesField(field: number, value: Uint8Array): void {
    this.reserve(10 + value.length);
    this.length = writeVarint(this.bytes, this.length, ((field << 3) | BYTES) >>> 0);
    this.length = writeVarint(this.bytes, this.length, value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }

  text(field: number, value: string): void {
    this.bytesField(field, Buffer.from(value, 'utf8'));
  }

  /** A field with a 64-bit number given as halves, of which only the bits count. */
  uint64Halves(field: number, high: number, low: number): void {
    if (high === 0) this.uint32(field, low >>> 0);
    else this.uint64(field, toUint64(high, low));
  }

  /** Bytes that are whole fields already. */
  raw(source: Uint8Array): void {
    this.copy(source, 0, source.length);
  }

  /** `source[start..end)`, whole fields already. */
  copy(source: Uint8Array, start: number, end: number): void {
    this.reserve(end - start);
    this.length = copyBytes(this.bytes, this.length, source, start, end);
  }

  /** The field under a reader over `source`, under another number. */
  retagged(field: number, reader: WireReader, source: Uint8Array): void {
    this.reserve(20);
    this.length = writeVarint(this.bytes, this.length, ((field << 3) | reader.wireType) >>> 0);
    if (reader.wireType === BYTES) {
      this.length = writeVarint(this.bytes, this.length, reader.valueEnd - reader.valueStart);
    }
    this.copy(source, reader.valueStart, reader.valueEnd);
  }

  /** Begins anew in the same memory. */
  clear(): void {
    this.length = 0;
  }

  /** What has been written: a view that the next write may invalidate. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }
}
