/** One spelling for each place a remote can be, and what is no such place. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalHost, canonicalUrl, Guard } from '../../src/guard/index.js';
import { refusal } from '../support/expect.js';

const long = (length: number) => 'a'.repeat(length);
const names = (count: number) => Array.from({ length: count }, () => long(49)).join('.');

describe('the canonical URL', () => {
  it.each([
    ['https://narad.example', 'https://narad.example'],
    ['HTTPS://Narad.EXAMPLE/', 'https://narad.example'],
    ['https://narad.example.:443//', 'https://narad.example'],
    ['https://narad.example:8443/eu/', 'https://narad.example:8443/eu'],
    ['https://narad.example//a/./b/../c//', 'https://narad.example/a/c'],
    ['https://narad.example/../..', 'https://narad.example'],
    ['https://narad.example/A~b_c.d-e', 'https://narad.example/A~b_c.d-e'],
    ['https://narad.example:80', 'https://narad.example:80'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['https://BÜCHER.example', 'https://xn--bcher-kva.example'],
    ['https://bu\u0308cher.example', 'https://xn--bcher-kva.example'],
    ['https://straße.example', 'https://xn--strae-oqa.example'],
    ['https://narad。example。', 'https://narad.example'],
    ['https://ｎａｒａｄ.example', 'https://narad.example'],
    ['https://na\u00adrad.example', 'https://narad.example'],
    ['https://1.narad.example', 'https://1.narad.example'],
    ['https://10.0.0.1.', 'https://10.0.0.1'],
    ['https://012.0x0.1', 'https://10.0.0.1'],
    ['https://１０.0.0.1', 'https://10.0.0.1'],
    ['https://[2001:DB8:0:0::1]:8443', 'https://[2001:db8::1]:8443'],
    ['https://[::ffff:10.0.0.1]:443', 'https://10.0.0.1'],
    ['https://[64:ff9b::10.0.0.1]', 'https://[64:ff9b::a00:1]'],
    [`https://${long(63)}.example`, `https://${long(63)}.example`],
    [`https://${names(5)}.abc`, `https://${names(5)}.abc`],
  ])('%s', (text, canonical) => {
    expect(canonicalUrl(text).href).toBe(canonical);
    expect(canonicalUrl(canonical).href).toBe(canonical);
  });

  const hosts = (text: string) => text.split(' ').map((host) => `https://${host}`);

  it.each<[string, readonly unknown[]]>([
    [
      'text of at most 2048 bytes',
      [undefined, 7, `https://a.example/${long(2048)}`, `https://a.example/${'ä'.repeat(1020)}`],
    ],
    ['2048 bytes in its canonical form', [`https://ü.example/${long(2027)}`]],
    ['begin with https://', ['', 'http://a.example', 'wss://a.example', 'a.example', '//a.example', 'https:a.example']],
    ['no query', hosts('a@b.example a:b@b.example @b.example b.example? b.example/# a.example/a@b a.example/?a=/b')],
    [
      'no space',
      [' https://a', 'https://a ', 'https://a\n', 'https://a\tb', 'https://a/\u2028', 'https://a\u0085', 'https://a\0'],
    ],
    ['backslash', hosts('a\\b a.example\\ a.example/\\b \\a')],
    ['percent-escape', hosts('a%2eexample a.example/%61 %61 [fe80::1%eth0] [fe80::1%25eth0]')],
    [
      'a port of 1..65535',
      hosts(
        'a: a:0 a:00443 a:0443 a:65536 a:65979 a:4294967739 a:-1 a:+443 a:4e2 a:443:443 a:٤٤٣ a:x 2001:db8::1 [::1]:[::1]',
      ),
    ],
    ['one host', hosts('[::1 [::1]x [[::1]] a[b] [::1][::1] ]::1[')],
    ['a name or an address', hosts(`℀.example a.example／a a＠b a\u2024／ ${long(64)}.example ${names(5)}.abcd`)],
    ['a name or an address', hosts('256.0.0.1 1.2.3.4.5 1.2.3.08 0xg.1 4294967296 a.1 [10.0.0.1] [] [narad] ::1]')],
    ['a name or an address', hosts('[1:2:3:4:5:6:7] [::ffff:010.0.0.1] [2001:db8::1::2]')],
    ['a path of letters', hosts("a/ä a/a;b a/a=b a/a:b a/a'b a/! a/*")],
  ])('must have: %s', (rule, texts) => {
    const messages = texts.map((text) => refused(text));
    expect(messages.filter((message) => !message.includes(rule))).toEqual([]);
  });

  it('whatever is accepted says the same read again, and to the URL parser of the platform', () => {
    const piece = fc.oneof(
      fc.constantFrom('https://', '[', ']', '::', ':', '@', '.', '..', '/', '%', '?', '#', '\\', '0x7f', '127.0.0.1'),
      fc.constantFrom('narad', 'example', '443', '。', '／', 'ß', '\u00ad', 'xn--', '-', '~', '１'),
      fc.string({ unit: 'binary', maxLength: 3 }),
    );
    const text = fc.oneof(
      fc.array(piece, { maxLength: 8 }).map((pieces) => `https://${pieces.join('')}`),
      fc.webUrl({ validSchemes: ['https'], withQueryParameters: false }),
    );
    fc.assert(
      fc.property(text, (given) => {
        if (refusal(() => canonicalUrl(given)) !== undefined) return;
        const { href, host, port, path } = canonicalUrl(given);
        expect(canonicalUrl(href)).toEqual({ href, host, port, path });
        expect(canonicalHost(host)).toBe(host);
        const { hostname, port: shown, pathname, username, search, hash } = new URL(`${href}/v1/users`);
        expect([hostname.replace(/^\[|\]$/g, ''), Number(shown || 443)]).toEqual([host, port]);
        expect([pathname, username, search, hash]).toEqual([`${path}/v1/users`, '', '', '']);
      }),
      { numRuns: 2_000, seed: 79 },
    );
  });

  it('B79: a refusal does not show the URL, for people put secrets into URLs', () => {
    const secret = 'hunter2hunter2';
    const urls = [`https://a:${secret}@b`, `https://b/?k=${secret}`, `${secret}://b`, `https://b:${secret}`];
    for (const url of [...urls, `https://b/%${secret}`, `https://${secret}_`, `https://b/${secret}!`]) {
      expect(refused(url)).not.toContain(secret);
    }
  });
});

describe('allowed hosts and ports', () => {
  const judge = (allowedHosts: readonly string[], host: string) => {
    const verdict = new Guard({ allowedHosts }).judgeTarget({ host, port: 443 });
    return verdict.type === 'refused' ? verdict.reason : verdict.type;
  };

  it.each<[string, readonly string[], string, string]>([
    ['an empty list admits all', [], 'narad.example', 'resolve'],
    ['a name', ['narad.example'], 'narad.example', 'resolve'],
    ['in another spelling', ['BÜCHER.example.'], 'xn--bcher-kva.example', 'resolve'],
    ['asked in another spelling', ['narad.example'], 'NARAD.example.', 'resolve'],
    ['not what is below it', ['narad.example'], 'eu.narad.example', 'allowlist'],
    ['below a star', ['*.narad.example'], 'eu.narad.example', 'resolve'],
    ['at any depth', ['*.narad.example'], 'a.b.c.narad.example', 'resolve'],
    ['not the name itself', ['*.narad.example'], 'narad.example', 'allowlist'],
    ['not a name that only ends alike', ['*.narad.example'], 'notnarad.example', 'allowlist'],
    ['an address', ['10.0.0.1'], '10.0.0.1', 'permitted'],
    ['in another spelling', ['::ffff:a00:1'], '0x0a.1', 'permitted'],
    ['of IPv6, in brackets or not', ['[2001:DB8::1]'], '2001:db8:0::1', 'permitted'],
    ['another address', ['10.0.0.1'], '10.0.0.2', 'allowlist'],
    ['allowed, but denied as an address', ['127.0.0.1'], '127.0.0.1', 'address'],
    ['no host at all', [], 'a b', 'address'],
    ['in brackets, which a dial has not', [], '[2001:db8::1]', 'address'],
  ])('%s', (_, allowedHosts, host, outcome) => {
    expect(judge(allowedHosts, host)).toBe(outcome);
  });

  it.each([
    ...['', '*', '*.', '*.*.example', 'a.*', 'a*.example', '*example', '**.example', '*.10.0.0.1', '*.1', '*.::1'],
    ...['https://narad.example', 'narad.example:443', 'narad.example/', 'na rad', '.example', '10.0.0.0/8', '[::1'],
  ])('%j is no pattern', (entry) => {
    expect(refusal(() => new Guard({ allowedHosts: ['narad.example', entry] }))).toBe('invalidArgument');
  });

  it.each([0, -1, 65_536, 65_979, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('port %d cannot be allowed', (port) => {
    expect(refusal(() => new Guard({ allowedPorts: [443, port] }))).toBe('invalidArgument');
  });

  it('the port is judged first, and as it is: nothing is cut to 16 bits', () => {
    const guard = new Guard({ allowedHosts: ['narad.example'], allowedPorts: [443, 8443] });
    const reasons = [443, 8443, 80, 0, 443 + 65_536, 443.5, Number.NaN].map((port) => {
      const verdict = guard.judgeTarget({ host: 'elsewhere.example', port });
      return verdict.type === 'refused' && verdict.reason;
    });
    expect(reasons).toEqual(['allowlist', 'allowlist', 'port', 'port', 'port', 'port', 'port']);
    expect(new Guard({ allowedPorts: [] }).judgeTarget({ host: 'narad.example', port: 443 }).type).toBe('refused');
  });
});

/** The message with which a URL is refused. */
function refused(url: unknown): string {
  try {
    return `accepted as ${canonicalUrl(url).href}`;
  } catch (error) {
    return String(error);
  }
}
