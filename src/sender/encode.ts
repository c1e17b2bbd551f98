/**
 * One record as an item of a batch produce request: `{"key":...,"payload":...}`. The bytes go as they came: a payload
 * that is one JSON value goes raw and is stored byte for byte, anything else as base64; nothing is parsed and written
 * anew. No partition is named: the target's own partitioner places each record.
 */
import { isRawJson, isUtf8 } from './json-text.js';
import type { SourceRecord } from './record.js';

/** A record on its way, with what is known of how it may go. */
export interface SendItem {
  readonly record: SourceRecord;
  /** The payload may go as it is; judged when it is first encoded. */
  raw?: boolean;
  /** The target refused the raw payload, so it goes as base64. */
  asBase64: boolean;
}

export function sendItem(record: SourceRecord): SendItem {
  return { record, asBase64: false };
}

/** Whether the payload of an item goes raw. */
export function goesRaw(item: SendItem): boolean {
  if (item.asBase64) return false;
  item.raw ??= isRawJson(item.record.payload);
  return item.raw;
}

/** Appends the item of a record. */
export function writeItem(body: BodyWriter, item: SendItem): void {
  const { key, payload } = item.record;
  body.ascii('{');
  if (key.length > 0) {
    if (isUtf8(key)) body.ascii('"key":').text(key).ascii(',');
    else body.ascii('"key":"').base64(key).ascii('","key_encoding":"base64",');
  }
  if (goesRaw(item)) body.ascii('"payload":').bytes(payload).ascii('}');
  else body.ascii('"payload":"').base64(payload).ascii('","payload_encoding":"base64"}');
}

const BASE64 = asciiBytes('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
const HEX = asciiBytes('0123456789abcdef');
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SHORT_ESCAPES = new Map([
  [QUOTE, QUOTE],
  [BACKSLASH, BACKSLASH],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x09, 0x74],
]);

/** A body under construction: bytes that grow at the end, and can be cut back to an earlier length. */
export class BodyWriter {
  length = 0;
  private buffer: Uint8Array;

  constructor(capacity: number) {
    this.buffer = new Uint8Array(capacity);
  }

  /** What was written, over the writer's own memory. */
  taken(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  ascii(text: string): this {
    this.reserve(text.length);
    for (let i = 0; i < text.length; i++) this.buffer[this.length++] = text.charCodeAt(i);
    return this;
  }

  bytes(bytes: Uint8Array): this {
    this.reserve(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  /** Padded standard base64. */
  base64(bytes: Uint8Array): this {
    this.reserve(Math.ceil(bytes.length / 3) * 4);
    const { buffer } = this;
    let to = this.length;
    for (let i = 0; i < bytes.length; i += 3) {
      const left = bytes.length - i;
      const bits = ((bytes[i] as number) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
      buffer[to++] = BASE64[bits >> 18] as number;
      buffer[to++] = BASE64[(bits >> 12) & 63] as number;
      buffer[to++] = left > 1 ? (BASE64[(bits >> 6) & 63] as number) : 0x3d;
      buffer[to++] = left > 2 ? (BASE64[bits & 63] as number) : 0x3d;
    }
    this.length = to;
    return this;
  }

  /** UTF-8 as a JSON string, escaped as Go does without HTML escaping. */
  text(utf8: Uint8Array): this {
    this.reserve(utf8.length * 6 + 2);
    const { buffer } = this;
    buffer[this.length++] = QUOTE;
    for (let i = 0; i < utf8.length; i++) {
      const byte = utf8[i] as number;
      if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH) this.escape(byte);
      else if (byte === 0xe2 && utf8[i + 1] === 0x80 && ((utf8[i + 2] as number) & 0xfe) === 0xa8) {
        // U+2028 and U+2029 end a line in JavaScript of old.
        this.ascii('\\u202').ascii(utf8[i + 2] === 0xa8 ? '8' : '9');
        i += 2;
      } else buffer[this.length++] = byte;
    }
    buffer[this.length++] = QUOTE;
    return this;
  }

  private escape(byte: number): void {
    const { buffer } = this;
    buffer[this.length++] = BACKSLASH;
    const short = SHORT_ESCAPES.get(byte);
    if (short !== undefined) {
      buffer[this.length++] = short;
      return;
    }
    this.ascii('u00');
    buffer[this.length++] = HEX[byte >> 4] as number;
    buffer[this.length++] = HEX[byte & 15] as number;
  }

  private reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.buffer.length) return;
    const grown = new Uint8Array(Math.max(needed, this.buffer.length * 2));
    grown.set(this.taken());
    this.buffer = grown;
  }
}

function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
