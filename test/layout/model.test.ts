/**
 * Any sequence of layout operations against the simplest model of the ring that there is: an array of 65,536 cells, each
 * with the segment it belongs to and the bucket it begins, and a set of sealed segments.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  createLayout,
  findActiveSegment,
  formatLayout,
  type Layout,
  mergeSegments,
  parseLayout,
  pruneSegment,
  rebucketSegment,
  rolloverSegments,
  type Segment,
  splitSegment,
} from '../../src/layout/index.js';

const CELLS = 65_536;
const nowMs = 1_700_000_000_000;

/** The ring, cell by cell, and what was replaced. */
class NaiveRing {
  /** By cell: the segment it belongs to. */
  readonly owner = new Int32Array(CELLS);
  /** By segment: where its buckets begin, the first left out. */
  readonly splits = new Map<number, readonly number[]>();
  readonly sealed = new Set<number>();
  /** By segment: those that were replaced by it and still exist. */
  readonly parents = new Map<number, Set<number>>();
  nextId: number;

  constructor(segments: number, buckets: readonly number[]) {
    for (let cell = 0; cell < CELLS; cell++) {
      this.owner[cell] = Math.min(segments - 1, Math.floor(cell / Math.floor(CELLS / segments)));
    }
    for (let id = 0; id < segments; id++) this.splits.set(id, buckets);
    this.nextId = segments;
  }

  /** A new segment takes all cells of a range. */
  replace(start: number, end: number, splits: readonly number[]): void {
    const id = this.nextId++;
    const parents = new Set<number>();
    for (let cell = start; cell <= end; cell++) {
      parents.add(this.owner[cell] as number);
      this.owner[cell] = id;
    }
    this.parents.set(id, parents);
    this.splits.set(id, splits);
    for (const parent of parents) this.sealed.add(parent);
  }

  prune(id: number): void {
    this.sealed.delete(id);
    this.splits.delete(id);
    this.parents.delete(id);
    for (const parents of this.parents.values()) parents.delete(id);
  }
}

interface Real {
  layout: Layout;
}

type Operation = fc.Command<NaiveRing, Real>;

/** What both must agree on after every operation. */
function compare(ring: NaiveRing, { layout }: Real): void {
  for (const { segmentId, range, entryBucketSplits, parentIds } of layout.active) {
    for (const cell of [range.start, range.end]) expect(ring.owner[cell]).toBe(segmentId);
    expect(entryBucketSplits).toEqual(ring.splits.get(segmentId));
    expect(new Set(parentIds)).toEqual(ring.parents.get(segmentId) ?? new Set());
  }
  const wrong: number[] = [];
  for (let cell = 0; cell < CELLS; cell += 257) {
    if (findActiveSegment(layout, cell).segmentId !== ring.owner[cell]) wrong.push(cell);
  }
  expect(wrong).toEqual([]);
  const active = new Set(ring.owner);
  expect(layout.active.map(({ segmentId }) => segmentId)).toEqual([...active]);
  const sealed = [...layout.segments.values()].filter(({ state }) => state === 'sealed');
  expect(new Set(sealed.map(({ segmentId }) => segmentId))).toEqual(ring.sealed);
  expect(layout.nextSegmentId).toBe(ring.nextId);
  expect(parseLayout(formatLayout(layout))).toEqual(layout);
}

/** An operation on what a number picks; `apply` gives undefined where it must be refused. */
function operation(
  name: string,
  pick: number,
  apply: (segments: readonly Segment[], at: number, ring: NaiveRing) => ((layout: Layout) => Layout) | undefined,
): Operation {
  return {
    check: () => true,
    run(ring, real) {
      const { active } = real.layout;
      const change = apply(active, pick % active.length, ring);
      if (change !== undefined) {
        const { epoch } = real.layout;
        real.layout = change(real.layout);
        expect(real.layout.epoch).toBe(epoch + 1);
      }
      compare(ring, real);
    },
    toString: () => `${name} ${pick}`,
  };
}

const split = (pick: number, cut: number) =>
  operation(`split at ${cut}`, pick, (active, at, ring) => {
    const { segmentId, range, entryBucketSplits } = active[at] as Segment;
    if (range.start === range.end) return undefined;
    const start = range.start + 1 + (cut % (range.end - range.start));
    ring.replace(range.start, start - 1, entryBucketSplits);
    ring.replace(start, range.end, entryBucketSplits);
    return (layout) => splitSegment(layout, segmentId, { at: [start], nowMs });
  });

const merge = (pick: number) =>
  operation('merge', pick, (active, at, ring) => {
    const [left, right] = [active[at], active[at + 1]];
    if (left === undefined || right === undefined) return undefined;
    const union = [...new Set([...left.entryBucketSplits, ...right.entryBucketSplits])].sort((a, b) => a - b);
    ring.replace(left.range.start, right.range.end, union);
    // In either order.
    const ids = [left.segmentId, right.segmentId] as const;
    const [first, second] = pick % 2 === 0 ? ids : [ids[1], ids[0]];
    return (layout) => mergeSegments(layout, first, second, { nowMs });
  });

const rebucket = (pick: number, splits: readonly number[]) =>
  operation(`rebucket ${splits.join()}`, pick, (active, at, ring) => {
    const { segmentId, range, entryBucketSplits } = active[at] as Segment;
    if (entryBucketSplits.join() === splits.join()) return undefined;
    ring.replace(range.start, range.end, splits);
    return (layout) => rebucketSegment(layout, segmentId, splits, { nowMs });
  });

const rollover = (pick: number) =>
  operation('rollover', pick, (active, at, ring) => {
    const { segmentId, range, entryBucketSplits } = active[at] as Segment;
    ring.replace(range.start, range.end, entryBucketSplits);
    return (layout) => rolloverSegments(layout, [segmentId], { nowMs });
  });

const prune = (pick: number) =>
  operation('prune', pick, (_active, _at, ring) => {
    const sealed = [...ring.sealed];
    const id = sealed[pick % sealed.length];
    if (id === undefined) return undefined;
    ring.prune(id);
    return (layout) => pruneSegment(layout, id);
  });

it('every sequence of operations leaves the layout that a ring of 65,536 cells has', { timeout: 60_000 }, () => {
  const pick = fc.nat({ max: 99 });
  const splits = fc
    .uniqueArray(fc.integer({ min: 1, max: 0xffff }), { maxLength: 4 })
    .map((a) => a.sort((x, y) => x - y));
  const commands = fc.commands(
    [
      fc.tuple(pick, fc.nat({ max: CELLS })).map(([at, cut]) => split(at, cut)),
      pick.map(merge),
      fc.tuple(pick, splits).map(([at, list]) => rebucket(at, list)),
      pick.map(rollover),
      pick.map(prune),
    ],
    { maxCommands: 30 },
  );
  fc.assert(
    fc.property(commands, fc.integer({ min: 1, max: 5 }), (sequence, segments) => {
      const layout = createLayout({ segments, buckets: 1, nowMs });
      fc.modelRun(() => ({ model: new NaiveRing(segments, []), real: { layout } }), sequence);
    }),
    { numRuns: 60 },
  );
});
