import { type CursorStore, defaultCodecs, type EntrySource, type RemoteTopic } from 'isthmus';
import { createReplicator, type Replicator, SlowPath } from 'isthmus/drivers';
import type { YourBroker, YourClient } from './your-broker.js';

/** One slow-path budget for all topics of the process. */
const slowPath = new SlowPath({ bytesPerSecond: 16 * 1024 * 1024, slots: 4 });

/** Replicates one topic of your broker to one remote cluster. `cursors` is yours, or that of `isthmus/adapters/lmdb`. */
export async function replicate(
  topic: string,
  broker: YourBroker,
  client: YourClient,
  cursors: CursorStore,
): Promise<Replicator> {
  const subscription = broker.subscription(topic, `pulsar.repl.${client.cluster}`);
  const source: EntrySource = {
    cluster: broker.cluster,
    layouts: (signal) => broker.watchLayout(topic, signal),
    lastPosition: (segmentId) => broker.lastPosition(topic, segmentId),
    acknowledged: (segmentId) => subscription.acknowledged(segmentId),
    backlog: (segmentId) => subscription.backlog(segmentId),
    read: (segmentId, after, options) => subscription.read(segmentId, after, options),
    acknowledge: (segmentId, position) => subscription.acknowledge(segmentId, position),
    release: () => subscription.delete(),
  };
  const remote: RemoteTopic = {
    cluster: client.cluster,
    maxEntryBytes: 5 * 1024 * 1024,
    supports: { dedup: 'window', failStop: true },
    layouts: (signal) => client.watchLayout(topic, signal),
    async open(sourceSegmentId, segmentId, onResult) {
      const producer = await client.openProducer(
        topic,
        segmentId,
        `pulsar.repl.${broker.cluster}.${sourceSegmentId}`,
        onResult,
      );
      return producer === 'sealed' ? { type: 'sealed', reason: 'the broker says so' } : { type: 'opened', ...producer };
    },
    watermark: (sourceSegmentId, segmentId) =>
      client.watermark(topic, segmentId, `pulsar.repl.${broker.cluster}.${sourceSegmentId}`),
    // Only for remotes without dedup state.
    async *readBack() {},
  };
  const replicator = createReplicator({ source, remote, cursors, slowPath }, { codecs: await defaultCodecs() });
  replicator.start();
  return replicator;
}
