/** Many cursors on one node: what they share, and what they must not take from each other. */
import { describe, expect, it } from 'vitest';
import { bodyOf, chunks, isChunk, payloads, started } from './stories.js';
import { failure } from './target.js';
import { manyRecords, recordOf, recordsOf, World } from './world.js';

describe('many cursors', () => {
  it('a dead remote sees one request per interval and node, however many cursors there are', () => {
    const world = new World({ random: () => 0 });
    world.remote('b');
    world.passage = () => ({ landsMs: undefined, outcome: { type: 'failed', timeout: false } });
    for (let n = 0; n < 40; n++) {
      world.link(`child${n}`, { lanes: 4 });
      for (const partition of [0, 1, 2])
        world.attach(`c${n}.${partition}`, `child${n}`, partition, manyRecords(50, 20));
    }
    world.run(60_000);
    const before = world.sent.length;
    world.run(600_000);
    // A probe is a check and the chunk behind it, every 30 s.
    expect(world.sent.length - before).toBeLessThanOrEqual(2 * 21);
    expect(chunks(world).filter(({ atMs }) => atMs > world.startMs + 60_000).length).toBeLessThanOrEqual(21);
    world.passage = () => ({});
    world.run(120_000, () => world.isDrained);
    expect([world.isDrained, payloads(world).length]).toEqual([true, 6_000]);
  });

  it('one request is out at a time while the gate is closed, also when a link is paused under its probe', () => {
    const world = new World();
    let out = 0;
    let most = 0;
    world.remote('b');
    world.passage = () => {
      out++;
      if (world.nowMs > world.startMs + 200_000) most = Math.max(most, out);
      world.at(20_000, () => out--);
      return { landsMs: undefined, answersMs: 20_000, outcome: { type: 'failed', timeout: true } };
    };
    for (let n = 0; n < 6; n++) {
      world.link(`child${n}`, { lanes: 2 });
      world.attach(`c${n}`, `child${n}`, 0, manyRecords(20));
      for (let at = 0; at < 100; at++)
        world.at(n * 900 + at * 7_000, () => world.link(`child${n}`, { paused: at % 2 === 0 }));
    }
    world.run(700_000);
    expect(most).toBe(1);
  });

  it('a wrong password costs one failed login per 30 s, however many cursors there are', () => {
    const world = new World();
    world.remote('b');
    world.target().options.password = 'bad';
    for (let n = 0; n < 20; n++) {
      world.link(`child${n}`);
      world.attach(`c${n}`, `child${n}`, 0, n % 2 === 0 ? manyRecords(5) : []);
    }
    world.run(299_000);
    expect(world.sent).toHaveLength(10);
  });

  it('B65: one destination hangs, and nine finish as if they were alone', () => {
    const finished = (withHanging: boolean) => {
      const world = new World();
      world.passage = (_, remote) =>
        remote === 'r0' && withHanging
          ? { landsMs: undefined, answersMs: 30_000, outcome: { type: 'failed', timeout: true } }
          : {};
      for (let n = withHanging ? 0 : 1; n < 10; n++) {
        world.remote(`r${n}`);
        world.link(`child${n}`, { remote: `r${n}` });
        world.attach(`c${n}`, `child${n}`, 0, manyRecords(100));
      }
      world.run(1_000);
      return {
        world,
        at: chunks(world)
          .map(({ atMs, remote }) => `${remote} ${atMs}`)
          .filter((at) => !at.startsWith('r0')),
      };
    };
    const { world, at } = finished(true);
    expect(at).toEqual(finished(false).at);
    expect([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => payloads(world, `r${n}`).length)).toEqual(Array(9).fill(100));
  });

  it('B65: a lane that retries has no slot while it waits, and its retries stay in order', () => {
    const world = new World();
    world.limits('b', { maxInFlight: 1 });
    let refused = 0;
    world.passage = (request) => {
      const isFirst = isChunk(request) && bodyOf(request).includes('"first"');
      return isFirst && refused++ < 2 ? { landsMs: undefined, outcome: failure(503, 'x') } : {};
    };
    for (const name of ['first', 'fresh']) {
      world.link(name);
      world.attach(name, name, 0, recordsOf([name, '1'], [name, '2'], [name, '3']));
    }
    world.run(100);
    expect(world.target().stored.filter(({ key }) => key === 'fresh')).toHaveLength(3);
    world.run(10_000, () => world.isDrained);
    expect(
      world
        .target()
        .stored.filter(({ key }) => key === 'first')
        .map(({ payload }) => payload),
    ).toEqual(['1', '2', '3']);
  });

  it('lanes take turns: one with much to send gives its slot back after every request', () => {
    const world = new World();
    world.limits('b', { maxInFlight: 1 });
    world.target().options.maxMessages = 100;
    for (const name of ['one', 'two']) {
      world.link(name, { topic: name });
      world.attach(name, name, 0, manyRecords(2_000));
    }
    world.run(10_000, () => world.isDrained);
    const turns = chunks(world).map(({ request }) => (request.path.includes('one') ? '1' : '2'));
    // Both send from the sixth request on; between two slabs one of them has nothing to send for a moment.
    expect(turns).toHaveLength(40);
    expect(turns.slice(5, 30).join('')).not.toMatch(/111|222/);
  });

  it('B66: the limit and the gate are the remote’s: over all its links and cursors, and over no other remote', () => {
    const world = new World();
    const out: Record<string, number> = { b: 0, c: 0 };
    const most: Record<string, number> = { b: 0, c: 0 };
    world.passage = (request, remote) => {
      if (!isChunk(request)) return {};
      out[remote] = (out[remote] ?? 0) + 1;
      most[remote] = Math.max(most[remote] ?? 0, out[remote] ?? 0);
      world.at(20, () => {
        out[remote] = (out[remote] ?? 0) - 1;
      });
      return { answersMs: 20 };
    };
    for (const remote of ['b', 'c']) world.limits(remote, { maxInFlight: 1 });
    for (const [n, remote] of ['b', 'b', 'b', 'c'].entries()) {
      world.link(`child${n}`, { remote, topic: `topic${n}`, lanes: 4 });
      world.attach(`c${n}`, `child${n}`, 0, manyRecords(100, 40));
    }
    world.run(20_000, () => world.isDrained);
    expect([world.isDrained, most]).toEqual([true, { b: 1, c: 1 }]);
    world.passage = (_, remote) => (remote === 'b' ? { outcome: { type: 'tls' } } : {});
    for (const n of [0, 3]) world.records.get(`c${n}`)?.push(recordOf(100, 'k', '1'));
    world.run(5_000);
    expect([world.state('c0'), world.state('c3')]).toEqual(['tls_failed', 'running']);
  });

  it('B67: what is sent again is the same, byte for byte, also after a restart', () => {
    const world = started(manyRecords(10), {}, (request) =>
      isChunk(request) ? { outcome: { type: 'failed', timeout: false } } : {},
    );
    world.run(1_000);
    world.crash();
    world.run(1_000);
    world.passage = () => ({});
    world.run(60_000, () => world.isDrained);
    const bodies = chunks(world).map(({ request }) => bodyOf(request));
    expect(bodies.length).toBeGreaterThan(3);
    expect(new Set(bodies).size).toBe(1);
  });
});
