/**
 * Provisioning between two real clusters: every cell of the decision table that a cluster can be brought into, with
 * creation off and on. A proxy notes every request that a remote gets; what is not a look-up can create.
 */
import { pulsarTopicAdmin } from 'isthmus/adapters/pulsar';
import { testTopicAdmin } from 'isthmus/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SEEN } from '../../scripts/provisioning-seen.js';
import { cellOf, type LocalKind, policyFromConfig, type RemoteKind, ruleOf } from '../../src/provisioning/index.js';
import {
  exceeding,
  halfMade,
  lacking,
  type Make,
  makeNamespace,
  mixed,
  nothing,
  OFF,
  ON,
  orphans,
  ProvisioningStage,
  partitions,
  pathOf,
  plain,
  scalable,
  shapeOn,
  together,
  untilDecided,
} from './provisioning-stage.js';
import { rest } from './rest.js';

let stage: ProvisioningStage;
beforeAll(async () => {
  stage = await ProvisioningStage.open();
});
afterAll(() => stage?.close());
const LOCALS = {
  nonPartitioned: plain,
  partitioned: partitions(3),
  scalable: scalable(2),
} as const satisfies { readonly [kind in LocalKind]?: Make };

const both = together(scalable(2), plain);

/** Remotes by how they stand to these local topics. */
const REMOTES: { readonly [kind in RemoteKind]?: Make } = {
  missing: nothing,
  mixed,
  both,
  scalablePartial: halfMade,
  nonPartitioned: plain,
  partitioned: partitions(2),
  orphans: orphans(1),
  scalable: scalable(2),
  equal: partitions(3),
  equalAbsent: lacking(3, 1),
  equalBeyond: exceeding(3, 4),
  smaller: partitions(2),
  smallerBeyond: exceeding(2, 4),
  larger: partitions(5),
  orphansBelow: orphans(2),
  orphansAbove: orphans(3),
  sameSegments: scalable(2),
  otherSegments: scalable(4),
};

/** What comes of a local and a remote topic: with creation off; and with it on, by which calls. */
const CELLS: readonly [keyof typeof LOCALS, RemoteKind, off: string, on?: string, calls?: readonly string[]][] = [
  ['nonPartitioned', 'missing', 'wait topicMissing', 'replicate sameShape', ['PUT persistent/X']],
  ['nonPartitioned', 'nonPartitioned', 'replicate sameShape'],
  ['nonPartitioned', 'partitioned', 'stop typeMismatch'],
  ['nonPartitioned', 'orphans', 'stop orphansWithoutRecord'],
  ['nonPartitioned', 'scalable', 'stop kindMismatch'],
  ['nonPartitioned', 'mixed', 'stop mixed'],
  ['nonPartitioned', 'both', 'stop both'],
  ['nonPartitioned', 'scalablePartial', 'stop scalablePartial'],
  ['partitioned', 'missing', 'wait topicMissing', 'replicate sameShape', ['PUT persistent/X/partitions']],
  ['partitioned', 'nonPartitioned', 'stop typeMismatch'],
  ['partitioned', 'equal', 'replicate sameShape'],
  [
    'partitioned',
    'equalAbsent',
    'wait partitionsAbsent',
    'replicate sameShape',
    ['POST persistent/X/createMissedPartitions'],
  ],
  ['partitioned', 'equalBeyond', 'replicate orphansBeyond'],
  ['partitioned', 'smaller', 'stop partitionMismatch'],
  ['partitioned', 'smallerBeyond', 'stop orphansBeyond'],
  ['partitioned', 'larger', 'stop partitionMismatch'],
  ['partitioned', 'orphansBelow', 'wait orphansWithoutRecord', 'replicate sameShape', ['PUT persistent/X/partitions']],
  ['partitioned', 'orphansAbove', 'stop orphansAboveCount'],
  ['partitioned', 'scalable', 'stop kindMismatch'],
  ['partitioned', 'mixed', 'stop mixed'],
  ['partitioned', 'both', 'stop both'],
  ['partitioned', 'scalablePartial', 'stop scalablePartial'],
  ['scalable', 'missing', 'wait topicMissing', 'replicate sameShape', ['PUT scalable/X?numInitialSegments=2']],
  ['scalable', 'nonPartitioned', 'stop kindMismatch'],
  ['scalable', 'partitioned', 'stop kindMismatch'],
  ['scalable', 'orphans', 'stop kindMismatch'],
  ['scalable', 'sameSegments', 'replicate sameShape'],
  ['scalable', 'otherSegments', 'replicate layoutsDiffer'],
  ['scalable', 'mixed', 'stop mixed'],
  ['scalable', 'both', 'stop both'],
  ['scalable', 'scalablePartial', 'stop scalablePartial'],
];

it('every cell in which released brokers were seen is here', () => {
  const own = ['namespaceMissing', 'unknown'];
  const sides = SEEN.filter(({ phase, remote }) => phase === 'waiting' && !own.includes(remote));
  const here = new Set(CELLS.map(([local, remote]) => `${local} against ${remote}`));
  expect(sides.filter(({ local, remote }) => !here.has(`${local} against ${remote}`))).toEqual([]);
});

describe('a cell', () => {
  it.concurrent.each(CELLS)('%s against %s: %s', async (local, remote, off, on = off, calls = []) => {
    const topic = await stage.topic(LOCALS[local], REMOTES[remote] ?? nothing);
    const [here, there] = await Promise.all([shapeOn(stage.a.admin, topic), shapeOn(stage.b.admin, topic)]);
    const cell = cellOf({ local: here, remote: there, policy: OFF, phase: 'waiting' });
    expect([cell.local, cell.remote]).toEqual([local, remote]);
    const { outcome, reason } = ruleOf(cell);
    expect(`${outcome} ${reason}`).toBe(off);

    const waiting = stage.provision(topic, OFF);
    await untilDecided(waiting.provisioner, off);
    await waiting.provisioner.stop();
    expect(stage.b.proxy.changes(pathOf(topic))).toEqual([]);
    expect(await shapeOn(stage.b.admin, topic)).toEqual(there);

    const acting = stage.provision(topic, ON);
    await untilDecided(acting.provisioner, on);
    expect(acting.replicators).toHaveLength(on.startsWith('replicate') ? 1 : 0);
    expect(stage.b.proxy.changes(pathOf(topic))).toEqual(calls.map((call) => call.replace('X', pathOf(topic))));
    if (calls.length === 0) expect(await shapeOn(stage.b.admin, topic)).toEqual(there);
    else expect(await shapeOn(stage.b.admin, topic)).toEqual(here);
    expect(stage.a.proxy.changes(pathOf(topic))).toEqual([]);
    await acting.provisioner.stop();
  });

  it.concurrent.each<[string, string, Make]>([
    ['nothing', 'wait localMissing', nothing],
    ['partitions without a record', 'stop localIrregular', orphans(2)],
    ['a record and a plain topic', 'stop localIrregular', mixed],
    ['both kinds', 'stop localIrregular', both],
    ['half of a scalable topic', 'stop localIrregular', halfMade],
  ])('of a local side that decides alone, %s: %s', async (_, decision, make) => {
    const topic = await stage.topic(make, nothing);
    for (const policy of [OFF, ON]) {
      const { provisioner } = stage.provision(topic, policy);
      await untilDecided(provisioner, decision);
      await provisioner.stop();
    }
    expect(stage.b.proxy.changes(pathOf(topic))).toEqual([]);
  });

  it.concurrent.each<[string, keyof typeof LOCALS, Make, Record<string, unknown>, string, (readonly string[])?]>([
    [
      'an unequal one with expand',
      'partitioned',
      partitions(2),
      { onPartitionMismatch: 'expand' },
      'replicate sameShape',
      ['POST persistent/X/partitions'],
    ],
    [
      'orphans beyond a smaller one with expand',
      'partitioned',
      exceeding(2, 4),
      { onPartitionMismatch: 'expand' },
      'stop orphansBeyond',
    ],
    [
      'a larger one with expand',
      'partitioned',
      partitions(5),
      { onPartitionMismatch: 'expand' },
      'stop partitionMismatch',
    ],
    [
      'an unequal one with replicateMatching',
      'partitioned',
      partitions(2),
      { onPartitionMismatch: 'replicateMatching' },
      'replicateMatching partitionMismatch',
    ],
    [
      'orphans beyond with the same shape',
      'partitioned',
      exceeding(3, 4),
      { requireSameShape: true },
      'stop orphansBeyond',
    ],
    ['other segments with the same shape', 'scalable', scalable(4), { requireSameShape: true }, 'wait layoutsDiffer'],
  ])('of another policy, %s', async (_, local, remote, config, decision, calls = []) => {
    const topic = await stage.topic(LOCALS[local], remote);
    const { provisioner } = stage.provision(topic, policyFromConfig(config));
    await untilDecided(provisioner, decision);
    await provisioner.stop();
    expect(stage.b.proxy.changes(pathOf(topic))).toEqual(calls.map((call) => call.replace('X', pathOf(topic))));
  });
});

describe('the administration of a cluster', () => {
  let made = 0;
  testTopicAdmin(async () => {
    const { cluster, proxy, admin } = stage.a;
    const namespace = { tenant: 'public', namespace: `suite-${++made}-${Date.now().toString(36)}` };
    await makeNamespace(cluster, `${namespace.tenant}/${namespace.namespace}`);
    return {
      admin,
      namespace,
      async makeOrphans(topic) {
        await orphans(1)(cluster, pathOf(topic));
        return [1];
      },
      deletePartition: async (topic, index) => {
        await rest(cluster, 'DELETE', `persistent/${pathOf(topic)}-partition-${index}?force=true`);
      },
      deleteSegment: async (topic, { segmentId, start }) => {
        // Of a topic of two equal segments.
        const range = start === 0 ? '0000-7fff' : '8000-ffff';
        await rest(cluster, 'DELETE', `segments/${pathOf(topic)}/${range}-${segmentId}`);
      },
      setReachable(isReachable) {
        proxy.answer = isReachable ? undefined : { status: 503, body: '' };
      },
      teardown() {
        proxy.answer = undefined;
      },
    };
  }, it);
});

describe('a remote', () => {
  afterEach(async () => {
    stage.b.proxy.answer = undefined;
    await stage.clear();
  });

  it('of a plain topic that is named like a partition does not get it by itself', async () => {
    const whole = await stage.topic(partitions(2), nothing);
    const topic = { ...whole, name: `${whole.name}-partition-0` };
    const { provisioner } = stage.provision(topic, ON);
    await untilDecided(provisioner, 'wait partitionNamed');
    expect(stage.b.proxy.changes(pathOf(whole))).toEqual([]);
    await partitions(2)(stage.b.cluster, pathOf(whole));
    await untilDecided(provisioner, 'replicate sameShape');
  });

  it.each(Object.entries(LOCALS))('without the namespace of %s: waits for it, and makes none', async (_, make) => {
    const namespace = `public/only-here-${Date.now().toString(36)}`;
    await makeNamespace(stage.a.cluster, namespace);
    const topic = await stage.topic(make, nothing, namespace);
    const { provisioner } = stage.provision(topic, ON);
    await untilDecided(provisioner, 'wait namespaceMissing');
    expect(stage.b.proxy.changes(namespace)).toEqual([]);
    await makeNamespace(stage.b.cluster, namespace);
    await untilDecided(provisioner, 'replicate sameShape');
    expect(await shapeOn(stage.b.admin, topic)).toEqual(await shapeOn(stage.a.admin, topic));
  });

  it.each([
    ['a 401 with a page', 401, '<html><h2>HTTP ERROR 401 Unauthorized</h2></html>'],
    ['a 404 of somebody else', 404, '<html>404 Not Found</html>'],
    ['a 404 about another topic', 404, '{"reason":"Topic persistent://public/default/other not found"}'],
    ['a 412', 412, '{"reason":"Namespace missing local cluster name in clusters list"}'],
    ['a 500', 500, '{"reason":"Namespace not found"}'],
    ['a page instead of an answer', 200, '<html></html>'],
  ])('that answers with %s: what runs goes on, what waits goes on waiting', async (_, status, body) => {
    const [topic, other] = await Promise.all([stage.topic(plain, plain), stage.topic(plain, nothing)]);
    const running = stage.provision(topic, ON);
    await untilDecided(running.provisioner, 'replicate sameShape');
    stage.b.proxy.answer = { status, body };
    const waiting = stage.provision(other, ON);
    await untilDecided(running.provisioner, 'hold remoteUnknown');
    await untilDecided(waiting.provisioner, 'hold remoteUnknown');
    expect(running.replicators.map(({ state }) => state)).toEqual(['running']);
    expect(stage.b.proxy.changes(pathOf(other))).toEqual([]);
    stage.b.proxy.answer = undefined;
    await untilDecided(waiting.provisioner, 'replicate sameShape');
    expect(running.replicators.map(({ state }) => state)).toEqual(['running']);
  });

  it('that is not there, or does not serve the namespace: unknown, and nothing is created', async () => {
    const tenant = `elsewhere-${Date.now().toString(36)}`;
    await rest(stage.b.cluster, 'PUT', `clusters/${tenant}`, { serviceUrl: 'http://127.0.0.1:9' });
    for (const [{ cluster }, replication] of [
      [stage.a, stage.a.cluster.name],
      [stage.b, tenant],
    ] as const) {
      await rest(cluster, 'PUT', `tenants/${tenant}`, { adminRoles: [], allowedClusters: [cluster.name, replication] });
      await rest(cluster, 'PUT', `namespaces/${tenant}/x`, { replication_clusters: [replication] });
    }
    const topic = await stage.topic(plain, nothing, `${tenant}/x`);
    expect(await shapeOn(stage.b.admin, topic)).toMatchObject({ type: 'unknown', failure: 'refused' });
    const { provisioner } = stage.provision(topic, ON);
    await untilDecided(provisioner, 'hold remoteUnknown');
    expect(stage.b.proxy.changes(tenant)).toEqual([]);
    const dead = pulsarTopicAdmin({ urls: ['http://127.0.0.1:9'] });
    expect(await shapeOn(dead, topic)).toMatchObject({ type: 'unknown', failure: 'unavailable' });
  });
});
