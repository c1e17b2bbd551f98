/**
 * What a sealed password is bound to: the remote it is for, whom it logs in as and whom it trusts. All of it is
 * authenticated with the ciphertext, so that a value moved to another row, or a row changed under its value, does not
 * open (B77).
 */
import { IsthmusError } from '../errors.js';
import { lengthPrefixed } from './bytes.js';
import { checkRemoteId, checkRemoteName, checkUsername } from './rules.js';
import { isTrustAnchor } from './trust-anchor.js';

const PURPOSE = 'narad-remote-credential-v1';
const HTTPS_URL = /^https:\/\/[\x21-\x7e]{1,2040}$/;

export interface Binding {
  /** Name of the remote: a letter a-z, then up to 62 of a-z, 0-9 and hyphen. */
  readonly name: string;
  /** 16 lower-case hex digits, drawn when the remote was created, so that a name used again is another remote. */
  readonly id: string;
  /** The canonical URL, as `canonicalUrl` gives it: one more slash is another binding. */
  readonly url: string;
  /** 1..64 of letters, digits, dot, underscore and hyphen. */
  readonly username: string;
  /** What `trustAnchorOf` gives for the remote's CA. */
  readonly trustAnchor: string;
}

/** Refuses, as `invalidArgument`, a binding that breaks a rule of its parts. */
export function checkBinding(binding: Binding): void {
  checkRemoteName(binding.name);
  checkRemoteId(binding.id);
  checkUsername(binding.username);
  if (!HTTPS_URL.test(binding.url)) {
    throw new IsthmusError('invalidArgument', 'the URL of a remote must be a canonical https URL');
  }
  if (!isTrustAnchor(binding.trustAnchor)) {
    throw new IsthmusError('invalidArgument', 'a trust anchor must be system-roots or 128 lower-case hex digits');
  }
}

/** True when both bind the same. */
export function equalBindings(a: Binding, b: Binding): boolean {
  return authenticated(a).equals(authenticated(b));
}

/** The additional authenticated data of a seal. */
export function authenticated({ name, id, url, username, trustAnchor }: Binding): Buffer {
  return lengthPrefixed(PURPOSE, name, id, url, username, trustAnchor);
}
