/** Which addresses may be reached, in every spelling and inside every other address. */
import { BlockList } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalUrl, Guard } from '../../src/guard/index.js';
import { refusal } from '../support/expect.js';
import { DENIED_WRAPPERS, type IPv4, ipv4, urlSpellings, WRAPPERS } from './spellings.js';

/** The table of denied ranges, as it stands in the reference, and two more. */
const DENIED = [
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '168.63.129.16/32', '100.100.100.200/32'],
  ...['224.0.0.0/4', '255.255.255.255/32', '::/128', '::1/128', '::/96', 'fe80::/10', 'ff00::/8', 'fd00:ec2::/32'],
  ...['fd20:ce::254/128', 'fd00:c1::a9fe:a9fe/128', 'fec0::/10', '100::/64'],
];
const RANGES = DENIED.map((text) => {
  const [address = '', bits = ''] = text.split('/');
  return { address, bits: Number(bits), family: address.includes(':') ? ('ipv6' as const) : ('ipv4' as const) };
});

/** Node's own list of blocked ranges, that knows nothing of what an address embeds, but for mapped ones. */
const oracle = new BlockList();
for (const { address, bits, family } of RANGES) oracle.addSubnet(address, bits, family);

const guard = new Guard();
const isPermitted = (text: string, by = guard) => by.judgeAddress(text).type === 'permitted';
const isBlocked = (ip: IPv4) => oracle.check(ip.join('.'));

/** Addresses in and around the denied ranges, and anywhere. */
const interesting: fc.Arbitrary<IPv4> = fc.oneof(
  ipv4,
  fc
    .tuple(fc.constantFrom(...RANGES.filter(({ family }) => family === 'ipv4')), fc.integer({ min: -2, max: 2 }))
    .map(([{ address, bits }, offset]): IPv4 => {
      const first = Buffer.from(address.split('.').map(Number)).readUInt32BE();
      const edge = offset < 0 ? first : first + 2 ** (32 - bits);
      const [a = 0, b = 0, c = 0, d = 0] = new Uint8Array(new Uint32Array([edge + offset]).buffer).reverse();
      return [a, b, c, d];
    }),
);

const hextet = fc.oneof(
  fc.constantFrom(0, 1, 0x64, 0xff9b, 0xffff, 0xfe80, 0xfd00, 0xec2, 0xff02),
  fc.integer({ max: 0xffff, min: 0 }),
);
const ipv6 = fc
  .array(hextet, { minLength: 8, maxLength: 8 })
  .map((all) => all.map((one) => one.toString(16)).join(':'));

describe('an address', () => {
  it('is denied where the table says so, and nowhere else', () => {
    fc.assert(
      fc.property(interesting, (ip) => {
        expect(isPermitted(ip.join('.'))).toBe(!isBlocked(ip));
      }),
      { numRuns: 500, seed: 15 },
    );
  });

  it('of IPv6 is denied at least where the table says so, and the same in all its spellings', () => {
    fc.assert(
      fc.property(ipv6, (text) => {
        const verdict = guard.judgeAddress(text);
        if (oracle.check(text, 'ipv6')) expect(verdict.type).toBe('denied');
        for (const spelling of [text.toUpperCase(), text.replace(/\b\w{1,3}\b/g, (one) => one.padStart(4, '0'))]) {
          expect(guard.judgeAddress(spelling)).toEqual(verdict);
        }
      }),
      { numRuns: 500, seed: 15 },
    );
  });

  it.each(Object.entries(WRAPPERS))('%s: what is inside decides', (_, wrap) => {
    fc.assert(
      fc.property(interesting, (ip) => {
        expect(isPermitted(wrap(ip))).toBe(!isBlocked(ip));
      }),
    );
  });

  it.each(Object.entries(DENIED_WRAPPERS))('%s: nothing that is denied passes', (_, wrap) => {
    fc.assert(
      fc.property(interesting.filter(isBlocked), (ip) => {
        // A byte of zero in front reads as padding of a shorter prefix, and leads nowhere else.
        if (ip[0] !== 0) expect(isPermitted(wrap(ip))).toBe(false);
      }),
    );
  });

  it.each([
    ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '8.8.8.8', 'fc00::1', 'fd12::1', '2001:db8::1'],
    ...['2606:4700:4700::1111', '64:ff9b::808:808', '64:ff9b::10.0.0.1', '2002:808:808::1', 'fd20:ce::255'],
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '64:ff9b:1:fffe::808:808',
  ])('%s may be reached: a private network is no secret, and neither is a public one behind a translator', (text) => {
    expect(isPermitted(text)).toBe(true);
  });

  it.each([
    ...['', 'localhost', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', ' 10.0.0.1', '10.0.0.1/32', '10.0.0.256'],
    ...['fe80::1%eth0', '2001:db8::1%1', '[2001:db8::1]', '2001:db8::1::2', '1:2:3:4:5:6:7', '::ffff:1.2.3'],
  ])('%j is none as a resolver writes them', (text) => {
    expect(guard.judgeAddress(text)).toEqual({ type: 'denied', cause: 'notAnAddress' });
  });

  it('says why it was denied', () => {
    const causes = ['0.0.0.0', '::1', '::7f00:1', 'fe80::1', 'fd00:ec2::254', 'ff02::1', '255.255.255.255'].map(
      (text) => guard.judgeAddress(text),
    );
    expect(causes.map((verdict) => verdict.type === 'denied' && verdict.cause)).toEqual([
      ...['unspecified', 'loopback', 'compatible', 'linkLocal', 'metadata', 'multicast', 'broadcast'],
    ]);
  });
});

describe('B15: the IPv4-mapped address', () => {
  it.each([
    ['https://[::ffff:127.0.0.1]/', '127.0.0.1'],
    ['https://[::ffff:7f00:1]/', '127.0.0.1'],
    ['https://[0:0::0:FFFF:127.0.0.1]/', '127.0.0.1'],
    ['https://[::ffff:169.254.169.254]/', '169.254.169.254'],
  ])('%s is refused in a URL and in an answer of a resolver alike', (url, host) => {
    const target = canonicalUrl(url);
    expect(target.host).toBe(host);
    expect(guard.judgeTarget(target)).toEqual({ type: 'refused', reason: 'address' });
    expect(guard.judgeResolved([url.slice(9, -2)])).toEqual({ type: 'refused', reason: 'address' });
  });

  it('and permitted where the IPv4 address is, pinned as IPv4', () => {
    const permitted = { type: 'permitted', addresses: [{ address: '8.8.8.8', family: 4 }] };
    expect(guard.judgeTarget(canonicalUrl('https://[::ffff:8.8.8.8]/'))).toEqual(permitted);
    expect(guard.judgeResolved(['::ffff:808:808'])).toEqual(permitted);
  });
});

describe('B72: addresses of transition', () => {
  it.each([
    ...['64:ff9b::a9fe:a9fe', '64:ff9b:1::7f00:1', '2002:7f00:1::', '2001:0:4136:e378:8000:63bf:80ff:fffe'],
    ...['::7f00:1', 'fec0::1', 'fe80::1', '::', '100::1', 'ff0e::1', '::ffff:0:127.0.0.1', '::ffff:0:a9fe:a9fe'],
    ...['64:ff9b:1:7f00:0:100::', '64:ff9b:1:ff7f:0:1::', '64:ff9b:1:ffff:7f:0:100:0', '64:ff9b:1:7f00:0:108:808:808'],
  ])('%s is refused, as a literal and resolved', (text) => {
    expect(guard.judgeTarget({ host: text, port: 443 })).toEqual({ type: 'refused', reason: 'address' });
    expect(guard.judgeResolved([text])).toEqual({ type: 'refused', reason: 'address' });
  });
});

describe('IPv4 as a URL writes it', () => {
  it('is one host and one verdict, whatever the spelling', () => {
    const spelled = interesting.chain((ip) => fc.tuple(fc.constant(ip), urlSpellings(ip)));
    fc.assert(
      fc.property(spelled, ([ip, text]) => {
        const target = canonicalUrl(`https://${text}`);
        expect(target.href).toBe(`https://${ip.join('.')}`);
        expect(guard.judgeTarget(target).type).toBe(isBlocked(ip) ? 'refused' : 'permitted');
        expect(guard.judgeTarget({ host: text, port: 443 })).toEqual(guard.judgeTarget(target));
      }),
      { numRuns: 500, seed: 15 },
    );
  });
});

describe('what the operator allows', () => {
  it.each<[string, readonly string[], string, boolean]>([
    ['loopback', ['127.0.0.0/8'], '127.0.0.1', true],
    ['loopback, mapped', ['127.0.0.0/8'], '::ffff:127.0.0.1', true],
    ['loopback, and not that of IPv6', ['127.0.0.0/8'], '::1', false],
    ['one address', ['127.0.0.1/32'], '127.0.0.2', false],
    ['loopback of IPv6', ['::1/128'], '::1', true],
    ['all of IPv6, and not the IPv4 inside', ['::/0'], '64:ff9b::7f00:1', false],
    ['all of IPv6 and that IPv4', ['::/0', '127.0.0.0/8'], '64:ff9b::7f00:1', true],
    ['the inner form, and not the outer', ['127.0.0.0/8'], '::7f00:1', false],
    ['the outer form, and not the inner', ['::/96'], '::7f00:1', false],
    ['both', ['127.0.0.0/8', '::/96'], '::7f00:1', true],
    ['a range that is written from within', ['169.254.169.254/16'], '169.254.1.1', true],
    ['a prefix that ends within a byte', ['169.254.128.0/17'], '169.254.127.255', false],
    ['the other half', ['169.254.128.0/17'], '169.254.128.0', true],
  ])('%s', (_, allowAddresses, text, permitted) => {
    expect(isPermitted(text, new Guard({ allowAddresses }))).toBe(permitted);
  });

  it.each([
    ...['', '127.0.0.1', '127.0.0.0/', '127.0.0.0/33', '127.0.0.0/-1', '127.0.0.0/8/8', '127.0.0.0/8 ', '::/129'],
    ...['fe80::%eth0/10', 'localhost/8', '127.1/8', '0.0.0.0/0x8', '::ffff:127.0.0.0/104'],
  ])('%j is no range', (text) => {
    expect(refusal(() => new Guard({ allowAddresses: [text] }))).toBe('invalidArgument');
  });
});
