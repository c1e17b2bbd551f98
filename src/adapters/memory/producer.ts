/**
 * The open producer of one source segment on one segment of a topic in memory. Every send is judged at once, and its
 * result told before `send` returns, or behind the results before it when it is sent from within one.
 */
import { comparePositions } from '../../dedup/index.js';
import type { SourcePosition } from '../../entry/index.js';
import { IsthmusError } from '../../errors.js';
import type { RemoteProducer, RemoteSupport, Send, SendResult } from '../../ports/index.js';
import type { NameHolder, SegmentLog } from './segment-log.js';

const DUPLICATE: SendResult = { type: 'duplicate' };
const GAP: SendResult = { type: 'gap' };
const SEALED: SendResult = { type: 'sealed', reason: 'the segment takes no more writes' };
const AMBIGUOUS: SendResult = { type: 'ambiguous', reason: 'the connection is cut' };

/** Where a producer sends, and as whom. */
export interface ProducerPlace {
  readonly log: SegmentLog;
  readonly name: string;
  readonly sourceCluster: string;
  readonly supports: RemoteSupport;
  /** Bytes. */
  readonly maxEntryBytes: number;
}

export class MemoryProducer implements RemoteProducer, NameHolder {
  private state: 'open' | 'cut' | 'closed' = 'open';
  private readonly judge: (send: Send) => SendResult;
  private isTelling = false;
  /** Results of sends that were made while a result was told. */
  private readonly untold: SendResult[] = [];

  constructor(
    private readonly place: ProducerPlace,
    private readonly onResult: (result: SendResult) => void,
  ) {
    this.judge = place.supports.dedup === 'window' ? windowJudge(place) : storingJudge(place);
  }

  get sourceCluster(): string {
    return this.place.sourceCluster;
  }

  send(send: Send): void {
    if (this.state === 'closed') return;
    const result = this.state === 'cut' ? AMBIGUOUS : this.judge(send);
    // A replicator that sends more for every result would otherwise fill the stack.
    if (this.isTelling) this.untold.push(result);
    else this.tell(result);
  }

  private tell(result: SendResult): void {
    this.isTelling = true;
    try {
      this.onResult(result);
      if (this.untold.length > 0) this.tellRest();
    } finally {
      this.isTelling = false;
    }
  }

  private tellRest(): void {
    for (let i = 0; i < this.untold.length; i++) this.onResult(this.untold[i] as SendResult);
    this.untold.length = 0;
  }

  async barrier(): Promise<SourcePosition> {
    const { log, name, supports } = this.place;
    if (supports.dedup !== 'readBack') throw new IsthmusError('invalidOperation', 'barriers are for reading back');
    if (this.state !== 'open') throw new Error(`the producer is ${this.state}`);
    if (log.sealed) throw new Error('the segment takes no more writes');
    return log.appendBarrier(name);
  }

  async close(): Promise<void> {
    this.state = 'closed';
    this.untold.length = 0;
    this.giveBackName();
  }

  cut(): void {
    if (this.state !== 'open') return;
    this.state = 'cut';
    this.untold.fill(AMBIGUOUS);
    this.giveBackName();
  }

  /** After a cut it may be somebody else's already. */
  private giveBackName(): void {
    const { log, name } = this.place;
    if (log.producers.get(name) === this) log.producers.delete(name);
  }
}

/** The window finds out what is sent twice, and what is sent behind a failure: that is a gap (R12b). */
function windowJudge({ log, name, maxEntryBytes }: ProducerPlace): (send: Send) => SendResult {
  return (send) => {
    if (log.sealed) return SEALED;
    if (sizeOf(send) > maxEntryBytes) return tooLarge(send, maxEntryBytes);
    const answer = log.window.offer(name, send);
    if (answer === 'accept') return { type: 'stored', at: log.append(send.buffers) };
    if (typeof answer === 'object') return { type: 'partial', partial: answer.partial };
    return answer === 'duplicate' ? DUPLICATE : GAP;
  };
}

/**
 * Stores what comes. With fail-stop, what names a send as its previous that has failed is a gap: so a replicator that
 * begins anew behind a failure needs no new producer, as with a window.
 */
function storingJudge({ log, supports, maxEntryBytes }: ProducerPlace): (send: Send) => SendResult {
  let lastStored: SourcePosition | undefined;
  let hasFailed = false;
  const isMissing = (previous: SourcePosition | undefined): boolean =>
    previous !== undefined && (lastStored === undefined || comparePositions(lastStored, previous) < 0);
  return (send) => {
    if (log.sealed) return SEALED;
    if (hasFailed && supports.failStop && isMissing(send.previous)) return GAP;
    if (sizeOf(send) > maxEntryBytes) {
      hasFailed = true;
      return tooLarge(send, maxEntryBytes);
    }
    lastStored = send.position;
    hasFailed = false;
    return { type: 'stored', at: log.append(send.buffers) };
  };
}

function sizeOf({ buffers }: Send): number {
  return buffers.head.length + buffers.payload.length;
}

function tooLarge(send: Send, maxEntryBytes: number): SendResult {
  return { type: 'tooLarge', reason: `an entry of ${sizeOf(send)} bytes; the limit is ${maxEntryBytes}` };
}
