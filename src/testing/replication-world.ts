/**
 * A simulated world of replication: clusters whose topics are replicated to each other by the real machines,
 * in virtual time, from one seed. Layouts change on both sides at any moment, connections break, answers are lost,
 * processes die between any two effects and others take over. After every step the invariants of replication are
 * checked by brute force: no loss, order, affinity, no loops, duplicates only where they are allowed, verbatim copies,
 * cursors and gates, the slow-path budget.
 *
 * Everything happens by the clock, by the seed, and by what the caller asks for.
 */
import type { Codecs } from '../entry/index.js';
import { IsthmusError } from '../errors.js';
import {
  applyShape,
  createLayout,
  equalShapes,
  joinShapes,
  type Layout,
  pruneSegment,
  rebucketSegment,
  rolloverSegments,
  type Segment,
  shapeOf,
} from '../layout/index.js';
import { canPrune, type SegmentOptions } from '../replication/index.js';
import { BrokenInvariant } from './convergence-invariants.js';
import { seededRandom } from './lossy-network.js';
import { WorldBudget } from './replication-budget.js';
import { isClassic, legacyLayout, migratedLayout } from './replication-layouts.js';
import { Link, type LinkHost } from './replication-link.js';
import { type EntryKind, LocalProducers } from './replication-producers.js';
import { WorldTopic } from './replication-topic.js';
import { type Repeat, Truth } from './replication-truth.js';
import { VirtualClock } from './virtual-clock.js';

/** One cluster of a world. */
export interface WorldClusterOptions {
  readonly segments: number;
  readonly buckets: number;
  /** The topic begins as a classic one, whose partitions these segments are; default false. */
  readonly classic?: boolean;
}

export interface ReplicationWorldOptions {
  readonly seed: number;
  /** Two to six, named a, b, c ... */
  readonly clusters: readonly WorldClusterOptions[];
  /** All clusters replicate to each other, or the first to the others. */
  readonly directions: 'all' | 'first';
  readonly dedup: 'window' | 'readBack';
  readonly failStop: boolean;
  /** Whether destinations know the ranges of source segments (R13). */
  readonly tellsRanges: boolean;
  /** Machines are told together what happens in one moment. */
  readonly tellsTogether: boolean;
  /** Destinations tell at every opening what they have; else only the answers to sends do. */
  readonly tellsWatermarks: boolean;
  readonly codecs: Codecs;
  readonly options?: Partial<SegmentOptions>;
  /** How long a message takes, in milliseconds; default 1 to 12. */
  readonly delayMs?: readonly [least: number, most: number];
  /** Segments begin before their parents are drained: for tests of the world itself. */
  readonly isParentGateDropped?: boolean;
  readonly onTrace?: (line: string) => void;
  /** Told of every layout that a cluster has from now on. */
  readonly onLayout?: (cluster: string, layout: Layout) => void;
}

/** The most clusters of a world. */
export const MAX_CLUSTERS = 6;

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

/** Small and fast, so that everything happens often. */
const OPTIONS = {
  windowEntries: 12,
  maxReadEntries: 4,
  cursorEntries: 6,
  cursorDelayMs: 30,
  retryInitialMs: 8,
  retryMaxMs: 120,
  chunkExpiryMs: 1_500,
};

const MAX_ENTRY_BYTES = 16_384;

const BUDGET = { bytesPerSecond: 20_000, burstBytes: 600, slots: 2 };

export class ReplicationWorld implements LinkHost {
  readonly clock = new VirtualClock();
  readonly topics: readonly WorldTopic[];
  readonly links: readonly Link[];
  readonly truth: Truth;
  /** What has happened, and how often. */
  readonly counts = new Map<string, number>();
  readonly isParentGateDropped: boolean;
  readonly tellsTogether: boolean;
  readonly tellsWatermarks: boolean;
  private readonly producers: readonly LocalProducers[];
  private readonly draw: () => number;
  private processes = 0;

  constructor(private readonly settings: ReplicationWorldOptions) {
    const { seed, clusters, directions, dedup, failStop, codecs, options } = settings;
    this.draw = seededRandom(seed);
    this.isParentGateDropped = settings.isParentGateDropped === true;
    this.tellsTogether = settings.tellsTogether;
    this.tellsWatermarks = settings.tellsWatermarks;
    this.truth = new Truth({
      codecs,
      forbidsRepeat: (repeat) => this.linkOf(repeat).forbidsRepeat(repeat),
      sourceRange: (cluster, segmentId) => this.topic(cluster)?.ranges.get(segmentId),
      count: (what) => this.count(what),
    });
    this.topics = clusters.map(({ segments, buckets, classic = false }, i) => {
      const { nowMs } = this.clock;
      const layout = classic ? legacyLayout(segments, nowMs) : createLayout({ segments, buckets, nowMs });
      return new WorldTopic(NAMES[i] as string, layout, (producer) => this.rangeOf(producer));
    });
    const sources = directions === 'all' ? this.topics : this.topics.slice(0, 1);
    const budgets = new Map(sources.map((topic) => [topic, new WorldBudget(BUDGET, this.clock)]));
    this.links = sources.flatMap((source) =>
      this.topics
        .filter((remote) => remote !== source)
        .map(
          (remote) =>
            new Link(
              this,
              source,
              remote,
              { dedup, failStop },
              { ...OPTIONS, ...options, codecs },
              MAX_ENTRY_BYTES,
              budgets.get(source) as WorldBudget,
            ),
        ),
    );
    this.producers = this.topics.map(
      (topic) =>
        new LocalProducers({
          topic,
          truth: this.truth,
          codecs,
          clock: this.clock,
          random: this.draw,
          remotes: this.topics.filter((other) => other !== topic).map(({ cluster }) => cluster),
          count: (what) => this.count(what),
        }),
    );
    for (const link of this.links) link.begin();
  }

  random(): number {
    return this.draw();
  }

  delayMs(): number {
    const [least, most] = this.settings.delayMs ?? [1, 12];
    return least + Math.floor(this.draw() * (most - least + 1));
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  trace(line: () => string): void {
    this.settings.onTrace?.(`${this.clock.nowMs - START_MS} ${line()}`);
  }

  nextProcessId(): number {
    return ++this.processes;
  }

  /** A local producer of a cluster writes an entry, or nothing where there is no place for it now. */
  write(cluster: number, kind: EntryKind, pick: number): void {
    const entry = this.producers[cluster % this.producers.length]?.write(kind, pick);
    if (entry === undefined) return;
    this.count(`wrote ${kind}`);
    this.trace(() => {
      const { position, segmentId } = entry;
      const messages = entry.messages.map(({ id, line }) => `${id}:${line}`).join(' ');
      return `${entry.cluster}/${segmentId} writes ${position.ledgerId}:${position.entryId} ${kind} ${messages}`;
    });
  }

  /** Changes a cluster's layout; what is refused as invalid is passed over. */
  change(cluster: number, what: string, mutation: (layout: Layout, nowMs: number) => Layout): void {
    const topic = this.topicAt(cluster);
    let next: Layout;
    try {
      next = mutation(topic.layout, this.clock.nowMs);
    } catch (error) {
      if (error instanceof IsthmusError) return;
      throw error;
    }
    if (next === topic.layout) return;
    this.count(what);
    this.trace(() => `${topic.cluster} ${what}: ${describe(next)}`);
    for (const segment of topic.layout.active) {
      if (next.segments.get(segment.segmentId)?.state === 'active') continue;
      this.seal(topic, segment.segmentId);
    }
    topic.change(next);
    this.settings.onLayout?.(topic.cluster, next);
  }

  /** An active segment takes no more writes, before its layout says so: that comes after a while, with a successor. */
  sealEarly(cluster: number, pick: number): void {
    const topic = this.topicAt(cluster);
    const { segmentId } = topic.layout.active[pick % topic.layout.active.length] as Segment;
    if (topic.logs.get(segmentId)?.sealed !== false) return;
    this.count('sealedEarly');
    this.trace(() => `${topic.cluster}/${segmentId} is sealed`);
    this.seal(topic, segmentId);
    this.clock.schedule(5 + (pick % 50), () => {
      if (topic.layout.segments.get(segmentId)?.state !== 'active') return;
      if (isClassic(topic.layout)) return this.migrate(cluster, 2);
      this.change(cluster, 'rollover', (layout, nowMs) => rolloverSegments(layout, [segmentId], { nowMs }));
    });
  }

  /** Every topic drops what nobody needs to read any more. */
  trim(cluster: number): void {
    const topic = this.topicAt(cluster);
    const outgoing = this.links.filter(({ source }) => source === topic);
    const pinned = this.links.filter(({ remote, dedup }) => remote === topic && dedup === 'readBack');
    for (const log of topic.logs.values()) {
      const places = [
        ...outgoing.map(({ remote }) => topic.toward(remote.cluster).acknowledged.get(log.segmentId)),
        ...pinned.map(({ source }) => topic.pin(source.cluster).get(log.segmentId)),
      ];
      const to = Math.min(...places.map((place) => log.indexBehind(place)));
      if (to > log.trimmed && to < Number.POSITIVE_INFINITY) {
        this.count('trimmed');
        log.trimmed = to;
      }
    }
  }

  private seal(topic: WorldTopic, segmentId: number): void {
    const log = topic.logs.get(segmentId);
    if (log === undefined || log.sealed) return;
    log.seal();
    for (const link of this.links) if (link.remote === topic) link.sealed(segmentId);
  }

  /** All segments of a cluster get one bucket; what was sealed goes where it may, so that nobody can ask it what it has. */
  coarsen(cluster: number): void {
    this.change(cluster, 'coarsen', (layout, nowMs) => {
      if (isClassic(layout)) return layout;
      return layout.active.reduce((next, { segmentId, entryBucketSplits }) => {
        return entryBucketSplits.length === 0 ? next : rebucketSegment(next, segmentId, [], { nowMs });
      }, layout);
    });
    this.prune(cluster);
  }

  /** Prunes the sealed segments of a cluster that everybody has drained. */
  prune(cluster: number): void {
    const topic = this.topicAt(cluster);
    for (const segment of topic.layout.segments.values()) {
      const log = topic.logs.get(segment.segmentId);
      if (log === undefined) continue;
      const outgoing = this.links.filter(({ source }) => source === topic);
      const answers = outgoing.map(
        ({ remote }) => topic.toward(remote.cluster).records.get(segment.segmentId)?.drained,
      );
      const pinned = this.links.filter(({ remote, dedup }) => remote === topic && dedup === 'readBack');
      const isRead = pinned.map(({ source }) => {
        return log.indexBehind(topic.pin(source.cluster).get(segment.segmentId)) >= log.entries.length;
      });
      if (!canPrune(segment, [...answers, ...isRead])) continue;
      for (const link of outgoing) this.checkDelivered(link, segment.segmentId);
      this.change(cluster, 'prune', (layout) => pruneSegment(layout, segment.segmentId));
    }
  }

  /** In the end everybody has drained what is sealed, and nobody needs to read it back any more: no pin keeps it (R15). */
  collectGarbage(): void {
    let kept: string | undefined;
    for (let round = 0; round < COLLECTIONS; round++) {
      this.advance(OPERATOR_MS);
      this.operate();
      for (const [i, topic] of this.topics.entries()) for (const _ of topic.layout.segments) this.prune(i);
      kept = this.topics.map(firstSealed).find((found) => found !== undefined);
      if (kept === undefined) return;
    }
    throw new BrokenInvariant(`garbage: sealed segment ${kept} is still kept`);
  }

  private checkDelivered(link: Link, segmentId: number): void {
    for (const entry of this.truth.inSegment(link.source.cluster, segmentId)) {
      const owed = link.owes(entry);
      if (owed !== undefined) throw new BrokenInvariant(`loss: segment ${segmentId} of ${link.name}: ${owed}`);
    }
  }

  /** Lets time pass. */
  advance(ms: number): void {
    this.clock.advance(ms);
  }

  /** Everything works from now on. */
  calm(): void {
    for (const link of this.links) {
      link.cure();
      link.refusals.length = 0;
      link.faults.length = 0;
      link.onSend.length = 0;
      link.onPart.length = 0;
      link.diesIn = undefined;
      link.isDown = false;
      link.setPaused(false);
      if (link.present === undefined) link.begin();
    }
  }

  /** A classic topic gets range segments in the place of its partitions. */
  migrate(cluster: number, count: number): void {
    this.change(cluster, 'migrate', (layout, nowMs) =>
      isClassic(layout) ? migratedLayout(layout, count, nowMs) : layout,
    );
  }

  /** All layouts take the shape in which every boundary of any is. */
  meet(): void {
    for (const [i] of this.topics.entries()) this.migrate(i, 2);
    const shape = this.topics.map(({ layout }) => shapeOf(layout)).reduce((a, b) => joinShapes(a, b));
    for (const [i] of this.topics.entries()) {
      this.change(i, 'meet', (layout, nowMs) => applyShape(layout, shape, { nowMs }));
    }
    const [first, ...others] = this.topics;
    for (const { layout } of others) {
      if (first !== undefined && equalShapes(shapeOf(first.layout), shapeOf(layout))) continue;
      throw new Error('the layouts have not met');
    }
  }

  /** Runs until everything that was written is settled on all remotes, durably; broken when it is not in time. */
  settle(limitMs = 60_000): void {
    const untilMs = this.clock.nowMs + limitMs;
    let operateAtMs = this.clock.nowMs + OPERATOR_MS;
    for (let i = 0; ; i++) {
      const nextAtMs = this.clock.nextAtMs ?? operateAtMs;
      if (i % 8 === 0 || nextAtMs >= operateAtMs) {
        if (this.links.every((link) => this.isSettled(link))) return;
      }
      if (nextAtMs < operateAtMs) this.clock.runNext();
      else {
        this.clock.advance(operateAtMs - this.clock.nowMs);
        operateAtMs += OPERATOR_MS;
        this.operate();
      }
      if (this.clock.nowMs <= untilMs) continue;
      const what = this.links.filter((link) => !this.isSettled(link)).map((link) => this.describe(link));
      throw new BrokenInvariant(`progress: it does not settle: ${what.join('; ')}`);
    }
  }

  /**
   * Writes what producers write that know the layout, once all shapes are equal and everything before has drained: all of
   * it goes as it is, and the slow path rests.
   */
  checkVerbatim(): void {
    const before = this.counts.get('opened') ?? 0;
    for (const [i, { layout }] of this.topics.entries()) {
      if (!this.links.some(({ source }) => source === this.topics[i])) continue;
      for (let pick = 0; pick < 3 * layout.active.length; pick++) {
        this.write(i, pick % 3 === 0 ? 'single' : 'batch', pick * 7);
      }
    }
    this.settle();
    this.checkComplete();
    const opened = (this.counts.get('opened') ?? 0) - before;
    if (opened > 0) throw new BrokenInvariant(`verbatim: ${opened} payloads were opened, and all entries fit`);
  }

  /** Nothing that was written is missing anywhere. */
  checkComplete(): void {
    for (const link of this.links) {
      for (const { segmentId } of link.source.layout.segments.values()) this.checkDelivered(link, segmentId);
    }
  }

  /** Operators do what the stop reasons tell them to. */
  private operate(): void {
    for (const link of this.links) {
      const { present } = link;
      // One that holds an entry, or has nothing to write, does not learn that it was replaced, and keeps its names.
      link.endOld();
      for (const run of present?.runs.values() ?? []) {
        const { held, waitingFor, state } = run.machine.report();
        if (held !== undefined) link.skip(run, held.position);
        if (state === 'stopped' && waitingFor.for === 'operator') link.mend(run, waitingFor.reason);
      }
    }
  }

  private isSettled(link: Link): boolean {
    const { records } = link.source.toward(link.remote.cluster);
    for (const { segmentId, state } of link.source.layout.segments.values()) {
      const record = records.get(segmentId);
      const log = link.source.logs.get(segmentId);
      if (log === undefined) continue;
      // What the source has let go of is not to be waited for.
      const to = Math.max(log.trimmed, log.indexBehind(record?.settled));
      if (state === 'sealed' ? record?.drained !== true : to < log.entries.length) return false;
    }
    return true;
  }

  private describe(link: Link): string {
    const runs = [...(link.present?.runs.values() ?? [])].filter(({ machine }) => !machine.isDrained);
    const waits = runs.map(({ segmentId, machine }) => {
      const { waitingFor, lanes } = machine.report();
      return `${segmentId}: ${JSON.stringify(waitingFor)} ${JSON.stringify(lanes)}`;
    });
    return `${link.name} ${waits.join(', ')}`;
  }

  private topicAt(cluster: number): WorldTopic {
    return this.topics[cluster % this.topics.length] as WorldTopic;
  }

  private topic(cluster: string): WorldTopic | undefined {
    return this.topics.find((topic) => topic.cluster === cluster);
  }

  private linkOf({ entry, remote }: Repeat): Link {
    const link = this.links.find((one) => one.source.cluster === entry.cluster && one.remote.cluster === remote);
    if (link === undefined) throw new Error(`no link from ${entry.cluster} to ${remote}`);
    return link;
  }

  private rangeOf(producer: string) {
    if (!this.settings.tellsRanges) return undefined;
    const [, , cluster = '', segmentId = ''] = producer.split('.');
    return this.topic(cluster)?.ranges.get(Number(segmentId));
  }
}

/** How often garbage is looked for until there must be none. */
const COLLECTIONS = 8;

/** How often operators look after what has stopped. */
const OPERATOR_MS = 300;

const START_MS = new VirtualClock().nowMs;

function firstSealed({ cluster, layout }: WorldTopic): string | undefined {
  const sealed = [...layout.segments.values()].find(({ state }) => state === 'sealed');
  return sealed === undefined ? undefined : `${sealed.segmentId} of ${cluster}`;
}

function describe({ segments }: Layout): string {
  return [...segments.values()]
    .map(({ segmentId, range, state, entryBucketSplits }) => {
      const buckets = entryBucketSplits.map((start) => start.toString(16)).join(',');
      return `${segmentId}[${range.start.toString(16)}-${range.end.toString(16)}${state === 'sealed' ? ' sealed' : ''} /${buckets}]`;
    })
    .join(' ');
}
