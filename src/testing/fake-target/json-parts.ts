/**
 * Takes JSON apart without reading it: members and elements as the bytes they were written in, so that what is stored
 * is what came. Texts here are Latin-1, one letter a byte; they must be known to be JSON.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const isOpening = (unit: number): boolean => unit === 0x7b || unit === 0x5b;
const isClosing = (unit: number): boolean => unit === 0x7d || unit === 0x5d;

/** Whether this is one JSON value as Go's reader takes it: by its form, whatever the bytes inside its strings. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The members of an object by lower-case name, each as its raw text: names match in any case, and later ones win. */
export function rawMembers(object: string): Map<string, string> {
  return new Map(
    splitTop(object).map((member) => {
      const end = pastString(member, 0);
      const value = member.slice(member.indexOf(':', end) + 1);
      return [stringBytes(member.slice(0, end)).toString('utf8').toLowerCase(), value.trim()] as const;
    }),
  );
}

/** The elements of an array, each as its raw text. */
export function rawElements(array: string): string[] {
  return splitTop(array);
}

/** The bytes that a JSON string stands for, in UTF-8; what is not UTF-8 becomes U+FFFD, as in Go. */
export function stringBytes(raw: string): Buffer {
  return Buffer.from(JSON.parse(Buffer.from(raw, 'latin1').toString('utf8')) as string, 'utf8');
}

/** How deep a value is nested: 0 for a number, 1 for an empty array. */
export function nestingOf(raw: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < raw.length; at++) {
    const unit = raw.charCodeAt(at);
    if (unit === QUOTE) at = pastString(raw, at) - 1;
    else if (isOpening(unit)) deepest = Math.max(deepest, ++depth);
    else if (isClosing(unit)) depth--;
  }
  return deepest;
}

/** What lies between the outer brackets, cut at its own commas, without the spaces around. */
function splitTop(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 1;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = pastString(text, at) - 1;
    else if (isOpening(unit)) depth++;
    else if (isClosing(unit)) depth--;
    if ((unit === COMMA && depth === 1) || depth === 0) {
      const part = text.slice(start, at).trim();
      if (part !== '') parts.push(part);
      start = at + 1;
    }
  }
  return parts;
}

function pastString(text: string, from: number): number {
  let at = from + 1;
  for (let unit = text.charCodeAt(at); unit !== QUOTE; unit = text.charCodeAt(at)) at += unit === BACKSLASH ? 2 : 1;
  return at + 1;
}
