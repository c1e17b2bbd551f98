/** The lead on a real broker: the line, a cut connection, a hanging one, and restarts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { PulsarAdmin } from '../../src/adapters/pulsar/admin/index.js';
import { type LeaderOptions, type Leadership, leaderships } from '../../src/adapters/pulsar/leader.js';
import { createPulsarClient, type PulsarClientOptions } from '../../src/adapters/pulsar/protocol/index.js';
import { type Broker, type Brokers, startBrokers } from './brokers.js';
import { layWire } from './remote-stage.js';

let brokers: Brokers;
let broker: Broker;
const ends: (() => unknown)[] = [];
let made = 0;

beforeAll(async () => {
  brokers = await startBrokers(1, { quickTakeOver: true });
  broker = brokers.all[0] as Broker;
});
afterAll(() => brokers?.stop());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function freshLock(): Promise<string> {
  const admin = new PulsarAdmin({ urls: [broker.adminUrl] });
  const topic = `persistent://public/default/lock-${made++}`;
  expect(await admin.createPersistent(topic)).toMatchObject({ type: 'ok' });
  expect(await admin.putPersistentSubscription(topic, 'keep')).toMatchObject({ type: 'ok' });
  return topic;
}

interface Settings extends Partial<LeaderOptions> {
  readonly serviceUrl?: string;
  readonly client?: never;
  readonly clientOptions?: Partial<PulsarClientOptions>;
}

/** A process that takes part, with a client of its own. */
function contender(topic: string, name: string, { serviceUrl, clientOptions, ...options }: Settings = {}) {
  const client = createPulsarClient({ serviceUrls: [serviceUrl ?? broker.serviceUrl], ...clientOptions });
  const stop = new AbortController();
  const turns: Leadership[] = [];
  const reasons: string[] = [];
  const done = (async () => {
    for await (const turn of leaderships({ ...options, client, topic, name }, stop.signal)) {
      turns.push(turn);
      void turn.ended.then((reason) => reasons.push(reason));
    }
  })();
  const end = async () => {
    stop.abort();
    await done;
    await client.close();
  };
  ends.push(end);
  return { turns, reasons, end, terms: () => turns.map(({ term }) => term) };
}

async function until(condition: () => boolean, limitMs = 90_000): Promise<void> {
  for (const deadline = Date.now() + limitMs; !condition(); await sleep(5)) {
    expect(Date.now(), 'it did not come about').toBeLessThan(deadline);
  }
}

it('goes from one to the next, by terms that rise', async () => {
  const topic = await freshLock();
  const a = contender(topic, 'a');
  await until(() => a.turns.length === 1);
  const b = contender(topic, 'b');
  await sleep(500);
  expect(b.turns).toEqual([]);
  const begun = Date.now();
  await a.end();
  await until(() => b.turns.length === 1);
  expect(Date.now() - begun).toBeLessThan(5_000);
  const c = contender(topic, 'c');
  await sleep(200);
  await b.end();
  await until(() => c.turns.length === 1);
  expect([a.terms(), b.terms(), c.terms()]).toEqual([[0], [1], [2]]);
});

it('is kept under the same term over a cut connection when nobody waits, and lost to who does', async () => {
  const topic = await freshLock();
  const wire = await layWire(broker.serviceUrl);
  ends.push(() => wire.close());
  const a = contender(topic, 'a', { serviceUrl: wire.serviceUrl });
  await until(() => a.turns.length === 1);
  wire.cut();
  await sleep(2_000);
  expect([a.terms(), a.reasons, a.turns[0]?.holds()]).toEqual([[0], [], true]);
  const b = contender(topic, 'b');
  await sleep(1_000);
  wire.cut();
  await until(() => b.turns.length === 1 && a.reasons.length === 1);
  expect([a.reasons[0], b.terms()]).toEqual([expect.stringMatching(/error 25/), [1]]);
  await sleep(2_000);
  await b.end();
  await until(() => a.turns.length === 2);
  expect(a.terms()).toEqual([0, 2]);
});

it('is over after a silence, before the broker gives it away', async () => {
  const topic = await freshLock();
  const a = contender(topic, 'a', { silenceMs: 4_000, clientOptions: { keepAliveMs: 1_000 } });
  await until(() => a.turns.length === 1);
  await sleep(6_000);
  expect(a.reasons).toEqual([]);
  broker.pause();
  const begun = Date.now();
  await until(() => a.turns[0]?.holds() === false);
  expect(Date.now() - begun).toBeGreaterThan(2_500);
  broker.resume();
  await until(() => a.turns.length === 2);
  expect(a.terms()).toEqual([0, 1]);
});

it('has rising terms over a broker that is killed and started again', async () => {
  const topic = await freshLock();
  const a = contender(topic, 'a');
  await until(() => a.turns.length === 1);
  await broker.kill();
  await broker.restart();
  // Either the same turn goes on, or the next one has a higher term.
  await until(() => a.turns.at(-1)?.holds() === true);
  const b = contender(topic, 'b');
  await sleep(1_000);
  await a.end();
  await until(() => b.turns.length === 1);
  expect(b.terms()[0]).toBeGreaterThan(a.terms().at(-1) as number);
  expect(a.terms()).toEqual([...a.terms()].sort((x, y) => x - y));
}, 400_000);
