/**
 * Every arbitrary of `isthmus/testing` makes values that the package itself takes, whatever the seed, and shrinks to
 * something that can be read at a glance.
 */
import fc from 'fast-check';
import {
  type Binding,
  cellOf,
  checkRemoteId,
  checkRemoteName,
  checkUsername,
  choosePath,
  comparePositions,
  createLayout,
  DedupWindow,
  decideProvisioning,
  effectiveCaps,
  executeOperation,
  FAILURES,
  formatLayout,
  formatPeerState,
  formatSourcePosition,
  laneCount,
  newCounters,
  type PeerState,
  parseEntry,
  parseExchangeRequests,
  parseExchangeResults,
  parseLayout,
  parsePeerState,
  parseShape,
  parseSourcePosition,
  planOperations,
  RateLimit,
  REMOTE_LIMITS,
  readClass,
  type SegmentOptions,
  SegmentReplicator,
  SlowPathBudget,
  shapeFromAnswers,
  shapeOf,
  splitSegment,
  startController,
  stepController,
  thresholdPolicy,
} from 'isthmus';
import * as testing from 'isthmus/testing';
import { expect, it } from 'vitest';

const nowMs = 1_700_000_000_000;
const LAYOUT = splitSegment(createLayout({ segments: 3, buckets: 2, nowMs }), 0, { nowMs });
const SHAPE = shapeOf(LAYOUT);
const ANY_HOST = { explicitBoundary: true, unequalBuckets: true, maxBuckets: 16 };
const { state: LEADER } = startController({
  options: { cluster: 'a', caps: { maxSegments: 64, maxEntryBucketsPerSegment: 64 } },
  layout: LAYOUT,
  members: [],
  nowMs,
});
/** A machine that is told one thing. */
const replicator = (options: SegmentOptions = { codecs: {} }) =>
  new SegmentReplicator({
    source: { segmentId: 0, range: { start: 0, end: 0xffff }, legacy: false },
    sourceCluster: 'a',
    maxEntryBytes: 5 * 1024 * 1024,
    supports: { dedup: 'window', failStop: true },
    options,
    record: { session: 1, drained: false, skipped: [], checkpoints: new Map() },
    counters: newCounters(),
  });
const [ENTRY] = fc.sample(testing.arbEntry({}, { kinds: ['batch'], encrypted: false }), { seed: 1, numRuns: 1 });

interface Row {
  readonly name: string;
  readonly arbitrary: fc.Arbitrary<unknown>;
  /** Throws, or says false, for a value that breaks a rule. */
  readonly judge: (value: never) => unknown;
  /** The most characters of the smallest value, printed. */
  readonly smallest: number;
}

function row<T>(
  name: keyof typeof testing,
  arbitrary: fc.Arbitrary<T>,
  smallest: number,
  judge: (value: T) => unknown,
): Row {
  return { name, arbitrary, judge, smallest };
}

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const ascends = (list: readonly number[]) => list.every((n, i) => i === 0 || n > (list[i - 1] as number));
const isWithin = (value: number, { least, most }: { least: number; most: number }) => value >= least && value <= most;
const onWire = <T extends { readonly state?: PeerState }>({ state, ...rest }: T) => {
  return json(state === undefined ? rest : { ...rest, state: formatPeerState(state) });
};

const ROWS: readonly Row[] = [
  row('arbBucketSplits', testing.arbBucketSplits(), 2, ascends),
  row('arbShape', testing.arbShape(), 70, (shape) => parseShape(json(shape))),
  row('arbLayoutHistory', testing.arbLayoutHistory(), 30, (history) => testing.layoutAfter(history)),
  row('arbLayout', testing.arbLayout(), 300, (layout) => parseLayout(json(formatLayout(layout)))),
  row('arbRange', testing.arbRange(), 30, ({ start, end }) => start >= 0 && start <= end && end <= 0xffff),
  row('arbRemoteLayout', testing.arbRemoteLayout(), 60, (remote) => {
    if (ENTRY !== undefined)
      choosePath(parseEntry(ENTRY.bytes), { segmentId: 0, range: { start: 0, end: 9 }, legacy: false }, remote);
  }),
  row('arbRemoteHistory', testing.arbRemoteHistory(), 70, (layouts) => layouts.length > 0),
  row('arbSourceSegment', testing.arbSourceSegment(), 70, ({ range }) => range.start <= range.end),
  row('arbOperation', testing.arbOperation(LAYOUT, ANY_HOST), 60, (operation) => executable(operation)),
  row('arbHostCapabilities', testing.arbHostCapabilities(), 70, (host) => planOperations(LAYOUT, SHAPE, host)),
  row('arbPeerState', testing.arbPeerState(), 250, (state) => parsePeerState(json(formatPeerState(state)))),
  row('arbCaps', testing.arbCaps(), 60, (caps) => effectiveCaps(caps, [])),
  row('arbColdMarks', testing.arbColdMarks(SHAPE), 30, ({ segments }) => ascends(segments)),
  row('arbExchangeRequest', testing.arbExchangeRequest(), 280, (request) => {
    parseExchangeRequests([onWire(request)]);
  }),
  row('arbExchangeResult', testing.arbExchangeResult(), 280, (result) => {
    parseExchangeResults([onWire(result)]);
  }),
  row('arbManualOperation', testing.arbManualOperation(LAYOUT), 60, (operation) => {
    stepController(LEADER, { type: 'manual', operation, nowMs });
  }),
  row('arbControllerEvent', testing.arbControllerEvent({ layout: LAYOUT }), 40, (event) => {
    if (event.type !== 'manual') stepController(LEADER, event);
  }),
  row('arbControllerOptions', testing.arbControllerOptions(), 90, (options) => {
    startController({ options, layout: LAYOUT, members: ['b'], nowMs });
  }),
  row('arbPolicyDecision', testing.arbPolicyDecision(LAYOUT), 50, (decision) => {
    stepController(LEADER, { type: 'policy', decision, nowMs });
  }),
  row('arbSegmentLoad', testing.arbSegmentLoad(), 110, (load) => Object.values(load).every((n) => n >= 0)),
  row('arbThresholdSettings', testing.arbThresholdSettings(), 2, (settings) => thresholdPolicy(settings)),
  row('arbPolicyView', testing.arbPolicyView(), 480, (view) => thresholdPolicy({}).decide(view)),
  row('arbSourcePosition', testing.arbSourcePosition(), 40, (at) => parseSourcePosition(formatSourcePosition(at))),
  row('arbStamp', testing.arbStamp(), 20, ({ min, max }) => 0 <= min && min <= max && max <= 0xffff),
  row('arbRectangle', testing.arbRectangle(), 80, ({ buckets }) => buckets.start <= buckets.end),
  row('arbOffer', testing.arbOffer(), 60, (offer) => {
    new DedupWindow().offer('p', offer);
    return offer.previous === undefined || comparePositions(offer.previous, offer.position) < 0;
  }),
  row('arbDedupSnapshot', testing.arbDedupSnapshot(), 20, (snapshot) => {
    expect(DedupWindow.restore(snapshot).snapshot()).toEqual(snapshot);
  }),
  row('arbSegmentEvent', testing.arbSegmentEvent(), 20, (event) => replicator().step(event, nowMs)),
  row('arbSegmentOptions', testing.arbSegmentOptions(), 40, (options) => replicator(options).report()),
  row('arbRemoteTopicLayout', testing.arbRemoteTopicLayout(), 60, (layout) => {
    return layout.active.every((segment) => layout.segments.get(segment.segmentId) === segment);
  }),
  row('arbRemoteTopicHistory', testing.arbRemoteTopicHistory(), 70, (layouts) => {
    return layouts.every(({ epoch }, i) => i === 0 || epoch >= (layouts[i - 1]?.epoch ?? 0));
  }),
  row('arbStoredEntry', testing.arbStoredEntry(), 130, ({ bytes }) => parseEntry(bytes)),
  row('arbFoundCopy', testing.arbFoundCopy(), 100, ({ position }) => position.part === undefined),
  row('arbRecovery', testing.arbRecovery(), 20, ({ type }) => type.length > 0),
  row('arbFailure', testing.arbFailure(), 45, ({ type }) => FAILURES[type] !== undefined),
  row('arbLaneStop', testing.arbLaneStop(), 45, ({ type }) => type.length > 0),
  row('arbSchemaTranslation', testing.arbSchemaTranslation(), 60, ({ type }) => type.length > 0),
  row('arbSendResult', testing.arbSendResult(), 20, ({ type }) => type.length > 0),
  row('arbCursorRecord', testing.arbCursorRecord(), 70, ({ session, settled, skipped }) => {
    const places = settled === undefined ? skipped : [settled, ...skipped];
    return session > 0 && places.every((at, i) => i === 0 || comparePositions(places[i - 1] ?? at, at) < 0);
  }),
  row('arbEntry', testing.arbEntry(), 420, ({ bytes }) => parseEntry(bytes)),
  row('arbMessageFields', testing.arbMessageFields(), 40, ({ payload }) => payload.length <= 24),
  row('arbOuterFields', testing.arbOuterFields(), 70, ({ producerName }) => producerName.length > 0),
  row('arbUnknownField', testing.arbUnknownField(), 30, (bytes) => testing.splitFields(bytes).length === 1),
  row('arbCodecNames', testing.arbCodecNames(), 10, (name) => name.length > 0),
  row('arbTopicShape', testing.arbTopicShape(), 30, ({ type }) => type.length > 0),
  row(
    'arbProvisioningPolicy',
    testing.arbProvisioningPolicy(),
    100,
    ({ onPartitionMismatch }) => onPartitionMismatch !== undefined,
  ),
  row('arbProvisioningInput', testing.arbProvisioningInput(), 200, (input) => [
    cellOf(input),
    decideProvisioning(input),
  ]),
  row('arbTopicAnswers', testing.arbTopicAnswers(), 250, (answers) => shapeFromAnswers(answers)),
  row('arbSourceRecord', testing.arbSourceRecord(), 90, ({ offset }) => offset >= 0),
  row('arbSlab', testing.arbSlab(3), 40, ({ records, nextOffset, lost }) => {
    const first = lost === undefined ? 3 : lost.to + 1;
    return ascends([first - 1, ...records.map(({ offset }) => offset), nextOffset + 1]);
  }),
  row('arbLinkRecord', testing.arbLinkRecord(), 160, ({ lanes }) => laneCount(lanes) === (lanes ?? 1)),
  row('arbSkipEntry', testing.arbSkipEntry(), 30, ({ partition, offset }) => partition >= 0 && offset >= 0),
  row('arbRemoteLimits', testing.arbRemoteLimits(), 100, ({ maxInFlight, requestTimeoutMs, checkIntervalMs }) => {
    const { maxInFlight: flights, requestTimeoutMs: timeout, checkIntervalMs: interval } = REMOTE_LIMITS;
    return isWithin(maxInFlight, flights) && isWithin(requestTimeoutMs, timeout) && isWithin(checkIntervalMs, interval);
  }),
  row('arbHttpOutcome', testing.arbHttpOutcome(), 110, (outcome) => [readClass(outcome)]),
  row('arbBinding', testing.arbBinding(), 140, ({ name, id, username }: Binding) => {
    return [checkRemoteName(name), checkRemoteId(id), checkUsername(username)];
  }),
  row('arbBudgetSettings', testing.arbBudgetSettings(), 2, (settings) => new SlowPathBudget(settings, 0)),
  row('arbRateLimitSettings', testing.arbRateLimitSettings(), 2, (settings) => new RateLimit(settings, 0)),
  row('arbSimulationSchedule', testing.arbSimulationSchedule(), 300, ({ happenings }) => happenings.length <= 60),
];

/** A rebucket to the list that the segment has already changes nothing, and is refused for that alone. */
function executable(operation: Parameters<typeof executeOperation>[1]): void {
  try {
    executeOperation(LAYOUT, operation, nowMs);
  } catch (error) {
    if (operation.type !== 'rebucket' || !String(error).includes('already has the bucket boundaries')) throw error;
  }
}

it.each(ROWS)(
  '$name makes valid values, and shrinks to at most $smallest characters',
  ({ arbitrary, judge, smallest }) => {
    const property = fc.property(arbitrary, (value) => judge(value as never) !== false);
    fc.assert(property, { seed: 7, numRuns: 200 });
    const { counterexample } = fc.check(
      fc.property(arbitrary, () => false),
      { seed: 7, numRuns: 1 },
    );
    expect(fc.stringify(counterexample?.[0]).length, fc.stringify(counterexample?.[0])).toBeLessThanOrEqual(smallest);
  },
);

it('there is no arbitrary besides these', () => {
  const exported = Object.keys(testing).filter((name) => name.startsWith('arb'));
  expect(exported.sort()).toEqual(ROWS.map(({ name }) => name).sort());
});
