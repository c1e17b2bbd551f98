/** The cursors of a topic in memory towards one remote: they outlive every replicator, as a durable store's do. */
import type { CursorRecord, CursorStore } from '../../ports/index.js';
import type { TopicStore } from './store.js';

export function memoryCursors(store: TopicStore, remoteCluster: string): CursorStore {
  let stored = store.cursors.get(remoteCluster);
  if (stored === undefined) {
    stored = new Map();
    store.cursors.set(remoteCluster, stored);
  }
  const records = stored;
  return {
    load: async () => new Map(records),
    write: async (changes) => {
      const session = laterSession(records, changes);
      if (session !== undefined) return { type: 'fenced', session };
      for (const [segmentId, record] of changes) {
        if (record === undefined) records.delete(segmentId);
        else records.set(segmentId, copyOf(record));
      }
      return { type: 'written' };
    },
  };
}

/** The highest stored session above the one that is to be written in its place; undefined when there is none. */
function laterSession(
  stored: ReadonlyMap<number, CursorRecord>,
  changes: ReadonlyMap<number, CursorRecord | undefined>,
): number | undefined {
  let latest: number | undefined;
  for (const [segmentId, record] of changes) {
    const session = stored.get(segmentId)?.session;
    if (record === undefined || session === undefined || session <= record.session) continue;
    latest = Math.max(latest ?? 0, session);
  }
  return latest;
}

/** What a caller goes on changing is not what was written. */
function copyOf(record: CursorRecord): CursorRecord {
  return { ...record, skipped: [...record.skipped], checkpoints: new Map(record.checkpoints) };
}
