/**
 * A stage for the machine of one source segment: a source that is written by hand, a topic in memory as the remote, a
 * cursor store, and processes that come and go. What a machine asks for is told line by line and answered at once,
 * unless that kind of answer is held; then it waits for a word from the story.
 */
import { type MemoryRemoteOptions, MemoryTopic } from '../../src/adapters/memory/index.js';
import { readBackSegment } from '../../src/drivers/read-back.js';
import type { SourcePosition } from '../../src/entry/index.js';
import { type Layout, splitSegment } from '../../src/layout/index.js';
import type {
  CursorRecord,
  CursorStore,
  RemoteProducer,
  RemoteTopic,
  RemoteTopicLayout,
  SchemaTranslation,
  Send,
  SendResult,
  StoredEntry,
} from '../../src/ports/index.js';
import type { SourceSegment } from '../../src/rebatch/index.js';
import {
  newCounters,
  type Recovery,
  type SegmentEffect,
  type SegmentEvent,
  type SegmentOptions,
  SegmentReplicator,
  type SegmentWait,
} from '../../src/replication/index.js';
import { FULL_RANGE } from '../../src/ring/index.js';
import { codecs } from './codecs.js';
import {
  behind,
  foundText,
  from,
  noticeText,
  position,
  previousText,
  recordText,
  resultText,
  sendText,
  text,
  waitText,
} from './stage-text.js';

export const START_MS = 1_700_000_000_000;

/** The cluster that is replicated from, and the segment of it that is on stage. */
const SOURCE_CLUSTER = 'a';
const SOURCE_SEGMENT = 5;

/** What can be kept waiting. */
export type Kind = 'reads' | 'opens' | 'sends' | 'writes' | 'recoveries' | 'grants' | 'translations';

export interface StageOptions {
  readonly source?: Partial<SourceSegment>;
  readonly layout: Layout;
  readonly remote?: MemoryRemoteOptions;
  readonly maxEntryBytes?: number;
  readonly options?: Partial<SegmentOptions>;
}

/** The source segment: its log, and what it says of itself. */
export class SourceLog {
  entries: StoredEntry[] = [];
  isSealed = false;
  acknowledged: SourcePosition | undefined;
  private ledgerId = 7n;

  append(bytes: Uint8Array): SourcePosition {
    const inLedger = this.entries.filter(({ position }) => position.ledgerId === this.ledgerId);
    const position = { ledgerId: this.ledgerId, entryId: BigInt(inLedger.length) };
    this.entries.push({ position, bytes });
    return position;
  }

  /** The segment is made again, in another ledger. */
  rebuild(ledgerId: bigint): void {
    this.entries = [];
    this.ledgerId = ledgerId;
    this.acknowledged = undefined;
  }

  get lastPosition(): SourcePosition | undefined {
    return this.entries.at(-1)?.position;
  }

  /** Undefined while there is nothing to bring. */
  read(after: SourcePosition | undefined, maxEntries: number, maxBytes: number) {
    const rest = this.entries.filter(({ position }) => after === undefined || isBehind(position, after));
    const entries: StoredEntry[] = [];
    let bytes = 0;
    for (const entry of rest.slice(0, maxEntries)) {
      bytes += entry.bytes.length;
      if (entries.length > 0 && bytes > maxBytes) break;
      entries.push(entry);
    }
    const ended = this.isSealed && entries.length === rest.length;
    return entries.length > 0 || ended ? { entries, ended } : undefined;
  }
}

function isBehind(a: SourcePosition, b: SourcePosition): boolean {
  return a.ledgerId === b.ledgerId ? a.entryId > b.entryId : a.ledgerId > b.ledgerId;
}

/** Everything that outlives a process. */
export class SegmentStage {
  nowMs = START_MS;
  readonly lines: string[] = [];
  readonly source = new SourceLog();
  readonly segment: SourceSegment;
  readonly topic: MemoryTopic;
  readonly remote: RemoteTopic;
  readonly held = new Set<Kind>();
  /** What the translator says, by the text of the version; another is unknown to it. */
  readonly schemas = new Map<string, SchemaTranslation>();
  readonly processes = new Map<string, Process>();
  cursors: CursorStore;
  options: Partial<SegmentOptions>;
  private records = new Map<number, CursorRecord>();

  constructor({ source, layout, remote, maxEntryBytes, options = {} }: StageOptions) {
    this.segment = { segmentId: SOURCE_SEGMENT, range: FULL_RANGE, legacy: false, ...source };
    this.topic = new MemoryTopic({ cluster: 'b', layout, ...(maxEntryBytes === undefined ? {} : { maxEntryBytes }) });
    this.remote = this.topic.remote(SOURCE_CLUSTER, remote);
    this.options = options;
    this.cursors = {
      load: async () => new Map(this.records),
      write: async (changes) => {
        for (const [segmentId, record] of changes) {
          const session = this.records.get(segmentId)?.session ?? 0;
          if (record !== undefined && session > record.session) return { type: 'fenced', session };
        }
        for (const [segmentId, record] of changes) if (record !== undefined) this.records.set(segmentId, record);
        return { type: 'written' };
      },
    };
  }

  say(line: string): void {
    this.lines.push(line);
  }

  /** What is told while this happens. */
  async told(happens: () => Promise<void>): Promise<string[]> {
    const before = this.lines.length;
    await happens();
    return this.lines.slice(before);
  }

  /** Time since the story began. */
  time(atMs: number): string {
    const ms = atMs - START_MS;
    return ms >= 1000 && ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
  }

  get record(): CursorRecord | undefined {
    return this.records.get(SOURCE_SEGMENT);
  }

  /** Puts another record in the place of the stored one. */
  replaceRecord(record: CursorRecord | undefined): void {
    if (record === undefined) this.records.delete(SOURCE_SEGMENT);
    else this.records.set(SOURCE_SEGMENT, record);
  }

  get remoteLayout(): RemoteTopicLayout {
    const { epoch, active, segments } = this.topic.layout;
    return { cluster: 'b', epoch, active, segments };
  }

  /** The process of this name; a new one has no machine yet. */
  process(name: string): Process {
    let process = this.processes.get(name);
    if (process === undefined) {
      process = new Process(this, name);
      this.processes.set(name, process);
    }
    return process;
  }

  /** Entries came, or the segment was sealed: reads that wait are answered. */
  async sourceChanged(): Promise<void> {
    for (const process of this.processes.values()) await process.readOn();
  }

  /** Lets time pass, and every machine's timer with it. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const [next] = [...this.processes.values()]
        .filter(({ wakeAtMs }) => wakeAtMs !== undefined && wakeAtMs <= untilMs)
        .sort((a, b) => (a.wakeAtMs ?? 0) - (b.wakeAtMs ?? 0));
      if (next?.wakeAtMs === undefined) break;
      this.nowMs = Math.max(this.nowMs, next.wakeAtMs);
      next.wakeAtMs = undefined;
      await next.tell({ type: 'wake' });
    }
    this.nowMs = untilMs;
  }
}

type Effect<Type extends SegmentEffect['type']> = Extract<SegmentEffect, { readonly type: Type }>;

interface OpenProducer {
  readonly segmentId: number;
  producer: RemoteProducer | undefined;
  /** Sends that wait for a result, the oldest first. */
  readonly sends: Send[];
  /** Results that the remote has told and the story has not. */
  onResult: ((result: SendResult) => void) | undefined;
}

/** One process with one machine. */
export class Process {
  readonly counters = newCounters();
  wakeAtMs: number | undefined;
  private replicator: SegmentReplicator | undefined;
  private readonly events: SegmentEvent[] = [];
  private readonly producers = new Map<number, OpenProducer>();
  private read: Effect<'read'> | undefined;
  private readonly opens: Effect<'open'>[] = [];
  private readonly recoveries: Effect<'recover'>[] = [];
  private readonly translations: Effect<'translate'>[] = [];
  private isAsking = false;
  private record: CursorRecord | undefined;

  constructor(
    private readonly stage: SegmentStage,
    private readonly name: string,
  ) {}

  get machine(): SegmentReplicator {
    if (this.replicator === undefined) throw new Error(`process ${this.name} does not run`);
    return this.replicator;
  }

  private session = 0;

  get isRunning(): boolean {
    return this.replicator !== undefined;
  }

  /** The machine is made, from the stored cursor; it waits for its parents. */
  async takeUp(): Promise<void> {
    const { stage } = this;
    const stored = (await stage.cursors.load()).get(stage.segment.segmentId);
    const record: CursorRecord = {
      drained: false,
      skipped: [],
      checkpoints: new Map(),
      ...stored,
      session: (stored?.session ?? 0) + 1,
    };
    this.session = record.session;
    this.replicator = new SegmentReplicator({
      source: stage.segment,
      sourceCluster: SOURCE_CLUSTER,
      maxEntryBytes: stage.remote.maxEntryBytes,
      supports: stage.remote.supports,
      options: { codecs, cursorDelayMs: 0, ...stage.options },
      record,
      counters: this.counters,
    });
  }

  /** Made if it was not, told the layout, and told that its parents are drained. */
  async start(): Promise<void> {
    if (this.replicator === undefined) {
      await this.takeUp();
      await this.tell({ type: 'layout', layout: this.stage.remoteLayout });
    }
    await this.tell({ type: 'start', acknowledged: this.stage.source.acknowledged });
  }

  /** The process ends at once: nothing is told it any more, its connections are cut. */
  async crash(): Promise<void> {
    for (const { producer } of this.producers.values()) await producer?.close();
    this.producers.clear();
    this.opens.length = 0;
    this.recoveries.length = 0;
    this.translations.length = 0;
    this.read = undefined;
    this.record = undefined;
    this.isAsking = false;
    this.wakeAtMs = undefined;
    this.replicator = undefined;
  }

  /** Tells the machine, and does what follows, until nothing is left to tell. */
  async tell(event: SegmentEvent): Promise<void> {
    this.events.push(event);
    if (this.events.length > 1) return;
    for (let next = this.events[0]; next !== undefined; next = this.events[0]) {
      for (const effect of this.machine.step(next, this.stage.nowMs)) await this.perform(effect);
      this.events.shift();
    }
    this.checkProgress();
  }

  private later(event: SegmentEvent): void {
    this.events.push(event);
  }

  private say(line: string): void {
    this.stage.say(this.stage.processes.size > 1 ? `${this.name}: ${line}` : line);
  }

  private isHeld(kind: Kind): boolean {
    return this.stage.held.has(kind);
  }

  private async perform(effect: SegmentEffect): Promise<void> {
    switch (effect.type) {
      case 'read':
        this.read = effect;
        return this.answerRead(`read${behind(effect.after)}`);
      case 'open':
        this.producers.set(effect.laneId, {
          segmentId: effect.segmentId,
          producer: undefined,
          sends: [],
          onResult: undefined,
        });
        if (!this.isHeld('opens')) return this.open(effect, `open ${effect.segmentId}${from(effect.checkpoint)}`);
        this.opens.push(effect);
        return this.say(`open ${effect.segmentId}${from(effect.checkpoint)} ...`);
      case 'close':
        this.say(`close ${this.producers.get(effect.laneId)?.segmentId}`);
        return this.close(effect.laneId);
      case 'send':
        return this.send(effect);
      case 'recover':
        if (!this.isHeld('recoveries'))
          return this.recover(effect, `ask sealed ${effect.segmentId}${from(effect.checkpoint)}`);
        this.recoveries.push(effect);
        return this.say(`ask sealed ${effect.segmentId}${from(effect.checkpoint)} ...`);
      case 'acquire':
        if (this.isAsking) throw new Error('the budget is asked twice');
        this.isAsking = this.isHeld('grants');
        if (this.isAsking) this.say('ask the budget ...');
        else this.later({ type: 'granted' });
        return;
      case 'release':
        this.isAsking = false;
        if (this.isHeld('grants')) this.say('give the budget back');
        return;
      case 'write':
        if (this.record !== undefined) throw new Error('two cursor writes are out');
        this.record = effect.record;
        if (!this.isHeld('writes')) return this.write(`write ${recordText(effect.record)}`);
        return this.say(`write ${recordText(effect.record)} ...`);
      case 'acknowledge':
        this.stage.source.acknowledged = effect.position;
        return this.say(`acknowledge ${position(effect.position)}`);
      case 'translate':
        if (!this.isHeld('translations')) return this.translate(effect, `ask for schema ${text(effect.bytes)}`);
        this.translations.push(effect);
        return this.say(`ask for schema ${text(effect.bytes)} ...`);
      case 'wake':
        this.wakeAtMs = effect.atMs;
        return this.say(`wake at ${this.stage.time(effect.atMs)}`);
      case 'notice':
        return this.say(`notice ${noticeText(effect.notice)}`);
      case 'drained':
      case 'stopped':
        return this.say(effect.type);
    }
  }

  /** Answers the read that waits, if there is something to bring. */
  async readOn(): Promise<void> {
    if (this.read === undefined || this.isHeld('reads')) return;
    this.answerRead('the read brings', true);
    const event = this.events.shift();
    if (event !== undefined) await this.tell(event);
  }

  /** The read that waits brings what there is, though reads are held, or fails. */
  async endRead(reason?: string): Promise<void> {
    const { read } = this;
    if (read === undefined) throw new Error('no read is out');
    this.read = undefined;
    if (reason !== undefined) return this.tell({ type: 'readFailed', readId: read.readId, reason });
    const brought = this.stage.source.read(read.after, read.maxEntries, read.maxBytes) ?? { entries: [], ended: false };
    await this.tell({ type: 'read', readId: read.readId, ...brought });
  }

  /** Takes the read that is out off the stage, to be brought by hand later. */
  takeRead(): (maxEntries?: number) => Promise<void> {
    const { read } = this;
    if (read === undefined) throw new Error('no read is out');
    return (maxEntries = read.maxEntries) => {
      const brought = this.stage.source.read(read.after, maxEntries, read.maxBytes) ?? { entries: [], ended: false };
      if (this.read === read) this.read = undefined;
      return this.tell({ type: 'read', readId: read.readId, ...brought });
    };
  }

  private answerRead(label: string, isQuiet = false): void {
    const { read } = this;
    if (read === undefined) return;
    const brought = this.isHeld('reads')
      ? undefined
      : this.stage.source.read(read.after, read.maxEntries, read.maxBytes);
    if (brought === undefined) {
      if (!isQuiet) this.say(`${label} ...`);
      return;
    }
    this.read = undefined;
    const places = brought.entries.map((entry) => position(entry.position)).join(' ');
    this.say(`${label}${isQuiet ? '' : ':'} ${[places, brought.ended ? 'the end' : ''].filter(Boolean).join(', ')}`);
    this.later({ type: 'read', readId: read.readId, ...brought });
  }

  private async open({ laneId, segmentId, checkpoint }: Effect<'open'>, label: string): Promise<void> {
    const { stage } = this;
    const lane = this.producers.get(laneId);
    if (lane === undefined) return;
    const opened = await stage.remote.open(stage.segment.segmentId, segmentId, (result) => lane.onResult?.(result));
    if (opened.type !== 'opened') {
      this.producers.delete(laneId);
      this.say(`${label}: ${opened.type}`);
      return this.later({ type: 'openFailed', laneId, failure: opened });
    }
    lane.producer = opened.producer;
    const { lastPosition } = stage.source;
    if (stage.remote.supports.dedup === 'window') {
      const { watermark } = opened;
      this.say(`${label}: opened${watermark === undefined ? '' : `, has ${position(watermark)}`}`);
      return this.later({ type: 'opened', laneId, watermark, lastPosition });
    }
    const found = await this.readBack(segmentId, checkpoint, opened.producer);
    if ('failure' in found) {
      await this.close(laneId);
      this.say(`${label}: ${found.failure.type}`);
      return this.later({ type: 'openFailed', laneId, failure: found.failure });
    }
    this.say(`${label}: opened, ${foundText(found.copies)}`);
    this.later({ type: 'opened', laneId, lastPosition, ...found });
  }

  private readBack(segmentId: number, checkpoint: SourcePosition | undefined, producer: RemoteProducer | undefined) {
    const { remote, cursors, remoteLayout: layout, segment } = this.stage;
    return readBackSegment(
      { remote, cursors, sourceCluster: SOURCE_CLUSTER, sourceSegmentId: segment.segmentId, session: this.session },
      { segmentId, checkpoint, producer, layout },
      new AbortController().signal,
      () => undefined,
    );
  }

  private async recover({ segmentId, checkpoint }: Effect<'recover'>, label: string): Promise<void> {
    const { remote, segment } = this.stage;
    let recovery: Recovery;
    if (remote.supports.dedup === 'window') {
      const known = await remote.watermark(segment.segmentId, segmentId);
      if (known.type !== 'known' && known.type !== 'pruned') throw new Error(known.reason);
      recovery = known.type === 'pruned' ? known : { type: 'watermark', watermark: known.watermark };
      const has = known.type === 'pruned' ? 'pruned' : `has ${position(known.watermark)}`;
      this.say(`${label}: ${has}`);
    } else {
      const found = await this.readBack(segmentId, checkpoint, undefined);
      if ('failure' in found) throw new Error(found.failure.reason);
      const { lastPosition } = this.stage.source;
      recovery =
        found.copies === undefined
          ? { type: 'pruned' }
          : { type: 'copies', copies: found.copies, end: found.end, lastPosition };
      this.say(`${label}: ${found.copies === undefined ? 'pruned' : foundText(found.copies)}`);
    }
    this.later({ type: 'recovered', segmentId, recovery });
  }

  private async close(laneId: number): Promise<void> {
    const lane = this.producers.get(laneId);
    this.producers.delete(laneId);
    const opening = this.opens.findIndex((open) => open.laneId === laneId);
    if (opening >= 0) this.opens.splice(opening, 1);
    if (lane === undefined) return;
    lane.sends.length = 0;
    await lane.producer?.close();
  }

  private send({ laneId, send }: Effect<'send'>): void {
    const lane = this.producers.get(laneId);
    if (lane?.producer === undefined) throw new Error(`a send to lane ${laneId}, which is not open`);
    const label = `send ${sendText(send)} to ${lane.segmentId}${previousText(send)}`;
    // Answers come in the order of the sends.
    if (this.isHeld('sends') || lane.sends.length > 0) {
      lane.sends.push(send);
      return this.say(`${label} ...`);
    }
    const result = judge(lane, send);
    this.say(`${label}: ${resultText(result)}`);
    this.later({ type: 'result', laneId, result });
  }

  private async write(label: string): Promise<void> {
    const { record } = this;
    if (record === undefined) return;
    this.record = undefined;
    const result = await this.stage.cursors.write(new Map([[this.stage.segment.segmentId, record]]));
    this.say(`${label}: ${result.type}`);
    this.later(result.type === 'written' ? { type: 'written' } : { type: 'writeFenced', session: result.session });
  }

  private translate({ version, bytes }: Effect<'translate'>, label: string): void {
    const known = this.stage.schemas.get(text(bytes)) ?? { type: 'unknown', reason: 'not registered yet' };
    this.say(`${label}: ${known.type === 'translated' ? text(known.version) : known.type}`);
    this.later({ type: 'translated', version, translation: known });
  }

  // What the story says of what waits.

  /** The remote splits a segment in halves, and the machine is told. */
  split(segmentId = 0): Promise<void> {
    const { stage } = this;
    stage.topic.change((layout) => splitSegment(layout, segmentId, { nowMs: stage.nowMs }));
    return this.tell({ type: 'layout', layout: stage.remoteLayout });
  }

  /** The oldest send to a segment gets this result, whatever the remote would say. */
  result(segmentId: number, result: SendResult): Promise<void> {
    const [laneId, lane] = this.laneTo(segmentId);
    if (lane.sends.shift() === undefined) throw new Error(`no send to ${segmentId} waits`);
    return this.tell({ type: 'result', laneId, result });
  }

  /** The oldest send to a segment comes to the remote, which judges it; with `isLost` the answer gets lost. */
  arrives(segmentId: number, isLost = false): Promise<void> {
    const [laneId, lane] = this.laneTo(segmentId);
    const send = lane.sends.shift();
    if (send === undefined) throw new Error(`no send to ${segmentId} waits`);
    const result = judge(lane, send);
    this.say(`${sendText(send)} arrives at ${segmentId}: ${resultText(result)}${isLost ? ', the answer is lost' : ''}`);
    return this.tell({ type: 'result', laneId, result: isLost ? { type: 'ambiguous', reason: 'no answer' } : result });
  }

  async opened(segmentId: number, failure?: Extract<SegmentEvent, { type: 'openFailed' }>['failure']): Promise<void> {
    const at = this.opens.findIndex((open) => open.segmentId === segmentId);
    const [effect] = at < 0 ? [] : this.opens.splice(at, 1);
    if (effect === undefined) throw new Error(`no opening of ${segmentId} waits`);
    const { laneId } = effect;
    if (failure !== undefined) {
      this.producers.delete(laneId);
      return this.tell({ type: 'openFailed', laneId, failure });
    }
    await this.open(effect, `${segmentId} answers`);
    await this.tellLater();
  }

  async recovered(segmentId: number, reason?: string): Promise<void> {
    const at = this.recoveries.findIndex((recover) => recover.segmentId === segmentId);
    const [effect] = at < 0 ? [] : this.recoveries.splice(at, 1);
    if (effect === undefined) throw new Error(`nobody asks ${segmentId}`);
    if (reason !== undefined) return this.tell({ type: 'recovered', segmentId, recovery: { type: 'failed', reason } });
    await this.recover(effect, `${segmentId} answers`);
    await this.tellLater();
  }

  async written(reason?: string): Promise<void> {
    if (this.record === undefined) throw new Error('no write is out');
    if (reason !== undefined) {
      this.record = undefined;
      return this.tell({ type: 'writeFailed', reason });
    }
    await this.write('the write');
    await this.tellLater();
  }

  async granted(): Promise<void> {
    if (!this.isAsking) throw new Error('nobody asks the budget');
    this.isAsking = false;
    await this.tell({ type: 'granted' });
  }

  async translated(): Promise<void> {
    const effect = this.translations.shift();
    if (effect === undefined) throw new Error('nobody asks for a schema');
    this.translate(effect, 'the translator');
    await this.tellLater();
  }

  /** A kind is not held any more: answers everything of it that waits. */
  async letGo(kind: Kind): Promise<void> {
    this.stage.held.delete(kind);
    switch (kind) {
      case 'reads':
        return this.readOn();
      case 'opens':
        for (let next = this.opens[0]; next !== undefined; next = this.opens[0]) await this.opened(next.segmentId);
        return;
      case 'sends':
        for (const lane of [...this.producers.values()])
          while (lane.sends.length > 0) await this.arrives(lane.segmentId);
        return;
      case 'writes':
        return this.record === undefined ? undefined : this.written();
      case 'recoveries':
        for (let next = this.recoveries[0]; next !== undefined; next = this.recoveries[0])
          await this.recovered(next.segmentId);
        return;
      case 'grants':
        return this.isAsking ? this.granted() : undefined;
      case 'translations':
        return this.translations.length > 0 ? this.translated() : undefined;
    }
  }

  private async tellLater(): Promise<void> {
    const event = this.events.shift();
    if (event !== undefined) await this.tell(event);
  }

  private laneTo(segmentId: number): [number, OpenProducer] {
    const found = [...this.producers].find(([, lane]) => lane.segmentId === segmentId);
    if (found === undefined) throw new Error(`no lane to ${segmentId}`);
    return found;
  }

  /** The remote segments to which a send waits for its result. */
  get waitingSends(): readonly number[] {
    return [...this.producers.values()].filter((lane) => lane.sends.length > 0).map(({ segmentId }) => segmentId);
  }

  /** What is outstanding, for those who want to know that something is. */
  get outstanding(): readonly string[] {
    const sends = [...this.producers.values()].filter((lane) => lane.sends.length > 0);
    return [
      ...(this.read === undefined ? [] : ['read']),
      ...this.opens.map(({ segmentId }) => `open ${segmentId}`),
      ...this.recoveries.map(({ segmentId }) => `recover ${segmentId}`),
      ...this.translations.map(({ version }) => `translate ${version}`),
      ...(this.isAsking ? ['acquire'] : []),
      ...(this.record === undefined ? [] : ['write']),
      ...sends.map(({ segmentId, sends }) => `send ${sendText(sends[0] as Send)} to ${segmentId}`),
      ...(this.wakeAtMs === undefined ? [] : ['wake']),
    ];
  }

  /** "Progress": at any moment something is outstanding, or it is said what the machine waits for without it. */
  private checkProgress(): void {
    const { machine } = this;
    if (machine.isAtRest) return;
    const { waitingFor } = machine.report();
    if (isOutstanding(waitingFor, this.outstanding, this.stage)) return;
    throw new Error(
      `waits for ${waitText(waitingFor)}, and only ${this.outstanding.join(', ') || 'nothing'} is outstanding`,
    );
  }
}

/** Whether what is outstanding can end a wait. */
function isOutstanding(wait: SegmentWait, outstanding: readonly string[], { topic }: SegmentStage): boolean {
  const has = (...starts: string[]) => outstanding.some((one) => starts.some((start) => one.startsWith(start)));
  switch (wait.for) {
    case 'claim':
    case 'parents':
    case 'layout':
    case 'operator':
    case 'nothing':
    case 'rateLimit':
      return true;
    case 'entries':
    case 'source':
      return has('read', 'wake', 'write', 'send');
    case 'results':
      return has('send', 'open', 'recover', 'wake', 'write');
    case 'remoteSegment':
      // The layout that shows the seal is followed all the time.
      return (
        has('open', 'recover', 'wake', 'write', 'send') || (wait.reason.startsWith('closing') && topic !== undefined)
      );
    case 'budget':
      return has('acquire');
    case 'schema':
      return has('translate', 'wake');
    case 'cursor':
      return has('write', 'wake');
  }
}

/** What the remote says to a send. */
function judge(lane: OpenProducer, send: Send): SendResult {
  let result: SendResult = { type: 'unavailable', reason: 'no connection' };
  lane.onResult = (told) => {
    result = told;
  };
  lane.producer?.send(send);
  return result;
}
