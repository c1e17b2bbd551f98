/**
 * Provisioning on a broker with tokens and rights: what each role may ask and create, that who may not see a topic never
 * takes it for missing, and that a token that is renewed is taken up.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminOptions, pulsarTopicAdmin } from '../../src/adapters/pulsar/index.js';
import type { TopicAdmin, TopicName } from '../../src/ports/index.js';
import { type Broker, type Brokers, type SecureAccess, startBrokers } from './brokers.js';
import { shapeOn } from './provisioning-stage.js';
import { rest } from './rest.js';

let brokers: Brokers;
let broker: Broker;
let secure: SecureAccess;
const { signal } = new AbortController();

const named = (name: string, namespace = 'data'): TopicName => ({ tenant: 'team', namespace, name });

beforeAll(async () => {
  brokers = await startBrokers(1, { secure: true });
  broker = brokers.all[0] as Broker;
  secure = broker.secure as SecureAccess;
  await rest(broker, 'PUT', 'tenants/team', { adminRoles: ['owner'], allowedClusters: [broker.name] });
  await rest(broker, 'PUT', 'namespaces/team/data');
  await rest(broker, 'POST', 'namespaces/team/data/permissions/worker', ['produce', 'consume']);
  await rest(broker, 'PUT', 'persistent/team/data/parts/partitions', 2);
  await rest(broker, 'PUT', 'scalable/team/data/segments?numInitialSegments=2', {});
});
afterAll(() => brokers?.stop());

function adminOf(options: Partial<AdminOptions>): TopicAdmin {
  return pulsarTopicAdmin({ urls: [broker.adminUrl], ca: secure.ca, ...options });
}

const asRole = (role: string) => adminOf({ token: () => secure.token(role) });

it('a tenant admin may ask and create all that provisioning needs, with the token for layouts', async () => {
  const { lookUps, creations } = adminOf({
    token: () => secure.token('worker'),
    layoutToken: () => secure.token('owner'),
  });
  const admin = { lookUps, creations };
  const two = { starts: [0, 0x8000], segments: 2 };
  for (const [name, create, shape] of [
    ['plain', () => creations.createPlain(named('plain'), signal), { type: 'nonPartitioned' }],
    ['new', () => creations.createPartitioned(named('new'), 1, signal), { type: 'partitioned', partitions: 1 }],
    ['new', () => creations.expandPartitions(named('new'), 3, signal), { type: 'partitioned', partitions: 3 }],
    ['new', () => creations.completePartitions(named('new'), signal), { type: 'partitioned', absent: [] }],
    ['wide', () => creations.createScalable(named('wide'), two, signal), { type: 'scalable', starts: two.starts }],
  ] as const) {
    expect(await create()).toEqual({ type: 'done' });
    expect(await shapeOn(admin, named(name))).toMatchObject(shape);
  }
  expect(await shapeOn(admin, named('nothing'))).toEqual({ type: 'missing' });
  expect(await shapeOn(admin, named('x', 'elsewhere'))).toEqual({ type: 'namespaceMissing' });
});

it('a role that produces and consumes in the namespace may ask, which is enough where nothing is created', async () => {
  const admin = asRole('worker');
  expect(await shapeOn(admin, named('parts'))).toMatchObject({ type: 'partitioned', partitions: 2, absent: [] });
  expect(await shapeOn(admin, named('segments'))).toEqual({ type: 'scalable', starts: [0, 0x8000] });
  expect(await shapeOn(admin, named('absent'))).toEqual({ type: 'missing' });
  await expectNoCreation(admin);
});

/** Every creating call is refused, and leaves nothing behind. */
async function expectNoCreation({ creations }: TopicAdmin): Promise<void> {
  for (const result of [
    await creations.createPlain(named('mine'), signal),
    await creations.createPartitioned(named('mine'), 2, signal),
    await creations.completePartitions(named('parts'), signal),
    await creations.expandPartitions(named('parts'), 3, signal),
    await creations.createScalable(named('mine'), { starts: [0], segments: 1 }, signal),
  ]) {
    expect(result).toMatchObject({ type: 'refused' });
  }
  const owner = asRole('owner');
  expect(await shapeOn(owner, named('mine'))).toEqual({ type: 'missing' });
  expect(await shapeOn(owner, named('parts'))).toMatchObject({ type: 'partitioned', partitions: 2 });
}

describe('who has no rights there', () => {
  it.each<[string, () => TopicAdmin]>([
    ['a role without rights', () => asRole('stranger')],
    ['an expired token', () => adminOf({ token: () => secure.token('owner', { expiresInSeconds: -60 }) })],
    ['no token', () => adminOf({})],
  ])('%s: nothing is known, whether it is there or not, and nothing is created', async (_, connect) => {
    const admin = connect();
    for (const topic of [named('parts'), named('segments'), named('nothing'), named('x', 'elsewhere')]) {
      expect(await shapeOn(admin, topic)).toMatchObject({ type: 'unknown', failure: 'unauthorized' });
    }
    await expectNoCreation(admin);
  });

  it('a certificate of an authority that is not known, and a token that cannot be read, are no answer', async () => {
    const owner = () => secure.token('owner');
    const unknown = pulsarTopicAdmin({ urls: [broker.adminUrl], token: owner });
    const unreadable = adminOf({
      token: () => {
        throw new Error('no such file');
      },
    });
    for (const admin of [unknown, unreadable]) {
      expect(await shapeOn(admin, named('parts'))).toMatchObject({ type: 'unknown', failure: 'unavailable' });
    }
  });

  it('a token that is renewed is taken up at the next request', async () => {
    let token = secure.token('stranger');
    const admin = adminOf({ token: () => token });
    expect(await shapeOn(admin, named('parts'))).toMatchObject({ type: 'unknown' });
    token = secure.token('owner');
    expect(await shapeOn(admin, named('parts'))).toMatchObject({ type: 'partitioned' });
  });
});
