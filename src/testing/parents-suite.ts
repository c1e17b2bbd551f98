/**
 * Acceptance suite for `ParentTopics`: the same tests that the adapters here pass. It is given the test function of the
 * runner, `it` or `test`, and a `setup` that makes a fresh parent with these records for each test. Each message of a
 * failure is the rule that is broken.
 */
import type { ParentTopics } from '../ports/index.js';
import type { Slab, SlabLimits, SourceRecord } from '../sender/index.js';
import { check, onFresh, type RegisterTest, rejects, type SuiteSetup, watched } from './suite.js';

/** A record as a producer has it. */
export interface ParentRecord {
  /** Empty: the record has no key. */
  readonly key: string;
  /** A JSON object on one line; where the key is not empty, `key` is a member of it. */
  readonly payload: string;
}

/** A parent that holds what the suite has asked for, all of it kept, nothing of it delayed or consumed. */
export interface ParentTopicsSetup extends SuiteSetup {
  readonly parents: ParentTopics;
  /** Its name. */
  readonly parent: string;
  /** Stores one more record in a partition; absent where none ever comes. */
  append?(partition: number, record: ParentRecord): Promise<void> | void;
}

/** Makes a fresh parent with these records, by partition. */
export type ParentTopicsFactory = (
  partitions: readonly (readonly ParentRecord[])[],
) => Promise<ParentTopicsSetup> | ParentTopicsSetup;

const PLENTY: SlabLimits = { maxRecords: 1_000, maxBytes: 1_000_000 };
/** So long that nothing but a record or an abort ends the wait, in milliseconds. */
const FOR_EVER = 600_000;

/** Three partitions: one of several records, with keys and without, one of one record, and an empty one. */
const RECORDS: readonly (readonly ParentRecord[])[] = [
  ['a', 'b', '', 'größe', 'a', ''].map(recordOf),
  [recordOf('c', 100)],
  [],
];

/** Registers the tests of `ParentTopics`. */
export function testParentTopics(setup: ParentTopicsFactory, test: RegisterTest): void {
  const using = onFresh(() => setup(RECORDS));
  const name = (what: string) => `ParentTopics: ${what}`;

  test(
    name('a topic is described under its name, and none under any other'),
    using(async ({ parents, parent }) => {
      const told = await parents.describe(parent);
      check(told?.name === parent, `the topic is described as ${told?.name}`);
      check((await parents.describe(`${parent}-2`)) === undefined, 'a topic that is not there is described');
    }),
  );

  test(
    name('a link begins with all that is kept, with what was not consumed, or with what comes'),
    using(async ({ parents, parent }) => {
      const [earliest, unconsumed, latest] = await Promise.all(
        (['earliest', 'unconsumed', 'latest'] as const).map((from) => parents.startOffsets(parent, from)),
      );
      for (const offsets of [earliest, unconsumed, latest]) {
        check(offsets?.length === RECORDS.length, 'there is not one start for each partition');
      }
      for (const [partition, records] of RECORDS.entries()) {
        const left = async (offsets = latest) =>
          (await parents.backlog(parent, partition, offsets?.[partition] ?? 0)).records;
        check((await left(earliest)) === records.length, 'the earliest start is not before all that is kept');
        check((await left(unconsumed)) === records.length, 'the unconsumed start passes what nobody has consumed');
        check((await left()) === 0, 'the latest start is not behind what is there');
      }
    }),
  );

  test(
    name('reads bring every record of their partition, byte for byte and in order, as often as they are asked'),
    using(async ({ parents, parent }) => {
      const starts = await parents.startOffsets(parent, 'earliest');
      for (const maxRecords of [1_000, 2, 1]) {
        for (const [partition, records] of RECORDS.entries()) {
          const at = { parent, partition, offset: starts[partition] ?? 0 };
          const read = await readAll(parents, at, { ...PLENTY, maxRecords });
          const wanted = records.map(({ key, payload }) => `${key}=${payload}`);
          check(read.map(textOf).join() === wanted.join(), 'what is read is not what was stored');
        }
      }
    }),
  );

  test(
    name('a slab begins at its offset, and never goes back or past what it brings'),
    using(async ({ parents, parent }) => {
      const [start = 0] = await parents.startOffsets(parent, 'earliest');
      const all = await readAll(parents, { parent, partition: 0, offset: start }, PLENTY);
      for (const [place, { offset }] of all.entries()) {
        const { records, nextOffset, lost } = await slabAt(parents, { parent, partition: 0, offset }, PLENTY);
        check(records.map(textOf).join() === all.slice(place).map(textOf).join(), 'a read begins beside its offset');
        check(lost === undefined, 'a read tells of records that were lost, and all are kept');
        const ascends = records.every((record, i) => record.offset > (records[i - 1]?.offset ?? offset - 1));
        check(ascends, 'the offsets of a slab do not ascend from where it was read');
        check(nextOffset > (records.at(-1)?.offset ?? 0), 'the next offset lies before the end of the slab');
      }
    }),
  );

  test(
    name('a read keeps its limits, and brings one record in any case'),
    using(async ({ parents, parent }) => {
      const [offset = 0] = await parents.startOffsets(parent, 'earliest');
      const read = (limits: SlabLimits) => slabAt(parents, { parent, partition: 0, offset }, limits);
      const two = await read({ ...PLENTY, maxRecords: 2 });
      check(two.records.length === 2, `of at most 2 records ${two.records.length} are read`);
      const bytes = bytesOf(two.records);
      const exact = await read({ ...PLENTY, maxBytes: bytes });
      check(exact.records.length === 2, `of at most ${bytes} bytes ${bytesOf(exact.records)} are read`);
      const less = await read({ ...PLENTY, maxBytes: bytes - 1 });
      check(less.records.length === 1, `of at most ${bytes - 1} bytes ${bytesOf(less.records)} are read`);
      check((await read({ ...PLENTY, maxBytes: 1 })).records.length === 1, 'a record above the limit is never read');
    }),
  );

  test(
    name('where nothing lies a read waits, and then brings nothing and stays where it is'),
    using(async ({ parents, parent }) => {
      const ends = await parents.startOffsets(parent, 'latest');
      for (const [partition, offset] of ends.entries()) {
        for (const waitMs of [0, 30]) {
          const { signal } = new AbortController();
          const slab = await parents.read({ parent, partition, offset }, PLENTY, waitMs, signal);
          check(slab.records.length === 0, 'records are read behind the end');
          check(slab.nextOffset === offset, 'a read of nothing goes on or back');
        }
      }
      const [end = 0] = ends;
      const stop = new AbortController();
      const reading = watched(parents.read({ parent, partition: 0, offset: end }, PLENTY, FOR_EVER, stop.signal));
      await new Promise((resolve) => setTimeout(resolve, 30));
      const isOver = reading.isSettled();
      stop.abort();
      await rejects(reading.promise);
      check(!isOver, 'a read of nothing does not wait: it is asked again at once, for ever');
    }),
  );

  test(
    name('what comes while a read waits is brought at once'),
    using(async ({ parents, parent, append }, eventually) => {
      if (append === undefined) return;
      const ends = await parents.startOffsets(parent, 'latest');
      const stop = new AbortController();
      const read = (partition: number) =>
        watched(parents.read({ parent, partition, offset: ends[partition] ?? 0 }, PLENTY, FOR_EVER, stop.signal));
      const [reading, other] = [read(0), read(1)];
      try {
        await append(0, recordOf('late', 7));
        await eventually(reading.isSettled, 'what comes while a read waits is not brought');
        const { records } = await reading.promise;
        const { key, payload } = recordOf('late', 7);
        check(records.map(textOf).join() === `${key}=${payload}`, 'what comes while a read waits is another record');
      } finally {
        stop.abort();
        await rejects(other.promise);
      }
    }),
  );

  test(
    name('a read that waits ends by a rejection when its signal aborts, at once where it has aborted already'),
    using(async ({ parents, parent }, eventually) => {
      const [offset = 0] = await parents.startOffsets(parent, 'latest');
      for (const isEarly of [false, true]) {
        const stop = new AbortController();
        if (isEarly) stop.abort();
        const place = { parent, partition: 0, offset };
        const reading = watched(rejects(parents.read(place, PLENTY, FOR_EVER, stop.signal)));
        stop.abort();
        const when = isEarly ? 'has aborted already' : 'aborts';
        await eventually(reading.isSettled, `a read does not end when its signal ${when}`);
        check(await reading.promise, `a read brings something when its signal ${when}`);
      }
    }),
  );

  test(
    name('a backlog counts the records at and behind an offset, and tells when the first of them was stored'),
    using(async ({ parents, parent }) => {
      const [offset = 0] = await parents.startOffsets(parent, 'earliest');
      const all = await readAll(parents, { parent, partition: 0, offset }, PLENTY);
      for (const [place, record] of all.entries()) {
        const { records, oldestStoredMs } = await parents.backlog(parent, 0, record.offset);
        check(records === all.length - place, `a backlog of ${all.length - place} is told as ${records}`);
        check(oldestStoredMs === record.storedAtMs, 'the time of a backlog is not that of its first record');
      }
      const [end = 0] = await parents.startOffsets(parent, 'latest');
      const none = await parents.backlog(parent, 0, end);
      check(none.records === 0 && none.oldestStoredMs === undefined, 'there is a backlog behind the end');
    }),
  );
}

function recordOf(key: string, number: number): ParentRecord {
  return { key, payload: JSON.stringify(key === '' ? { number } : { key, number }) };
}

interface Place {
  readonly parent: string;
  readonly partition: number;
  readonly offset: number;
}

function slabAt(parents: ParentTopics, place: Place, limits: SlabLimits): Promise<Slab> {
  return parents.read(place, limits, 0, new AbortController().signal);
}

/** Reads on until nothing comes any more. */
async function readAll(parents: ParentTopics, from: Place, limits: SlabLimits): Promise<readonly SourceRecord[]> {
  const all: SourceRecord[] = [];
  for (let { offset } = from; ; ) {
    const { records, nextOffset } = await slabAt(parents, { ...from, offset }, limits);
    if (records.length === 0) return all;
    check(nextOffset > offset, 'a read does not come on');
    all.push(...records);
    offset = nextOffset;
  }
}

function textOf({ key, payload }: SourceRecord): string {
  const decoder = new TextDecoder();
  return `${decoder.decode(key)}=${decoder.decode(payload)}`;
}

function bytesOf(records: readonly SourceRecord[]): number {
  return records.reduce((sum, { key, payload }) => sum + key.length + payload.length, 0);
}
