/**
 * A new remote, or a new password for one: everything is held against its rule, and the password is sealed and dropped.
 * What comes out may be stored and sent to other members; nothing in it is secret to who has no key.
 */
import {
  type CredentialKeys,
  checkCaPem,
  checkRemoteId,
  drawRemoteId,
  readPassword,
  trustAnchorOf,
} from '../../credentials/index.js';
import { IsthmusError } from '../../errors.js';
import { canonicalUrl, type Guard, type RefusalReason, type ResolveHost } from '../../guard/index.js';
import type { StoredLimits, StoredRemote } from '../../ports/index.js';
import { systemClock } from '../clock.js';
import { checkLimits, DEFAULT_LIMITS } from './limits.js';
import { systemResolver } from './transport.js';
import { within } from './within.js';

const RESOLVE_MS = 5_000;

export interface RemoteDraft {
  /** A letter a-z, then up to 62 of a-z, 0-9 and hyphen. */
  readonly name: string;
  /** https, at most 2,048 bytes, without user, query and fragment; it may have a path. */
  readonly url: string;
  /** 1 to 64 letters, digits, dots, underscores and hyphens. */
  readonly username: string;
  /** 24 to 72 bytes of UTF-8. */
  readonly password: string;
  /** 1 to 16 certificates in PEM, which alone are trusted then. */
  readonly caPem?: string;
  readonly limits?: Partial<StoredLimits>;
}

export interface SealOptions {
  readonly keys: CredentialKeys;
  readonly guard: Guard;
  /** Default: the system's. */
  readonly resolve?: ResolveHost;
  /** The remote whose credential is replaced; absent for a new one. */
  readonly stored?: StoredRemote;
}

export type SealedDraft =
  | { readonly type: 'sealed'; readonly remote: StoredRemote; readonly fingerprint: string }
  /** The guard would refuse every connection, or the name was not resolved in 5 s (`unresolved`). */
  | { readonly type: 'refused'; readonly reason: RefusalReason | 'unresolved' };

/** Checks and seals. Throws `invalidArgument`, without any value that may be secret, for what breaks a rule. */
export async function sealRemote(draft: RemoteDraft, options: SealOptions): Promise<SealedDraft> {
  const { keys, guard, resolve = systemResolver, stored } = options;
  const url = canonicalUrl(draft.url);
  const caPem = draft.caPem === undefined ? undefined : checkCaPem(draft.caPem);
  const limits = checkLimits({ ...(stored?.limits ?? DEFAULT_LIMITS), ...draft.limits });
  if (stored !== undefined && stored.binding.name !== draft.name) {
    throw new IsthmusError('invalidArgument', 'a remote keeps its name');
  }
  const binding = {
    name: draft.name,
    id: stored === undefined ? drawRemoteId() : checkRemoteId(stored.binding.id),
    url: url.href,
    username: draft.username,
    trustAnchor: trustAnchorOf(caPem),
  };
  const { envelope, fingerprint } = keys.seal(binding, readPassword(draft.password));
  const refusal = await refusalOf(guard, url, resolve);
  if (refusal !== undefined) return { type: 'refused', reason: refusal };
  const remote: StoredRemote = {
    binding,
    envelope,
    revision: (stored?.revision ?? 0) + 1,
    credentialVersion: (stored?.credentialVersion ?? 0) + 1,
    limits,
    passwordSetMs: systemClock.now(),
    ...(caPem !== undefined && { caPem }),
  };
  return { type: 'sealed', remote, fingerprint };
}

/** Why no connection could be made, as far as that is known now: every later dial is judged anew. */
async function refusalOf(
  guard: Guard,
  url: { readonly host: string; readonly port: number },
  resolve: ResolveHost,
): Promise<RefusalReason | 'unresolved' | undefined> {
  const verdict = guard.judgeTarget(url);
  if (verdict.type !== 'resolve') return verdict.type === 'refused' ? verdict.reason : undefined;
  const addresses = await within(systemClock, RESOLVE_MS, () => resolve(verdict.host)).catch(() => 'late' as const);
  if (addresses === 'late') return 'unresolved';
  const judged = guard.judgeResolved(addresses);
  return judged.type === 'refused' ? judged.reason : undefined;
}
