/**
 * Random values of what controllers say and are told: the messages of the exchange, what operators ask for, and what a
 * local policy sees and is set to.
 */
import fc from 'fast-check';
import {
  DEFAULT_THRESHOLDS,
  type ExchangeErrorCode,
  type ExchangeRequest,
  type ExchangeResult,
  type ManualOperation,
  type PolicyView,
  type SegmentLoad,
  type ThresholdSettings,
} from '../convergence/index.js';
import {
  type HostCapabilities,
  type Layout,
  type Operation,
  type Segment,
  shapeOf,
  siblingBoundaries,
} from '../layout/index.js';
import { arbBucketSplits, arbLayout } from './layouts.js';
import { arbCaps, arbPeerState } from './peer-states.js';

const ERRORS: readonly ExchangeErrorCode[] = [
  'wrongTerm',
  'foldLimit',
  'notMember',
  'unknownTopic',
  'notLeader',
  'invalidState',
  'failed',
];
const TOPICS = ['t', 'persistent://tenant/ns/orders', 'größe'];
const NOW_MS = 1_700_000_000_000;

/** One topic's state on its way. */
export function arbExchangeRequest(): fc.Arbitrary<ExchangeRequest> {
  return fc.record({ topic: fc.constantFrom(...TOPICS), state: arbPeerState() });
}

/** The answer for one topic: a state, an error, or both. */
export function arbExchangeResult(): fc.Arbitrary<ExchangeResult> {
  const topic = fc.constantFrom(...TOPICS);
  const error = fc.record({ code: fc.constantFrom(...ERRORS), message: fc.constantFrom('', 'so it is') });
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 3, arbitrary: fc.record({ topic, state: arbPeerState() }) },
    { weight: 1, arbitrary: fc.record({ topic, error }) },
    { weight: 1, arbitrary: fc.record({ topic, error, state: arbPeerState() }) },
  );
}

/** Something that an operator may ask of a cluster with this layout, and that is refused by no rule. */
export function arbManualOperation(layout: Layout): fc.Arbitrary<ManualOperation> {
  const siblings = siblingBoundaries(shapeOf(layout), layout.base);
  const segment = fc.constantFrom(...layout.active);
  const operations: fc.Arbitrary<ManualOperation>[] = [
    segment.map(({ range }) => ({ type: 'withdraw', range })),
    fc.tuple(segment, arbBucketSplits()).map(([{ segmentId, entryBucketSplits }, splits]) => {
      return { type: 'rebucket', segmentId, splits: otherThan(entryBucketSplits, splits) };
    }),
  ];
  const wide = layout.active.filter(({ range }) => range.start < range.end);
  if (wide.length > 0) {
    operations.push(
      fc.constantFrom(...wide).map(({ segmentId }) => ({ type: 'split', segmentId })),
      arbCut(wide).map(([{ segmentId }, at]) => ({ type: 'split', segmentId, at: [at] })),
    );
  }
  if (siblings.length > 0) {
    operations.push(
      fc.constantFrom(...siblings).map((boundary) => ({ type: 'merge', boundary })),
      fc.constantFrom(...siblings).map((boundary) => ({ type: 'withdraw', boundary })),
    );
  }
  return fc.oneof(...operations);
}

/** One operation that a host of this layout can perform: as a Pulsar broker does, or with explicit boundaries. */
export function arbOperation(
  layout: Layout,
  { explicitBoundary, unequalBuckets, maxBuckets }: HostCapabilities,
): fc.Arbitrary<Operation> {
  const counts = fc.integer({ min: 1, max: Math.min(maxBuckets, 8) });
  const segment = fc.constantFrom(...layout.active);
  const operations: fc.Arbitrary<Operation>[] = [
    fc.tuple(segment, counts).map(([{ segmentId }, buckets]) => ({ type: 'rebucket', segmentId, buckets })),
  ];
  if (unequalBuckets) {
    const lists = arbBucketSplits().map((splits) => splits.slice(0, maxBuckets - 1));
    operations.push(
      fc.tuple(segment, lists).map(([{ segmentId }, splits]) => {
        return { type: 'rebucket', segmentId, buckets: splits.length + 1, splits };
      }),
    );
  }
  const wide = layout.active.filter(({ range }) => range.start < range.end);
  if (wide.length > 0) operations.push(fc.constantFrom(...wide).map(({ segmentId }) => ({ type: 'split', segmentId })));
  if (wide.length > 0 && explicitBoundary) {
    operations.push(arbCut(wide).map(([{ segmentId }, at]) => ({ type: 'split', segmentId, at: [at] })));
  }
  const { active } = layout;
  if (active.length > 1) {
    operations.push(
      fc.nat({ max: active.length - 2 }).map((i) => {
        return { type: 'merge', leftId: idOf(active[i]), rightId: idOf(active[i + 1]) };
      }),
    );
  }
  return fc.oneof(...operations);
}

/** What a host's operations can do. */
export function arbHostCapabilities(): fc.Arbitrary<HostCapabilities> {
  return fc.record({
    explicitBoundary: fc.boolean(),
    unequalBuckets: fc.boolean(),
    maxBuckets: fc.constantFrom(1, 8, 1024, 65_536),
  });
}

/** The load of a segment: often none, else around the thresholds of `DEFAULT_THRESHOLDS`. */
export function arbSegmentLoad(): fc.Arbitrary<SegmentLoad> {
  const { splitMsgRateIn, splitBytesRateIn, splitMsgRateOut, splitBytesRateOut } = DEFAULT_THRESHOLDS;
  const rate = (split: number) => fc.oneof({ withCrossShrink: true }, fc.constant(0), fc.nat({ max: 3 * split }));
  return fc.record({
    msgRateIn: rate(splitMsgRateIn),
    bytesRateIn: rate(splitBytesRateIn),
    msgRateOut: rate(splitMsgRateOut),
    bytesRateOut: rate(splitBytesRateOut),
    changedAtMs: fc.nat({ max: 900_000 }).map((agoMs) => NOW_MS - agoMs),
  });
}

/** Settings of `thresholdPolicy` that keep its rules: counts in their order, every split above its merge. */
export function arbThresholdSettings(): fc.Arbitrary<Partial<ThresholdSettings>> {
  const durationMs = fc.constantFrom(0, 1_000, 300_000);
  const counts = fc
    .tuple(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 0, max: 64 }))
    .map(([minSegments, more]) => ({ minSegments, maxSegments: minSegments + more }));
  const rates = fc
    .tuple(fc.nat({ max: 5_000 }), fc.integer({ min: 1, max: 10_000 }))
    .map(([mergeMsgRateIn, more]) => ({ mergeMsgRateIn, splitMsgRateIn: mergeMsgRateIn + more }));
  const others = fc.record(
    {
      enabled: fc.boolean(),
      maxEntryBucketsPerSegment: fc.constantFrom(1, 16, 65_536),
      maxDagDepth: fc.nat({ max: 10 }),
      splitCooldownMs: durationMs,
      rebucketCooldownMs: durationMs,
      mergeCooldownMs: durationMs,
      mergeWindowMs: durationMs,
    },
    { requiredKeys: [] },
  );
  const part = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: {} });
  return fc.tuple(part(counts), part(rates), others).map(([a, b, c]) => ({ ...a, ...b, ...c }));
}

/** What a policy sees: a layout, loads of some of its segments, consumers, caps, and what was decided before. */
export function arbPolicyView(): fc.Arbitrary<PolicyView> {
  return arbLayout({ maxSteps: 6 }).chain((layout) => {
    const ids = layout.active.map(({ segmentId }) => segmentId);
    const loads = fc.subarray(ids).chain((reporting) => {
      return fc
        .array(arbSegmentLoad(), { minLength: reporting.length, maxLength: reporting.length })
        .map((list) => new Map(reporting.map((id, i) => [id, list[i] as SegmentLoad])));
    });
    const decidedAtMs = fc.nat({ max: 900_000 }).map((agoMs) => NOW_MS - agoMs);
    return fc.record(
      {
        layout: fc.constant(layout),
        loads,
        consumers: fc.nat({ max: 12 }),
        caps: arbCaps(),
        nowMs: fc.constant(NOW_MS),
        lastSplitAtMs: decidedAtMs,
        lastMergeAtMs: decidedAtMs,
        lastRebucketAtMs: decidedAtMs,
      },
      { requiredKeys: ['layout', 'loads', 'consumers', 'caps', 'nowMs'] },
    );
  });
}

/** A segment of these, and a boundary inside it. */
function arbCut(wide: readonly Segment[]): fc.Arbitrary<readonly [Segment, number]> {
  return fc.constantFrom(...wide).chain((segment) => {
    const { start, end } = segment.range;
    return fc.integer({ min: start + 1, max: end }).map((at) => [segment, at] as const);
  });
}

/** The list, or where the segment has it already one that it has not. */
function otherThan(own: readonly number[], splits: readonly number[]): readonly number[] {
  if (own.length !== splits.length || own.some((boundary, i) => boundary !== splits[i])) return splits;
  return own.length === 0 ? [0x8000] : [];
}

function idOf(segment: Segment | undefined): number {
  return segment?.segmentId ?? 0;
}
