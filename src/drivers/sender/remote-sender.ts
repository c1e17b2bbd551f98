/**
 * The remote sender of one node (Narad, remote replication v3.2): copies parents to topics of remotes over HTTPS. The
 * host brings its metadata, its records and its cursors as ports; here are the machine of the sender room, the HTTPS
 * transport, the checks of members and the writes of links.
 */
import { setMaxListeners } from 'node:events';
import { CredentialKeys, type SealCounts } from '../../credentials/index.js';
import { defaultCodecs } from '../../entry/index.js';
import { IsthmusError, show } from '../../errors.js';
import { Guard, type GuardOptions, type ResolveHost } from '../../guard/index.js';
import type {
  Clock,
  ClusterMembers,
  LinkCursors,
  MemberCheck,
  ParentTopics,
  Random,
  RemoteRegistry,
} from '../../ports/index.js';
import type { Backlog, Compress, MemberReport } from '../../sender/index.js';
import { systemClock } from '../clock.js';
import { EventStream } from '../events.js';
import { Checks } from './checks.js';
import { CursorPlaces } from './cursor-places.js';
import type { LinkAnswer } from './link-answers.js';
import { type AttachRequest, LinkWrites, type TestRequest } from './link-writes.js';
import { type RemoteSenderEvent, type SenderLogger, SenderVoice } from './log.js';
import { MachineRun, type RequestWatch } from './machine-run.js';
import { RegistryFollower } from './registry-follower.js';
import { type RemoteSenderStatus, statusOf } from './status.js';
import { HttpsTransport, systemResolver } from './transport.js';
import {
  type ChildLag,
  type ClusterBacklogs,
  type UnshippedAnswer,
  UnshippedCheck,
  type UnshippedRequest,
} from './unshipped-check.js';

/** How often it is looked whether remotes or links have changed. */
const FOLLOW_MS = 100;
const LAG_TICK_MS = 1_000;

/** What a sender runs on. */
export interface RemoteSenderPorts {
  readonly registry: RemoteRegistry;
  readonly parents: ParentTopics;
  readonly cursors: LinkCursors;
  /** The cluster's members; default: this node alone. */
  readonly members?: ClusterMembers;
  /** What is accepted and not committed yet; without it, this node commits what it accepts, and others do not answer. */
  readonly backlogs?: ClusterBacklogs;
  /** How often each key has sealed, as the metadata counts it (`judgeSeal`); for metrics. */
  readonly sealCounts?: () => SealCounts;
  /** Default: the system's. */
  readonly resolve?: ResolveHost;
  /** Where lines for operators go; `console` is one. Without it, the events tell the same. */
  readonly logger?: SenderLogger;
  /** Default: the clock of this process. Connections run on the process's own time in any case. */
  readonly clock?: Clock;
  /** Default: `Math.random`. */
  readonly random?: Random;
}

export interface RemoteSenderOptions {
  /** Opens sealed credentials. */
  readonly keys: CredentialKeys;
  /** Where this node may connect to. Without `allowedHosts`, checks tell no more than their class. */
  readonly guard?: GuardOptions;
  /** The name of this member; default `local`. */
  readonly node?: string;
  /** What waiting lanes may keep in memory, in bytes over the whole node; default 256 MiB. 0 or less holds nothing. */
  readonly maxHeldBytes?: number;
  /** Goes into `User-Agent` behind `narad-replicator/`: 1 to 64 letters, digits, dots, hyphens and plus signs; default `dev`. */
  readonly version?: string;
  /** One zstd frame that declares its content size; default: the zstd of `defaultCodecs`. */
  readonly compress?: Compress;
  /** Whether this node's posture allows remotes: security on, and no legacy authentication. Default: it does. */
  readonly isSecure?: () => boolean;
}

/** A running sender. Iterating it gives the events from then on. */
export interface RemoteSender extends AsyncIterable<RemoteSenderEvent> {
  /** Begins to follow the metadata, and to send. Once. */
  start(): void;
  /** Takes in no more, waits for requests that are out, at most their time limit, and closes all connections. */
  stop(): Promise<void>;
  status(): RemoteSenderStatus;
  /** This node owns the partition of a parent from now on: its cursors begin where they were written last. */
  takePartition(parent: string, partition: number): void;
  /** It owns it no more. Resolves once nothing of it runs here, so that the next owner may begin. */
  leavePartition(parent: string, partition: number): Promise<void>;
  /** Throws `invalidArgument` for names, lanes and delays that cannot be; everything else is an answer. */
  attach(request: AttachRequest): Promise<LinkAnswer>;
  /** `acceptTarget` takes another topic under the old name for the target from now on. */
  resume(child: string, options?: { readonly acceptTarget?: boolean }): Promise<LinkAnswer>;
  /** Throws `invalidArgument` for a reason that is not printable text of at most 256 bytes. */
  pause(child: string, reason: string): Promise<LinkAnswer>;
  /** Lets one record pass unsent, once it is the one that its lane is blocked on. */
  skip(child: string, partition: number, offset: number): Promise<LinkAnswer>;
  /** The checks of an attach, and no attach. */
  test(request: TestRequest): Promise<LinkAnswer>;
  /** This node's own run of the checks, for a member that asks it (`ClusterMembers.check`). */
  checkHere(check: MemberCheck): Promise<MemberReport>;
  /**
   * Whether everything of a parent, or of one remote child, is shipped, in front of its delete. Asks all members; who
   * asks while that is under way waits for the next count. Throws `invalidArgument` for names that cannot be.
   */
  checkUnshipped(request: UnshippedRequest): Promise<UnshippedAnswer>;
  /** This node's own backlog, for a member that asks it (`ClusterBacklogs.backlog`). */
  backlogHere(parent: string): Promise<Backlog>;
  /** The lags of this node's own cursors, for a member that asks it (`ClusterBacklogs.lags`). */
  lagsHere(parent: string): Promise<readonly ChildLag[]>;
  /** To be told of every request; the function returned ends it. */
  watchRequests(watch: RequestWatch): () => void;
}

/** A sender for one node. It does nothing until it is started. Throws `invalidArgument` for options that cannot be. */
export function createRemoteSender(ports: RemoteSenderPorts, options: RemoteSenderOptions): RemoteSender {
  return new NodeRemoteSender(ports, options);
}

class NodeRemoteSender implements RemoteSender {
  private readonly clock: Clock;
  private readonly node: string;
  private readonly events = new EventStream<RemoteSenderEvent>();
  private readonly voice: SenderVoice;
  private readonly watches = new Set<RequestWatch>();
  private readonly transport: HttpsTransport;
  private readonly machine: MachineRun;
  private readonly follower: RegistryFollower;
  private readonly places: CursorPlaces;
  private readonly checks: Checks;
  private readonly writes: LinkWrites;
  private readonly unshipped: UnshippedCheck;
  private readonly keys: CredentialKeys;
  private readonly sealCounts: RemoteSenderPorts['sealCounts'];
  private readonly stopping = new AbortController();
  private readonly hasAllowedHosts: boolean;
  private compressor: Compress | undefined;
  private state: RemoteSenderStatus['state'] = 'idle';
  private following: Promise<void> | undefined;

  constructor(ports: RemoteSenderPorts, options: RemoteSenderOptions) {
    const { clock = systemClock, random = { next: Math.random }, resolve = systemResolver, members } = ports;
    const { keys, guard = {}, node = 'local', version = 'dev', isSecure = () => true } = options;
    const { registry, parents, cursors, backlogs } = ports;
    if (!(keys instanceof CredentialKeys)) throw new IsthmusError('invalidArgument', 'keys must be CredentialKeys');
    // Every wait of a run listens, and there may be many cursors.
    setMaxListeners(0, this.stopping.signal);
    this.clock = clock;
    this.node = node;
    this.keys = keys;
    this.sealCounts = ports.sealCounts;
    this.compressor = options.compress;
    this.hasAllowedHosts = (guard.allowedHosts ?? []).length > 0;
    this.voice = new SenderVoice(ports.logger, (event) => this.events.emit(event));
    this.transport = new HttpsTransport({ guard: new Guard(guard), resolve, agent: agentOf(version) });
    const { transport, voice, hasAllowedHosts } = this;
    const compress = (body: Uint8Array) => this.compressor?.(body) ?? body;
    const place = (cursor: string) => this.places.place(cursor);
    const detached = (cursor: string) => this.places.detached(cursor);
    this.machine = new MachineRun(
      { parents, cursors, transport, clock, voice, watches: this.watches, place, detached },
      { random, compress, ...(options.maxHeldBytes !== undefined && { maxHeldBytes: options.maxHeldBytes }) },
    );
    const tell: MachineRun['tell'] = (input) => this.machine.tell(input);
    const canCompress = () => this.compressor !== undefined;
    this.follower = new RegistryFollower({ registry, keys, transport, clock, voice, isSecure, canCompress, tell });
    const { follower } = this;
    const detach = (cursor: string) => this.machine.detach(cursor);
    const { links } = follower;
    this.places = new CursorPlaces({
      cursors,
      parents,
      clock,
      voice,
      links,
      tell,
      detach,
      signal: this.stopping.signal,
    });
    const lookup = (remote: string) => follower.lookup(remote);
    this.checks = new Checks({ node, members, transport, clock, lookup, isSecure, hasAllowedHosts, compress });
    const { checks } = this;
    const written = () => this.follow();
    this.writes = new LinkWrites({
      ...{ node, registry, parents, members, clock, follower, checks, isSecure, hasAllowedHosts, written },
    });
    const running = () => this.machine.report().cursors;
    this.unshipped = new UnshippedCheck({
      ...{ node, members, backlogs, registry, parents, clock, links, cursors: running },
    });
  }

  start(): void {
    if (this.state !== 'idle') return;
    this.state = 'running';
    this.following = this.run();
  }

  async stop(): Promise<void> {
    if (this.state === 'stopped') return;
    this.state = 'stopping';
    this.stopping.abort();
    await this.following;
    await this.places.disownAll();
    this.machine.stop();
    this.transport.close();
    this.state = 'stopped';
    this.events.close();
  }

  status(): RemoteSenderStatus {
    const { state, node, machine, follower, places, transport, clock, hasAllowedHosts, keys } = this;
    const sealCounts = this.sealCounts?.();
    const parts = { follower, places, transport, clock, hasAllowedHosts, keys, sealCounts };
    return statusOf({ state, node, report: machine.report(), ...parts });
  }

  takePartition(parent: string, partition: number): void {
    if (!Number.isSafeInteger(partition) || partition < 0) {
      throw new IsthmusError(
        'invalidArgument',
        `partition ${show(partition)}: it must be a safe integer of at least 0`,
      );
    }
    if (this.state === 'idle' || this.state === 'running') this.places.own(parent, partition);
  }

  leavePartition(parent: string, partition: number): Promise<void> {
    return this.places.disown(parent, partition);
  }

  attach(request: AttachRequest): Promise<LinkAnswer> {
    return this.writes.attach(request);
  }

  resume(child: string, options: { readonly acceptTarget?: boolean } = {}): Promise<LinkAnswer> {
    return this.writes.resume(child, options);
  }

  pause(child: string, reason: string): Promise<LinkAnswer> {
    return this.writes.pause(child, reason);
  }

  skip(child: string, partition: number, offset: number): Promise<LinkAnswer> {
    return this.writes.skip(child, partition, offset);
  }

  test(request: TestRequest): Promise<LinkAnswer> {
    return this.writes.test(request);
  }

  checkHere(check: MemberCheck): Promise<MemberReport> {
    return this.checks.here(check);
  }

  checkUnshipped(request: UnshippedRequest): Promise<UnshippedAnswer> {
    return this.unshipped.check(request);
  }

  backlogHere(parent: string): Promise<Backlog> {
    return this.unshipped.backlogHere(parent);
  }

  lagsHere(parent: string): Promise<readonly ChildLag[]> {
    return this.unshipped.lagsHere(parent);
  }

  watchRequests(watch: RequestWatch): () => void {
    this.watches.add(watch);
    return () => this.watches.delete(watch);
  }

  toJSON(): RemoteSenderStatus {
    return this.status();
  }

  [Symbol.asyncIterator](): AsyncIterator<RemoteSenderEvent> {
    return this.events.read();
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    this.compressor ??= (await defaultCodecs()).zstd?.compress;
    const { groups, isPostQuantum } = this.transport.keyExchange;
    this.voice.tell({ type: 'keyExchange', level: isPostQuantum ? 'info' : 'warn', groups });
    let lagDueMs = 0;
    while (!signal.aborted) {
      await this.follow();
      if (this.clock.now() >= lagDueMs) {
        lagDueMs = this.clock.now() + LAG_TICK_MS;
        void this.places.refreshLag(this.machine.report().cursors);
      }
      await this.clock.sleep(FOLLOW_MS, signal).catch(() => undefined);
    }
  }

  private async follow(): Promise<void> {
    if ((await this.follower.sync()) && !this.stopping.signal.aborted) this.places.reconcile();
  }
}

function agentOf(version: string): string {
  if (/^[A-Za-z0-9.+-]{1,64}$/.test(version)) return `narad-replicator/${version}`;
  throw new IsthmusError(
    'invalidArgument',
    `version ${show(version)}: 1 to 64 letters, digits, dots, hyphens and plus signs`,
  );
}
