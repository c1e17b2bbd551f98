/** The admin REST of a secure broker: TLS with its own authority, tokens of roles, and what each role may do. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminOptions, namespaceLimits, PulsarAdmin } from '../../src/adapters/pulsar/admin/index.js';
import { type Broker, type Brokers, type SecureAccess, startBrokers } from './brokers.js';
import { JavaClients } from './java-client.js';
import { expectOk } from './stage.js';

const TOPIC = 'topic://team/data/x';

let brokers: Brokers;
let broker: Broker;
let secure: SecureAccess;

beforeAll(async () => {
  brokers = await startBrokers(1, { secure: true });
  broker = brokers.all[0] as Broker;
  secure = broker.secure as SecureAccess;
  await asOperator('PUT', 'tenants/team', { adminRoles: ['layout'], allowedClusters: [broker.name] });
  await asOperator('PUT', 'namespaces/team/data');
  await asOperator('POST', 'namespaces/team/data/permissions/data', ['produce', 'consume']);
});
afterAll(() => brokers?.stop());

/** What an operator does beforehand. */
async function asOperator(method: string, path: string, body?: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${secure.token('admin')}`, 'content-type': 'application/json' };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${secure.plainAdminUrl}/admin/v2/${path}`, { method, headers, ...content });
  expect([response.status, await response.text()]).toEqual([204, '']);
}

function adminOf(options: Partial<AdminOptions> = {}): PulsarAdmin {
  return new PulsarAdmin({ urls: [broker.adminUrl], ca: secure.ca, ...options });
}

const asRoles = (data: string, layout = data) =>
  adminOf({ token: () => secure.token(data), layoutToken: () => secure.token(layout) });

describe('a data role and a tenant admin', () => {
  it('do together all that replication needs', async () => {
    const admin = asRoles('data', 'layout');
    const ok = expect.objectContaining({ type: 'ok' });
    expect(await admin.createScalable(TOPIC, 2)).toEqual(ok);
    expect(await admin.createScalable(TOPIC, 2)).toMatchObject({ type: 'conflict' });
    expect(await admin.scalableTopics('team/data')).toEqual({ type: 'ok', value: [TOPIC] });
    expect(await admin.putSubscription(TOPIC, 'isthmus.b')).toEqual(ok);
    expect(await admin.putSubscription(TOPIC, 'isthmus.b')).toEqual(ok);
    expect(await admin.split(TOPIC, 0)).toEqual(ok);
    expect(await admin.merge(TOPIC, 2, 3)).toEqual(ok);
    expect(await admin.rebucket(TOPIC, 4, 8)).toEqual(ok);
    expect(await admin.split(TOPIC, 0)).toMatchObject({ type: 'refused' });
    const layout = await admin.scalableLayout(TOPIC);
    expect(layout).toMatchObject({ type: 'ok', value: { epoch: 3, nextSegmentId: 6 } });
    const subscription = expectOk(await admin.subscriptions(TOPIC)).get('isthmus.b');
    expect(subscription?.type).toBe('QUEUE');
    expect(subscription?.backlogs.get(5)).toBe(0);
    expect(await admin.skipAll(TOPIC, 'isthmus.b')).toEqual(ok);
    expect(await admin.deleteSubscription(TOPIC, 'isthmus.b')).toEqual(ok);
    expect(await admin.autoScalePolicy(TOPIC)).toEqual({ type: 'ok', value: undefined });
    expect(await admin.setAutoScalePolicy(TOPIC, { enabled: false })).toEqual(ok);
    expect(await admin.autoScalePolicy(TOPIC)).toEqual({ type: 'ok', value: { enabled: false } });
    expect(await admin.deleteScalable('team/data/missing')).toMatchObject({ type: 'notFound' });
    expect(await admin.subscriptions('team/data/missing')).toMatchObject({ type: 'notFound' });
  });

  it('make the namespace and the topics of its own state', async () => {
    const admin = asRoles('data', 'layout');
    const [state, lock] = ['persistent://team/isthmus/state', 'persistent://team/isthmus/lock'] as const;
    expect(await admin.namespacePolicy('team/isthmus', 'compactionThreshold')).toMatchObject({ type: 'notFound' });
    expect(await admin.createNamespace('team/isthmus')).toMatchObject({ type: 'ok' });
    expect(await admin.createNamespace('team/isthmus')).toMatchObject({ type: 'conflict' });
    expect(await admin.namespaces('team')).toMatchObject({ value: expect.arrayContaining(['team/isthmus']) });
    expect(await admin.setNamespacePolicy('team/isthmus', 'compactionThreshold', 65_536)).toMatchObject({ type: 'ok' });
    expect(await admin.namespacePolicy('team/isthmus', 'compactionThreshold')).toEqual({ type: 'ok', value: 65_536 });
    expect(await admin.setNamespacePolicy('team/isthmus', 'subscriptionExpirationTime', 0)).toMatchObject({
      type: 'ok',
    });
    for (const topic of [state, lock]) expect(await admin.createPersistent(topic)).toMatchObject({ type: 'ok' });
    expect(await admin.createPersistent(lock)).toMatchObject({ type: 'conflict' });
    await asOperator('POST', 'namespaces/team/isthmus/permissions/data', ['produce', 'consume']);
    expect(await admin.putPersistentSubscription(lock, 'keep')).toMatchObject({ type: 'ok' });
    const topics = await admin.persistentTopics('team/isthmus');
    expect(topics).toMatchObject({ type: 'ok', value: expect.arrayContaining([state, lock]) });
    expect(await admin.deletePersistentSubscription(lock, 'keep')).toMatchObject({ type: 'ok' });
  });
});

describe('rights', () => {
  it('without a tenant admin leave layouts alone', async () => {
    const admin = asRoles('data');
    expect(await admin.scalableLayout(TOPIC)).toMatchObject({ type: 'ok' });
    for (const result of [
      await admin.split(TOPIC, 5),
      await admin.createScalable('team/data/y', 1),
      await admin.autoScalePolicy(TOPIC),
      await admin.namespacePolicy('team/data', 'messageTTL'),
      await admin.createNamespace('team/other'),
    ]) {
      expect(result).toMatchObject({ type: 'unauthorized' });
    }
  });

  it.each<[string, () => Partial<AdminOptions>, RegExp]>([
    ['no token', () => ({}), /Authentication required/],
    ['an expired token', () => ({ token: () => secure.token('data', { expiresInSeconds: -60 }) }), /./],
    ['a token of another broker', () => ({ token: () => `${secure.token('data').slice(0, -4)}AAAA` }), /./],
    ['a role without rights', () => ({ token: () => secure.token('stranger') }), /./],
  ])('%s is unauthorized', async (_, options, reason) => {
    const result = await adminOf(options()).scalableTopics('team/data');
    expect(result).toMatchObject({ type: 'unauthorized', reason: expect.stringMatching(reason) });
  });

  it('an authority that is not known is unavailable', async () => {
    const admin = new PulsarAdmin({ urls: [broker.adminUrl], token: () => secure.token('data') });
    expect(await admin.scalableLayout(TOPIC)).toMatchObject({
      type: 'unavailable',
      reason: expect.stringMatching(/cert/),
    });
  });

  it('decide what is known of limits', async () => {
    await asOperator('POST', 'namespaces/team/data/messageTTL', 3_600);
    await asOperator('POST', 'namespaces/team/data/subscriptionAuthMode', 'Prefix');
    const [operator, layout, data] = await Promise.all(
      [asRoles('admin'), asRoles('data', 'layout'), asRoles('data')].map((admin) =>
        namespaceLimits(admin, 'team/data'),
      ),
    );
    const set = { messageTtlSeconds: 3_600, subscriptionAuthMode: 'Prefix' };
    expect(operator).toMatchObject({ type: 'ok', value: { ...set, transactions: false, maxProducersPerTopic: 0 } });
    expect(layout).toMatchObject({ type: 'ok', value: { ...set, transactions: 'unknown', publishRate: 'unknown' } });
    expect(data).toMatchObject({ type: 'ok', value: { messageTtlSeconds: 'unknown', transactions: 'unknown' } });
    expect(await namespaceLimits(asRoles('admin'), 'team/missing')).toMatchObject({ type: 'notFound' });
    // A subscription must now begin with the role's name.
    expect(await asRoles('data').putSubscription(TOPIC, 'isthmus.b')).toMatchObject({ type: 'unauthorized' });
    expect(await asRoles('data').putSubscription(TOPIC, 'data-isthmus.b')).toMatchObject({ type: 'ok' });
  });
});

it('the clients of Pulsar itself come in with the same tokens', async () => {
  const java = await JavaClients.start();
  try {
    const clients = await java.open(broker, { role: 'data' });
    const producer = await clients.producer(TOPIC, { compression: 'zstd' });
    await producer.generate({ count: 200, seed: 1, tally: 'sent' });
    const consumer = await clients.streamConsumer(TOPIC, 'data-check');
    await consumer.read({ count: 200, tally: 'read' });
    expect(await java.compare('sent', 'read')).toMatchObject({ left: 200, right: 200, missing: 0, orderBreaks: 0 });
    const stranger = await java.open(
      { ...broker, serviceUrl: broker.serviceUrl, name: 'stranger', secure },
      { role: 'stranger' },
    );
    await expect(stranger.producer(TOPIC)).rejects.toThrow(/not authorized|Unauthorized|Authorization/i);
  } finally {
    await java.stop();
  }
});
