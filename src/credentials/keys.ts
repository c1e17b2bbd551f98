/**
 * The keys of a node: the current one seals and opens; during a rotation of the master secret the previous one still
 * opens what it sealed, and seals nothing more.
 */
import { randomBytes as nodeRandomBytes } from 'node:crypto';
import { IsthmusError } from '../errors.js';
import { type Binding, checkBinding } from './binding.js';
import type { RandomBytes } from './draw.js';
import type { Envelope } from './envelope.js';
import { CredentialKey } from './key.js';
import { checkPassword, isStrongSecret } from './rules.js';
import type { Secret } from './secret.js';

export interface CredentialKeysOptions {
  /** The master secret. It must be strong (`isStrongSecret`). */
  readonly secret: Secret;
  /** The master secret before the last rotation, while something sealed under it may be left. */
  readonly previousSecret?: Secret;
  /** The cluster's salt, 16 bytes or more; see `drawSalt`. */
  readonly salt: Uint8Array;
  /** Draws nonces; default that of node:crypto. */
  readonly randomBytes?: RandomBytes;
}

/** Why a sealed password was not opened. */
export type OpenFailure =
  /** Another form, or sealed under a key that this node does not have. */
  | 'unknownKey'
  /** The ciphertext, or something it is bound to, was changed. */
  | 'doesNotOpen';

export type Opened =
  | {
      readonly type: 'opened';
      readonly password: Secret;
      /** 12 hex digits, under the key that sealed; fit to be shown. */
      readonly fingerprint: string;
    }
  | { readonly type: 'failed'; readonly reason: OpenFailure };

export class CredentialKeys {
  readonly current: CredentialKey;
  /** Undefined when there is none, or when it is the current one. */
  readonly previous: CredentialKey | undefined;
  readonly #randomBytes: RandomBytes;
  #seals = 0;
  #resealOpens = 0;

  /** Throws `invalidArgument`, without any secret, for a weak secret and a salt that is too short. */
  constructor({ secret, previousSecret, salt, randomBytes = nodeRandomBytes }: CredentialKeysOptions) {
    if (!isStrongSecret(secret)) {
      throw new IsthmusError(
        'invalidArgument',
        'the master secret is weak: it must be 32 or more random bytes, as hex or as padded base64',
      );
    }
    this.current = new CredentialKey(secret, salt);
    this.previous =
      previousSecret === undefined || previousSecret.equals(secret)
        ? undefined
        : new CredentialKey(previousSecret, salt);
    this.#randomBytes = randomBytes;
  }

  /** Times that this object sealed a password, for a reseal too. */
  get seals(): number {
    return this.#seals;
  }

  /** Times that it opened an envelope, or tried to, for a reseal. */
  get resealOpens(): number {
    return this.#resealOpens;
  }

  /** Seals under the current key. Throws `invalidArgument` for a binding or a password that breaks a rule. */
  seal(binding: Binding, password: Secret): { readonly envelope: Envelope; readonly fingerprint: string } {
    checkBinding(binding);
    checkPassword(password);
    const envelope = this.#seal(binding, password);
    return { envelope, fingerprint: this.current.fingerprint(binding.id, password) };
  }

  /** Opens what either key sealed. Whatever the envelope is, it does not throw: a store is the outside world. */
  open(binding: Binding, envelope: unknown): Opened {
    const { v, kv, ct } = (envelope ?? {}) as { readonly [K in keyof Envelope]?: unknown };
    const key = v === 1 ? [this.current, this.previous].find((candidate) => candidate?.kv === kv) : undefined;
    if (key === undefined) return { type: 'failed', reason: 'unknownKey' };
    const password = key.open(binding, ct);
    if (password === undefined) return { type: 'failed', reason: 'doesNotOpen' };
    return { type: 'opened', password, fingerprint: key.fingerprint(binding.id, password) };
  }

  /** Seals under the current key what the previous one sealed. Undefined when the current one sealed it. */
  reseal(binding: Binding, envelope: Envelope): Envelope | OpenFailure | undefined {
    if (envelope.v === 1 && envelope.kv === this.current.kv) return undefined;
    this.#resealOpens++;
    const opened = this.open(binding, envelope);
    return opened.type === 'failed' ? opened.reason : this.#seal(binding, opened.password);
  }

  #seal(binding: Binding, password: Secret): Envelope {
    const envelope = this.current.seal(binding, password, this.#randomBytes);
    this.#seals++;
    return envelope;
  }
}
