/** Credentials sealed by another program; see the README of the fixtures. */
import { readFileSync } from 'node:fs';
import { type Binding, CredentialKeys, type Envelope, type OpenFailure, Secret } from '../../src/credentials/index.js';

interface KeySet {
  readonly name: string;
  readonly secret: string;
  readonly salt: string;
  readonly aesKey: string;
  readonly kv: string;
  readonly fingerprintKey: string;
}

interface Fixture {
  readonly keys: readonly KeySet[];
  readonly trustAnchors: readonly { readonly pem: string; readonly trustAnchor: string }[];
  readonly sealed: readonly {
    readonly name: string;
    readonly key: string;
    readonly record: Binding;
    readonly password: string;
    readonly nonce: string;
    readonly envelope: Envelope;
    readonly fingerprint: string;
  }[];
  readonly refused: readonly {
    readonly name: string;
    readonly keys: readonly string[];
    readonly record: Binding;
    readonly envelope: unknown;
    readonly expect: OpenFailure;
  }[];
  readonly rotation: readonly {
    readonly name: string;
    readonly current: string;
    readonly previous: string | null;
    readonly record: Binding;
    readonly envelope: Envelope;
    readonly opens: boolean;
    readonly fingerprint?: string;
    readonly expect?: OpenFailure;
  }[];
}

export const FIXTURE = JSON.parse(
  readFileSync(new URL('../fixtures/narad/credentials.json', import.meta.url), 'utf8'),
) as Fixture;

export function keySet(name: string): KeySet {
  const found = FIXTURE.keys.find((set) => set.name === name);
  if (found === undefined) throw new Error(`no key set ${name}`);
  return found;
}

/** A node's keys from sets of the fixture; `nonce` in hex stands for what is drawn. */
export function keysOf(current: string, previous?: string | null, nonce?: string): CredentialKeys {
  const { secret, salt } = keySet(current);
  return new CredentialKeys({
    secret: new Secret(secret),
    salt: Buffer.from(salt, 'base64'),
    ...(previous && { previousSecret: new Secret(keySet(previous).secret) }),
    ...(nonce !== undefined && { randomBytes: () => Buffer.from(nonce, 'hex') }),
  });
}

export const BINDING: Binding = {
  name: 'b',
  id: 'a41c07d9e25b3f60',
  url: 'https://narad.example:8443/eu',
  username: 'repl-from-a',
  trustAnchor: 'system-roots',
};
