/** The rules of PIP-483 and PIP-486 one by one, each at its boundary, and what holds of every decision. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../src/convergence/peer-state.js';
import type { PolicyDecision, PolicyView, SegmentLoad } from '../../src/convergence/policy.js';
import { thresholdPolicy } from '../../src/convergence/threshold-policy.js';
import { DEFAULT_THRESHOLDS, type ThresholdSettings } from '../../src/convergence/threshold-settings.js';
import { IsthmusError } from '../../src/errors.js';
import {
  createLayout,
  type Layout,
  mergeSegments,
  parseLayout,
  pruneSegment,
  rebucketSegment,
  shapeOf,
  siblingBoundaries,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits, unionBoundaries } from '../../src/ring/index.js';
import { arbLayout } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;
const HOUR = 3_600_000;

type Rates = Partial<SegmentLoad>;

/** A load of these rates that has not changed for an hour. */
function load(rates: Rates = {}): SegmentLoad {
  return { msgRateIn: 0, bytesRateIn: 0, msgRateOut: 0, bytesRateOut: 0, changedAtMs: nowMs - HOUR, ...rates };
}

/** Loads by segment id, in the order of the ids. */
function loads(...rates: readonly Rates[]): Map<number, SegmentLoad> {
  return new Map(rates.map((rate, id) => [id, load(rate)]));
}

function coldLoads(layout: Layout): Map<number, SegmentLoad> {
  return new Map(layout.active.map(({ segmentId }) => [segmentId, load()]));
}

/** `segments` equal segments of one bucket each, no loads, no consumers, wide caps. */
function view(over: Partial<PolicyView> & { readonly segments?: number; readonly buckets?: number } = {}): PolicyView {
  const { segments = 2, buckets = 1, ...rest } = over;
  return {
    layout: createLayout({ segments, buckets, nowMs: nowMs - HOUR }),
    loads: new Map(),
    consumers: 0,
    caps: { maxSegments: 65536, maxEntryBucketsPerSegment: 65536 },
    nowMs,
    ...rest,
  };
}

function decide(over: Parameters<typeof view>[0], settings: Partial<ThresholdSettings> = {}): PolicyDecision {
  return thresholdPolicy(settings).decide(view(over));
}

/** An action in one line: `split 1 consumer-count`, `rebucket 0,1 to 4 at-max-segments`, `none`. */
function told({ action }: PolicyDecision): string {
  if (action === undefined) return 'none';
  if (action.type === 'split') return `split ${action.segmentId} ${action.reason}`;
  return `rebucket ${action.segmentIds.join()} to ${action.buckets} ${action.reason}`;
}

const marksOf = (decision: PolicyDecision) => decision.coldMarks.segments;
const busy = { msgRateIn: 1_000 };
const hot = { msgRateIn: 10_001 };
const ago = (ms: number) => nowMs - ms;

describe('rule A: more consumers than segments (PIP-483, PIP-486)', () => {
  it.each<[string, Parameters<typeof view>[0], Partial<ThresholdSettings>, string]>([
    [
      'A1 splits the busiest segment',
      { consumers: 3, loads: loads({ msgRateIn: 1_500 }, { msgRateIn: 2_000 }) },
      {},
      'split 1 consumer-count',
    ],
    [
      'A1 takes the lower id of two that are as busy',
      { consumers: 3, loads: loads(busy, busy) },
      {},
      'split 0 consumer-count',
    ],
    ['A1 holds at the rate floor exactly', { consumers: 3, loads: loads({}, busy) }, {}, 'split 1 consumer-count'],
    [
      'A2 holds just below the rate floor',
      { consumers: 3, loads: loads({}, { msgRateIn: 999 }) },
      {},
      'rebucket 0,1 to 2 below-split-rate-floor',
    ],
    ['as many consumers as segments are no surplus', { consumers: 2, loads: loads(busy, busy) }, {}, 'none'],
    [
      'A1 waits in the split cooldown, and A2 does not step in',
      { consumers: 3, loads: loads(busy, busy), lastSplitAtMs: ago(59_999) },
      {},
      'none',
    ],
    [
      'A1 goes on when the split cooldown has just passed',
      { consumers: 3, loads: loads(busy, busy), lastSplitAtMs: ago(60_000) },
      {},
      'split 0 consumer-count',
    ],
    [
      'A1 does not heed the other cooldowns',
      { consumers: 3, loads: loads(busy, busy), lastMergeAtMs: nowMs, lastRebucketAtMs: nowMs },
      {},
      'split 0 consumer-count',
    ],
    [
      'a missing load is a load of zero',
      { consumers: 3 },
      { splitVsRebucketMinMsgRateIn: 0 },
      'split 0 consumer-count',
    ],
    ['a missing load is below any floor above zero', { consumers: 3 }, {}, 'rebucket 0,1 to 2 below-split-rate-floor'],
    [
      'A2 at the own segment limit',
      { consumers: 3, loads: loads(busy, busy) },
      { maxSegments: 2 },
      'rebucket 0,1 to 2 at-max-segments',
    ],
    [
      'A2 above the own segment limit',
      { consumers: 3, loads: loads(busy, busy) },
      { maxSegments: 1 },
      'rebucket 0,1 to 2 at-max-segments',
    ],
    [
      'A1 just below the own segment limit',
      { consumers: 3, loads: loads(busy, busy) },
      { maxSegments: 3 },
      'split 0 consumer-count',
    ],
    [
      'A2 at the effective cap',
      { consumers: 3, loads: loads(busy, busy), caps: { maxSegments: 2, maxEntryBucketsPerSegment: 8 } },
      {},
      'rebucket 0,1 to 2 at-max-segments',
    ],
    ['A2 not while the buckets suffice', { consumers: 4, buckets: 2 }, {}, 'none'],
    [
      'A2 to the next power of two',
      { consumers: 5, segments: 1, buckets: 4 },
      {},
      'rebucket 0 to 8 below-split-rate-floor',
    ],
    [
      'A2 to the power of two itself',
      { consumers: 8, segments: 2, buckets: 2 },
      {},
      'rebucket 0,1 to 4 below-split-rate-floor',
    ],
    [
      'A2 raises all segments at once',
      { consumers: 10, segments: 4 },
      { maxSegments: 4 },
      'rebucket 0,1,2,3 to 4 at-max-segments',
    ],
    [
      'A2 stops at the own bucket limit',
      { consumers: 5_000, segments: 1 },
      { maxEntryBucketsPerSegment: 8 },
      'rebucket 0 to 8 below-split-rate-floor',
    ],
    [
      'A2 stops at a bucket limit that is no power of two',
      { consumers: 5, segments: 1 },
      { maxEntryBucketsPerSegment: 6 },
      'rebucket 0 to 6 below-split-rate-floor',
    ],
    [
      'A2 stops at the effective bucket cap',
      { consumers: 5_000, segments: 1, caps: { maxSegments: 9, maxEntryBucketsPerSegment: 16 } },
      {},
      'rebucket 0 to 16 below-split-rate-floor',
    ],
    [
      'A2 leaves the rest idle at the bucket limit',
      { consumers: 5_000, segments: 1, buckets: 8 },
      { maxEntryBucketsPerSegment: 8 },
      'none',
    ],
    ['A2 waits in the rebucket cooldown', { consumers: 3, lastRebucketAtMs: ago(59_999) }, {}, 'none'],
    [
      'A2 goes on when the rebucket cooldown has just passed',
      { consumers: 3, lastRebucketAtMs: ago(60_000) },
      {},
      'rebucket 0,1 to 2 below-split-rate-floor',
    ],
    [
      'A2 does not heed the other cooldowns',
      { consumers: 3, lastSplitAtMs: nowMs, lastMergeAtMs: nowMs },
      {},
      'rebucket 0,1 to 2 below-split-rate-floor',
    ],
    ['A2 serves only consumers that share by buckets', { consumers: 9, streamConsumers: 2 }, {}, 'none'],
    [
      'A2 is sized by those consumers',
      { consumers: 9, streamConsumers: 3 },
      {},
      'rebucket 0,1 to 2 below-split-rate-floor',
    ],
    [
      'A1 serves the others too',
      { consumers: 9, streamConsumers: 0, loads: loads(busy, busy) },
      {},
      'split 0 consumer-count',
    ],
  ])('%s', (_, over, settings, expected) => {
    expect(told(decide(over, settings))).toBe(expected);
  });

  it('A2 raises only the segments below the target, in the order of their ids', () => {
    const layout = rebucketSegment(createLayout({ segments: 4, buckets: 1, nowMs }), 0, equalWidthSplits(4), { nowMs });
    expect(told(decide({ layout, consumers: 10 }, { maxSegments: 4 }))).toBe('rebucket 1,2,3 to 4 at-max-segments');
  });

  it('A2 not while the buckets suffice, however unevenly they lie', () => {
    const layout = rebucketSegment(createLayout({ segments: 2, buckets: 1, nowMs }), 0, equalWidthSplits(3), { nowMs });
    expect(told(decide({ layout, consumers: 4 }))).toBe('none');
    expect(told(decide({ layout, consumers: 5 }))).toBe('rebucket 1,2 to 4 below-split-rate-floor');
  });

  it('A2, C12: a segment whose list joined with the target exceeds the limit is left as it is', () => {
    const layout = createLayout({ segments: 1, buckets: 3, nowMs });
    const to4 = 'rebucket 0 to 4 below-split-rate-floor';
    // Thirds and quarters are six buckets.
    expect(told(decide({ layout, consumers: 4 }, { maxEntryBucketsPerSegment: 5 }))).toBe('none');
    expect(told(decide({ layout, consumers: 4 }, { maxEntryBucketsPerSegment: 6 }))).toBe(to4);
  });

  it('A1 passes over a segment of one hash, which cannot be cut', () => {
    const layout = createLayout({ boundaries: [1], nowMs });
    const rates = loads({ msgRateIn: 90_000 }, { msgRateIn: 2_000 });
    expect(told(decide({ layout, consumers: 3, loads: rates }))).toBe('split 1 consumer-count');
  });
});

describe('rule B: traffic over a split threshold (PIP-483)', () => {
  const thresholds = [
    ['msgRateIn', 10_000],
    ['bytesRateIn', 50_000_000],
    ['msgRateOut', 50_000],
    ['bytesRateOut', 250_000_000],
  ] as const;

  it.each(thresholds)('%s exactly met is no reason, anything above is', (rate, threshold) => {
    expect(told(decide({ loads: loads({}, { [rate]: threshold }) }))).toBe('none');
    expect(told(decide({ loads: loads({}, { [rate]: threshold + 1 }) }))).toBe(`split 1 ${rate}`);
  });

  it.each<[string, Parameters<typeof view>[0], Partial<ThresholdSettings>, string]>([
    [
      'the highest ratio wins',
      { loads: loads({ msgRateIn: 11_000 }, { msgRateOut: 60_000 }) },
      {},
      'split 1 msgRateOut',
    ],
    [
      'a segment counts by its highest ratio, not by their sum',
      { loads: loads({ msgRateIn: 12_000 }, { msgRateIn: 11_000, msgRateOut: 54_000 }) },
      {},
      'split 0 msgRateIn',
    ],
    ['of equal ratios the lower id', { loads: loads(hot, hot) }, {}, 'split 0 msgRateIn'],
    ['not at the own segment limit', { loads: loads(hot, hot) }, { maxSegments: 2 }, 'none'],
    [
      'not at the effective cap',
      { loads: loads(hot, hot), caps: { maxSegments: 2, maxEntryBucketsPerSegment: 8 } },
      {},
      'none',
    ],
    [
      'up to the effective cap',
      { loads: loads(hot, hot), caps: { maxSegments: 3, maxEntryBucketsPerSegment: 8 } },
      {},
      'split 0 msgRateIn',
    ],
    ['not in the split cooldown', { loads: loads(hot), lastSplitAtMs: ago(59_999) }, {}, 'none'],
    [
      'when the split cooldown has just passed',
      { loads: loads(hot), lastSplitAtMs: ago(60_000) },
      {},
      'split 0 msgRateIn',
    ],
    [
      'in the other cooldowns',
      { loads: loads(hot), lastMergeAtMs: nowMs, lastRebucketAtMs: nowMs },
      {},
      'split 0 msgRateIn',
    ],
    [
      'without cooldown at once',
      { loads: loads(hot), lastSplitAtMs: nowMs },
      { splitCooldownMs: 0 },
      'split 0 msgRateIn',
    ],
    ['whatever the age of the load', { loads: loads({ ...hot, changedAtMs: nowMs }) }, {}, 'split 0 msgRateIn'],
    ['not for a segment without a load', {}, {}, 'none'],
  ])('%s', (_, over, settings, expected) => {
    expect(told(decide(over, settings))).toBe(expected);
  });

  it('passes over a segment of one hash, which cannot be cut', () => {
    const layout = createLayout({ boundaries: [1], nowMs });
    expect(told(decide({ layout, loads: loads({ msgRateIn: 90_000 }) }))).toBe('none');
    expect(told(decide({ layout, loads: loads({ msgRateIn: 90_000 }, hot) }))).toBe('split 1 msgRateIn');
  });
});

describe('rule C: cold neighbours are marked, never merged at once (PIP-483, PIP-495)', () => {
  const HALF = 0x8000;
  const cold = loads({}, {});

  it.each<[string, Parameters<typeof view>[0], Partial<ThresholdSettings>, readonly number[]]>([
    ['a cold pair', { loads: cold }, {}, [HALF]],
    ['B13: not when one has not reported, for unknown is not cold', { loads: loads({}) }, {}, []],
    ['B13: not when none has reported', {}, {}, []],
    ['unchanged for exactly the window', { loads: loads({}, { changedAtMs: ago(300_000) }) }, {}, [HALF]],
    ['not when changed within the window', { loads: loads({}, { changedAtMs: ago(299_999) }) }, {}, []],
    [
      'not when changed in the future, as after a clock step',
      { loads: loads({}, { changedAtMs: nowMs + 1 }) },
      { mergeWindowMs: 0 },
      [],
    ],
    ['at once without a window', { loads: loads({}, { changedAtMs: nowMs }) }, { mergeWindowMs: 0 }, [HALF]],
    ['not at minSegments', { loads: cold }, { minSegments: 2 }, []],
    ['not below minSegments', { loads: cold }, { minSegments: 3 }, []],
    ['no new mark in the merge cooldown', { loads: cold, lastMergeAtMs: ago(299_999) }, {}, []],
    ['a new mark when the merge cooldown has just passed', { loads: cold, lastMergeAtMs: ago(300_000) }, {}, [HALF]],
    ['the other cooldowns do not matter', { loads: cold, lastSplitAtMs: nowMs, lastRebucketAtMs: nowMs }, {}, [HALF]],
    ['not when no merge is allowed at all', { loads: cold }, { maxDagDepth: 0 }, []],
    ['not when a merge threshold is zero', { loads: cold }, { mergeMsgRateIn: 0 }, []],
    [
      'marks above an effective cap that is exceeded',
      { loads: cold, caps: { maxSegments: 1, maxEntryBucketsPerSegment: 1 } },
      {},
      [HALF],
    ],
  ])('%s', (_, over, settings, expected) => {
    const decision = decide(over, settings);
    expect(told(decision)).toBe('none');
    expect(marksOf(decision)).toEqual(expected);
    expect(decision.coldMarks.buckets).toEqual([]);
  });

  it.each([
    ['msgRateIn', 1_000],
    ['bytesRateIn', 5_000_000],
    ['msgRateOut', 5_000],
    ['bytesRateOut', 25_000_000],
  ] as const)('%s exactly at its merge threshold is not cold, anything below is', (rate, threshold) => {
    expect(marksOf(decide({ loads: loads({}, { [rate]: threshold }) }))).toEqual([]);
    expect(marksOf(decide({ loads: loads({ [rate]: threshold - 1 }, {}) }))).toEqual([HALF]);
  });

  it('C10, C11, B13: only boundaries between siblings are marked', () => {
    // 0000, 4000 and 8000 as 1, 2 and 0: only 1 and 2 are halves of one cell.
    const layout = splitSegment(createLayout({ segments: 2, nowMs }), 0, { nowMs });
    expect(marksOf(decide({ layout, loads: coldLoads(layout) }))).toEqual([0x4000]);
  });

  it('C10: boundaries of the base are never marked', () => {
    const layout = createLayout({ segments: 3, nowMs });
    expect(layout.base).toEqual([0x5555, 0xaaaa]);
    expect(marksOf(decide({ layout, loads: coldLoads(layout) }))).toEqual([]);
  });

  it('C9: every pair that may go is marked, so that clusters with other loads can agree', () => {
    expect(marksOf(decide({ segments: 8, loads: loads({}, {}, {}, {}, {}, {}, {}, {}) }))).toEqual([
      0x2000, 0x6000, 0xa000, 0xe000,
    ]);
  });

  it('no pair is marked for its cold half alone', () => {
    expect(marksOf(decide({ segments: 4, loads: loads({}, {}, {}, busy) }))).toEqual([0x4000]);
  });

  describe('the marks, all taken, leave minSegments', () => {
    const rates = loads({ msgRateIn: 30 }, {}, { msgRateIn: 20 }, {}, { msgRateIn: 10 }, {}, {}, { msgRateOut: 20 });

    it.each<[number, readonly number[]]>([
      [4, [0x2000, 0x6000, 0xa000, 0xe000]],
      [5, [0x6000, 0xa000, 0xe000]],
      [6, [0x6000, 0xa000]],
      [7, [0xa000]],
      [8, []],
    ])(
      'with a minimum of %i the lowest combined rates are taken, of equal ones the lowest boundary',
      (min, expected) => {
        expect(marksOf(decide({ segments: 8, loads: rates }, { minSegments: min }))).toEqual(expected);
      },
    );

    it('and a standing mark goes before a colder new one', () => {
      const over = { segments: 8, loads: rates, standingMarks: { segments: [0x2000], buckets: [] } };
      expect(marksOf(decide(over, { minSegments: 6 }))).toEqual([0x2000, 0xa000]);
      expect(marksOf(decide(over, { minSegments: 7 }))).toEqual([0x2000]);
      expect(marksOf(decide(over, { minSegments: 8 }))).toEqual([]);
    });
  });

  describe('the merge cooldown gates new marks only (C13)', () => {
    const standingMarks = { segments: [0x4000], buckets: [] };
    const over = { segments: 4, standingMarks, lastMergeAtMs: nowMs };

    it.each<[string, readonly Rates[], Partial<ThresholdSettings>, readonly number[]]>([
      ['a mark that was stated stays while its pair is cold', [{}, {}, {}, {}], {}, [0x4000]],
      ['it is withdrawn when its pair gets warm', [{}, busy, {}, {}], {}, []],
      ['it is withdrawn when its load has just changed', [{}, { changedAtMs: nowMs }, {}, {}], {}, []],
      ['it is withdrawn when its load is gone', [{}], {}, []],
      ['it is withdrawn at minSegments', [{}, {}, {}, {}], { minSegments: 4 }, []],
      ['it is withdrawn at the depth limit', [{}, {}, {}, {}], { maxDagDepth: 0 }, []],
    ])('%s', (_, rates, settings, expected) => {
      expect(marksOf(decide({ ...over, loads: loads(...rates) }, settings))).toEqual(expected);
    });

    it('C11: a mark falls when its boundary is no longer between siblings', () => {
      const layout = splitSegment(createLayout({ segments: 4, nowMs }), 0, { nowMs });
      expect(marksOf(decide({ ...over, layout, loads: coldLoads(layout) }))).toEqual([]);
    });
  });

  describe('no consumer loses its bucket', () => {
    const merged = [HALF];

    // The buckets of a merged segment are the union of its parents' (C3): two times four become four.
    it.each<[string, Parameters<typeof view>[0], Partial<ThresholdSettings>, readonly number[]]>([
      ['as many buckets stay as there are consumers', { buckets: 4, consumers: 4 }, {}, merged],
      ['one consumer more', { buckets: 4, consumers: 5 }, {}, []],
      ['consumers that share by buckets count', { buckets: 4, consumers: 5, streamConsumers: 4 }, {}, merged],
      [
        'consumers beyond all buckets count as many as there are buckets',
        { buckets: 4, consumers: 20, lastRebucketAtMs: nowMs },
        {},
        [],
      ],
      ['a topic without consumers may always merge', { buckets: 4, consumers: 0 }, {}, merged],
    ])('%s', (_, over, settings, expected) => {
      const decision = decide({ ...over, loads: cold }, settings);
      expect([told(decision), marksOf(decision)]).toEqual(['none', expected]);
    });

    it('the marks are judged together: the coldest pairs are taken until one more would idle a consumer', () => {
      const over = { segments: 8, buckets: 2, loads: loads({ msgRateIn: 9 }, {}, {}, {}, {}, {}, {}, {}) };
      expect(marksOf(decide({ ...over, consumers: 8 }))).toHaveLength(4);
      expect(marksOf(decide({ ...over, consumers: 9 }, { maxSegments: 8 }))).toEqual([0x6000, 0xa000, 0xe000]);
      expect(marksOf(decide({ ...over, consumers: 14 }, { maxSegments: 8 }))).toEqual([0x6000]);
    });

    it('a pair that does not fit is passed over for a warmer one that does', () => {
      // The left pair has four buckets each, the right one one each.
      const quarters = equalWidthSplits(4);
      let layout = createLayout({ segments: 4, buckets: 1, nowMs });
      layout = rebucketSegment(layout, 0, quarters, { nowMs });
      layout = rebucketSegment(layout, 1, quarters, { nowMs });
      const rates = coldLoads(layout).set(3, load({ msgRateIn: 5 }));
      expect(marksOf(decide({ layout, loads: rates, consumers: 8 }))).toEqual([0xc000]);
    });

    it('C13, C20: a merge whose united buckets exceed the cap is not asked for, unless one side has them already', () => {
      const layout = rebucketSegment(createLayout({ segments: 2, buckets: 3, nowMs }), 0, equalWidthSplits(4), {
        nowMs,
      });
      const rates = coldLoads(layout);
      expect(marksOf(decide({ layout, loads: rates }, { maxEntryBucketsPerSegment: 6 }))).toEqual(merged);
      expect(marksOf(decide({ layout, loads: rates }, { maxEntryBucketsPerSegment: 5 }))).toEqual([]);
      expect(marksOf(decide({ buckets: 4, loads: cold }, { maxEntryBucketsPerSegment: 2 }))).toEqual(merged);
    });
  });

  describe('the depth limit counts merges in the lineage', () => {
    // 0; 1, 2; 3 = 1 + 2; 4, 5; 4 rolled over as 6. One merge above 5, one above 6.
    const once = (() => {
      let layout = splitSegment(createLayout({ segments: 1, nowMs }), 0, { nowMs });
      layout = mergeSegments(layout, 1, 2, { nowMs });
      layout = splitSegment(layout, 3, { nowMs });
      return rebucketSegment(layout, 4, [1], { nowMs });
    })();
    const twice = splitSegment(mergeSegments(once, 6, 5, { nowMs }), 7, { nowMs });
    // Only the left half has seen a merge.
    const leftOnly = (() => {
      let layout = splitSegment(createLayout({ segments: 2, nowMs }), 0, { nowMs });
      layout = mergeSegments(layout, 2, 3, { nowMs });
      return layout;
    })();
    const pruned = [0, 1, 2].reduce((layout, id) => pruneSegment(layout, id), once);

    it.each<[string, Layout, number, readonly number[]]>([
      ['one merge meets a limit of one', once, 1, []],
      ['one merge is below a limit of two', once, 2, [HALF]],
      ['two merges meet a limit of two', twice, 2, []],
      ['two merges are below a limit of three', twice, 3, [HALF]],
      ['one neighbour at the limit is enough', leftOnly, 1, []],
      ['pruned ancestors do not count', pruned, 1, [HALF]],
    ])('%s', (_, layout, maxDagDepth, expected) => {
      const { active } = layout;
      expect(active.map(({ range }) => range.start)).toEqual([0, HALF]);
      expect(marksOf(decide({ layout, loads: coldLoads(layout) }, { maxDagDepth }))).toEqual(expected);
    });
  });
});

describe('the order of the rules', () => {
  const cold4 = loads({}, {}, {}, {});

  it('A comes before B: consumers split the busiest, not the hottest', () => {
    const rates = loads({ bytesRateIn: 90_000_000 }, busy);
    expect(told(decide({ consumers: 3, loads: rates }))).toBe('split 1 consumer-count');
    expect(told(decide({ consumers: 2, loads: rates }))).toBe('split 0 bytesRateIn');
  });

  it('A2 comes before B: one action at a time', () => {
    const rates = loads({ bytesRateIn: 90_000_000 }, {});
    expect(told(decide({ consumers: 3, loads: rates }))).toBe('rebucket 0,1 to 2 below-split-rate-floor');
  });

  it('B is asked when A has nothing to do', () => {
    const over = { consumers: 3, loads: loads({ bytesRateIn: 90_000_000 }, {}) };
    expect(told(decide({ ...over, buckets: 2 }))).toBe('split 0 bytesRateIn');
    expect(told(decide({ ...over, lastRebucketAtMs: nowMs }))).toBe('split 0 bytesRateIn');
  });

  it('C comes last: no new mark beside an action, but standing ones stay', () => {
    const rates = loads({}, {}, {}, {}, hot, hot, hot, hot);
    const standingMarks = { segments: [0x2000], buckets: [] };
    const first = decide({ segments: 8, loads: rates });
    expect([told(first), marksOf(first)]).toEqual(['split 4 msgRateIn', []]);
    const second = decide({ segments: 8, loads: rates, standingMarks });
    expect([told(second), marksOf(second)]).toEqual(['split 4 msgRateIn', [0x2000]]);
    const third = decide({ segments: 8, loads: rates, standingMarks, lastSplitAtMs: nowMs });
    expect([told(third), marksOf(third)]).toEqual(['none', [0x2000, 0x6000]]);
  });

  it('a standing mark is withdrawn when consumers split its neighbour', () => {
    const over = { segments: 4, buckets: 4, loads: cold4, standingMarks: { segments: [0x4000, 0xc000], buckets: [] } };
    const decision = decide({ ...over, consumers: 5 }, { splitVsRebucketMinMsgRateIn: 0 });
    expect([told(decision), marksOf(decision)]).toEqual(['split 0 consumer-count', [0xc000]]);
  });
});

describe('what switches the policy off', () => {
  const legacy = (id: number) => ({
    segmentId: id,
    hashRange: { start: 0, end: 0xffff },
    state: 'ACTIVE',
    parentIds: [],
    childIds: [],
    createdAtEpoch: 0,
    sealedAtEpoch: -1,
    createdAtMs: 0,
    sealedAtMs: -1,
    entryBucketSplits: [],
    legacyTopicName: `persistent://t/n/x-partition-${id}`,
  });

  it('enabled: false decides nothing and withdraws every mark', () => {
    const standingMarks = { segments: [0x8000], buckets: [] };
    const off = { enabled: false };
    expect(decide({ consumers: 9, loads: loads(hot, hot) }, off)).toEqual({ coldMarks: NO_MARKS });
    expect(decide({ loads: loads({}, {}), standingMarks }, off)).toEqual({ coldMarks: NO_MARKS });
  });

  it.each([1, 2])('a layout of %i active segments of a classic topic is left alone', (count) => {
    const ids = Array.from({ length: count }, (_, id) => id);
    const segments = Object.fromEntries(ids.map((id) => [id, legacy(id)]));
    const layout = parseLayout({ epoch: 0, nextSegmentId: count, segments, properties: {} });
    expect(decide({ layout, consumers: 9, loads: loads(hot, hot) })).toEqual({ coldMarks: NO_MARKS });
  });
});

describe('B54: hot and cold every 30 s over an hour', () => {
  interface Seen {
    splits: number;
    merges: number;
    statements: number;
    layout: Layout;
  }

  /** One cluster whose peer is always cold: what it marks is merged at once. It is asked every 5 s. */
  function hourOf(settings: Partial<ThresholdSettings>, takesMarks = true): Seen {
    const policy = thresholdPolicy(settings);
    const seen: Seen = { splits: 0, merges: 0, statements: 0, layout: createLayout({ segments: 1, nowMs: 0 }) };
    let standingMarks = NO_MARKS;
    let last: Pick<PolicyView, 'lastSplitAtMs' | 'lastMergeAtMs'> = {};
    for (let now = 0; now < HOUR; now += 5_000) {
      const phase = Math.floor(now / 30_000);
      const rates = { msgRateIn: phase % 2 === 0 ? 20_000 : 0, changedAtMs: phase * 30_000 };
      const { layout } = seen;
      const byId = new Map(layout.active.map(({ segmentId }) => [segmentId, load(rates)]));
      const { action, coldMarks } = policy.decide({
        ...view({ layout, loads: byId, nowMs: now, standingMarks }),
        ...last,
      });
      if (coldMarks.segments.some((boundary) => !standingMarks.segments.includes(boundary))) seen.statements++;
      standingMarks = coldMarks;
      if (action?.type === 'split') {
        seen.splits++;
        seen.layout = splitSegment(layout, action.segmentId, { nowMs: now });
        last = { ...last, lastSplitAtMs: now };
      } else if (takesMarks && coldMarks.segments.length > 0) {
        seen.merges++;
        seen.layout = mergedAt(layout, coldMarks.segments, now);
        last = { ...last, lastMergeAtMs: now };
        standingMarks = NO_MARKS;
      }
    }
    return seen;
  }

  function mergedAt(layout: Layout, boundaries: readonly number[], now: number): Layout {
    return boundaries.reduce((merged, boundary) => {
      const i = merged.active.findIndex(({ range }) => range.start === boundary);
      const ids = merged.active.slice(i - 1, i + 1).map(({ segmentId }) => segmentId);
      return mergeSegments(merged, ids[0] ?? -1, ids[1] ?? -1, { nowMs: now });
    }, layout);
  }

  it('with the defaults nothing is ever marked, and splits keep to their cooldown', () => {
    const { splits, merges, layout } = hourOf({});
    expect(merges).toBe(0);
    expect(splits).toBeGreaterThan(0);
    expect(splits).toBeLessThanOrEqual(HOUR / 60_000);
    expect(layout.active.length).toBeLessThanOrEqual(64);
  });

  it.each([10_000, 60_000, 300_000])('without a window, merges keep to a cooldown of %i ms', (mergeCooldownMs) => {
    const { splits, merges } = hourOf({ mergeWindowMs: 0, mergeCooldownMs, maxDagDepth: 1_000 });
    expect(splits).toBeLessThanOrEqual(HOUR / 60_000);
    expect(merges).toBeGreaterThan(0);
    expect(merges).toBeLessThanOrEqual(HOUR / mergeCooldownMs);
  });

  it('without a window or a cooldown, the depth limit ends it', () => {
    const merges = (maxDagDepth: number) =>
      hourOf({ mergeWindowMs: 0, mergeCooldownMs: 0, splitCooldownMs: 0, maxSegments: 2, maxDagDepth }).merges;
    expect(merges(3)).toBe(3);
    expect(merges(1_000)).toBe(60);
  });

  it('marks that no peer follows are stated no oftener than the window allows', () => {
    // Cold for 30 s at a time: with a window of 20 s a mark is stated once in each cold phase, and withdrawn with it.
    const settings = { mergeWindowMs: 20_000, maxSegments: 2 };
    expect(hourOf(settings, false).statements).toBeLessThanOrEqual(HOUR / 60_000);
    expect(hourOf({ ...settings, mergeWindowMs: 30_001 }, false).statements).toBe(0);
  });
});

describe('every decision', () => {
  const rate = (threshold: number) =>
    fc.constantFrom(0, 1, threshold / 10 - 1, threshold / 10, threshold, threshold + 1, threshold * 3);
  const arbLoad: fc.Arbitrary<SegmentLoad> = fc.record({
    msgRateIn: rate(10_000),
    bytesRateIn: rate(50_000_000),
    msgRateOut: rate(50_000),
    bytesRateOut: rate(250_000_000),
    changedAtMs: fc.constantFrom(0, 299_999, 300_000, HOUR).map(ago),
  });
  const arbLast = fc.constantFrom(undefined, ...[0, 59_999, 60_000, 299_999, 300_000].map(ago));
  const arbCount = (max: number) => fc.integer({ min: 1, max });
  const arbSettings: fc.Arbitrary<Partial<ThresholdSettings>> = fc.record({
    minSegments: arbCount(3),
    maxSegments: fc.integer({ min: 3, max: 12 }),
    maxEntryBucketsPerSegment: arbCount(12),
    maxDagDepth: fc.constantFrom(0, 1, 2, 10),
    splitVsRebucketMinMsgRateIn: fc.constantFrom(0, 1_000),
  });

  interface World {
    readonly seen: PolicyView;
    readonly settings: Partial<ThresholdSettings>;
  }

  const arbWorld: fc.Arbitrary<World> = fc
    .record({
      layout: arbLayout(),
      each: fc.array(fc.option(arbLoad, { freq: 5 }), { minLength: 16, maxLength: 16 }),
      calm: fc.boolean(),
      consumers: fc.nat({ max: 20 }),
      caps: fc.record({ maxSegments: arbCount(12), maxEntryBucketsPerSegment: arbCount(12) }),
      last: fc.record({ lastSplitAtMs: arbLast, lastMergeAtMs: arbLast, lastRebucketAtMs: arbLast }),
      standing: fc.subarray(Array.from({ length: 15 }, (_, i) => (i + 1) * 0x1000)),
      settings: arbSettings,
    })
    .map(({ layout, each, calm, consumers, caps, last, standing, settings }) => {
      const reported = layout.active.flatMap(({ segmentId }, i) => {
        const one = calm ? load() : each[i % each.length];
        return one ? [[segmentId, one] as const] : [];
      });
      const standingMarks = { segments: standing, buckets: [] };
      return { seen: { layout, loads: new Map(reported), consumers, caps, nowMs, standingMarks, ...last }, settings };
    });

  const check = (rule: (world: World & { readonly decision: PolicyDecision }) => void) =>
    fc.assert(
      fc.property(arbWorld, (world) =>
        rule({ ...world, decision: thresholdPolicy(world.settings).decide(world.seen) }),
      ),
      { numRuns: 300 },
    );

  it('C20: keeps to the caps and to the own limits', () => {
    check(({ seen: { layout, caps }, settings, decision: { action } }) => {
      const { maxSegments = 64, maxEntryBucketsPerSegment: most = 1024 } = settings;
      if (action?.type === 'split') {
        const { range } = splitSegment(layout, action.segmentId, { nowMs }).active[0] ?? {};
        expect(range).toBeDefined();
        expect(layout.active.length + 1).toBeLessThanOrEqual(Math.min(caps.maxSegments, maxSegments));
      }
      if (action?.type !== 'rebucket') return;
      expect([...action.segmentIds].sort((a, b) => a - b)).toEqual(action.segmentIds);
      expect(action.segmentIds.length).toBeGreaterThan(0);
      for (const { segmentId, entryBucketSplits } of layout.active) {
        if (!action.segmentIds.includes(segmentId)) continue;
        const joined = unionBoundaries(entryBucketSplits, equalWidthSplits(action.buckets)).length + 1;
        expect(joined).toBeGreaterThan(entryBucketSplits.length + 1);
        expect(joined).toBeLessThanOrEqual(Math.min(caps.maxEntryBucketsPerSegment, most));
      }
    });
  });

  it('C10, C11: marks siblings only, ascending, and no two that share a segment', () => {
    check(({ seen: { layout }, decision: { coldMarks } }) => {
      const siblings = siblingBoundaries(shapeOf(layout), layout.base);
      expect(siblings.filter((boundary) => coldMarks.segments.includes(boundary))).toEqual(coldMarks.segments);
      expect(coldMarks.buckets).toEqual([]);
      const starts = layout.active.map(({ range }) => range.start);
      const places = coldMarks.segments.map((boundary) => starts.indexOf(boundary));
      expect(places.every((place, i) => place - (places[i - 1] ?? -1) > 1)).toBe(true);
    });
  });

  it('with all marks taken there are minSegments segments, and a bucket for everybody who has one', () => {
    check(({ seen: { layout, consumers }, settings, decision: { coldMarks } }) => {
      const buckets = (of: Layout) => of.active.reduce((sum, segment) => sum + segment.entryBucketSplits.length + 1, 0);
      const merged = coldMarks.segments.reduce((after, boundary) => {
        const i = after.active.findIndex(({ range }) => range.start === boundary);
        const [left, right] = after.active.slice(i - 1, i + 1);
        return mergeSegments(after, left?.segmentId ?? -1, right?.segmentId ?? -1, { nowMs });
      }, layout);
      if (coldMarks.segments.length === 0) return;
      expect(merged.active.length).toBeGreaterThanOrEqual(settings.minSegments ?? 1);
      expect(buckets(merged)).toBeGreaterThanOrEqual(Math.min(consumers, buckets(layout)));
    });
  });

  it('C13: in a cooldown, or beside an action, no mark is new', () => {
    check(({ seen, settings, decision: { action, coldMarks } }) => {
      const inCooldown = thresholdPolicy(settings).decide({ ...seen, lastMergeAtMs: nowMs }).coldMarks;
      const standing = seen.standingMarks?.segments ?? [];
      expect(inCooldown.segments.every((boundary) => standing.includes(boundary))).toBe(true);
      if (action !== undefined) expect(coldMarks).toEqual(inCooldown);
    });
  });

  it('C13: a mark that was stated is stated again, whatever cooldown has begun since', () => {
    check(({ seen, settings, decision: { action, coldMarks } }) => {
      if (action !== undefined) return;
      const again = thresholdPolicy(settings).decide({ ...seen, standingMarks: coldMarks, lastMergeAtMs: nowMs });
      expect(again.coldMarks).toEqual(coldMarks);
    });
  });

  it('B13: never marks or splits what has not reported', () => {
    check(({ seen, settings }) => {
      const unheard = thresholdPolicy(settings).decide({ ...seen, loads: new Map(), consumers: 0 });
      expect(unheard).toEqual({ coldMarks: NO_MARKS });
    });
  });

  it('is the same for the same view, whatever the order of the loads, and changes nothing in it', () => {
    check(({ seen, settings, decision }) => {
      const before = structuredClone(seen);
      const shuffled = { ...seen, loads: new Map([...seen.loads].reverse()) };
      expect(thresholdPolicy(settings).decide(shuffled)).toEqual(decision);
      expect(seen).toEqual(before);
    });
  });
});

describe('settings', () => {
  it('default to the released numbers', () => {
    expect(DEFAULT_THRESHOLDS).toMatchObject({
      enabled: true,
      minSegments: 1,
      maxSegments: 64,
      maxEntryBucketsPerSegment: 1024,
      maxDagDepth: 10,
      splitVsRebucketMinMsgRateIn: 1_000,
    });
    expect(Object.isFrozen(DEFAULT_THRESHOLDS)).toBe(true);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ enabled: 'yes' }, 'enabled is "yes"'],
    [{ minSegments: 0 }, 'minSegments is 0'],
    [{ minSegments: 1.5 }, 'minSegments is 1.5'],
    [{ minSegments: 65 }, 'maxSegments is 64: at least minSegments, which is 65'],
    [{ minSegments: 4, maxSegments: 3 }, 'maxSegments is 3: at least minSegments, which is 4'],
    [{ maxSegments: 65_537 }, 'maxSegments is 65537'],
    [{ maxEntryBucketsPerSegment: 0 }, 'maxEntryBucketsPerSegment is 0'],
    [{ maxDagDepth: -1 }, 'maxDagDepth is -1'],
    [{ maxDagDepth: 0.5 }, 'maxDagDepth is 0.5'],
    [{ splitCooldownMs: -1 }, 'splitCooldownMs is -1'],
    [{ rebucketCooldownMs: Number.NaN }, 'rebucketCooldownMs is'],
    [{ mergeCooldownMs: Number.POSITIVE_INFINITY }, 'mergeCooldownMs is'],
    [{ mergeWindowMs: '300' }, 'mergeWindowMs is "300"'],
    [{ mergeWindowMs: undefined }, 'mergeWindowMs is undefined'],
    [{ splitVsRebucketMinMsgRateIn: -1 }, 'splitVsRebucketMinMsgRateIn is -1'],
    [{ mergeMsgRateOut: -1 }, 'mergeMsgRateOut is -1'],
    [{ mergeBytesRateIn: Number.NaN }, 'mergeBytesRateIn is'],
    [{ splitBytesRateIn: 0, mergeBytesRateIn: 0 }, 'splitBytesRateIn is 0: a finite rate above 0'],
    [{ splitMsgRateIn: 1_000 }, 'splitMsgRateIn is 1000: above mergeMsgRateIn, which is 1000'],
    [{ mergeBytesRateIn: 50_000_000 }, 'splitBytesRateIn is 50000000: above mergeBytesRateIn'],
    [{ splitMsgRateOut: 1 }, 'splitMsgRateOut is 1: above mergeMsgRateOut'],
    [{ splitBytesRateOut: 1 }, 'splitBytesRateOut is 1: above mergeBytesRateOut'],
    [{ splitCooldownSeconds: 60 }, 'splitCooldownSeconds is set: the threshold policy has no such setting'],
  ])('%o is refused', (settings, message) => {
    const make = () => thresholdPolicy(settings as Partial<ThresholdSettings>);
    expect(make).toThrow(IsthmusError);
    expect(make).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining(message) }),
    );
  });

  it.each<[Partial<ThresholdSettings>]>([
    [{}],
    [{ minSegments: 64 }],
    [{ minSegments: 65_536, maxSegments: 65_536 }],
    [{ maxDagDepth: 0, splitCooldownMs: 0, rebucketCooldownMs: 0, mergeCooldownMs: 0, mergeWindowMs: 0 }],
    [{ splitVsRebucketMinMsgRateIn: 0 }],
    [{ mergeMsgRateIn: 0, mergeBytesRateIn: 0, mergeMsgRateOut: 0, mergeBytesRateOut: 0 }],
    [{ splitMsgRateIn: 1_000.5 }],
  ])('%o is allowed', (settings) => {
    expect(() => thresholdPolicy(settings)).not.toThrow();
  });
});
