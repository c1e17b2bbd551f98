/**
 * Random remote layouts, successions of them, and source segments: the two sides between which an entry finds its
 * path. Layouts come from histories of operations, so that they are such as a cluster really reaches; a failure
 * prints one line a layout.
 */
import fc from 'fast-check';
import type { Layout, Segment } from '../layout/index.js';
import type { RemoteLayout, SourceSegment } from '../rebatch/index.js';
import { FULL_RANGE, type HashRange, RING_END } from '../ring/index.js';
import { arbLayout, arbLayoutHistory, describeSegments, layoutAfter, printedAs } from './layouts.js';

export interface RemoteLayoutOptions {
  /** The most operations in a layout's history, 6 by default. */
  readonly maxSteps?: number;
  /** Also the layouts of classic topics, whose segments are all legacy. Default true. */
  readonly legacy?: boolean;
}

/** What a replicator knows of a remote: its active segments tile the ring, or are the partitions of a classic topic. */
export function arbRemoteLayout(options: RemoteLayoutOptions = {}): fc.Arbitrary<RemoteLayout> {
  const { maxSteps = 6, legacy = true } = options;
  const scalable = arbLayout({ maxSteps }).map(remoteLayoutOf);
  if (!legacy) return scalable;
  return fc.oneof({ weight: 5, arbitrary: scalable }, { weight: 1, arbitrary: arbPartitions() });
}

/**
 * The layouts that one remote goes through, one or more: each follows from the one before by one operation. With
 * `legacy`, some begin as a classic topic that is migrated.
 */
export function arbRemoteHistory(options: RemoteLayoutOptions = {}): fc.Arbitrary<RemoteLayout[]> {
  const { maxSteps = 6, legacy = true } = options;
  const before = legacy ? fc.option(arbPartitions(), { freq: 4, nil: undefined }) : fc.constant(undefined);
  return fc.tuple(before, arbLayoutHistory({ maxSteps })).map(([partitions, { segments, steps }]) => {
    const layouts = Array.from({ length: steps.length + 1 }, (_, i) => {
      return remoteLayoutOf(layoutAfter({ segments, steps: steps.slice(0, i) }));
    });
    return partitions === undefined ? layouts : [partitions, ...layouts];
  });
}

/** Where an entry comes from. A legacy source has the whole ring, as the broker writes it down on migration. */
export function arbSourceSegment({ legacy = true }: { readonly legacy?: boolean } = {}): fc.Arbitrary<SourceSegment> {
  const segmentId = fc.nat({ max: 9 });
  const scalable = fc.record({ segmentId, range: arbRange(), legacy: fc.constant(false) });
  if (!legacy) return scalable;
  const partition = fc.record({ segmentId, range: fc.constant(FULL_RANGE), legacy: fc.constant(true) });
  return fc.oneof({ weight: 4, arbitrary: scalable }, { weight: 1, arbitrary: partition });
}

/** A range of either ring: all of it, a piece of a coarse grid, or any. */
export function arbRange(): fc.Arbitrary<HashRange> {
  const ordered = (max: number, width: number) =>
    fc.tuple(fc.nat({ max }), fc.nat({ max })).map(([a, b]) => {
      return { start: Math.min(a, b) * width, end: (Math.max(a, b) + 1) * width - 1 };
    });
  return fc.oneof(
    { weight: 1, arbitrary: fc.constant(FULL_RANGE) },
    { weight: 3, arbitrary: ordered(7, 0x2000) },
    { weight: 1, arbitrary: ordered(RING_END, 1) },
  );
}

/** A layout as the other side sees it. */
export function remoteLayoutOf({ epoch, active }: Layout): RemoteLayout {
  return printedAsLine({ cluster: 'b', epoch, active });
}

/** The partitions of a classic topic, one to five. */
function arbPartitions(): fc.Arbitrary<RemoteLayout> {
  return fc.integer({ min: 1, max: 5 }).map((partitions) => {
    const active = Array.from({ length: partitions }, (_, segmentId): Segment => {
      return {
        segmentId,
        range: FULL_RANGE,
        state: 'active',
        parentIds: [],
        childIds: [],
        entryBucketSplits: [],
        createdAtEpoch: 0,
        sealedAtEpoch: -1,
        createdAtMs: 0,
        sealedAtMs: -1,
        legacyTopicName: `persistent://t/n/orders-partition-${segmentId}`,
      };
    });
    return printedAsLine({ cluster: 'b', epoch: 0, active });
  });
}

function printedAsLine(remote: RemoteLayout): RemoteLayout {
  return printedAs(remote, `remote(epoch ${remote.epoch}: ${describeSegments(remote.active)})`);
}
