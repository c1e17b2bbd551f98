/**
 * Runs the machine of one source segment: its effects go through the ports, and what comes of them goes back to it as
 * events, one at a time. Nothing is decided here.
 */

import { parseEntry, type SourcePosition } from '../entry/index.js';
import { messageOf } from '../errors.js';
import type {
  Clock,
  CursorRecord,
  CursorStore,
  EntrySource,
  RemoteProducer,
  RemoteTopic,
  RemoteTopicLayout,
  SchemaTranslator,
  SendResult,
  StoredEntry,
} from '../ports/index.js';
import type { SourceSegment } from '../rebatch/index.js';
import {
  type Recovery,
  type ReplicatorCounters,
  type SegmentEffect,
  type SegmentEvent,
  type SegmentNotice,
  type SegmentOptions,
  SegmentReplicator,
  type SegmentReport,
} from '../replication/index.js';
import { type ReadBackPorts, readBackSegment } from './read-back.js';
import type { RemoteRate } from './remote-rate.js';
import type { SlowPath } from './slow-path.js';
import { Timer } from './timer.js';

/** What a segment's driver needs of the replicator of its topic. */
export interface SegmentContext {
  readonly source: EntrySource;
  readonly remote: RemoteTopic;
  readonly cursors: CursorStore;
  readonly schemas: SchemaTranslator | undefined;
  readonly slowPath: SlowPath | undefined;
  readonly rate: RemoteRate | undefined;
  readonly clock: Clock;
  readonly options: SegmentOptions;
  readonly counters: ReplicatorCounters;
  /** Names the replicator where budgets are shared. */
  readonly name: string;
  /** The remote's layout as last seen. */
  remoteLayout(): RemoteTopicLayout | undefined;
  notice(segmentId: number, notice: SegmentNotice): void;
  /** A cursor is durable. */
  written(segmentId: number, record: CursorRecord): void;
  /** A place of a remote segment was told. */
  placeSeen(segmentId: number, at: SourcePosition): void;
}

/** How far reading back has come (R15). */
export interface ReadBackProgress {
  readonly segmentId: number;
  readonly entries: number;
}

/** A segment's report with what only the driver sees. */
export interface SegmentStatus extends SegmentReport {
  readonly readingBack?: ReadBackProgress;
  /** Entries that are not settled, as the source last told; absent while it has not. */
  readonly backlog?: number;
  /** What ended it: a defect of an adapter or of this library, since failures of the outside world are no errors. */
  readonly error?: unknown;
}

/** How the run of a segment ended. */
export type SegmentEnd = 'drained' | 'stopped' | 'failed';

export class SegmentDriver {
  private readonly machine: SegmentReplicator;
  private readonly session: number;
  private readonly events: SegmentEvent[] = [];
  private isStepping = false;
  private readonly timer: Timer;
  private readonly producers = new Map<number, RemoteProducer | undefined>();
  private readonly closing = new Set<Promise<void>>();
  private readonly ending = new AbortController();
  private readAbort: AbortController | undefined;
  private isRateLimited = false;
  private readingBack: ReadBackProgress | undefined;
  private error: unknown;
  private backlog: number | undefined;
  private unacknowledged: SourcePosition | undefined;
  private resolveEnd: (end: SegmentEnd) => void = () => undefined;
  /** Resolves when the machine has come to rest, and its producers are closed. */
  readonly ended: Promise<SegmentEnd>;

  constructor(
    private readonly segment: SourceSegment,
    record: CursorRecord,
    private readonly context: SegmentContext,
  ) {
    const { source, remote, options, counters, clock, schemas } = context;
    this.ended = new Promise((resolve) => {
      this.resolveEnd = resolve;
    });
    this.timer = new Timer(clock, () => this.dispatch({ type: 'wake' }));
    this.session = record.session;
    this.machine = new SegmentReplicator({
      source: segment,
      sourceCluster: source.cluster,
      maxEntryBytes: remote.maxEntryBytes,
      supports: remote.supports,
      options: { ...options, translateSchemas: schemas !== undefined },
      record,
      counters,
    });
    if (!this.machine.isDrained) return;
    // The source may have lost the last acknowledgement, or never heard it.
    if (record.settled !== undefined) void this.acknowledge(record.settled);
    this.finish('drained');
  }

  get isDrained(): boolean {
    return this.machine.isDrained;
  }

  status(): SegmentStatus {
    const report = this.machine.report();
    const waits = this.isRateLimited && report.waitingFor.for === 'entries';
    return {
      ...report,
      ...(waits ? { waitingFor: { for: 'rateLimit' } } : {}),
      ...(this.backlog === undefined ? {} : { backlog: this.backlog }),
      ...(this.readingBack === undefined ? {} : { readingBack: this.readingBack }),
      ...(this.error === undefined ? {} : { state: 'stopped', error: this.error }),
    };
  }

  /** Its figures are needed no more: the source has pruned the segment. */
  forget(): void {
    this.context.slowPath?.forget(this.key);
  }

  /** Ends at once: what is in flight is left as it is, and nothing is written. */
  abandon(): void {
    this.finish('stopped');
  }

  /** Begins: all parents are drained. */
  async start(): Promise<void> {
    const { source } = this.context;
    let acknowledged: SourcePosition | undefined;
    try {
      acknowledged = await source.acknowledged(this.segment.segmentId);
    } catch {
      // Only a comparison is missed; reading will tell that the source cannot be reached.
    }
    this.dispatch({ type: 'start', acknowledged });
  }

  private async acknowledge(position: SourcePosition): Promise<void> {
    this.unacknowledged = position;
    try {
      await this.context.source.acknowledge(this.segment.segmentId, position);
      if (this.unacknowledged === position) this.unacknowledged = undefined;
    } catch {
      // Made again, at the latest with the next question for the backlog.
    }
  }

  /** Nothing is left to do: the source, too, has counted everything of a drained segment as acknowledged. */
  get isAcknowledged(): boolean {
    return this.machine.isDrained && this.backlog === 0;
  }

  /** Asks the source how much is left; what it does not answer is not known. */
  async refreshBacklog(): Promise<void> {
    if (this.isAcknowledged) return;
    if (this.unacknowledged !== undefined) await this.acknowledge(this.unacknowledged);
    this.backlog = await this.context.source.backlog(this.segment.segmentId).catch(() => undefined);
  }

  /** Tells the machine what happened, and does what it asks for, until nothing is left to tell. */
  dispatch(event: SegmentEvent): void {
    if (this.ending.signal.aborted) return;
    this.events.push(event);
    if (this.isStepping) return;
    this.isStepping = true;
    try {
      // What the ports answer at once is told together: a remote in memory has a hundred results for a hundred sends.
      while (this.events.length > 0) {
        const events = this.events.splice(0);
        const nowMs = this.context.clock.now();
        for (const told of events) this.machine.tell(told, nowMs);
        for (const effect of this.machine.flush()) this.perform(effect);
      }
      if (this.machine.isAtRest) this.finish(this.machine.isDrained ? 'drained' : 'stopped');
    } catch (error) {
      this.error = error;
      this.finish('failed');
    } finally {
      this.events.length = 0;
      this.isStepping = false;
    }
  }

  private perform(effect: SegmentEffect): void {
    const { context, segment } = this;
    switch (effect.type) {
      case 'send':
        this.producers.get(effect.laneId)?.send(effect.send);
        return;
      case 'read':
        return this.read(effect);
      case 'open':
        this.producers.set(effect.laneId, undefined);
        void this.open(effect);
        return;
      case 'close':
        return this.close(effect.laneId);
      case 'recover':
        void this.recover(effect).then((recovery) =>
          this.dispatch({ type: 'recovered', segmentId: effect.segmentId, recovery }),
        );
        return;
      case 'acquire':
        if (context.slowPath === undefined) return this.dispatch({ type: 'granted' });
        return context.slowPath.acquire(this.key, effect.bytes, () => this.dispatch({ type: 'granted' }));
      case 'release':
        return context.slowPath?.release(this.key);
      case 'write':
        void this.write(effect.record);
        return;
      case 'acknowledge':
        void this.acknowledge(effect.position);
        return;
      case 'translate':
        void this.translate(effect.version, effect.bytes);
        return;
      case 'wake':
        return this.timer.set(effect.atMs);
      case 'notice':
        return context.notice(segment.segmentId, effect.notice);
      case 'drained':
      case 'stopped':
        return;
    }
  }

  private get key(): string {
    return `${this.context.name} segment ${this.segment.segmentId}`;
  }

  private finish(end: SegmentEnd): void {
    if (this.ending.signal.aborted) return;
    this.ending.abort();
    this.timer.clear();
    this.readAbort?.abort();
    const { slowPath, rate } = this.context;
    slowPath?.release(this.key);
    rate?.release(this.key);
    for (const laneId of [...this.producers.keys()]) this.close(laneId);
    void Promise.all(this.closing).then(() => this.resolveEnd(end));
  }

  private read({ readId, after, maxEntries, maxBytes }: Extract<SegmentEffect, { type: 'read' }>): void {
    this.readAbort?.abort();
    const reading = new AbortController();
    this.readAbort = reading;
    const { rate } = this.context;
    const read = async (entries: number, bytes: number) => {
      this.isRateLimited = false;
      const { signal } = reading;
      try {
        const limits = { maxEntries: entries, maxBytes: bytes, signal };
        const result = await this.context.source.read(this.segment.segmentId, after, limits);
        if (signal.aborted) return;
        this.readAbort = undefined;
        rate?.charge(this.key, sizeOf(result.entries));
        this.dispatch({ type: 'read', readId, entries: result.entries, ended: result.ended });
      } catch (error) {
        if (signal.aborted) return;
        this.readAbort = undefined;
        rate?.release(this.key);
        this.dispatch({ type: 'readFailed', readId, reason: messageOf(error) });
      }
    };
    if (rate === undefined) {
      void read(maxEntries, maxBytes);
      return;
    }
    this.isRateLimited = true;
    rate.admit(this.key, { bytes: maxBytes, messages: maxEntries }, ({ bytes, messages }) => {
      void read(Math.max(1, Math.min(maxEntries, Math.floor(messages))), Math.max(1, Math.floor(bytes)));
    });
  }

  private async open({ laneId, segmentId, checkpoint }: Extract<SegmentEffect, { type: 'open' }>): Promise<void> {
    const { source, remote } = this.context;
    const onResult = (result: SendResult) => {
      if (result.type === 'stored' && result.at !== undefined) this.context.placeSeen(segmentId, result.at);
      this.dispatch({ type: 'result', laneId, result });
    };
    try {
      const result = await remote.open(this.segment.segmentId, segmentId, onResult);
      if (result.type !== 'opened') {
        this.producers.delete(laneId);
        return this.dispatch({ type: 'openFailed', laneId, failure: result });
      }
      if (!this.producers.has(laneId)) return this.closeProducer(result.producer);
      this.producers.set(laneId, result.producer);
      if (remote.supports.dedup === 'window') {
        const lastPosition = await source.lastPosition(this.segment.segmentId);
        return this.dispatch({ type: 'opened', laneId, watermark: result.watermark, lastPosition });
      }
      const found = await this.readBack(segmentId, checkpoint, result.producer);
      const lastPosition = await source.lastPosition(this.segment.segmentId);
      if ('failure' in found) {
        this.close(laneId);
        return this.dispatch({ type: 'openFailed', laneId, failure: found.failure });
      }
      this.dispatch({ type: 'opened', laneId, lastPosition, ...found });
    } catch (error) {
      this.close(laneId);
      this.dispatch({ type: 'openFailed', laneId, failure: { type: 'unavailable', reason: messageOf(error) } });
    }
  }

  private readBack(segmentId: number, checkpoint: SourcePosition | undefined, producer: RemoteProducer | undefined) {
    return readBackSegment(
      this.readBackPorts,
      { segmentId, checkpoint, producer, layout: this.context.remoteLayout() },
      this.ending.signal,
      (entries) => this.progress(segmentId, entries),
    ).finally(() => {
      this.readingBack = undefined;
    });
  }

  private get readBackPorts(): ReadBackPorts {
    const { remote, cursors, source } = this.context;
    const { segmentId } = this.segment;
    return { remote, cursors, sourceCluster: source.cluster, sourceSegmentId: segmentId, session: this.session };
  }

  private progress(segmentId: number, entries: number): void {
    this.readingBack = { segmentId, entries };
  }

  private async recover({ segmentId, checkpoint }: Extract<SegmentEffect, { type: 'recover' }>): Promise<Recovery> {
    const { remote, source } = this.context;
    try {
      if (remote.supports.dedup === 'window') {
        const known = await remote.watermark(this.segment.segmentId, segmentId);
        if (known.type === 'known') return { type: 'watermark', watermark: known.watermark };
        return known.type === 'pruned' ? known : { type: 'failed', reason: `${known.type}: ${known.reason}` };
      }
      const found = await this.readBack(segmentId, checkpoint, undefined);
      if ('failure' in found) return found.failure;
      if (found.copies === undefined) return { type: 'pruned' };
      const lastPosition = await source.lastPosition(this.segment.segmentId);
      return { type: 'copies', copies: found.copies, end: found.end, lastPosition };
    } catch (error) {
      return { type: 'failed', reason: messageOf(error) };
    }
  }

  private close(laneId: number): void {
    const producer = this.producers.get(laneId);
    this.producers.delete(laneId);
    if (producer !== undefined) this.closeProducer(producer);
  }

  private closeProducer(producer: RemoteProducer): void {
    const closed = producer
      .close()
      .catch(() => undefined)
      .then(() => {
        this.closing.delete(closed);
      });
    this.closing.add(closed);
  }

  private async write(record: CursorRecord): Promise<void> {
    const { segmentId } = this.segment;
    try {
      const result = await this.context.cursors.write(new Map([[segmentId, record]]));
      if (result.type === 'fenced') return this.dispatch({ type: 'writeFenced', session: result.session });
      this.context.written(segmentId, record);
      this.dispatch({ type: 'written' });
    } catch (error) {
      this.dispatch({ type: 'writeFailed', reason: messageOf(error) });
    }
  }

  private async translate(version: string, bytes: Uint8Array): Promise<void> {
    const { schemas } = this.context;
    try {
      const translation = await schemas?.translate(bytes);
      if (translation !== undefined) this.dispatch({ type: 'translated', version, translation });
    } catch (error) {
      this.dispatch({ type: 'translated', version, translation: { type: 'unknown', reason: messageOf(error) } });
    }
  }
}

function sizeOf(entries: readonly StoredEntry[]): { bytes: number; messages: number } {
  let bytes = 0;
  let messages = 0;
  for (const entry of entries) {
    bytes += entry.bytes.length;
    messages += messagesOf(entry.bytes);
  }
  return { bytes, messages };
}

/** An entry that cannot be read counts as one message. */
function messagesOf(bytes: Uint8Array): number {
  try {
    return Math.max(1, parseEntry(bytes).metadata.numMessagesInBatch ?? 1);
  } catch {
    return 1;
  }
}
