/** Whose login goes where, when it is opened, and when it is let go. */
import { describe, expect, it } from 'vitest';
import {
  type Envelope,
  type RegisteredRemote,
  RemoteLogin,
  RemoteLogins,
  Secret,
} from '../../src/credentials/index.js';
import { refusal } from '../support/expect.js';
import { BINDING, keysOf } from './fixture.js';

const keys = keysOf('next', 'hex');

function remote(name: string, password: string, credentialVersion = 1, revision = 1): RegisteredRemote {
  const binding = { ...BINDING, name, url: `https://${name}.example` };
  const { envelope } = keys.seal(binding, new Secret(password.padEnd(24, '.')));
  return { binding, envelope, credentialVersion, revision };
}

function header(logins: RemoteLogins, name: string): string | undefined {
  const found = logins.lookup(name);
  if (found.type !== 'ready') return undefined;
  const value = found.login.authorizationFor(`https://${name}.example/v1/topics/t`);
  return Buffer.from(value.replace('Basic ', ''), 'base64').toString().replaceAll('.', '');
}

describe('B79: each remote has a login of its own', () => {
  it('and takes a new one while connected', () => {
    const logins = new RemoteLogins(keys);
    expect(logins.lookup('b')).toEqual({ type: 'unknown' });
    const [b, c] = [remote('b', 'of b'), remote('c', 'of c')];
    expect(logins.refresh(1, [b, c])).toEqual([
      { type: 'opened', name: 'b', wasReady: false },
      { type: 'opened', name: 'c', wasReady: false },
    ]);
    expect([header(logins, 'b'), header(logins, 'c')]).toEqual(['repl-from-a:of b', 'repl-from-a:of c']);
    expect(logins.lookup('d')).toEqual({ type: 'missing' });

    const rotated = remote('b', 'new of b', 2, 2);
    expect(logins.refresh(2, [rotated, c])).toEqual([{ type: 'opened', name: 'b', wasReady: true }]);
    expect([header(logins, 'b'), header(logins, 'c')]).toEqual(['repl-from-a:new of b', 'repl-from-a:of c']);
    expect(logins.lookup('b', 1)).toEqual({ type: 'stale' });
    expect(logins.lookup('b', 2).type).toBe('ready');
    expect(logins.decrypts).toBe(3);

    expect(logins.refresh(3, [rotated])).toEqual([{ type: 'dropped', name: 'c', wasReady: true }]);
    expect(header(logins, 'c')).toBeUndefined();
  });

  it('the message of a transport’s error loses header and password', () => {
    const password = 'a password of many words';
    const login = new RemoteLogin(BINDING, new Secret(password), { credentialVersion: 1, fingerprint: '' });
    const value = login.authorizationFor(`${BINDING.url}/v1/users`);
    const message = `socket hang up: {"authorization":"${value}"}, https://repl-from-a:${password}@narad.example`;
    expect(login.redact(message)).toBe(
      'socket hang up: {"authorization":"Basic [secret]"}, https://repl-from-a:[secret]@narad.example',
    );
  });
});

describe('when a login is opened', () => {
  it.each<[string, (was: RegisteredRemote) => RegisteredRemote, string[], number]>([
    ['nothing moved', (was) => was, [], 0],
    ['limits alone', (was) => ({ ...was, revision: 2 }), ['reconfigured'], 0],
    ['another password', () => remote('b', 'new', 2, 2), ['opened'], 1],
    ['a registry restored, version and all, with another password', () => remote('b', 'other'), ['opened'], 1],
    [
      'made anew under its name',
      (was) => ({ ...was, binding: { ...was.binding, id: '0'.repeat(16) } }),
      ['unreadable'],
      1,
    ],
    ['another URL under the old ciphertext', (was) => ({ ...was, binding: BINDING }), ['unreadable'], 1],
  ])('%s', (_, change, types, decrypts) => {
    const logins = new RemoteLogins(keys);
    const was = remote('b', 'of b');
    logins.refresh(1, [was]);
    const changes = logins.refresh(2, [change(was)]);
    expect(changes.map(({ type }) => type)).toEqual(types);
    expect(changes.every((told) => told.type === 'reconfigured' || told.wasReady)).toBe(true);
    expect(logins.decrypts).toBe(1 + decrypts);
  });

  it('the version of the registry alone says whether to look', () => {
    const logins = new RemoteLogins(keys);
    logins.refresh(1, [remote('b', 'of b')]);
    expect(logins.refresh(1, [])).toEqual([]);
    expect(logins.lookup('b').type).toBe('ready');
  });

  it('what does not open is not tried again until what it is sealed to moves', () => {
    const logins = new RemoteLogins(keys);
    const envelope: Envelope = { v: 1, kv: '0'.repeat(16), ct: 'AAAA' };
    const lost = { ...remote('b', 'of b'), envelope };
    expect(logins.refresh(1, [lost])).toEqual([
      { type: 'unreadable', name: 'b', reason: 'unknownKey', wasReady: false },
    ]);
    expect(logins.refresh(2, [{ ...lost, revision: 2 }])).toEqual([]);
    expect([logins.lookup('b'), logins.decrypts]).toEqual([{ type: 'unreadable', reason: 'unknownKey' }, 1]);
    expect(logins.refresh(3, [remote('b', 'of b', 2, 3)])).toEqual([{ type: 'opened', name: 'b', wasReady: false }]);
  });
});

describe('B75: a login goes to its own remote alone', () => {
  const login = new RemoteLogin(BINDING, new Secret('a password of many words'), {
    credentialVersion: 1,
    fingerprint: '',
  });

  it.each<[string, boolean]>([
    ['https://narad.example:8443/eu/v1/topics/t', true],
    ['https://NARAD.example:8443/eu/v1/users', true],
    ['https://narad.example:8443/v1/users', false],
    ['https://narad.example:8443/europe/v1/users', false],
    ['https://narad.example:8443/eu/../v1/users', false],
    ['https://narad.example:8443/eu/%2e%2e/v1/users', false],
    ['https://narad.example/eu/v1/users', false],
    ['https://narad.example:9443/eu/v1/users', false],
    ['http://narad.example:8443/eu/v1/users', false],
    ['https://eu.narad.example:8443/eu/v1/users', false],
    ['https://narad.example:8443@evil.example/eu/v1/users', false],
    ['https://someone@narad.example:8443/eu/v1/users', false],
    ['http://169.254.169.254/', false],
    ['/eu/v1/users', false],
    ['', false],
  ])('%s', (url, goes) => {
    expect(refusal(() => login.authorizationFor(url))).toBe(goes ? undefined : 'invalidArgument');
  });
});
