/**
 * Brings entries onto their lanes, in order: an entry that cannot be planned now keeps all later ones waiting, so that
 * no lane ever gets them in another order. What stands in the way is always one stated thing.
 */
import { type Entry, parseEntry, type SourcePosition } from '../entry/index.js';
import type { RemoteTopicLayout, SchemaTranslation } from '../ports/index.js';
import { choosePath, type Path, type PathOptions, type Rectangle, type SourceSegment } from '../rebatch/index.js';
import type { Chunking } from './chunking.js';
import { count, type HoldReason, type PassReason, type ReplicatorCounters } from './counters.js';
import type { EntryRecord, LaneSend, MutableSend } from './entry-record.js';
import type { EntryWindow } from './entry-window.js';
import type { Found } from './found.js';
import type { Lane } from './lane.js';
import type { Lanes } from './lanes.js';
import { holdOf, opensPayload, type PlanInput, type PlannedSend, planSends, slowPathCost } from './planning.js';
import type { DEFAULT_SEGMENT_OPTIONS, SegmentEffect, SegmentOptions, SegmentWait } from './segment-events.js';

/** What a planner works on, and whom it tells. */
export interface PlannerHost {
  readonly source: SourceSegment;
  readonly sourceCluster: string;
  readonly maxEntryBytes: number;
  readonly options: SegmentOptions & typeof DEFAULT_SEGMENT_OPTIONS;
  readonly counters: ReplicatorCounters;
  readonly window: EntryWindow;
  readonly lanes: Lanes;
  readonly found: Found;
  readonly chunking: Chunking;
  readonly nowMs: number;
  emit(effect: SegmentEffect): void;
  retryAt(failures: number): number;
  /** An entry is settled unsent that a process before may have in hand still. */
  passedOver(): void;
  /** There is something to plan after all. */
  again(): void;
  /** An operator lets it pass, durably. */
  isSkipped(position: SourcePosition): boolean;
  settle(record: EntryRecord): void;
  /** Its bytes have to be read again. */
  refetch(record: EntryRecord): void;
  holdRecord(record: EntryRecord, reason: HoldReason, message: string): void;
}

export const NO_SENDS: LaneSend[] = [];

/** The next entry: planned, or what it waits for. */
type Step = 'done' | SegmentWait;

const FOR_RESULTS: SegmentWait = { for: 'results' };

export class Planner {
  /** The first index that may need a plan. */
  private from = 0;
  private grant: 'none' | 'asked' | 'held' = 'none';
  private grantBytes = 0;
  private waitsForBudget = false;
  private readonly schemas = new Map<string, SchemaTranslation | 'asked'>();
  private schemaRetry: { readonly version: string; readonly atMs: number } | undefined;
  private schemaFailures = 0;

  private readonly pathOptions: { -readonly [Member in keyof PathOptions]: PathOptions[Member] };

  constructor(private readonly host: PlannerHost) {
    const { ttlMs, unkeyedBatches } = host.options;
    this.pathOptions = { nowMs: host.nowMs, ttlMs, unkeyedBatches };
  }

  /** This record needs a plan, again or for the first time. */
  replanFrom(record: EntryRecord): void {
    if (record.index < this.from) this.from = record.index;
  }

  /** Plans as far as it goes; gives what it then waits for. */
  plan(remote: RemoteTopicLayout | undefined): SegmentWait {
    const { window } = this.host;
    if (this.from < window.start) this.from = window.start;
    for (; this.from < window.end; this.from++) {
      const record = window.at(this.from);
      if (!record.needsPlan) continue;
      const step: Step = remote === undefined ? { for: 'layout' } : this.planRecord(record, remote);
      if (step === 'done') continue;
      this.waitsForBudget = step.for === 'budget';
      return step;
    }
    this.waitsForBudget = false;
    return window.unsettledEntries > 0 ? FOR_RESULTS : { for: 'entries' };
  }

  /** Everything that was read has been planned. */
  get isAtEnd(): boolean {
    return this.from >= this.host.window.end;
  }

  granted(): void {
    if (this.grant === 'asked') this.grant = 'held';
    else this.host.emit({ type: 'release' });
  }

  /** Gives back, or takes back, what was asked for and is not needed now. */
  release(): void {
    if (this.grant !== 'none') this.host.emit({ type: 'release' });
    this.grant = 'none';
  }

  /** At the end of a step: a grant that found nothing to open is given back, and a place in the line for nothing. */
  releaseUnused(): void {
    if (this.grant === 'held' || !this.waitsForBudget) this.release();
  }

  translated(version: string, translation: SchemaTranslation): void {
    // One is tried again by time; another that was unknown is asked for anew when an entry needs it.
    if (translation.type === 'unknown' && this.schemaRetry !== undefined) this.schemas.delete(this.schemaRetry.version);
    this.schemas.set(version, translation);
    if (translation.type !== 'unknown') {
      this.schemaFailures = 0;
      return;
    }
    this.schemaRetry = { version, atMs: this.host.retryAt(this.schemaFailures++) };
  }

  /** Asks again for a schema that was unknown; gives the time when that is due. */
  due(): number | undefined {
    const { schemaRetry } = this;
    if (schemaRetry === undefined) return undefined;
    if (schemaRetry.atMs > this.host.nowMs) return schemaRetry.atMs;
    this.schemas.delete(schemaRetry.version);
    this.schemaRetry = undefined;
    this.host.again();
    return undefined;
  }

  private planRecord(record: EntryRecord, remote: RemoteTopicLayout): Step {
    const { host } = this;
    if (record.held !== undefined) return { for: 'operator', reason: 'held', message: record.held.message };
    if (host.isSkipped(record.position)) return this.pass(record, 'operator');
    if (record.bytes === undefined) {
      host.refetch(record);
      return { for: 'entries' };
    }
    try {
      record.entry ??= parseEntry(record.bytes);
      return this.planEntry(record, record.entry, remote);
    } catch (error) {
      const { reason, message } = holdOf(error);
      return this.hold(record, reason, message);
    }
  }

  private planEntry(record: EntryRecord, entry: Entry, remote: RemoteTopicLayout): Step {
    const { host } = this;
    this.pathOptions.nowMs = host.nowMs;
    let path = choosePath(entry, host.source, remote, this.pathOptions);
    if (path.kind === 'skip') return this.pass(record, path.reason as PassReason);
    host.chunking.track(record, entry.metadata.chunk);
    const wait = this.lanesOf(path, remote);
    if (wait !== undefined) return wait;
    if (this.isFoundChunk(record, path)) return 'done';
    const done = this.storedOf(record);
    if (done === 'all') {
      host.counters.foundStored++;
      host.settle(record);
      return 'done';
    }
    if (done !== undefined) path = choosePath(entry, host.source, remote, { ...this.pathOptions, done });
    if (path.kind === 'skip') {
      host.settle(record);
      return 'done';
    }
    if (path.kind === 'hold') {
      return this.hold(record, path.reason, 'the batch is encrypted and does not fit as it is');
    }
    const schema = this.schemaOf(entry.metadata.schemaVersion);
    if (schema.type === 'wait') return schema.wait;
    if (schema.type === 'incompatible') return this.hold(record, 'incompatibleSchema', schema.reason);
    const input: PlanInput = {
      entry,
      position: record.position,
      path,
      source: host.source,
      sourceCluster: host.sourceCluster,
      remote,
      maxEntryBytes: host.maxEntryBytes,
      options: host.options,
      done,
      schemaVersion: schema.version,
    };
    return this.carryOut(record, input, remote);
  }

  private carryOut(record: EntryRecord, input: PlanInput, remote: RemoteTopicLayout): Step {
    const isSlow = opensPayload(input);
    if (isSlow && !this.mayOpen(slowPathCost(input.entry, input.options))) return { for: 'budget' };
    const plan = planSends(input);
    if (isSlow) this.release();
    if (plan.kind === 'hold') return this.hold(record, plan.reason, plan.message);
    const lanes: Lane[] = [];
    for (const { segmentId } of plan.sends) {
      const found = this.laneOf(segmentId, remote);
      // A key that does not hash into the source segment leads to a lane that nobody has thought of.
      if ('for' in found) return found;
      lanes.push(found);
    }
    if (plan.inspected) this.host.counters.inspected++;
    if (plan.rebatched) record.rebatched = true;
    record.needsPlan = false;
    if (plan.sends.length === 0 && record.sends.length === 0) this.host.settle(record);
    for (let i = 0; i < lanes.length; i++) this.enqueue(record, plan.sends[i] as PlannedSend, lanes[i] as Lane);
    return 'done';
  }

  private enqueue(record: EntryRecord, planned: PlannedSend, lane: Lane): void {
    const { rectangle, position, lowestHash, buffers, bytes } = planned;
    this.host.chunking.sending(record, lane.segmentId);
    const send: MutableSend = { position, previous: undefined, lowestHash, buffers };
    const laneSend: LaneSend = { record, rectangle, send, bytes };
    if (record.sends === NO_SENDS) record.sends = [laneSend];
    else record.sends.push(laneSend);
    this.host.lanes.enqueue(lane, laneSend);
  }

  /** Skipped for a counted reason. */
  private pass(record: EntryRecord, reason: PassReason): Step {
    count(this.host.counters.skipped, reason);
    const { position } = record;
    if (reason === 'operator') this.host.emit({ type: 'notice', notice: { type: 'skipped', position, reason } });
    this.host.chunking.passed(record);
    record.needsPlan = false;
    // What of it is on its way is settled by its answer (B23).
    if (reason === 'expired' || reason === 'operator') this.host.passedOver();
    if (record.sends.length === 0) this.host.settle(record);
    return 'done';
  }

  private hold(record: EntryRecord, reason: HoldReason, message: string): Step {
    this.host.holdRecord(record, reason, message);
    return { for: 'operator', reason: 'held', message };
  }

  /** Undefined when every lane that the path may need is open. */
  private lanesOf(path: Path, remote: RemoteTopicLayout): SegmentWait | undefined {
    const { lanes } = this.host;
    let wait: SegmentWait | undefined;
    if (path.kind === 'verbatim') {
      const lane = this.laneOf(path.segmentId, remote);
      return 'for' in lane ? lane : undefined;
    }
    for (const segment of remote.active) {
      if (!lanes.touchesSource(segment)) continue;
      const lane = this.laneOf(segment.segmentId, remote);
      if ('for' in lane) wait ??= lane;
    }
    return wait;
  }

  private laneOf(segmentId: number, remote: RemoteTopicLayout): Lane | Extract<SegmentWait, { for: 'remoteSegment' }> {
    const segment = remote.segments.get(segmentId);
    if (segment === undefined) return { for: 'remoteSegment', segmentId, reason: 'not in the layout' };
    const lane = this.host.lanes.ready(segment);
    return lane ?? { for: 'remoteSegment', segmentId, reason: this.host.lanes.reason(segment) };
  }

  /** A chunk that was read back: stored where its message goes, or complete in a sealed segment. */
  private isFoundChunk(record: EntryRecord, path: Path): boolean {
    const { found, chunking } = this.host;
    const { message } = record;
    if (path.kind !== 'verbatim' || record.entry?.metadata.chunk === undefined) return false;
    if (found.isEmpty || !found.hasChunk(record.position)) return false;
    this.host.counters.foundStored++;
    record.needsPlan = false;
    if (message === undefined) this.host.settle(record);
    else {
      chunking.sending(record, path.segmentId);
      chunking.stored(record, message);
    }
    return true;
  }

  /** What of the entry is stored, or on its way in lanes that are not closed. */
  private storedOf(record: EntryRecord): 'all' | readonly Rectangle[] | undefined {
    const { found, source } = this.host;
    // A watermark does not tell where a chunk lies; the answer to sending it again does (R6).
    if (record.message !== undefined) return undefined;
    const elsewhere = found.isEmpty ? NOTHING : found.of(record.position, source);
    if (elsewhere === 'all') return 'all';
    if (record.done === undefined && record.sends.length === 0 && elsewhere.length === 0) return undefined;
    const onTheirWay = record.sends.flatMap(({ rectangle }) => (rectangle === undefined ? [] : [rectangle]));
    return [...(record.done ?? []), ...onTheirWay, ...elsewhere];
  }

  /** True when the budget has granted as much; asks for it if it was not asked yet. */
  private mayOpen(bytes: number): boolean {
    if (bytes === 0) return true;
    if (this.grant === 'held' && this.grantBytes >= bytes) return true;
    if (this.grant === 'held') this.release();
    if (this.grant === 'none') {
      this.grant = 'asked';
      this.grantBytes = bytes;
      this.host.emit({ type: 'acquire', bytes });
    }
    return false;
  }

  private schemaOf(
    bytes: Uint8Array | undefined,
  ):
    | { readonly type: 'translated'; readonly version: Uint8Array | undefined }
    | { readonly type: 'incompatible'; readonly reason: string }
    | { readonly type: 'wait'; readonly wait: SegmentWait } {
    if (bytes === undefined || this.host.options.translateSchemas !== true)
      return { type: 'translated', version: undefined };
    const version = hex(bytes);
    const known = this.schemas.get(version);
    if (known === undefined) {
      this.schemas.set(version, 'asked');
      this.host.emit({ type: 'translate', version, bytes });
    }
    if (known === undefined || known === 'asked') {
      return { type: 'wait', wait: { for: 'schema', reason: `version ${version} is being translated` } };
    }
    if (known.type === 'unknown') return { type: 'wait', wait: { for: 'schema', reason: known.reason } };
    return known;
  }
}

const NOTHING: readonly Rectangle[] = [];

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
