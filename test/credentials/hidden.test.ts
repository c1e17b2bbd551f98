/** No secret shows itself: every public object is printed in every way there is, and searched for what was planted. */
import { format, inspect } from 'node:util';
import { serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import {
  CredentialKey,
  CredentialKeys,
  checkUsername,
  RemoteLogin,
  RemoteLogins,
  readPassword,
  Secret,
} from '../../src/credentials/index.js';
import { BINDING, keySet } from './fixture.js';

const PASSWORD = 'planted password, 32 bytes long.';
const { secret: MASTER, salt, aesKey, fingerprintKey } = keySet('hex');
const PREVIOUS = keySet('next');

/** Everything that must not be seen, in the spellings that a print may give it. */
const PLANTED = [
  PASSWORD,
  MASTER,
  PREVIOUS.secret,
  ...[aesKey, fingerprintKey, PREVIOUS.aesKey, PREVIOUS.fingerprintKey, Buffer.from(PASSWORD).toString('hex')],
].flatMap((text) => {
  const bytes = Buffer.from(text, /^[0-9a-f]+$/.test(text) ? 'hex' : 'utf8');
  const spaced = bytes.toString('hex').replace(/..(?=.)/g, '$& ');
  return [text, bytes.toString('base64').replace(/=+$/, ''), spaced, [...bytes].join(', ')].filter(
    (spelling) => spelling.length > 8,
  );
});
const TOKEN = Buffer.from(`${BINDING.username}:${PASSWORD}`).toString('base64');

const deep = { depth: Number.POSITIVE_INFINITY, maxArrayLength: null, maxStringLength: null } as const;
const PRINTS: Record<string, (value: unknown) => string> = {
  json: (value) => JSON.stringify(value, undefined, 1) ?? '',
  text: (value) => `${value}${String(value)}`,
  inspect: (value) => inspect(value, deep),
  'inspect, hidden': (value) => inspect(value, { ...deep, showHidden: true, getters: true }),
  'inspect, raw': (value) => inspect(value, { ...deep, showHidden: true, getters: true, customInspect: false }),
  format: (value) => format('%s %o %O %j', value, value, value, value),
  clone: (value) => Buffer.from(serialize(JSON.parse(JSON.stringify(value) ?? 'null'))).toString('latin1'),
  own: (value) => inspect(members(value), deep),
};

/** What a walk over own members finds, symbols and getters of the prototypes among them. */
function members(value: unknown, seen = new Set<unknown>()): unknown[] {
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  const found: unknown[] = [];
  for (let at: object | null = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { get, value: own }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      const held: unknown = get === undefined ? own : get.call(value);
      found.push(name, typeof held === 'object' ? members(held, seen) : held);
    }
  }
  return found;
}

const keys = new CredentialKeys({
  secret: new Secret(MASTER),
  previousSecret: new Secret(PREVIOUS.secret),
  salt: Buffer.from(salt, 'base64'),
});
const { envelope, fingerprint } = keys.seal(BINDING, new Secret(PASSWORD));
const logins = new RemoteLogins(keys);
const remote = { binding: BINDING, envelope, credentialVersion: 1, revision: 1 };

const OBJECTS: Record<string, unknown> = {
  secret: new Secret(PASSWORD),
  password: readPassword(PASSWORD),
  options: { secret: new Secret(MASTER), previousSecret: new Secret(PREVIOUS.secret) },
  key: new CredentialKey(new Secret(MASTER), Buffer.from(salt, 'base64')),
  keys,
  envelope,
  opened: keys.open(BINDING, envelope),
  failed: keys.open({ ...BINDING, name: 'c' }, envelope),
  login: new RemoteLogin(BINDING, new Secret(PASSWORD), { credentialVersion: 1, fingerprint }),
  changes: logins.refresh(1, [remote]),
  lookup: logins.lookup('b'),
  logins,
  nested: { map: new Map([['b', logins.lookup('b')]]), set: new Set([keys]), list: [[{ keys }]] },
};

const REFUSALS: Record<string, () => unknown> = {
  'a password that is too long': () => readPassword(PASSWORD.repeat(3)),
  'a password that cannot be written': () => readPassword(`${PASSWORD}\ud800`),
  'a weak master secret': () => new CredentialKeys({ secret: new Secret(PASSWORD), salt: Buffer.alloc(32) }),
  'a short salt': () => new CredentialKey(new Secret(MASTER), Buffer.alloc(2)),
  'a password in the place of a user': () => checkUsername(PASSWORD),
  'a password in the place of a URL': () => keys.seal({ ...BINDING, url: PASSWORD }, new Secret(PASSWORD)),
  'a password in the place of a CA': () => keys.seal({ ...BINDING, trustAnchor: PASSWORD }, new Secret(PASSWORD)),
  'a source of nonces that fails': () =>
    new CredentialKey(new Secret(MASTER), Buffer.alloc(32)).seal(BINDING, new Secret(PASSWORD), () => Buffer.alloc(1)),
  'a login that goes elsewhere': () => {
    const found = logins.lookup('b');
    return found.type === 'ready' ? found.login.authorizationFor(`https://${PASSWORD}@elsewhere.example`) : found;
  },
};

function leaks(print: string): string[] {
  return [...PLANTED, TOKEN].filter((planted) => print.includes(planted));
}

describe('B79: secrets are not seen', () => {
  it('the search finds what lies open', () => {
    for (const [name, print] of Object.entries(PRINTS)) {
      expect(leaks(print(name === 'text' ? PASSWORD : { open: { password: PASSWORD } })), name).not.toEqual([]);
    }
  });

  it.each(Object.entries(OBJECTS))('%s', (_, value) => {
    for (const [name, print] of Object.entries(PRINTS)) expect(leaks(print(value)), name).toEqual([]);
  });

  it.each(Object.entries(REFUSALS))('refused: %s', (_, refused) => {
    let thrown: unknown;
    try {
      refused();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(Error);
    const { message, stack, cause } = thrown as Error;
    const prints = [
      message,
      String(stack),
      ...Object.values(PRINTS).flatMap((print) => [print(thrown), print({ cause })]),
    ];
    expect(prints.flatMap(leaks)).toEqual([]);
  });
});
