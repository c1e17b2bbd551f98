/**
 * The connection of one lane to one remote segment in a simulated world. Sends and results travel in order and take
 * time. A connection that is cut has two ends: the sender holds every send without a result for ambiguous at once, while
 * the server goes on storing what still comes in until it notices, and keeps the name for so long (R14).
 */
import { comparePositions } from '../dedup/index.js';
import { joinBuffers, type SourcePosition } from '../entry/index.js';
import type { Send, SendResult } from '../ports/index.js';
import type { NameHolder, WorldLog } from './replication-topic.js';
import type { VirtualClock } from './virtual-clock.js';

/** What a connection runs on. */
export interface WireHost {
  readonly clock: VirtualClock;
  readonly dedup: 'window' | 'readBack';
  readonly failStop: boolean;
  /** How long the next message takes. */
  delayMs(): number;
  /** Why the server does not take a send; undefined: it does. */
  refuse(send: Send): SendResult | undefined;
  /** A window has accepted a send, which is stored now. */
  accepted(log: WorldLog, send: Send): void;
  /** Stores an entry. */
  store(log: WorldLog, bytes: Uint8Array): SourcePosition;
  count(what: string): void;
}

const CUT: SendResult = { type: 'ambiguous', reason: 'the connection is cut' };

export class Wire implements NameHolder {
  /** As its sender has it. */
  private state: 'open' | 'cut' | 'closed' = 'open';
  private isServerOpen = true;
  /** When the last message of each direction arrives: none overtakes another. */
  private lastArrivalMs = 0;
  private lastResultMs = 0;
  private unanswered = 0;
  private onCut: () => void = () => undefined;
  /** Without a window: what was stored last, and whether something behind it has failed. */
  private lastStored: SourcePosition | undefined;
  private hasFailed = false;

  constructor(
    private readonly host: WireHost,
    readonly log: WorldLog,
    readonly name: string,
    private readonly onResult: (result: SendResult) => void,
  ) {
    log.names.set(name, this);
  }

  get isOpen(): boolean {
    return this.state === 'open';
  }

  /** Sends without a result. */
  get inFlight(): number {
    return this.unanswered;
  }

  send(send: Send): void {
    this.unanswered++;
    if (this.state === 'open') this.toServer(() => this.answer(this.judge(send)));
    else this.tellCut();
  }

  /** Stores an entry that consumers never see, and tells where; undefined when that is not known. */
  barrier(bytes: Uint8Array, onStored: (at: SourcePosition | undefined) => void): void {
    let isTold = false;
    const tell = (at: SourcePosition | undefined) => {
      if (!isTold) onStored(at);
      isTold = true;
    };
    this.onCut = () => this.fromServer(() => tell(undefined));
    if (this.state !== 'open') return this.onCut();
    this.toServer(() => {
      const at = this.log.sealed ? undefined : this.host.store(this.log, bytes);
      this.fromServer(() => {
        if (this.state === 'open') tell(at);
      });
    });
  }

  /** The sender gives the name back, behind everything that it has sent. */
  close(): void {
    this.state = 'closed';
    this.toServer(() => this.end());
  }

  /** The connection breaks; the server notices later. */
  cut(noticedInMs: number): void {
    if (this.state !== 'open') return;
    this.state = 'cut';
    this.host.count('cut');
    const { unanswered } = this;
    for (let i = 0; i < unanswered; i++) this.tellCut();
    this.onCut();
    this.host.clock.schedule(noticedInMs, () => this.end());
  }

  /** Everything on its way, and all behind it, takes so much longer: towards the server or back. */
  stall(direction: 'there' | 'back', ms: number): void {
    const { nowMs } = this.host.clock;
    if (direction === 'there') this.lastArrivalMs = Math.max(this.lastArrivalMs, nowMs) + ms;
    else this.lastResultMs = Math.max(this.lastResultMs, nowMs) + ms;
  }

  /** The sender is gone; the server notices later. */
  abandon(noticedInMs: number): void {
    this.state = 'closed';
    this.host.clock.schedule(noticedInMs, () => this.end());
  }

  end(): void {
    this.isServerOpen = false;
    if (this.log.names.get(this.name) === this) this.log.names.delete(this.name);
  }

  private judge(send: Send): SendResult {
    const { log, host } = this;
    if (log.sealed) return { type: 'sealed', reason: 'the segment takes no more writes' };
    const refusal = host.refuse(send);
    if (refusal !== undefined) {
      this.hasFailed = true;
      return refusal;
    }
    if (host.dedup === 'readBack') {
      if (this.hasFailed && host.failStop && this.isMissing(send.previous)) return { type: 'gap' };
      this.hasFailed = false;
      this.lastStored = send.position;
      return { type: 'stored', at: host.store(log, joinBuffers(send.buffers)) };
    }
    const answer = log.window.offer(this.name, send);
    if (answer === 'accept') {
      host.accepted(log, send);
      return { type: 'stored', at: host.store(log, joinBuffers(send.buffers)) };
    }
    return typeof answer === 'object' ? { type: 'partial', partial: answer.partial } : { type: answer };
  }

  private isMissing(previous: SourcePosition | undefined): boolean {
    if (previous === undefined) return false;
    return this.lastStored === undefined || comparePositions(this.lastStored, previous) < 0;
  }

  private answer(result: SendResult): void {
    this.host.count(`answered ${result.type}`);
    this.fromServer(() => {
      if (this.state === 'open') this.tell(result);
    });
  }

  private tellCut(): void {
    this.fromServer(() => {
      if (this.state === 'cut') this.tell(CUT);
    });
  }

  private tell(result: SendResult): void {
    this.unanswered--;
    this.onResult(result);
  }

  private toServer(arrive: () => void): void {
    const { clock } = this.host;
    this.lastArrivalMs = Math.max(this.lastArrivalMs, clock.nowMs + this.host.delayMs());
    clock.schedule(this.lastArrivalMs - clock.nowMs, () => {
      if (this.isServerOpen) arrive();
    });
  }

  private fromServer(arrive: () => void): void {
    const { clock } = this.host;
    this.lastResultMs = Math.max(this.lastResultMs, clock.nowMs + this.host.delayMs());
    clock.schedule(this.lastResultMs - clock.nowMs, arrive);
  }
}
