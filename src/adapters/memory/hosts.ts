/** A topic in memory as the host of its layout, in both forms that a host can have. */
import { IsthmusError } from '../../errors.js';
import { executeOperation, type Layout } from '../../layout/index.js';
import type { AtomicSegmentHost, LayoutReader, LayoutStore, PlanningSegmentHost } from '../../ports/index.js';
import type { TopicStore } from './store.js';

/** A host whose layout a controller writes. */
export function atomicHost(store: TopicStore): { readonly store: LayoutStore; readonly segments: AtomicSegmentHost } {
  return {
    store: {
      ...layoutReader(store),
      commit: async (expectedEpoch, layout) => {
        if (store.layout.epoch !== expectedEpoch) return { type: 'conflict' };
        store.record(layout);
        return { type: 'committed' };
      },
    },
    segments: {
      supports: { atomicLayoutChange: true },
      list: async () => [...store.logs].map(([segmentId, { sealed }]) => ({ segmentId, sealed })),
      create: async (segments) => {
        for (const { segmentId } of segments) store.create(segmentId);
      },
      seal: async (segmentIds) => {
        for (const segmentId of segmentIds) store.log(segmentId).seal();
      },
      delete: async (segmentIds) => {
        for (const segmentId of segmentIds) if (!store.layout.segments.has(segmentId)) store.drop(segmentId);
      },
    },
  };
}

/** A host that only has the operations of an unmodified Pulsar broker (C22), and its limit on a segment's buckets. */
export function planningHost(
  store: TopicStore,
  maxBuckets: number,
): { readonly store: LayoutReader; readonly segments: PlanningSegmentHost } {
  const now = () => store.layout.active.reduce((latest, { createdAtMs }) => Math.max(latest, createdAtMs), 0);
  return {
    store: layoutReader(store),
    segments: {
      supports: { atomicLayoutChange: false, explicitBoundary: false, unequalBuckets: false, maxBuckets },
      perform: async (operation) => {
        try {
          const next = executeOperation(store.layout, operation, now());
          checkBuckets(store.layout, next, maxBuckets);
          store.record(next);
          return { type: 'performed', layout: next };
        } catch (error) {
          if (!(error instanceof IsthmusError)) throw error;
          return { type: 'failed', reason: error.message };
        }
      },
    },
  };
}

function layoutReader(store: TopicStore): LayoutReader {
  return { load: async () => store.layout, watch: (signal) => store.watch(signal) };
}

/** Throws `invalidOperation` when a segment that an operation makes or changes has too many buckets. */
function checkBuckets(before: Layout, after: Layout, maxBuckets: number): void {
  for (const segment of after.active) {
    const buckets = segment.entryBucketSplits.length + 1;
    if (buckets <= maxBuckets || before.segments.get(segment.segmentId) === segment) continue;
    const { segmentId } = segment;
    throw new IsthmusError('invalidOperation', `segment ${segmentId}: ${buckets} buckets; the limit is ${maxBuckets}`);
  }
}
