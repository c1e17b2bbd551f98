/** The gates in front of writes, and the proof that nothing is unshipped. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BACKLOG_SCANS,
  countUnshipped,
  hopGate,
  isShipped,
  judgeDelete,
  postureGate,
  type ReleaseReading,
  releaseGate,
  SingleFlight,
  UNSHIPPED_FLIGHTS,
  type UnshippedPorts,
  WRITE_GATES,
  WritePace,
} from '../../src/sender/index.js';

const ALLOWED = { allowed: true };
const refused = (name: string, ...nodes: string[]) => ({ allowed: false, status: 412, class: name, nodes });

describe('the gates of a write', () => {
  const member = (node: string, entryTypes = 37) => ({ node, entryTypes });
  it.each<[string, ReleaseReading, object]>([
    ['every member applies the entries', { members: [member('a'), member('b', 40)], raftServers: ['a', 'b'] }, ALLOWED],
    [
      'one falls short',
      { members: [member('a'), member('b', 36), member('c', 1)], raftServers: [] },
      refused('old_release', 'b'),
    ],
    ['a server without a record', { members: [member('a')], raftServers: ['a', 'x'] }, refused('old_release', 'x')],
    ['nothing could be read', { error: 'no leader' }, { ...refused('unreadable'), reason: 'no leader' }],
  ])('release: %s', (_, reading, expected) => {
    expect(releaseGate(reading)).toEqual(expected);
  });

  it('posture: every member answers, has security on and legacy authentication off; Raft TLS is its own matter', () => {
    const good = { securityOn: true, legacyAuth: false, raftTls: false };
    const gate = (...members: (typeof good | undefined)[]) =>
      postureGate({ allowed: true }, new Map(members.map((posture, n) => [`n${n}`, posture])));
    expect(gate(good, { ...good, raftTls: true })).toEqual(ALLOWED);
    expect(gate(good, undefined, { ...good, legacyAuth: true }, undefined)).toEqual(refused('old_release', 'n1', 'n3'));
    expect(gate(good, { ...good, legacyAuth: true }, { ...good, securityOn: false })).toEqual(
      refused('node_insecure', 'n1', 'n2'),
    );
    const short = releaseGate({ error: 'x' });
    expect(postureGate(short, new Map())).toBe(short);
  });

  it('hop: attested, and with a strong secret', () => {
    const gate = (apiHopEncrypted: boolean, isSecretStrong: boolean) => hopGate({ apiHopEncrypted, isSecretStrong });
    expect([gate(true, true), gate(false, true), gate(true, false)]).toEqual([
      ALLOWED,
      refused('hop_unencrypted'),
      refused('weak_secret'),
    ]);
  });

  it('which gates for which write', () => {
    const told = Object.entries(WRITE_GATES).map(([write, gates]) => `${write}: ${gates.join(' ')}`);
    expect(told).toEqual([
      'create: hop release posture',
      'password_change: hop release posture',
      'update: release posture',
      'reencrypt: release posture',
      'attach: release posture',
      'resume: release posture',
      'pause: release',
      'skip: release',
      'remote_delete: release',
      'link_delete: unshipped',
    ]);
  });

  it('10 writes of remotes in any minute, 60 of links in each', () => {
    const pace = new WritePace();
    const remote = (nowMs: number) => pace.remoteWrite(nowMs);
    expect(Array.from({ length: 10 }, (_, n) => remote(n * 1_000))).toEqual(Array(10).fill('taken'));
    expect([remote(10_000), remote(59_999), remote(60_000), remote(60_500)]).toEqual([
      { retryAfterMs: 50_000 },
      { retryAfterMs: 1 },
      'taken',
      { retryAfterMs: 500 },
    ]);
    expect(Array.from({ length: 60 }, () => pace.linkWrite(30_000))).toEqual(Array(60).fill('taken'));
    expect([pace.linkWrite(59_999), pace.linkWrite(60_000)]).toEqual([{ retryAfterMs: 1 }, 'taken']);
  });
});

describe('the unshipped check', () => {
  const question = { members: ['a', 'b'], owners: ['a', 'b'], partitions: 2, cursorsPerPartition: 1 };
  const clean: UnshippedPorts = {
    backlog: async () => ({ records: 0, isCapped: false }),
    lags: async (owner) => [{ partition: owner === 'a' ? 0 : 1, lag: 0 }],
  };
  const count = (ports: Partial<UnshippedPorts>) => countUnshipped({ ...clean, ...ports }, question);

  it('lets a delete go on when nothing is left anywhere', async () => {
    const found = await count({});
    expect(found).toEqual({
      lagMessages: 0,
      lagComplete: true,
      dispatchBacklog: { a: 0, b: 0 },
      notAnswering: [],
      backlogOverScanLimit: [],
    });
    expect(judgeDelete(found, false).allowed).toBe(true);
  });

  it.each<[string, Partial<UnshippedPorts>, object]>([
    ['a lag', { lags: async (owner) => [{ partition: owner === 'a' ? 0 : 1, lag: 3 }] }, { lagMessages: 6 }],
    ['a partition nobody reports', { lags: async () => [{ partition: 0, lag: 0 }] }, { lagComplete: false }],
    [
      'a partition two report',
      { lags: async () => [0, 1].map((partition) => ({ partition, lag: 0 })) },
      { lagComplete: false },
    ],
    [
      'a backlog',
      { backlog: async (member) => ({ records: member === 'b' ? 7 : 0, isCapped: false }) },
      { dispatchBacklog: { a: 0, b: 7 } },
    ],
    [
      'a backlog too long to read',
      { backlog: async () => ({ records: 0, isCapped: true }) },
      { backlogOverScanLimit: ['a', 'b'] },
    ],
    ['a silent member', { backlog: () => Promise.reject(new Error('down')) }, { notAnswering: ['a', 'b'] }],
    [
      'a silent owner',
      { lags: () => Promise.reject(new Error('down')) },
      { notAnswering: ['a', 'b'], lagComplete: false },
    ],
  ])('refuses it for %s; force passes over that, with the same counts', async (_, ports, expected) => {
    const found = await count(ports);
    expect(found).toMatchObject(expected);
    expect(judgeDelete(found, false)).toEqual({ allowed: false, status: 409, count: found });
    expect(judgeDelete(found, true)).toEqual({ allowed: true, count: found });
  });

  it('a record that is dispatched during the check is counted, whenever that happens', async () => {
    // It is in a member's backlog, then committed to the parent, and only then out of the backlog.
    for (let moment = 0; moment <= 4; moment++) {
      let asked = 0;
      const isCommitted = () => asked++ >= moment;
      const found = await count({
        backlog: async (member) => ({ records: member === 'a' && !isCommitted() ? 1 : 0, isCapped: false }),
        lags: async (owner) => [{ partition: owner === 'a' ? 0 : 1, lag: owner === 'a' && isCommitted() ? 1 : 0 }],
      });
      expect(isShipped(found)).toBe(false);
    }
  });
});

describe('a single flight', () => {
  const start = (flight: number) => [{ subject: 'orders', flight }];

  it('starts at once, and paces what nobody waited for', () => {
    const flights = new SingleFlight(UNSHIPPED_FLIGHTS);
    expect(flights.ask('orders', 'd1', 0)).toEqual({ type: 'waits', starts: start(1) });
    expect(flights.ended('orders', { isError: false, nowMs: 2_000 })).toEqual({ answers: ['d1'], starts: [] });
    expect(flights.ask('orders', 'd2', 4_000)).toEqual({ type: 'paced', retryAfterMs: 6_000, starts: [] });
    expect(flights.ask('other', 'd3', 4_000).starts).toHaveLength(1);
    expect(flights.ask('orders', 'd4', 10_000)).toEqual({ type: 'waits', starts: start(2) });
  });

  it('who arrives while one runs waits for the next, which all of them share, without the pace', () => {
    const flights = new SingleFlight(UNSHIPPED_FLIGHTS);
    flights.ask('orders', 'd1', 0);
    expect(flights.ask('orders', 'd2', 100)).toEqual({ type: 'waits', starts: [] });
    expect(flights.ask('orders', 'd3', 200)).toEqual({ type: 'waits', starts: [] });
    expect(flights.ended('orders', { isError: false, nowMs: 500 })).toEqual({ answers: ['d1'], starts: start(2) });
    flights.ask('orders', 'd4', 600);
    expect(flights.ended('orders', { isError: false, nowMs: 900 })).toEqual({
      answers: ['d2', 'd3'],
      starts: start(3),
    });
    expect(flights.ended('orders', { isError: false, nowMs: 950 })).toEqual({ answers: ['d4'], starts: [] });
  });

  it('one that ended in an error does not count for the pace', () => {
    const flights = new SingleFlight(UNSHIPPED_FLIGHTS);
    flights.ask('orders', 'd1', 0);
    flights.ended('orders', { isError: true, nowMs: 100 });
    expect(flights.ask('orders', 'd2', 200)).toEqual({ type: 'waits', starts: start(2) });
  });

  it('scans of a member: two at a time, whichever the topics', () => {
    const scans = new SingleFlight(BACKLOG_SCANS);
    expect(['a', 'b', 'c'].map((topic) => scans.ask(topic, topic, 0).starts.length)).toEqual([1, 1, 0]);
    scans.ask('a', 'again', 1);
    expect(scans.ended('a', { isError: false, nowMs: 2 })).toMatchObject({ starts: [{ subject: 'c' }] });
    expect(scans.ended('b', { isError: false, nowMs: 3 })).toMatchObject({ starts: [{ subject: 'a', flight: 2 }] });
  });

  it('every answer is of a flight that started after its question, and everybody gets one', () => {
    const steps = fc.array(fc.record({ subject: fc.constantFrom('a', 'b', 'c'), isEnd: fc.boolean() }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(steps, (events) => {
        const flights = new SingleFlight(BACKLOG_SCANS);
        const asked = new Map<string, number>();
        const begun = new Map<string, number>();
        let nowMs = 0;
        const take = (starts: readonly { subject: string }[]) => {
          for (const { subject } of starts) begun.set(subject, nowMs);
        };
        const end = (subject: string) => {
          const startedMs = begun.get(subject) ?? 0;
          const { answers, starts } = flights.ended(subject, { isError: false, nowMs });
          for (const asker of answers) expect(startedMs).toBeGreaterThanOrEqual(asked.get(asker) ?? 0);
          for (const asker of answers) asked.delete(asker);
          take(starts);
        };
        for (const { subject, isEnd } of events) {
          nowMs++;
          if (isEnd) end(subject);
          else {
            asked.set(`${subject}${nowMs}`, nowMs);
            take(flights.ask(subject, `${subject}${nowMs}`, nowMs).starts);
          }
        }
        for (let round = 0; round < 3; round++) for (const subject of ['a', 'b', 'c', 'a']) end(subject);
        expect(asked.size).toBe(0);
      }),
      { seed: 4, numRuns: 1_000 },
    );
  });
});
