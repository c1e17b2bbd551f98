/**
 * A process that is to be killed: it replicates into a store from two source segments, as fast as it can, splits and
 * rebuckets the store's segments with sends in flight, and prints a line for whatever has resolved, once it has.
 * It begins where the cursors stand. Started as `node --import tsx lmdb-writer.ts FOLDER`; a line on stdin lets it go.
 */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { findActiveSegment, type Layout, rebucketSegment, type SourcePosition, splitSegment } from 'isthmus';
import { type LmdbTopic, openStore } from 'isthmus/adapters/lmdb';
import type { RemoteProducer, SendResult } from '../../src/ports/index.js';
import { openTopic } from './lmdb.js';
import { bodyOf, hashOf, SOURCES, sourcePosition } from './lmdb-stream.js';

/** Entries of one source between two waits for all results, and how many are sent in one go. */
const ROUND = 150;
const STRETCH = 40;

/** From so many active segments on, one is rebucketed instead of split. */
const MOST_ACTIVE = 6;

/** An entry on its way: the number of its source position, and where it was sent. */
interface Pending {
  readonly source: number;
  readonly number: number;
}

/** The lane of one source segment to one segment, with what it has in flight. */
interface Lane {
  readonly producer: RemoteProducer;
  readonly inFlight: Pending[];
  previous: SourcePosition | undefined;
}

/** On a pipe, what is written is with the reader when the call returns, whatever becomes of this process (not on Windows). */
const print = (line: string) => process.stdout.write(`${line}\n`);

function fail(what: string): never {
  print(`fault ${what}`);
  process.exit(1);
}

class Writer {
  private readonly lanes = new Map<string, Lane>();
  /** What a seal has turned away, to be sent again. */
  private turnedAway: Pending[] = [];
  private unanswered = 0;
  private allAnswered = () => {};

  constructor(
    private readonly topic: LmdbTopic,
    private readonly session: number,
  ) {}

  async run(settled: number[]): Promise<never> {
    for (let round = 0; ; round++) {
      const from = [...settled];
      const pending = from.flatMap((start, source) =>
        Array.from({ length: ROUND }, (_, i) => ({ source, number: start + 1 + i })),
      );
      await this.deliver(pending, round % 3 === 2);
      for (const source of SOURCES) settled[source] = (from[source] ?? 0) + ROUND;
      // Not waited for: cursor writes and acknowledgements share transactions with the sends of the next round.
      this.writeCursors([...settled]).catch((error: unknown) => fail(`cursor: ${error}`));
    }
  }

  /** Until all of it is stored: what a seal turns away goes to the successors, in its order. */
  private async deliver(pending: readonly Pending[], changing: boolean): Promise<void> {
    for (let rest = pending, isFirst = true; rest.length > 0; isFirst = false) {
      const { layout } = this.topic;
      await this.openLanes(layout, rest);
      this.unanswered = rest.length;
      const answered = new Promise<void>((resolve) => {
        this.allAnswered = resolve;
      });
      for (const [i, entry] of rest.entries()) {
        if (i % STRETCH === 0) await setImmediate();
        if (changing && isFirst && i === rest.length >> 1)
          this.change(layout).catch((error) => fail(`change: ${error}`));
        this.send(layout, entry);
      }
      await answered;
      await this.closeSealed();
      rest = this.turnedAway.sort((a, b) => a.source - b.source || a.number - b.number);
      this.turnedAway = [];
    }
  }

  private async openLanes(layout: Layout, entries: readonly Pending[]): Promise<void> {
    for (const { source, number } of entries) {
      const { segmentId } = findActiveSegment(layout, hashOf(number));
      const key = `${source}/${segmentId}`;
      if (this.lanes.has(key)) continue;
      const inFlight: Pending[] = [];
      const onResult = (result: SendResult) => this.onResult(segmentId, inFlight.shift(), result);
      const opened = await this.topic.remote('b').open(source, segmentId, onResult);
      if (opened.type !== 'opened') fail(`opening ${key}: ${opened.type}`);
      this.lanes.set(key, { producer: opened.producer, inFlight, previous: undefined });
    }
  }

  private send(layout: Layout, entry: Pending): void {
    const { segmentId } = findActiveSegment(layout, hashOf(entry.number));
    const lane = this.lanes.get(`${entry.source}/${segmentId}`) ?? fail('no lane');
    const position = sourcePosition(entry.number);
    lane.inFlight.push(entry);
    lane.producer.send({
      position,
      previous: lane.previous,
      lowestHash: undefined,
      buffers: bodyOf(entry.source, entry.number),
    });
    lane.previous = position;
  }

  private onResult(segmentId: number, entry: Pending | undefined, result: SendResult): void {
    if (entry === undefined) fail('a result without a send');
    if (result.type === 'stored') print(`stored ${entry.source} ${entry.number} ${segmentId} ${result.at?.entryId}`);
    else if (result.type === 'sealed') this.turnedAway.push(entry);
    else if (result.type !== 'duplicate') fail(`send ${entry.source} ${entry.number}: ${JSON.stringify(result)}`);
    if (--this.unanswered === 0) this.allAnswered();
  }

  /** Splits the first active segment, or gives it a successor of other buckets once there are many. */
  private async change(layout: Layout): Promise<void> {
    const options = { nowMs: Date.now() };
    const [first] = layout.active;
    if (first === undefined) fail('no active segment');
    const next =
      layout.active.length < MOST_ACTIVE
        ? splitSegment(layout, first.segmentId, options)
        : rebucketSegment(layout, first.segmentId, first.entryBucketSplits.length === 0 ? [0x8000] : [], options);
    const { type } = await this.topic.layoutHost().store.commit(layout.epoch, next);
    if (type !== 'committed') fail(`commit: ${type}`);
    print(`layout ${next.epoch}`);
  }

  private async closeSealed(): Promise<void> {
    const { segments } = this.topic.layout;
    for (const [key, { producer }] of this.lanes) {
      if (segments.get(Number(key.split('/')[1]))?.state === 'active') continue;
      await producer.close();
      this.lanes.delete(key);
    }
  }

  private async writeCursors(settled: readonly number[]): Promise<void> {
    const records = settled.map((number, source) => {
      const record = { session: this.session, settled: sourcePosition(number), drained: false, skipped: [] };
      return [source, { ...record, checkpoints: new Map() }] as const;
    });
    const { type } = await this.topic.cursors('b').write(new Map(records));
    if (type !== 'written') fail(`cursor: ${type}`);
    for (const [source, number] of settled.entries()) print(`cursor ${source} ${number}`);
  }
}

const folder = process.argv[2] ?? fail('no folder');
print('loaded');
await once(process.stdin, 'data');
const topic = await openTopic(await openStore(folder));
const records = await topic.cursors('b').load();
const session = Math.max(0, ...[...records.values()].map((record) => record.session)) + 1;
const settled = SOURCES.map((source) => Number(records.get(source)?.settled?.entryId ?? 0n));
await new Writer(topic, session).run(settled);
