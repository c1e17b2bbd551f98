/**
 * The remote children of one node, as one machine: every event gives the effects that follow from it. Cursors send side
 * by side; what they have in common is here: one gate, one set of slots and one knowledge of the target for each remote,
 * one running check for each link, and one budget of held bytes for all.
 */
import type { Compress } from './chunk.js';
import type { LinkCounters, RemoteCounters } from './counters.js';
import { Cursor } from './cursor.js';
import { type CursorReport, reportCursor } from './cursor-report.js';
import type { SenderEffect, SenderEvent } from './events.js';
import type { GateWaiter } from './gate.js';
import { HeldBudget } from './held.js';
import { Hub } from './hub.js';
import { checkLimits, checkLink, checkOffset, checkSlab, refused } from './inputs.js';
import { Link } from './link.js';
import type { Jitter, LinkRecord, RemoteLookup } from './ports.js';
import { RemoteShare } from './remote-share.js';

export const DEFAULT_HELD_BYTES = 268_435_456;

export interface NodeSenderOptions {
  readonly random: Jitter;
  /** Called for remotes that ask for compression only. */
  readonly compress: Compress;
  /** What waiting lanes may keep in memory, in bytes, over the whole node; default 256 MiB. 0 or less holds nothing. */
  readonly maxHeldBytes?: number;
}

export interface RemoteReport extends RemoteCounters {
  /** The ceiling of the gate's wait; 0 when it is open. */
  readonly remoteGateBackoffSeconds: number;
  readonly remoteInFlight: number;
  /** The smallest cap of all lanes; absent without lanes. */
  readonly remoteChunkBytesLimit?: number;
}

export interface LinkReport extends LinkCounters {
  /** When its target last accepted records from this node; it only grows. */
  readonly lastSuccessMs?: number;
}

export interface NodeReport {
  readonly remoteHeldBytes: number;
  readonly remotes: Readonly<Record<string, RemoteReport>>;
  readonly links: Readonly<Record<string, LinkReport>>;
  readonly cursors: readonly CursorReport[];
}

export class NodeSender {
  private readonly hub: Hub;
  private readonly remotes = new Map<string, RemoteShare>();
  private readonly links = new Map<string, Link>();
  private readonly cursors = new Map<string, Cursor>();
  private wakeAtMs: number | undefined;

  constructor({ random, compress, maxHeldBytes = DEFAULT_HELD_BYTES }: NodeSenderOptions) {
    this.hub = new Hub(random, new HeldBudget(maxHeldBytes), compress);
  }

  /** What follows from an event. Throws `invalidArgument`, and changes nothing, when a value in it breaks a rule. */
  handle(event: SenderEvent): readonly SenderEffect[] {
    if (!Number.isFinite(event.nowMs)) throw refused('nowMs', event.nowMs, 'it must be a finite number');
    const take = this.accept(event);
    this.hub.nowMs = Math.max(this.hub.nowMs, event.nowMs);
    take();
    this.hub.settle(() => this.released());
    this.tellGates();
    for (const [name, cursor] of this.cursors) if (cursor.isGone) this.cursors.delete(name);
    this.setTimer(event.type === 'tick');
    return this.hub.takeEffects();
  }

  report(): NodeReport {
    const remotes = [...this.remotes.values()].map((remote) => [remote.name, this.reportRemote(remote)] as const);
    return {
      remoteHeldBytes: this.hub.held.bytes,
      remotes: Object.fromEntries(remotes),
      links: Object.fromEntries([...this.links].map(([child, link]) => [child, reportLink(link)])),
      cursors: [...this.cursors.values()].map(reportCursor),
    };
  }

  /** Checks an event; what it gives is done once all of it was found good. */
  private accept(event: SenderEvent): () => void {
    switch (event.type) {
      case 'tick':
        return () => {};
      case 'remote':
        checkLimits(event.lookup);
        return () => this.setRemote(event.remote, event.lookup);
      case 'link':
        return this.acceptLink(event.child, event.record);
      case 'attach':
        return this.acceptCursor(event);
      case 'slab': {
        const cursor = this.cursor(event.cursor);
        checkSlab(event.slab, cursor?.offset ?? 0);
        return () => cursor?.took(event.slab);
      }
      case 'answered':
        return () => this.hub.answered(event.request, event.outcome);
      case 'detach':
        return () => this.cursor(event.cursor)?.detach();
      case 'readFailed':
        return () => this.cursor(event.cursor)?.readFailed();
      case 'written':
        return () => this.cursor(event.cursor)?.written();
      case 'writeFailed':
        return () => this.cursor(event.cursor)?.writeFailed();
    }
  }

  private setRemote(name: string, lookup: RemoteLookup): void {
    const remote = this.remotes.get(name) ?? new RemoteShare(name, this.hub);
    this.remotes.set(name, remote);
    remote.update(lookup);
    for (const link of this.links.values()) if (link.remote === remote) link.changed();
  }

  private acceptLink(child: string, record: LinkRecord | undefined): () => void {
    const link = this.links.get(child);
    if (record === undefined) return () => this.endLink(child, link);
    checkLink(child, record);
    const remote = this.remotes.get(record.remote);
    if (remote === undefined) throw refused('remote', record.remote, 'it must be told of before the first link to it');
    if (link !== undefined && link.remote === remote && link.record.attachEpoch === record.attachEpoch) {
      return () => link.update(record);
    }
    return () => {
      this.endLink(child, link);
      this.links.set(child, new Link(record, remote, this.hub));
    };
  }

  private endLink(child: string, link: Link | undefined): void {
    this.links.delete(child);
    for (const cursor of link?.cursors ?? []) cursor.cancel();
  }

  private acceptCursor(event: Extract<SenderEvent, { readonly type: 'attach' }>): () => void {
    const { cursor: name, child, partition, offset } = event;
    const link = this.links.get(child);
    if (link === undefined) throw refused('child', child, 'its link must be told of before its cursors');
    if (this.cursors.has(name)) throw refused('cursor', name, 'it is attached already');
    checkOffset('partition', partition);
    checkOffset('offset', offset);
    return () => {
      const cursor = new Cursor(name, link, partition, offset, this.hub);
      this.cursors.set(name, cursor);
      this.hub.run(cursor);
    };
  }

  /** One that is gone is told of for a while. */
  private cursor(name: string): Cursor | undefined {
    return this.cursors.get(name);
  }

  private *released(): Generator<GateWaiter> {
    for (const { gate, slots } of this.remotes.values()) {
      yield* gate.due(this.hub.nowMs);
      yield* slots.granted();
    }
  }

  /** A gate that closed or opened changes the state of all who have to pass it. */
  private tellGates(): void {
    for (const remote of this.remotes.values()) {
      if (remote.gate.reason === remote.toldReason) continue;
      remote.toldReason = remote.gate.reason;
      for (const cursor of this.cursors.values()) if (cursor.link.remote === remote) cursor.tell();
    }
  }

  private setTimer(hasGoneOff: boolean): void {
    if (hasGoneOff) this.wakeAtMs = undefined;
    let atMs = this.hub.agenda.firstMs ?? Number.POSITIVE_INFINITY;
    for (const { gate } of this.remotes.values()) atMs = Math.min(atMs, gate.dueAtMs ?? atMs);
    if (!Number.isFinite(atMs) || atMs === this.wakeAtMs) return;
    this.wakeAtMs = atMs;
    this.hub.emit({ type: 'wake', atMs });
  }

  private reportRemote(remote: RemoteShare): RemoteReport {
    const lanes = [...this.cursors.values()].filter(({ link }) => link.remote === remote).flatMap(({ lanes }) => lanes);
    const { counters, gate, slots } = remote;
    return {
      ...counters,
      remoteErrorsTotal: { ...counters.remoteErrorsTotal },
      remoteRequestsTotal: { ...counters.remoteRequestsTotal },
      remoteGateBackoffSeconds: gate.backoffMs / 1000,
      remoteInFlight: slots.inUse,
      ...(lanes.length === 0 ? {} : { remoteChunkBytesLimit: Math.min(...lanes.map(({ cap }) => cap.bytes)) }),
    };
  }
}

function reportLink({ counters, lastSuccessMs }: Link): LinkReport {
  return { ...counters, ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }) };
}
