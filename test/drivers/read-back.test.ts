/**
 * R15 around real replicators: the pin on a remote that keeps no dedup state, takeovers, and what is read back.
 */
import { createLayout, defaultCodecs, encodeMessage, type Layout, parseEntry, splitSegment } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator, type Replicator, type ReplicatorOptions } from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import { PinKeeper } from '../../src/drivers/pin-keeper.js';
import type { SourcePosition } from '../../src/entry/index.js';
import type { CursorRecord, RemoteTopic } from '../../src/ports/index.js';
import { until } from '../support/until.js';

const codecs = await defaultCodecs();
const nowMs = 1_700_000_000_000;
const layoutOf = (segments: number) => createLayout({ segments, buckets: 1, nowMs });
const split = (segmentId: number) => (layout: Layout) => splitSegment(layout, segmentId, { nowMs });

function produce(topic: MemoryTopic, segmentId: number, ...numbers: readonly number[]): void {
  for (const number of numbers) {
    const outer = { producerName: 'p', sequenceId: BigInt(number), publishTimeMs: nowMs };
    expect(topic.append(segmentId, encodeMessage(Buffer.from(String(number)), { outer }))).not.toBe('sealed');
  }
}

/** The numbers that a topic holds, in the order of its segments, barriers left out. */
function stored(topic: MemoryTopic): number[] {
  return [...topic.layout.segments.keys()].flatMap((id) =>
    topic.entries(id).flatMap(({ bytes }) => {
      const { metadata, payload } = parseEntry(bytes);
      return metadata.markerType === undefined ? [Number(Buffer.from(payload).toString())] : [];
    }),
  );
}

const running: Replicator[] = [];
function replicate(a: MemoryTopic, remote: RemoteTopic, options: Partial<ReplicatorOptions> = {}): Replicator {
  const replicator = createReplicator(
    { source: a.source('b'), remote, cursors: a.cursors('b') },
    { codecs, retryInitialMs: 1, cursorDelayMs: 1, pinDelayMs: 1, ...options },
  );
  running.push(replicator);
  replicator.start();
  return replicator;
}
afterEach(async () => {
  for (const replicator of running.splice(0)) await replicator.stop();
});

function pair(source = layoutOf(1), remote = layoutOf(1)): [MemoryTopic, MemoryTopic] {
  return [new MemoryTopic({ cluster: 'a', layout: source }), new MemoryTopic({ cluster: 'b', layout: remote })];
}
const readBack = (b: MemoryTopic) => b.remote('a', { dedup: 'readBack' });
const caughtUp = (a: MemoryTopic) => [...a.layout.segments.keys()].every((id) => a.backlog(id, 'b') === 0);

describe('R15: the pin', () => {
  const at = (entryId: number): SourcePosition => ({ ledgerId: 0n, entryId: BigInt(entryId) });
  const record = (checkpoint: number | undefined, drained = false): CursorRecord => ({
    session: 1,
    drained,
    skipped: [],
    checkpoints: new Map(checkpoint === undefined ? [] : [[0, at(checkpoint)]]),
  });
  const ROWS: readonly (readonly [
    what: string,
    records: readonly (CursorRecord | undefined)[],
    moved: number | undefined,
  ])[] = [
    ['the lowest of all that touch the segment', [record(5), record(3)], 3],
    ['of one nothing is known', [record(5), undefined], undefined],
    ['of one no checkpoint is known', [record(5), record(undefined)], undefined],
    ['one has drained and reads nothing back', [record(5), record(undefined, true)], 5],
  ];

  it.each(ROWS)('%s', async (_what, records, moved) => {
    const moves: bigint[] = [];
    const stored = new Map(records.flatMap((one, id) => (one === undefined ? [] : [[id, one] as const])));
    const keeper = new PinKeeper(
      { position: async () => undefined, move: async (_segmentId, position) => void moves.push(position.entryId) },
      { load: async () => stored, write: async () => ({ type: 'written' }) },
    );
    const { epoch, active, segments } = layoutOf(1);
    const remote = { cluster: 'b', epoch, active, segments };
    await keeper.move(layoutOf(2), remote);
    // A second time there is nothing to move.
    await keeper.move(layoutOf(2), remote);
    expect(moves).toEqual(moved === undefined ? [] : [BigInt(moved)]);
  });

  it('follows what is settled, so that the remote can trim, and an idle segment does not hold it', async () => {
    const [a, b] = pair(layoutOf(2));
    const remote = readBack(b);
    replicate(a, remote);
    produce(a, 0, 1, 2, 3);
    await until(() => stored(b).length === 3 && caughtUp(a));
    // Segment 1 has never sent anything; its checkpoint moves to the segment's end all the same.
    await until(async () => ((await remote.pin?.position(0))?.entryId ?? 0n) >= 4n);
    const last = b.entries(0).at(-1)?.position as SourcePosition;
    expect(b.trim(0, last)).toBeGreaterThanOrEqual(4);
  });

  it('stands still for what could not be read back otherwise: after a crash all is found, though the remote trims', async () => {
    const [a, b] = pair();
    const remote = readBack(b);
    const cursors = a.cursors('b');
    const first = createReplicator(
      { source: a.source('b'), remote, cursors: { load: cursors.load, write: writesOf(cursors.write, 3) } },
      { codecs, cursorDelayMs: 0, pinDelayMs: 1 },
    );
    running.push(first);
    first.start();
    for (let i = 0; i < 6; i++) {
      produce(a, 0, i);
      await until(() => stored(b).length === i + 1);
    }
    b.trim(0, b.entries(0).at(-1)?.position as SourcePosition);
    const kept = stored(b);
    expect(kept.length).toBeGreaterThanOrEqual(3);
    // The process dies: its name is given back, its cursor stands where it could still be written.
    b.disconnect('a');
    const second = replicate(a, remote);
    await until(() => caughtUp(a));
    expect(stored(b)).toEqual(kept);
    expect(second.status().counters.verbatimEntries).toBe(0);
  });

  /** Writes that come through so often, and never again. */
  function writesOf(write: ReturnType<MemoryTopic['cursors']>['write'], times: number): typeof write {
    let left = times;
    return async (records) => {
      if (left-- <= 0) throw new Error('the store is gone');
      return write(records);
    };
  }
});

describe('R15: another process', () => {
  it('takes over: the old one ends as fenced, nothing is lost or stored twice, also across a split of the remote', async () => {
    const [a, b] = pair();
    const remote = readBack(b);
    const first = replicate(a, remote);
    produce(a, 0, 1, 2, 3);
    await until(() => stored(b).length === 3);
    const second = replicate(a, remote);
    produce(a, 0, 4, 5);
    b.disconnect('a');
    b.change(split(0));
    produce(a, 0, 6);
    await until(() => stored(b).length === 6 && caughtUp(a));
    expect(stored(b)).toEqual([1, 2, 3, 4, 5, 6]);
    const reasons = () =>
      [first, second].map((one) => one.status().segments[0]?.waitingFor).filter((wait) => wait?.for === 'operator');
    await until(() => {
      produce(a, 0, 7);
      return reasons().length === 1;
    });
    expect(reasons()).toMatchObject([{ reason: 'fenced' }]);
    expect(first.status().segments[0]?.state).toBe('stopped');
  });

  it('says how far it has come with reading back', async () => {
    const [a, b] = pair();
    produce(a, 0, ...Array.from({ length: 250 }, (_, i) => i));
    const real = readBack(b);
    const first = replicate(a, real, { maxReadEntries: 250 });
    await until(() => caughtUp(a));
    await first.stop();
    await a.cursors('b').write(new Map([[0, undefined]]));
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const slow: RemoteTopic = {
      ...real,
      async *readBack(segmentId, range, signal) {
        for await (const piece of real.readBack(segmentId, range, signal)) {
          yield piece;
          await gate;
        }
      },
    };
    const second = replicate(a, slow);
    await until(() => second.status().segments[0]?.readingBack !== undefined);
    expect(second.status().segments[0]?.readingBack).toEqual({ segmentId: 0, entries: 100 });
    go();
    await until(() => second.status().segments[0]?.readingBack === undefined);
    expect(stored(b)).toHaveLength(250);
  });
});
