/**
 * The calls of a cluster's admin REST that replication needs: scalable topics with their subscriptions and layouts, the
 * namespace and topics that hold its own state, and what can be read of policies. None creates anything by accident.
 */
import { IsthmusError, messageOf, show } from '../../../errors.js';
import { type Layout, parseLayout } from '../../../layout/index.js';
import { AdminHttp, type AdminOptions, type AdminResult } from './http.js';
import { namespacePath, topicPath } from './paths.js';

/** Of a scalable topic, as the cluster's own automatic changes have it; see `autoScalePolicy`. */
export type AutoScalePolicy = Readonly<Record<string, number | boolean>>;

/** A subscription of a scalable topic, or of segments of it alone, as the topic's statistics tell. */
export interface TopicSubscription {
  /** `QUEUE` or `STREAM`; a subscription of segments counts as `QUEUE`. */
  readonly type: string;
  /** Entries not acknowledged, by segment; those that the subscription is not on are not in it. */
  readonly backlogs: ReadonlyMap<number, number>;
  /** Active segments that have a topic behind them, and not this subscription. */
  readonly uncovered: readonly number[];
}

/** How a call ends: never by a rejection, but for wrong arguments and an aborted signal. */
export type AdminReply<T> = Promise<AdminResult<T>>;

export class PulsarAdmin {
  private readonly http: AdminHttp;

  /** Throws `invalidArgument`. */
  constructor(options: AdminOptions) {
    this.http = new AdminHttp(options);
  }

  // ---- scalable topics, each as `tenant/namespace/name`, with or without `topic://`

  /** Creates a topic with equal-width segments, 1..1,024: the broker itself has no limit, and has to be saved from that. */
  async createScalable(topic: string, segments: number): AdminReply<void> {
    if (!Number.isInteger(segments) || segments < 1 || segments > 1_024) {
      throw new IsthmusError('invalidArgument', `segments is ${show(segments)}: an integer of 1..1024`);
    }
    return this.done('PUT', `${scalable(topic)}?numInitialSegments=${segments}`, { body: {} });
  }

  async scalableLayout(topic: string, signal?: AbortSignal): AdminReply<Layout> {
    const path = scalable(topic);
    return this.read(path, (value) => parseLayout(value), signal);
  }

  /** Full names, `topic://...`. */
  async scalableTopics(namespace: string): AdminReply<readonly string[]> {
    return this.read(`scalable/${namespacePath(namespace)}`, texts);
  }

  async deleteScalable(topic: string): AdminReply<void> {
    return this.done('DELETE', scalable(topic));
  }

  async split(topic: string, segmentId: number): AdminReply<void> {
    return this.done('POST', `${scalable(topic)}/split/${segmentId}`);
  }

  async merge(topic: string, leftId: number, rightId: number): AdminReply<void> {
    return this.done('POST', `${scalable(topic)}/merge/${leftId}/${rightId}`);
  }

  /** `buckets` equal-width ones, 1..1,024. */
  async rebucket(topic: string, segmentId: number, buckets: number): AdminReply<void> {
    return this.done('POST', `${scalable(topic)}/rebucket/${segmentId}?bucketCount=${buckets}`);
  }

  /**
   * A subscription on the topic, which sealed segments wait for, as those on single segments do not. It may exist: then
   * what is missing of it is made, on every active segment.
   */
  async putSubscription(topic: string, subscription: string, type = 'QUEUE'): AdminReply<void> {
    const path = `${scalable(topic)}/subscriptions/${encodeURIComponent(subscription)}`;
    return this.done('PUT', `${path}?type=${encodeURIComponent(type)}`, { as: 'data' });
  }

  async deleteSubscription(topic: string, subscription: string): AdminReply<void> {
    return this.done('DELETE', `${scalable(topic)}/subscriptions/${encodeURIComponent(subscription)}`, { as: 'data' });
  }

  /** Moves it behind everything that is stored now. */
  async skipAll(topic: string, subscription: string): AdminReply<void> {
    const path = `${scalable(topic)}/subscriptions/${encodeURIComponent(subscription)}/skip-all`;
    return this.done('POST', path, { as: 'data' });
  }

  /** By name. */
  async subscriptions(topic: string, signal?: AbortSignal): AdminReply<ReadonlyMap<string, TopicSubscription>> {
    return this.read(`${scalable(topic)}/stats`, subscriptionsOf, signal);
  }

  /** What is set for this topic; undefined when nothing is. */
  async autoScalePolicy(topic: string): AdminReply<AutoScalePolicy | undefined> {
    return this.read(`${scalable(topic)}/autoScalePolicy`, policyOf, undefined, 'layout');
  }

  async setAutoScalePolicy(topic: string, policy: AutoScalePolicy): AdminReply<void> {
    return this.done('POST', `${scalable(topic)}/autoScalePolicy`, { body: policy });
  }

  // ---- namespaces, each as `tenant/namespace`

  async namespaces(tenant: string): AdminReply<readonly string[]> {
    return this.read(`namespaces/${encodeURIComponent(tenant)}`, texts, undefined, 'layout');
  }

  async createNamespace(namespace: string): AdminReply<void> {
    return this.done('PUT', `namespaces/${namespacePath(namespace)}`);
  }

  /** All that is set in a namespace, by the names of the stored record. Needs a tenant admin. */
  async namespacePolicies(namespace: string): AdminReply<Readonly<Record<string, unknown>>> {
    return this.read(`namespaces/${namespacePath(namespace)}`, objectOf, undefined, 'layout');
  }

  /** One policy as it is set; undefined when it is not. The names are those of the REST paths, as in `messageTTL`. */
  async namespacePolicy(namespace: string, policy: string): AdminReply<unknown> {
    return this.read(`namespaces/${namespacePath(namespace)}/${policy}`, (value) => value, undefined, 'layout');
  }

  async setNamespacePolicy(namespace: string, policy: string, value: unknown): AdminReply<void> {
    // Setting a number is a POST of it for some policies, a PUT for others.
    const method = policy === 'compactionThreshold' ? 'PUT' : 'POST';
    return this.done(method, `namespaces/${namespacePath(namespace)}/${policy}`, { body: value });
  }

  // ---- ordinary topics, each as `persistent://tenant/namespace/name`

  /** Those of a namespace, in a way that makes no topic of its own. */
  async persistentTopics(namespace: string): AdminReply<readonly string[]> {
    return this.read(`namespaces/${namespacePath(namespace)}/topics?mode=ALL`, texts);
  }

  async createPersistent(topic: string): AdminReply<void> {
    return this.done('PUT', persistent(topic));
  }

  async putPersistentSubscription(topic: string, subscription: string): AdminReply<void> {
    const path = `${persistent(topic)}/subscription/${encodeURIComponent(subscription)}`;
    return this.done('PUT', path, { as: 'data' });
  }

  async deletePersistentSubscription(topic: string, subscription: string): AdminReply<void> {
    const path = `${persistent(topic)}/subscription/${encodeURIComponent(subscription)}?force=true`;
    return this.done('DELETE', path, { as: 'data' });
  }

  // ---- the broker

  /** The configuration of the broker that answers, as texts. Needs a super-user. */
  async brokerConfiguration(): AdminReply<Readonly<Record<string, unknown>>> {
    return this.read('brokers/configuration/runtime', objectOf, undefined, 'layout');
  }

  private async done(
    method: 'PUT' | 'POST' | 'DELETE',
    path: string,
    { body, as = 'layout' }: { readonly body?: unknown; readonly as?: 'data' | 'layout' } = {},
  ): AdminReply<void> {
    const result = await this.http.call({ method, path, body, as });
    return result.type === 'ok' ? { type: 'ok', value: undefined } : result;
  }

  private async read<T>(
    path: string,
    parse: (value: unknown) => T,
    signal?: AbortSignal,
    as: 'data' | 'layout' = 'data',
  ): AdminReply<T> {
    const result = await this.http.call({ method: 'GET', path, as, ...(signal === undefined ? {} : { signal }) });
    if (result.type !== 'ok') return result;
    try {
      // A policy that is not set is an empty answer.
      return { type: 'ok', value: parse(result.value.trim() === '' ? undefined : JSON.parse(result.value)) };
    } catch (error) {
      return { type: 'unavailable', reason: `an answer to ${path} that is none: ${messageOf(error)}` };
    }
  }
}

function scalable(topic: string): string {
  return `scalable/${topicPath(topic.replace(/^topic:\/\//, ''), topic)}`;
}

function persistent(topic: string): string {
  return `persistent/${topicPath(topic.replace(/^persistent:\/\//, ''), topic)}`;
}

export function texts(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new Error('it is no list of texts');
}

function policyOf(value: unknown): AutoScalePolicy | undefined {
  if (value === undefined || value === null) return undefined;
  const entries = Object.entries(value).filter(([, set]) => typeof set === 'number' || typeof set === 'boolean');
  return Object.fromEntries(entries);
}

function subscriptionsOf(value: unknown): ReadonlyMap<string, TopicSubscription> {
  const subscriptions = Object.entries(objectOf(objectOf(value).subscriptions ?? {}));
  return new Map(
    subscriptions.map(([name, subscription]) => {
      const { type, segments, uncoveredSegmentIds } = objectOf(subscription);
      const backlogs = Object.entries(objectOf(segments ?? {})).map(
        ([id, segment]) => [Number(id), countOf(objectOf(segment).msgBacklog)] as const,
      );
      const uncovered = Array.isArray(uncoveredSegmentIds) ? uncoveredSegmentIds.map(countOf) : [];
      return [name, { type: String(type), backlogs: new Map(backlogs), uncovered }];
    }),
  );
}

export function objectOf(value: unknown): Record<string, unknown> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (isObject) return value as Record<string, unknown>;
  throw new Error(`${show(value)} is no object`);
}

function countOf(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new Error(`${show(value)} is no count`);
}
