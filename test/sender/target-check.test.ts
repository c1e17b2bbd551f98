/** The running check of a target, and the probe of what it takes. */
import { describe, expect, it } from 'vitest';
import {
  type Capabilities,
  CapabilityProbe,
  DEFAULT_CAPABILITIES,
  type HttpOutcome,
  judgeTarget,
  KnownCapabilities,
  type SenderRequest,
} from '../../src/sender/index.js';
import { edge, failure } from './target.js';
import { manyRecords, READY, recordOf, World } from './world.js';

const isRead = ({ method }: SenderRequest) => method === 'GET';
const reads = (world: World) => world.sent.filter(({ request }) => isRead(request));
const chunks = (world: World) => world.sent.filter(({ request }) => request.pool === 'chunk');

function started(records = manyRecords(10), passage?: World['passage'], random = 0.5): World {
  const world = new World({ random: () => random });
  if (passage !== undefined) world.passage = passage;
  world.remote('b');
  world.link('child');
  world.attach('c', 'child', 0, records);
  return world;
}

/** Every read fails so, everything else passes. */
const failing =
  (outcome: HttpOutcome): World['passage'] =>
  (request) =>
    isRead(request) ? { landsMs: undefined, outcome } : {};

describe('the verdict on a target', () => {
  const listing = (topicId: string | undefined, hasRemoteChild = false) => ({ topicId, hasRemoteChild });
  it.each<[string, ReturnType<typeof judgeTarget>, string]>([
    ['the recorded ID', judgeTarget(listing('a'), 'a'), 'fine'],
    ['another ID', judgeTarget(listing('b'), 'a'), 'target_replaced'],
    ['an ID where none was recorded', judgeTarget(listing('b'), ''), 'target_replaced'],
    ['no ID, where IDs are served, and one was recorded', judgeTarget(listing(''), 'a'), 'target_replaced'],
    ['no ID and none recorded', judgeTarget(listing(''), ''), 'fine'],
    ['an old release that describes the recorded ID', judgeTarget(listing(undefined), 'a', 'a'), 'fine'],
    ['an old release that describes another', judgeTarget(listing(undefined), 'a', 'b'), 'target_replaced'],
    ['an old release that describes none', judgeTarget(listing(undefined), 'a', ''), 'fine'],
    ['a remote child, whatever the ID', judgeTarget(listing('b', true), 'a'), 'target_has_remote_children'],
  ])('%s', (_, verdict, expected) => {
    expect(verdict).toBe(expected);
  });
});

describe('the running check', () => {
  it('comes first when a cursor starts, and every interval with 20% jitter, also without records', () => {
    for (const [random, intervalMs] of [
      [0, 48_000],
      [0.999_999, 72_000],
    ] as const) {
      const world = started([], undefined, random);
      world.run(400_000);
      const gaps = reads(world).map(({ atMs }, n, all) => atMs - (all[n - 1]?.atMs ?? atMs));
      expect(Math.round((gaps[2] ?? 0) / 1_000) * 1_000).toBe(intervalMs);
      expect(chunks(world)).toEqual([]);
    }
  });

  it('is one for all partitions of a link on a node', () => {
    const world = new World();
    world.remote('b');
    world.link('child', { lanes: 4 });
    for (const partition of [0, 1, 2, 3]) world.attach(`c${partition}`, 'child', partition, manyRecords(50));
    world.run(300_000);
    expect(reads(world).length).toBe(5);
  });

  it.each([
    ['target_has_remote_children', { children: [{ name: 'x', remote: { name: 'y' } }] }, { children: [] }],
    ['target_replaced', { topicId: '00000000000000bb' }, { topicId: '00000000000000aa' }],
  ])('%s: nothing is sent, it is looked at every 30 s, and sending goes on once that is over', (state, bad, good) => {
    const world = started();
    Object.assign(world.target().options, bad);
    world.run(95_000);
    expect([world.state('c'), chunks(world).length, reads(world).length]).toEqual([state, 0, 4]);
    Object.assign(world.target().options, good);
    const read = world.reads.length;
    world.run(31_000, () => world.isDrained);
    expect([world.isDrained, world.state('c'), read]).toEqual([true, 'running', 1]);
  });

  it('a stopped link without records, whose check falls due behind a closed gate, is looked at once that opens', () => {
    const world = new World();
    world.remote('b');
    world.target().options.topicId = '00000000000000bb';
    world.link('stopped');
    world.link('busy', { targetId: '00000000000000bb' });
    world.attach('s', 'stopped', 0, []);
    world.attach('c', 'busy', 0, manyRecords(10));
    world.run(20_000);
    expect([world.state('s'), world.state('c')]).toEqual(['target_replaced', 'running']);
    world.passage = () => ({ landsMs: undefined, outcome: { type: 'failed', timeout: false } });
    world.records.get('c')?.push(...manyRecords(20).slice(10));
    world.records.get('s')?.push(...manyRecords(10));
    world.run(60_000);
    world.target().options.topicId = '00000000000000aa';
    world.passage = () => ({});
    world.run(300_000);
    expect([world.state('s'), world.durable.get('s')]).toEqual(['running', 10]);
  });

  it('a stopped link without records reads none', () => {
    const world = started([]);
    world.target().options.topicId = '00000000000000bb';
    world.run(100_000);
    expect([world.state('c'), world.reads.length]).toEqual(['target_replaced', 1]);
  });

  it('a check that errs says nothing against a verdict: the link stays stopped', () => {
    const world = started();
    world.target().options.topicId = '00000000000000bb';
    world.run(1_000);
    world.passage = failing(failure(503, 'x'));
    world.run(300_000);
    expect([world.state('c'), chunks(world).length, reads(world).length]).toEqual(['target_replaced', 0, 11]);
  });

  it('a resume that accepts the target goes on at once', () => {
    const world = started();
    world.target().options.topicId = '00000000000000bb';
    world.run(1_000);
    world.link('child', { targetId: '00000000000000bb' });
    world.run(100, () => world.isDrained);
    expect(world.isDrained).toBe(true);
  });

  it('a running link stops with its next check', () => {
    const world = started();
    world.run(1_000);
    world.target().options.topicId = '00000000000000bb';
    world.run(60_000);
    world.records.get('c')?.push(recordOf(10, 'k', '1'));
    world.run(5_000);
    expect([world.state('c'), world.target().stored.length]).toEqual(['target_replaced', 10]);
  });

  it('an old release is asked for the topic itself', () => {
    const world = started();
    world.target().options.servesIds = false;
    world.run(1_000, () => world.isDrained);
    expect(reads(world).map(({ request }) => request.path)).toEqual([
      '/v1/topics/orders/children',
      '/v1/topics/orders',
    ]);
    expect(world.isDrained).toBe(true);
  });

  it('one that errs beside an open gate stops nothing, and is tried again after 30 s, not before every request', () => {
    const world = started(manyRecords(10), failing(failure(503, 'x')));
    for (let n = 0; n < 20; n++) world.at(n * 1_000, () => world.records.get('c')?.push(recordOf(10 + n, 'k', '1')));
    world.run(29_000);
    expect([world.target().stored.length, reads(world).length]).toEqual([30, 1]);
    world.run(60_000);
    expect(reads(world).length).toBe(3);
    const { links, remotes, cursors } = world.sender.report();
    expect(links.child?.fanoutRemoteCheckFailuresTotal).toBe(3);
    expect(remotes.b?.remoteErrorsTotal).toEqual({ unavailable: 3 });
    expect([cursors[0]?.state, cursors[0]?.targetVerifiedMs]).toEqual(['unavailable', undefined]);
  });

  it('a refusal of the listing has reached the target: shown while idle, and asked again after an interval', () => {
    const world = started([], failing(failure(403, 'no')));
    world.run(59_000);
    expect([world.state('c'), reads(world).length]).toEqual(['forbidden', 1]);
    world.run(2_000);
    expect(reads(world).length).toBe(2);
  });

  it('a closed gate’s probe checks first; failing in passing it still sends, and the check stays owed after it opened', () => {
    const world = started(manyRecords(150));
    world.target().options.maxMessages = 100;
    let refused = 0;
    // The first check is out already.
    world.passage = (request) => {
      if (isRead(request)) return { landsMs: undefined, outcome: failure(503, 'x') };
      return request.pool === 'chunk' && refused++ < 3 ? { landsMs: undefined, outcome: edge(502) } : {};
    };
    world.run(10_000, () => world.isDrained);
    const kinds = world.sent.map(({ request }) => (isRead(request) ? 'check' : request.pool));
    // What comes first, three failures that close the gate, the probe, and behind it what was owed.
    const closing = ['check', 'side', 'chunk', 'chunk', 'chunk'];
    expect(kinds).toEqual([...closing, 'check', 'chunk', 'check', 'chunk']);
  });

  it('a probe whose check is refused as a whole sends no chunk behind it', () => {
    const world = started(manyRecords(10), failing(failure(401, 'no')));
    world.run(200_000);
    expect([chunks(world).length, reads(world).length, world.state('c')]).toEqual([0, 7, 'auth_failed']);
  });

  it('a lane that is paused while its check is the probe keeps the probe until the answer is there', () => {
    const world = started(manyRecords(10), () => ({ landsMs: undefined, outcome: { type: 'tls' } }));
    world.link('other');
    world.attach('o', 'other', 1, manyRecords(10));
    world.run(100);
    world.passage = () => ({ landsMs: undefined, answersMs: 20_000, outcome: { type: 'failed', timeout: true } });
    const before = world.sent.length;
    world.run(60_000, () => world.sent.length > before);
    for (const child of ['child', 'other']) world.link(child, { paused: true });
    for (const child of ['child', 'other']) world.link(child, { paused: false });
    world.run(19_000);
    expect(world.sent).toHaveLength(before + 1);
  });

  it('a dial that the guard refuses behind a closed gate is not tried faster than it is told of', () => {
    const world = started([], () => ({ landsMs: undefined, outcome: { type: 'tls' } }));
    world.run(100);
    world.passage = () => ({ landsMs: undefined, outcome: { type: 'refused' } });
    const before = world.sent.length;
    world.run(95_000);
    expect(world.sent.length - before).toBe(4);
    expect(world.state('c')).toBe('destination_refused');
  });

  it('a superseded credential says nothing of the new one', () => {
    const world = started(manyRecords(10), (request) =>
      isRead(request) ? { answersMs: 5_000, landsMs: undefined, outcome: failure(401, 'no') } : {},
    );
    world.run(1_000);
    world.passage = () => ({});
    world.remote('b', { ...READY, credentialVersion: 2 });
    world.run(10_000, () => world.isDrained);
    expect([world.isDrained, world.state('c')]).toEqual([true, 'running']);
  });

  it('without a usable remote nothing is asked or read, and everything goes on once it is there', () => {
    for (const state of ['remote_missing', 'credential_unreadable', 'node_insecure'] as const) {
      const world = new World();
      world.remote('b', { state });
      world.link('child');
      world.attach('c', 'child', 0, manyRecords(3));
      world.run(60_000);
      expect([world.state('c'), world.sent.length, world.reads.length]).toEqual([state, 0, 0]);
      world.remote('b');
      world.run(1_000, () => world.isDrained);
      expect(world.isDrained).toBe(true);
      const told = world.logs.map(({ type }) => type);
      expect(told.includes('credentialUnreadable')).toBe(state === 'credential_unreadable');
    }
  });

  it('a remote that goes missing holds its lanes', () => {
    const world = started(manyRecords(1_200));
    world.run(6, () => chunks(world).length > 0);
    world.remote('b', { state: 'remote_missing' });
    world.run(100_000);
    expect([world.state('c'), chunks(world).length]).toEqual(['remote_missing', 1]);
    world.remote('b');
    world.run(1_000, () => world.isDrained);
    expect(world.isDrained).toBe(true);
  });
});

describe('the capability probe', () => {
  const compress = (body: Uint8Array) => body;
  /** What a probe comes to, with these answers one after the other. */
  function probe(asksForZstd: boolean, ...outcomes: readonly HttpOutcome[]): Capabilities | string {
    const made = new CapabilityProbe('orders', asksForZstd ? compress : undefined);
    let request: SenderRequest = made.first();
    for (const outcome of outcomes) {
      expect(request).toMatchObject({ method: 'POST', path: '/v1/topics/orders/produce/batch', pool: 'side' });
      const next = made.answered(outcome);
      if (next === 'inconclusive' || !('path' in next)) return next;
      request = next;
    }
    return `asks for ${request.encoding}`;
  }

  const large = failure(400, 'message 0: message required');
  const small = failure(400, 'too many messages: 101');
  it.each<[string, ReturnType<typeof probe>, ReturnType<typeof probe>]>([
    ['the first message is named: 1,000', probe(false, large), { maxMessages: 1_000, zstd: false }],
    ['too many: 100', probe(false, small), { maxMessages: 100, zstd: false }],
    ['anything else tells nothing', probe(false, failure(503, 'x')), 'inconclusive'],
    ['the same text from elsewhere tells nothing', probe(false, edge(400)), 'inconclusive'],
    ['zstd is asked for only where the remote does', probe(true, large), 'asks for zstd'],
    ['decoded: zstd', probe(true, large, failure(400, 'messages required')), { maxMessages: 1_000, zstd: true }],
    ['415: none', probe(true, small, edge(415)), { maxMessages: 100, zstd: false }],
    ['read as JSON: none', probe(true, large, failure(400, 'invalid json: x')), { maxMessages: 1_000, zstd: false }],
    ['anything else, and the 1,000 is not kept', probe(true, large, failure(500, 'x')), 'inconclusive'],
  ])('%s', (_, found, expected) => {
    expect(found).toEqual(expected);
  });

  it('holds for an interval; while it is renewed the old answer serves, and none is begun beside another', () => {
    const known = new KnownCapabilities();
    const { limits } = READY;
    const begin = (nowMs: number) => known.begin('orders', limits, compress, nowMs);
    const first = begin(0);
    expect([begin(1), known.current]).toEqual([undefined, DEFAULT_CAPABILITIES]);
    const found = { maxMessages: 1_000, zstd: false };
    if (first !== undefined) known.end(first, found, limits, 10);
    expect([begin(60_009), known.current]).toEqual([undefined, found]);
    const second = begin(60_010);
    expect([second === undefined, known.current]).toEqual([false, found]);
    if (second !== undefined) known.end(second, 'inconclusive', limits, 60_020);
    expect([begin(90_019), known.current]).toEqual([undefined, DEFAULT_CAPABILITIES]);
    const third = begin(90_020);
    known.forget(limits, 90_030);
    if (third !== undefined) known.end(third, found, limits, 90_040);
    expect([begin(150_029), known.current]).toEqual([undefined, DEFAULT_CAPABILITIES]);
    expect(begin(150_030)).toBeDefined();
    known.reset();
    expect(begin(150_031)).toBeDefined();
  });
});
