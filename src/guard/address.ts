/**
 * IP addresses and ranges as bytes. What is written is left behind here: a verdict sees bytes, so that no spelling of
 * an address can differ from another (B15).
 */
import { isIPv4, isIPv6 } from 'node:net';
import { IsthmusError, show } from '../errors.js';

/** 4 bytes of IPv4 or 16 of IPv6, big end first. */
export type AddressBytes = readonly number[];

export interface AddressRange {
  readonly bytes: AddressBytes;
  /** How many leading bits count. */
  readonly bits: number;
}

/**
 * The bytes of an address as a resolver or a socket writes it: dotted decimal, or IPv6 without brackets. Undefined for
 * anything else; with a zone too, for a zone says on which link an address is meant, and no remote lies on one.
 */
export function parseAddress(text: string): AddressBytes | undefined {
  if (isIPv4(text)) return text.split('.').map(Number);
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const [head = '', tail] = canonicalIPv6(text).split('::');
  const [before, after] = [groups(head), groups(tail ?? '')];
  const zeros = Array<number>(8 - before.length - after.length).fill(0);
  return [...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]);
}

/** The one spelling of an address (RFC 5952), without brackets. */
export function formatAddress(bytes: AddressBytes): string {
  if (bytes.length === 4) return bytes.join('.');
  const hex = Buffer.from(bytes).toString('hex');
  return canonicalIPv6(hex.replace(/.{4}(?=.)/g, '$&:'));
}

/** The URL parser writes eight groups in hex, the longest run of zeros as `::`, and nothing in dotted decimal. */
function canonicalIPv6(text: string): string {
  return new URL(`https://[${text}]`).hostname.slice(1, -1);
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

/** Reads `address/bits`. Bits behind the prefix do not count. Throws `invalidArgument`. */
export function parseRange(text: unknown): AddressRange {
  const [address = '', bits = '', ...rest] = typeof text === 'string' ? text.split('/') : [];
  const bytes = parseAddress(address);
  if (bytes !== undefined && rest.length === 0 && /^[0-9]{1,3}$/.test(bits) && Number(bits) <= bytes.length * 8) {
    return { bytes, bits: Number(bits) };
  }
  throw new IsthmusError('invalidArgument', `${show(text)} is no range of addresses, such as 10.0.0.0/8 or fd00::/8`);
}

/** True when an address lies in a range. A range of one family holds no address of the other. */
export function isIn({ bytes: prefix, bits }: AddressRange, bytes: AddressBytes): boolean {
  if (prefix.length !== bytes.length) return false;
  return prefix.every((byte, i) => {
    const mask = 0xff00 >> Math.min(8, Math.max(0, bits - 8 * i));
    return ((byte ^ (bytes[i] ?? 0)) & mask & 0xff) === 0;
  });
}
