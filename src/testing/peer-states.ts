/**
 * Random peer states for property tests: valid ones, with every optional member there or not. Marks lie on what a
 * cluster may mark: siblings of the state's own shape, and bucket boundaries of its cells.
 */
import fc from 'fast-check';
import type { BucketMarks, Caps, ColdMarks, PeerState } from '../convergence/index.js';
import { boundariesOf, type Shape, siblingBoundaries } from '../layout/index.js';
import { arbShape } from './layouts.js';

export interface PeerStateArbitraryOptions {
  /** The cluster whose state it is; one of a few by default. */
  readonly cluster?: string;
  /** The most cells of its shape, 6 by default. */
  readonly maxCells?: number;
}

/** A state of one cluster of one topic. Numbers are mostly small, so that states of one cluster meet in order. */
export function arbPeerState(options: PeerStateArbitraryOptions = {}): fc.Arbitrary<PeerState> {
  const { cluster, maxCells = 6 } = options;
  const grounds = fc
    .record({ shape: arbShape({ maxCells }), baseShape: fc.option(arbShape({ maxCells: 4 }), { nil: undefined }) })
    .map(({ shape, baseShape }) => ({ shape, ...(baseShape && { base: boundariesOf(baseShape) }) }));
  return grounds.chain(({ shape, base }) =>
    fc
      .record(
        {
          cluster: cluster === undefined ? fc.constantFrom('a', 'b', 'c', 'eu-west', 'größe') : fc.constant(cluster),
          term: arbCount(),
          epoch: arbCount(),
          revision: arbCount(),
          coldMarks: arbColdMarks(shape, base),
          caps: arbCaps(),
          equalWidth: fc.boolean(),
          protocolVersion: fc.integer({ min: 1, max: 3 }),
          sentAtMs: fc.integer({ min: 0, max: 2_000_000_000_000 }),
          receiverTerm: arbCount(),
        },
        { requiredKeys: ['cluster', 'epoch', 'revision', 'caps', 'protocolVersion', 'sentAtMs'] },
      )
      .map((members) => ({ ...members, shape, ...(base && { base }) })),
  );
}

/** Marks that a cluster of this shape and base may state (C11); often none. */
export function arbColdMarks(shape: Shape, base?: readonly number[]): fc.Arbitrary<ColdMarks> {
  const buckets = shape.cells.map(({ range, entryBucketSplits }): fc.Arbitrary<BucketMarks | undefined> => {
    const marks = fc.subarray([...entryBucketSplits]).map((boundaries) => ({ range, boundaries }));
    return fc.option(marks, { nil: undefined });
  });
  return fc.record({
    segments: fc.subarray(siblingBoundaries(shape, base)),
    buckets: fc.tuple(...buckets).map((marks) => marks.filter((mark) => mark !== undefined)),
  });
}

/** Caps of a cluster, from one segment of one bucket upwards. */
export function arbCaps(): fc.Arbitrary<Caps> {
  return fc.record({
    maxSegments: fc.oneof(
      { withCrossShrink: true },
      fc.integer({ min: 1, max: 64 }),
      fc.constant(Number.MAX_SAFE_INTEGER),
    ),
    maxEntryBucketsPerSegment: fc.oneof(
      { withCrossShrink: true },
      fc.integer({ min: 1, max: 64 }),
      fc.constant(65_536),
    ),
  });
}

function arbCount(): fc.Arbitrary<number> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 6, arbitrary: fc.nat({ max: 9 }) },
    { weight: 1, arbitrary: fc.constantFrom(Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER) },
  );
}
