import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyShape,
  boundariesOf,
  createLayout,
  equalShapes,
  equalWidthCount,
  executeOperation,
  goalShape,
  type HostCapabilities,
  isEqualWidth,
  joinShapes,
  type Layout,
  mergeSegments,
  type Operation,
  parseLayout,
  planOperations,
  pruneSegment,
  type Shape,
  shapeOf,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits, formatRange } from '../../src/ring/index.js';
import { arbLayoutHistory, arbShape, layoutAfter } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;
const pulsar: HostCapabilities = { explicitBoundary: false, unequalBuckets: false, maxBuckets: 1024 };

/** The layout after every operation of a plan has been executed as a Pulsar broker does. */
function executed(layout: Layout, operations: readonly Operation[]): Layout {
  return operations.reduce((now, operation) => executeOperation(now, operation, nowMs), layout);
}

/** A layout with cells at those starts, each with that many equal-width buckets. */
function layoutAt(boundaries: number[], ...buckets: number[]): Layout {
  const layout = createLayout({ boundaries, buckets: 1, nowMs });
  const cells = shapeOf(layout).cells.map(({ range }, i) => ({
    range,
    entryBucketSplits: equalWidthSplits(buckets[i] ?? buckets.at(-1) ?? 1),
  }));
  return applyShape(layout, { cells }, { nowMs });
}

function shapeAt(boundaries: number[], ...buckets: number[]): Shape {
  return shapeOf(layoutAt(boundaries, ...buckets));
}

function inShort(operation: Operation): string {
  if (operation.type === 'merge') return `merge ${operation.leftId} ${operation.rightId}`;
  if (operation.type === 'split') return `split ${operation.segmentId}${operation.at ? ` at ${operation.at}` : ''}`;
  return `rebucket ${operation.segmentId} to ${operation.splits ? `[${operation.splits}]` : operation.buckets}`;
}

function cellsInShort(layout: Layout): string {
  return layout.active.map((s) => `${formatRange(s.range)}:${s.entryBucketSplits.length + 1}`).join(' ');
}

describe('C22: the plan for a host without a fold', () => {
  // Layouts with ids as after creation: n equal segments are 0..n-1.
  it.each<[string, Layout, Shape, string[]]>([
    ['nothing to do', layoutAt([0x8000], 2), shapeAt([0x8000], 2), []],
    [
      'a split, then the bucket counts that the target wants',
      createLayout({ buckets: 4, nowMs }),
      shapeAt([0x8000], 4, 2),
      ['split 0', 'rebucket 1 to 4'],
    ],
    [
      'a merge, then the bucket count',
      createLayout({ segments: 2, buckets: 4, nowMs }),
      shapeAt([], 4),
      ['merge 0 1', 'rebucket 2 to 4'],
    ],
    [
      'midpoints of midpoints, children numbered as they come',
      createLayout({ buckets: 1, nowMs }),
      shapeAt([0x2000, 0x4000, 0x8000, 0xc000], 1),
      ['split 0', 'split 1', 'split 3', 'split 2'],
    ],
    [
      'merges, then splits, then rebuckets',
      createLayout({ segments: 4, buckets: 1, nowMs }),
      shapeAt([0x8000, 0xa000, 0xc000], 3, 1),
      ['merge 0 1', 'split 2', 'rebucket 4 to 3'],
    ],
    [
      'three into one, from the left',
      createLayout({ segments: 3, buckets: 1, nowMs }),
      shapeAt([], 3),
      ['merge 0 1', 'merge 3 2'],
    ],
  ])('%s', (_, layout, target, steps) => {
    const plan = planOperations(layout, target, pulsar);
    expect(plan.operations.map(inShort)).toEqual(steps);
    expect(plan.unreachable).toEqual([]);
    expect(shapeOf(executed(layout, plan.operations))).toEqual(target);
  });

  /** Cells that came from merges of neighbours which are no siblings: no base grid keeps them apart. */
  it.each<[string, number[], number[], string[]]>([
    [
      '2000-7fff has no useful midpoint: merged up to 0000-7fff, cut from there',
      [0x2000, 0x8000],
      [0x2000, 0x4000, 0x8000],
      ['merge 0 1', 'split 3', 'split 4'],
    ],
    [
      'an interval that ends inside a neighbour is taken with the neighbour, and no split comes first',
      [0x6000, 0xa000],
      [0x4000, 0x6000, 0x8000, 0xa000, 0xc000],
      ['merge 0 1', 'merge 3 2', 'split 4', 'split 5', 'split 8', 'split 6', 'split 11'],
    ],
    [
      'a cell that its own midpoint cuts as wanted needs no repair',
      [0x4000, 0xc000],
      [0x4000, 0x8000, 0xc000],
      ['split 1'],
    ],
    [
      'what a split brings into reach is repaired in a second round',
      [0x6000, 0xa000],
      // 0xd123 cannot be made, nor can 0xa000 be made again from the whole ring: 0x8000 must be there first.
      [0x4000, 0x6000, 0x8000, 0xa000, 0xd123],
      ['split 1', 'merge 0 3', 'split 5', 'split 7'],
    ],
    [
      // Splitting on would make 0x5000, and leave no way to 0x4000.
      'a split that opens the way to a repair is followed by it at once',
      [0x2000, 0xe000],
      [0x2000, 0x4000, 0x5000, 0x8000, 0xe000],
      ['split 1', 'merge 0 3', 'split 5', 'split 6'],
    ],
  ])('repair: %s', (_, boundaries, wanted, steps) => {
    const layout = createLayout({ boundaries, buckets: 1, nowMs });
    const plan = planOperations(layout, shapeAt(wanted, 1), pulsar, { base: [] });
    expect(plan.operations.map(inShort)).toEqual(steps);
    const reached = wanted.filter((boundary) => boundary !== 0xd123 && boundary !== 0x5000);
    expect(boundariesOf(shapeOf(executed(layout, plan.operations)))).toEqual(reached);
    expect(plan.unreachable.length).toBe(wanted.length - reached.length);
  });

  it('C3: a host that splits and merges three times keeps its bucket count', () => {
    const whole = shapeAt([], 4);
    const halves = shapeAt([0x8000], 4);
    let layout = createLayout({ buckets: 4, nowMs });
    for (const target of [halves, whole, halves, whole, halves, whole]) {
      layout = executed(layout, planOperations(layout, target, pulsar).operations);
      expect(shapeOf(layout)).toEqual(target);
    }
  });

  it('a boundary out of reach leaves both sides at rest', () => {
    const [a, b] = [createLayout({ segments: 2, nowMs }), createLayout({ segments: 3, nowMs })];
    const base = b.base ?? [];
    const target = joinShapes(shapeOf(a), shapeOf(b));
    const planA = planOperations(a, target, pulsar, { base });
    const planB = planOperations(b, target, pulsar, { base });
    expect(planA).toEqual({
      operations: [],
      unreachable: [
        { type: 'boundaries', range: { start: 0, end: 0x7fff }, boundaries: [0x5555] },
        { type: 'boundaries', range: { start: 0x8000, end: 0xffff }, boundaries: [0xaaaa] },
      ],
    });
    // The other side's middle third has its midpoint at 0x8000.
    expect(planB.unreachable).toEqual([]);
    expect(planOperations(executed(b, planB.operations), target, pulsar, { base }).operations).toEqual([]);
  });

  it('a segment with an unreachable boundary inside keeps its own buckets, restored after a split', () => {
    const layout = createLayout({ buckets: 4, nowMs });
    const target = shapeAt([0x8000, 0x9123], 4, 8, 16);
    const plan = planOperations(layout, target, pulsar);
    expect(plan.operations.map(inShort)).toEqual(['split 0', 'rebucket 1 to 4', 'rebucket 2 to 4']);
    expect(plan.unreachable).toEqual([
      { type: 'boundaries', range: { start: 0x8000, end: 0xffff }, boundaries: [0x9123] },
    ]);
    expect(cellsInShort(executed(layout, plan.operations))).toBe('0000-7fff:4 8000-ffff:4');
  });

  it.each<[string, number[], 'unequal' | 'tooMany']>([
    ['not equal-width', [0x1234], 'unequal'],
    ['more than the host takes', equalWidthSplits(1025), 'tooMany'],
  ])('a bucket list that is %s is unreachable, and the segment keeps its own', (_, entryBucketSplits, reason) => {
    const range = { start: 0, end: 0xffff };
    const layout = createLayout({ segments: 2, buckets: 2, nowMs });
    const plan = planOperations(layout, { cells: [{ range, entryBucketSplits }] }, pulsar);
    expect(plan.operations.map(inShort)).toEqual(['merge 0 1', 'rebucket 2 to 2']);
    expect(plan.unreachable).toEqual([{ type: 'buckets', range, entryBucketSplits, reason }]);
  });

  it('a host with explicit boundaries and lists reaches every shape, in one split per segment', () => {
    const able: HostCapabilities = { explicitBoundary: true, unequalBuckets: true, maxBuckets: 65536 };
    const plan = planOperations(createLayout({ nowMs }), shapeAt([0x1234, 0x8000], 3, 1, 1), able);
    expect(plan.operations.map(inShort)).toEqual([
      'split 0 at 4660,32768',
      'rebucket 1 to [21845,43690]',
      'rebucket 2 to []',
      'rebucket 3 to []',
    ]);
    fc.assert(
      fc.property(arbLayoutHistory(), arbShape(), (history, target) => {
        const layout = layoutAfter(history);
        const { operations, unreachable } = planOperations(layout, target, able);
        expect(unreachable).toEqual([]);
        expect(shapeOf(executed(layout, operations))).toEqual(target);
      }),
    );
  });

  it.each([0, 65537, 1.5, Number.NaN])('a host of %d buckets at most is refused', (maxBuckets) => {
    const layout = createLayout({ nowMs });
    expect(() => planOperations(layout, shapeOf(layout), { ...pulsar, maxBuckets })).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining('maxBuckets is') }),
    );
  });
});

describe('C22: any plan', () => {
  /** Two topics that began alike and went their own ways, and what one is to become: the other, the join, or anything. */
  const histories = fc
    .record({
      segments: fc.integer({ min: 1, max: 7 }),
      own: arbLayoutHistory({ planHost: true }),
      other: arbLayoutHistory({ planHost: true }),
      anything: arbShape({ maxCells: 8 }),
      aim: fc.constantFrom('other', 'join', 'anything'),
    })
    .map(({ segments, own, other, anything, aim }) => {
      const layout = layoutAfter({ ...own, segments });
      const peer = shapeOf(layoutAfter({ ...other, segments }));
      const join = joinShapes(shapeOf(layout), peer);
      const target = aim === 'other' ? peer : aim === 'join' ? join : anything;
      return { layout, target, base: createLayout({ segments, nowMs }).base ?? [] };
    });
  /** Boundaries of one grid on both sides, some of them out of reach: here many plans need repairs. */
  const eighths = [1, 2, 3, 4, 5, 6, 7].map((i) => i * 0x2000);
  const grids = fc
    .record({
      own: fc.subarray(eighths),
      wanted: fc.subarray([...eighths, 0x3000, 0x5000, 0x9123]),
      buckets: fc.integer({ min: 1, max: 5 }),
    })
    .map(({ own, wanted, buckets }) => ({
      layout: createLayout({ boundaries: own, buckets, nowMs }),
      target: shapeAt(
        wanted.sort((a, b) => a - b),
        4,
      ),
      base: [],
    }));
  const worlds = fc.oneof(histories, grids);

  it('ends at the target or names what it does not reach, and makes and loses no boundary on the way', () => {
    fc.assert(
      fc.property(worlds, ({ layout, target, base }) => {
        const { operations, unreachable } = planOperations(layout, target, pulsar, { base });
        const end = executed(layout, operations);
        expect(end.epoch).toBe(layout.epoch + operations.length);

        const wanted = new Set(boundariesOf(target));
        const reached = boundariesOf(shapeOf(end));
        const missing = unreachable.flatMap((gap) => (gap.type === 'boundaries' ? gap.boundaries : []));
        expect([...reached, ...missing].sort((a, b) => a - b)).toEqual([...wanted]);
        expect(reached).toEqual(expect.arrayContaining(boundariesOf(shapeOf(layout)).filter((b) => wanted.has(b))));
        for (const segment of end.segments.values()) {
          const isMade = segment.createdAtEpoch > layout.epoch;
          if (isMade && segment.parentIds.length === 1) {
            const parent = end.segments.get(segment.parentIds[0] ?? -1);
            if (parent?.range.start !== segment.range.start) expect(wanted).toContain(segment.range.start);
          }
        }
        if (unreachable.length === 0) expect(equalShapes(shapeOf(end), target)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('comes to rest: planned again, there is nothing left to do', () => {
    fc.assert(
      fc.property(worlds, ({ layout, target, base }) => {
        const plan = planOperations(layout, target, pulsar, { base });
        const again = planOperations(executed(layout, plan.operations), target, pulsar, { base });
        expect(again).toEqual({ operations: [], unreachable: plan.unreachable });
      }),
      { numRuns: 1000 },
    );
  });

  it('made anew after its first step, is the rest of itself', () => {
    fc.assert(
      fc.property(worlds, ({ layout, target, base }) => {
        const plan = planOperations(layout, target, pulsar, { base });
        const again = planOperations(executed(layout, plan.operations.slice(0, 1)), target, pulsar, { base });
        expect(again).toEqual({ operations: plan.operations.slice(1), unreachable: plan.unreachable });
      }),
      { numRuns: 1000 },
    );
  });
});

describe('C22: the goal of a layout, read from its lineage', () => {
  it("a split child is meant to have its parent's list, a merged segment the union, a rollover and a root their own", () => {
    const root = createLayout({ buckets: 4, nowMs });
    const split = splitSegment(root, 0, { bucketPolicy: 'divide', nowMs });
    expect(goalShape(split)).toEqual(shapeAt([0x8000], 4));
    const twice = splitSegment(split, 1, { bucketPolicy: 'divide', nowMs });
    expect(goalShape(twice)).toEqual(shapeAt([0x4000, 0x8000], 4));
    const merged = mergeSegments(split, 1, 2, { bucketPolicy: 'sum', nowMs });
    expect(goalShape(merged)).toEqual(shapeAt([], 4));
    const lowered = executeOperation(split, { type: 'rebucket', segmentId: 1, buckets: 3 }, nowMs);
    expect(goalShape(lowered)).toEqual(shapeAt([0x8000], 3, 4));
    const joined = mergeSegments(lowered, 3, 2, { bucketPolicy: 'sum', nowMs });
    expect(goalShape(joined).cells[0]?.entryBucketSplits).toEqual([0x4000, 0x5555, 0x8000, 0xaaaa, 0xc000]);
  });

  it('where a parent is pruned, a segment has its own list', () => {
    const split = splitSegment(createLayout({ buckets: 4, nowMs }), 0, { bucketPolicy: 'divide', nowMs });
    expect(goalShape(pruneSegment(split, 0))).toEqual(shapeAt([0x8000], 2));
    const merged = mergeSegments(split, 1, 2, { bucketPolicy: 'sum', nowMs });
    const half = pruneSegment(pruneSegment(merged, 0), 1);
    expect(half.active[0]?.parentIds).toEqual([2]);
    expect(goalShape(half)).toEqual(shapeAt([], 4));
    const [summed] = merged.active;
    expect(goalShape(pruneSegment(pruneSegment(merged, 0), 2)).cells[0]?.entryBucketSplits).toEqual(
      summed?.entryBucketSplits,
    );
  });

  it('whichever parent of a merged segment the record names first', () => {
    const uneven = executeOperation(
      createLayout({ segments: 2, nowMs }),
      { type: 'rebucket', segmentId: 1, buckets: 3 },
      nowMs,
    );
    const [left, right] = uneven.active.map(({ segmentId }) => segmentId);
    for (const [first = -1, second = -1] of [
      [left, right],
      [right, left],
    ]) {
      const merged = mergeSegments(uneven, first, second, { bucketPolicy: 'sum', nowMs });
      expect(goalShape(merged)).toEqual(shapeOf(mergeSegments(uneven, first, second, { nowMs })));
    }
  });

  it('a segment that came from a classic topic has its own list: its parents had no buckets', () => {
    const born = { createdAtEpoch: 0, createdAtMs: nowMs };
    const legacy = (segmentId: number) => ({
      ...born,
      segmentId,
      hashRange: { start: 0, end: 0xffff },
      state: 'SEALED',
      childIds: [2, 3],
      sealedAtEpoch: 0,
      sealedAtMs: nowMs,
      legacyTopicName: `persistent://t/n/x-partition-${segmentId}`,
    });
    const half = (segmentId: number, start: number) => ({
      ...born,
      segmentId,
      hashRange: { start, end: start + 0x7fff },
      state: 'ACTIVE',
      parentIds: [0, 1],
      sealedAtEpoch: -1,
      sealedAtMs: -1,
      entryBucketSplits: [0x8000],
    });
    const segments = { 0: legacy(0), 1: legacy(1), 2: half(2, 0), 3: half(3, 0x8000) };
    expect(goalShape(parseLayout({ epoch: 0, nextSegmentId: 4, segments }))).toEqual(shapeAt([0x8000], 2));
  });
});

describe('equal-width lists', () => {
  it.each<[number[], number | undefined]>([
    [[], 1],
    [[0x8000], 2],
    [[0x4000, 0x5555, 0x8000, 0xaaaa, 0xc000], 12],
    [[0x1234], undefined],
  ])('%j is held by %s buckets', (splits, buckets) => {
    expect(equalWidthCount(splits, 64)).toBe(buckets);
    if (buckets !== undefined) expect(equalWidthCount(splits, buckets)).toBe(buckets);
    expect(equalWidthCount(splits, Math.max(1, (buckets ?? 2) - 1))).toBe(buckets === 1 ? 1 : undefined);
  });

  it.each([0, 65537, 1.5, Number.NaN])('a limit of %d buckets is refused', (limit) => {
    expect(() => equalWidthCount([], limit)).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining(`bucket limit ${limit}:`) }),
    );
  });

  it('the largest limit is one bucket for each hash', () => {
    const all = Array.from({ length: 65535 }, (_, i) => i + 1);
    expect(equalWidthCount(all, 65536)).toBe(65536);
    expect(equalWidthCount(all, 65535)).toBeUndefined();
  });

  it('the smallest count is found, and a list is equal-width when it is its own', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.array(fc.nat(), { maxLength: 5 }), (buckets, picks) => {
        const all = equalWidthSplits(buckets);
        const some = [...new Set(picks.map((pick) => all[pick % all.length] ?? 0x8000))].sort((a, b) => a - b);
        const naive = Array.from({ length: 64 }, (_, i) => i + 1).find((count) => {
          const held = new Set(equalWidthSplits(count));
          return some.every((split) => held.has(split));
        });
        expect(equalWidthCount(some, 64)).toBe(naive);
        expect(isEqualWidth(some)).toBe(equalWidthSplits(some.length + 1).join() === some.join());
      }),
    );
  });
});
