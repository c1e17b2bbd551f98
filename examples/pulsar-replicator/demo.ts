/**
 * Two unmodified Pulsar 5.0.1 clusters, started here; Pulsar's own Java client writes to a scalable topic on both, one
 * side splits and rebuckets in the middle, the replicator is killed twice; and Pulsar's own consumers on both sides must
 * see every message once, in the order of its key. `PULSAR_A` and `PULSAR_B` (`pulsar://host:port,http://host:port`) name
 * clusters that run already.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { PulsarAdmin } from 'isthmus/adapters/pulsar';
import { openClusters } from '../../test/pulsar/brokers.js';
import { JavaClients } from '../../test/pulsar/java-client.js';
import { isCaughtUp, isConverged, ReplicatorProcess } from '../../test/pulsar/replicator.js';
import { CHECK, subscribeCheck } from '../../test/pulsar/stage.js';
import type { StatusDocument } from './status/index.js';

const TOPIC = `public/default/demo-${Date.now().toString(36)}`;
const MESSAGES = 5_000;
/** Pulsar's own consumers take a little longer than the replicator does. */
const QUIET_MS = 8_000;

async function demo(): Promise<number> {
  say('starting two Pulsar 5.0.1 clusters and the Java client (the first time their jars are fetched) ...');
  const clusters = await openClusters(2);
  const java = await JavaClients.start();
  try {
    const [a, b] = clusters.all;
    if (a === undefined || b === undefined) throw new Error('two clusters are needed');
    const admins = [a, b].map(({ adminUrl }) => new PulsarAdmin({ urls: [adminUrl] }));
    for (const admin of admins) expectOk(await admin.createScalable(TOPIC, 2));
    for (const cluster of [a, b]) await subscribeCheck(cluster, TOPIC);
    say(`a: ${a.serviceUrl}, b: ${b.serviceUrl}; topic ${TOPIC} with 2 segments on each`);
    const replicator = await ReplicatorProcess.start({ clusters: [a, b], topics: [TOPIC], name: 'demo' });
    try {
      return await replicate(replicator, java, [a, b], admins);
    } finally {
      await replicator.stop();
    }
  } finally {
    await java.stop();
    await clusters.stop();
  }
}

async function replicate(
  replicator: ReplicatorProcess,
  java: JavaClients,
  clusters: readonly Parameters<JavaClients['open']>[0][],
  [adminA, adminB]: readonly PulsarAdmin[],
): Promise<number> {
  const sides = await Promise.all(clusters.map((cluster) => java.open(cluster)));
  const topic = `topic://${TOPIC}`;
  say(`writing ${MESSAGES} messages to each, with Pulsar's own client; both directions are replicated meanwhile`);
  const written = sides.map(async (side, i) => {
    const producer = await side.producer(topic, { compression: i === 0 ? 'lz4' : 'zstd' });
    const settings = { count: MESSAGES, seed: i + 1, name: side.name, keyPrefix: side.name, ratePerSecond: 400 };
    return producer.generate({ ...settings, tally: `written-${side.name}` });
  });
  await sleep(3_000);
  say('a splits segment 0, b rebuckets segment 1 to 8 buckets');
  const changedMs = Date.now();
  expectOk(await adminA?.split(TOPIC, 0));
  expectOk(await adminB?.rebucket(TOPIC, 1, 8));
  await replicator.until('the layouts are equal again', isConverged);
  say(`the layouts are equal again after ${Date.now() - changedMs} ms`);
  const totals = new Totals();
  for (let i = 0; i < 2; i++) {
    await sleep(2_000);
    totals.add(await replicator.status());
    await replicator.kill();
    say('kill -9 of the replicator; starting it again');
    await replicator.restart();
  }
  for (const one of written) {
    const { stored, failed, error } = await one;
    if (stored !== MESSAGES || failed > 0)
      throw new Error(`the producer stored ${stored}, and failed ${failed}: ${error}`);
  }
  say('all is written; waiting for the rest to be replicated');
  totals.add(await replicator.until('everything is replicated', isCaughtUp, 120_000));
  // What a status tells of the clusters' own figures may be seconds old.
  for (const [admin, subscription] of [
    [adminA, 'isthmus.b'],
    [adminB, 'isthmus.a'],
  ] as const) {
    await untilAcknowledged(admin, subscription);
  }
  return compare(java, sides, topic, totals);
}

/** Until the cluster itself counts nothing of the topic as still to be replicated. */
async function untilAcknowledged(admin: PulsarAdmin | undefined, subscription: string): Promise<void> {
  for (const endMs = Date.now() + 120_000; Date.now() < endMs; await sleep(200)) {
    const subscriptions = await admin?.subscriptions(TOPIC);
    const backlogs = subscriptions?.type === 'ok' ? subscriptions.value.get(subscription)?.backlogs : undefined;
    if (backlogs !== undefined && [...backlogs.values()].every((backlog) => backlog === 0)) return;
  }
  throw new Error(`${subscription} still has a backlog after 120 s`);
}

async function compare(
  java: JavaClients,
  sides: readonly Awaited<ReturnType<JavaClients['open']>>[],
  topic: string,
  totals: Totals,
): Promise<number> {
  say("reading both sides with Pulsar's own consumers");
  let failures = 0;
  const check = (what: string, isGood: boolean) => {
    say(`  ${isGood ? 'ok    ' : 'FAILED'} ${what}`);
    if (!isGood) failures++;
  };
  await Promise.all(
    sides.map(async (side) => {
      const consumer = await side.streamConsumer(topic, CHECK);
      await consumer.read({ count: 2 * MESSAGES, quietMs: QUIET_MS, tally: `read-${side.name}` });
      // What comes twice comes behind the last that is awaited.
      await consumer.read({ quietMs: 2_000, tally: `read-${side.name}` });
    }),
  );
  for (const side of sides) {
    for (const origin of sides) {
      const { missing, orderBreaks } = await java.compare(`written-${origin.name}`, `read-${side.name}`);
      const what = `${side.name} has all ${MESSAGES} of ${origin.name}, in order: ${missing} missing, ${orderBreaks} out of order`;
      check(what, missing + orderBreaks === 0);
    }
  }
  const [left, right] = await Promise.all(sides.map(({ name }) => java.tally(`read-${name}`)));
  const { missing, extra, orderBreaks } = await java.compare('read-a', 'read-b');
  check(
    `both sides are equal: ${missing + extra} differences, ${orderBreaks} out of order`,
    missing + extra + orderBreaks === 0,
  );
  check(
    `nothing twice by replication: ${left?.count} messages on a, ${right?.count} on b`,
    left?.count === right?.count,
  );
  const twice = (left?.count ?? 0) - (left?.distinct ?? 0);
  if (twice > 0)
    say(`  (a producer stored ${twice} of its own messages twice when its connection was slow; so they are on both)`);
  say(totals.text());
  say(failures === 0 ? 'all checks passed' : `${failures} checks failed`);
  return failures === 0 ? 0 : 1;
}

/** Counters over the lives of a process that is killed. */
class Totals {
  private verbatim = 0;
  private rebatched = 0;
  private found = 0;
  private duplicates = 0;

  add({ topics }: StatusDocument): void {
    for (const { counters } of topics.flatMap(({ directions }) => directions)) {
      this.verbatim += counters.verbatimEntries;
      this.rebatched += counters.rebatchedEntries;
      this.found += counters.foundStored;
      this.duplicates += Object.values(counters.duplicates).reduce((sum, times) => sum + (times ?? 0), 0);
    }
  }

  text(): string {
    const { verbatim, rebatched, found, duplicates } = this;
    return `entries: ${verbatim} verbatim, ${rebatched} re-batched, ${found} found stored by the process before, ${duplicates} duplicates`;
  }
}

function expectOk(result: { readonly type: string; readonly reason?: string } | undefined): void {
  if (result?.type !== 'ok') throw new Error(`${result?.type}: ${result?.reason}`);
}

function say(text: string): void {
  console.log(text);
}

process.exitCode = await demo();
