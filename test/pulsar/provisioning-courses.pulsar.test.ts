/**
 * What happens to topics on two real clusters while provisioners watch them: the remote loses its topic, an operator
 * expands one side, and both clusters create at once, as when one repository describes both.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  decisionOf,
  type Make,
  nothing,
  OFF,
  ON,
  ProvisioningStage,
  partitions,
  pathOf,
  plain,
  scalable,
  shapeOn,
  untilDecided,
} from './provisioning-stage.js';
import { rest } from './rest.js';
import { waitFor } from './scenario.js';

let stage: ProvisioningStage;
beforeAll(async () => {
  stage = await ProvisioningStage.open();
});
afterAll(() => stage?.close());
afterEach(() => stage.clear());

describe('a replicator that runs', () => {
  const KINDS: readonly [string, Make, string, number?][] = [
    ['a plain topic', plain, 'persistent/X?force=true'],
    ['partitions', partitions(2), 'persistent/X/partitions?force=true', 1],
    ['a scalable topic', scalable(2), 'scalable/X?force=true'],
  ];

  it.each(KINDS)(
    'loses %s: it is stopped, and with creation off waits without a trace',
    async (_, make, path, partition) => {
      const topic = await stage.topic(make, make);
      const { provisioner, replicators } = stage.provision(topic, OFF);
      await untilDecided(provisioner, 'replicate sameShape');
      expect(await replicators[0]?.run.permit(partition)).toEqual({ type: 'granted' });
      await rest(stage.b.cluster, 'DELETE', path.replace('X', pathOf(topic)));
      expect(await replicators[0]?.run.permit(partition)).toMatchObject({
        type: 'refused',
        reason: expect.stringMatching(/^notProvisioned: topicLost/),
      });
      await untilDecided(provisioner, 'wait topicMissing');
      expect(replicators.map(({ state }) => state)).toEqual(['stopped']);
      expect(stage.b.proxy.changes(pathOf(topic))).toEqual([]);
      await make(stage.b.cluster, pathOf(topic));
      await untilDecided(provisioner, 'replicate sameShape');
      expect(replicators.map(({ state }) => state)).toEqual(['stopped', 'running']);
    },
  );

  it.each(KINDS)('loses %s: with creation on it is there again, by one call', async (_, make, path) => {
    const topic = await stage.topic(make, make);
    const { provisioner, replicators } = stage.provision(topic, ON);
    await untilDecided(provisioner, 'replicate sameShape');
    await rest(stage.b.cluster, 'DELETE', path.replace('X', pathOf(topic)));
    await waitFor('it is lost', () => replicators.length === 2, 20_000);
    expect(provisioner.status().provisioning.counters.decisions.topicLost).toBe(1);
    expect(stage.b.proxy.changes(pathOf(topic))).toHaveLength(1);
    expect(await shapeOn(stage.b.admin, topic)).toEqual(await shapeOn(stage.a.admin, topic));
  });

  it('is stopped when the counts no longer agree, and both numbers are said', async () => {
    const topic = await stage.topic(partitions(2), partitions(2));
    const { provisioner, replicators } = stage.provision(topic, ON);
    await untilDecided(provisioner, 'replicate sameShape');
    await rest(stage.b.cluster, 'POST', `persistent/${pathOf(topic)}/partitions`, 4);
    await untilDecided(provisioner, 'stop partitionMismatch');
    expect(provisioner.status().failure).toContain('local: 2 partitions; remote: 4 partitions');
    await rest(stage.a.cluster, 'POST', `persistent/${pathOf(topic)}/partitions`, 4);
    await untilDecided(provisioner, 'replicate sameShape');
    expect(replicators.map(({ state, run }) => [state, run.scope])).toEqual([
      ['stopped', { type: 'partitioned', partitions: [0, 1] }],
      ['running', { type: 'partitioned', partitions: [0, 1, 2, 3] }],
    ]);
  });

  it('is told of an expansion of the local topic: the remote is expanded too, by one call', async () => {
    const topic = await stage.topic(partitions(2), partitions(2));
    const { provisioner } = stage.provision(topic, ON, { watchMs: 60_000 });
    await waitFor('it runs', () => decisionOf(provisioner) === 'replicate sameShape', 20_000);
    await rest(stage.a.cluster, 'POST', `persistent/${pathOf(topic)}/partitions`, 3);
    provisioner.partitionsUpdated();
    await waitFor('it is expanded', () => provisioner.status().provisioning.counters.starts === 2, 20_000);
    expect(stage.b.proxy.changes(pathOf(topic))).toEqual([`POST persistent/${pathOf(topic)}/partitions`]);
    expect(await shapeOn(stage.b.admin, topic)).toEqual({ type: 'partitioned', partitions: 3, absent: [] });
  });
});

describe('clusters that create at once', () => {
  /** When each operator creates after the provisioners of both directions have begun, in milliseconds. */
  const MOMENTS = [
    [0, 0],
    [0, 40],
    [90, 0],
    [300, 320],
  ] as const;

  /** What both directions have come to when nothing changes any more, and what was made of each side by which calls. */
  async function race(left: Make, right: Make, [leftMs, rightMs]: readonly [number, number]) {
    const topic = await stage.topic(nothing, nothing);
    const forth = stage.provision(topic, ON).provisioner;
    const back = stage.provision(topic, ON, { from: stage.b, to: stage.a }).provisioner;
    const create = async (make: Make, { cluster }: typeof stage.a, afterMs: number) => {
      await sleep(afterMs);
      // Whoever comes second is told so.
      await make(cluster, pathOf(topic)).catch(() => undefined);
    };
    await Promise.all([create(left, stage.a, leftMs), create(right, stage.b, rightMs)]);
    const looks = () =>
      [forth, back].map((each) => {
        const { decisions } = each.status().provisioning.counters;
        return Object.values(decisions).reduce((sum, times) => sum + times, 0);
      });
    let [outcomes, seen] = ['', looks()];
    await waitFor(
      'it comes to rest',
      () => {
        const now = [forth, back].map(decisionOf).join(', ');
        const isNew = now !== outcomes || !/^(replicate|stop) .*, (replicate|stop) /.test(now);
        if (isNew) [outcomes, seen] = [now, looks()];
        return !isNew && looks().every((count, i) => count >= (seen[i] ?? 0) + 2);
      },
      30_000,
    );
    const shapes = await Promise.all([stage.a, stage.b].map(({ admin }) => shapeOn(admin, topic)));
    await Promise.all([forth.stop(), back.stop()]);
    return { outcomes, shapes };
  }

  it.each<[string, Make, Make, RegExp]>([
    ['plain on both', plain, plain, /^replicate sameShape, replicate sameShape$/],
    ['3 partitions on both', partitions(3), partitions(3), /^replicate sameShape, replicate sameShape$/],
    ['2 segments on both', scalable(2), scalable(2), /^replicate sameShape, replicate sameShape$/],
    ['2 and 4 segments', scalable(2), scalable(4), /^replicate (sameShape|layoutsDiffer), replicate \1$/],
    ['2 and 3 partitions', partitions(2), partitions(3), /^(replicate sameShape|stop partitionMismatch), \1$/],
    [
      'plain and 3 partitions',
      plain,
      partitions(3),
      /^(replicate sameShape|stop typeMismatch), \1$|^stop (mixed|localIrregular), stop (mixed|localIrregular)$/,
    ],
    [
      'plain and 2 segments',
      plain,
      scalable(2),
      /^(replicate sameShape|stop kindMismatch), \1$|^stop (both|localIrregular), stop (both|localIrregular)$/,
    ],
  ])('%s: it ends well, or both sides stop with a reason', async (_, left, right, end) => {
    for (const { outcomes, shapes } of await Promise.all(MOMENTS.map((moments) => race(left, right, moments)))) {
      expect(outcomes).toMatch(end);
      for (const { type } of shapes) expect(type).not.toMatch(/orphans|Orphans|Partial|unknown|missing/);
      if (/^replicate sameShape/.test(outcomes)) expect(shapes[0]).toEqual(shapes[1]);
    }
  });
});
