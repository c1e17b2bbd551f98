/**
 * One change of a layout on a host that isthmus writes, in the order that keeps every reader right: successors and
 * their cursors first, then the seals, then the record. Each step may be repeated, so that a crash between any two is
 * healed by whoever leads next.
 */
import { type Layout, rolloverSegments } from '../layout/index.js';
import type { AtomicSegmentHost, CommitResult, LayoutStore } from '../ports/index.js';

/** Makes `layout` real and records it. On a conflict what was created for it is removed again. */
export async function commitLayout(
  store: LayoutStore,
  host: AtomicSegmentHost,
  expectedEpoch: number,
  layout: Layout,
): Promise<CommitResult> {
  // Asked first, since a seal cannot be taken back: who has lost already seals nothing.
  const before = await store.load();
  if (before.epoch !== expectedEpoch) return { type: 'conflict' };
  const created = [...layout.segments.values()].filter(({ segmentId }) => !before.segments.has(segmentId));
  const sealed = before.active.filter(({ segmentId }) => layout.segments.get(segmentId)?.state === 'sealed');
  await host.create(created);
  await host.seal(sealed.map(({ segmentId }) => segmentId));
  return store.commit(expectedEpoch, layout);
}

/**
 * Puts right what a change that was broken off has left: active segments that are sealed already get a successor of
 * the same range. A leader that begins also removes segments that are in no record; later it must not, since they may
 * belong to somebody who is about to record them. Returns the layout as stored.
 */
export async function healSegments(
  store: LayoutStore,
  host: AtomicSegmentHost,
  options: { readonly nowMs: number; readonly removeOrphans: boolean },
): Promise<Layout> {
  for (;;) {
    const layout = await store.load();
    const hosted = await host.list();
    const orphans = hosted.filter(({ segmentId }) => !layout.segments.has(segmentId));
    if (options.removeOrphans && orphans.length > 0) await host.delete(orphans.map(({ segmentId }) => segmentId));
    const sealedIds = new Set(hosted.filter(({ sealed }) => sealed).map(({ segmentId }) => segmentId));
    const stopped = layout.active.filter(({ segmentId }) => sealedIds.has(segmentId));
    if (stopped.length === 0) return layout;
    const segmentIds = stopped.map(({ segmentId }) => segmentId);
    const healed = rolloverSegments(layout, segmentIds, { nowMs: options.nowMs });
    const result = await commitLayout(store, host, layout.epoch, healed);
    if (result.type === 'committed') return healed;
    if (result.type === 'failed') throw new Error(`the layout could not be healed: ${result.reason}`);
  }
}
