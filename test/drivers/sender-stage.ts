/** A host of a sender, in memory: its metadata, its parents and its cursors, and a node that sends from them. */
import { onTestFinished } from 'vitest';
import type { RemoteDraft, RemoteSenderOptions, RemoteSenderPorts } from '../../src/drivers/index.js';
import { createRemoteSender, type RemoteSender, sealRemote } from '../../src/drivers/index.js';
import { Guard, type GuardOptions } from '../../src/guard/index.js';
import type {
  LinkCursors,
  LinkWrite,
  LinkWriteAnswer,
  ParentTopic,
  ParentTopics,
  RemoteRegistry,
  StartMode,
  StoredLink,
  StoredRemote,
} from '../../src/ports/index.js';
import type { Slab, SlabLimits, SourceRecord } from '../../src/sender/index.js';
import { type FakeTarget, type FakeTargetOptions, startFakeTarget } from '../../src/testing/index.js';
import { keysOf } from '../credentials/fixture.js';

export const KEYS = keysOf('next', 'hex');

/** The metadata of a cluster, applied as it is written. */
export class Metadata implements RemoteRegistry {
  readonly remotes = new Map<string, StoredRemote>();
  readonly links = new Map<string, StoredLink>();
  readonly written: LinkWrite[] = [];
  reads = 0;
  private moves = 0;
  private epoch = 0;

  moved(): void {
    this.moves++;
  }

  version(): number {
    return this.moves;
  }

  async read() {
    this.reads++;
    return { remotes: [...this.remotes.values()], links: [...this.links.values()] };
  }

  async write(change: LinkWrite): Promise<LinkWriteAnswer> {
    this.written.push(change);
    this.moved();
    if (change.type === 'attach') {
      if (this.links.has(change.link.child)) return { type: 'refused', reason: 'the name is taken' };
      this.links.set(change.link.child, { ...change.link, attachEpoch: ++this.epoch });
      return { type: 'written' };
    }
    const link = this.links.get(change.child);
    if (link?.attachEpoch !== change.attachEpoch) return { type: 'refused', reason: 'the link has changed' };
    if (change.type === 'resume') this.set({ ...link, paused: false, targetId: change.targetId });
    if (change.type === 'pause') this.set({ ...link, paused: true });
    if (change.type === 'skip') this.set({ ...link, skips: [...link.skips, change.skip] });
    return { type: 'written' };
  }

  set(link: StoredLink): void {
    this.links.set(link.child, link);
    this.moved();
  }

  setRemote(remote: StoredRemote): void {
    this.remotes.set(remote.binding.name, remote);
    this.moved();
  }
}

export const PARENT: ParentTopic = {
  name: 'orders',
  id: '00000000000000bb',
  createdAt: 1_600_000_000,
  retentionMs: 0,
  children: 0,
  remoteChildren: 0,
  isChild: false,
};

/** Parents whose partitions are lists of records. */
export class Parents implements ParentTopics {
  readonly topics = new Map<string, ParentTopic>([['orders', PARENT]]);
  readonly partitions = new Map<string, SourceRecord[]>();
  readonly asked: { readonly limits: SlabLimits; readonly waitMs: number; readonly offset: number }[] = [];
  private readonly waiting = new Set<() => void>();

  async describe(parent: string) {
    return this.topics.get(parent);
  }

  async startOffsets(parent: string, from: StartMode) {
    return [0, 1, 2].map((partition) => (from === 'latest' ? this.log(parent, partition).length : 0));
  }

  append(partition: number, ...texts: string[]): void {
    const log = this.log('orders', partition);
    for (const text of texts) {
      const [key = '', payload = ''] = text.split('=', 2);
      const bytes = { key: Buffer.from(key), payload: Buffer.from(payload) };
      log.push({ offset: log.length, storedAtMs: Date.now(), ...bytes });
    }
    for (const wake of this.waiting) wake();
  }

  async read(
    { parent, partition, offset }: { readonly parent: string; readonly partition: number; readonly offset: number },
    limits: SlabLimits,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Slab> {
    this.asked.push({ limits, waitMs, offset });
    const log = this.log(parent, partition);
    if (log.length <= offset) await this.appended(waitMs, signal);
    const records: SourceRecord[] = [];
    let bytes = 0;
    for (const record of log.slice(offset, offset + limits.maxRecords)) {
      bytes += record.key.length + record.payload.length;
      if (records.length > 0 && bytes > limits.maxBytes) break;
      records.push(record);
    }
    return { records, nextOffset: offset + records.length };
  }

  async backlog(parent: string, partition: number, offset: number) {
    const [oldest, ...more] = this.log(parent, partition).slice(offset);
    return oldest === undefined ? { records: 0 } : { records: 1 + more.length, oldestStoredMs: oldest.storedAtMs };
  }

  private log(parent: string, partition: number): SourceRecord[] {
    const key = `${parent}/${partition}`;
    const log = this.partitions.get(key) ?? [];
    this.partitions.set(key, log);
    return log;
  }

  private appended(waitMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const clear = () => {
        clearTimeout(timer);
        this.waiting.delete(wake);
        signal.removeEventListener('abort', abort);
      };
      const wake = () => {
        clear();
        resolve();
      };
      const abort = () => {
        clear();
        reject(signal.reason);
      };
      const timer = setTimeout(wake, waitMs);
      this.waiting.add(wake);
      signal.addEventListener('abort', abort, { once: true });
    });
  }
}

export class Cursors implements LinkCursors {
  readonly offsets = new Map<string, number>();

  async read(child: string, attachEpoch: number, partition: number) {
    return this.offsets.get(`${child}/${attachEpoch}/${partition}`);
  }

  async write(child: string, attachEpoch: number, partition: number, offset: number) {
    this.offsets.set(`${child}/${attachEpoch}/${partition}`, offset);
  }
}

export interface StageOptions {
  readonly target?: FakeTargetOptions;
  readonly guard?: GuardOptions;
  readonly draft?: Partial<RemoteDraft>;
  readonly ports?: Partial<RemoteSenderPorts>;
  readonly options?: Partial<RemoteSenderOptions>;
}

/** A target, a remote `b` that leads to it, and a node whose sender runs. */
export class Stage {
  readonly metadata = new Metadata();
  readonly parents = new Parents();
  readonly cursors = new Cursors();
  readonly lines: string[] = [];
  sender: RemoteSender;

  private constructor(
    readonly target: FakeTarget,
    private readonly stageOptions: StageOptions,
  ) {
    this.sender = this.newSender();
  }

  static async start(options: StageOptions = {}): Promise<Stage> {
    const target = await startFakeTarget(options.target);
    const stage = new Stage(target, options);
    onTestFinished(async () => {
      await target.close();
      await stage.sender.stop();
    });
    await stage.addRemote('b', options.draft);
    stage.sender.start();
    stage.sender.takePartition('orders', 0);
    return stage;
  }

  /** What loopback needs; hosts are listed, so that checks tell what they see. */
  get guard(): GuardOptions {
    const port = Number(new URL(this.target.url).port);
    const listed = { allowedHosts: ['127.0.0.1', 'localhost', '*.example'], allowedPorts: [port] };
    return this.stageOptions.guard ?? { ...listed, allowAddresses: ['127.0.0.0/8'] };
  }

  newSender(): RemoteSender {
    const { metadata: registry, parents, cursors, lines } = this;
    const line = (level: string) => (message: string, fields: object) =>
      lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
    const logger = { error: line('error'), warn: line('warn'), info: line('info') };
    const { ports, options } = this.stageOptions;
    return createRemoteSender(
      { registry, parents, cursors, logger, ...ports },
      { keys: KEYS, guard: this.guard, ...options },
    );
  }

  async addRemote(name: string, draft: Partial<RemoteDraft> = {}, stored?: StoredRemote): Promise<StoredRemote> {
    const { url, caPem, credential } = this.target;
    const sealed = await sealRemote(
      { name, url, caPem, ...credential, ...draft },
      {
        keys: KEYS,
        guard: new Guard(this.guard),
        ...(this.stageOptions.ports?.resolve && { resolve: this.stageOptions.ports.resolve }),
        ...(stored && { stored }),
      },
    );
    if (sealed.type === 'refused') throw new Error(sealed.reason);
    this.metadata.setRemote(sealed.remote);
    return sealed.remote;
  }

  attach(change: Partial<Parameters<RemoteSender['attach']>[0]> = {}) {
    return this.sender.attach({
      ...{ parent: 'orders', child: 'copy', remote: 'b', topic: 'orders', from: 'earliest' },
      ...change,
    });
  }

  /** A link that was attached before, without the checks of an attach. */
  link(change: Partial<StoredLink> = {}): void {
    this.metadata.set({
      ...{
        parent: 'orders',
        child: 'copy',
        attachEpoch: 1,
        remote: 'b',
        topic: 'orders',
        targetId: '00000000000000aa',
      },
      ...{ lanes: 1, paused: false, skips: [], startOffsets: [0, 0, 0], retentionMs: 0 },
      ...change,
    });
  }

  stored(topic = 'orders'): string[] {
    return this.target.stored(topic).map(({ payload }) => Buffer.from(payload).toString());
  }

  state(child = 'copy'): string | undefined {
    return this.sender.status().links.find((link) => link.child === child)?.summary.state;
  }
}
