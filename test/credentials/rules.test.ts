/** What master secrets, passwords, names and CA bundles may look like, as tables. */
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import {
  type Binding,
  CredentialKeys,
  checkCaPem,
  checkPauseReason,
  checkRemoteId,
  checkRemoteName,
  checkUsername,
  drawRemoteId,
  drawSalt,
  isStrongSecret,
  readPassword,
  Secret,
} from '../../src/credentials/index.js';
import { refusal } from '../support/expect.js';
import { BINDING, keySet, keysOf } from './fixture.js';

const bytes = Buffer.from(Array.from({ length: 32 }, (_, i) => i * 7 + 1));

describe('a master secret', () => {
  it.each<[string, string, boolean]>([
    ['32 bytes as hex', bytes.toString('hex'), true],
    ['upper-case hex', bytes.toString('hex').toUpperCase(), true],
    ['with space around it', ` ${bytes.toString('hex')}\n`, true],
    ['32 bytes as base64', bytes.toString('base64'), true],
    ['31 bytes as hex', bytes.toString('hex').slice(2), false],
    ['half a byte too much', `${bytes.toString('hex')}0`, false],
    ['31 bytes as base64', bytes.subarray(1).toString('base64'), false],
    ['digits alone', '12'.repeat(40), false],
    ['one byte again and again', 'a1'.repeat(40), false],
    ['one byte again and again, as base64', Buffer.alloc(33, 0x6d).toString('base64'), false],
    ['base64 without its padding', bytes.toString('base64').replace(/=+$/, ''), false],
    ['base64 of another alphabet', `-_${bytes.toString('base64').slice(2)}`, false],
    ['base64 with bits after its end', bytes.toString('base64').replace(/.=$/, '9='), false],
    ['words', 'correct horse battery staple and forty more words', false],
    ['letters alone', 'abcdefGH'.repeat(6), false],
    ['letters of one case', 'abcdefg1'.repeat(6), false],
    ['capitals alone', 'ABCDEFG1'.repeat(6), false],
  ])('%s', (_, text, isStrong) => {
    expect(isStrongSecret(new Secret(text))).toBe(isStrong);
  });

  it('weak, it makes no keys; as the one before, it still opens', () => {
    const weak = new Secret('swordfish');
    const salt = Buffer.alloc(32, 1);
    const make = (secret: Secret, previousSecret: Secret) => () => new CredentialKeys({ secret, previousSecret, salt });
    const strong = new Secret(keySet('hex').secret);
    expect(refusal(make(weak, strong))).toBe('invalidArgument');
    expect(refusal(make(strong, weak))).toBeUndefined();
  });

  it('counts as it is written: space around it makes another key', () => {
    const { secret, salt } = keySet('hex');
    const kvOf = (text: string) =>
      new CredentialKeys({ secret: new Secret(text), salt: Buffer.from(salt, 'base64') }).current.kv;
    expect(kvOf(`${secret}\n`)).not.toBe(kvOf(secret));
    expect(kvOf(secret.toUpperCase())).not.toBe(kvOf(secret));
  });
});

describe('what is refused before anything is sealed', () => {
  const long = (length: number) => 'p'.repeat(length);
  it.each<[string, (value: unknown) => unknown, readonly unknown[], readonly unknown[]]>([
    [
      'password',
      readPassword,
      [long(24), long(72), 'é'.repeat(12), 'with : and \n in its midst'],
      [long(23), long(73), 'é'.repeat(37), '', `\ud800${long(30)}`, undefined, 7],
    ],
    ['name', checkRemoteName, ['a', 'a-1', long(63)], ['', '1a', '-a', 'A', 'a_b', 'a\n', long(64), undefined]],
    ['id', checkRemoteId, ['0123456789abcdef'], ['0123456789abcde', '0123456789ABCDEF', '0123456789abcdef0', 1]],
    ['user', checkUsername, ['a', 'A.b_c-9', long(64)], ['', 'a:b', 'a b', 'é', long(65), null]],
    [
      'reason',
      checkPauseReason,
      ['', 'wartung bis März ☀', long(256)],
      ['a\nb', 'a\u00a0b', 'é'.repeat(129), '\u200b'],
    ],
  ])('%s', (_, check, good, bad) => {
    expect(good.map((value) => refusal(() => check(value)))).toEqual(good.map(() => undefined));
    expect(bad.map((value) => refusal(() => check(value)))).toEqual(bad.map(() => 'invalidArgument'));
  });

  it.each<Partial<Binding>>([
    { name: 'B' },
    { id: 'a41c' },
    { url: 'http://narad.example' },
    { url: 'https://narad.example/ä' },
    { url: `https://${long(2048)}` },
    { username: 'a:b' },
    { trustAnchor: 'roots' },
    { trustAnchor: 'A'.repeat(128) },
  ])('a binding with %o', (change) => {
    expect(refusal(() => keysOf('hex').seal({ ...BINDING, ...change }, new Secret(long(24))))).toBe('invalidArgument');
    expect(refusal(() => keysOf('hex').seal(BINDING, new Secret(long(23))))).toBe('invalidArgument');
  });
});

describe('a CA bundle', () => {
  const [first = '', second = ''] = rootCertificates;
  const filler = `-----BEGIN CERTIFICATE-----\n${Buffer.alloc(48).toString('base64')}\n-----END CERTIFICATE-----\n`;

  it.each<[string, unknown, boolean]>([
    ['one certificate', first, true],
    ['sixteen', `${first}\n`.repeat(16), true],
    ['with blank lines and CRLF', `\r\n${first.replaceAll('\n', '\r\n')}\r\n\r\n${second}\n`, true],
    ['seventeen', `${first}\n`.repeat(17), false],
    ['none', '\n', false],
    ['a note beside it', `Our CA\n${first}`, false],
    ['a key beside it', `${first}\n-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n`, false],
    ['cut', `${first}\n${first.slice(0, -26)}`, false],
    ['one begun within another', first.replace('\n', '\nMIID\n-----BEGIN CERTIFICATE-----\n'), false],
    ['not base64', first.replace(/^M/m, '*'), false],
    ['not a certificate', filler, false],
    ['nothing between the lines', '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n', false],
    ['more than 64 KiB', `${first}${'\n'.repeat(65_536)}`, false],
    ['no text', undefined, false],
  ])('%s', (_, pem, isGood) => {
    expect(refusal(() => checkCaPem(pem))).toBe(isGood ? undefined : 'invalidArgument');
  });
});

it('salts and ids have their lengths', () => {
  expect(drawSalt()).toHaveLength(32);
  expect(checkRemoteId(drawRemoteId())).toMatch(/^[0-9a-f]{16}$/);
  expect(drawRemoteId(() => Buffer.from('0011223344556677', 'hex'))).toBe('0011223344556677');
});
