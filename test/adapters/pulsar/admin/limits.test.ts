/** What namespaces allow, from the stored policies and a broker's configuration as 5.0.1 tells them. */
import { describe, expect, it } from 'vitest';
import { type NamespaceLimits, namespaceLimits, PulsarAdmin } from '../../../../src/adapters/pulsar/admin/index.js';
import { serve } from '../../../support/http.js';

const FRESH = { backlog_quota_map: {}, publishMaxMessageRate: {}, subscription_auth_mode: 'None' };

const CONFIGURATION = {
  ...{ ttlDurationDefaultInSeconds: '0', subscriptionExpirationTimeMinutes: '0' },
  ...{ backlogQuotaDefaultLimitGB: '-1.0', backlogQuotaDefaultLimitBytes: '-1', backlogQuotaDefaultLimitSecond: '-1' },
  ...{ backlogQuotaDefaultRetentionPolicy: 'producer_request_hold' },
  ...{ maxPublishRatePerTopicInMessages: '0', maxPublishRatePerTopicInBytes: '0' },
  ...{ maxProducersPerTopic: '0', maxConsumersPerTopic: '0', maxConsumersPerSubscription: '0' },
  transactionCoordinatorEnabled: 'false',
};

const NO_LIMITS: NamespaceLimits = {
  messageTtlSeconds: 0,
  subscriptionExpirationMinutes: 0,
  backlogQuota: undefined,
  publishRate: { messagesPerSecond: 0, bytesPerSecond: 0 },
  maxProducersPerTopic: 0,
  maxConsumersPerTopic: 0,
  maxConsumersPerSubscription: 0,
  subscriptionAuthMode: 'None',
  transactions: false,
};

const LIMITED = {
  ...{ message_ttl_in_seconds: 3600, subscription_expiration_time_minutes: 5, subscription_auth_mode: 'Prefix' },
  backlog_quota_map: {
    destination_storage: { limitSize: 1_000_000, limitTime: -1, policy: 'producer_exception' },
    message_age: { limitSize: -1, limitTime: 60, policy: 'consumer_backlog_eviction' },
  },
  publishMaxMessageRate: { a: { publishThrottlingRateInMsg: 100, publishThrottlingRateInByte: -1 } },
  ...{ max_producers_per_topic: 5, max_consumers_per_topic: 6, max_consumers_per_subscription: 7 },
};

const LIMITS: NamespaceLimits = {
  messageTtlSeconds: 3600,
  subscriptionExpirationMinutes: 5,
  backlogQuota: { bytes: 1_000_000, seconds: 60, policy: 'consumer_backlog_eviction' },
  publishRate: { messagesPerSecond: 100, bytesPerSecond: 0 },
  maxProducersPerTopic: 5,
  maxConsumersPerTopic: 6,
  maxConsumersPerSubscription: 7,
  subscriptionAuthMode: 'Prefix',
  transactions: 'unknown',
};

/** The limits of t/n where the two answers are these; a number is a status. */
async function limitsOf(policies: object | number, configuration: object | number) {
  const url = await serve((request, response) => {
    const answer = request.url === '/admin/v2/namespaces/t/n' ? policies : configuration;
    response.writeHead(typeof answer === 'number' ? answer : 200);
    response.end(typeof answer === 'number' ? '{"reason":"no"}' : JSON.stringify(answer));
  });
  return namespaceLimits(new PulsarAdmin({ urls: [url] }), 't/n');
}

describe('limits of a namespace', () => {
  it('are the own ones of the broker where nothing is set', async () => {
    expect(await limitsOf(FRESH, CONFIGURATION)).toEqual({ type: 'ok', value: NO_LIMITS });
    const result = await limitsOf(FRESH, {
      ...CONFIGURATION,
      ...{ ttlDurationDefaultInSeconds: '60', backlogQuotaDefaultLimitGB: '2.0', maxProducersPerTopic: '3' },
      ...{ maxPublishRatePerTopicInBytes: '1000', transactionCoordinatorEnabled: 'true' },
    });
    expect(result).toEqual({
      type: 'ok',
      value: {
        ...NO_LIMITS,
        messageTtlSeconds: 60,
        backlogQuota: { bytes: 2 * 1024 ** 3, seconds: 0, policy: 'producer_request_hold' },
        publishRate: { messagesPerSecond: 0, bytesPerSecond: 1000 },
        maxProducersPerTopic: 3,
        transactions: true,
      },
    });
  });

  it('are what is set, also for somebody who may not ask the broker', async () => {
    expect(await limitsOf(LIMITED, 401)).toEqual({ type: 'ok', value: LIMITS });
    expect(await limitsOf(LIMITED, CONFIGURATION)).toEqual({ type: 'ok', value: { ...LIMITS, transactions: false } });
  });

  it('are unknown where the rights do not suffice', async () => {
    const unset = await limitsOf(FRESH, 401);
    expect(unset).toMatchObject({ type: 'ok', value: { messageTtlSeconds: 'unknown', subscriptionAuthMode: 'None' } });
    const nothing = await limitsOf(403, 401);
    const values = nothing.type === 'ok' ? new Set(Object.values(nothing.value)) : undefined;
    expect(values).toEqual(new Set(['unknown']));
    const brokerOnly = await limitsOf(403, CONFIGURATION);
    expect(brokerOnly).toMatchObject({ type: 'ok', value: { messageTtlSeconds: 'unknown', transactions: false } });
  });

  it('fail for a namespace that is missing, and for answers that make no sense', async () => {
    expect(await limitsOf(404, CONFIGURATION)).toEqual({ type: 'notFound', reason: 'no' });
    expect(await limitsOf(FRESH, 503)).toEqual({ type: 'unavailable', reason: 'no' });
    const odd = await limitsOf({ ...FRESH, message_ttl_in_seconds: 'soon' }, CONFIGURATION);
    expect(odd).toMatchObject({
      type: 'unavailable',
      reason: expect.stringMatching(/message_ttl_in_seconds is "soon"/),
    });
  });
});
