/**
 * A node with its sender, on a clock of its own: parents' partitions in memory, cursors that are durable a millisecond
 * after they are written, and targets reached over a network that does to each request what a test says.
 */
import {
  type HttpOutcome,
  type LinkRecord,
  NodeSender,
  type RemoteLookup,
  type SenderEffect,
  type SenderEvent,
  type SenderLog,
  type SenderRequest,
  type Slab,
  type SourceRecord,
} from '../../src/sender/index.js';
import { codecs } from '../support/codecs.js';
import { Target } from './target.js';

/** What the network does to a request: by default the target gets it after 1 ms and the answer arrives after 2. */
export interface Passage {
  /** When the target gets it; undefined: never. */
  readonly landsMs?: number | undefined;
  readonly answersMs?: number;
  /** What the sender is told instead of the target's answer. */
  readonly outcome?: HttpOutcome;
}

export interface SentRequest {
  readonly atMs: number;
  readonly remote: string;
  readonly request: SenderRequest;
  readonly waitedMs: number;
}

export interface WorldOptions {
  readonly random?: () => number;
  readonly maxHeldBytes?: number;
  readonly compress?: (body: Uint8Array) => Uint8Array;
}

type Untimed<T> = T extends unknown ? Omit<T, 'nowMs'> : never;

export const READY: Extract<RemoteLookup, { readonly state: 'ready' }> = {
  state: 'ready',
  remoteId: 'a41c07d9e25b3f60',
  credentialVersion: 1,
  limits: { maxInFlight: 16, requestTimeoutMs: 30_000, checkIntervalMs: 60_000, compression: 'none' },
};

export class World {
  nowMs = 1_000_000;
  readonly startMs = this.nowMs;
  readonly sent: SentRequest[] = [];
  readonly reads: string[] = [];
  readonly logs: SenderLog[] = [];
  readonly targets = new Map<string, Target>();
  readonly records = new Map<string, SourceRecord[]>();
  /** By cursor: what a process that starts would find. */
  readonly durable = new Map<string, number>();
  /** What was lost to retention, to be told with the next slab of a cursor. */
  readonly lost = new Map<string, { from: number; to: number }>();
  passage: (request: SenderRequest, remote: string) => Passage = () => ({});
  /** The write of a cursor takes this long. */
  writeMs = 1;
  failWrites = false;
  sender: NodeSender;
  private process = 0;
  private readonly places = new Map<string, { child: string; partition: number }>();
  private readonly lookups = new Map<string, RemoteLookup>();
  private readonly links = new Map<string, LinkRecord>();
  private readonly agenda: { atMs: number; order: number; run: () => void }[] = [];
  private order = 0;
  private timer = 0;

  constructor(private readonly options: WorldOptions = {}) {
    this.sender = this.newSender();
  }

  private newSender(): NodeSender {
    const { random = () => 0.5, compress = (body) => codecs.zstd.compress(body), maxHeldBytes } = this.options;
    return new NodeSender({
      random: { next: random },
      compress,
      ...(maxHeldBytes === undefined ? {} : { maxHeldBytes }),
    });
  }

  // What a host does.

  remote(name: string, lookup: RemoteLookup = READY): void {
    if (!this.targets.has(name)) this.targets.set(name, new Target());
    this.lookups.set(name, lookup);
    this.tell({ type: 'remote', remote: name, lookup });
  }

  limits(name: string, limits: Partial<(typeof READY)['limits']>): void {
    this.remote(name, { ...READY, limits: { ...READY.limits, ...limits } });
  }

  link(child: string, change: Partial<LinkRecord> = {}): void {
    const record: LinkRecord = {
      parent: 'orders',
      child,
      attachEpoch: 1,
      remote: 'b',
      topic: 'orders',
      targetId: '00000000000000aa',
      lanes: 1,
      paused: false,
      skips: [],
      ...this.links.get(child),
      ...change,
    };
    this.links.set(child, record);
    this.tell({ type: 'link', child, record });
  }

  attach(cursor: string, child: string, partition: number, records: readonly SourceRecord[], offset = 0): void {
    this.places.set(cursor, { child, partition });
    this.records.set(cursor, [...records]);
    this.durable.set(cursor, offset);
    this.tell({ type: 'attach', cursor, child, partition, offset });
  }

  /** The process dies, and another one starts where the cursors stand. What was sent may still arrive. */
  crash(): void {
    this.process++;
    this.sender = this.newSender();
    for (const [remote, lookup] of this.lookups) this.tell({ type: 'remote', remote, lookup });
    for (const [child, record] of this.links) this.tell({ type: 'link', child, record });
    for (const [cursor, { child, partition }] of this.places) {
      this.tell({ type: 'attach', cursor, child, partition, offset: this.durable.get(cursor) ?? 0 });
    }
  }

  tell(event: Untimed<SenderEvent>): void {
    const effects = this.sender.handle({ ...event, nowMs: this.nowMs } as SenderEvent);
    for (const effect of effects) this.perform(effect);
  }

  // Time.

  at(inMs: number, run: () => void): void {
    const { process } = this;
    this.later(inMs, () => {
      if (process === this.process) run();
    });
  }

  /** Happens even if the process has died meanwhile. */
  later(inMs: number, run: () => void): void {
    this.agenda.push({ atMs: this.nowMs + inMs, order: this.order++, run });
  }

  /** Lets time pass, or stops when something is so. */
  run(forMs: number, until: () => boolean = () => false): void {
    const endMs = this.nowMs + forMs;
    for (;;) {
      if (until()) return;
      let next = 0;
      for (let i = 1; i < this.agenda.length; i++) if (isBefore(this.agenda[i], this.agenda[next])) next = i;
      const entry = this.agenda[next];
      if (entry === undefined || entry.atMs > endMs) break;
      this.agenda.splice(next, 1);
      this.nowMs = Math.max(this.nowMs, entry.atMs);
      entry.run();
    }
    this.nowMs = endMs;
  }

  get isDrained(): boolean {
    return [...this.records].every(([cursor, records]) => {
      const last = records[records.length - 1];
      return last === undefined || (this.durable.get(cursor) ?? 0) > last.offset;
    });
  }

  target(remote = 'b'): Target {
    const target = this.targets.get(remote);
    if (target === undefined) throw new Error(`no target ${remote}`);
    return target;
  }

  state(cursor: string): string | undefined {
    return this.sender.report().cursors.find((report) => report.cursor === cursor)?.state;
  }

  // What the sender asks for.

  private perform(effect: SenderEffect): void {
    switch (effect.type) {
      case 'read':
        return this.read(effect);
      case 'write':
        return this.write(effect);
      case 'request':
        return this.send(effect);
      case 'wake':
        return this.setTimer(effect.atMs);
      case 'log':
        this.logs.push(effect.entry);
        return;
      case 'detached':
        this.places.delete(effect.cursor);
    }
  }

  private setTimer(atMs: number): void {
    const timer = ++this.timer;
    this.at(Math.max(0, atMs - this.nowMs), () => {
      if (timer === this.timer) this.tell({ type: 'tick' });
    });
  }

  private read({ cursor, offset, limits }: Extract<SenderEffect, { type: 'read' }>): void {
    this.reads.push(cursor);
    const give = () => this.tell({ type: 'slab', cursor, slab: this.slab(cursor, offset, limits) });
    const isThere = (this.records.get(cursor) ?? []).some((record) => record.offset >= offset);
    this.at(isThere ? 1 : 1_000, give);
  }

  private slab(cursor: string, offset: number, limits: { maxRecords: number; maxBytes: number }): Slab {
    const lost = this.lost.get(cursor);
    this.lost.delete(cursor);
    const from = lost === undefined ? offset : lost.to + 1;
    const records: SourceRecord[] = [];
    let bytes = 0;
    for (const record of this.records.get(cursor) ?? []) {
      if (record.offset < from) continue;
      bytes += record.payload.length + record.key.length;
      if (records.length > 0 && (records.length >= limits.maxRecords || bytes > limits.maxBytes)) break;
      records.push(record);
    }
    const nextOffset = (records[records.length - 1]?.offset ?? from - 1) + 1;
    return { records, nextOffset, ...(lost === undefined ? {} : { lost }) };
  }

  private write({ cursor, offset }: Extract<SenderEffect, { type: 'write' }>): void {
    this.at(this.writeMs, () => {
      if (this.failWrites) return this.tell({ type: 'writeFailed', cursor });
      this.durable.set(cursor, offset);
      this.tell({ type: 'written', cursor });
    });
  }

  private send({ id, remote, request, waitedMs, timeoutMs }: Extract<SenderEffect, { type: 'request' }>): void {
    this.sent.push({ atMs: this.nowMs, remote, request, waitedMs });
    const passage = this.passage(request, remote);
    let outcome = passage.outcome;
    const landsMs = 'landsMs' in passage ? passage.landsMs : 1;
    if (landsMs !== undefined) {
      this.later(landsMs, () => {
        const answer = this.target(remote).handle(request);
        outcome ??= answer;
      });
    }
    this.at(passage.answersMs ?? 2, () => {
      this.tell({ type: 'answered', request: id, outcome: outcome ?? { type: 'failed', timeout: timeoutMs > 0 } });
    });
  }
}

type Entry = { atMs: number; order: number } | undefined;

function isBefore(a: Entry, b: Entry): boolean {
  if (a === undefined || b === undefined) return b === undefined;
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Records from offset 0 on, one for each `key payload`. */
export function recordsOf(...texts: readonly (readonly [key: string, payload: string])[]): SourceRecord[] {
  return texts.map(([key, payload], offset) => recordOf(offset, key, payload));
}

export function recordOf(offset: number, key: string, payload: string): SourceRecord {
  return { offset, key: Buffer.from(key, 'latin1'), payload: Buffer.from(payload, 'latin1'), storedAtMs: offset };
}

/** So many records over some keys, with payloads that tell them apart. */
export function manyRecords(count: number, keys = 5): SourceRecord[] {
  return Array.from({ length: count }, (_, n) => recordOf(n, `k${n % keys}`, `{"n":${n}}`));
}
