/**
 * A node with the real driver and real HTTPS, on a clock that runs faster than time, against fake targets. What is the
 * host's is in memory; a process that dies writes no cursor any more, and the next one begins where the cursors stand.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRemoteSender, type RemoteSender, sealRemote } from '../../src/drivers/index.js';
import { Guard } from '../../src/guard/index.js';
import type { Clock, StoredLimits, StoredLink } from '../../src/ports/index.js';
import type { SourceRecord } from '../../src/sender/index.js';
import { type FakeTarget, type FakeTargetOptions, startFakeTarget } from '../../src/testing/index.js';
import { Cursors, KEYS, Metadata, Parents } from '../drivers/sender-stage.js';

/** Timers of less are no timers. */
const LEAST_SLEEP_MS = 5;

/** A clock that runs so many times as fast as the process's own. */
export function fastClock(factor: number): Clock {
  const begunMs = performance.now();
  return {
    now: () => Math.floor(1_700_000_000_000 + (performance.now() - begunMs) * factor),
    sleep: (ms, signal) => sleep(Math.max(LEAST_SLEEP_MS, ms / factor), undefined, { signal }),
  };
}

export interface HttpsWorldOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly maxHeldBytes?: number;
}

export class HttpsWorld {
  readonly metadata = new Metadata();
  readonly parents = new Parents();
  readonly cursors = new Cursors();
  readonly targets = new Map<string, FakeTarget>();
  failWrites = false;
  sender: RemoteSender | undefined;
  private life = 0;

  constructor(private readonly options: HttpsWorldOptions) {}

  get clock(): Clock {
    return this.options.clock;
  }

  /** A target, and a remote of its name that leads to it. */
  async remote(name: string, target: FakeTargetOptions, limits: Partial<StoredLimits>): Promise<FakeTarget> {
    const started = await startFakeTarget(target);
    this.targets.set(name, started);
    await this.seal(name, limits);
    return started;
  }

  /** Seals the credential of a remote, anew if it has one: its version goes up. */
  async seal(name: string, limits: Partial<StoredLimits> = {}): Promise<void> {
    const { url, caPem, credential } = this.target(name);
    const stored = this.metadata.remotes.get(name);
    const draft = { name, url, caPem, ...credential, limits };
    const sealed = await sealRemote(draft, { keys: KEYS, guard: new Guard(this.guard), ...(stored && { stored }) });
    if (sealed.type === 'refused') throw new Error(sealed.reason);
    this.metadata.setRemote(sealed.remote);
  }

  /** A link with a parent of one partition of its own. */
  link(child: string, records: readonly SourceRecord[], change: Partial<StoredLink>): void {
    const parent = `parent-of-${child}`;
    this.parents.partitions.set(`${parent}/0`, [...records]);
    const place = { parent, child, attachEpoch: 1, topic: 'orders', targetId: '00000000000000aa', remote: 'b' };
    const state = { lanes: 1, paused: false, skips: [], startOffsets: [0], retentionMs: 0 };
    this.metadata.set({ ...place, ...state, ...change });
  }

  change(child: string, change: Partial<StoredLink>): void {
    const link = this.metadata.links.get(child);
    if (link !== undefined) this.metadata.set({ ...link, ...change });
  }

  start(): void {
    const life = ++this.life;
    const { clock, random, maxHeldBytes } = this.options;
    const cursors = {
      read: this.cursors.read.bind(this.cursors),
      write: async (...place: Parameters<Cursors['write']>) => {
        await sleep(1);
        if (life !== this.life) return;
        if (this.failWrites) throw new Error('the disk is full');
        await this.cursors.write(...place);
      },
    };
    this.sender = createRemoteSender(
      { registry: this.metadata, parents: this.parents, cursors, clock, random: { next: random } },
      { keys: KEYS, guard: this.guard, ...(maxHeldBytes !== undefined && { maxHeldBytes }) },
    );
    this.sender.start();
    for (const { parent } of this.metadata.links.values()) this.sender.takePartition(parent, 0);
  }

  /** The process dies, and another one starts. What was sent may still arrive. */
  crash(): void {
    const old = this.sender;
    this.start();
    void old?.stop();
  }

  get isDrained(): boolean {
    return [...this.metadata.links.values()].every(({ child, parent }) => {
      const records = this.parents.partitions.get(`${parent}/0`) ?? [];
      return (this.cursors.offsets.get(`${child}/1/0`) ?? 0) >= records.length;
    });
  }

  /** What there is to say when it does not drain. */
  get standing(): string {
    const links = this.sender?.status().links ?? [];
    return links.map(({ child, summary, cursors }) => `${child} ${summary.state} ${cursors[0]?.offset}`).join(', ');
  }

  target(name: string): FakeTarget {
    const target = this.targets.get(name);
    if (target === undefined) throw new Error(`no target ${name}`);
    return target;
  }

  async close(): Promise<void> {
    await Promise.all([...this.targets.values()].map((target) => target.close()));
    await this.sender?.stop();
  }

  private get guard() {
    const allowedPorts = [...this.targets.values()].map(({ url }) => Number(new URL(url).port));
    return { allowedHosts: ['127.0.0.1'], allowedPorts, allowAddresses: ['127.0.0.0/8'] };
  }
}
