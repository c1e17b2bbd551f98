/** What members look at before a link is attached, one test for each check, and many reports as one answer. */
import { describe, expect, it } from 'vitest';
import {
  attachRefusal,
  attachWarnings,
  CHECK_PRIORITY,
  type CheckClass,
  CheckPace,
  type CursorReport,
  checkMember,
  checkStatus,
  foldChecks,
  foldLink,
  type HttpOutcome,
  isStalled,
  laneCapacity,
  type MemberPorts,
  type MemberQuestion,
  type MemberReport,
  needsFix,
  rankOf,
  resumedTarget,
  SENDER_STATES,
  type SenderRequest,
  worstState,
} from '../../src/sender/index.js';
import { answer, edge, failure, goNotFound, json } from './target.js';

const DAY_MS = 24 * 3_600_000;
const QUESTION: MemberQuestion = {
  topic: 'orders',
  parent: { name: 'orders', id: 'source', createdAt: 5, schema: '{"type":"record","name":"a"}' },
  credentialVersion: 3,
  hasAllowedHosts: true,
  nowMs: 0,
};

/** Which of the requests a check makes. */
const STEPS = ['unauthorized', 'description', 'children', 'empty batch', 'users'] as const;
type Step = (typeof STEPS)[number];

function stepOf({ method, path, authorized }: SenderRequest): Step {
  if (method === 'POST') return 'empty batch';
  if (path === '/v1/users') return 'users';
  if (path.endsWith('/children')) return 'children';
  return authorized ? 'description' : 'unauthorized';
}

const TOPIC = { name: 'orders', id: 'target', created_at: 6, remote: null, fanout_delay_ms: 0 };
const GOOD: Readonly<Record<Step, HttpOutcome>> = {
  unauthorized: edge(401),
  description: json(200, TOPIC),
  children: json(200, { parent: 'orders', parent_id: 'target', children: [] }),
  'empty batch': failure(400, 'messages required'),
  users: edge(403),
};

/** A member's run against these answers; `made` notes its requests. */
function run(
  answers: Partial<Record<Step, HttpOutcome>> = {},
  other: Partial<MemberPorts> & { question?: Partial<MemberQuestion>; made?: Step[] } = {},
): Promise<MemberReport> {
  const { question, made, ...ports } = other;
  return checkMember(
    'node1',
    {
      isSecure: () => true,
      lookup: () => ({ state: 'ready', credentialVersion: 3 }),
      connect: async () => ({ type: 'connected', ms: 41.6 }),
      send: async (request) => {
        made?.push(stepOf(request));
        return answers[stepOf(request)] ?? GOOD[stepOf(request)];
      },
      ...ports,
    },
    { ...QUESTION, ...question },
  );
}

describe('the checks of a member', () => {
  it('pass in order, and tell the topic’s ID, the round trip and what a lane may send', async () => {
    const made: Step[] = [];
    expect(await run({}, { made })).toEqual({
      member: 'node1',
      credentialVersion: 3,
      targetId: 'target',
      warnings: [],
      rttMs: 42,
      recordsPerSecond: 2_127,
    });
    expect(made).toEqual(STEPS);
    expect([0, 5, 95].map(laneCapacity)).toEqual([20_000, 10_000, 1_000]);
  });

  it('tell no times where every host is allowed', async () => {
    expect(await run({}, { question: { hasAllowedHosts: false } })).not.toHaveProperty('rttMs');
  });

  it.each<[string, CheckClass, Partial<MemberPorts>]>([
    ['an insecure member', 'node_insecure', { isSecure: () => false }],
    ['no such remote', 'remote_missing', { lookup: () => ({ state: 'remote_missing' }) }],
    ['an unreadable credential', 'credential_unreadable', { lookup: () => ({ state: 'credential_unreadable' }) }],
    ['an old credential', 'stale', { lookup: () => ({ state: 'ready', credentialVersion: 2 }) }],
    ['a refused dial', 'destination_refused', { connect: async () => ({ type: 'refused' }) }],
    ['a dial that fails', 'unavailable', { connect: async () => ({ type: 'failed', timeout: true }) }],
  ])('before any request: %s is %s', async (_, expected, ports) => {
    const made: Step[] = [];
    expect((await run({}, { ...ports, made })).class).toBe(expected);
    expect(made).toEqual([]);
  });

  const schema = (target: unknown) => json(200, { ...TOPIC, schema: target });
  it.each<[Step, string, CheckClass | undefined, HttpOutcome]>([
    ['unauthorized', 'a redirect', 'redirect_refused', edge(302)],
    ['unauthorized', 'an answer without a password', 'target_security_off', json(200, TOPIC)],
    ['unauthorized', 'a wrong certificate', 'tls_failed', { type: 'tls' }],
    ['description', 'a wrong password', 'auth_failed', failure(401, 'x')],
    ['description', 'no such topic', 'target_missing', failure(404, 'x')],
    ['description', 'something in front', 'edge', edge(403)],
    ['description', 'no JSON', 'edge', answer(200, 'application/json', '{')],
    ['description', 'a delay child', 'target_is_delay_child', json(200, { ...TOPIC, fanout_delay_ms: 1 })],
    ['description', 'a stub', 'target_is_stub', json(200, { ...TOPIC, remote: {} })],
    ['description', 'the parent itself', 'target_is_source', json(200, { ...TOPIC, id: 'source' })],
    ['description', 'another topic of the same name and age', undefined, json(200, { ...TOPIC, created_at: 5 })],
    ['description', 'another schema', 'schema_mismatch', schema('{"name":"a","type":"record"}')],
    ['description', 'the schema with other white space', undefined, schema('{ "type": "record",\n "name": "a" }')],
    ['description', 'the schema as an object', undefined, schema({ type: 'record', name: 'a' })],
    [
      'children',
      'a remote child',
      'target_has_remote_children',
      json(200, { parent: 'o', children: [{ remote: {} }] }),
    ],
    ['children', 'another shape', 'edge', json(200, { parent: 'o' })],
    ['children', 'throttled', 'throttled', edge(429)],
    ['empty batch', 'no such route', 'no_batch_produce', goNotFound()],
    ['empty batch', 'no grant', 'forbidden', failure(403, 'x')],
    ['empty batch', 'accepted', 'unknown', json(200, {})],
    ['users', 'an administrator', 'admin_credential', json(200, [])],
    ['users', 'not served', undefined, edge(404)],
    ['users', 'down', 'unavailable', edge(503)],
    ['users', 'another refusal', 'unknown', failure(400, 'x')],
  ])('%s: %s is %s, and nothing is asked behind a failure', async (step, _, expected, outcome) => {
    const made: Step[] = [];
    expect((await run({ [step]: outcome }, { made })).class).toBe(expected);
    const asked = expected === undefined ? STEPS : STEPS.slice(0, STEPS.indexOf(step) + 1);
    expect(made).toEqual(asked);
  });

  it('without IDs on either side the same name and age is the parent itself', async () => {
    const parent = { ...QUESTION.parent, id: '' };
    const description = json(200, { ...TOPIC, id: '', created_at: 5 });
    expect((await run({ description }, { question: { parent } })).class).toBe('target_is_source');
    expect((await run({ description })).class).toBe(undefined);
  });

  it('warn of a certificate that ends, a schema, an old release and a missing ID', async () => {
    const described = json(200, { ...TOPIC, id: undefined, schema: '{}' });
    const report = await run(
      {
        description: { ...described, certificateEndMs: 14 * DAY_MS - 1 },
        children: json(200, { parent: 'orders', children: [] }),
        users: edge(404),
      },
      { question: { parent: { name: 'orders', id: 'source', createdAt: 5 } } },
    );
    const warnings = [
      'target_has_schema',
      'certificate_ends_soon',
      'no_loop_detection',
      'users_not_served',
      'no_topic_id',
    ];
    expect(report).toMatchObject({ targetId: '', warnings });
    expect((await run({ description: { ...json(200, TOPIC), certificateEndMs: 14 * DAY_MS } })).warnings).toEqual([]);
  });

  it('one runs at a time, and one starts every 5 s', () => {
    const pace = new CheckPace();
    expect([pace.start(0), pace.start(6_000)]).toEqual(['started', { retryAfterMs: 5_000 }]);
    pace.ended();
    expect([pace.start(4_999), pace.start(5_000)]).toEqual([{ retryAfterMs: 5_000 }, 'started']);
  });
});

describe('many reports as one', () => {
  const good = (member: string, targetId = 't', credentialVersion = 3): MemberReport => ({
    member,
    credentialVersion,
    targetId,
    warnings: ['users_not_served'],
  });
  const bad = (member: string, name: CheckClass): MemberReport => ({ member, class: name, warnings: [] });
  const fold = (...reports: readonly MemberReport[]) => foldChecks(['a', 'b', 'c'], reports, 3);

  it('every member passes, at one version, and sees one topic', () => {
    const passed = { passed: true, targetId: 't', warnings: ['users_not_served'] };
    expect(fold(good('a'), good('b'), good('c'))).toEqual(passed);
    const failed = (name: string, ...members: string[]) => ({ passed: false, class: name, status: 412, members });
    expect(fold(good('a'), good('c'))).toEqual(failed('unreachable', 'b'));
    expect(fold(good('a'), good('b'), good('c', 't', 2))).toEqual(failed('stale', 'c'));
    expect(fold(good('a'), good('b'), good('c', 'u'))).toEqual(failed('target_disagreement', 'a', 'b', 'c'));
    expect(foldChecks([], [], 3)).toEqual(failed('unreachable'));
  });

  it('of several failures the first in the order tells, whoever has it', () => {
    for (const [n, name] of CHECK_PRIORITY.slice(0, -1).entries()) {
      const behind = CHECK_PRIORITY[n + 1] ?? name;
      expect(fold(bad('a', behind), bad('b', name), good('c'))).toMatchObject({ class: name });
    }
  });

  it('each class has its status', () => {
    const statuses = CHECK_PRIORITY.map((name) => checkStatus(name));
    expect(statuses.slice(0, 8)).toEqual([412, 412, 412, 412, 412, 412, 412, 429]);
    expect(statuses.slice(8, 21).every((status) => status === 409)).toBe(true);
    expect(statuses.slice(21)).toEqual([502, 502, 503, 409]);
  });

  it('an attach warns of what an outage outlives, and is refused what the parent cannot take', () => {
    expect(attachWarnings(71 * 3_600_000, 100)).toEqual(['short_retention', 'small_batches']);
    expect([attachWarnings(72 * 3_600_000, 1_000), attachWarnings(0, 1_000)]).toEqual([[], []]);
    const parent = { retentionMs: 0, delayMs: 0, children: 0, remoteChildren: 0 };
    const refused = (change: Partial<typeof parent>) => attachRefusal({ ...parent, ...change }) !== undefined;
    const good = { retentionMs: DAY_MS, delayMs: DAY_MS - 3_600_000, children: 107, remoteChildren: 15 };
    expect([refused({}), refused(good), refused({ delayMs: 365 * DAY_MS })]).toEqual([false, false, false]);
    const wrong = [{ retentionMs: DAY_MS - 1 }, { ...good, delayMs: good.delayMs + 1 }, { delayMs: 366 * DAY_MS }];
    expect([...wrong, { children: 108 }, { remoteChildren: 16 }].map(refused)).toEqual(Array(5).fill(true));
  });

  it('a resume finds the recorded topic, or records the one that was accepted', () => {
    expect([resumedTarget('a', 'a', false), resumedTarget('a', 'b', false), resumedTarget('a', 'b', true)]).toEqual([
      'a',
      undefined,
      'b',
    ]);
  });
});

describe('states', () => {
  it('rank from the worst, and the first fourteen want somebody to act', () => {
    expect(SENDER_STATES.map(rankOf)).toEqual([...Array(19).keys()]);
    expect(SENDER_STATES.filter(needsFix)).toEqual(SENDER_STATES.slice(0, 14));
    expect(SENDER_STATES.filter(isStalled)).toEqual(SENDER_STATES.slice(0, 16));
    expect(rankOf('of a later release')).toBe(rankOf('unknown'));
    expect(worstState(['throttled', undefined, 'forbidden', 'paused'])).toBe('forbidden');
    expect(worstState([])).toBe('running');
  });

  const report = (change: Partial<CursorReport>): CursorReport => ({
    cursor: 'c',
    child: 'child',
    partition: 0,
    offset: 0,
    state: 'running',
    startedMs: 0,
    ...change,
  });

  it('a link shows its worst partition; one whose owner is silent is unknown', () => {
    const at = { retentionMs: 100_000_000, nowMs: 700_000 };
    const partitions = [
      report({ state: 'unavailable', oldestUnsentMs: 100_000, lastSuccessMs: 5, targetVerifiedMs: 650_000 }),
      report({
        partition: 1,
        state: 'rejected_record',
        blockedAt: { offset: 9, state: 'rejected_record' },
        targetVerifiedMs: 640_000,
      }),
    ];
    expect(foldLink(partitions, at)).toEqual({
      state: 'rejected_record',
      blockedAt: { partition: 1, offset: 9, state: 'rejected_record' },
      lagMs: 600_000,
      retentionHeadroomMs: 99_400_000,
      targetVerifiedMs: 640_000,
      lastSuccessMs: 5,
      isUnverified: false,
    });
    expect(foldLink([report({}), undefined], { retentionMs: 0, nowMs: 1 })).toEqual({
      state: 'unknown',
      isUnverified: false,
    });
  });

  it('a running link without a successful check for 10 minutes is unverified', () => {
    const unverified = (nowMs: number, ...partitions: CursorReport[]) =>
      foldLink(partitions, { retentionMs: 0, nowMs }).isUnverified;
    expect([unverified(600_000, report({})), unverified(600_001, report({}))]).toEqual([false, true]);
    expect(unverified(600_001, report({ targetVerifiedMs: 1 }), report({ startedMs: 5 }))).toBe(false);
    expect(unverified(600_002, report({ targetVerifiedMs: 1 }), report({ startedMs: 5 }))).toBe(true);
    expect(unverified(900_000, report({ state: 'paused' }))).toBe(false);
  });
});
