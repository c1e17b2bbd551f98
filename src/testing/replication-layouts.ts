/** Layouts of topics that were classic ones before (E9): partitions first, and range segments once they are migrated. */
import { isLegacy, type Layout, parseLayout } from '../layout/index.js';
import { equalWidthSplits } from '../ring/index.js';

/** The partitions of a classic topic, as legacy segments. */
export function legacyLayout(partitions: number, nowMs: number): Layout {
  const segments = Array.from({ length: partitions }, (_, segmentId) => [
    segmentId,
    {
      segmentId,
      hashRange: { start: 0, end: 0xffff },
      state: 'ACTIVE',
      createdAtEpoch: 0,
      sealedAtEpoch: -1,
      createdAtMs: nowMs,
      sealedAtMs: -1,
      legacyTopicName: `persistent://t/n/x-partition-${segmentId}`,
    },
  ]);
  return parseLayout({ epoch: 0, nextSegmentId: partitions, segments: Object.fromEntries(segments) });
}

/** The same topic behind its migration: all partitions are sealed, and each new segment descends from all. */
export function migratedLayout({ epoch, active, nextSegmentId }: Layout, count: number, nowMs: number): Layout {
  const childIds = Array.from({ length: count }, (_, i) => nextSegmentId + i);
  const parentIds = active.map(({ segmentId }) => segmentId);
  const width = 0x10000 / count;
  const segments = [
    ...active.map((segment) => ({
      segmentId: segment.segmentId,
      hashRange: segment.range,
      state: 'SEALED',
      childIds,
      createdAtEpoch: segment.createdAtEpoch,
      sealedAtEpoch: epoch + 1,
      createdAtMs: segment.createdAtMs,
      sealedAtMs: nowMs,
      legacyTopicName: segment.legacyTopicName,
    })),
    ...childIds.map((segmentId, i) => ({
      segmentId,
      hashRange: { start: i * width, end: (i + 1) * width - 1 },
      state: 'ACTIVE',
      parentIds,
      entryBucketSplits: equalWidthSplits(2),
      createdAtEpoch: epoch + 1,
      sealedAtEpoch: -1,
      createdAtMs: nowMs,
      sealedAtMs: -1,
    })),
  ];
  return parseLayout({
    epoch: epoch + 1,
    nextSegmentId: nextSegmentId + count,
    segments: Object.fromEntries(segments.map((segment) => [segment.segmentId, segment])),
  });
}

/** True while a topic is a classic one. */
export function isClassic({ active }: Layout): boolean {
  return active.some(isLegacy);
}
