/**
 * Replicates one source segment to one remote, entry by entry: the next is not sent before the last is settled, so
 * that order holds whatever the layouts do meanwhile.
 */
import {
  DEFAULT_MAX_UNCOMPRESSED_BYTES,
  type Entry,
  type EntryBuffers,
  parseEntry,
  type RestampOptions,
  restamp,
  type SourcePosition,
} from '../entry/index.js';
import { IsthmusError } from '../errors.js';
import type { EntrySource, RemoteTopic, SendResult, StoredEntry } from '../ports/index.js';
import {
  choosePath,
  inspectBatch,
  type Part,
  type Rectangle,
  type RemoteLayout,
  rebatch,
  type SourceSegment,
} from '../rebatch/index.js';
import { slowPathBytes } from '../replication/index.js';
import type { HashRange } from '../ring/index.js';
import type { Latest } from './latest.js';
import type { HoldReason, ReplicatorCounters, ReplicatorOptions, SegmentStatus } from './replicator-state.js';
import type { SlowPath } from './slow-path.js';

const HOLD_REASONS: ReadonlySet<string> = new Set<HoldReason>([
  'malformedEntry',
  'undecodableBatch',
  'encryptedBatch',
  'codecUnavailable',
  'checksumMismatch',
  'tooLarge',
]);

/** What a segment's replication needs from the replicator of its topic. */
export interface SegmentContext {
  readonly source: EntrySource;
  readonly remote: RemoteTopic;
  readonly remoteLayout: Latest<RemoteLayout>;
  readonly options: Required<Pick<ReplicatorOptions, 'maxReadEntries' | 'retryDelayMs'>> & ReplicatorOptions;
  readonly counters: ReplicatorCounters;
  /** The budget of the process, and this replicator's name in it; without one the slow path is not bounded. */
  readonly slowPath: SlowPath | undefined;
  readonly name: string;
  /** Set when the replicator is to come to rest: no new entry is begun. */
  readonly stopping: AbortSignal;
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  held(segmentId: number, position: SourcePosition, reason: HoldReason, message: string): void;
}

/** The outcome of one attempt to settle an entry under one remote layout. */
type Attempt =
  | { readonly type: 'settled' }
  | { readonly type: 'sealed' }
  | { readonly type: 'again' }
  | { readonly type: 'hold'; readonly reason: HoldReason; readonly message: string };

const SETTLED: Attempt = { type: 'settled' };

/** One source segment on its way to one remote. */
export class SegmentReplication {
  private state: SegmentStatus['state'] = 'waitingForParents';
  private cursor: SourcePosition | undefined;
  private held: SegmentStatus['held'];
  private error: unknown;
  private skipRequested: SourcePosition | undefined;
  /** The last position sent to each remote segment, since a gap was last reported (R12b). */
  private readonly previous = new Map<number, SourcePosition>();

  constructor(
    private readonly segment: SourceSegment,
    private readonly context: SegmentContext,
  ) {}

  status(): SegmentStatus {
    return {
      segmentId: this.segment.segmentId,
      state: this.state,
      ...(this.cursor === undefined ? {} : { cursor: this.cursor }),
      ...(this.held === undefined ? {} : { held: this.held }),
      ...(this.error === undefined ? {} : { error: this.error }),
    };
  }

  /** Lets a held entry pass unsent. True when that entry is held now. */
  skip(position: SourcePosition): boolean {
    const { held } = this;
    if (held?.position.ledgerId !== position.ledgerId || held.position.entryId !== position.entryId) return false;
    this.skipRequested = position;
    this.context.remoteLayout.wake();
    return true;
  }

  /** Reads to the end of the segment; returns true once it is sealed and everything is acknowledged, false when told to stop. */
  async run(): Promise<boolean> {
    const { source, options, stopping } = this.context;
    const { segmentId } = this.segment;
    try {
      this.cursor = await source.cursor(segmentId);
      while (!stopping.aborted) {
        this.state = 'reading';
        const { entries, ended } = await source.read(segmentId, this.cursor, {
          maxEntries: options.maxReadEntries,
          signal: stopping,
        });
        for (const entry of entries) {
          if (stopping.aborted) return false;
          await this.settle(entry);
          await source.acknowledge(segmentId, entry.position);
          this.cursor = entry.position;
        }
        if (ended) {
          this.state = 'drained';
          return true;
        }
      }
      return false;
    } catch (error) {
      if (stopping.aborted) return false;
      this.state = 'failed';
      this.error = error;
      throw error;
    }
  }

  /** Brings one entry to the point where the cursor may pass it: stored whole, or skipped for a counted reason. */
  private async settle(stored: StoredEntry): Promise<void> {
    const { remoteLayout, stopping } = this.context;
    // Which of its messages earlier attempts have stored: exactly the others are sent again.
    const done: Rectangle[] = [];
    let entry: Entry | undefined;
    for (;;) {
      this.state = 'sending';
      const remote = await remoteLayout.when(() => true, stopping);
      let attempt: Attempt;
      try {
        entry ??= parseEntry(stored.bytes);
        attempt = await this.attempt(entry, stored.position, remote, done);
      } catch (error) {
        if (!(error instanceof IsthmusError && HOLD_REASONS.has(error.code))) throw error;
        attempt = { type: 'hold', reason: error.code as HoldReason, message: error.message };
      }
      if (attempt.type === 'settled') return;
      if (attempt.type === 'sealed') await remoteLayout.when(({ epoch }) => epoch > remote.epoch, stopping);
      if (attempt.type === 'hold' && (await this.hold(stored.position, attempt, remote))) return;
    }
  }

  /** Waits at an entry that can be neither sent nor opened; true when an operator lets it pass. */
  private async hold(
    position: SourcePosition,
    { reason, message }: Extract<Attempt, { type: 'hold' }>,
    remote: RemoteLayout,
  ): Promise<boolean> {
    const { remoteLayout, stopping, counters } = this.context;
    this.state = 'held';
    this.held = { position, reason, message };
    counters.held[reason] = (counters.held[reason] ?? 0) + 1;
    this.context.held(this.segment.segmentId, position, reason, message);
    await remoteLayout.when(({ epoch }) => epoch > remote.epoch || this.skipRequested !== undefined, stopping);
    this.held = undefined;
    if (this.skipRequested === undefined) return false;
    this.skipRequested = undefined;
    counters.skipped.operator = (counters.skipped.operator ?? 0) + 1;
    return true;
  }

  private async attempt(
    entry: Entry,
    position: SourcePosition,
    remote: RemoteLayout,
    done: Rectangle[],
  ): Promise<Attempt> {
    const { options, counters } = this.context;
    const chosen = choosePath(entry, this.segment, remote, {
      nowMs: this.context.now(),
      ttlMs: options.ttlMs,
      unkeyedBatches: options.unkeyedBatches,
      done,
    });
    const path = chosen.kind === 'inspect' ? await this.inspect(entry, remote) : chosen;
    switch (path.kind) {
      case 'skip':
        // Settled by parts of an earlier attempt: that was no skip.
        if (path.reason !== 'done') counters.skipped[path.reason] = (counters.skipped[path.reason] ?? 0) + 1;
        return SETTLED;
      case 'hold':
        return { type: 'hold', reason: path.reason, message: 'the batch is encrypted and does not fit as it is' };
      case 'verbatim':
        return this.forward(entry, position, remote, path.segmentId, done);
      case 'rebatch':
        return this.forwardParts(entry, position, remote, done);
    }
  }

  private async inspect(entry: Entry, remote: RemoteLayout): Promise<ReturnType<typeof inspectBatch>> {
    const { codecs, limits } = this.context.options;
    const path = await this.onSlowPath(entry, () => inspectBatch(entry, this.segment, remote, { codecs, limits }));
    this.context.counters.inspected++;
    return path;
  }

  /** Work on a payload waits for the budget, and with it this segment's reading (PIP-495, Slow-path backpressure). */
  private async onSlowPath<T>(entry: Entry, work: () => T): Promise<T> {
    const { slowPath, name, options, stopping } = this.context;
    if (slowPath === undefined) return work();
    const { uncompressedSize } = entry.metadata;
    // What the limit refuses costs nothing: a claim of gigabytes must not become a debt of minutes.
    const limit = options.limits?.maxUncompressedBytes ?? DEFAULT_MAX_UNCOMPRESSED_BYTES;
    if ((uncompressedSize ?? 0) > limit) return work();
    this.state = 'throttled';
    try {
      const bytes = slowPathBytes(entry.bytes.length, uncompressedSize);
      return await slowPath.run(`${name} segment ${this.segment.segmentId}`, bytes, stopping, work);
    } finally {
      this.state = 'sending';
    }
  }

  private stamp(position: SourcePosition): RestampOptions {
    return { replicatedFrom: this.context.source.cluster, sourcePosition: position };
  }

  private async forward(
    entry: Entry,
    position: SourcePosition,
    remote: RemoteLayout,
    segmentId: number,
    done: Rectangle[],
  ): Promise<Attempt> {
    const { counters } = this.context;
    const { maxEntryBytes } = this.context.remote;
    const isBatch = entry.metadata.numMessagesInBatch !== undefined;
    const buffers = restamp(entry, this.stamp(position));
    const bytes = lengthOf(buffers);
    if (bytes > maxEntryBytes) {
      // A stamp can make an entry too large for the remote; only a batch can be cut (R8b).
      if (isBatch && !entry.metadata.encrypted) return this.forwardParts(entry, position, remote, done);
      return {
        type: 'hold',
        reason: 'tooLarge',
        message: `the entry has ${bytes} bytes; the limit is ${maxEntryBytes}`,
      };
    }
    const lowestHash = isBatch ? entry.metadata.stamp?.min : undefined;
    const result = await this.send(segmentId, position, lowestHash, buffers);
    switch (result.type) {
      case 'sealed':
        return result;
      case 'partial':
        // An earlier, finer attempt: all the entry's messages belong to this segment, keyed or not (R11).
        done.push({ range: rangeOf(remote, segmentId), buckets: { start: 0, end: result.partial }, unkeyed: true });
        return { type: 'again' };
      case 'stored':
        counters.verbatimEntries++;
        counters.verbatimBytes += bytes;
        return SETTLED;
      case 'duplicate':
        counters.duplicates++;
        return SETTLED;
    }
  }

  private async forwardParts(
    entry: Entry,
    position: SourcePosition,
    remote: RemoteLayout,
    done: Rectangle[],
  ): Promise<Attempt> {
    const { options, counters } = this.context;
    const parts = await this.onSlowPath(entry, () =>
      rebatch(entry, this.segment, remote, {
        codecs: options.codecs,
        stamp: this.stamp(position),
        done,
        keepCodec: options.keepCodec,
        limits: options.limits,
        maxEntryBytes: this.context.remote.maxEntryBytes,
      }),
    );
    for (const part of parts) {
      const result = await this.send(part.segmentId, part.position, part.lowestHash, part.buffers);
      if (result.type === 'sealed') return result;
      if (result.type === 'partial') {
        const { rectangle } = part;
        done.push({ ...rectangle, buckets: { start: rectangle.buckets.start, end: result.partial } });
        return { type: 'again' };
      }
      done.push(part.rectangle);
      this.countPart(part, result.type);
    }
    counters.rebatchedEntries++;
    return SETTLED;
  }

  private countPart(part: Part, result: 'stored' | 'duplicate'): void {
    const { counters } = this.context;
    if (result === 'duplicate') counters.duplicates++;
    else {
      counters.parts++;
      counters.rebatchedBytes += lengthOf(part.buffers);
    }
  }

  /** Sends until the remote has said where the entry is; an unreachable remote is tried again at the same position. */
  private async send(
    segmentId: number,
    position: SourcePosition,
    lowestHash: number | undefined,
    buffers: EntryBuffers,
  ): Promise<Extract<SendResult, { type: 'stored' | 'duplicate' | 'sealed' | 'partial' }>> {
    const { remote, options, stopping } = this.context;
    for (;;) {
      const previous = this.previous.get(segmentId);
      const send = { sourceSegmentId: this.segment.segmentId, position, previous, lowestHash, buffers };
      const result = await remote.send(segmentId, send);
      switch (result.type) {
        case 'gap':
          // Everything before is settled here, so the remote has forgotten: begin anew with this send.
          this.previous.delete(segmentId);
          break;
        case 'unavailable':
          this.state = 'unavailable';
          await this.context.sleep(options.retryDelayMs, stopping);
          this.state = 'sending';
          break;
        case 'stored':
        case 'duplicate':
          this.previous.set(segmentId, position);
          return result;
        default:
          return result;
      }
    }
  }
}

function lengthOf({ head, payload }: EntryBuffers): number {
  return head.length + payload.length;
}

function rangeOf(remote: RemoteLayout, segmentId: number): HashRange {
  const segment = remote.active.find((candidate) => candidate.segmentId === segmentId);
  if (segment === undefined)
    throw new Error(`segment ${segmentId} answered but is not in the layout it was chosen from`);
  return segment.range;
}
