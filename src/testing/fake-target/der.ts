/** DER (X.690), as far as a certificate needs it: writing only, each value with its tag and its length. */
import { IsthmusError, show } from '../../errors.js';

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  identifier: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Any tag before any content. */
export function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

/** Below 128 one byte; else the number of bytes that follow, and they. */
function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes = minimal(length);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

/** A number from 0 on, big-endian, without leading zeros. */
function minimal(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return bytes.length === 0 ? [0] : bytes;
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => tagged(TAG.sequence, ...parts);
export const set = (...parts: readonly Uint8Array[]): Buffer => tagged(TAG.set, ...parts);
export const octets = (content: Uint8Array): Buffer => tagged(TAG.octetString, content);
export const utf8 = (text: string): Buffer => tagged(TAG.utf8, Buffer.from(text, 'utf8'));
export const yes = (): Buffer => tagged(TAG.boolean, Buffer.from([0xff]));

/** `[n]`: bytes under a tag of the context, as a whole value when it is constructed. */
export const context = (n: number, content: Uint8Array, { constructed = false } = {}): Buffer =>
  tagged(0x80 | (constructed ? 0x20 : 0) | n, content);

/** An integer of at least 0, as its big-endian bytes; a leading one bit would make it negative. */
export function integer(bytes: Uint8Array): Buffer {
  const isHigh = ((bytes[0] ?? 0) & 0x80) !== 0;
  return tagged(TAG.integer, isHigh ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

/** Bits, of which the last `unused` (0 to 7) of the last byte do not count. */
export const bits = (content: Uint8Array, unused = 0): Buffer => tagged(TAG.bitString, Buffer.from([unused]), content);

/** An object identifier in its dotted form. */
export function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const base128 = (value: number): number[] => {
    const digits = [value % 128];
    for (let left = Math.floor(value / 128); left > 0; left = Math.floor(left / 128)) {
      digits.unshift(0x80 | (left % 128));
    }
    return digits;
  };
  return tagged(TAG.identifier, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** A time in whole seconds. RFC 5280 wants two digits for the year before 2050, and four from then on. */
export function time(ms: number): Buffer {
  const at = new Date(ms);
  const year = at.getUTCFullYear();
  if (!(year >= 1950 && year <= 9999)) {
    throw new IsthmusError('invalidArgument', `time ${show(ms)}: it must lie in the years 1950 to 9999`);
  }
  const digits = `${at.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`;
  return year < 2050
    ? tagged(TAG.utcTime, Buffer.from(digits.slice(2)))
    : tagged(TAG.generalizedTime, Buffer.from(digits));
}
