/**
 * Acceptance suite for `EntrySource`: the same tests that the adapters here pass. It is given the test function of the
 * runner, `it` or `test`, and a `setup` that makes a fresh topic for each test. Each message of a failure is the rule
 * that is broken.
 */
import { comparePositions } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import type { EntryRead, EntrySource, ReadLimits, StoredEntry } from '../ports/index.js';
import {
  check,
  checkLayouts,
  type Eventually,
  onFresh,
  pause,
  type RegisterTest,
  rejects,
  type SuiteSetup,
  type Watched,
  watched,
} from './suite.js';

/** The source of a fresh topic with two active segments or more, nothing stored and nothing acknowledged. */
export interface EntrySourceSetup extends SuiteSetup {
  readonly source: EntrySource;
  /** Stores so many entries of a few bytes each, one after the other. */
  append(segmentId: number, count: number): Promise<void> | void;
  /** Splits an active segment, which seals it. */
  split(segmentId: number): Promise<void> | void;
}

/** Makes a fresh source for one test. */
export type EntrySourceFactory = () => Promise<EntrySourceSetup> | EntrySourceSetup;

/** Long enough for a read that does not wait to come back, in milliseconds. */
const A_WHILE = 40;
const PLENTY: ReadLimits = { maxEntries: 1_000, maxBytes: 1_000_000 };

/** Registers the tests of `EntrySource`. */
export function testEntrySource(setup: EntrySourceFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `EntrySource: ${what}`;

  test(
    name('layouts begin with the present one, tell every change in order, and end with their signal'),
    using(async ({ source, split }, eventually) => {
      check(source.cluster !== '', 'the cluster has no name');
      const [segmentId] = await activeSegments(source);
      const seen = await checkLayouts(
        (signal) => source.layouts(signal),
        () => split(segmentId),
        eventually,
      );
      check(seen.at(-1)?.segments.get(segmentId)?.state === 'sealed', 'a layout does not hold the sealed segments');
    }),
  );

  test(
    name('a read brings all entries behind a position, in order, as often as it is asked'),
    using(async ({ source, append }, eventually) => {
      const reader = new Reader(source, eventually);
      const [segmentId, otherId] = await activeSegments(source);
      await append(segmentId, 5);
      await append(otherId, 1);
      const all = await reader.upTo(5, segmentId);
      checkOrder(all);
      checkSame(await reader.upTo(5, segmentId), all, 'a second read from the start brings something else');
      for (const [i, { position }] of all.slice(0, 4).entries()) {
        const { entries } = await reader.read(segmentId, position);
        checkSame(entries.slice(0, 1), all.slice(i + 1, i + 2), 'a read does not go on directly behind its position');
      }
    }),
  );

  test(
    name('a read keeps to its limits, but for one entry, and skips nothing'),
    using(async ({ source, append }, eventually) => {
      const reader = new Reader(source, eventually);
      const [segmentId] = await activeSegments(source);
      await append(segmentId, 6);
      const all = await reader.upTo(6, segmentId);
      const bytes = all.reduce((sum, entry) => sum + entry.bytes.length, 0);
      for (const maxEntries of [1, 4]) {
        const limited = await reader.upTo(6, segmentId, { ...PLENTY, maxEntries });
        checkSame(limited, all, 'reads with a limit on entries do not bring all of them');
      }
      for (const maxBytes of [1, Math.ceil(bytes / 2)]) {
        const limited = await reader.upTo(6, segmentId, { ...PLENTY, maxBytes });
        checkSame(limited, all, 'reads with a limit on bytes do not bring all entries');
      }
    }),
  );

  test(
    name('a read at the end of an active segment waits for an entry, and rejects when its signal aborts'),
    using(async ({ source, append }, eventually) => {
      const reader = new Reader(source, eventually);
      const [segmentId] = await activeSegments(source);
      const first = await reader.waiting(segmentId, undefined);
      await append(segmentId, 1);
      await eventually(first.isSettled, 'a read that waits does not see a first entry');
      const last = (await reader.upTo(1, segmentId)).at(-1)?.position;
      const waiting = await reader.waiting(segmentId, last);
      await append(segmentId, 1);
      await eventually(waiting.isSettled, 'a read that waits does not see a new entry');
      const { entries, ended } = await waiting.promise;
      check(entries.length === 1 && !ended, 'a read that waited does not bring the new entry alone');
      const abort = new AbortController();
      const aborted = await reader.waiting(segmentId, entries[0]?.position, abort.signal);
      abort.abort();
      await eventually(aborted.isSettled, 'a read that waits does not end with its signal');
      check(await rejects(aborted.promise), 'a read does not reject when its signal aborts');
    }),
  );

  test(
    name('a sealed segment is read to its end, and a read that waits sees the seal'),
    using(async ({ source, append, split }, eventually) => {
      const reader = new Reader(source, eventually);
      const [segmentId, emptyId] = await activeSegments(source);
      await append(segmentId, 3);
      const all = await reader.upTo(3, segmentId);
      const waiting = await reader.waiting(segmentId, all.at(-1)?.position);
      await split(segmentId);
      await eventually(waiting.isSettled, 'a read that waits does not see the seal');
      const { entries, ended } = await waiting.promise;
      check(entries.length === 0 && ended, 'a read that waited for the seal does not say that the segment has ended');
      for (const maxEntries of [1, 100]) {
        const again = await reader.toEnd(segmentId, { ...PLENTY, maxEntries });
        checkSame(again, all, 'a sealed segment does not bring all that it brought before');
      }
      await split(emptyId);
      const none = await reader.toEnd(emptyId);
      check(none.length === 0, 'a segment that was sealed empty has entries');
    }),
  );

  test(
    name('the last position is that of the last entry ever written'),
    using(async ({ source, append, split }, eventually) => {
      const reader = new Reader(source, eventually);
      const [segmentId] = await activeSegments(source);
      const none = await source.lastPosition(segmentId);
      check(none === undefined, 'a segment that was never written has a last position');
      await append(segmentId, 3);
      const last = (await reader.upTo(3, segmentId)).at(-1)?.position;
      const isLast = async () => isSame(await source.lastPosition(segmentId), last);
      check(await isLast(), 'the last position is not that of the last entry');
      if (last !== undefined) await source.acknowledge(segmentId, last);
      check(await isLast(), 'the last position is another once the entry is acknowledged');
      await split(segmentId);
      check(await isLast(), 'the last position is another once the segment is sealed');
    }),
  );

  test(
    name('what is acknowledged is counted, never more than that, and takes nothing else along'),
    using(async ({ source, append }, eventually) => {
      const reader = new Reader(source, eventually);
      const [segmentId, otherId] = await activeSegments(source);
      await append(segmentId, 4);
      await append(otherId, 1);
      const all = await reader.upTo(4, segmentId);
      const none = await source.acknowledged(segmentId);
      check(none === undefined, 'something is acknowledged before anything was: reading is no acknowledgement');
      for (const { position } of all.slice(0, 2)) {
        await source.acknowledge(segmentId, position);
        await checkAcknowledged(source, segmentId, position, eventually);
      }
      const { entries } = await reader.read(segmentId, all[1]?.position);
      checkSame(entries.slice(0, 1), all.slice(2, 3), 'what lies behind the acknowledged position cannot be read');
      const other = await source.acknowledged(otherId);
      check(other === undefined, 'an acknowledgement on one segment counts on another');
    }),
  );

  test(
    name('a subscription that is given up has acknowledged nothing any more'),
    using(async ({ source, append }, eventually) => {
      const reader = new Reader(source, eventually);
      const segments = (await activeSegments(source)).slice(0, 2);
      for (const segmentId of segments) {
        await append(segmentId, 1);
        const [entry] = await reader.upTo(1, segmentId);
        if (entry !== undefined) await source.acknowledge(segmentId, entry.position);
      }
      await source.release();
      for (const segmentId of segments) {
        // Of a subscription that is gone, a source may also say that it does not know it.
        const left = await source.acknowledged(segmentId).catch(() => undefined);
        check(left === undefined, 'a subscription that was released is kept on a segment');
      }
    }),
  );
}

/** The active segments of the present layout. */
async function activeSegments(source: EntrySource): Promise<readonly [number, number, ...number[]]> {
  const stop = new AbortController();
  try {
    for await (const { active } of source.layouts(stop.signal)) {
      check(active.length > 1, 'the setup of this suite has two active segments or more');
      return active.map(({ segmentId }) => segmentId) as [number, number, ...number[]];
    }
  } finally {
    stop.abort();
  }
  throw new Error('the watch does not begin with the present layout');
}

/** Reads of one source, each of which must come back in time and keep to its limits. */
class Reader {
  constructor(
    private readonly source: EntrySource,
    private readonly eventually: Eventually,
  ) {}

  async read(segmentId: number, after: SourcePosition | undefined, limits: ReadLimits = PLENTY): Promise<EntryRead> {
    const stop = new AbortController();
    const reading = watched(this.source.read(segmentId, after, { ...limits, signal: stop.signal }));
    await this.eventually(reading.isSettled, 'a read waits although there are entries, or the segment has ended');
    const result = await reading.promise;
    const { entries } = result;
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes.length, 0);
    check(entries.length <= limits.maxEntries, 'a read brings more entries than its limit');
    check(
      entries.length <= 1 || bytes <= limits.maxBytes,
      'a read brings more bytes than its limit, in several entries',
    );
    check(entries.length > 0 || result.ended, 'a read comes back with nothing before the segment has ended');
    return result;
  }

  /** Reads from the start until so many entries are there; the segment goes on. */
  async upTo(count: number, segmentId: number, limits: ReadLimits = PLENTY): Promise<StoredEntry[]> {
    const all: StoredEntry[] = [];
    while (all.length < count) {
      const { entries, ended } = await this.read(segmentId, all.at(-1)?.position, limits);
      check(!ended, 'a read says that a segment has ended which is active');
      all.push(...entries);
    }
    check(all.length === count, 'a read brings entries that were not written to this segment');
    return all;
  }

  /** Reads a sealed segment from the start until it says that it has ended. */
  async toEnd(segmentId: number, limits: ReadLimits = PLENTY): Promise<StoredEntry[]> {
    const all: StoredEntry[] = [];
    for (let ended = false; !ended; ) {
      const result = await this.read(segmentId, all.at(-1)?.position, limits);
      all.push(...result.entries);
      ended = result.ended;
    }
    return all;
  }

  /** A read that must not come back yet. */
  async waiting(
    segmentId: number,
    after: SourcePosition | undefined,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Watched<EntryRead>> {
    const waiting = watched(this.source.read(segmentId, after, { ...PLENTY, signal }));
    await pause(A_WHILE);
    check(!waiting.isSettled(), 'a read at the end of an active segment does not wait');
    return waiting;
  }
}

/** It may lag behind; beyond it lies what the replicator never settled. */
async function checkAcknowledged(
  source: EntrySource,
  segmentId: number,
  position: SourcePosition,
  eventually: Eventually,
): Promise<void> {
  await eventually(async () => {
    const counted = await source.acknowledged(segmentId);
    if (counted === undefined) return false;
    const order = comparePositions(counted, position);
    check(order <= 0, 'the acknowledged position lies beyond what was acknowledged');
    return order === 0;
  }, 'an acknowledgement is never counted');
}

function checkOrder(entries: readonly StoredEntry[]): void {
  for (const [i, { position }] of entries.entries()) {
    const before = entries[i - 1]?.position;
    check(position.part === undefined, 'the position of a stored entry has a part');
    check(before === undefined || comparePositions(before, position) < 0, 'the positions of entries do not ascend');
  }
}

function checkSame(found: readonly StoredEntry[], expected: readonly StoredEntry[], rule: string): void {
  check(found.length === expected.length, rule);
  for (const [i, { position, bytes }] of found.entries()) {
    const other = expected[i];
    check(isSame(position, other?.position) && other !== undefined && isEqual(bytes, other.bytes), rule);
  }
}

function isSame(a: SourcePosition | undefined, b: SourcePosition | undefined): boolean {
  return a !== undefined && b !== undefined && comparePositions(a, b) === 0;
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
