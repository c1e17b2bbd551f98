/**
 * Whether bytes may go into a batch as they are: exactly one JSON value, in valid UTF-8, with nothing around it. It is a
 * scanner of its own because a target written in Go judges by Go's rules, which differ from JSON.parse in the nesting
 * they allow, and because parsing would build every value only to throw it away.
 */

/** Go's parser refuses a container inside so many others. */
const MAX_DEPTH = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

const LITERALS: ReadonlyMap<number | undefined, readonly number[]> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), [...word].map((letter) => letter.charCodeAt(0))]),
);

/** Bytes of a string that stand for themselves: most of all bytes that are looked at. */
const PLAIN = Uint8Array.from({ length: 128 }, (_, byte) =>
  byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);

/** What may stand behind a backslash, but for `u`. */
const ESCAPES: ReadonlySet<number | undefined> = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));

/** One JSON value without white space around it, as its bytes are stored by the target. */
export function isRawJson(bytes: Uint8Array): boolean {
  return bytes.length > 0 && !isSpace(bytes[0]) && !isSpace(bytes[bytes.length - 1]) && isJsonValue(bytes);
}

/** Valid UTF-8 as Go sees it: shortest forms, no surrogates, nothing above U+10FFFF. */
export function isUtf8(bytes: Uint8Array): boolean {
  let at = 0;
  while (at >= 0 && at < bytes.length) at = (bytes[at] as number) < 0x80 ? at + 1 : pastSequence(bytes, at);
  return at >= 0;
}

function isJsonValue(bytes: Uint8Array): boolean {
  /** The closing byte of every container that is open. */
  const open: number[] = [];
  let at = 0;
  for (;;) {
    at = pastSpace(bytes, at);
    const first = bytes[at];
    const isObject = first === 0x7b;
    if (isObject || first === 0x5b) {
      if (open.length >= MAX_DEPTH) return false;
      open.push(isObject ? 0x7d : 0x5d);
      at = pastSpace(bytes, at + 1);
      if (bytes[at] !== open[open.length - 1]) {
        if (isObject) at = pastName(bytes, at);
        if (at < 0) return false;
        continue;
      }
    } else {
      at = pastScalar(bytes, at);
    }
    at = pastClosings(bytes, at, open);
    if (at < 0 || open.length === 0) return at === bytes.length;
  }
}

/** Behind a value, or at the closing byte of an empty container: to where the next value begins, or to the end. */
function pastClosings(bytes: Uint8Array, from: number, open: number[]): number {
  let at = from;
  while (at >= 0 && open.length > 0) {
    at = pastSpace(bytes, at);
    const next = bytes[at++];
    const closing = open[open.length - 1];
    if (next === closing) open.pop();
    else if (next === COMMA) return closing === 0x7d ? pastName(bytes, pastSpace(bytes, at)) : at;
    else return -1;
  }
  return at;
}

function pastName(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== QUOTE) return -1;
  const at = pastString(bytes, from);
  if (at < 0) return -1;
  const colon = pastSpace(bytes, at);
  return bytes[colon] === COLON ? colon + 1 : -1;
}

function pastScalar(bytes: Uint8Array, at: number): number {
  const first = bytes[at];
  if (first === QUOTE) return pastString(bytes, at);
  const word = LITERALS.get(first);
  if (word === undefined) return pastNumber(bytes, at);
  return word.every((letter, index) => bytes[at + index] === letter) ? at + word.length : -1;
}

function pastNumber(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === 0x2d ? from + 1 : from;
  const whole = pastDigits(bytes, at);
  if (whole === at || (bytes[at] === 0x30 && whole > at + 1)) return -1;
  at = whole;
  if (bytes[at] === 0x2e) {
    const end = pastDigits(bytes, at + 1);
    if (end === at + 1) return -1;
    at = end;
  }
  if (((bytes[at] ?? 0) | 0x20) !== 0x65) return at;
  at += bytes[at + 1] === 0x2b || bytes[at + 1] === 0x2d ? 2 : 1;
  const end = pastDigits(bytes, at);
  return end === at ? -1 : end;
}

function pastDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isBetween(bytes[at], 0x30, 0x39)) at++;
  return at;
}

/** From the opening quote to behind the closing one. */
function pastString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  while (at >= 0 && at < bytes.length) {
    while (PLAIN[bytes[at] as number] === 1) at++;
    const byte = bytes[at];
    if (byte === QUOTE) return at + 1;
    if (byte === undefined || byte < 0x20) return -1;
    at = byte === BACKSLASH ? pastEscape(bytes, at + 1) : pastSequence(bytes, at);
  }
  return -1;
}

function pastEscape(bytes: Uint8Array, at: number): number {
  if (ESCAPES.has(bytes[at])) return at + 1;
  if (bytes[at] !== 0x75) return -1;
  for (let i = 1; i <= 4; i++) {
    const byte = bytes[at + i];
    if (!isBetween(byte, 0x30, 0x39) && !isBetween((byte ?? 0) | 0x20, 0x61, 0x66)) return -1;
  }
  return at + 5;
}

/** From the first byte of a UTF-8 sequence of two to four bytes to behind it; -1 when it is not valid. */
function pastSequence(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0xc2 || first > 0xf4) return -1;
  // The second byte alone rules out long forms, surrogates, and what lies above U+10FFFF.
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (!isBetween(bytes[at + 1], least, most)) return -1;
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (let i = 2; i < length; i++) if (!isBetween(bytes[at + i], 0x80, 0xbf)) return -1;
  return at + length;
}

function pastSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at++;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isBetween(byte: number | undefined, least: number, most: number): boolean {
  return byte !== undefined && byte >= least && byte <= most;
}
