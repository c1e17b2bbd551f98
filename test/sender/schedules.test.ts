/**
 * Whatever happens between a sender and its target: each key's records arrive in order, none is lost, and what is sent
 * twice is bounded. Every schedule is a seed; a seed that fails shows it again.
 */
import { describe, expect, it } from 'vitest';
import type { HttpOutcome } from '../../src/sender/index.js';
import { edge, failure, goNotFound, json, type Stored } from './target.js';
import { type Passage, READY, recordOf, World } from './world.js';

/** Numbers in [0, 1) from a seed. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const pick = <T>(random: () => number, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;

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
  const random = seeded(seed);
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
    const records = Array.from({ length: Math.floor(random() * 300) }, (_, offset) => {
      const payload = `${n} ${offset}`;
      return recordOf(offset, pick(random, ['', 'a', 'b', '\xff', 'd"']), random() < 0.5 ? `"${payload}"` : payload);
    });
    world.attach(`cursor${n}`, `child${n}`, n, records);
    expected.get(remote)?.push(...records.map(({ key, payload }) => ({ key: text(key), payload: text(payload) })));
  }
  const crashes = disturb(world, random);
  world.run(FAULTY_MS);
  world.run(3_600_000, () => world.isDrained);
  return { world, expected, crashes };
}

/** Crashes, pauses, and changes of lanes and credentials while it runs. */
function disturb(world: World, random: () => number): number {
  let crashes = 0;
  for (let i = Math.floor(random() * 6); i > 0; i--) {
    const child = pick(random, ['child0', 'child1', 'child2']);
    const inMs = random() * FAULTY_MS;
    const kind = pick(random, ['crash', 'pause', 'lanes', 'credential', 'writes'] as const);
    if (kind === 'crash') crashes++;
    const lanes = pick(random, [1, 3, 8]);
    world.later(inMs, () => {
      if (kind === 'crash') world.crash();
      else if (kind === 'pause') world.link(child, { paused: true });
      else if (kind === 'lanes') world.link(child, { lanes });
      else if (kind === 'credential') world.remote('b', { ...READY, credentialVersion: 2 });
      else world.failWrites = true;
    });
    world.later(inMs + random() * 10_000, () => {
      world.link(child, { paused: false });
      world.failWrites = false;
    });
  }
  return crashes;
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

/** Every record is there, and the first copies of those with one key came in order. */
function verdict({ world, expected }: Run): string {
  if (!world.isDrained)
    return `not drained: ${world.sender.report().cursors.map(({ state, offset }) => `${state} ${offset}`)}`;
  for (const [remote, records] of expected) {
    const place = new Map<string, number>();
    world.target(remote).stored.forEach(({ key, payload }, at) => {
      const name = `${key} ${payload}`;
      if (!place.has(name)) place.set(name, at);
    });
    const last = new Map<string, number>();
    for (const { key, payload } of records) {
      const at = place.get(`${key} ${payload}`);
      if (at === undefined) return `lost: ${payload}`;
      // A key of one parent's partition; keyless records have no order.
      const stream = `${key} ${payload.replace('"', '').split(' ')[0]}`;
      if (key !== '' && at < (last.get(stream) ?? -1)) return `overtaken: ${payload}`;
      last.set(stream, at);
    }
    if (place.size > new Set(records.map(({ key, payload }) => `${key} ${payload}`)).size) return 'something else came';
  }
  return 'in order and whole';
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
    expect(requests).toBeGreaterThan(20_000);
  }, 300_000);
});
