/** What was found on the remote, by itself: which copies there are, and what they and watermarks settle (R6, R13, R15). */
import { describe, expect, it } from 'vitest';
import { type OuterFields, SOURCE_POSITION_PROPERTY, type SourcePosition } from '../../src/entry/index.js';
import { createLayout, type Segment } from '../../src/layout/index.js';
import { completeCopies, Found, type FoundCopy, readCopy } from '../../src/replication/found.js';
import { FULL_RANGE } from '../../src/ring/index.js';
import { single } from '../support/rebatch.js';

const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });
const there = (entryId: number): SourcePosition => ({ ledgerId: 1n, entryId: BigInt(entryId) });
const LOWER = { start: 0, end: 0x7fff };
const UPPER = { start: 0x8000, end: 0xffff };
const SOURCE = { segmentId: 5, range: FULL_RANGE, legacy: false };
const [SEGMENT] = createLayout({ segments: 2, nowMs: 0 }).active as [Segment];

const copy = (id: number, more: Partial<FoundCopy> = {}): FoundCopy => ({ position: at(id), at: there(id), ...more });
const chunk = (uuid: string, chunkId: number, numChunks: number) => ({ chunk: { uuid, chunkId, numChunks } });
/** A part that holds these buckets of a range. */
const part = (range = LOWER, buckets = FULL_RANGE) => ({ rectangle: { range, buckets } });

describe('R15: an entry of the remote, read as a copy', () => {
  function read(outer: Partial<OuterFields>, segment = SEGMENT, stamp = true): FoundCopy | undefined {
    const { bytes } = single({ replicatedFrom: 'a', partitionKey: 'key', ...outer }, { stamp });
    return readCopy({ position: there(3), bytes }, segment, 'a');
  }
  const { min = -1, max = -1 } = single({ partitionKey: 'key' }).metadata.stamp ?? {};
  const properties = (text: string) => [[SOURCE_POSITION_PROPERTY, text]] as const;
  const of = { uuid: 'm', chunkId: 1, numChunks: 3, totalSize: 12 };

  it.each<[string, FoundCopy | undefined, FoundCopy | undefined]>([
    ['a whole entry', read({ properties: properties('7:2') }), { position: at(2), at: there(3) }],
    [
      'the last of two properties',
      read({ properties: [...properties('7:1'), ['x', '9:9'], ...properties('7:2')] }),
      { position: at(2), at: there(3) },
    ],
    [
      'a chunk',
      read({ properties: properties('7:2'), chunk: of }),
      { position: at(2), at: there(3), ...chunk('m', 1, 3) },
    ],
    [
      'a part',
      read({ properties: properties('7:2:8191') }),
      { position: at(2), at: there(3), rectangle: { range: LOWER, buckets: { start: min, end: max } } },
    ],
    [
      'a part in a classic segment',
      read({ properties: properties('7:2:8191') }, { ...SEGMENT, legacyTopicName: 'persistent://t/n/x' }),
      undefined,
    ],
    ['a part without a stamp', read({ properties: properties('7:2:8191') }, SEGMENT, false), undefined],
    ['of another cluster', read({ properties: properties('7:2'), replicatedFrom: 'c' }), undefined],
    ['a marker', read({ properties: properties('7:2'), markerType: 10 }), undefined],
    ['without a place', read({ properties: [['x', '7:2']] }), undefined],
    ['with a place that is none', read({ properties: properties('7') }), undefined],
    ['no entry', readCopy({ position: there(3), bytes: Uint8Array.of(1, 2, 3) }, SEGMENT, 'a'), undefined],
  ])('%s', (_, found, expected) => {
    expect(found).toStrictEqual(expected);
  });

  it('R6: of a sealed segment the chunks of incomplete messages are left out, whatever comes twice', () => {
    const copies = [
      copy(0),
      copy(1, chunk('m', 0, 2)),
      copy(2, chunk('n', 0, 2)),
      copy(3, chunk('m', 1, 2)),
      copy(4, chunk('n', 0, 2)),
    ];
    expect(completeCopies(copies)).toEqual([copies[0], copies[1], copies[3]]);
  });
});

describe('what was found of an entry', () => {
  function found(...copies: FoundCopy[]): Found {
    const all = new Found();
    all.addCopies(copies, 2);
    return all;
  }

  it('R15: all by a whole copy, and what parts hold by parts', () => {
    expect(new Found().of(at(1), SOURCE)).toEqual([]);
    expect(found(copy(1)).of(at(1), SOURCE)).toBe('all');
    expect(found(copy(1)).of(at(2), SOURCE)).toEqual([]);
    expect(found(copy(1, part()), copy(1)).of(at(1), SOURCE)).toBe('all');
    const half = { start: 0, end: 0x7fff };
    expect(found(copy(1, part(LOWER, half))).of(at(1), SOURCE)).toEqual([{ range: LOWER, buckets: half }]);
    expect(found(copy(1, part(UPPER)), copy(1, part(LOWER))).of(at(1), SOURCE)).toBe('all');
    expect(found(copy(1, part(UPPER)), copy(1, part(LOWER, half))).of(at(1), SOURCE)).toHaveLength(2);
  });

  it('R6: nothing by a chunk in a segment that takes writes', () => {
    const all = found(copy(1, chunk('m', 0, 2)), copy(2));
    expect(all.of(at(1), SOURCE)).toEqual([]);
    expect([1, 2, 3].map((id) => all.hasChunk(at(id)))).toEqual([true, false, false]);
  });

  it('R13: what lies up to a watermark, in its range; of its own entry what lies up to its part', () => {
    const all = new Found();
    all.addWatermark(LOWER, { ...at(4), part: 0x1fff });
    expect(all.of(at(3), SOURCE)).toEqual([{ range: LOWER, buckets: FULL_RANGE }]);
    expect(all.of(at(4), SOURCE)).toEqual([{ range: LOWER, buckets: { start: 0, end: 0x1fff } }]);
    expect(all.of(at(5), SOURCE)).toEqual([]);
    expect(all.of(at(3), { ...SOURCE, range: LOWER })).toBe('all');
    expect(all.of(at(3), { ...SOURCE, range: LOWER, legacy: true })).not.toBe('all');
    all.addWatermark(UPPER, at(4));
    expect(all.of(at(3), SOURCE)).toBe('all');
    expect(all.of(at(4), SOURCE)).toHaveLength(2);
  });

  it.each<[string, readonly [number, number][], boolean]>([
    [
      'side by side, in any order',
      [
        [0x8000, 0xffff],
        [0, 0x7fff],
      ],
      true,
    ],
    [
      'one within another',
      [
        [0, 0xefff],
        [0x1000, 0x1fff],
        [0xf000, 0xffff],
      ],
      true,
    ],
    [
      'a hash is missing between them',
      [
        [0, 0x7ffe],
        [0x8000, 0xffff],
      ],
      false,
    ],
    [
      'a hash is missing at the end',
      [
        [0, 0x7fff],
        [0x8000, 0xfffe],
      ],
      false,
    ],
    ['a hash is missing at the beginning', [[1, 0xffff]], false],
  ])('ranges make all of it or not: %s', (_, ranges, isAll) => {
    const all = new Found();
    for (const [start, end] of ranges) all.addWatermark({ start, end }, at(9));
    expect(all.of(at(1), SOURCE) === 'all').toBe(isAll);
  });

  it('is forgotten as the cursor passes: copies by their entries, watermarks when it has come to them', () => {
    const all = found(copy(1), copy(2));
    all.passed(at(1));
    expect([at(1), at(2)].map((position) => all.of(position, SOURCE))).toEqual([[], 'all']);
    expect(all.hasCopies).toBe(true);
    all.forgetCopies();
    expect(all.hasCopies).toBe(false);
    all.settledTo(at(3));
    all.addWatermark(LOWER, at(4));
    all.addWatermark(UPPER, at(6));
    all.settledTo(at(3));
    expect(all.of(at(2), SOURCE)).toBe('all');
    all.settledTo(at(4));
    expect(all.of(at(2), SOURCE)).toEqual([{ range: UPPER, buckets: FULL_RANGE }]);
  });

  it('R6: chunks of a segment that is sealed are forgotten, and nothing else', () => {
    const all = found(copy(1, chunk('m', 0, 2)), copy(2, part(UPPER)), copy(2, chunk('n', 0, 2)));
    all.addCopies([copy(3, chunk('k', 0, 2))], 8);
    expect(all.forgetChunks(7)).toBe(false);
    expect([1, 2, 3].map((id) => all.hasChunk(at(id)))).toEqual([true, true, true]);
    expect(all.forgetChunks(2)).toBe(true);
    expect([1, 2, 3].map((id) => all.hasChunk(at(id)))).toEqual([false, false, true]);
    expect(all.of(at(2), SOURCE)).toEqual([{ range: UPPER, buckets: FULL_RANGE }]);
    expect(all.forgetChunks(2)).toBe(false);
    all.passed(at(2));
    all.passed(at(3));
    expect(all.hasCopies).toBe(false);
  });
});
