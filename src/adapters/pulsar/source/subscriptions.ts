/** The topic-level subscription of a source, by the admin REST. */
import { type AdminResult, type PulsarAdmin, restoreSegments, type TopicSubscription } from '../admin/index.js';

/** What a source needs of the cluster's administration, for one topic. Rejections mean that it is not known to be done. */
export interface SourceSubscriptions {
  /**
   * Makes a subscription of type QUEUE on the topic, and what is missing of it; `created` when there was none of that
   * name. Called again when there is no topic behind a segment of the layout.
   */
  ensureSubscription(name: string): Promise<'created' | 'existed'>;
  /** Moves it behind everything that is stored now. */
  skipAll(name: string): Promise<void>;
  /** Deletes it on the topic with all its segments, and on the topics of legacy segments, which it does not reach. */
  deleteSubscription(name: string, legacyTopics: readonly string[]): Promise<void>;
  /** Entries of a segment that are not acknowledged. */
  backlog(name: string, segmentId: number): Promise<number>;
}

/** Of `topic://tenant/namespace/name`. */
export function adminSubscriptions(admin: PulsarAdmin, topic: string): SourceSubscriptions {
  /** The answer for all segments that ask at the same time. */
  let asking: Promise<ReadonlyMap<string, TopicSubscription>> | undefined;
  const subscriptions = () => {
    asking ??= admin
      .subscriptions(topic)
      .then((result) => required(result, 'the statistics'))
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  return {
    async ensureSubscription(name) {
      const isThere = (await subscriptions()).has(name);
      required(await restoreSegments(admin, topic), `the segments of ${topic}`);
      if (isThere) return 'existed';
      required(await admin.putSubscription(topic, name), `subscription ${name}`);
      return 'created';
    },
    async skipAll(name) {
      required(await admin.skipAll(topic, name), `moving subscription ${name}`);
    },
    async deleteSubscription(name, legacyTopics) {
      required(await admin.deleteSubscription(topic, name), `deleting subscription ${name}`);
      for (const legacy of legacyTopics) {
        const result = await admin.deletePersistentSubscription(legacy, name);
        if (result.type !== 'notFound') required(result, `deleting subscription ${name} of ${legacy}`);
      }
    },
    async backlog(name, segmentId) {
      const backlog = (await subscriptions()).get(name)?.backlogs.get(segmentId);
      if (backlog === undefined) throw new Error(`the statistics of ${topic} do not tell of segment ${segmentId}`);
      return backlog;
    },
  };
}

function required<T>(result: AdminResult<T>, what: string): T {
  if (result.type === 'ok') return result.value;
  throw new Error(`${what}: ${result.type}, ${result.reason}`);
}
