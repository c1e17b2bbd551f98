/**
 * The logins of a node: each stored credential is opened once per version, and kept until what it was sealed to moves.
 * Sending does no cryptography. The host hands in the stored remotes when they have changed, and closes the
 * connections of those it is told of.
 */
import { equalBindings } from './binding.js';
import type { CredentialKeys, OpenFailure } from './keys.js';
import { RemoteLogin } from './login.js';
import type { SealedRemote } from './reencrypt.js';

export interface RegisteredRemote extends SealedRemote {
  /** Counts up with every change of the remote, of its limits too. */
  readonly revision: number;
  /** When the password was set, in milliseconds since the epoch; sealing it anew does not change it. */
  readonly passwordSetMs?: number;
}

/** What a refresh did. `wasReady` says that connections of the login before may be open: they are to be closed. */
export type LoginChange =
  /** A new remote, or a new credential of a known one. */
  | { readonly type: 'opened'; readonly name: string; readonly wasReady: boolean }
  /** The node's keys do not open it. It is not tried again until what it is sealed to moves. */
  | { readonly type: 'unreadable'; readonly name: string; readonly reason: OpenFailure; readonly wasReady: boolean }
  /** The same login, with limits to be read anew. */
  | { readonly type: 'reconfigured'; readonly name: string }
  | { readonly type: 'dropped'; readonly name: string; readonly wasReady: boolean };

export type LoginLookup =
  | { readonly type: 'ready'; readonly login: RemoteLogin }
  /** The node's credential has another version than the asked one. */
  | { readonly type: 'stale' }
  | { readonly type: 'unreadable'; readonly reason: OpenFailure }
  | { readonly type: 'missing' }
  /** The registry was not read yet. */
  | { readonly type: 'unknown' };

interface Held {
  readonly remote: RegisteredRemote;
  readonly opened: RemoteLogin | OpenFailure;
}

export class RemoteLogins {
  readonly #keys: CredentialKeys;
  #held = new Map<string, Held>();
  #version: number | undefined;
  #decrypts = 0;

  constructor(keys: CredentialKeys) {
    this.#keys = keys;
  }

  /** Times that a stored credential was opened, or tried to: once per credential version. */
  get decrypts(): number {
    return this.#decrypts;
  }

  /**
   * Takes the stored remotes as they are at this version of the registry; a version that it has already changes
   * nothing. When the registry cannot be read, do not call it: the logins stay as they are.
   */
  refresh(version: number, remotes: readonly RegisteredRemote[]): LoginChange[] {
    if (version === this.#version) return [];
    const before = this.#held;
    const next = new Map<string, Held>();
    const changes: LoginChange[] = [];
    for (const remote of remotes) {
      const { name } = remote.binding;
      const held = before.get(name);
      const wasReady = isReady(held);
      if (held !== undefined && isSameCredential(held.remote, remote)) {
        next.set(name, { remote, opened: held.opened });
        if (wasReady && held.remote.revision !== remote.revision) changes.push({ type: 'reconfigured', name });
        continue;
      }
      const opened = this.#open(remote);
      next.set(name, { remote, opened });
      changes.push(
        typeof opened === 'string'
          ? { type: 'unreadable', name, reason: opened, wasReady }
          : { type: 'opened', name, wasReady },
      );
    }
    for (const [name, held] of before) {
      if (!next.has(name)) changes.push({ type: 'dropped', name, wasReady: isReady(held) });
    }
    this.#held = next;
    this.#version = version;
    return changes;
  }

  /** The login of a remote; with `credentialVersion`, only if it is of that version. */
  lookup(name: string, credentialVersion?: number): LoginLookup {
    if (this.#version === undefined) return { type: 'unknown' };
    const held = this.#held.get(name);
    if (held === undefined) return { type: 'missing' };
    const { remote, opened } = held;
    if (credentialVersion !== undefined && remote.credentialVersion !== credentialVersion) return { type: 'stale' };
    return typeof opened === 'string' ? { type: 'unreadable', reason: opened } : { type: 'ready', login: opened };
  }

  #open({ binding, envelope, credentialVersion }: RegisteredRemote): RemoteLogin | OpenFailure {
    this.#decrypts++;
    const opened = this.#keys.open(binding, envelope);
    if (opened.type === 'failed') return opened.reason;
    return new RemoteLogin(binding, opened.password, { credentialVersion, fingerprint: opened.fingerprint });
  }
}

function isReady(held: Held | undefined): boolean {
  return held?.opened instanceof RemoteLogin;
}

/** The ciphertext is compared too: a credential version can come back when a registry is restored. */
function isSameCredential(a: RegisteredRemote, b: RegisteredRemote): boolean {
  return (
    a.credentialVersion === b.credentialVersion &&
    a.envelope.v === b.envelope.v &&
    a.envelope.kv === b.envelope.kv &&
    a.envelope.ct === b.envelope.ct &&
    equalBindings(a.binding, b.binding)
  );
}
