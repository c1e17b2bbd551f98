/**
 * What a change of a remote means for its credential. A password is sealed to the remote's URL, user and CA, so none
 * of them changes without a new password; and every new ciphertext counts the credential's version up, by which caches
 * and gates learn of it.
 */
import { type Binding, equalBindings } from './binding.js';

/** Both start at 1. */
export interface RemoteVersions {
  /** One more with every change of the remote. */
  readonly revision: number;
  /** One more with every new ciphertext: a new password, or the same sealed anew. */
  readonly credentialVersion: number;
}

export type UpdateVerdict =
  | ({ readonly type: 'accepted' } & RemoteVersions)
  /** URL, user or CA would change under the old ciphertext: ask for the password again. */
  | { readonly type: 'passwordNeeded' }
  /** The new ciphertext is sealed to something else than what the remote would be, so it would never open. */
  | { readonly type: 'sealedForOther' };

/**
 * Judges a change from `stored` to a remote bound as in `next`. `sealedFor` is there when the change carries a new
 * ciphertext, and says what that was sealed to.
 */
export function judgeUpdate(
  stored: RemoteVersions & { readonly binding: Binding },
  next: Binding,
  sealedFor?: Binding,
): UpdateVerdict {
  if (sealedFor === undefined && !equalBindings(stored.binding, next)) return { type: 'passwordNeeded' };
  if (sealedFor !== undefined && !equalBindings(sealedFor, next)) return { type: 'sealedForOther' };
  return {
    type: 'accepted',
    revision: stored.revision + 1,
    credentialVersion: stored.credentialVersion + (sealedFor === undefined ? 0 : 1),
  };
}
