/** Processes of the program that are killed, share the work, and hang: nothing is lost, and nothing is there twice. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { isConverged } from './replicator.js';
import { expectEqual, FORTH, settle, write } from './scenario.js';
import { expectOk, Stage } from './stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ quickTakeOver: true });
});
afterAll(() => stage?.close());
afterEach(() => stage.clear());

it('the replicator is killed 20 times under load: nothing is lost, and nothing is there twice', async () => {
  const topic = await stage.topic('killed');
  const replicator = await stage.replicate(topic, FORTH);
  const written = write(stage.a, topic, { count: 8_000, seed: 5, ratePerSecond: 200 });
  for (let i = 0; i < 20; i++) {
    await sleep(500 + ((i * 137) % 700));
    await replicator.kill();
    await replicator.restart();
  }
  const tally = await written;
  await settle(stage, topic, replicator);
  await expectEqual(stage, topic, [tally], 8_000);
});

it('two processes share the segments; one is killed, and the other has all within 30 s', async () => {
  const topic = await stage.topic('shared', 4);
  const one = await stage.replicate(topic, FORTH, 'one');
  const two = await stage.replicate(topic, FORTH, 'two');
  const owned = (status: Awaited<ReturnType<typeof one.status>>) =>
    status.topics[0]?.directions[0]?.segments.filter(({ owner }) => owner === 'self').length;
  await one.until('each has its share', (status) => owned(status) === 2);
  await two.until('each has its share', (status) => owned(status) === 2);
  const written = write(stage.a, topic, { count: 3_000, seed: 7, ratePerSecond: 200 });
  await sleep(3_000);
  await one.kill();
  const killedMs = Date.now();
  await two.until('it has all segments', (status) => owned(status) === 4);
  expect(Date.now() - killedMs).toBeLessThan(30_000);
  const tally = await written;
  await settle(stage, topic, two);
  await expectEqual(stage, topic, [tally], 3_000);
});

it('the leader hangs for a minute: another leads, and when it wakes it does no harm', async () => {
  const topic = await stage.topic('hanging');
  const one = await stage.replicate(topic, FORTH, 'one');
  const leads = (status: Awaited<ReturnType<typeof one.status>>) =>
    status.members.some(({ isSelf, leads }) => isSelf && (leads ?? 0) > 0);
  await one.until('it leads', leads);
  const two = await stage.replicate(topic, FORTH, 'two');
  const written = write(stage.a, topic, { count: 6_000, seed: 9, ratePerSecond: 100 });
  await sleep(2_000);
  await one.kill('SIGSTOP');
  const minute = sleep(60_000);
  expectOk(await stage.a.admin.split(topic, 0));
  await two.until('the other leads', leads, 90_000);
  await two.until('the layouts have met', isConverged);
  await minute;
  await one.kill('SIGCONT');
  const tally = await written;
  await settle(stage, topic, two);
  await expectEqual(stage, topic, [tally], 6_000);
});
