/**
 * Replication with TLS, tokens and the least rights that will do: one role that produces and consumes, and for layouts
 * another one that administers the tenant. What is needed besides, the operator has prepared.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { PulsarAdmin } from '../../src/adapters/pulsar/index.js';
import { type Broker, type Brokers, type Cluster, startBrokers } from './brokers.js';
import { JavaClients } from './java-client.js';
import { isConverged, ReplicatorProcess } from './replicator.js';
import { rest } from './rest.js';
import { BOTH, expectEqual, settle, waitFor, write } from './scenario.js';
import { expectOk, type Side, subscribeCheck } from './stage.js';

let brokers: Brokers;
let stage: { readonly a: Side; readonly b: Side; readonly java: JavaClients };
const running: ReplicatorProcess[] = [];
const folder = mkdtempSync(join(tmpdir(), 'isthmus-secure-'));

const TENANT = 'orders';
const SPACE = `${TENANT}/data`;
const STATE = `${TENANT}/isthmus`;

beforeAll(async () => {
  brokers = await startBrokers(2, { secure: true });
  const java = await JavaClients.start();
  const [a, b] = (await Promise.all(brokers.all.map((broker) => openSide(broker, java)))) as [Side, Side];
  stage = { a, b, java };
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((replicator) => replicator.stop()));
});
afterAll(async () => {
  await stage?.java.stop();
  await brokers?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A cluster as its operator has prepared it: the state's namespace with its topics, and who may do what. */
async function openSide(broker: Broker, java: JavaClients): Promise<Side> {
  await rest(broker, 'PUT', `tenants/${TENANT}`, { adminRoles: ['owner'], allowedClusters: [broker.name] });
  for (const namespace of [SPACE, STATE]) {
    await rest(broker, 'PUT', `namespaces/${namespace}`);
    await rest(broker, 'POST', `namespaces/${namespace}/permissions/worker`, ['produce', 'consume']);
  }
  await rest(broker, 'PUT', `namespaces/${STATE}/compactionThreshold`, 1024 * 1024);
  for (const topic of ['state', 'lock']) await rest(broker, 'PUT', `persistent/${STATE}/${topic}`);
  const { secure, serviceUrl, adminUrl } = broker;
  if (secure === undefined) throw new Error(`broker ${broker.name} is secure`);
  expect([serviceUrl, adminUrl]).toEqual([expect.stringMatching(/^pulsar\+ssl:/), expect.stringMatching(/^https:/)]);
  writeFileSync(join(folder, `${broker.name}.worker`), secure.token('worker'));
  writeFileSync(join(folder, `${broker.name}.owner`), secure.token('owner'));
  const admin = new PulsarAdmin({ urls: [adminUrl], ca: secure.ca, token: () => secure.token('owner') });
  return { broker, admin, java: await java.open(broker, { role: 'admin' }) };
}

async function freshTopic(name: string): Promise<string> {
  for (const { broker, admin } of [stage.a, stage.b]) {
    expectOk(await admin.createScalable(`${SPACE}/${name}`, 2));
    await subscribeCheck(broker, `${SPACE}/${name}`);
  }
  return `${SPACE}/${name}`;
}

interface Access {
  /** The file of the data token, by what its name ends with. */
  readonly data?: string;
  readonly hasLayoutToken?: boolean;
}

async function replicate(
  topic: string,
  { data = 'worker', hasLayoutToken = true }: Access,
  more: Readonly<Record<string, unknown>> = {},
): Promise<ReplicatorProcess> {
  const clusters = [stage.a, stage.b].map(({ broker: { name, serviceUrl, adminUrl, secure } }) => [
    name,
    {
      serviceUrls: [serviceUrl],
      adminUrls: [adminUrl],
      caFile: secure?.caFile,
      token: { file: join(folder, `${name}.${data}`) },
      ...(hasLayoutToken ? { layoutToken: { file: join(folder, `${name}.owner`) } } : {}),
    },
  ]);
  const all = { clusters: Object.fromEntries(clusters), stateNamespace: STATE, ...more };
  const replicator = await ReplicatorProcess.start({ clusters: [], topics: [topic], more: all });
  running.push(replicator);
  return replicator;
}

it('both ways, and a split converges: one role produces and consumes, another one changes layouts', async () => {
  const topic = await freshTopic('both');
  const replicator = await replicate(topic, {});
  const writing = [
    write(stage.a, topic, { count: 1_500, seed: 1, ratePerSecond: 300 }),
    write(stage.b, topic, { count: 1_500, seed: 2, ratePerSecond: 300 }),
  ];
  await sleep(1_500);
  expectOk(await stage.a.admin.split(topic, 0));
  const there = async () => expectOk(await stage.b.admin.scalableLayout(topic)).active;
  await waitFor('the split has spread', async () => (await there()).length === 3);
  await replicator.until('the layouts have met', isConverged);
  expect((await there()).length).toBe(3);
  const written = await Promise.all(writing);
  await settle(stage, topic, replicator, BOTH);
  await expectEqual(stage, topic, written, 3_000);
});

it('with the data role alone layouts stay as they are, and what does not fit is re-batched', async () => {
  const topic = await freshTopic('data');
  const replicator = await replicate(topic, { hasLayoutToken: false }, { convergeLayouts: false });
  const writing = write(stage.a, topic, { count: 1_500, seed: 3, ratePerSecond: 300 });
  await sleep(1_500);
  expectOk(await stage.b.admin.split(topic, 0));
  const written = await writing;
  await settle(stage, topic, replicator);
  expect(expectOk(await stage.a.admin.scalableLayout(topic)).epoch).toBe(0);
  const { topics } = await replicator.status();
  expect(topics[0]?.directions[0]?.counters.rebatchedEntries).toBeGreaterThan(0);
  await expectEqual(stage, topic, [written], 1_500);
});

it('sessions outlive the token that they began with, as the file gets a fresh one in time', async () => {
  const topic = await freshTopic('fresh');
  const renew = () => {
    for (const { broker } of [stage.a, stage.b]) {
      const file = join(folder, `${broker.name}.short`);
      writeFileSync(`${file}.new`, broker.secure?.token('worker', { expiresInSeconds: 20 }) ?? '');
      renameSync(`${file}.new`, file);
    }
  };
  renew();
  const replicator = await replicate(topic, { data: 'short' });
  const timer = setInterval(renew, 8_000);
  try {
    const connections = () => Promise.all([stage.a, stage.b].map(({ broker }) => connectionsOf(broker)));
    const writing = write(stage.a, topic, { count: 3_000, seed: 5, ratePerSecond: 100 });
    await sleep(8_000);
    const before = await connections();
    expect(Math.min(...before)).toBeGreaterThan(0);
    const written = await writing;
    await settle(stage, topic, replicator);
    expect(await connections()).toEqual(before);
    await expectEqual(stage, topic, [written], 3_000);
  } finally {
    clearInterval(timer);
  }
});

/** How many connections a broker has taken so far. */
async function connectionsOf({ secure }: Cluster): Promise<number> {
  const metrics = await (await fetch(`${secure?.plainAdminUrl}/metrics/`)).text();
  const counts = [...metrics.matchAll(/^pulsar_connection_created_total_count\{.*\} ([\d.]+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}
