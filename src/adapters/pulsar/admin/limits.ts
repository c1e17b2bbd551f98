/**
 * What a namespace allows and takes away, as far as it concerns replication: times to live, quotas and rates that hold a
 * producer up, counts of producers and consumers. A value that is not set in the namespace is the broker's own, which
 * only a super-user may read.
 */
import { show } from '../../../errors.js';
import type { PulsarAdmin } from './admin.js';
import type { AdminFailure, AdminResult } from './http.js';

/** A value, or that these credentials may not read it. */
export type Known<T> = T | 'unknown';

/** What holds for the topics of a namespace; numbers are 0 where there is no limit. */
export interface NamespaceLimits {
  /** Unread entries older than this are passed over. */
  readonly messageTtlSeconds: Known<number>;
  /** A subscription that nobody was connected to for so long is deleted. */
  readonly subscriptionExpirationMinutes: Known<number>;
  /** What a backlog of any subscription may grow to; undefined without a limit. */
  readonly backlogQuota: Known<BacklogQuota | undefined>;
  /** Of one topic; each 0 without a limit. */
  readonly publishRate: Known<{ readonly messagesPerSecond: number; readonly bytesPerSecond: number }>;
  readonly maxProducersPerTopic: Known<number>;
  readonly maxConsumersPerTopic: Known<number>;
  readonly maxConsumersPerSubscription: Known<number>;
  /** `Prefix`: a subscription's name begins with the role that uses it. */
  readonly subscriptionAuthMode: Known<'None' | 'Prefix'>;
  /** Whether the broker takes part in transactions. */
  readonly transactions: Known<boolean>;
}

export interface BacklogQuota {
  /** Each 0 without a limit. */
  readonly bytes: number;
  readonly seconds: number;
  /** What happens then: `consumer_backlog_eviction` loses entries, the others hold producers up. */
  readonly policy: string;
}

/** Fails with `notFound` for a namespace that does not exist; missing rights make values `unknown` instead. */
export async function namespaceLimits(admin: PulsarAdmin, namespace: string): Promise<AdminResult<NamespaceLimits>> {
  const [policies, broker] = await Promise.all([admin.namespacePolicies(namespace), admin.brokerConfiguration()]);
  for (const result of [policies, broker]) if (isInTheWay(result)) return result;
  const own = policies.type === 'ok' ? policies.value : undefined;
  const defaults = broker.type === 'ok' ? broker.value : undefined;
  try {
    return { type: 'ok', value: limitsOf(own, defaults) };
  } catch (error) {
    return {
      type: 'unavailable',
      reason: `policies of ${namespace}: ${error instanceof Error ? error.message : error}`,
    };
  }
}

function isInTheWay(result: AdminResult<unknown>): result is AdminFailure {
  return result.type !== 'ok' && result.type !== 'unauthorized';
}

type Values = Readonly<Record<string, unknown>>;

function limitsOf(own: Values | undefined, defaults: Values | undefined): NamespaceLimits {
  /** The namespace's number where it is set, else the broker's; below 0 is no limit, as 0 is. */
  const number = (policy: string, setting: string): Known<number> => {
    const set = own?.[policy] ?? undefined;
    if (own === undefined || (set === undefined && defaults === undefined)) return 'unknown';
    return limitOf(set ?? defaults?.[setting], set === undefined ? setting : policy);
  };
  return {
    messageTtlSeconds: number('message_ttl_in_seconds', 'ttlDurationDefaultInSeconds'),
    subscriptionExpirationMinutes: number('subscription_expiration_time_minutes', 'subscriptionExpirationTimeMinutes'),
    backlogQuota: backlogQuotaOf(own, defaults),
    publishRate: publishRateOf(own, defaults),
    maxProducersPerTopic: number('max_producers_per_topic', 'maxProducersPerTopic'),
    maxConsumersPerTopic: number('max_consumers_per_topic', 'maxConsumersPerTopic'),
    maxConsumersPerSubscription: number('max_consumers_per_subscription', 'maxConsumersPerSubscription'),
    subscriptionAuthMode: own === undefined ? 'unknown' : own.subscription_auth_mode === 'Prefix' ? 'Prefix' : 'None',
    transactions: defaults === undefined ? 'unknown' : defaults.transactionCoordinatorEnabled === 'true',
  };
}

/** The quota on what is stored and the one on how old it is are set apart from each other, with a policy each. */
function backlogQuotaOf(own: Values | undefined, defaults: Values | undefined): Known<BacklogQuota | undefined> {
  if (own === undefined) return 'unknown';
  const quotas = Object.values(objectOf(own.backlog_quota_map)).map(objectOf);
  if (quotas.length > 0) {
    const bytes = Math.max(0, ...quotas.map(({ limitSize }) => limitOf(limitSize ?? 0, 'limitSize')));
    const seconds = Math.max(0, ...quotas.map(({ limitTime }) => limitOf(limitTime ?? 0, 'limitTime')));
    const evicting = quotas.find(({ policy }) => policy === 'consumer_backlog_eviction');
    return { bytes, seconds, policy: String((evicting ?? quotas[0])?.policy) };
  }
  if (defaults === undefined) return 'unknown';
  const gigabytes = limitOf(defaults.backlogQuotaDefaultLimitGB ?? 0, 'backlogQuotaDefaultLimitGB');
  const bytes = limitOf(defaults.backlogQuotaDefaultLimitBytes ?? 0, 'backlogQuotaDefaultLimitBytes');
  const seconds = limitOf(defaults.backlogQuotaDefaultLimitSecond ?? 0, 'backlogQuotaDefaultLimitSecond');
  if (gigabytes + bytes + seconds === 0) return undefined;
  const policy = String(defaults.backlogQuotaDefaultRetentionPolicy);
  return { bytes: bytes || gigabytes * 1024 ** 3, seconds, policy };
}

function publishRateOf(own: Values | undefined, defaults: Values | undefined): NamespaceLimits['publishRate'] {
  if (own === undefined) return 'unknown';
  // By the name of the cluster, and there is one cluster behind these brokers.
  const [set] = Object.values(objectOf(own.publishMaxMessageRate)).map(objectOf);
  if (set !== undefined) {
    return {
      messagesPerSecond: limitOf(set.publishThrottlingRateInMsg ?? 0, 'publishThrottlingRateInMsg'),
      bytesPerSecond: limitOf(set.publishThrottlingRateInByte ?? 0, 'publishThrottlingRateInByte'),
    };
  }
  if (defaults === undefined) return 'unknown';
  return {
    messagesPerSecond: limitOf(defaults.maxPublishRatePerTopicInMessages, 'maxPublishRatePerTopicInMessages'),
    bytesPerSecond: limitOf(defaults.maxPublishRatePerTopicInBytes, 'maxPublishRatePerTopicInBytes'),
  };
}

/** Configurations tell numbers as texts. */
function limitOf(value: unknown, name: string): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number === 'number' && Number.isFinite(number)) return Math.max(0, number);
  throw new Error(`${name} is ${show(value)}: a number is needed`);
}

function objectOf(value: unknown): Values {
  return typeof value === 'object' && value !== null ? (value as Values) : {};
}
