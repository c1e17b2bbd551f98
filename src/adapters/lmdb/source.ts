/** The topic as the source of replication to one remote. */
import type { EntryRead, EntrySource, ReadLimits } from '../../ports/index.js';
import { firstBehind, positionOf } from './entry-keys.js';
import type { TopicState } from './topic-state.js';

/** What the remote has acknowledged is kept beside the entries: `acknowledged` is as durable as they are. */
export function entrySource(topic: TopicState, remoteCluster: string): EntrySource {
  // What was on its way when the subscription was given up does not bring it back.
  let released = false;
  const acknowledgedId = (segmentId: number) =>
    topic.environment.tables.acknowledged.get([topic.id, remoteCluster, segmentId]);
  return {
    cluster: topic.cluster,
    layouts: (signal) => topic.layouts(signal, (layout) => layout),
    async lastPosition(segmentId) {
      const { entries } = topic.segment(segmentId);
      return entries === 0 ? undefined : positionOf(segmentId, entries - 1);
    },
    async acknowledged(segmentId) {
      const entryId = acknowledgedId(segmentId);
      return entryId === undefined ? undefined : positionOf(segmentId, entryId);
    },
    backlog: async (segmentId) => topic.segment(segmentId).entries - 1 - (acknowledgedId(segmentId) ?? -1),
    read: (segmentId, after, options) => read(topic, segmentId, firstBehind(segmentId, after), options),
    acknowledge: (segmentId, position) =>
      topic.queue.transact((transaction) => {
        const entryId = firstBehind(segmentId, position) - 1;
        const { entries = 0 } = transaction.segment(topic.id, segmentId) ?? {};
        // An acknowledgement that comes late, or is of an entry that is not there, moves nothing.
        if (released || entryId < 0 || entryId >= entries || entryId <= (acknowledgedId(segmentId) ?? -1)) return;
        transaction.tables.acknowledged.putSync([topic.id, remoteCluster, segmentId], entryId);
      }),
    async release() {
      released = true;
      await topic.queue.transact(({ tables: { acknowledged } }) => {
        const range = { start: [topic.id, remoteCluster], end: [topic.id, remoteCluster, ''] };
        for (const key of [...acknowledged.getKeys(range)]) acknowledged.removeSync(key);
      });
    },
  };
}

async function read(
  topic: TopicState,
  segmentId: number,
  from: number,
  { signal, ...limits }: ReadLimits & { readonly signal: AbortSignal },
): Promise<EntryRead> {
  for (;;) {
    signal.throwIfAborted();
    const { state, entries } = topic.segment(segmentId);
    const page = from < entries ? topic.page(segmentId, from, entries, limits) : [];
    const ended = state === 'sealed' && from + page.length >= entries;
    if (page.length > 0 || ended) return { entries: page, ended };
    await topic.segmentChanged(segmentId).changed(signal);
  }
}
