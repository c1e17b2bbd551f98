/**
 * How often each key has sealed. A random nonce of 96 bits is safe only so many times under one key, so a key is spent
 * after 2^30 seals. What is refused counts as well, for its ciphertext lies in the replicated log all the same. The
 * salt is judged here too: members that mint it at once must end with one.
 */
import { IsthmusError, show } from '../errors.js';

/** A key that has sealed this often seals no more. */
export const SEAL_LIMIT = 2 ** 30;
/** From here on the master secret should be rotated soon. */
export const SEAL_WARNING = 2 ** 29;

/** Seals by key id. A value: a new one comes from every judgement, to be stored. */
export type SealCounts = Readonly<Record<string, SealCount>>;

export interface SealCount {
  /** Seals so far, the refused ones among them. */
  readonly count: number;
  /** When the first was proposed, milliseconds since the epoch. */
  readonly firstSealMs: number;
}

export interface SealProposal {
  /** The key that sealed. */
  readonly kv: string;
  /** The salt that the key was derived with, base64, if the proposer had to mint it. */
  readonly salt?: string;
  /** The proposer's clock, milliseconds since the epoch: every replica must come to the same count. */
  readonly proposedAtMs: number;
}

export type SealVerdict =
  /** `salt` is the cluster's from now on. `nearLimit` from `SEAL_WARNING` on. */
  | { readonly type: 'accepted'; readonly salt: string; readonly nearLimit: boolean }
  /** Another salt won, or none is there: seal again under the stored one. */
  | { readonly type: 'saltRace' }
  /** The key was used `SEAL_LIMIT` times: rotate the master secret. */
  | { readonly type: 'keySpent' };

/**
 * Judges one sealed proposal when it is applied, before anything else about it. Store `counts` whatever the verdict.
 * Throws `invalidArgument` for a key id that is not 16 hex digits.
 */
export function judgeSeal(
  stored: { readonly counts: SealCounts; readonly salt?: string },
  { kv, salt: carried, proposedAtMs }: SealProposal,
): { readonly counts: SealCounts; readonly verdict: SealVerdict } {
  if (!/^[0-9a-f]{16}$/.test(kv)) {
    throw new IsthmusError('invalidArgument', `key id is ${show(kv)}: it must be 16 lower-case hex digits`);
  }
  const { count, firstSealMs } = stored.counts[kv] ?? { count: 0, firstSealMs: proposedAtMs };
  const counts = { ...stored.counts, [kv]: { count: count + 1, firstSealMs } };
  const salt = stored.salt ?? carried;
  if (salt === undefined || (carried !== undefined && carried !== salt)) {
    return { counts, verdict: { type: 'saltRace' } };
  }
  if (count >= SEAL_LIMIT) return { counts, verdict: { type: 'keySpent' } };
  return { counts, verdict: { type: 'accepted', salt, nearLimit: count + 1 >= SEAL_WARNING } };
}
