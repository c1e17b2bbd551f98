/** Rectangles that are done: whatever the layouts of the attempts, every message is delivered exactly once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MessageFields } from '../../src/entry/index.js';
import { isDone, type Rectangle, type RemoteLayout, rebatch, type SourceSegment } from '../../src/rebatch/index.js';
import { FULL_RANGE, hashKey } from '../../src/ring/index.js';
import { arbRemoteHistory, arbRemoteLayout, arbSourceSegment } from '../../src/testing/remotes.js';
import {
  batch,
  batchOf,
  bodiesOf,
  bucketHashOf,
  classicRemote,
  FIVE_MIB,
  keysIn,
  message,
  OPTIONS,
  partLength,
  remoteOf,
  WHOLE_SOURCE,
} from '../support/rebatch.js';

const KEYS = keysIn(FULL_RANGE);

/** Messages with and without keys of either kind, each with a body of its own. */
const arbMessages = fc
  .array(
    fc.record({
      key: fc.option(fc.oneof(fc.constantFrom('k1', 'd', '', 'key-30884', 'key-57996'), fc.constantFrom(...KEYS)), {
        freq: 4,
        nil: undefined,
      }),
      orderingKey: fc.option(
        fc.constantFrom('o1', 'o2', 'd').map((text) => Buffer.from(text)),
        { freq: 3, nil: undefined },
      ),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((list) =>
    list.map(({ key, orderingKey }, i): MessageFields => {
      return { ...message(key, `body ${i}`), ...(orderingKey === undefined ? {} : { orderingKey }) };
    }),
  );

/** Sends an entry again and again; of each attempt the parts that `acknowledged` picks count, at last all. Returns every body delivered. */
function deliver(
  messages: readonly MessageFields[],
  source: SourceSegment,
  attempts: readonly { readonly remote: RemoteLayout; readonly acknowledged: number; readonly tight: boolean }[],
  last: RemoteLayout,
): string[] {
  const entry = batch(messages);
  const done: Rectangle[] = [];
  const delivered: string[] = [];
  const attempt = (remote: RemoteLayout, acknowledged: number, maxEntryBytes: number) => {
    const parts = rebatch(entry, source, remote, { ...OPTIONS, done: [...done], maxEntryBytes });
    for (const [i, part] of parts.entries()) {
      if (((acknowledged >> (i % 30)) & 1) === 0) continue;
      delivered.push(...bodiesOf(part));
      done.push(part.rectangle);
    }
  };
  // The largest entry of one message, so that parts are cut as far as hashes let them.
  const alone = messages.flatMap((m) => rebatch(batch([m]), source, remoteOf([0]), OPTIONS).map(partLength));
  const canCut = new Set(messages.map(bucketHashOf)).size === messages.length;
  for (const { remote, acknowledged, tight } of attempts) {
    attempt(remote, acknowledged, tight && canCut ? Math.max(...alone) + 8 : FIVE_MIB);
  }
  attempt(last, -1, FIVE_MIB);
  expect(rebatch(entry, source, last, { ...OPTIONS, done })).toEqual([]);
  return delivered;
}

const arbAttempt = { acknowledged: fc.nat({ max: 2 ** 30 - 1 }), tight: fc.boolean() };

function expectOnce(messages: readonly MessageFields[], delivered: readonly string[]): void {
  const bodies = messages.map(({ payload }) => Buffer.from(payload).toString('utf8'));
  expect([...delivered].sort()).toEqual([...bodies].sort());
}

describe('done rectangles', () => {
  it('every message is delivered exactly once while the remote splits, merges, rebuckets and migrates', () => {
    const attempts = arbRemoteHistory({ maxSteps: 5 }).chain((remotes) =>
      fc.tuple(...remotes.map((remote) => fc.record({ remote: fc.constant(remote), ...arbAttempt }))),
    );
    fc.assert(
      fc.property(arbMessages, arbSourceSegment(), attempts, (messages, source, list) => {
        const last = list.at(-1)?.remote ?? remoteOf([0]);
        expectOnce(messages, deliver(messages, source, list, last));
      }),
      { numRuns: 250 },
    );
  });

  it('and between any layouts at all, classic ones among them', () => {
    const attempts = fc.array(fc.record({ remote: arbRemoteLayout(), ...arbAttempt }), { maxLength: 5 });
    fc.assert(
      fc.property(arbMessages, arbSourceSegment(), attempts, arbRemoteLayout(), (messages, source, list, last) => {
        expectOnce(messages, deliver(messages, source, list, last));
      }),
      { numRuns: 250 },
    );
  });

  it('a merge after half was sent: the cell of both is sent without what is done (Sealed destination)', () => {
    const entry = batchOf(['d', 'a', 'c', 'b']);
    const [lower] = rebatch(entry, WHOLE_SOURCE, remoteOf([0, 0x8000]), OPTIONS);
    const done = lower === undefined ? [] : [lower.rectangle];
    const [rest, ...more] = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), { ...OPTIONS, done });
    expect(more).toEqual([]);
    expect(rest && bodiesOf(rest)).toEqual(['body 2', 'body 3']);
    // The part stands for its whole cell: together with what was done it is the entry.
    expect(rest?.rectangle).toEqual({ range: FULL_RANGE, buckets: FULL_RANGE });
    expect(rest?.lowestHash).toBe(0x7e03);
  });

  it('a key outside its source range is done with the segment that covered the source', () => {
    const source: SourceSegment = { segmentId: 5, range: { start: 0, end: 0x7fff }, legacy: false };
    const entry = batchOf(['d', 'k2', 'a']);
    const [first] = rebatch(entry, source, remoteOf([0, 0x8000]), OPTIONS);
    expect(first && bodiesOf(first)).toEqual(['body 0', 'body 1', 'body 2']);
    const done = first === undefined ? [] : [first.rectangle];
    expect(rebatch(entry, source, remoteOf([0, 0x2000, 0x4000, 0x8000]), { ...OPTIONS, done })).toEqual([]);
  });

  it('E9: towards classic partitions a part stands for a remainder, whose rectangle holds under ranges too', () => {
    const entry = batchOf(['k1', 'b', 'key-1', undefined]);
    const parts = rebatch(entry, { ...WHOLE_SOURCE, segmentId: 3 }, classicRemote(4), OPTIONS);
    expect(parts.map((part) => [part.segmentId, ...bodiesOf(part)])).toEqual([
      [0, 'body 2'],
      [2, 'body 0'],
      [3, 'body 1', 'body 3'],
    ]);
    const [zero, two] = parts;
    const done = [zero, two].flatMap((part) => (part === undefined ? [] : [part.rectangle]));
    const rest = rebatch(entry, { ...WHOLE_SOURCE, segmentId: 3 }, remoteOf([0, 0x4000]), { ...OPTIONS, done });
    expect(rest.map((part) => [part.segmentId, ...bodiesOf(part)])).toEqual([
      [0, 'body 3'],
      [1, 'body 1'],
    ]);
  });

  it('R3: unkeyed messages of a legacy source stay in their place when its segment is split', () => {
    const source: SourceSegment = { segmentId: 1, range: FULL_RANGE, legacy: true };
    const entry = batchOf(['d', undefined, 'c']);
    const parts = rebatch(entry, source, remoteOf([0, 0x8000]), OPTIONS);
    expect(parts.map(bodiesOf)).toEqual([['body 0'], ['body 1', 'body 2']]);
    for (const [i, rest] of [
      [0, ['body 1', 'body 2']],
      [1, ['body 0']],
    ] as const) {
      const done = parts.slice(i, i + 1).map(({ rectangle }) => rectangle);
      const again = rebatch(entry, source, remoteOf([0, 0x8000, 0xc000]), { ...OPTIONS, done });
      expect(again.flatMap(bodiesOf).sort()).toEqual(rest);
    }
  });

  it('R11: a partial answer becomes a rectangle, and the rest is offered at the same position', () => {
    const entry = batchOf(['d', 'a', 'c', 'b']);
    const [whole] = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), OPTIONS);
    const rectangle = whole?.rectangle ?? expect.fail('no part');
    const done = [{ ...rectangle, buckets: { start: 0, end: 0x69b2 } }];
    const [rest] = rebatch(entry, WHOLE_SOURCE, remoteOf([0]), { ...OPTIONS, done });
    expect(rest?.position).toEqual(whole?.position);
    expect(rest?.lowestHash).toBe(0x7e03);
    expect(rest && bodiesOf(rest)).toEqual(['body 2', 'body 3']);
  });

  it('isDone: both bounds of both ranges are inclusive, and the rectangles together decide', () => {
    const rectangles: Rectangle[] = [
      { range: { start: 0x2719, end: 0x2719 }, buckets: { start: 0x1473, end: 0x1473 } },
      { range: { start: 0, end: 0x1fff }, buckets: FULL_RANGE },
    ];
    const source: SourceSegment = { segmentId: 0, range: { start: 0x4000, end: 0xffff }, legacy: false };
    const at = (segment: number, bucket: number) => isDone(rectangles, source, segment * 0x10000 + 0xabc, bucket);
    expect([at(0x2719, 0x1473), at(0x2719, 0x1474), at(0x271a, 0x1473), at(0x1fff, 0), at(0x2000, 0)]).toEqual([
      true,
      false,
      false,
      true,
      false,
    ]);
    expect(isDone([], source, hashKey('d'), 0x1473)).toBe(false);
    expect(isDone(rectangles, source, -1, 0)).toBe(false);
    expect(isDone(rectangles, { ...source, range: { start: 0x10, end: 0xff } }, -1, 0)).toBe(true);
  });
});
