/** A topic in memory as the source of replication to one remote. */
import type { EntryRead, EntrySource, ReadLimits, StoredEntry } from '../../ports/index.js';
import type { SegmentLog } from './segment-log.js';
import type { TopicStore } from './store.js';

/** The name of the subscription of a remote, as Pulsar has it. */
export function replicationSubscription(remoteCluster: string): string {
  return `pulsar.repl.${remoteCluster}`;
}

/** Subscribes for a remote; one that is subscribed already goes on where it was. */
export function memorySource(store: TopicStore, remoteCluster: string): EntrySource {
  const name = replicationSubscription(remoteCluster);
  store.subscribe(name, 'replication');
  return {
    cluster: store.cluster,
    layouts: (signal) => store.watch(signal),
    lastPosition: async (segmentId) => {
      const log = store.log(segmentId);
      return log.positionBefore(log.end);
    },
    acknowledged: async (segmentId) => {
      const log = store.log(segmentId);
      return log.positionBefore(log.place(name));
    },
    backlog: async (segmentId) => {
      const log = store.log(segmentId);
      return log.end - Math.max(log.start, log.place(name));
    },
    read: async (segmentId, after, { signal, ...limits }) => {
      const log = store.log(segmentId);
      signal.throwIfAborted();
      const from = Math.max(log.placeBehind(after), log.start);
      while (log.end <= from && !log.sealed) await log.changed.changed(signal);
      return readFrom(log, from, limits);
    },
    acknowledge: async (segmentId, position) => {
      // A segment that was pruned meanwhile, and a subscription that was given up, have nothing left to keep.
      const log = store.logs.get(segmentId);
      if (store.subscriptions.has(name)) log?.acknowledge(name, log.placeBehind(position));
    },
    release: async () => store.unsubscribe(name),
  };
}

/** One entry in any case, and more as far as the limits allow. */
function readFrom(log: SegmentLog, from: number, { maxEntries, maxBytes }: ReadLimits): EntryRead {
  const entries: StoredEntry[] = [];
  let bytes = 0;
  for (const entry of log.slice(from, from + Math.max(1, maxEntries))) {
    bytes += entry.bytes.length;
    if (entries.length > 0 && bytes > maxBytes) break;
    entries.push(entry);
  }
  return { entries, ended: log.sealed && from + entries.length >= log.end };
}
