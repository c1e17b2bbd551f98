/**
 * CRC32C (Castagnoli, reflected) and the algebra that moves it (E3). A CRC is linear over GF(2): from the stored
 * checksum of `old ++ payload` one gets that of `fresh ++ payload` without reading the payload, by shifting the
 * difference of the two heads over the payload's length. A shift is a multiplication by x^(8 * length) modulo the
 * polynomial; it is done digit by digit of the length in base 64, each digit's operator as four tables of 256 words.
 */
import { crc32c as nativeCrc32c } from '@node-rs/crc32';

const POLYNOMIAL = 0x82f63b78;
/** From this many bytes on, a call into native code is cheaper than slicing-by-8 here. */
const NATIVE_FROM = 192;

const SLICES = buildSlices();

function buildSlices(): Int32Array {
  const slices = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    slices[byte] = crc;
  }
  for (let i = 256; i < slices.length; i++) {
    const previous = slices[i - 256] as number;
    slices[i] = (slices[previous & 0xff] as number) ^ (previous >>> 8);
  }
  return slices;
}

/** CRC32C of `bytes[start..end)`, continuing from `previous`, the CRC of what lies before it. Unsigned. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length, previous = 0): number {
  if (end - start >= NATIVE_FROM) return nativeCrc32c(view(bytes, start, end), previous) >>> 0;
  const t = SLICES;
  let crc = ~previous;
  let at = start;
  for (const stop = end - ((end - start) & 7); at < stop; at += 8) {
    const low =
      crc ^
      ((bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24));
    crc =
      (t[1792 + (low & 0xff)] as number) ^
      (t[1536 + ((low >>> 8) & 0xff)] as number) ^
      (t[1280 + ((low >>> 16) & 0xff)] as number) ^
      (t[1024 + (low >>> 24)] as number) ^
      (t[768 + (bytes[at + 4] as number)] as number) ^
      (t[512 + (bytes[at + 5] as number)] as number) ^
      (t[256 + (bytes[at + 6] as number)] as number) ^
      (t[bytes[at + 7] as number] as number);
  }
  for (; at < end; at++) crc = (t[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  return ~crc >>> 0;
}

/**
 * Copies `source[start..end)` to `target` and returns the CRC of what was copied. A short run is read once for both,
 * which costs less than making the views that the two take one by one.
 */
export function copyWithCrc(target: Uint8Array, to: number, source: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length >= NATIVE_FROM) {
    const run = view(source, start, end);
    target.set(run, to);
    return nativeCrc32c(run, 0) >>> 0;
  }
  const t = SLICES;
  let crc = -1;
  let at = start;
  let out = to;
  for (const stop = end - (length & 7); at < stop; at += 8, out += 8) {
    const b0 = source[at] as number;
    const b1 = source[at + 1] as number;
    const b2 = source[at + 2] as number;
    const b3 = source[at + 3] as number;
    const b4 = source[at + 4] as number;
    const b5 = source[at + 5] as number;
    const b6 = source[at + 6] as number;
    const b7 = source[at + 7] as number;
    target[out] = b0;
    target[out + 1] = b1;
    target[out + 2] = b2;
    target[out + 3] = b3;
    target[out + 4] = b4;
    target[out + 5] = b5;
    target[out + 6] = b6;
    target[out + 7] = b7;
    const low = crc ^ (b0 | (b1 << 8) | (b2 << 16) | (b3 << 24));
    crc =
      (t[1792 + (low & 0xff)] as number) ^
      (t[1536 + ((low >>> 8) & 0xff)] as number) ^
      (t[1280 + ((low >>> 16) & 0xff)] as number) ^
      (t[1024 + (low >>> 24)] as number) ^
      (t[768 + b4] as number) ^
      (t[512 + b5] as number) ^
      (t[256 + b6] as number) ^
      (t[b7] as number);
  }
  for (; at < end; at++, out++) {
    const byte = source[at] as number;
    target[out] = byte;
    crc = (t[(crc ^ byte) & 0xff] as number) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

function view(bytes: Uint8Array, start: number, end: number): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
}

/** Multiplies two polynomials modulo the CRC's; bit 31 is x^0, as in every reflected CRC. */
function multiply(a: number, b: number): number {
  let product = 0;
  let factor = b;
  for (let mask = 0x80000000; mask !== 0; mask >>>= 1) {
    if (a & mask) product ^= factor;
    factor = factor & 1 ? (factor >>> 1) ^ POLYNOMIAL : factor >>> 1;
  }
  return product;
}

/** OPERATORS[place * 64 + digit] multiplies by x^(8 * digit * 64^place); built when first used. */
const OPERATORS: (Int32Array | undefined)[] = [];
/** POWERS[place] is x^(8 * 64^place). */
const POWERS: number[] = [0x00800000];

function operator(place: number, digit: number): Int32Array {
  const index = place * 64 + digit;
  const known = OPERATORS[index];
  if (known !== undefined) return known;
  for (let p = POWERS.length; p <= place; p++) {
    let power = POWERS[p - 1] as number;
    for (let square = 0; square < 6; square++) power = multiply(power, power);
    POWERS.push(power);
  }
  let factor = 0x80000000;
  for (let i = 0; i < digit; i++) factor = multiply(factor, POWERS[place] as number);
  const built = new Int32Array(4 * 256);
  for (let bit = 0; bit < 32; bit++) {
    const image = multiply(factor, 1 << bit);
    const table = (bit >>> 3) * 256;
    const step = 1 << (bit & 7);
    for (let i = 0; i < step; i++) built[table + step + i] = (built[table + i] as number) ^ image;
  }
  OPERATORS[index] = built;
  return built;
}

/** The effect of `length` bytes that follow on a CRC difference: `crc(a ++ t) ^ crc(b ++ t)` for equally long a, b. */
export function shiftCrc(difference: number, length: number): number {
  let crc = difference;
  let rest = length;
  for (let place = 0; rest > 0; place++) {
    const digit = rest % 64;
    if (digit !== 0) {
      const t = operator(place, digit);
      crc =
        (t[crc & 0xff] as number) ^
        (t[256 + ((crc >>> 8) & 0xff)] as number) ^
        (t[512 + ((crc >>> 16) & 0xff)] as number) ^
        (t[768 + (crc >>> 24)] as number);
    }
    rest = (rest - digit) / 64;
  }
  return crc >>> 0;
}

/** The effect of a difference in one big-endian 32-bit word on the CRC of what ends with it. */
export function wordCrc(difference: number): number {
  const t = SLICES;
  return (
    (t[768 + (difference >>> 24)] as number) ^
    (t[512 + ((difference >>> 16) & 0xff)] as number) ^
    (t[256 + ((difference >>> 8) & 0xff)] as number) ^
    (t[difference & 0xff] as number)
  );
}

/** The CRC of `a ++ b` from `crc(a)`, `crc(b)` and the length of b. */
export function concatCrc(crcA: number, crcB: number, lengthB: number): number {
  return (shiftCrc(crcA, lengthB) ^ crcB) >>> 0;
}
