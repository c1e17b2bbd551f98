/** What a cursor does with its slabs, as stories, and what it refuses to be told. */
import { describe, expect, it } from 'vitest';
import { refusal } from '../support/expect.js';
import { answering, bodyOf, chunks, counters, isChunk, payloads, sizes, started } from './stories.js';
import { failure } from './target.js';
import { manyRecords, READY, recordOf, World } from './world.js';

describe('a slab', () => {
  it('goes in requests as large as the target takes, after a check of the target and a probe of what it takes', () => {
    const world = started(manyRecords(1_200));
    world.run(5_000, () => world.isDrained);
    expect(world.sent[0]?.request).toMatchObject({ method: 'GET', path: '/v1/topics/orders/children', pool: 'side' });
    expect(bodyOf(world.sent[1]?.request)).toBe(`{"messages":[${Array(101).fill('{}').join(',')}]}`);
    expect(sizes(world)).toEqual([500, 500, 200]);
    expect(payloads(world)).toEqual(manyRecords(1_200).map(({ payload }) => String(payload)));
    expect(world.state('c')).toBe('running');
  });

  it('a target of 100 messages gets 100', () => {
    const world = started(manyRecords(250));
    world.target().options.maxMessages = 100;
    world.run(5_000, () => world.isDrained);
    expect(sizes(world)).toEqual([100, 100, 50]);
  });

  it('the cursor advances only once every lane is done, and the next slab is read after that', () => {
    const world = started(manyRecords(40, 20), { link: { lanes: 4 } });
    let held = 0;
    world.passage = (request) => (isChunk(request) && held++ === 0 ? { answersMs: 10_000 } : {});
    world.run(9_000);
    expect([world.durable.get('c'), world.reads.length, payloads(world).length]).toEqual([0, 1, 40]);
    world.run(2_000);
    expect([world.durable.get('c'), world.reads.length > 1]).toEqual([40, true]);
  });

  it('a lane sends one request at a time; lanes of one slab send side by side, within the slots of the remote', () => {
    const world = new World();
    let out = 0;
    let most = 0;
    world.passage = (request) => {
      if (isChunk(request)) most = Math.max(most, ++out);
      if (isChunk(request)) world.at(50, () => out--);
      return { answersMs: 50 };
    };
    world.limits('b', { maxInFlight: 3 });
    world.link('child', { lanes: 8 });
    world.attach('c', 'child', 0, manyRecords(400, 50));
    world.run(60_000, () => world.isDrained);
    expect([world.isDrained, most]).toEqual([true, 3]);
    expect(Math.max(...chunks(world).map(({ waitedMs }) => waitedMs))).toBeGreaterThan(0);
  });

  it('is compressed where the remote asks for it and the target decodes it', () => {
    const world = new World();
    world.limits('b', { compression: 'zstd' });
    world.link('child');
    world.attach('c', 'child', 0, manyRecords(300));
    world.run(5_000, () => world.isDrained);
    expect(chunks(world).map(({ request }) => request.encoding)).toEqual(['zstd']);
    const { remoteWireBytesTotal, remoteBodyBytesTotal } = counters(world).remotes.b ?? {};
    expect(remoteWireBytesTotal).toBeLessThan((remoteBodyBytesTotal ?? 0) / 2);
    expect(payloads(world)).toHaveLength(300);
  });
});

describe('held records', () => {
  const dead: World['passage'] = () => ({ landsMs: undefined, outcome: { type: 'failed', timeout: false } });

  it('a lane that waits keeps its records in memory of its own, and gives the room back when it is done', () => {
    const records = manyRecords(10);
    const world = started(records, {}, answering(failure(403, 'no')));
    world.run(1_000);
    expect(counters(world).remoteHeldBytes).toBe(
      records.reduce((sum, { key, payload }) => sum + key.length + payload.length, 0),
    );
    for (const { payload } of records) payload.fill(0x78);
    world.run(40_000, () => world.isDrained);
    expect(payloads(world)[0]).toBe('{"n":0}');
    expect(counters(world).remoteHeldBytes).toBe(0);
  });

  it('without room nothing is kept: it is told once a minute, counted, and read again after the wait', () => {
    const world = started(
      manyRecords(10),
      { maxHeldBytes: 0 },
      answering(failure(403, 'no'), failure(403, 'no'), failure(403, 'no')),
    );
    world.run(29_000);
    expect([world.reads.length, counters(world).remoteHeldBytes]).toEqual([1, 0]);
    world.run(70_000, () => world.isDrained);
    expect(world.isDrained).toBe(true);
    expect(counters(world).links.child?.fanoutRemoteRereadsTotal).toBe(3);
    expect(world.logs.filter(({ type }) => type === 'heldFull')).toMatchObject([
      { level: 'error', unsentRecords: 10 },
      {},
    ]);
  });

  it('a read again sends only what the target does not have yet', () => {
    const world = started(manyRecords(40, 20), { link: { lanes: 4 }, maxHeldBytes: 0 });
    world.target().options.refuses = (payload) => payload === '{"n":14}';
    world.run(100_000);
    expect(counters(world).links.child?.fanoutRemoteRereadsTotal).toBeGreaterThan(1);
    // The refused record is known by its place: every 30 s it goes once, alone.
    const behind = chunks(world).filter(({ atMs }) => atMs > world.startMs + 10_000);
    expect(behind.map(({ request }) => bodyOf(request).length < 200)).toEqual([true, true, true]);
    world.target().options.refuses = () => false;
    world.run(60_000, () => world.isDrained);
    expect([world.isDrained, new Set(payloads(world)).size, payloads(world).length]).toEqual([true, 40, 40]);
  });

  it('a dead remote costs no reads: a cursor waits for the gate before it reads its next slab', () => {
    const world = started(manyRecords(10), { maxHeldBytes: 0 }, dead);
    world.run(600_000);
    expect(world.reads.length).toBeLessThan(6);
  });
});

describe('pause, detach and loss', () => {
  it('a pause ends the slab: what is in flight is waited for, nothing is held, and nothing is sent twice', () => {
    const world = started(manyRecords(40, 20), { link: { lanes: 4 } }, (request) =>
      isChunk(request) ? { answersMs: 1_000 } : {},
    );
    world.run(500);
    world.link('child', { paused: true });
    world.run(300_000);
    const sent = world.sent.length;
    expect([world.state('c'), counters(world).remoteHeldBytes]).toEqual(['paused', 0]);
    world.run(300_000);
    expect(world.sent).toHaveLength(sent);
    world.link('child', { paused: false });
    world.run(10_000, () => world.isDrained);
    expect([world.isDrained, payloads(world).length, world.state('c')]).toEqual([true, 40, 'running']);
    expect(counters(world).links.child?.fanoutRemoteRereadsTotal).toBe(0);
  });

  it('stalled and paused shows the stall', () => {
    const world = started(manyRecords(10), {}, answering(failure(403, 'no')));
    world.run(1_000);
    world.link('child', { paused: true });
    expect(world.state('c')).toBe('forbidden');
  });

  it('a detached cursor finishes its request, advances no further than what was accepted, and says when it is over', () => {
    const world = started(manyRecords(10), {}, (request) => (isChunk(request) ? { answersMs: 1_000 } : {}));
    world.run(500);
    world.tell({ type: 'detach', cursor: 'c' });
    expect(counters(world).cursors).toHaveLength(1);
    world.run(5_000);
    expect([counters(world).cursors.length, world.durable.get('c'), chunks(world).length]).toEqual([0, 10, 1]);
  });

  it('a link that is gone, or another attachment of the same child, ends its cursors', () => {
    const world = started();
    world.run(1_000);
    world.link('child', { attachEpoch: 2 });
    world.run(2_000);
    expect(counters(world).cursors).toEqual([]);
    world.attach('d', 'child', 0, manyRecords(3));
    world.tell({ type: 'link', child: 'child', record: undefined });
    world.run(2_000);
    expect([counters(world).cursors, counters(world).links]).toEqual([[], {}]);
  });

  it('what retention took is counted and told once the cursor is past it, durably', () => {
    const world = new World();
    world.remote('b');
    world.link('child');
    world.lost.set('c', { from: 0, to: 3 });
    world.failWrites = true;
    world.attach('c', 'child', 0, manyRecords(10));
    world.run(5_000);
    expect([world.logs, counters(world).links.child?.fanoutChildDroppedMessages]).toEqual([[], 0]);
    world.failWrites = false;
    world.run(5_000);
    expect(world.logs).toEqual([
      { type: 'lost', level: 'error', parent: 'orders', partition: 0, child: 'child', from: 0, to: 3 },
    ]);
    expect([payloads(world).length, counters(world).links.child?.fanoutChildDroppedMessages]).toEqual([6, 4]);
  });

  it('other lanes: their number changes with the next slab, and nothing is lost by it', () => {
    const world = started(manyRecords(40, 20), { link: { lanes: 4 }, maxHeldBytes: 0 });
    world.target().options.refuses = (payload) => payload === '{"n":14}';
    world.run(10_000);
    world.link('child', { lanes: 7 });
    world.target().options.refuses = () => false;
    world.run(60_000, () => world.isDrained);
    expect([world.isDrained, new Set(payloads(world)).size]).toEqual([true, 40]);
  });
});

describe('what operators are told', () => {
  it('a stall once as it is entered, and nothing while it is met again', () => {
    const no = failure(403, 'SECRET no');
    const world = started(manyRecords(10), {}, answering(no, no, no, no, no));
    world.run(140_000);
    expect(chunks(world)).toHaveLength(5);
    expect(world.logs.map(({ type }) => type)).toEqual(['stalled']);
    world.run(60_000, () => world.isDrained);
    expect(world.logs.map(({ type }) => type)).toEqual(['stalled', 'runningAgain']);
    expect(JSON.stringify([world.logs, counters(world)])).not.toContain('SECRET');
  });

  it('what nobody need act on is a warning, at most once a minute', () => {
    const world = started([]);
    world.passage = (request) =>
      isChunk(request) && world.nowMs % 2 < 1 ? { landsMs: undefined, outcome: failure(503, 'x') } : {};
    for (let n = 0; n < 100; n++) {
      world.at(n * 3_000, () => world.records.get('c')?.push(recordOf(n, 'k', '1')));
    }
    world.run(290_000);
    const stalls = world.logs.filter(({ type }) => type === 'stalled');
    expect(stalls.every(({ level }) => level === 'warn')).toBe(true);
    expect(stalls.length).toBeGreaterThan(2);
    expect(stalls.length).toBeLessThanOrEqual(5);
    expect(counters(world).remotes.b?.remoteErrorsTotal.unavailable).toBeGreaterThan(20);
  });
});

describe('a crash', () => {
  it('between a 202 and the cursor’s write costs a slab of duplicates at most, and no record', () => {
    const world = new World();
    world.writeMs = 50;
    world.remote('b');
    world.link('child', { lanes: 2 });
    world.attach('c', 'child', 0, manyRecords(2_000, 100));
    let crashes = 0;
    while (!world.isDrained) {
      const before = world.target().stored.length;
      world.run(10_000, () => world.target().stored.length >= before + 1_000 || world.isDrained);
      if (world.isDrained || crashes === 8) continue;
      world.crash();
      crashes++;
    }
    expect(crashes).toBeGreaterThan(1);
    expect(new Set(payloads(world)).size).toBe(2_000);
    expect(payloads(world).length - 2_000).toBeLessThanOrEqual(crashes * 1_000);
  });
});

describe('what is refused', () => {
  const world = () => started();
  it.each<[string, (world: World) => void]>([
    ['a limit above its range', (w) => w.limits('b', { maxInFlight: 257 })],
    ['a limit that is no integer', (w) => w.limits('b', { requestTimeoutMs: 5_000.5 })],
    ['a remote ID', (w) => w.remote('b', { ...READY, remoteId: 'x' })],
    ['a credential version', (w) => w.remote('b', { ...READY, credentialVersion: 0 })],
    ['a topic with a slash', (w) => w.link('child', { topic: 'a/b' })],
    ['a topic that is a path', (w) => w.link('child', { topic: '..' })],
    ['a link to a remote that was not told of', (w) => w.link('child', { remote: 'nobody' })],
    ['a cursor of no link', (w) => w.attach('x', 'nobody', 0, [])],
    ['a cursor twice', (w) => w.attach('c', 'child', 0, [])],
    ['a negative offset', (w) => w.attach('x', 'child', 0, [], -1)],
    [
      'records out of order',
      (w) =>
        w.tell({
          type: 'slab',
          cursor: 'c',
          slab: { records: [recordOf(3, '', '1'), recordOf(3, '', '1')], nextOffset: 4 },
        }),
    ],
    [
      'a next offset before the records',
      (w) => w.tell({ type: 'slab', cursor: 'c', slab: { records: [recordOf(3, '', '1')], nextOffset: 3 } }),
    ],
    ['a time that is none', (w) => w.sender.handle({ type: 'tick', nowMs: Number.NaN })],
  ])('%s', (_, run) => {
    const made = world();
    const before = JSON.stringify(made.sender.report());
    expect(refusal(() => run(made))).toBe('invalidArgument');
    expect(JSON.stringify(made.sender.report())).toBe(before);
  });
});
