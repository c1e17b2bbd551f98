/**
 * Whatever happens between a sender and its target: each key's records arrive in order, none is lost, and what is sent
 * twice is bounded. Every schedule is a seed; a seed that fails shows it again.
 */
import { describe, expect, it } from 'vitest';
import type { HttpOutcome } from '../../src/sender/index.js';
import { seededRandom } from '../../src/testing/index.js';
import { faultOf, pick, randomRecords, type Stored, textOf } from './schedule.js';
import { edge, failure, goNotFound, json, type TargetOptions } from './target.js';
import { type Passage, READY, World } from './world.js';

/** Everything that goes wrong once, and then not: some before the target has stored a request, some after. */
const FAULTS: readonly ((random: () => number) => Passage)[] = [
  () => ({ landsMs: undefined, answersMs: 5_000, outcome: { type: 'failed', timeout: true } }),
  () => ({ landsMs: 4_000, answersMs: 5_000, outcome: { type: 'failed', timeout: true } }),
  () => ({ landsMs: undefined, outcome: { type: 'failed', timeout: false } }),
  () => ({ outcome: { type: 'failed', timeout: false } }),
  (random) => ({ landsMs: 10 + random() * 3_000, outcome: { type: 'failed', timeout: false } }),
  () => ({ outcome: failure(503, 'draining') }),
  () => ({ outcome: edge(502) }),
  () => ({ outcome: json(202, { accepted: 1_000_000 }) }),
  ...[
    { type: 'tls' },
    { type: 'refused' },
    { type: 'notSent' },
    edge(403),
    edge(404),
    edge(301),
    failure(503, 'produce failed'),
    failure(401, 'authentication required'),
    failure(403, 'produce not allowed'),
    failure(404, 'topic not found'),
    failure(409, 'topic is a delay child'),
    failure(415, 'unsupported encoding'),
    failure(413, 'request body too large'),
    failure(413, 'message 1: message too large'),
    failure(429, 'too many', { retryAfter: '2' }),
    failure(429, 'too many'),
    failure(400, 'read body: i/o timeout'),
    failure(400, 'too many messages: 3'),
    failure(400, 'message 0: invalid argument'),
    failure(400, 'message 2: invalid argument'),
    failure(400, 'something else'),
    failure(408, 'slow'),
    failure(422, 'no'),
    goNotFound(),
  ].map((outcome) => () => ({ landsMs: undefined, outcome: outcome as HttpOutcome })),
];

interface Run {
  readonly world: World;
  /** By remote: what each record became, in order. */
  readonly expected: ReadonlyMap<string, readonly Stored[]>;
  readonly crashes: number;
}

const FAULTY_MS = 60_000;

/** One node, one to three links to one or two remotes, trouble for a minute, and then none. */
function runSchedule(seed: number): Run {
  const random = seededRandom(seed);
  const world = new World({ random, maxHeldBytes: pick(random, [0, 300, 1_000_000]) });
  const rate = pick(random, [0.05, 0.3, 0.7]);
  world.passage = (): Passage => {
    const isFaulty = world.nowMs < world.startMs + FAULTY_MS && random() < rate;
    const passage = isFaulty ? pick(random, FAULTS)(random) : {};
    return passage;
  };
  const expected = new Map<string, Stored[]>();
  for (const remote of ['b', 'c']) {
    const compression = pick(random, ['none', 'zstd'] as const);
    world.remote(remote, { ...READY, limits: { ...READY.limits, maxInFlight: pick(random, [1, 2, 16]), compression } });
    Object.assign(world.target(remote).options, { maxMessages: pick(random, [100, 1000]), servesIds: random() < 0.7 });
    Object.assign(world.target(remote).options, { zstd: random() < 0.5 });
    expected.set(remote, []);
  }
  for (let n = 0; n < 3; n++) {
    const remote = pick(random, ['b', 'c']);
    world.link(`child${n}`, { remote, lanes: pick(random, [1, 2, 4, 8]) });
    const records = randomRecords(random, n, Math.floor(random() * 300));
    world.attach(`cursor${n}`, `child${n}`, n, records);
    expected.get(remote)?.push(...records.map(({ key, payload }) => ({ key: textOf(key), payload: textOf(payload) })));
  }
  const crashes = disturb(world, random);
  world.run(FAULTY_MS);
  world.run(3_600_000, () => world.isDrained);
  return { world, expected, crashes };
}

/** What a target is for a while, so that links to it stop or all of its requests are refused. */
const FINE = { topicId: '00000000000000aa', children: [], password: 'good' } as const;
const VERDICTS = {
  replaced: { topicId: '00000000000000bb' },
  remoteChildren: { children: [{ name: 'c', remote: { name: 'r', topic: 't' } }] },
  password: { password: 'bad' },
} as const;
const KINDS = ['crash', 'pause', 'lanes', 'credential', 'writes', 'replaced', 'remoteChildren', 'password'] as const;

/** Crashes, pauses, changes of lanes, credentials and targets while it runs. */
function disturb(world: World, random: () => number): number {
  let crashes = 0;
  const all = (change: Partial<TargetOptions>) => {
    for (const remote of ['b', 'c']) Object.assign(world.target(remote).options, change);
  };
  for (let i = Math.floor(random() * 6); i > 0; i--) {
    const child = pick(random, ['child0', 'child1', 'child2']);
    const inMs = random() * FAULTY_MS;
    const kind = pick(random, KINDS);
    if (kind === 'crash') crashes++;
    const lanes = pick(random, [1, 3, 8]);
    world.later(inMs, () => {
      if (kind === 'crash') world.crash();
      else if (kind === 'pause') world.link(child, { paused: true });
      else if (kind === 'lanes') world.link(child, { lanes });
      else if (kind in VERDICTS) all(VERDICTS[kind as keyof typeof VERDICTS]);
      else if (kind === 'credential') world.remote('b', { ...READY, credentialVersion: 2 });
      else world.failWrites = true;
    });
    world.later(inMs + random() * 10_000, () => {
      world.link(child, { paused: false });
      world.failWrites = false;
      all(FINE);
    });
  }
  return crashes;
}

/** Every record is there, and the first copies of those with one key came in order. */
function verdict({ world, expected }: Run): string {
  if (!world.isDrained)
    return `not drained: ${world.sender.report().cursors.map(({ state, offset }) => `${state} ${offset}`)}`;
  const faults = [...expected].map(([remote, records]) => faultOf(records, world.target(remote).stored));
  return faults.find((fault) => fault !== undefined) ?? 'in order and whole';
}

describe('random schedules', () => {
  it('500 of them: order for each key, and nothing lost', () => {
    const verdicts = new Map<string, number>();
    let requests = 0;
    for (let seed = 1; seed <= 500; seed++) {
      const run = runSchedule(seed);
      requests += run.world.sent.length;
      const found = verdict(run);
      if (found !== 'in order and whole') verdicts.set(`seed ${seed}: ${found}`, seed);
    }
    expect([...verdicts.keys()].slice(0, 20)).toEqual([]);
    expect(requests).toBeGreaterThan(15_000);
  }, 300_000);
});
