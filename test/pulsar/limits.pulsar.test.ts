/**
 * What brokers do by themselves, and what operators set on them: pruning, expiry, automatic merges, sizes, rates and
 * moves, each with the replicator in the middle of it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isCaughtUp, isConverged, type ReplicatorProcess } from './replicator.js';
import { rest } from './rest.js';
import { backlogsOf, expectEqual, FORTH, read, settle, waitFor, write } from './scenario.js';
import { expectOk, type Side, Stage } from './stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ shortChecks: true });
  for (const { broker } of [stage.a, stage.b]) {
    for (const name of ['expiring', 'limited', 'moved']) await rest(broker, 'PUT', `namespaces/public/${name}`);
  }
});
afterAll(() => stage?.close());

/** A broker looks for segments to prune, and for messages that have expired, once a minute. */
const CHECK_MS = 60_000;
const UNTIL_CHECKED = { timeout: 5 * CHECK_MS };

async function segmentIds(side: Side, topic: string): Promise<readonly number[]> {
  return [...expectOk(await side.admin.scalableLayout(topic)).segments.keys()].sort((x, y) => x - y);
}

function segmentsOf(status: Awaited<ReturnType<ReplicatorProcess['status']>>) {
  return status.topics[0]?.directions[0]?.segments ?? [];
}

// These wait for the brokers' checks, and do so at the same time; so each process has a name of its own.

it.concurrent('a sealed segment is kept until it is replicated, and pruned afterwards', UNTIL_CHECKED, async () => {
  const topic = await stage.topic('pruned');
  const replicator = await stage.replicate(topic, FORTH, 'pruned');
  await write(stage.a, topic, { count: 200, seed: 1 });
  await settle(stage, topic, replicator);
  await replicator.kill();
  const written = await write(stage.a, topic, { count: 300, seed: 2 });
  expectOk(await stage.a.admin.split(topic, 0));
  // The consumer that compares would keep it too, as long as it has not read it.
  const here = await read(stage, stage.a, topic, 500);
  expect((await stage.java.tally(here)).count).toBe(500);
  await sleep(CHECK_MS + 5_000);
  expect(await segmentIds(stage.a, topic)).toEqual([0, 1, 2, 3]);
  await replicator.restart();
  await settle(stage, topic, replicator);
  const there = await read(stage, stage.b, topic, 500);
  const none = { missing: 0, extra: 0, orderBreaks: 0 };
  expect(await stage.java.compare(written, there)).toMatchObject({ right: 500, ...none });
  await waitFor('all that is sealed is pruned', async () => {
    const { segments, active } = expectOk(await stage.a.admin.scalableLayout(topic));
    return segments.size === active.length;
  });
  await replicator.until(
    'it knows that',
    (now) => isConverged(now) && isCaughtUp(now) && segmentsOf(now).every(({ segmentId }) => segmentId > 0),
  );
  await replicator.stop();
});

it.concurrent('on the destination a sealed segment is pruned too: the pin leaves it', UNTIL_CHECKED, async () => {
  const topic = await stage.topic('left');
  const replicator = await stage.replicate(topic, FORTH, 'left');
  const writing = write(stage.a, topic, { count: 1_500, seed: 4, ratePerSecond: 300 });
  await sleep(2_500);
  expectOk(await stage.b.admin.split(topic, 0));
  const written = await writing;
  await settle(stage, topic, replicator);
  await expectEqual(stage, topic, [written], 1_500);
  await waitFor('segment 0 is pruned', async () => !(await segmentIds(stage.b, topic)).includes(0));
  await replicator.stop();
});

it.concurrent(
  'an idle topic is not merged by its broker while it is replicated, as another one is',
  UNTIL_CHECKED,
  async () => {
    const quick = { mergeWindowSeconds: 1, mergeCooldownSeconds: 1 };
    const [free, replicated] = [await stage.topic('free', 4), await stage.topic('idle', 4)];
    const replicator = await stage.replicate(replicated, {}, 'idle');
    await replicator.until(
      'it leads',
      (status) => isConverged(status) && status.topics[0]?.clusters[0]?.term !== undefined,
    );
    for (const side of [stage.a, stage.b]) {
      for (const topic of [free, replicated]) {
        // What is set for the topic stays beside what the replicator has set.
        const policy = expectOk(await side.admin.autoScalePolicy(topic));
        expectOk(await side.admin.setAutoScalePolicy(topic, { ...policy, ...quick }));
        // A broker looks after a topic's load once it has a controller for it.
        expectOk(await side.admin.subscriptions(topic));
      }
    }
    for (const side of [stage.a, stage.b]) {
      await waitFor(
        'the other one is merged',
        async () => expectOk(await side.admin.scalableLayout(free)).active.length === 1,
      );
    }
    for (const side of [stage.a, stage.b]) {
      expect(expectOk(await side.admin.scalableLayout(replicated))).toMatchObject({ epoch: 0, active: { length: 4 } });
    }
    await replicator.stop();
  },
);

it.concurrent(
  'what expires at the source while the replicator is away is told, and replication goes on',
  UNTIL_CHECKED,
  async () => {
    await rest(stage.a.broker, 'POST', 'namespaces/public/expiring/messageTTL', 5);
    const topic = await stage.topic('expired', 1, 'public/expiring');
    const replicator = await stage.replicate(topic, FORTH, 'expired');
    const before = await write(stage.a, topic, { count: 200, seed: 1, tally: `before-${topic}` });
    await settle(stage, topic, replicator);
    await replicator.kill();
    const lost = await write(stage.a, topic, { count: 300, seed: 2, tally: `lost-${topic}` });
    await waitFor('it has expired', async () => {
      return (await backlogsOf(stage.a, topic, 'isthmus.b')).get(0) === 0;
    });
    await replicator.restart();
    await replicator.until('it has seen that', ({ topics }) => topics[0]?.directions[0]?.counters.lostAtSource === 1);
    expect(replicator.log).toMatch(/segment 0: the source let entries go before they were replicated/);
    const after = await write(stage.a, topic, { count: 200, seed: 3, tally: `after-${topic}` });
    await settle(stage, topic, replicator);
    const there = await read(stage, stage.b, topic, 400);
    for (const [tally, missing] of [
      [before, 0],
      [lost, 300],
      [after, 0],
    ] as const) {
      expect(await stage.java.compare(tally, there)).toMatchObject({
        right: 400,
        missing,
        duplicatesRight: 0,
        orderBreaks: 0,
      });
    }
    await replicator.stop();
  },
);

describe('what happens at once', () => {
  afterEach(() => stage.clear());

  it('an entry at the size limit is held, with the reason and a remedy, and both brokers stay healthy', async () => {
    const topic = await stage.topic('large', 2);
    const replicator = await stage.replicate(topic, FORTH);
    const producer = await stage.a.java.producer(`topic://${topic}`, { batching: false });
    // With its metadata it is just below 5 MiB: with the stamp it would be stored nowhere, and never answered.
    const bytes = 5 * 1024 * 1024 - 600;
    const settings = { count: 1, seed: 1, minBytes: bytes, maxBytes: bytes };
    expect(await producer.generate(settings)).toMatchObject({ stored: 1, failed: 0 });
    const status = await replicator.until('it is held', (now) =>
      segmentsOf(now).some(({ held }) => held !== undefined),
    );
    const segment = segmentsOf(status).find(({ held }) => held !== undefined);
    expect(segment).toMatchObject({ held: { reason: 'tooLarge' }, needsOperator: true });
    expect(replicator.log).toMatch(/held: .*5242880|held: .*bytes/);
    // Smaller ones pass, on the other segment of the same topic and on other topics.
    const other = await stage.topic('beside');
    const beside = await stage.replicate(other, FORTH, 'two');
    const written = await write(stage.a, other, { count: 200, seed: 3 });
    await settle(stage, other, beside);
    await expectEqual(stage, other, [written], 200);
    for (const { broker } of [stage.a, stage.b]) {
      expect(await (await fetch(`${broker.adminUrl}/admin/v2/brokers/health`)).text()).toBe('ok');
    }
  });

  it('bundles that are unloaded on both sides with sends in flight are no seal: no layout changes, and nothing is lost', async () => {
    const topic = await stage.topic('unloaded', 2, 'public/moved');
    const replicator = await stage.replicate(topic, FORTH);
    const writing = write(stage.a, topic, { count: 3_000, seed: 5, ratePerSecond: 300 });
    for (const { broker } of [stage.b, stage.b, stage.a, stage.b]) {
      await sleep(2_000);
      await rest(broker, 'PUT', 'namespaces/public/moved/unload');
    }
    const written = await writing;
    await settle(stage, topic, replicator);
    for (const side of [stage.a, stage.b]) {
      expect(expectOk(await side.admin.scalableLayout(topic))).toMatchObject({ epoch: 0, active: { length: 2 } });
    }
    await expectEqual(stage, topic, [written], 3_000);
  });

  it('a publish rate on the destination slows replication down, and no more once it is lifted', async () => {
    const limit = (rate: number) =>
      rest(stage.b.broker, 'POST', 'namespaces/public/limited/publishRate', {
        publishThrottlingRateInMsg: rate,
        publishThrottlingRateInByte: -1,
      });
    await limit(100);
    const topic = await stage.topic('throttled', 1, 'public/limited');
    const replicator = await stage.replicate(topic, FORTH);
    const written = await write(stage.a, topic, { count: 10_000, seed: 7, keys: 20 });
    await sleep(8_000);
    expect((await backlogsOf(stage.a, topic, 'isthmus.b')).get(0)).toBeGreaterThan(0);
    await limit(-1);
    const liftedMs = Date.now();
    await settle(stage, topic, replicator);
    expect(Date.now() - liftedMs).toBeLessThan(30_000);
    await expectEqual(stage, topic, [written], 10_000);
  });
});
