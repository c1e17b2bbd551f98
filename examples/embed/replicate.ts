import { defaultCodecs, type EntrySource, type RemoteTopic } from 'isthmus';
import { createReplicator, type Replicator } from 'isthmus/drivers';
import type { YourBroker, YourClient } from './your-broker.js';

/** Replicates one topic of your broker to one remote cluster. */
export async function replicate(topic: string, broker: YourBroker, client: YourClient): Promise<Replicator> {
  const source: EntrySource = {
    cluster: broker.cluster,
    layouts: (signal) => broker.watchLayout(topic, signal),
    read: (segmentId, after, { maxEntries, signal }) => broker.readEntries(topic, segmentId, after, maxEntries, signal),
    cursor: (segmentId) => broker.loadCursor(topic, segmentId, client.cluster),
    acknowledge: (segmentId, position) => broker.saveCursor(topic, segmentId, client.cluster, position),
  };
  const remote: RemoteTopic = {
    cluster: client.cluster,
    maxEntryBytes: 5 * 1024 * 1024,
    layouts: (signal) => client.watchLayout(topic, signal),
    async send(segmentId, { sourceSegmentId, position, buffers }) {
      const producer = `isthmus.${broker.cluster}.${sourceSegmentId}`;
      const outcome = await client.publish(topic, segmentId, producer, position, [buffers.head, buffers.payload]);
      return outcome === 'timeout' ? { type: 'unavailable', reason: outcome } : { type: outcome };
    },
  };
  const replicator = createReplicator({ source, remote }, { codecs: await defaultCodecs() });
  replicator.start();
  return replicator;
}
