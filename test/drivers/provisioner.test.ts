/**
 * The provisioner on clusters in memory that behave as brokers do: the field reports, and what a replicator is told.
 * Random courses and races are under test/provisioning.
 */
import { createLayout, defaultCodecs } from 'isthmus';
import { MemoryTopic, MemoryTopicAdmins } from 'isthmus/adapters/memory';
import {
  type ConnectAdmin,
  createProvisioner,
  createReplicator,
  type Provisioner,
  type ProvisionerEvent,
  type ProvisionerPorts,
  provisionedRemote,
  topicStatus,
} from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import type { TopicAdmin } from '../../src/ports/index.js';
import type { ProvisioningPolicy } from '../../src/provisioning/index.js';
import { policy } from '../provisioning/shapes.js';
import { by, creationsOf, IdleReplicator, ISTHMUS, Turns, topic } from '../provisioning/turns.js';
import { HandClock } from '../support/hand-clock.js';
import { until } from '../support/until.js';

const off = policy({ createTopicToRemoteCluster: false });
const { signal } = new AbortController();
const running: Provisioner[] = [];
afterEach(async () => {
  for (const provisioner of running.splice(0)) await provisioner.stop();
});

/** Clusters with the namespace. */
function clusters(): MemoryTopicAdmins {
  const admins = new MemoryTopicAdmins();
  for (const cluster of ['a', 'b', 'c']) admins.addNamespace(cluster, topic);
  return admins;
}

/** A started provisioner from a to b that does not wait long, with all that it says. */
function provision(
  admins: MemoryTopicAdmins,
  allowed: ProvisioningPolicy,
  ports: Partial<ProvisionerPorts> = {},
): { provisioner: Provisioner; replicators: IdleReplicator[]; events: ProvisionerEvent[] } {
  const replicators: IdleReplicator[] = [];
  const events: ProvisionerEvent[] = [];
  const provisioner = createProvisioner(
    {
      local: () => admins.admin('a', ISTHMUS),
      remote: () => admins.admin('b', ISTHMUS),
      replicator: (run) => {
        const replicator = new IdleReplicator('b', run);
        replicators.push(replicator);
        return replicator;
      },
      ...ports,
    },
    { topic, cluster: 'b', policy: allowed, retryInitialMs: 1, retryMaxMs: 5, watchMs: 5, callLimitMs: 50 },
  );
  running.push(provisioner);
  void (async () => {
    for await (const event of provisioner) events.push(event);
  })();
  provisioner.start();
  return { provisioner, replicators, events };
}

const reasonOf = (provisioner: Provisioner) => provisioner.status().provisioning.decision?.reason;

describe('field reports', () => {
  it('B58: partitions without a record are taken in, and a record without partitions is completed', async () => {
    const admins = clusters();
    await by(admins, 'a').createPartitioned(topic, 2, signal);
    admins.place('b', topic, { partitions: [0, 1] });
    const { provisioner, replicators } = provision(admins, policy());
    await until(() => replicators.length === 1);
    expect(creationsOf(admins)).toEqual(['createPartitioned']);
    expect(replicators[0]?.run.scope).toEqual({ type: 'partitioned', partitions: [0, 1] });
    admins.remove('b', topic, { partitions: [1] });
    await until(() => replicators.length === 2);
    expect(creationsOf(admins)).toEqual(['createPartitioned', 'completePartitions']);
    expect(provisioner.status().provisioning.counters.decisions).toMatchObject({ topicLost: 1, partitionsAbsent: 1 });
  });

  it('B60: a plain topic is created by an explicit call, and by none where it may not', async () => {
    const admins = clusters();
    await by(admins, 'a').createPlain(topic, signal);
    const { provisioner, replicators } = provision(admins, off);
    await until(() => (provisioner.status().provisioning.counters.decisions.topicMissing ?? 0) > 3);
    expect(replicators).toEqual([]);
    expect(creationsOf(admins)).toEqual([]);
    await provisioner.stop();
    const { replicators: others } = provision(admins, policy());
    await until(() => others.length === 1);
    expect(creationsOf(admins)).toEqual(['createPlain']);
  });

  it('B61: with creation off the topic is waited for without a trace, and replicated once it is there', async () => {
    const admins = clusters();
    await by(admins, 'a').createPartitioned(topic, 2, signal);
    const { provisioner, replicators, events } = provision(admins, off);
    await until(() => (provisioner.status().provisioning.counters.decisions.topicMissing ?? 0) > 3);
    await by(admins, 'b').createPartitioned(topic, 2, signal);
    await until(() => replicators[0]?.state === 'running');
    await until(() => (provisioner.status().provisioning.counters.decisions.sameShape ?? 0) > 3);
    expect(replicators).toHaveLength(1);
    expect(creationsOf(admins)).toEqual([]);
    expect(events.flatMap((event) => (event.type === 'changed' ? [event.change.message] : []))).toEqual([
      'local: 2 partitions; remote: no topic',
      'local: 2 partitions; remote: 2 partitions',
    ]);
  });

  it('B61: unequal counts are shown with both numbers, a remedy and the stop reason of the replicator', async () => {
    const admins = clusters();
    await by(admins, 'a').createPartitioned(topic, 2, signal);
    await by(admins, 'b').createPartitioned(topic, 4, signal);
    const { provisioner } = provision(admins, policy());
    await until(() => reasonOf(provisioner) === 'partitionMismatch');
    const status = provisioner.status();
    const message = 'partitionMismatch: local: 2 partitions; remote: 4 partitions';
    expect(status).toMatchObject({ remote: 'b', state: 'idle', failure: `notProvisioned: ${message}` });
    expect(status.provisioning.waitingFor).toEqual({ for: 'operator', reason: 'notProvisioned', message });
    expect(status.provisioning.remedy).toMatch(/Expand the smaller side/);
    expect(topicStatus({ topic: 'orders', replicators: [provisioner] }).remotes[0]?.failure).toContain(message);
  });

  const hang = () => new Promise<never>(() => undefined);
  const refuse = () => ({ type: 'failed' as const, failure: 'unauthorized' as const, reason: '401' });
  const clients = (admin: TopicAdmin): [string, string, ConnectAdmin<TopicAdmin>][] => [
    [
      'throws at once',
      'noClient',
      () => {
        throw new Error('no such class');
      },
    ],
    [
      'throws later',
      'noClient',
      async () => {
        throw new Error('no such host');
      },
    ],
    ['hangs while it is built', 'noClient', hang],
    ['hangs in a call', 'timedOut', () => ({ ...admin, lookUps: { ...admin.lookUps, names: hang } })],
    [
      'throws in a call',
      'unavailable',
      () => ({
        ...admin,
        lookUps: {
          ...admin.lookUps,
          names: () => {
            throw new Error('cut');
          },
        },
      }),
    ],
    [
      'has bad credentials',
      'unauthorized',
      () => ({ ...admin, lookUps: { ...admin.lookUps, partitions: async () => refuse() } }),
    ],
  ];

  it.each(clients(clusters().admin('b', ISTHMUS)).map(([how, failure], i) => [how, failure, i] as const))(
    'B62: a client that %s is a failure of type %s within the limit, tried again, and no matter of other remotes',
    async (_, failure, i) => {
      const admins = clusters();
      await by(admins, 'a').createPlain(topic, signal);
      const admin = admins.admin('b', ISTHMUS);
      const [, , broken] = clients(admin)[i] ?? ['', '', () => admin];
      let built = 0;
      const connect: ConnectAdmin<TopicAdmin> = (limit) => (++built > 2 ? admin : broken(limit));
      const { provisioner, replicators } = provision(admins, policy(), { remote: connect });
      const other = provision(admins, policy(), { remote: () => admins.admin('c', ISTHMUS) });
      await until(() => reasonOf(provisioner) === 'remoteUnknown');
      expect(provisioner.status().failure).toContain(`unknown (${failure}: `);
      await until(() => other.replicators.length === 1);
      // Clients that were built and do not fail as a whole are kept, so their faults last.
      if (['noClient', 'unauthorized'].includes(failure)) await until(() => replicators.length === 1);
      else expect(creationsOf(admins)).toEqual(['createPlain']);
    },
  );
});

describe('a replicator', () => {
  it('is granted producers by fresh looks only, and is stopped when one finds its topic gone', async () => {
    const turns = new Turns();
    await by(turns.admins, 'a').createPartitioned(topic, 2, signal);
    await by(turns.admins, 'b').createPartitioned(topic, 2, signal);
    const provisioner = turns.provision('a', 'b', off);
    while (turns.replicators.length === 0) await turns.step(0);
    const [replicator] = turns.replicators;
    const granted = replicator?.run.permit(1);
    const beyond = replicator?.run.permit(2);
    while (provisioner.status().provisioning.counters.decisions.sameShape !== 3) await turns.step(0);
    expect(await granted).toEqual({ type: 'granted' });
    expect(await beyond).toMatchObject({ type: 'refused' });
    turns.admins.remove('b', topic, { partitions: [1] });
    const lost = replicator?.run.permit(1);
    while (turns.running('b') > 0) await turns.step(0);
    expect(await lost).toMatchObject({ type: 'refused', reason: expect.stringMatching(/^notProvisioned: topicLost/) });
    turns.admins.place('b', topic, { partitions: [1] });
    while (turns.replicators.length < 2) await turns.step(0);
    // Whatever the one before still asks and tells is not of the one that runs.
    replicator?.run.lost();
    const late = replicator?.run.permit(0);
    await turns.toTheEnd();
    expect(await late).toMatchObject({ type: 'refused' });
    expect(turns.replicators.map(({ state }) => state)).toEqual(['stopped', 'running']);
    await turns.stop();
  });

  it('is made anew when it could not be made, and does not outlive the provisioner', async () => {
    const admins = clusters();
    for (const cluster of ['a', 'b']) await by(admins, cluster).createPlain(topic, signal);
    const made: IdleReplicator[] = [];
    let failures = 2;
    const { provisioner, events } = provision(admins, off, {
      replicator: (run) => {
        if (failures-- > 0) throw new Error('no cursors');
        const replicator = new IdleReplicator('b', run);
        made.push(replicator);
        return replicator;
      },
    });
    await until(() => made[0]?.state === 'running');
    expect(events.filter(({ type }) => type === 'failed')).toHaveLength(2);
    await provisioner.stop();
    expect(made.map(({ state }) => state)).toEqual(['stopped']);
    expect(provisioner.status().state).toBe('stopped');
    expect(await made[0]?.run.permit()).toMatchObject({ type: 'refused' });
  });

  it('that could not be made is tried again as soon as a topic that is missing, not as late as one that runs', async () => {
    const admins = clusters();
    for (const cluster of ['a', 'b']) await by(admins, cluster).createPlain(topic, signal);
    const clock = new HandClock();
    const provisioner = createProvisioner(
      {
        local: () => admins.admin('a', ISTHMUS),
        remote: () => admins.admin('b', ISTHMUS),
        replicator: () => {
          throw new Error('no cursors');
        },
        clock,
      },
      { topic, cluster: 'b', policy: off },
    );
    running.push(provisioner);
    provisioner.start();
    await until(() => reasonOf(provisioner) === 'sameShape');
    expect(clock.awaited.map((atMs) => atMs - clock.now() <= 100)).toEqual([true]);
  });

  it('of the library itself begins when the topic is there, and stops when it is gone', async () => {
    const admins = clusters();
    const layout = createLayout({ segments: 2, nowMs: 0 });
    const [source, target] = ['a', 'b'].map((cluster) => new MemoryTopic({ cluster, layout })) as [
      MemoryTopic,
      MemoryTopic,
    ];
    const codecs = await defaultCodecs();
    const starts = [0, 0x8000];
    await by(admins, 'a').createScalable(topic, { starts, segments: 2 }, signal);
    const { provisioner } = provision(admins, off, {
      replicator: (run) =>
        createReplicator(
          {
            source: source.source('b'),
            cursors: source.cursors('b'),
            remote: provisionedRemote(target.remote('a'), run),
          },
          { codecs },
        ),
    });
    await until(() => reasonOf(provisioner) === 'topicMissing');
    await by(admins, 'b').createScalable(topic, { starts, segments: 2 }, signal);
    await until(() => provisioner.status().segments.length === 2);
    expect(provisioner.status().state).toBe('running');
    admins.remove('b', topic);
    await until(() => reasonOf(provisioner) === 'topicMissing');
    expect(provisioner.status()).toMatchObject({ state: 'idle', failure: expect.stringMatching(/^notProvisioned/) });
    expect(creationsOf(admins)).toEqual([]);
  });
});
