/** Runs the machine of a node's sender: its events with their time, its effects against ports, transport and timer. */
import { messageOf } from '../../errors.js';
import type { Clock, LinkCursors, ParentTopics, StoredLink } from '../../ports/index.js';
import {
  type CursorName,
  type NodeReport,
  NodeSender,
  type NodeSenderOptions,
  type SenderEffect,
  type SenderInput,
} from '../../sender/index.js';
import { Timer } from '../timer.js';
import type { SenderVoice } from './log.js';
import { readSlab } from './slab-reader.js';
import type { HttpsTransport } from './transport.js';

/** A cursor of this node. */
export interface CursorPlace {
  readonly cursor: string;
  readonly link: StoredLink;
  readonly partition: number;
}

/** Told of every request: how long it waited for a slot, and how long it took. */
export interface RequestWatch {
  /** In seconds; of requests with records only. */
  waited(remote: string, seconds: number): void;
  /** In seconds, failed ones included. */
  took(remote: string, seconds: number): void;
}

export interface MachineParts {
  readonly parents: ParentTopics;
  readonly cursors: LinkCursors;
  readonly transport: HttpsTransport;
  readonly clock: Clock;
  readonly voice: SenderVoice;
  readonly watches: ReadonlySet<RequestWatch>;
  readonly place: (cursor: string) => CursorPlace | undefined;
  /** Nothing follows of this cursor. */
  readonly detached: (cursor: string) => void;
}

type EffectOf<Type extends SenderEffect['type']> = Extract<SenderEffect, { readonly type: Type }>;

export class MachineRun {
  private readonly machine: NodeSender;
  private readonly timer: Timer;
  private readonly reads = new Map<string, AbortController>();

  constructor(
    private readonly parts: MachineParts,
    options: NodeSenderOptions,
  ) {
    this.machine = new NodeSender(options);
    this.timer = new Timer(parts.clock, () => this.tell({ type: 'tick' }));
  }

  /** Throws `invalidArgument` as the machine does. */
  tell(input: SenderInput): void {
    for (const effect of this.machine.handle({ ...input, nowMs: this.parts.clock.now() })) this.perform(effect);
  }

  report(): NodeReport {
    return this.machine.report();
  }

  /** The cursor is not this node's any more: a read that waits for records is given up. */
  detach(cursor: string): void {
    this.tell({ type: 'detach', cursor });
    this.reads.get(cursor)?.abort();
  }

  stop(): void {
    this.timer.clear();
  }

  private perform(effect: SenderEffect): void {
    switch (effect.type) {
      case 'read':
        return void this.read(effect);
      case 'write':
        return void this.write(effect);
      case 'request':
        return void this.request(effect);
      case 'wake':
        return this.timer.set(effect.atMs);
      case 'log':
        return this.parts.voice.tell(effect.entry);
      case 'detached':
        return this.parts.detached(effect.cursor);
    }
  }

  private async read({ cursor, offset, limits }: EffectOf<'read'>): Promise<void> {
    const place = this.parts.place(cursor);
    const reading = new AbortController();
    this.reads.set(cursor, reading);
    try {
      if (place === undefined) throw new Error('the cursor is gone');
      const { partition, link } = place;
      const slab = await readSlab(this.parts, { parent: link.parent, partition, offset }, limits, reading.signal);
      this.tell({ type: 'slab', cursor, slab });
    } catch (error) {
      if (!reading.signal.aborted && place !== undefined) {
        const entry = { type: 'parentUnread', level: 'warn', ...nameOf(place), reason: messageOf(error) } as const;
        this.parts.voice.repeat(entry, this.parts.clock.now());
      }
      this.tell({ type: 'readFailed', cursor });
    } finally {
      if (this.reads.get(cursor) === reading) this.reads.delete(cursor);
    }
  }

  private async write({ cursor, offset }: EffectOf<'write'>): Promise<void> {
    const place = this.parts.place(cursor);
    try {
      if (place === undefined) throw new Error('the cursor is gone');
      const { link, partition } = place;
      await this.parts.cursors.write(link.child, link.attachEpoch, partition, offset);
    } catch (error) {
      if (place !== undefined) {
        const entry = { type: 'cursorUnwritten', level: 'error', ...nameOf(place), reason: messageOf(error) } as const;
        this.parts.voice.repeat(entry, this.parts.clock.now());
      }
      return this.tell({ type: 'writeFailed', cursor });
    }
    this.tell({ type: 'written', cursor });
  }

  private async request({ id, remote, credential, request, timeoutMs, waitedMs }: EffectOf<'request'>): Promise<void> {
    const begunMs = performance.now();
    const outcome = await this.parts.transport.send(remote, credential, request, timeoutMs);
    const seconds = (performance.now() - begunMs) / 1000;
    for (const watch of this.parts.watches) {
      if (request.pool === 'chunk') watch.waited(remote, waitedMs / 1000);
      if (outcome.type !== 'notSent') watch.took(remote, seconds);
    }
    this.tell({ type: 'answered', request: id, outcome });
  }
}

function nameOf({ link, partition }: CursorPlace): CursorName {
  return { parent: link.parent, partition, child: link.child };
}
