/**
 * One run of a replicator as a provisioner lets it run: what it may replicate, and the question that it puts before every
 * producer. A producer can create what it writes to, and no flag of the protocol forbids it.
 */
import type { RemoteTopic } from '../ports/index.js';
import type { ReplicationScope } from '../provisioning/index.js';
import type { Replicator } from './replicator.js';

/** The part of a replicator that a provisioner uses. */
export type ProvisionedReplicator = Pick<Replicator, 'start' | 'stop' | 'status'>;

/** Whether a producer may be opened now. */
export type ProducerPermit = { readonly type: 'granted' } | { readonly type: 'refused'; readonly reason: string };

/** What a replicator is made for, and what it tells while it runs. */
export interface ProvisionedRun {
  readonly scope: ReplicationScope;
  /**
   * To be asked before every producer, each reconnect included: looks at both shapes again, and never rejects. Whether
   * the partition, or without one the whole topic, is there and may be written to.
   */
  permit(partition?: number): Promise<ProducerPermit>;
  /** The destination has gone: the replicator is stopped, and the topic is waited for. */
  lost(): void;
}

/**
 * A remote topic that asks for a permit before every opening of a producer. Of a partitioned topic it is the remote of
 * one partition, and `partition` its index.
 */
export function provisionedRemote(remote: RemoteTopic, run: ProvisionedRun, partition?: number): RemoteTopic {
  const { cluster, maxEntryBytes, supports, pin } = remote;
  return {
    cluster,
    maxEntryBytes,
    supports,
    ...(pin === undefined ? {} : { pin }),
    layouts: (signal) => remote.layouts(signal),
    watermark: (sourceSegmentId, segmentId) => remote.watermark(sourceSegmentId, segmentId),
    readBack: (segmentId, range, signal) => remote.readBack(segmentId, range, signal),
    open: async (sourceSegmentId, segmentId, onResult) => {
      const permit = await run.permit(partition);
      if (permit.type === 'refused') return { type: 'unavailable', reason: permit.reason };
      return remote.open(sourceSegmentId, segmentId, onResult);
    },
  };
}
