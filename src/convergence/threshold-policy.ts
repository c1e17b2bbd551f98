/**
 * The local policy that comes with isthmus: the rules of PIP-483 and PIP-486 in the order of the released brokers.
 * (A) More consumers than segments: split the busiest segment, or where traffic does not justify that, give out more
 * buckets. (B) Traffic over a threshold: split the hottest segment. (C) Cold neighbours: a broker would merge the
 * coldest pair; here every pair that may go is marked cold, since a merge needs the marks of all clusters (C9), and
 * clusters that each named one pair of their own might never name the same.
 */
import { isLegacy, type Layout, type Segment, shapeOf, siblingBoundaries } from '../layout/index.js';
import { equalWidthSplits, unionBoundaries } from '../ring/index.js';
import { NO_MARKS } from './peer-state.js';
import type { LocalPolicy, PolicyDecision, PolicyView, SegmentLoad } from './policy.js';
import { RATES, resolveThresholds, type ThresholdSettings } from './threshold-settings.js';

type Action = NonNullable<PolicyDecision['action']>;

/** What one evaluation looks at. */
interface Evaluation {
  readonly settings: ThresholdSettings;
  readonly view: PolicyView;
  readonly active: readonly Segment[];
  /** The settings' own limits or the effective caps, whichever is less (C20). */
  readonly maxSegments: number;
  readonly maxBuckets: number;
}

/**
 * A policy by thresholds (PIP-483, PIP-486); what is not set is as in `DEFAULT_THRESHOLDS`. It never lowers a bucket
 * count, and decides nothing on a layout whose active segments are those of a classic topic. Throws `invalidArgument`
 * when the settings break a rule of theirs.
 */
export function thresholdPolicy(settings: Partial<ThresholdSettings> = {}): LocalPolicy {
  const resolved = resolveThresholds(settings);
  return { decide: (view) => decide(resolved, view) };
}

function decide(settings: ThresholdSettings, view: PolicyView): PolicyDecision {
  const { active } = view.layout;
  if (!settings.enabled || active.some(isLegacy)) return { coldMarks: NO_MARKS };
  const evaluation: Evaluation = {
    settings,
    view,
    active,
    maxSegments: Math.min(settings.maxSegments, view.caps.maxSegments),
    maxBuckets: Math.min(settings.maxEntryBucketsPerSegment, view.caps.maxEntryBucketsPerSegment),
  };
  const action = scaleForConsumers(evaluation) ?? splitForTraffic(evaluation);
  const segments = coldBoundaries(evaluation, action);
  return {
    ...(action === undefined ? {} : { action }),
    coldMarks: segments.length === 0 ? NO_MARKS : { segments, buckets: [] },
  };
}

// Rule A: more consumers than segments.

function scaleForConsumers(evaluation: Evaluation): Action | undefined {
  const { settings, view, active } = evaluation;
  if (view.consumers <= active.length) return undefined;
  const busiest = greatest(splittable(evaluation), (segment) => msgRateIn(view, segment));
  if (busiest === undefined) return rebucketForConsumers(evaluation, 'at-max-segments');
  if (msgRateIn(view, busiest) < settings.splitVsRebucketMinMsgRateIn) {
    return rebucketForConsumers(evaluation, 'below-split-rate-floor');
  }
  return isCooling(view, view.lastSplitAtMs, settings.splitCooldownMs) ? undefined : split(busiest, 'consumer-count');
}

/** One target for all segments, so that the topic gets there in one decision whatever its history. */
function rebucketForConsumers(evaluation: Evaluation, reason: string): Action | undefined {
  const { settings, view, active, maxBuckets } = evaluation;
  const consumers = bucketConsumers(view);
  if (consumers <= totalBuckets(active)) return undefined;
  if (isCooling(view, view.lastRebucketAtMs, settings.rebucketCooldownMs)) return undefined;
  const buckets = bucketTarget(consumers / active.length, maxBuckets);
  const segmentIds = active
    .filter((segment) => bucketsOf(segment) < buckets && takesBuckets(segment, buckets, maxBuckets))
    .sort(byId)
    .map(({ segmentId }) => segmentId);
  return segmentIds.length === 0 ? undefined : { type: 'rebucket', segmentIds, buckets, reason };
}

/** A rebucket joins the segment's own list (C12), which may be more than was asked for. */
function takesBuckets({ entryBucketSplits }: Segment, buckets: number, maxBuckets: number): boolean {
  return unionBoundaries(entryBucketSplits, equalWidthSplits(buckets)).length < maxBuckets;
}

/** The least power of two that gives each of a segment's consumers a bucket, within the limit. */
function bucketTarget(consumersPerSegment: number, maxBuckets: number): number {
  let buckets = 1;
  while (buckets < consumersPerSegment && buckets < maxBuckets) buckets *= 2;
  return Math.min(buckets, maxBuckets);
}

// Rule B: traffic over a threshold.

function splitForTraffic(evaluation: Evaluation): Action | undefined {
  const { settings, view } = evaluation;
  if (isCooling(view, view.lastSplitAtMs, settings.splitCooldownMs)) return undefined;
  const hottest = greatest(splittable(evaluation), (segment) => heatOf(settings, view, segment).ratio);
  if (hottest === undefined) return undefined;
  const { ratio, rate } = heatOf(settings, view, hottest);
  return ratio > 1 ? split(hottest, rate) : undefined;
}

/** The greatest ratio of a segment's four rates to their split thresholds; of equal ones the first counts. */
function heatOf(settings: ThresholdSettings, { loads }: PolicyView, { segmentId }: Segment) {
  const load = loads.get(segmentId);
  const ratios = RATES.map(({ rate, split }) => ({ rate, ratio: (load?.[rate] ?? 0) / settings[split] }));
  return ratios.reduce((hottest, next) => (next.ratio > hottest.ratio ? next : hottest));
}

/** The segments that a split may take: none at the segment limit, and never one of a single hash, which cannot be cut. */
function splittable({ active, maxSegments }: Evaluation): readonly Segment[] {
  return active.length >= maxSegments ? [] : active.filter(({ range }) => range.start < range.end);
}

function split({ segmentId }: Segment, reason: string): Action {
  return { type: 'split', segmentId, reason };
}

// Rule C: cold neighbours.

/** Two sibling segments, and what their merge would cost. */
interface Pair {
  readonly boundary: number;
  readonly left: Segment;
  readonly right: Segment;
  /** The four rates of both, added up. */
  readonly combinedRate: number;
  readonly mergedBuckets: number;
  /** The boundary was marked by the last evaluation. */
  readonly isStanding: boolean;
}

/**
 * The boundaries to mark, ascending. A standing mark stays for as long as its pair qualifies; a new one is stated only
 * when the merge cooldown is over and nothing else was decided. If all were taken, there would still be minSegments
 * segments, and as many buckets as consumers use now. Standing marks come first, then the lowest combined rate.
 */
function coldBoundaries(evaluation: Evaluation, action: Action | undefined): number[] {
  const { settings, view, active } = evaluation;
  let spareSegments = active.length - settings.minSegments;
  if (spareSegments <= 0) return [];
  // Negative when there are more consumers than buckets: then nothing may go, since every merge costs a bucket or more.
  let spareBuckets = totalBuckets(active) - bucketConsumers(view);
  const marked: number[] = [];
  for (const pair of markablePairs(evaluation, action)) {
    const lostBuckets = bucketsOf(pair.left) + bucketsOf(pair.right) - pair.mergedBuckets;
    if (spareSegments === 0 || lostBuckets > spareBuckets) continue;
    spareSegments -= 1;
    spareBuckets -= lostBuckets;
    marked.push(pair.boundary);
  }
  return marked.sort((a, b) => a - b);
}

function markablePairs(evaluation: Evaluation, action: Action | undefined): readonly Pair[] {
  const { settings, view } = evaluation;
  const isOpen = action === undefined && !isCooling(view, view.lastMergeAtMs, settings.mergeCooldownMs);
  const stated = siblingPairs(view).filter((pair) => isOpen || pair.isStanding);
  const cold = stated.filter(({ left, right }) => isCold(evaluation, left) && isCold(evaluation, right));
  if (cold.length === 0) return cold;
  const depthOf = mergeDepths(view.layout);
  return cold
    .filter(({ left, right }) => Math.max(depthOf(left), depthOf(right)) < settings.maxDagDepth)
    .filter((pair) => raisesNothing(pair, evaluation.maxBuckets))
    .filter(({ left, right }) => !isSplit(action, left) && !isSplit(action, right))
    .sort(byStandingThenRate);
}

/** The pairs on both sides of a sibling boundary (C10, C11). No two pairs share a segment: siblings are leaves of one node. */
function siblingPairs({ layout, loads, standingMarks = NO_MARKS }: PolicyView): readonly Pair[] {
  const standing = new Set(standingMarks.segments);
  const siblings = new Set(siblingBoundaries(shapeOf(layout), layout.base));
  return layout.active.flatMap((right, i) => {
    const left = layout.active[i - 1];
    const boundary = right.range.start;
    if (left === undefined || !siblings.has(boundary)) return [];
    return {
      boundary,
      left,
      right,
      combinedRate: summedRate(loads.get(left.segmentId)) + summedRate(loads.get(right.segmentId)),
      mergedBuckets: unionBoundaries(left.entryBucketSplits, right.entryBucketSplits).length + 1,
      isStanding: standing.has(boundary),
    };
  });
}

/** Below all four merge thresholds, and so for the whole window. What has not reported is unknown, not cold (B13). */
function isCold({ settings, view }: Evaluation, { segmentId }: Segment): boolean {
  const load = view.loads.get(segmentId);
  if (load === undefined || !(view.nowMs - load.changedAtMs >= settings.mergeWindowMs)) return false;
  return RATES.every(({ rate, merge }) => load[rate] < settings[merge]);
}

/** A merged segment has the buckets of both (C3). They may not be more than the cap, unless one side has them already. */
function raisesNothing({ left, right, mergedBuckets }: Pair, maxBuckets: number): boolean {
  return mergedBuckets <= Math.max(maxBuckets, bucketsOf(left), bucketsOf(right));
}

/** Once a neighbour is split, the boundary lies between siblings no more. */
function isSplit(action: Action | undefined, { segmentId }: Segment): boolean {
  return action?.type === 'split' && action.segmentId === segmentId;
}

function byStandingThenRate(a: Pair, b: Pair): number {
  if (a.isStanding !== b.isStanding) return a.isStanding ? -1 : 1;
  return a.combinedRate - b.combinedRate || a.boundary - b.boundary;
}

function summedRate(load: SegmentLoad | undefined): number {
  return load === undefined ? 0 : RATES.reduce((sum, { rate }) => sum + load[rate], 0);
}

/** How many merges, segments with several parents, lie on the deepest path up from a segment, itself included. */
function mergeDepths({ segments }: Layout): (segment: Segment) => number {
  const depths = new Map<number, number>();
  // A parent is older than its children, so ascending ids visit it first.
  for (const { segmentId, parentIds } of [...segments.values()].sort(byId)) {
    const above = parentIds.reduce((deepest, id) => Math.max(deepest, depths.get(id) ?? 0), 0);
    depths.set(segmentId, above + (parentIds.length > 1 ? 1 : 0));
  }
  return ({ segmentId }) => depths.get(segmentId) ?? 0;
}

// What the rules share.

/** The time at which a cooldown has passed is outside it. */
function isCooling({ nowMs }: PolicyView, lastAtMs: number | undefined, cooldownMs: number): boolean {
  return lastAtMs !== undefined && nowMs - lastAtMs < cooldownMs;
}

/** The segment with the greatest score; of equal ones that with the lowest id, so that the choice is stable. */
function greatest(segments: readonly Segment[], scoreOf: (segment: Segment) => number): Segment | undefined {
  let best: Segment | undefined;
  let most = -1;
  for (const segment of [...segments].sort(byId)) {
    const score = scoreOf(segment);
    if (score <= most || Number.isNaN(score)) continue;
    best = segment;
    most = score;
  }
  return best;
}

function byId(a: Segment, b: Segment): number {
  return a.segmentId - b.segmentId;
}

function msgRateIn({ loads }: PolicyView, { segmentId }: Segment): number {
  return loads.get(segmentId)?.msgRateIn ?? 0;
}

function bucketsOf({ entryBucketSplits }: Segment): number {
  return entryBucketSplits.length + 1;
}

function totalBuckets(segments: readonly Segment[]): number {
  return segments.reduce((sum, segment) => sum + bucketsOf(segment), 0);
}

function bucketConsumers({ consumers, streamConsumers }: PolicyView): number {
  return streamConsumers ?? consumers;
}
