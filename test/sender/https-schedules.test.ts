/** The same laws over the wire: the real driver, real HTTPS, and everything that goes wrong between two machines. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  edgeAnswer,
  errorAnswer,
  type FakeTarget,
  routeMissing,
  seededRandom,
  type TargetFault,
} from '../../src/testing/index.js';
import { fastClock, HttpsWorld } from './https-world.js';
import { faultOf, pick, randomRecords, type Stored, textOf } from './schedule.js';

/** A minute of the clock is so long. */
const SPEED = 20;
const FAULTY_MS = 3_000;
const PATIENCE_MS = 45_000;

/** What befalls one request, before the target has stored it or after. */
const FAULTS: readonly TargetFault[] = [
  { type: 'reset' },
  { type: 'reset', stores: true },
  { type: 'slow', ms: 60 },
  { type: 'slow', ms: 300, stores: true },
  { type: 'accepted', count: 1_000_000 },
  { type: 'cutAnswer', bytes: 5 },
  ...[
    edgeAnswer(502),
    edgeAnswer(503, { retryAfter: '2' }),
    edgeAnswer(429),
    edgeAnswer(403),
    edgeAnswer(404),
    edgeAnswer(301, { headers: { location: 'https://elsewhere.example/' } }),
    errorAnswer(503, 'draining'),
    errorAnswer(500, 'produce failed'),
  ].flatMap((answer): TargetFault[] => [
    { type: 'answer', answer },
    { type: 'answer', answer, stores: true },
  ]),
  ...[
    errorAnswer(401, 'authentication required'),
    errorAnswer(403, 'produce not allowed on topic'),
    errorAnswer(404, 'topic not found'),
    errorAnswer(409, 'topic is a delay child'),
    errorAnswer(413, 'message 1: message too large'),
    errorAnswer(415, 'unsupported content encoding'),
    errorAnswer(429, 'too many requests in flight'),
    errorAnswer(400, 'read body: i/o timeout'),
    errorAnswer(400, 'too many messages: at most 100'),
    errorAnswer(400, 'message 2: invalid argument'),
    errorAnswer(400, 'something else'),
    routeMissing(),
  ].map((answer): TargetFault => ({ type: 'answer', answer })),
];

/** What a target, or a node, is for a while; each gives what ends it. */
type Trouble = (world: HttpsWorld, target: FakeTarget, child: string) => () => unknown;

const set = <T extends object>(subject: T | undefined, change: Partial<T>): (() => void) => {
  const before = { ...subject };
  Object.assign(subject ?? {}, change);
  return () => void Object.assign(subject ?? {}, before);
};
const orders = ({ broker }: FakeTarget) => broker.topics.get('orders');
const nothing = () => undefined;

const TROUBLES: readonly Trouble[] = [
  (_, target) => {
    const down = target.down();
    return async () => {
      await down;
      await target.up();
    };
  },
  ...(['foreign', 'plainHttp'] as const).map(
    (face): Trouble =>
      (_, target) => {
        const turned = target.present(face);
        return async () => {
          await turned;
          await target.present('own');
        };
      },
  ),
  (_, { broker }) => set(broker.settings, { hasBatch: false }),
  (_, { broker }) => set(broker.settings, { hasListing: false }),
  (_, { broker }) => set(broker.settings, { maxMessages: 100, readsEncodings: false }),
  (_, { broker }) => set(broker.settings, { maxInFlightPerUser: 1 }),
  (_, { broker }) => set(broker.users.get('replicator'), { password: 'another' }),
  (_, target) => set(orders(target), { id: '00000000000000bb' }),
  (_, target) => set(orders(target), { children: [{ name: 'c', remote: { name: 'r', topic: 't' } }] }),
  (_, target) => set(orders(target), { refuses: ({ payload, isRaw }) => isRaw && textOf(payload).includes('7') }),
  (_, target) => {
    target.maxUploadBytes = 500;
    return () => {
      target.maxUploadBytes = Number.POSITIVE_INFINITY;
    };
  },
  (world) => {
    world.failWrites = true;
    return () => {
      world.failWrites = false;
    };
  },
  (world, _, child) => {
    world.change(child, { paused: true });
    return () => world.change(child, { paused: false });
  },
  (world) => {
    world.crash();
    return nothing;
  },
  (world, _, child) => {
    world.change(child, { lanes: 3 });
    return nothing;
  },
  (world) => {
    const sealed = world.seal('b');
    return () => sealed;
  },
];

/** One node, three links to one or two remotes, trouble for a minute of its clock, and then none. */
async function runSchedule(seed: number): Promise<string> {
  const random = seededRandom(seed);
  const maxHeldBytes = pick(random, [0, 300, 1_000_000]);
  const world = new HttpsWorld({ clock: fastClock(SPEED), random, maxHeldBytes });
  try {
    const expected = await stage(world, random);
    const rate = pick(random, [0.05, 0.3, 0.6]);
    for (const target of world.targets.values()) {
      // One answer in many does not come at all: the sender waits for it as long as it may.
      target.fault = () => {
        if (random() >= rate) return undefined;
        return random() < 0.02 ? { type: 'silent', stores: random() < 0.5 } : pick(random, FAULTS);
      };
    }
    world.start();
    await disturb(world, random);
    for (const target of world.targets.values()) target.fault = undefined;
    for (const endMs = performance.now() + PATIENCE_MS; !world.isDrained && performance.now() < endMs; )
      await sleep(10);
    if (!world.isDrained) return `not drained: ${world.standing}`;
    const faults = [...expected].map(([remote, records]) => faultOf(records, storedOf(world.target(remote))));
    return faults.find((fault) => fault !== undefined) ?? 'in order and whole';
  } finally {
    await world.close();
  }
}

/** Targets, remotes and links by chance; what each remote is to hold in the end. */
async function stage(world: HttpsWorld, random: () => number): Promise<Map<string, Stored[]>> {
  const expected = new Map<string, Stored[]>();
  for (const remote of ['b', 'c']) {
    const settings = { maxMessages: pick(random, [100, 1000]), servesIds: random() < 0.7 };
    const compression = pick(random, ['none', 'zstd'] as const);
    const limits = { maxInFlight: pick(random, [1, 2, 16]), requestTimeoutMs: 5_000, checkIntervalMs: 10_000 };
    const target = await world.remote(remote, { settings }, { ...limits, compression });
    target.broker.settings.readsEncodings = random() < 0.5;
    expected.set(remote, []);
  }
  for (let n = 0; n < 3; n++) {
    const remote = pick(random, ['b', 'c']);
    const records = randomRecords(random, n, Math.floor(random() * 300));
    world.link(`child${n}`, records, { remote, lanes: pick(random, [1, 2, 4, 8]) });
    expected.get(remote)?.push(...records.map(({ key, payload }) => ({ key: textOf(key), payload: textOf(payload) })));
  }
  return expected;
}

/** One trouble after the other, for as long as things go wrong. */
async function disturb(world: HttpsWorld, random: () => number): Promise<void> {
  for (const endMs = performance.now() + FAULTY_MS; performance.now() < endMs; ) {
    await sleep(random() * 600);
    const end = pick(random, TROUBLES)(
      world,
      world.target(pick(random, ['b', 'c'])),
      pick(random, ['child0', 'child1', 'child2']),
    );
    await sleep(random() * 600);
    await end();
  }
}

function storedOf(target: FakeTarget): Stored[] {
  return target.stored().map(({ key, payload }) => ({ key: textOf(key), payload: textOf(payload) }));
}

describe('over real HTTPS', () => {
  it('20 random schedules: order for each key, and nothing lost', async () => {
    const seeds = Array.from({ length: 20 }, (_, n) => n + 1);
    const verdicts: string[] = [];
    // A few at a time: each waits most of the time.
    const waiting = [...seeds];
    const work = async () => {
      for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
        const verdict = await runSchedule(seed);
        if (verdict !== 'in order and whole') verdicts.push(`seed ${seed}: ${verdict}`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(verdicts).toEqual([]);
  }, 300_000);

  it('a dead remote sees one probe per interval and node, however many cursors there are', async () => {
    const speed = 300;
    const clock = fastClock(speed);
    // No jitter: every wait lasts as long as it may.
    const world = new HttpsWorld({ clock, random: () => 0 });
    const target = await world.remote('b', {}, {});
    for (let n = 0; n < 40; n++) world.link(`child${n}`, randomRecords(seededRandom(n + 1), n, 20), { lanes: 4 });
    target.fault = { type: 'reset' };
    world.start();
    // By then the waits are as long as they get: 30 s.
    await sleep(120_000 / speed);
    target.requests.length = 0;
    const fromMs = clock.now();
    await sleep(900_000 / speed);
    const intervals = (clock.now() - fromMs) / 30_000;
    const count = (kind: string) => target.requests.filter((request) => request.kind === kind).length;
    // A probe is a check and the batch behind it.
    expect(count('batch')).toBeGreaterThan(0);
    expect(count('batch')).toBeLessThanOrEqual(intervals + 1);
    expect(target.requests.length).toBeLessThanOrEqual(2 * (intervals + 1));
    target.fault = undefined;
    while (!world.isDrained) await sleep(10);
    expect(new Set(target.stored().map(({ payload }) => textOf(payload))).size).toBe(800);
    await world.close();
  }, 60_000);
});
