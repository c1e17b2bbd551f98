/** Attach, resume, pause, skip and test: what stands in their way, who is asked, and what is told. */
import { describe, expect, it } from 'vitest';
import { type LinkAnswer, systemClock } from '../../src/drivers/index.js';
import type { ClusterMembers, MemberCheck } from '../../src/ports/index.js';
import type { MemberReport, Posture, ReleaseReading } from '../../src/sender/index.js';
import { edgeAnswer, type FakeTarget, topicOf } from '../../src/testing/index.js';
import { until } from '../support/until.js';
import { PARENT, Stage, type StageOptions } from './sender-stage.js';

/** Status and class, or reason, of a refusal; status and warnings of what was done. */
function word(answer: LinkAnswer): string {
  if (answer.type === 'done') return [answer.status, ...answer.warnings].join(' ');
  return `${answer.status} ${answer.class ?? answer.reason}`;
}

async function ready(options: StageOptions = {}): Promise<Stage> {
  const stage = await Stage.start(options);
  await until(() => stage.sender.status().remotes.length > 0);
  return stage;
}

const topic = (change: Parameters<typeof topicOf>[1]) => (target: FakeTarget) =>
  void target.broker.topics.set('orders', topicOf('orders', change));

describe('an attach', () => {
  it('checks the target, writes the link with what it found, and records flow', async () => {
    const stage = await ready();
    stage.parents.append(0, 'a=1');
    const answer = await stage.attach({ lanes: 2 });
    expect(answer).toMatchObject({
      ...{ type: 'done', status: 201, targetId: '00000000000000aa', warnings: [] },
      reports: [{ member: 'local', isSecure: true, credentialVersion: 1, targetId: '00000000000000aa' }],
    });
    expect(stage.metadata.written).toMatchObject([
      { type: 'attach', delayMs: 0, link: { child: 'copy', lanes: 2, targetId: '00000000000000aa' } },
    ]);
    await until(() => stage.stored().length === 1);
    // Nothing was written to find out: the checks came in their order, the first without a credential.
    expect(stage.target.requests.slice(0, 6).map(({ kind, user, status }) => `${kind} ${user} ${status}`)).toEqual([
      'topic undefined 401',
      ...['topic replicator 200', 'children replicator 200', 'batch replicator 400', 'users replicator 403'],
      'batch replicator 400',
    ]);
  });

  it.each<[string, (target: FakeTarget) => unknown]>([
    ['409 target_security_off', ({ broker }) => Object.assign(broker.settings, { isSecure: false })],
    ['409 auth_failed', ({ broker }) => Object.assign(broker.users.get('replicator') ?? {}, { password: 'another' })],
    ['409 admin_credential', ({ broker }) => Object.assign(broker.users.get('replicator') ?? {}, { isAdmin: true })],
    ['409 forbidden', ({ broker }) => Object.assign(broker.users.get('replicator') ?? {}, { grants: [] })],
    ['409 target_missing', ({ broker }) => broker.topics.clear()],
    ['409 target_is_source', topic({ id: PARENT.id })],
    ['409 target_is_delay_child', topic({ fanoutDelayMs: 5, parent: 'x' })],
    ['409 target_is_stub', topic({ remote: { name: 'c', topic: 'x' } })],
    [
      '409 target_has_remote_children',
      topic({ children: [{ name: 'far', remote: { name: 'c', topic: 'x', targetId: '' } }] }),
    ],
    ['409 no_batch_produce', ({ broker }) => Object.assign(broker.settings, { hasBatch: false })],
    [
      '502 redirect_refused',
      (target) => {
        target.fault = { type: 'answer', answer: { status: 302, headers: { location: '/' }, body: Buffer.alloc(0) } };
      },
    ],
    [
      '502 edge',
      (target) => {
        target.fault = ({ user }) => (user ? { type: 'answer', answer: edgeAnswer(404) } : undefined);
      },
    ],
    ['503 unavailable', (target) => target.down()],
    ['409 tls_failed', (target) => target.present('foreign')],
    ['409 tls_failed', (target) => target.present('plainHttp')],
    ['201 short_retention', () => undefined],
    ['201 small_batches', ({ broker }) => Object.assign(broker.settings, { maxMessages: 100 })],
    ['201 no_loop_detection', ({ broker }) => Object.assign(broker.settings, { servesIds: false })],
    ['201 no_topic_id', topic({ id: '' })],
  ])('%s', async (expected, change) => {
    const stage = await ready();
    if (expected.includes('retention')) {
      stage.parents.topics.set('orders', { ...PARENT, retentionMs: 48 * 3_600_000 });
    }
    await change(stage.target);
    expect(word(await stage.attach())).toBe(expected);
    expect(stage.metadata.written).toHaveLength(expected.startsWith('201') ? 1 : 0);
  });

  it('warns of a certificate that ends within 14 days', async () => {
    const now = () => Date.now() + 17 * 24 * 3_600_000;
    const stage = await ready({ ports: { clock: { ...systemClock, now } } });
    expect(word(await stage.attach())).toBe('201 certificate_ends_soon');
  });

  it('is refused before the target is asked, where it cannot be', async () => {
    const stage = await ready();
    stage.parents.topics.set('child', { ...PARENT, name: 'child', isChild: true });
    stage.parents.topics.set('short', { ...PARENT, name: 'short', retentionMs: 3_600_000 });
    stage.parents.topics.set('full', { ...PARENT, name: 'full', remoteChildren: 16 });
    const answers = [
      await stage.attach({ remote: 'nowhere' }),
      await stage.attach({ parent: 'nothing' }),
      await stage.attach({ parent: 'child' }),
      await stage.attach({ parent: 'short' }),
      await stage.attach({ parent: 'full' }),
    ];
    expect(answers.map(word)).toEqual([
      '400 there is no remote "nowhere"',
      '404 there is no topic "nothing"',
      '409 topic "child" is a child itself',
      '409 the parent keeps records for less than 24 hours',
      '409 a parent has at most 16 remote children',
    ]);
    expect(stage.target.requests).toEqual([]);
  });

  it('to where a link of the same parent leads already is refused, whatever the remote’s name and path', async () => {
    const stage = await ready();
    await stage.addRemote('c', { url: `${stage.target.url}/eu` });
    stage.link();
    await until(() => stage.sender.status().links.length === 1 && stage.sender.status().remotes.length === 2);
    const answers = [
      await stage.attach(),
      await stage.attach({ child: 'two' }),
      await stage.attach({ child: 'two', remote: 'c' }),
      await stage.attach({ child: 'two', topic: 'bills' }),
    ];
    expect(answers.map(word)).toEqual([
      '409 there is a link "copy" already',
      '409 link "copy" copies the same parent to the same topic',
      '409 link "copy" copies the same parent to the same topic',
      '409 target_missing',
    ]);
  });

  it.each([
    ['a topic that leaves its path', { topic: '../users' }],
    ['a child without a name', { child: '' }],
    ['nine lanes', { lanes: 9 }],
    ['half a lane', { lanes: 0.5 }],
    ['a delay into the past', { delayMs: -1 }],
    ['a remote in capitals', { remote: 'B' }],
  ])('with %s is no question', async (_, change) => {
    const stage = await ready();
    await expect(stage.attach(change)).rejects.toMatchObject({ code: 'invalidArgument' });
    expect(stage.metadata.written).toEqual([]);
  });

  it('that is only tried writes nothing', async () => {
    const stage = await ready();
    expect(await stage.attach({ dryRun: true })).toMatchObject({ type: 'done', status: 200 });
    expect([stage.metadata.written, stage.stored()]).toEqual([[], []]);
  });

  it('runs once in 5 s for a remote, and says so', async () => {
    const stage = await ready();
    await stage.attach({ dryRun: true });
    expect(await stage.attach()).toMatchObject({ status: 429, class: 'throttled', retryAfterMs: 5_000 });
  });

  it('whose parent cannot be read, or whose write fails, is answered so', async () => {
    const stage = await ready();
    const { startOffsets } = stage.parents;
    stage.parents.startOffsets = () => Promise.reject(new Error('partition 2 has no owner'));
    expect(word(await stage.attach())).toBe('503 where to begin could not be read: partition 2 has no owner');
    stage.parents.startOffsets = startOffsets;
    stage.parents.describe = () => Promise.reject(new Error('no leader'));
    expect(word(await stage.attach())).toBe('503 topic "orders" could not be read: no leader');
    const other = await ready();
    other.metadata.write = async () => ({ type: 'refused', reason: 'the name is taken' });
    expect(word(await other.attach())).toBe('409 the name is taken');
  });
});

describe('without listed hosts', () => {
  const blind = (stage: Stage) => ({ ...stage.guard, allowedHosts: [] });

  it('a test tells its class, and nothing that was seen', async () => {
    const listed = await ready();
    const stage = await ready({ guard: { ...blind(listed), allowedPorts: [portOf(listed)] }, draft: draftOf(listed) });
    expect(await stage.sender.test({ remote: 'b', topic: 'orders', parent: 'orders' })).toEqual({
      ...{ type: 'done', status: 200, warnings: [] },
      reports: [{ member: 'local', isSecure: true, credentialVersion: 1 }],
    });
  });

  it('an attach warns of the parent alone, and asks not what the target takes', async () => {
    const listed = await ready();
    Object.assign(listed.target.broker.settings, { maxMessages: 100, servesIds: false });
    const stage = await ready({ guard: { ...blind(listed), allowedPorts: [portOf(listed)] }, draft: draftOf(listed) });
    stage.parents.topics.set('orders', { ...PARENT, retentionMs: 48 * 3_600_000 });
    const answer = await stage.attach();
    expect(word(answer)).toBe('201 short_retention');
    expect(answer).not.toHaveProperty('targetId');
    expect(listed.target.requests.filter(({ messages }) => messages === 101)).toEqual([]);
  });

  const portOf = ({ target }: Stage) => Number(new URL(target.url).port);
  const draftOf = ({ target }: Stage) => ({ url: target.url, caPem: target.caPem });
});

/** Members that this node asks. */
class Members implements ClusterMembers {
  release: ReleaseReading = { members: ['local', 'second'].map((node) => ({ node, entryTypes: 37 })), raftServers: [] };
  secondPosture: Posture | undefined = { securityOn: true, legacyAuth: false, raftTls: true };
  report: Partial<MemberReport> | undefined = {};
  readonly asked: MemberCheck[] = [];

  names() {
    return ['local', 'second'];
  }

  async releases() {
    return this.release;
  }

  async posture(member: string) {
    if (member === 'local') return { securityOn: true, legacyAuth: false, raftTls: true };
    if (this.secondPosture === undefined) throw new Error('no route');
    return this.secondPosture;
  }

  async check(member: string, check: MemberCheck): Promise<MemberReport> {
    this.asked.push(check);
    if (this.report === undefined) throw new Error('no route');
    const { credentialVersion } = check;
    return { member, credentialVersion, targetId: '00000000000000aa', warnings: [], ...this.report };
  }
}

describe('all members', () => {
  it.each<[string, (members: Members) => unknown]>([
    ['201', () => undefined],
    ['412 unreachable', (members) => Object.assign(members, { report: undefined })],
    ['412 stale', (members) => Object.assign(members, { report: { credentialVersion: 7 } })],
    ['412 target_disagreement', (members) => Object.assign(members, { report: { targetId: '00000000000000ff' } })],
    ['409 destination_refused', (members) => Object.assign(members, { report: { class: 'destination_refused' } })],
    ['412 old_release', (members) => Object.assign(members, { secondPosture: undefined })],
    [
      '412 node_insecure',
      (members) => Object.assign(members, { secondPosture: { securityOn: true, legacyAuth: true, raftTls: true } }),
    ],
    [
      '412 old_release',
      (members) =>
        Object.assign(members, { release: { members: [{ node: 'local', entryTypes: 36 }], raftServers: [] } }),
    ],
    ['412 unreadable', (members) => Object.assign(members, { release: { error: 'no leader' } })],
  ])('%s', async (expected, change) => {
    const members = new Members();
    change(members);
    const stage = await ready({ ports: { members } });
    const answer = await stage.attach();
    expect(word(answer)).toBe(expected);
    if (expected === '201') {
      const parent = { name: 'orders', id: PARENT.id, createdAt: PARENT.createdAt };
      expect(members.asked).toEqual([{ remote: 'b', topic: 'orders', parent, credentialVersion: 1 }]);
    }
  });

  it('need not be there for a pause', async () => {
    const members = new Members();
    members.secondPosture = undefined;
    const stage = await ready({ ports: { members } });
    stage.link();
    await until(() => stage.state() === 'running');
    expect(word(await stage.sender.pause('copy', 'maintenance'))).toBe('200');
    await until(() => stage.state() === 'paused');
  });

  it('a member answers with its own run', async () => {
    const stage = await ready();
    const parent = { name: 'orders', id: PARENT.id, createdAt: PARENT.createdAt };
    const check = { remote: 'b', topic: 'orders', parent, credentialVersion: 1 };
    expect(await stage.sender.checkHere(check)).toMatchObject({ member: 'local', targetId: '00000000000000aa' });
    expect(await stage.sender.checkHere({ ...check, remote: 'c', credentialVersion: 1 })).toMatchObject({
      class: 'remote_missing',
    });
  });
});

describe('a link that stands', () => {
  it('whose target was made anew stops before anything is sent, and goes on when the new one is accepted', async () => {
    const stage = await ready();
    topic({ id: '00000000000000ee' })(stage.target);
    stage.parents.append(0, 'a=1');
    stage.link();
    await until(() => stage.state() === 'target_replaced');
    expect(stage.stored()).toEqual([]);
    expect(word(await stage.sender.resume('copy'))).toMatch(/^409 the target is another topic/);
    const other = await ready({ draft: { url: stage.target.url, caPem: stage.target.caPem }, guard: stage.guard });
    other.parents.append(0, 'a=1');
    other.link();
    await until(() => other.state() === 'target_replaced');
    expect(word(await other.sender.resume('copy', { acceptTarget: true }))).toBe('200');
    await until(() => stage.stored().length === 1);
    expect(other.metadata.links.get('copy')?.targetId).toBe('00000000000000ee');
  });

  it('pauses and resumes, and its status has followed when the answer is there', async () => {
    const stage = await ready();
    stage.link();
    await until(() => stage.state() === 'running');
    expect(word(await stage.sender.pause('copy', 'maintenance'))).toBe('200');
    expect(stage.state()).toBe('paused');
    stage.parents.append(0, 'a=1');
    expect(word(await stage.sender.resume('copy'))).toBe('200');
    expect(stage.state()).toBe('running');
    await until(() => stage.stored().length === 1);
    expect(word(await stage.sender.pause('nothing', ''))).toBe('404 there is no link "nothing"');
    await expect(stage.sender.pause('copy', 'bell \u0007')).rejects.toMatchObject({ code: 'invalidArgument' });
    await expect(stage.sender.skip('copy', -1, 0)).rejects.toMatchObject({ code: 'invalidArgument' });
  });

  it('is changed 60 times a minute on a node', async () => {
    const stage = await ready({ ports: { clock: { ...systemClock, now: () => 1_700_000_000_000 } } });
    for (let i = 0; i < 60; i++) expect(word(await stage.sender.pause('nothing', ''))).toMatch(/^404/);
    expect(await stage.sender.pause('nothing', '')).toMatchObject({ status: 429, retryAfterMs: 40_000 });
  });
});
