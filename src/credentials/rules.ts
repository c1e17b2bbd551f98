/**
 * What the parts of a remote's credential may look like (Narad, remote replication v3.2). A refusal names the rule; it
 * shows a name, an id and no other value, for people paste passwords into the wrong field.
 */
import { IsthmusError, show } from '../errors.js';
import { fromBase64 } from './bytes.js';
import { Secret } from './secret.js';

/** Bounds of a password in bytes of UTF-8; the upper one is that of bcrypt on the other side. */
const PASSWORD_BYTES = { least: 24, most: 72 } as const;
const STRONG_BYTES = 32;
const PAUSE_REASON_BYTES = 256;

const NAME = /^[a-z][a-z0-9-]{0,62}$/;
const ID = /^[0-9a-f]{16}$/;
const USERNAME = /^[A-Za-z0-9._-]{1,64}$/;
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;

/**
 * True for a master secret that looks drawn, not made up: at least 32 bytes, not all equal, written as hex with a
 * digit and a letter, or as padded base64 with upper case, lower case and a digit, `+` or `/`. Space around it is not
 * looked at here, though it does count as part of the key.
 */
export function isStrongSecret(secret: Secret): boolean {
  const text = secret.reveal().trim();
  const bytes = drawnBytes(text);
  return bytes !== undefined && bytes.length >= STRONG_BYTES && bytes.some((byte) => byte !== bytes[0]);
}

function drawnBytes(text: string): Buffer | undefined {
  const isHex = /^(?:[0-9a-fA-F]{2})+$/.test(text) && /[0-9]/.test(text) && /[a-fA-F]/.test(text);
  if (isHex) return Buffer.from(text, 'hex');
  return /[a-z]/.test(text) && /[A-Z]/.test(text) && /[0-9+/]/.test(text) ? fromBase64(text) : undefined;
}

/** Takes a password of 24..72 bytes of UTF-8 out of sight. Throws `invalidArgument`, without the value. */
export function readPassword(value: unknown): Secret {
  if (typeof value !== 'string') refuse('a password must be text');
  return checkPassword(new Secret(value));
}

/** Refuses, as `invalidArgument`, a password that is not 24..72 bytes long. */
export function checkPassword(password: Secret): Secret {
  const { least, most } = PASSWORD_BYTES;
  if (password.byteLength < least || password.byteLength > most) {
    refuse(`a password must have ${least}..${most} bytes of UTF-8`);
  }
  return password;
}

/** Refuses, as `invalidArgument`, a name that is not a letter a-z and then up to 62 of a-z, 0-9 and hyphen. */
export function checkRemoteName(value: unknown): string {
  if (typeof value === 'string' && NAME.test(value)) return value;
  return refuse(`remote name is ${show(value)}: it must be a letter a-z, then up to 62 of a-z, 0-9 and hyphen`);
}

/** Refuses, as `invalidArgument`, an id that is not 16 lower-case hex digits. */
export function checkRemoteId(value: unknown): string {
  if (typeof value === 'string' && ID.test(value)) return value;
  return refuse(`remote id is ${show(value)}: it must be 16 lower-case hex digits`);
}

/** Refuses, as `invalidArgument`, a user name that is not 1..64 of letters, digits, dot, underscore and hyphen. */
export function checkUsername(value: unknown): string {
  if (typeof value === 'string' && USERNAME.test(value)) return value;
  return refuse('a user name must be 1..64 of letters, digits, dot, underscore and hyphen');
}

/** Refuses, as `invalidArgument`, a reason for a pause that is longer than 256 bytes of UTF-8 or not printable. */
export function checkPauseReason(value: unknown): string {
  if (typeof value === 'string' && PRINTABLE.test(value) && Buffer.byteLength(value) <= PAUSE_REASON_BYTES) {
    return value;
  }
  return refuse(`a reason for a pause must be printable text of at most ${PAUSE_REASON_BYTES} bytes`);
}

function refuse(message: string): never {
  throw new IsthmusError('invalidArgument', message);
}
