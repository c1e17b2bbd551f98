/**
 * One direction of a simulated world: the processes that replicate a cluster's topic to another, one after the other or
 * for a while side by side, what goes wrong for them next, and what is asked of every effect of theirs.
 */
import { comparePositions } from '../dedup/index.js';
import { formatSourcePosition, parseEntry, type SourcePosition } from '../entry/index.js';
import type { CursorRecord, RemoteSupport, Send, SendResult, StoredEntry } from '../ports/index.js';
import type { SegmentEffect, SegmentOptions, StopReason } from '../replication/index.js';
import { BrokenInvariant } from './convergence-invariants.js';
import type { WorldBudget } from './replication-budget.js';
import { Naming } from './replication-naming.js';
import { WorldProcess } from './replication-process.js';
import type { OnceFault, ProcessHost, SegmentRun } from './replication-run.js';
import type { WorldLog, WorldTopic } from './replication-topic.js';
import type { Refusal, Repeat, SourceEntry, Truth } from './replication-truth.js';
import type { Wire } from './replication-wire.js';
import type { VirtualClock } from './virtual-clock.js';

/** What all directions of a world share. */
export interface LinkHost {
  readonly clock: VirtualClock;
  readonly truth: Truth;
  readonly isParentGateDropped: boolean;
  readonly tellsTogether: boolean;
  readonly tellsWatermarks: boolean;
  random(): number;
  delayMs(): number;
  count(what: string): void;
  trace(line: () => string): void;
  nextProcessId(): number;
}

export class Link implements ProcessHost {
  /** The present one, then those that were replaced and may still live. */
  processes: WorldProcess[] = [];
  /** Answers of the remote to the sends that come next. */
  readonly refusals: SendResult[] = [];
  readonly faults: OnceFault[] = [];
  /** What follows once the next parts are stored, one each. */
  readonly onPart: (() => void)[] = [];
  /** What befalls the connections of the sends that come next, one each. */
  readonly onSend: ((wire: Wire) => void)[] = [];
  /** The present process dies after so many effects. */
  diesIn: number | undefined;
  /** Nobody restarts what has died. */
  isDown = false;
  /** What its processes take for the time differs by this from the time. */
  skewMs = 0;
  /** By how much that has jumped ahead, in all. */
  private aheadMs = 0;
  isPaused = false;
  /** Something happened after which a message may be stored twice (R13). */
  isDisturbed = false;
  /** Somebody else has moved the pin. */
  hasLostPin = false;
  /** A process has written a cursor after another one had begun. */
  hasOldWritten = false;
  /** An operator has removed checkpoints, at the risk of duplicates. */
  hasLostCheckpoints = false;
  /** By segment: up to where it was checked that everything is settled. */
  private readonly checkedTo = new Map<number, number>();
  private readonly naming: Naming;

  constructor(
    private readonly world: LinkHost,
    readonly source: WorldTopic,
    readonly remote: WorldTopic,
    readonly supports: RemoteSupport,
    readonly options: SegmentOptions,
    readonly maxEntryBytes: number,
    readonly budget: WorldBudget,
  ) {
    this.naming = new Naming(world.truth, source, remote, (entry) => this.mayBePassed(entry));
  }

  get name(): string {
    return `${this.source.cluster}>${this.remote.cluster}`;
  }

  get clock(): VirtualClock {
    return this.world.clock;
  }

  get nowMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  get dedup(): RemoteSupport['dedup'] {
    return this.supports.dedup;
  }

  get failStop(): boolean {
    return this.supports.failStop;
  }

  get isParentGateDropped(): boolean {
    return this.world.isParentGateDropped;
  }

  get tellsTogether(): boolean {
    return this.world.tellsTogether;
  }

  get tellsWatermarks(): boolean {
    return this.world.tellsWatermarks;
  }

  /** The process that should be replicating now. */
  get present(): WorldProcess | undefined {
    const [process] = this.processes;
    return process?.isAlive ? process : undefined;
  }

  /** Begins a process, whether or not another still lives. */
  begin(): void {
    if (this.processes.some(({ isAlive }) => isAlive)) this.disturb('takeover');
    const process = new WorldProcess(this, this.world.nextProcessId());
    this.processes = [process, ...this.processes.filter(({ isAlive }) => isAlive)];
    this.diesIn = undefined;
    if (this.isPaused) process.pause();
  }

  /** The clock of its processes jumps. */
  jump(ms: number): void {
    this.skewMs += ms;
    this.aheadMs += Math.max(0, ms);
    this.count('clockJumped');
  }

  /** The connection of the next send is slow for a while. */
  stall(pick: number): void {
    this.onSend.push((wire) => {
      this.count('stalled');
      wire.stall(pick % 4 === 0 ? 'there' : 'back', 20 + pick);
    });
  }

  /** The segment of the next send is sealed while that is on its way, or its result. */
  sealInFlight(pick: number, seal: (segmentId: number) => void): void {
    this.onSend.push((wire) => {
      // A slow connection leaves time for others to get ahead.
      if (pick % 3 !== 0) wire.stall(pick % 3 === 1 ? 'there' : 'back', 20 + pick);
      this.clock.schedule(pick % (pick % 3 === 0 ? 8 : 40), () => {
        if (!wire.isOpen || wire.inFlight === 0) return;
        this.count('sealedInFlight');
        seal(wire.log.segmentId);
      });
    });
  }

  /** Once the next part of an entry is stored, the process dies, and the remote changes before it comes back. */
  tear(change: () => void): void {
    this.onPart.push(() => {
      this.count('torn');
      change();
      if (this.present !== undefined) this.crash(this.present);
    });
  }

  /** The connection of the next send breaks; the server notices soon or late. */
  cut(pick: number): void {
    this.onSend.push((wire) => {
      this.clock.schedule(Math.floor(this.random() * 2 * this.delayMs()), () => {
        if (!wire.isOpen) return;
        if (wire.inFlight > 0) this.disturb('ambiguous');
        wire.cut(pick % 3 === 0 ? 0 : pick);
      });
    });
  }

  /**
   * Another process takes over while the present one lives: once that has written a cursor, since two that begin at one
   * moment would be the same session.
   */
  takeOver(): void {
    const { present } = this;
    if (present?.session === undefined) return;
    const { records } = this.source.toward(this.remote.cluster);
    for (const { session } of records.values()) if (session === present.session) return this.begin();
  }

  disturb(how: string): void {
    this.isDisturbed = true;
    this.count(how);
  }

  /** Asks the present process to come to rest, and begins another then. */
  restart(): void {
    const { present } = this;
    if (present === undefined || present.isStopping) return;
    this.count('restart');
    present.stop();
    this.replaceStopped(present);
  }

  private replaceStopped(process: WorldProcess): void {
    if (!process.isStopping || !process.isAlive || !process.isAtRest || process !== this.present) return;
    // What is settled behind an entry that is not lies behind the cursor, as after a crash.
    const isWhole = [...process.runs.values()].every(({ machine }) => machine.report().spanEntries === 0);
    if (!isWhole) this.disturb('stoppedInBetween');
    process.die();
    this.begin();
  }

  /** An operator lets a held entry pass. */
  skip(run: SegmentRun, position: SourcePosition): void {
    const entry = this.world.truth.at(this.source.cluster, position);
    if (entry === undefined || this.present === undefined) return;
    if (!entry.excused.has(this.remote.cluster)) this.count('skipped');
    entry.excused.set(this.remote.cluster, 'skipped');
    this.present.dispatch(run, { type: 'skip', position });
  }

  /** An operator follows the remedy of a stop reason, and starts a process anew. */
  mend(run: SegmentRun, reason: StopReason): void {
    const { present } = this;
    if (present === undefined) return;
    if (reason === 'pinLost') {
      const { records } = this.source.toward(this.remote.cluster);
      const record = records.get(run.segmentId);
      if (record !== undefined) records.set(run.segmentId, { ...record, checkpoints: new Map() });
      this.hasLostCheckpoints = true;
    }
    this.count(`mended ${reason}`);
    this.crash(present);
  }

  /** The remote refuses an entry by its content, until it is cured. */
  poison(pick: number, refusal: Refusal): void {
    const { truth } = this.world;
    const lists = [...this.source.logs.keys()].map((id) => truth.inSegment(this.source.cluster, id));
    const entries = lists.flat().filter((entry) => this.isOwed(entry));
    const entry = entries[entries.length - 1 - (pick % 4)];
    if (entry === undefined) return;
    entry.refusedBy.set(this.remote.cluster, refusal);
    this.count(`poisoned ${refusal}`);
  }

  /** The remote takes whatever it refused. */
  cure(): void {
    for (const id of this.source.logs.keys()) {
      for (const { refusedBy } of this.world.truth.inSegment(this.source.cluster, id)) refusedBy.clear();
    }
  }

  private isOwed(entry: SourceEntry): boolean {
    return entry.messages.length > 0 && this.world.truth.owes(entry, this.remote.cluster) !== undefined;
  }

  /** The operator lets pass what the present process holds, if it holds anything. */
  skipHeld(): void {
    for (const run of [...(this.present?.runs.values() ?? [])]) {
      const { held } = run.machine.report();
      if (held !== undefined) this.skip(run, held.position);
    }
  }

  setPaused(isPaused: boolean): void {
    if (this.isPaused === isPaused) return;
    this.isPaused = isPaused;
    this.count(isPaused ? 'paused' : 'resumed');
    if (isPaused) this.present?.pause();
    else this.present?.resume();
  }

  /** Those that were replaced and still live die. */
  endOld(): void {
    for (const process of this.processes.slice(1)) {
      if (!process.isAlive) continue;
      this.count('oldDied');
      process.die();
    }
  }

  /** The source lets go of entries that this remote has not got: by a time to live of its own, or a quota. */
  evict(pick: number): void {
    const { source, remote, world } = this;
    const logs = [...source.logs.values()];
    const log = logs[pick % logs.length];
    if (log === undefined || log.entries.length === 0) return;
    const { acknowledged } = source.toward(remote.cluster);
    const from = log.indexBehind(acknowledged.get(log.segmentId));
    const to = Math.min(log.entries.length, from + 1 + (pick % 3));
    if (to <= from) return;
    const entries = world.truth.inSegment(source.cluster, log.segmentId);
    for (const entry of entries.slice(from, to)) {
      if (!this.isOwed(entry)) continue;
      entry.excused.set(remote.cluster, 'evicted');
      // A message of which a chunk is gone cannot arrive.
      for (const chunk of entry.chunk === undefined ? [] : (entry.messages[0]?.entries ?? [])) {
        chunk.excused.set(remote.cluster, 'evicted');
      }
      this.count('evicted');
    }
    const { position } = log.entries[to - 1] as StoredEntry;
    acknowledged.set(log.segmentId, position);
  }

  /** The source crashes and loses the last of what was acknowledged; what it has trimmed stays gone. */
  forgetAcks(pick: number): void {
    const { acknowledged } = this.source.toward(this.remote.cluster);
    for (const [segmentId, position] of acknowledged) {
      const log = this.source.logs.get(segmentId);
      if (log === undefined) continue;
      const to = Math.max(log.trimmed, log.indexBehind(position) - 1 - (pick % 5));
      const before = log.entries[to - 1];
      if (before === undefined) acknowledged.delete(segmentId);
      else acknowledged.set(segmentId, before.position);
      this.count('acksForgotten');
    }
  }

  /** The remote moves a pin to the end of its segment: by a time to live, or a quota. */
  losePin(pick: number): void {
    if (this.dedup !== 'readBack') return;
    const logs = [...this.remote.logs.values()];
    const log = logs[pick % logs.length];
    if (log?.lastPosition === undefined) return;
    this.remote.pin(this.source.cluster).set(log.segmentId, log.lastPosition);
    this.hasLostPin = true;
    this.count('pinMovedByForce');
  }

  // What its processes ask for.

  random(): number {
    return this.world.random();
  }

  delayMs(): number {
    return this.world.delayMs();
  }

  count(what: string): void {
    this.world.count(what);
  }

  trace(line: () => string): void {
    this.world.trace(line);
  }

  fails(fault: OnceFault): boolean {
    const at = this.faults.indexOf(fault);
    if (at < 0) return false;
    this.faults.splice(at, 1);
    this.count(fault);
    return true;
  }

  refuse(send: Send): SendResult | undefined {
    const { ledgerId, entryId } = send.position;
    const refused = this.world.truth.at(this.source.cluster, { ledgerId, entryId })?.refusedBy.get(this.remote.cluster);
    if (refused !== undefined) return { type: refused, reason: 'the remote refuses this entry' };
    return this.refusals.shift();
  }

  accepted(log: WorldLog, send: Send): void {
    this.naming.accepted(log, send);
  }

  store(log: WorldLog, bytes: Uint8Array): SourcePosition {
    const { remote, world } = this;
    const position = log.append(bytes, world.random() < 0.05);
    world.truth.written({
      cluster: remote.cluster,
      segmentId: log.segmentId,
      position,
      bytes,
      messages: [],
      chunk: undefined,
      publishedAtMs: world.clock.nowMs,
      remotes: undefined,
      refusedBy: new Map(),
      excused: new Map(),
      verbatim: undefined,
    });
    world.trace(() => `${remote.cluster}/${log.segmentId} stores ${formatSourcePosition(position)}`);
    const segment = remote.layout.segments.get(log.segmentId);
    world.truth.stored(
      { position, bytes },
      {
        remote: remote.cluster,
        segmentId: log.segmentId,
        range: log.range,
        entryBucketSplits: segment?.entryBucketSplits ?? [],
        partitions: remote.partitions.has(log.segmentId) ? remote.partitions.size : undefined,
      },
    );
    if (this.onPart.length > 0 && parseEntry(bytes).metadata.sourcePosition?.split(':').length === 3) {
      this.clock.schedule(0, this.onPart.shift() as () => void);
    }
    return position;
  }

  diesBefore(process: WorldProcess, effect: SegmentEffect): boolean {
    if (process !== this.present || this.diesIn === undefined) return false;
    if (this.diesIn-- > 0) return false;
    this.diesIn = undefined;
    this.count(`diedBefore ${effect.type}`);
    this.crash(process);
    return true;
  }

  /** The present process dies now, and another begins after a while. */
  crash(process: WorldProcess): void {
    this.trace(() => `${this.name}#${process.id} dies`);
    this.disturb('crash');
    process.die();
    this.clock.schedule(5 + Math.floor(this.random() * 40), () => {
      if (this.present === undefined && !this.isDown) this.begin();
    });
  }

  written(process: WorldProcess): void {
    if (process !== this.processes[0] || process.isAlive === false) this.hasOldWritten = true;
  }

  checkStep(process: WorldProcess, run: SegmentRun): void {
    this.replaceStopped(process);
    if (!process.isAlive) return;
    const { machine } = run;
    if (!run.isStarted || machine.isAtRest || run.outstanding > 0 || run.cancelTimer !== undefined) return;
    for (const wire of run.wires.values()) if (wire === undefined || wire.inFlight > 0) return;
    const { waitingFor } = machine.report();
    if (waitingFor.for === 'operator' || waitingFor.for === 'parents' || waitingFor.for === 'layout') return;
    if (waitingFor.for === 'remoteSegment') return;
    throw new BrokenInvariant(
      `progress: ${process.keyOf(run)} waits for ${waitingFor.for}, and nothing is outstanding`,
    );
  }

  checkEffect(process: WorldProcess, run: SegmentRun, effect: SegmentEffect): void {
    if (effect.type === 'send') return this.checkSend(process, run, effect);
    if (effect.type === 'write') return this.checkRecord(process, run, effect.record);
    if (effect.type === 'acknowledge') return this.checkAcknowledgement(run, effect.position);
    if (effect.type !== 'notice') return;
    if (effect.notice.type === 'chunksGivenUp')
      run.messages.set(formatSourcePosition(effect.notice.position), 'givenUp');
    if (effect.notice.type === 'stoppedBy') {
      this.count(`stopped ${effect.notice.reason}`);
      const isFalse =
        effect.notice.reason === 'sourceWentBackwards' ||
        // The latest process is nobody's to fence, unless an older one has written what it does not know.
        (effect.notice.reason === 'fenced' && process === this.present && !this.hasOldWritten);
      if (!isFalse) return;
      throw new BrokenInvariant(`progress: ${process.keyOf(run)} stops: ${effect.notice.message}`);
    }
  }

  private checkSend(
    process: WorldProcess,
    run: SegmentRun,
    { laneId, send }: Extract<SegmentEffect, { type: 'send' }>,
  ) {
    const wire = run.wires.get(laneId);
    if (wire === undefined) return;
    const complaint = this.dedup === 'window' ? this.naming.sent(run, wire.log, send) : undefined;
    if (complaint !== undefined) throw new BrokenInvariant(`duplicates: ${process.keyOf(run)} sends ${complaint}`);
    this.onSend.shift()?.(wire);
  }

  /** A payload is opened under a grant of the budget, and only one entry's. */
  checkOpening(process: WorldProcess, run: SegmentRun): void {
    this.count('opened');
    // An entry that was inspected is opened once more to be re-batched.
    if (this.budget.heldBy(process.keyOf(run)) !== undefined && ++run.openings <= 2) return;
    throw new BrokenInvariant(`budget: ${process.keyOf(run)} opens a payload without a grant`);
  }

  private checkAcknowledgement(run: SegmentRun, position: SourcePosition): void {
    // The record of a segment that was pruned is gone.
    if (!this.source.logs.has(run.segmentId)) return;
    const stored = this.source.toward(this.remote.cluster).records.get(run.segmentId);
    if (stored?.settled !== undefined && comparePositions(position, stored.settled) <= 0) return;
    // A later process begins where the durable cursor was when it began, which may lie before what an older one writes.
    if (this.hasOldWritten) return;
    throw new BrokenInvariant(`cursor: ${this.name} acknowledges what is not durably settled`);
  }

  /** The cursor passes nothing that the remote is owed, and drained is what has nothing left. */
  private checkRecord(process: WorldProcess, run: SegmentRun, { settled, drained, checkpoints }: CursorRecord): void {
    const log = this.source.logs.get(run.segmentId);
    if (log === undefined) return;
    const entries = this.world.truth.inSegment(this.source.cluster, run.segmentId);
    const end = log.indexBehind(settled);
    const from = this.checkedTo.get(run.segmentId) ?? 0;
    // What was acknowledged by a process before may be gone, so that the next one does not see it.
    const to = drained ? entries.length : end;
    for (let i = from; i < to; i++) {
      const entry = entries[i] as SourceEntry;
      const owed = this.owes(entry);
      if (owed === undefined) continue;
      const where = formatSourcePosition(entry.position);
      throw new BrokenInvariant(`cursor: ${process.keyOf(run)} passes ${where}, and ${owed}`);
    }
    if (to > from) this.checkedTo.set(run.segmentId, to);
    if (drained && !log.sealed) throw new BrokenInvariant(`drained: ${process.keyOf(run)} is not sealed`);
    if (this.dedup === 'readBack') this.checkCheckpoints(process, run, settled, checkpoints);
  }

  /** A checkpoint lies before the first copy of every entry that is not settled (R15). */
  private checkCheckpoints(
    process: WorldProcess,
    run: SegmentRun,
    settled: SourcePosition | undefined,
    checkpoints: ReadonlyMap<number, SourcePosition>,
  ): void {
    for (const [segmentId, at] of checkpoints) {
      const log = this.remote.logs.get(segmentId);
      // A part in a partition proves nothing, and is not looked for.
      if (log === undefined || this.remote.partitions.has(segmentId)) continue;
      const end = log.indexBehind(at);
      const from = Math.max(log.trimmed, log.indexBehind(run.checkedCheckpoints.get(segmentId)));
      for (let i = from; i < end; i++) {
        const copied = this.world.truth.copyAt(this.remote.cluster, log.entries[i]?.position as SourcePosition);
        if (copied === undefined || copied.cluster !== this.source.cluster || copied.segmentId !== run.segmentId)
          continue;
        if (settled !== undefined && comparePositions(copied.position, settled) <= 0) continue;
        const where = formatSourcePosition(copied.position);
        throw new BrokenInvariant(
          `checkpoint: ${process.keyOf(run)} would not find its copy of ${where} in segment ${segmentId}`,
        );
      }
    }
    run.checkedCheckpoints = new Map(checkpoints);
  }

  /** Why the remote is still owed an entry, now; what is excused for good is noted. */
  owes(entry: SourceEntry): string | undefined {
    const remote = this.remote.cluster;
    const owed = this.world.truth.owes(entry, remote);
    if (owed === undefined) return undefined;
    const { ttlMs = 0, chunkExpiryMs = 0 } = this.options;
    if (ttlMs > 0 && this.nowMs - entry.publishedAtMs > ttlMs) {
      entry.excused.set(remote, 'expired');
      this.count('excused expired');
      return undefined;
    }
    const [message] = entry.messages;
    if (entry.chunk === undefined || message === undefined) return owed;
    const isCut = message.place < 0 && this.source.logs.get(entry.segmentId)?.sealed === true;
    const ageMs = this.clock.nowMs - (message.entries[0] as SourceEntry).publishedAtMs;
    const isOld = ageMs + this.aheadMs >= chunkExpiryMs;
    if (!isCut && !isOld && !message.entries.some(({ excused }) => excused.has(remote))) return owed;
    for (const chunk of message.entries) chunk.excused.set(remote, 'givenUp');
    this.count('excused givenUp');
    return undefined;
  }

  private mayBePassed({ excused, publishedAtMs }: SourceEntry): boolean {
    const { ttlMs = 0 } = this.options;
    const isOld = ttlMs > 0 && this.clock.nowMs + this.aheadMs - publishedAtMs > ttlMs;
    return isOld || excused.has(this.remote.cluster);
  }

  /** A segment of the remote is sealed: what lies incomplete in it is sent once more (R6). */
  sealed(segmentId: number): void {
    for (const { cluster } of this.world.truth.incomplete(this.remote.cluster, segmentId)) {
      if (cluster === this.source.cluster) return this.count('sealedInMessage');
    }
  }

  forbidsRepeat(repeat: Repeat): string | undefined {
    const { entry, before, segmentId } = repeat;
    if (!this.isDisturbed) return 'nothing has crashed, and every answer came';
    const isReadBack = this.dedup === 'readBack';
    // What cannot be read back any more is sent again at the operator's risk.
    if (isReadBack && (this.hasLostCheckpoints || this.hasLostPin)) return undefined;
    // A range proves nothing of the parts that lie in a partition, so that they settle nothing (R15).
    const isInPartition = isReadBack && before.some((id) => this.remote.partitions.has(id));
    if (isInPartition && parseEntry(entry.bytes).metadata.numMessagesInBatch !== undefined) return undefined;
    if (before.includes(segmentId)) return 'it lies in this segment already';
    if (isReadBack) return 'it could have been read back';
    const { remote } = this;
    const isMerged = [...remote.parents].some(
      ([id, parents]) =>
        parents.length > 1 &&
        remote.descends(segmentId, id) &&
        before.some((other) => other !== id && remote.descends(id, other)),
    );
    if (isMerged || this.naming.allows(repeat)) return undefined;
    return 'no merge lies between, and no segment that was sealed in a chunked message';
  }
}
