/**
 * Follows the cluster's metadata: takes in remotes and links when their version has moved, opens what is sealed once for
 * each credential version, and tells transport and machine, remotes before the links to them.
 */
import { type CredentialKeys, type LoginLookup, RemoteLogins, trustAnchorOf } from '../../credentials/index.js';
import { messageOf } from '../../errors.js';
import type { Clock, RemoteRegistry, StoredLink, StoredRemote } from '../../ports/index.js';
import type { LookupState, RemoteLookup, SenderInput } from '../../sender/index.js';
import type { SenderVoice } from './log.js';
import type { HttpsTransport } from './transport.js';

export interface FollowerParts {
  readonly registry: RemoteRegistry;
  readonly keys: CredentialKeys;
  readonly transport: HttpsTransport;
  readonly clock: Clock;
  readonly voice: SenderVoice;
  /** This node's posture allows remotes. */
  readonly isSecure: () => boolean;
  /** zstd is there. */
  readonly canCompress: () => boolean;
  readonly tell: (input: SenderInput) => void;
}

export class RegistryFollower {
  readonly remotes = new Map<string, StoredRemote>();
  readonly links = new Map<string, StoredLink>();
  private readonly logins: RemoteLogins;
  /** Remotes that break a rule, until they change. */
  private readonly unusable = new Set<string>();
  /** What the machine was told last, as JSON. */
  private readonly told = new Map<string, string>();
  private version: number | undefined;
  private refreshes = 0;
  private wasSecure = true;
  private reading: Promise<void> | undefined;

  constructor(private readonly parts: FollowerParts) {
    this.logins = new RemoteLogins(parts.keys);
  }

  /** Takes in what has changed; true when something may have. Concurrent calls share one reading. */
  async sync(): Promise<boolean> {
    const { registry, voice, clock } = this.parts;
    await this.reading?.catch(() => undefined);
    let reading: Promise<void> | undefined;
    try {
      const version = registry.version();
      if (version === this.version) return this.tellPosture();
      reading = this.reading ??= this.read(version);
      await reading;
    } catch (error) {
      voice.repeat({ type: 'registryUnread', level: 'error', reason: messageOf(error) }, clock.now());
    } finally {
      if (this.reading === reading) this.reading = undefined;
    }
    return true;
  }

  /** What this node knows of a remote, as a check asks it. */
  lookup(name: string): RemoteLookup {
    if (!this.parts.isSecure()) return { state: 'node_insecure' };
    const remote = this.remotes.get(name);
    const { type } = this.logins.lookup(name);
    if (remote === undefined || type !== 'ready' || this.unusable.has(name)) return { state: stateOf(type) };
    const { credentialVersion, limits } = remote;
    const compression = this.parts.canCompress() ? limits.compression : 'none';
    return { state: 'ready', remoteId: remote.binding.id, credentialVersion, limits: { ...limits, compression } };
  }

  /** What tells one password of a remote from another; undefined when it is not open. */
  fingerprint(name: string): string | undefined {
    const found = this.logins.lookup(name);
    return found.type === 'ready' ? found.login.fingerprint : undefined;
  }

  /** Whether the current key sealed a remote's credential. */
  isKeyCurrent(name: string): boolean {
    return this.remotes.get(name)?.envelope.kv === this.parts.keys.current.kv;
  }

  get decrypts(): number {
    return this.logins.decrypts;
  }

  private async read(version: number): Promise<void> {
    const { remotes, links } = await this.parts.registry.read();
    this.version = version;
    this.wasSecure = this.parts.isSecure();
    this.takeRemotes(remotes.map(withOwnAnchor));
    const names = new Set([...this.told.keys(), ...this.remotes.keys(), ...links.map(({ remote }) => remote)]);
    for (const name of names) this.tellRemote(name);
    this.takeLinks(links);
  }

  private takeRemotes(remotes: readonly StoredRemote[]): void {
    const { transport, voice, clock } = this.parts;
    this.remotes.clear();
    for (const remote of remotes) this.remotes.set(remote.binding.name, remote);
    for (const { name } of this.logins.refresh(++this.refreshes, remotes)) {
      transport.drop(name);
      this.unusable.delete(name);
      const remote = this.remotes.get(name);
      const found = this.logins.lookup(name);
      if (remote === undefined || found.type !== 'ready') continue;
      try {
        transport.set(remote, found.login);
      } catch (error) {
        this.unusable.add(name);
        voice.repeat({ type: 'remoteUnusable', level: 'error', remote: name, reason: messageOf(error) }, clock.now());
      }
    }
  }

  private tellPosture(): boolean {
    const isSecure = this.parts.isSecure();
    if (isSecure === this.wasSecure) return false;
    this.wasSecure = isSecure;
    for (const name of this.told.keys()) this.tellRemote(name);
    return true;
  }

  private tellRemote(name: string): void {
    const lookup = this.lookup(name);
    const text = JSON.stringify(lookup);
    if (this.told.get(name) === text) return;
    this.told.set(name, text);
    try {
      this.parts.tell({ type: 'remote', remote: name, lookup });
    } catch (error) {
      const { voice, clock, tell } = this.parts;
      voice.repeat({ type: 'remoteUnusable', level: 'error', remote: name, reason: messageOf(error) }, clock.now());
      tell({ type: 'remote', remote: name, lookup: { state: 'remote_missing' } });
    }
  }

  private takeLinks(links: readonly StoredLink[]): void {
    const { tell, voice, clock } = this.parts;
    const before = new Map(this.links);
    this.links.clear();
    for (const link of links) {
      const { child } = link;
      try {
        if (JSON.stringify(before.get(child)) !== JSON.stringify(link)) tell({ type: 'link', child, record: link });
        this.links.set(child, link);
        before.delete(child);
      } catch (error) {
        voice.repeat({ type: 'linkUnusable', level: 'error', child, reason: messageOf(error) }, clock.now());
      }
    }
    for (const child of before.keys()) tell({ type: 'link', child, record: undefined });
  }
}

/**
 * The anchor is computed from the certificates that are stored beside the credential, so that others put in their place
 * do not open it. Certificates that cannot be read have none, and nothing is sealed to that.
 */
function withOwnAnchor(remote: StoredRemote): StoredRemote {
  let trustAnchor = '';
  try {
    trustAnchor = trustAnchorOf(remote.caPem);
  } catch {
    // The remote shows as one whose credential does not open.
  }
  return { ...remote, binding: { ...remote.binding, trustAnchor } };
}

function stateOf(type: LoginLookup['type']): LookupState {
  return type === 'unreadable' ? 'credential_unreadable' : 'remote_missing';
}
