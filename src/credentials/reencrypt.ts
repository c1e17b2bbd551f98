/**
 * After a rotation of the master secret: opens what the previous key sealed and seals it under the current one. Each
 * remote is replaced only if its credential is still the one that was opened; one that was changed meanwhile keeps its
 * newer ciphertext.
 */
import type { Binding } from './binding.js';
import type { Envelope } from './envelope.js';
import type { CredentialKeys, OpenFailure } from './keys.js';

export interface SealedRemote {
  readonly binding: Binding;
  readonly envelope: Envelope;
  readonly credentialVersion: number;
}

/** Where sealed credentials are stored. A rejection is a defect, and ends a re-encryption; it can be called again. */
export interface CredentialStore {
  list(): Promise<readonly SealedRemote[]>;
  /**
   * Puts the envelope in the place of the one of `expected.credentialVersion` of the remote with that id, counts its
   * seal (`judgeSeal`) and counts the version up. It leaves alone who set the password and when.
   */
  replace(expected: SealedRemote, envelope: Envelope): Promise<ReplaceResult>;
}

export type ReplaceResult =
  | 'replaced'
  /** The remote is gone or has another credential version by now. */
  | 'changed'
  /** The current key is spent. */
  | 'keySpent';

/** What became of one remote; `current`: the current key had sealed it already. */
export interface Reencrypted {
  readonly name: string;
  readonly outcome: ReplaceResult | OpenFailure | 'current';
}

/** Re-encrypts one remote after the other, and says what became of each. What does not open stays as it is. */
export async function reencrypt(keys: CredentialKeys, store: CredentialStore): Promise<Reencrypted[]> {
  const outcomes: Reencrypted[] = [];
  for (const sealed of await store.list()) {
    outcomes.push({ name: sealed.binding.name, outcome: await reencryptOne(keys, store, sealed) });
  }
  return outcomes;
}

async function reencryptOne(
  keys: CredentialKeys,
  store: CredentialStore,
  sealed: SealedRemote,
): Promise<Reencrypted['outcome']> {
  const envelope = keys.reseal(sealed.binding, sealed.envelope);
  if (envelope === undefined) return 'current';
  return typeof envelope === 'string' ? envelope : store.replace(sealed, envelope);
}
