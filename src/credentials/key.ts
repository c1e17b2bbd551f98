/**
 * One key of sealed credentials, derived from one master secret and the salt of its cluster: AES-256-GCM to seal,
 * HMAC-SHA-512 for fingerprints, and an id that tells which key sealed what (Narad, credentials; HKDF is RFC 5869).
 */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { inspect } from 'node:util';
import { IsthmusError } from '../errors.js';
import { authenticated, type Binding } from './binding.js';
import { fromBase64, lengthPrefixed } from './bytes.js';
import { draw, type RandomBytes } from './draw.js';
import type { Envelope } from './envelope.js';
import { Secret } from './secret.js';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FINGERPRINT_BYTES = 6;
const LEAST_SALT_BYTES = 16;

const CIPHER = 'aes-256-gcm';
const PURPOSE = 'narad remote credential v1: ';

export class CredentialKey {
  /** The key's id, 16 hex digits. It tells nothing of the secret. */
  readonly kv: string;
  readonly #sealing: KeyObject;
  readonly #fingerprinting: KeyObject;

  /** The secret is taken as it is written: hex or base64 is not decoded, and nothing is trimmed. */
  constructor(secret: Secret, salt: Uint8Array) {
    if (salt.length < LEAST_SALT_BYTES) {
      throw new IsthmusError(
        'invalidArgument',
        `the salt has ${salt.length} bytes, it must have ${LEAST_SALT_BYTES} or more`,
      );
    }
    const derive = (label: string, length: number) =>
      Buffer.from(hkdfSync('sha512', secret.reveal(), salt, PURPOSE + label, length));
    this.kv = derive('key id', 8).toString('hex');
    this.#sealing = createSecretKey(derive(`${CIPHER} key`, 32));
    this.#fingerprinting = createSecretKey(derive('fingerprint key', 64));
  }

  /** Seals a password for what it is bound to. Each call is one seal of this key, to be counted (`judgeSeal`). */
  seal(binding: Binding, password: Secret, randomBytes: RandomBytes): Envelope {
    const nonce = draw(randomBytes, NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#sealing, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(authenticated(binding));
    const sealed = [nonce, cipher.update(password.reveal(), 'utf8'), cipher.final(), cipher.getAuthTag()];
    return { v: 1, kv: this.kv, ct: Buffer.concat(sealed).toString('base64') };
  }

  /** The password in a ciphertext; undefined when any bit of it, or of what it is bound to, is not as it was sealed. */
  open(binding: Binding, ct: unknown): Secret | undefined {
    const bytes = fromBase64(ct);
    if (bytes === undefined || bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#sealing, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(authenticated(binding));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
      return new Secret(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text));
    } catch {
      // What went wrong is one bit on purpose: whoever can write ciphertexts learns nothing from the difference.
      return undefined;
    }
  }

  /** Six bytes in hex that tell whether two passwords of one remote are the same, and nothing to who has no key. */
  fingerprint(remoteId: string, password: Secret): string {
    const hmac = createHmac('sha512', this.#fingerprinting).update(lengthPrefixed(remoteId, password.reveal()));
    return hmac.digest().subarray(0, FINGERPRINT_BYTES).toString('hex');
  }

  toJSON(): { readonly kv: string } {
    return { kv: this.kv };
  }

  [inspect.custom](): string {
    return `CredentialKey(${this.kv})`;
  }
}
