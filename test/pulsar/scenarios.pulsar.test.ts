/**
 * Replication between two real clusters by the program itself: what Pulsar's own consumers see on the other side must be
 * what its own producers have written, once, in the order of each key, whatever happens in between.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { isConverged } from './replicator.js';
import { BOTH, expectEqual, FORTH, settle, stored, write } from './scenario.js';
import { expectOk, Stage } from './stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ quickTakeOver: true });
});
afterAll(() => stage?.close());
afterEach(() => stage.clear());

it('equal layouts: every entry is stored as it was, but for its stamp and checksum', async () => {
  const topic = await stage.topic('verbatim');
  const replicator = await stage.replicate(topic, FORTH);
  const written = await write(stage.a, topic, { count: 2_000, seed: 1 });
  await settle(stage, topic, replicator);
  const [there, here] = [await stored(stage.a, topic), await stored(stage.b, topic)];
  expect(here.map(({ content }) => content)).toEqual(there.map(({ content }) => content));
  expect(new Set(here.map(({ replicatedFrom }) => replicatedFrom))).toEqual(new Set(['a']));
  const { topics } = await replicator.status();
  expect(topics[0]?.directions[0]?.counters).toMatchObject({
    verbatimEntries: there.length,
    rebatchedEntries: 0,
    duplicates: {},
  });
  await expectEqual(stage, topic, [written], 2_000);
});

it('split, rebucket and merge on one side, and on both at once, while both write: layouts meet, and no message returns', async () => {
  const topic = await stage.topic('layouts');
  const replicator = await stage.replicate(topic);
  const written = [
    write(stage.a, topic, { count: 4_000, seed: 3, ratePerSecond: 300 }),
    write(stage.b, topic, { count: 4_000, seed: 4, ratePerSecond: 300 }),
  ];
  await sleep(2_000);
  expectOk(await stage.a.admin.split(topic, 0));
  expectOk(await stage.a.admin.rebucket(topic, 1, 8));
  await replicator.until('the layouts have met', isConverged);
  const before = expectOk(await stage.a.admin.scalableLayout(topic)).active;
  const [first, second] = before;
  await Promise.all([
    stage.a.admin.split(topic, before.at(-1)?.segmentId ?? 0),
    stage.b.admin.rebucket(topic, expectOk(await stage.b.admin.scalableLayout(topic)).active[0]?.segmentId ?? 0, 4),
  ]);
  await replicator.until('the layouts have met again', isConverged);
  // A merge by hand on one side is taken back, since the finer layout wins; nothing is lost by that either.
  if (first !== undefined && second !== undefined) await stage.a.admin.merge(topic, first.segmentId, second.segmentId);
  await replicator.until('the layouts have met once more', isConverged);
  const tallies = await Promise.all(written);
  await settle(stage, topic, replicator, BOTH);
  await expectEqual(stage, topic, tallies, 8_000);
});
