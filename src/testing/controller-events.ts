/**
 * Random events and options of a controller, and the decisions of a policy. With the layout, the peers and the effects of
 * a controller, events fit it; given effects that were answered before, they come late and twice.
 */
import fc from 'fast-check';
import type {
  ControllerEffect,
  ControllerEvent,
  ControllerOptions,
  ExchangeResult,
  PolicyDecision,
} from '../convergence/index.js';
import { applyShape, executeOperation, type Layout, shapeOf } from '../layout/index.js';
import { arbExchangeResult, arbHostCapabilities, arbManualOperation } from './exchange-values.js';
import { arbLayout, arbShape, describeSegments, printedAs } from './layouts.js';
import { arbCaps, arbColdMarks, arbPeerState } from './peer-states.js';

const NOW_MS = 1_700_000_000_000;

/** What fits the controller that is told. */
export interface ControllerEventOptions {
  /** The controller's layout, which those that it is told mostly continue; default any. */
  readonly layout?: Layout;
  /** The clusters that push, leave and come; a stranger is among them now and then. Default `b` and `c`. */
  readonly peers?: readonly string[];
  /**
   * Effects of the controller: most events answer one of these. Those that wait for their answer are answered as a driver
   * does; those that had theirs are answered again. Default none.
   */
  readonly asked?: readonly ControllerEffect[];
  /** Also answers that nobody asked for, to pushes 0 to 9. Default true. */
  readonly unasked?: boolean;
  /** Events happen up to two minutes after this, in milliseconds since the epoch; default in November 2023. */
  readonly sinceMs?: number;
}

/** Something that a controller may be told. Valid each by itself; shrinks to a `tick`. */
export function arbControllerEvent(options: ControllerEventOptions = {}): fc.Arbitrary<ControllerEvent> {
  const { layout } = options;
  if (layout === undefined) return arbLayout({ maxSteps: 4 }).chain((any) => arbEventAt(any, options));
  return arbEventAt(layout, options);
}

function arbEventAt(layout: Layout, options: ControllerEventOptions): fc.Arbitrary<ControllerEvent> {
  const { peers = ['b', 'c'], asked = [], unasked = true, sinceMs = NOW_MS } = options;
  const open = asked.filter(({ type }) => ANSWERED.has(type));
  const choices = [{ weight: 3, arbitrary: arbHappening(layout, peers) }];
  if (open.length > 0) {
    const answer = fc.constantFrom(...open).chain((effect) => arbAnswer(effect, layout));
    choices.push({ weight: 3, arbitrary: answer });
  }
  if (unasked) {
    const answer = arbAnswered(layout, peers).chain((effect) => arbAnswer(effect, layout));
    choices.push({ weight: 1, arbitrary: answer });
  }
  const laterMs = fc.oneof({ withCrossShrink: true }, fc.nat({ max: 300 }), fc.nat({ max: 120_000 }));
  return fc.tuple(fc.oneof({ withCrossShrink: true }, ...choices), laterMs).map(([event, ms]) => {
    return { ...event, nowMs: sinceMs + ms };
  });
}

const ANSWERED: ReadonlySet<ControllerEffect['type']> = new Set<ControllerEffect['type']>([
  'commit',
  'perform',
  'push',
  'reload',
]);

type Timeless<E> = E extends unknown ? Omit<E, 'nowMs'> : never;
/** An event of which the time is still to be said. */
type Happening = Timeless<ControllerEvent>;

/** What happens by itself. */
function arbHappening(layout: Layout, peers: readonly string[]): fc.Arbitrary<Happening> {
  const cluster = fc.constantFrom(...peers, ...peers, 'stranger');
  const pushed = fc.tuple(cluster, fc.nat({ max: 9 })).chain(([from, requestId]) => {
    return arbPeerState({ cluster: from }).map((state): Happening => ({ type: 'pushed', requestId, from, state }));
  });
  const members = fc.subarray([...peers, 'late']).map((list): Happening => ({ type: 'members', members: list }));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 2, arbitrary: fc.constant<Happening>({ type: 'tick' }) },
    { weight: 1, arbitrary: members },
    { weight: 3, arbitrary: arbPolicyDecision(layout).map((decision): Happening => ({ type: 'policy', decision })) },
    { weight: 3, arbitrary: arbManualOperation(layout).map((operation): Happening => ({ type: 'manual', operation })) },
    { weight: 3, arbitrary: arbNextLayout(layout).map((next): Happening => ({ type: 'layout', layout: next })) },
    { weight: 4, arbitrary: pushed },
  );
}

/** An effect that nobody has asked for, as far as an answer goes by it. */
function arbAnswered(layout: Layout, peers: readonly string[]): fc.Arbitrary<ControllerEffect> {
  const [segment] = layout.active;
  const push = fc.tuple(fc.constantFrom(...peers, 'stranger'), fc.nat({ max: 9 }), arbPeerState());
  return fc.oneof(
    { withCrossShrink: true },
    fc.constant<ControllerEffect>({ type: 'reload' }),
    arbNextLayout(layout).map((next): ControllerEffect => {
      return { type: 'commit', expectedEpoch: layout.epoch, layout: next };
    }),
    push.map(([peer, pushId, state]): ControllerEffect => ({ type: 'push', peer, pushId, state })),
    fc.constant<ControllerEffect>({
      type: 'perform',
      operation: { type: 'rebucket', segmentId: segment?.segmentId ?? 0, buckets: 3 },
    }),
  );
}

/** What may come of an effect, on a host that has this layout. */
function arbAnswer(effect: ControllerEffect, layout: Layout): fc.Arbitrary<Happening> {
  switch (effect.type) {
    case 'push':
      return arbPushAnswer(effect);
    case 'commit':
      return arbChangeAnswer(effect.layout, layout, true);
    case 'perform':
      return arbChangeAnswer(performed(effect, layout), layout, false);
    default:
      return arbNextLayout(layout).map((next) => ({ type: 'layout', layout: next, reloaded: true }));
  }
}

function arbPushAnswer({ peer, pushId }: Extract<ControllerEffect, { type: 'push' }>): fc.Arbitrary<Happening> {
  const random = arbRandom();
  const result = fc.tuple(arbExchangeResult(), arbPeerState({ cluster: peer })).map(([{ state, error }, own]) => {
    // The state is the peer's own, where it gives one.
    const answer: Omit<ExchangeResult, 'topic'> = state === undefined ? {} : { state: own };
    return error === undefined ? answer : { ...answer, error };
  });
  return fc.oneof(
    { withCrossShrink: true },
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constant('answered' as const),
        peer: fc.constant(peer),
        pushId: fc.constant(pushId),
        result,
        random,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('pushFailed' as const),
        peer: fc.constant(peer),
        pushId: fc.constant(pushId),
        reason: fc.constantFrom('no answer', ''),
        unsupported: fc.boolean(),
        random,
      }),
    },
  );
}

/** The change is made, somebody else was first, or it failed; a layout that cannot be changed so is left as it is. */
function arbChangeAnswer(changed: Layout | undefined, layout: Layout, isCommit: boolean): fc.Arbitrary<Happening> {
  const other = arbNextLayout(layout);
  const failed = fc.record({
    type: fc.constant('changeFailed' as const),
    reason: fc.constantFrom('the store is away', ''),
    layout: other,
    random: arbRandom(),
  });
  const made = changed === undefined ? failed : fc.constant<Happening>({ type: 'committed', layout: changed });
  const conflict = other.map((theirs): Happening => ({ type: 'conflict', layout: theirs }));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 4, arbitrary: made },
    { weight: isCommit ? 1 : 0, arbitrary: conflict },
    { weight: 1, arbitrary: failed },
  );
}

function performed({ operation }: Extract<ControllerEffect, { type: 'perform' }>, layout: Layout): Layout | undefined {
  try {
    return executeOperation(layout, operation, NOW_MS);
  } catch {
    return undefined;
  }
}

/** The layout itself, or what a fold makes of it. */
function arbNextLayout(layout: Layout): fc.Arbitrary<Layout> {
  const folded = arbShape({ maxCells: 4 }).map((shape) => {
    const next = applyShape(layout, shape, { nowMs: NOW_MS });
    return next === layout ? layout : shown(next);
  });
  return fc.oneof({ weight: 1, arbitrary: fc.constant(layout) }, { weight: 2, arbitrary: folded });
}

function shown(layout: Layout): Layout {
  return printedAs(layout, `layout(epoch ${layout.epoch}: ${describeSegments([...layout.segments.values()])})`);
}

/** What a policy may want of a cluster with this layout; segments that are gone meanwhile are among those it names. */
export function arbPolicyDecision(layout: Layout): fc.Arbitrary<PolicyDecision> {
  const ids = [...layout.segments.keys(), layout.nextSegmentId];
  const reason = fc.constantFrom('load', '');
  const split = fc.record({ type: fc.constant('split' as const), segmentId: fc.constantFrom(...ids), reason });
  const rebucket = fc.record({
    type: fc.constant('rebucket' as const),
    segmentIds: fc.subarray(ids, { minLength: 1 }),
    buckets: fc.integer({ min: 1, max: 16 }),
    reason,
  });
  const coldMarks = arbColdMarks(shapeOf(layout), layout.base);
  return fc.oneof(
    { withCrossShrink: true },
    fc.record({ coldMarks }),
    fc.record({ action: split, coldMarks }),
    fc.record({ action: rebucket, coldMarks }),
  );
}

/** Options of a controller: of a host that takes layouts whole, or of one that performs operations. */
export function arbControllerOptions(cluster = 'a'): fc.Arbitrary<ControllerOptions> {
  const limit = fc.constantFrom(1, 4, 64);
  const durationMs = (usual: number) => fc.constantFrom(usual, 0, 1_000);
  return fc
    .record(
      {
        caps: arbCaps(),
        foldLimit: limit,
        bucketLimit: limit,
        operations: arbHostCapabilities(),
        peerSilenceGraceMs: durationMs(30_000),
        antiEntropyMs: fc.constantFrom(60_000, 1_000),
        retryInitialMs: fc.constantFrom(200, 1),
        retryMaxMs: fc.constantFrom(30_000, 200),
      },
      { requiredKeys: ['caps'] },
    )
    .map((options) => ({ cluster, ...options }));
}

/** What a driver draws for a wait: in [0, 1). */
function arbRandom(): fc.Arbitrary<number> {
  return fc.constantFrom(0, 0.5, 1 - 2 ** -53);
}
