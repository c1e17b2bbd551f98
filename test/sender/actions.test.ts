/** What each answer does to a cursor, as stories. */
import { describe, expect, it } from 'vitest';
import { answering, bodyOf, chunks, counters, isChunk, payloads, side, sizes, stallLogs, started } from './stories.js';
import { edge, failure, goNotFound } from './target.js';
import { manyRecords, READY, recordOf, World } from './world.js';

describe('what each answer does', () => {
  it('a named record: those before it go alone, it goes once as base64, and is taken so', () => {
    const world = started();
    world.target().options.refuses = (payload, isRaw) => isRaw && payload === '{"n":4}';
    world.run(5_000, () => world.isDrained);
    expect(sizes(world)).toEqual([10, 4, 1, 1, 5]);
    expect(bodyOf(chunks(world)[3]?.request)).toContain('"payload_encoding":"base64"');
    expect(payloads(world)).toEqual(manyRecords(10).map(({ payload }) => String(payload)));
  });

  it('a record that is refused both ways blocks its lane and no other', () => {
    const world = started(manyRecords(40, 20), { link: { lanes: 4 } });
    world.target().options.refuses = (payload) => payload === '{"n":4}';
    world.run(5_000);
    expect(world.state('c')).toBe('rejected_record');
    expect(counters(world).cursors[0]?.blockedAt).toMatchObject({ offset: 4, state: 'rejected_record' });
    // k4 travels on one lane, and every other key is there.
    expect(world.target().stored.filter(({ key }) => key === 'k4')).toEqual([]);
    expect(payloads(world).length).toBeGreaterThan(20);
  });

  it('a blocked record is tried alone every 30 s, and what lies behind it does not go out one by one afterwards', () => {
    const world = started();
    world.target().options.refuses = (payload) => payload === '{"n":4}';
    world.run(305_000);
    const before = chunks(world).length;
    expect(sizes(world).slice(0, 5)).toEqual([10, 4, 1, 1, 1]);
    expect(before).toBe(14);
    world.target().options.refuses = () => false;
    world.run(60_000, () => world.isDrained);
    expect(sizes(world).slice(before)).toEqual([1, 5]);
  });

  it('a skip passes exactly the record that the lane is blocked on', () => {
    const world = started();
    world.target().options.refuses = (payload) => payload === '{"n":4}';
    world.link('child', {
      skips: [
        { partition: 1, offset: 4 },
        { partition: 0, offset: 3 },
      ],
    });
    world.run(40_000);
    expect(world.state('c')).toBe('rejected_record');
    world.link('child', { skips: [{ partition: 0, offset: 4 }] });
    world.run(1_000, () => world.isDrained);
    expect(payloads(world)).not.toContain('{"n":4}');
    expect([payloads(world).length, counters(world).links.child?.fanoutRemoteSkippedRecordsTotal]).toEqual([9, 1]);
    expect(stallLogs(world)).toEqual(['blocked rejected_record', 'stalled rejected_record', 'skipped', 'runningAgain']);
  });

  it('a refusal without a name is halved down to the one record', () => {
    const refused = failure(422, 'no');
    const world = started(manyRecords(8), {}, answering(refused, refused, refused, refused));
    world.run(5_000, () => world.isDrained);
    expect(sizes(world)).toEqual([8, 4, 2, 1, 1, 1, 2, 4]);
  });

  it('409 blocks the first record, and the target is checked before anything else', () => {
    const world = started(manyRecords(10), {}, answering(failure(409, 'topic is a remote child')));
    world.run(1_000);
    expect(world.state('c')).toBe('rejected_record');
    const before = side(world).length;
    world.run(32_000, () => world.isDrained);
    expect([side(world).length, world.isDrained]).toEqual([before + 1, true]);
    expect(sizes(world)).toEqual([10, 1, 9]);
  });

  it('413 halves the request, and a single record that still gets it blocks without a try as base64', () => {
    const world = started(manyRecords(4));
    world.passage = (request) =>
      isChunk(request) && bodyOf(request).includes('{"n":2}') ? { landsMs: undefined, outcome: edge(413) } : {};
    world.run(5_000);
    expect(sizes(world)).toEqual([4, 2, 2, 1]);
    expect(world.state('c')).toBe('record_too_large');
  });

  it('413 with a name isolates that record at once', () => {
    const world = started(manyRecords(9), {}, answering(failure(413, 'message 3: message too large')));
    world.run(5_000, () => world.isDrained);
    expect(sizes(world)).toEqual([9, 3, 1, 5]);
  });

  it('401 closes the gate for 30 s, and a new credential opens it at once', () => {
    const world = started();
    world.target().options.password = 'bad';
    world.run(29_000);
    expect([world.sent.length, world.state('c')]).toEqual([1, 'auth_failed']);
    world.target().options.password = 'good';
    world.remote('b', { ...READY, credentialVersion: 2 });
    world.run(1_000, () => world.isDrained);
    expect([world.isDrained, world.state('c')]).toEqual([true, 'running']);
  });

  it('a 401 to a credential that was replaced meanwhile closes nothing', () => {
    const world = started(manyRecords(10), {}, (request) =>
      isChunk(request) ? { landsMs: undefined, answersMs: 5_000, outcome: failure(401, 'no') } : {},
    );
    world.run(1_000);
    world.passage = () => ({});
    world.remote('b', { ...READY, credentialVersion: 2 });
    world.run(4_500, () => world.isDrained);
    expect(world.isDrained).toBe(true);
  });

  it.each([
    ['403', 'forbidden', failure(403, 'produce not allowed')],
    ["the target's 404", 'target_missing', failure(404, 'topic not found')],
    ['3xx', 'redirect_refused', edge(302)],
    ["Go's 404 of a target that lists children", 'no_batch_produce', goNotFound()],
    ['a refused dial', 'destination_refused', { type: 'refused' } as const],
  ])('%s stalls: the target is checked and the records go again after 30 s', (_, state, outcome) => {
    const world = started(manyRecords(10), {}, answering(outcome));
    world.run(29_000);
    expect([world.state('c'), chunks(world).length]).toEqual([state, 1]);
    const checks = side(world).length;
    world.run(2_000, () => world.isDrained);
    expect([world.isDrained, side(world).length - checks]).toEqual([true, 1]);
    const status = outcome.type === 'answer' ? { status: outcome.status } : {};
    expect(world.logs).toMatchObject([
      {
        type: 'stalled',
        level: 'error',
        parent: 'orders',
        partition: 0,
        child: 'child',
        remote: 'b',
        state,
        ...status,
      },
      { type: 'runningAgain', after: state },
    ]);
  });

  it('a stall is tried at once when the remote or the link changes', () => {
    const world = started(manyRecords(10), {}, answering(edge(302), edge(302)));
    world.run(1_000);
    world.limits('b', { maxInFlight: 4 });
    world.run(1_000);
    expect(chunks(world)).toHaveLength(2);
    world.link('child', { skips: [] });
    world.run(1_000);
    expect([chunks(world).length, world.isDrained]).toEqual([3, true]);
  });

  it("Go's 404 without a listing behind it came from something in front: tried again soon", () => {
    const world = started();
    let left = 1;
    world.passage = (request) => {
      if (isChunk(request)) return left-- > 0 ? { landsMs: undefined, outcome: goNotFound() } : {};
      return left === 0 ? { outcome: edge(200) } : {};
    };
    world.run(2_000, () => world.isDrained);
    expect(world.isDrained).toBe(true);
    expect(counters(world).remotes.b).toMatchObject({ remoteErrorsTotal: { edge: 1 }, remoteResentRecordsTotal: 0 });
  });

  it('429 closes the gate for Retry-After, whether a chunk or a check got it', () => {
    const told = failure(429, 'slow down', { retryAfter: '9' });
    const chunk = started(manyRecords(10), {}, answering(told));
    chunk.run(9_000);
    expect([chunk.state('c'), chunks(chunk).length, side(chunk).length]).toEqual(['throttled', 1, 1]);
    chunk.run(1_000, () => chunk.isDrained);
    expect(chunk.isDrained).toBe(true);
    let isFirst = true;
    const check = started(manyRecords(10), {}, () => {
      const passage = isFirst ? { outcome: told } : {};
      isFirst = false;
      return passage;
    });
    check.run(9_000);
    expect([check.state('c'), check.sent.length]).toEqual(['throttled', 1]);
    check.run(1_000, () => check.isDrained);
    expect(check.isDrained).toBe(true);
  });

  it('what may have landed counts as resent; a timeout also makes the lane’s requests smaller', () => {
    const world = started(
      manyRecords(10),
      {},
      answering({ type: 'failed', timeout: true }, failure(503, 'x'), undefined),
    );
    world.run(5_000, () => world.isDrained);
    expect(counters(world).remotes.b).toMatchObject({
      remoteResentRecordsTotal: 20,
      remoteErrorsTotal: { unavailable: 2 },
      remoteChunkBytesLimit: 491_520,
    });
  });

  it('a TLS failure closes the gate with its ordinary backoff', () => {
    const world = started(manyRecords(10), {}, answering({ type: 'tls' }));
    world.run(100);
    expect(world.state('c')).toBe('tls_failed');
    expect(counters(world).remotes.b?.remoteGateBackoffSeconds).toBe(0.25);
    world.run(1_000, () => world.isDrained);
    expect(world.isDrained).toBe(true);
  });

  it('too many messages: smaller requests at once, no record is blamed, and no error is counted', () => {
    const world = started(manyRecords(300), {}, answering(failure(400, 'too many messages: 300')));
    world.run(5_000, () => world.isDrained);
    expect(sizes(world)).toEqual([300, 100, 100, 100]);
    expect(counters(world).remotes.b?.remoteErrorsTotal).toEqual({});
    expect(stallLogs(world)).toEqual(['fewerMessages']);
  });

  it('a compressed request that is not decoded goes again at once as it is, and nothing is compressed for an interval', () => {
    const world = new World();
    world.limits('b', { compression: 'zstd' });
    world.passage = answering(failure(415, 'unsupported encoding'));
    world.link('child');
    world.attach('c', 'child', 0, manyRecords(150));
    world.run(5_000, () => world.isDrained);
    expect(chunks(world).map(({ request }) => request.encoding)).toEqual(['zstd', undefined, undefined]);
    world.records
      .get('c')
      ?.push(...manyRecords(150).map(({ offset, payload }) => recordOf(150 + offset, 'k', String(payload))));
    world.run(70_000);
    world.records
      .get('c')
      ?.push(...manyRecords(150).map(({ offset, payload }) => recordOf(300 + offset, 'k', String(payload))));
    world.run(5_000);
    expect(
      chunks(world)
        .map(({ request }) => request.encoding ?? '-')
        .join(' '),
    ).toBe('zstd - - - - zstd');
  });
});
