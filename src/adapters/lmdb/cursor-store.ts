/** Replication cursors, fenced by the number of the session that writes them. */
import { formatSourcePosition, parseSourcePosition } from '../../entry/index.js';
import type { CursorRecord, CursorStore, CursorWrite } from '../../ports/index.js';
import type { CursorRow } from './environment.js';
import type { TopicState } from './topic-state.js';
import type { WriteTransaction } from './write-transaction.js';

/** The cursors of a topic towards one remote. */
export function cursorStore(topic: TopicState, remoteCluster: string): CursorStore {
  return {
    async load() {
      // Texts sort behind numbers: the end is behind every segment id.
      const range = { start: [topic.id, remoteCluster], end: [topic.id, remoteCluster, ''] };
      const records = new Map<number, CursorRecord>();
      for (const { key, value } of topic.environment.tables.cursors.getRange(range)) {
        records.set(key[2], recordOf(value));
      }
      return records;
    },
    async write(records) {
      // Made now: what the caller goes on changing is not what is written, and one that cannot be stored refuses all.
      const rows = [...records].map(([segmentId, record]) => [segmentId, record && rowOf(record)] as const);
      return topic.queue.transact((transaction) => write(transaction, topic.id, remoteCluster, rows));
    },
  };
}

function write(
  { tables: { cursors } }: WriteTransaction,
  topicId: number,
  remoteCluster: string,
  rows: readonly (readonly [number, CursorRow | undefined])[],
): CursorWrite {
  let later = 0;
  for (const [segmentId, row] of rows) {
    const stored = row && cursors.get([topicId, remoteCluster, segmentId]);
    if (stored && stored.session > row.session) later = Math.max(later, stored.session);
  }
  if (later > 0) return { type: 'fenced', session: later };
  for (const [segmentId, row] of rows) {
    if (row === undefined) cursors.removeSync([topicId, remoteCluster, segmentId]);
    else cursors.putSync([topicId, remoteCluster, segmentId], row);
  }
  return { type: 'written' };
}

function rowOf({ session, settled, drained, skipped, checkpoints }: CursorRecord): CursorRow {
  const places = [...checkpoints].map(([segmentId, place]) => [segmentId, formatSourcePosition(place)] as const);
  return {
    session,
    ...(settled === undefined ? {} : { settled: formatSourcePosition(settled) }),
    drained,
    skipped: skipped.map(formatSourcePosition),
    checkpoints: Object.fromEntries(places),
  };
}

function recordOf({ session, settled, drained, skipped, checkpoints }: CursorRow): CursorRecord {
  const places = Object.entries(checkpoints).map(([id, text]) => [Number(id), parseSourcePosition(text)] as const);
  return {
    session,
    ...(settled === undefined ? {} : { settled: parseSourcePosition(settled) }),
    drained,
    skipped: skipped.map(parseSourcePosition),
    checkpoints: new Map(places),
  };
}
