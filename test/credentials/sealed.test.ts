/** Seal and open, against credentials that another program sealed and by the laws that no example shows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Binding, CredentialKey, Secret, trustAnchorOf } from '../../src/credentials/index.js';
import { refusal } from '../support/expect.js';
import { BINDING, FIXTURE, keySet, keysOf } from './fixture.js';

const PASSWORD = 'a password of many words';

describe('credentials that another program sealed', () => {
  it('all of them are there: 13 sealed, 27 that must not open, 7 of a rotation', () => {
    const { sealed, refused, rotation } = FIXTURE;
    expect([sealed.length, refused.length, rotation.length]).toEqual([13, 27, 7]);
  });

  it.each(FIXTURE.keys)('key set $name has its key id', ({ name, kv }) => {
    expect(keysOf(name).current.kv).toBe(kv);
  });

  it.each(FIXTURE.trustAnchors)('trust anchor $trustAnchor', ({ pem, trustAnchor }) => {
    expect(trustAnchorOf(pem)).toBe(trustAnchor);
    expect(trustAnchorOf(`\n${pem.replaceAll('\n', '\r\n')}\r\n`)).toBe(trustAnchor);
  });

  it.each(FIXTURE.sealed)('$name opens, and is sealed to the same bytes', (sealed) => {
    const { key, record, password, nonce, envelope, fingerprint } = sealed;
    const keys = keysOf(key, undefined, nonce);
    expect(opened(keys.open(record, envelope))).toEqual({ password, fingerprint });
    expect(keys.seal(record, new Secret(password))).toEqual({ envelope, fingerprint });
  });

  it.each(FIXTURE.refused)(
    '$name is refused',
    ({ keys: [current = '', previous], record, envelope, expect: reason }) => {
      expect(keysOf(current, previous).open(record, envelope)).toEqual({ type: 'failed', reason });
    },
  );

  it.each(FIXTURE.rotation)('rotation: $name', ({ current, previous, record, envelope, opens, ...then }) => {
    const result = keysOf(current, previous).open(record, envelope);
    if (opens) expect(result).toMatchObject({ type: 'opened', fingerprint: then.fingerprint });
    else expect(result).toEqual({ type: 'failed', reason: then.expect });
  });
});

describe('laws', () => {
  const keys = keysOf('next', 'hex');
  const password = fc
    .string({ unit: 'binary', minLength: 24, maxLength: 72 })
    .filter((text) => Buffer.byteLength(text) <= 72);

  it('what was sealed opens, whatever the password, and no two seals are alike', () => {
    fc.assert(
      fc.property(password, (text) => {
        const { envelope, fingerprint } = keys.seal(BINDING, new Secret(text));
        expect(opened(keys.open(BINDING, JSON.parse(JSON.stringify(envelope))))).toEqual({
          password: text,
          fingerprint,
        });
        expect(keys.seal(BINDING, new Secret(text)).envelope.ct).not.toBe(envelope.ct);
      }),
    );
  });

  it('one changed bit anywhere, and it does not open', () => {
    const { envelope } = keys.seal(BINDING, new Secret(PASSWORD));
    const bytes = Buffer.from(envelope.ct, 'base64');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const result = keys.open(BINDING, { ...envelope, ct: changed.toString('base64') });
      expect(result).toEqual({ type: 'failed', reason: 'doesNotOpen' });
    }
  });

  it('whatever stands in the place of an envelope, opening it throws nothing', () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.record({ v: fc.constant(1), kv: fc.constant(keys.current.kv), ct: fc.anything() }),
      fc.record({ v: fc.constant(1), kv: fc.constant(keys.current.kv), ct: fc.base64String() }),
    );
    fc.assert(
      fc.property(anything, (envelope) => {
        expect(keys.open(BINDING, envelope).type).toBe('failed');
      }),
    );
  });

  it('a ciphertext has one spelling', () => {
    const { envelope } = keys.seal(BINDING, new Secret(PASSWORD));
    for (const ct of [`${envelope.ct}\n`, ` ${envelope.ct}`, envelope.ct.replace(/=+$/, ''), `${envelope.ct}AAAA`]) {
      expect(keys.open(BINDING, { ...envelope, ct }).type).toBe('failed');
    }
  });
});

describe('B77: a sealed value moved to another row', () => {
  const keys = keysOf('hex');
  const { envelope } = keys.seal(BINDING, new Secret(PASSWORD));

  it.each<[string, Partial<Binding>]>([
    ['another remote', { name: 'c' }],
    ['a remote of the same name, made anew', { id: '0000000000000000' }],
    ['another port', { url: 'https://narad.example:8444/eu' }],
    ['another user', { username: 'repl-from-c' }],
    ['another CA', { trustAnchor: 'a'.repeat(128) }],
  ])('%s does not open it', (_, change) => {
    expect(keys.open({ ...BINDING, ...change }, envelope)).toEqual({ type: 'failed', reason: 'doesNotOpen' });
  });

  it('fields do not run together: no two bindings open one value', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '|', '\0'), maxLength: 4 });
    const binding = fc.record({ name: part, id: part, url: part, username: part, trustAnchor: part });
    fc.assert(
      fc.property(binding, binding, (a, b) => {
        const value = keys.current.seal(a, new Secret(PASSWORD), () => Buffer.alloc(12));
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        expect(keys.open(b, value).type).toBe(isSame ? 'opened' : 'failed');
      }),
    );
  });

  it('another cluster with the same master secret has another key', () => {
    expect(keysOf('short-salt').open(BINDING, envelope)).toEqual({ type: 'failed', reason: 'unknownKey' });
  });
});

describe('keys', () => {
  it('the previous key seals nothing, and one equal to the current is none', () => {
    const rotated = keysOf('next', 'hex');
    expect(rotated.seal(BINDING, new Secret(PASSWORD)).envelope.kv).toBe(keySet('next').kv);
    expect(rotated.previous?.kv).toBe(keySet('hex').kv);
    expect(keysOf('hex', 'hex').previous).toBeUndefined();
  });

  it('a fingerprint tells passwords of one remote apart, and says nothing across remotes and keys', () => {
    const print = (set: string, id: string, text: string) => keysOf(set).current.fingerprint(id, new Secret(text));
    const one = print('hex', BINDING.id, PASSWORD);
    expect(one).toMatch(/^[0-9a-f]{12}$/);
    const others = [
      print('hex', BINDING.id, `${PASSWORD}.`),
      print('hex', '0011223344556677', PASSWORD),
      print('next', BINDING.id, PASSWORD),
    ];
    expect(new Set([one, ...others]).size).toBe(4);
  });

  it('refuses a short salt, and a source that gives too few bytes', () => {
    const make = (salt: Uint8Array) => () => new CredentialKey(new Secret('x'), salt);
    expect(refusal(make(Buffer.alloc(15)))).toBe('invalidArgument');
    expect(refusal(make(Buffer.alloc(16)))).toBeUndefined();
    expect(refusal(() => keysOf('hex', undefined, '0011').seal(BINDING, new Secret(PASSWORD)))).toBe('invalidArgument');
  });
});

function opened(result: ReturnType<ReturnType<typeof keysOf>['open']>): object {
  if (result.type === 'failed') return result;
  return { password: result.password.reveal(), fingerprint: result.fingerprint };
}
