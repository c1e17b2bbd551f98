/** Every way to write an IPv4 address, and every IPv6 address that carries one. */
import fc from 'fast-check';

export type IPv4 = readonly [number, number, number, number];

const byte = fc.integer({ min: 0, max: 255 });
export const ipv4: fc.Arbitrary<IPv4> = fc.tuple(byte, byte, byte, byte);

const numeral = (value: number) =>
  fc.constantFrom(`${value}`, `0${value.toString(8)}`, `0x${value.toString(16)}`, `0X00${value.toString(16)}`);

/** The spellings that a URL parser takes for the address: 1 to 4 numbers in three bases, a dot at the end, wide digits. */
export function urlSpellings(ip: IPv4): fc.Arbitrary<string> {
  const wide = (text: string) => text.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
  return fc
    .integer({ min: 0, max: 3 })
    .chain((heads) => {
      const last = ip.slice(heads).reduce((sum, part) => sum * 256 + part, 0);
      return fc.tuple(...ip.slice(0, heads).map(numeral), numeral(last));
    })
    .chain((parts) => fc.constantFrom(parts.join('.'), `${parts.join('.')}.`, wide(parts.join('.')), parts.join('。')));
}

const hex = (...bytes: readonly number[]) =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/^0+(?=.)/, '');
const pair = (a: number, b: number) => hex(a, b);

/** What embeds an IPv4 address, by the name of the mechanism, without brackets. */
export const WRAPPERS: Readonly<Record<string, (ip: IPv4) => string>> = {
  mapped: ([a, b, c, d]) => `::ffff:${pair(a, b)}:${pair(c, d)}`,
  'mapped, dotted': (ip) => `::FFFF:${ip.join('.')}`,
  'mapped, in full': ([a, b, c, d]) => `0:0:0:0:0:ffff:${pair(a, b)}:${pair(c, d)}`,
  translated: ([a, b, c, d]) => `::ffff:0:${pair(a, b)}:${pair(c, d)}`,
  NAT64: ([a, b, c, d]) => `64:ff9b::${pair(a, b)}:${pair(c, d)}`,
  'NAT64, dotted': (ip) => `64:ff9b::${ip.join('.')}`,
  'local NAT64 of 96 bits': ([a, b, c, d]) => `64:ff9b:1:aa01:aa:2:${pair(a, b)}:${pair(c, d)}`,
  '6to4': ([a, b, c, d]) => `2002:${pair(a, b)}:${pair(c, d)}::1`,
  'Teredo client': ([a, b, c, d]) => `2001:0:808:808:0:1:${pair(a ^ 255, b ^ 255)}:${pair(c ^ 255, d ^ 255)}`,
  'Teredo server': ([a, b, c, d]) => `2001:0:${pair(a, b)}:${pair(c, d)}:0:1:f7f7:f7f7`,
};

/** Those that are denied whatever they embed, or whose padding reads as an address too. */
export const DENIED_WRAPPERS: Readonly<Record<string, (ip: IPv4) => string>> = {
  compatible: ([a, b, c, d]) => `::${pair(a, b)}:${pair(c, d)}`,
  'compatible, dotted': (ip) => `::${ip.join('.')}`,
  'local NAT64 of 48 bits': ([a, b, c, d]) => `64:ff9b:1:${pair(a, b)}:${pair(0, c)}:${pair(d, 8)}:808:808`,
  'local NAT64 of 56 bits': ([a, b, c, d]) => `64:ff9b:1:${pair(0xaa, a)}:${pair(0, b)}:${pair(c, d)}:808:808`,
  'local NAT64 of 64 bits': ([a, b, c, d]) => `64:ff9b:1:aa01:${pair(0, a)}:${pair(b, c)}:${pair(d, 8)}:808`,
};
