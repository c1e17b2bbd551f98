/**
 * What an operator can get wrong: `--check` and the program itself say which thing is wrong and what to do about it, end,
 * and have changed nothing on either cluster.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Broker, type Brokers, startBrokers } from './brokers.js';
import { ReplicatorProcess } from './replicator.js';
import { rest } from './rest.js';

let brokers: Brokers;
let a: Broker;
let b: Broker;
const folder = mkdtempSync(join(tmpdir(), 'isthmus-bad-input-'));

const TENANT = 'orders';
const SPACE = `${TENANT}/data`;

beforeAll(async () => {
  // `a` has TLS, tokens and rights, `b` has nothing of it.
  brokers = await startBrokers(2, (i) => ({ secure: i === 0 }));
  [a, b] = brokers.all as [Broker, Broker];
  for (const [name, role] of [
    ['super', 'admin'],
    ['data', 'worker'],
    ['layout', 'owner'],
    ['stranger', 'stranger'],
  ] as const) {
    writeFileSync(join(folder, name), a.secure?.token(role) ?? '');
  }
  writeFileSync(join(folder, 'expired'), a.secure?.token('worker', { expiresInSeconds: -60 }) ?? '');
  writeFileSync(join(folder, 'garbled'), 'not a token');
  for (const broker of [a, b]) {
    await rest(broker, 'PUT', `tenants/${TENANT}`, { adminRoles: ['owner'], allowedClusters: [broker.name] });
    await rest(broker, 'PUT', `namespaces/${SPACE}`);
    await rest(broker, 'POST', `namespaces/${SPACE}/permissions/worker`, ['produce', 'consume']);
    await rest(broker, 'PUT', `scalable/${SPACE}/good?numInitialSegments=2`, {});
  }
  await rest(a, 'PUT', `scalable/${SPACE}/here?numInitialSegments=2`, {});
  await rest(a, 'PUT', `scalable/${SPACE}/unequal?numInitialSegments=3`, {});
  await rest(b, 'PUT', `scalable/${SPACE}/unequal?numInitialSegments=2`, {});
  await rest(a, 'PUT', `scalable/${SPACE}/classic?numInitialSegments=2`, {});
  await rest(a, 'PUT', `scalable/${SPACE}/parts?numInitialSegments=2`, {});
  await rest(b, 'PUT', `persistent/${SPACE}/classic`);
  await rest(b, 'PUT', `persistent/${SPACE}/parts/partitions`, 2);
});
afterAll(async () => {
  await brokers?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Settings of a cluster, those of `a` with its authority and the token of a super-user. */
function cluster(broker: Broker, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { serviceUrl, adminUrl, secure } = broker;
  return {
    serviceUrls: [serviceUrl],
    adminUrls: [adminUrl],
    ...(secure === undefined ? {} : { caFile: secure.caFile, token: token('super') }),
    ...more,
  };
}

function token(name: string): { readonly file: string } {
  return { file: join(folder, name) };
}

/** Everything on a cluster that replication could have made or changed, as text. */
async function contents(broker: Broker): Promise<string> {
  const lines: string[] = [];
  for (const tenant of (await rest(broker, 'GET', 'tenants')) as readonly string[]) {
    // The brokers' own: they make topics there whenever their health is asked for.
    if (tenant === 'pulsar') continue;
    for (const namespace of (await rest(broker, 'GET', `namespaces/${tenant}`)) as readonly string[]) {
      lines.push(`${namespace} ${JSON.stringify(await rest(broker, 'GET', `namespaces/${namespace}`))}`);
      const topics = (await rest(broker, 'GET', `scalable/${namespace}`)) as readonly string[];
      for (const topic of topics) lines.push(`${topic} ${await scalable(broker, topic.replace('topic://', ''))}`);
      for (const topic of (await rest(broker, 'GET', `namespaces/${namespace}/topics?mode=ALL`)) as readonly string[]) {
        const path = `persistent/${topic.replace('persistent://', '')}`;
        const isOrdinary = topic.startsWith('persistent://');
        lines.push(`${topic} ${isOrdinary ? await rest(broker, 'GET', `${path}/subscriptions`) : ''}`);
      }
    }
  }
  return lines.sort().join('\n');
}

async function scalable(broker: Broker, topic: string): Promise<string> {
  const [layout, policy] = await Promise.all(
    ['', '/autoScalePolicy'].map((path) => rest(broker, 'GET', `scalable/${topic}${path}`)),
  );
  const { subscriptions = {} } = (await rest(broker, 'GET', `scalable/${topic}/stats`)) as { subscriptions?: object };
  return JSON.stringify({ layout, policy, subscriptions: Object.keys(subscriptions) });
}

interface Wrong {
  readonly clusters?: Readonly<Record<string, unknown>>;
  readonly topics?: readonly string[];
  readonly more?: Readonly<Record<string, unknown>>;
}

/** Runs the check and the program; both end with a code, having said all of `said` and changed nothing. */
async function expectRefused(
  { clusters = {}, topics = [`${SPACE}/good`], more = {} }: Wrong,
  code: number,
  said: readonly RegExp[],
): Promise<void> {
  const before = [await contents(a), await contents(b)];
  const described = { a: cluster(a), b: cluster(b), ...clusters };
  const settings = { clusters: [], topics, more: { clusters: described, ...more } };
  const runs = [['--check'], []].map((args) => ReplicatorProcess.run(settings, args));
  for (const ended of await Promise.all(runs)) {
    for (const text of said) expect(ended.output).toMatch(text);
    expect(ended.output).not.toMatch(/ready to replicate|\n {4}at /);
    expect(ended.code).toBe(code);
  }
  expect([await contents(a), await contents(b)]).toEqual(before);
}

it('with nothing wrong the check says so, and changes nothing either', async () => {
  const before = [await contents(a), await contents(b)];
  const clusters = { a: cluster(a, { token: token('data'), layoutToken: token('layout') }), b: cluster(b) };
  const more = { clusters, stateNamespace: `${TENANT}/isthmus` };
  const { code, output } = await ReplicatorProcess.run({ clusters: [], topics: [`${SPACE}/good`], more }, ['--check']);
  expect(output).toMatch(/ready to replicate/);
  expect(output).toMatch(/namespace orders\/isthmus/);
  expect(code).toBe(0);
  expect([await contents(a), await contents(b)]).toEqual(before);
});

describe('a cluster', () => {
  it('that does not answer at its service URL', async () => {
    const clusters = { b: cluster(b, { serviceUrls: ['pulsar://127.0.0.1:9'] }) };
    await expectRefused({ clusters }, 1, [/cluster b: pulsar:\/\/127\.0\.0\.1:9: .*refused/i, /remedy: .*serviceUrls/]);
  });

  it('that does not answer at its admin URL', async () => {
    const clusters = { b: cluster(b, { adminUrls: ['http://127.0.0.1:9'] }) };
    await expectRefused({ clusters }, 1, [/cluster b: http:\/\/127\.0\.0\.1:9: .*refused/i, /remedy: .*adminUrls/]);
  });

  it('whose two URLs are mixed up', async () => {
    const address = (url: string) => url.replace(/^.*\/\//, '');
    const clusters = {
      b: cluster(b, {
        serviceUrls: [`pulsar://${address(b.adminUrl)}`],
        adminUrls: [`http://${address(b.serviceUrl)}`],
      }),
    };
    await expectRefused({ clusters }, 1, [/fault: cluster b: pulsar:\/\//, /remedy: .*serviceUrls/]);
  });

  it('whose certificate is nobody’s that is known', async () => {
    const { caFile: _, ...settings } = cluster(a);
    await expectRefused({ clusters: { a: settings } }, 1, [
      /fault: cluster a: pulsar\+ssl:\/\/.*certificate/,
      /remedy: .*caFile/,
    ]);
  });

  it('that is spoken to without TLS at its port for it', async () => {
    const { serviceUrl } = a;
    const clusters = { a: cluster(a, { serviceUrls: [serviceUrl.replace('+ssl', '')] }) };
    await expectRefused({ clusters }, 1, [/fault: cluster a: pulsar:\/\//, /remedy: /]);
  });
});

describe('a token', () => {
  it('that is none, or has expired', async () => {
    for (const name of ['garbled', 'expired']) {
      const clusters = { a: cluster(a, { token: token(name) }) };
      await expectRefused({ clusters }, 1, [/fault: cluster a: .*authenticate/, /remedy: name a valid token/]);
    }
  });

  it('that is missing', async () => {
    const { token: _, ...settings } = cluster(a);
    await expectRefused({ clusters: { a: settings } }, 1, [/fault: cluster a: .*authenticate/, /remedy: .*token/]);
  });

  it('of a role that may nothing', async () => {
    const clusters = { a: cluster(a, { token: token('stranger') }) };
    const said = [/fault: topic orders\/data\/good on cluster a: .*unauthori/i, /remedy: .*produce and consume/];
    await expectRefused({ clusters }, 1, said);
    const more = { namespaces: [SPACE] };
    await expectRefused({ clusters, more }, 1, [
      /fault: cluster a: .*refuses this role/,
      /remedy: .*produce and consume/,
    ]);
  });

  it('whose file is not there', async () => {
    const clusters = { a: cluster(a, { token: token('absent') }) };
    await expectRefused({ clusters }, 1, [/fault: cluster a: .*absent/, /remedy: .*token/]);
  });

  it('that may not change layouts', async () => {
    const clusters = { a: cluster(a, { token: token('data') }) };
    await expectRefused({ clusters }, 1, [
      /fault: topic orders\/data\/good on cluster a: layout changes are not allowed/,
      /remedy: name a layoutToken of a tenant admin, or set convergeLayouts to false/,
    ]);
  });
});

describe('a topic', () => {
  it('that is missing, classic (partitioned or not), or began with 3 segments here and 2 there', async () => {
    const topics = ['here', 'nowhere', 'classic', 'parts', 'unequal'].map((name) => `${SPACE}/${name}`);
    await expectRefused({ topics }, 1, [
      /fault: topic orders\/data\/here on cluster b: it does not exist\n {2}remedy: create it with the same number of initial/,
      /fault: topic orders\/data\/nowhere on cluster a: it does not exist/,
      /fault: topic orders\/data\/nowhere on cluster b: it does not exist/,
      /fault: topic orders\/data\/classic on cluster b: it is a classic topic.*\n {2}remedy: migrate it/,
      /fault: topic orders\/data\/parts on cluster b: it is a classic topic/,
      /fault: topic orders\/data\/unequal: its segments \(3 and 2\) cannot be split to the same ranges/,
      /remedy: create the topic with the same number of initial segments on both, or set convergeLayouts/,
    ]);
  });

  it('in a namespace that is missing, and a namespace that is', async () => {
    const more = { namespaces: [`${TENANT}/typo`] };
    for (const wrong of [{ topics: [`${TENANT}/typo/good`] }, { more }]) {
      await expectRefused(wrong, 1, [
        /fault: cluster a: namespace orders\/typo does not exist/,
        /fault: cluster b: namespace orders\/typo does not exist/,
        /remedy: create it, or correct its name/,
      ]);
    }
  });
});

it('a configuration that cannot be used ends with 2, every fault with its place', async () => {
  const more = { directions: [['a', 'c']], budget: { slots: 0 }, tpyo: 1 };
  await expectRefused({ topics: ['good'], more }, 2, [
    /topics\[0\]: "good" is not tenant\/namespace\/topic/,
    /budget\.slots: 0 is not a whole number/,
    /tpyo: there is no such setting/,
    /directions: c is not among the clusters/,
  ]);
  const clusters = { a: cluster(a, { caFile: join(folder, 'absent.pem') }) };
  await expectRefused({ clusters }, 2, [/absent\.pem/]);
});
