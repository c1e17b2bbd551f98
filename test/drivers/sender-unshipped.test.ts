/** The proof in front of a delete, over running senders: what is counted, who is asked, and when it is asked anew. */
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type ClusterBacklogs,
  createRemoteSender,
  systemClock,
  type UnshippedAnswer,
  type UnshippedRequest,
} from '../../src/drivers/index.js';
import type { ClusterMembers } from '../../src/ports/index.js';
import { until } from '../support/until.js';
import { KEYS, Stage, type StageOptions } from './sender-stage.js';

const PARENT = { parent: 'orders' };
const NOTHING = { lagMessages: 0, lagComplete: true, notAnswering: [], backlogOverScanLimit: [] };
const EMPTY = { records: 0, isCapped: false };

/** A stage whose node owns all three partitions of the parent; `later` moves its clock over the pace. */
async function staged(options: StageOptions = {}) {
  let shiftMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + shiftMs };
  const stage = await Stage.start({ ...options, ports: { clock, ...options.ports } });
  const later = (request: UnshippedRequest): Promise<UnshippedAnswer> => {
    shiftMs += 10_000;
    return stage.sender.checkUnshipped(request);
  };
  const own = (...partitions: number[]) => {
    for (const partition of partitions) stage.sender.takePartition('orders', partition);
  };
  return { stage, later, own };
}

const running = (stage: Stage, cursors: number) =>
  until(() => stage.sender.status().links.flatMap((link) => link.cursors).length === cursors);

describe('one node', () => {
  it('refuses until all partitions are at the target, and counts once in 10 s', async () => {
    const { stage, later, own } = await staged();
    stage.target.fault = ({ messages }) => (messages !== undefined ? { type: 'reset', stores: false } : undefined);
    stage.parents.append(0, 'a=1', 'a=2');
    stage.link();
    await running(stage, 1);
    const short = { ...NOTHING, lagMessages: 2, lagComplete: false };
    expect(await stage.sender.checkUnshipped(PARENT)).toMatchObject({ status: 409, count: short });
    expect(await stage.sender.checkUnshipped(PARENT)).toMatchObject({ type: 'refused', status: 429 });
    own(1, 2);
    await running(stage, 3);
    const left = { ...NOTHING, lagMessages: 2 };
    expect(await later(PARENT)).toMatchObject({ type: 'refused', status: 409, count: left });
    expect(await later({ ...PARENT, force: true })).toMatchObject({ type: 'done', status: 200, count: left });
    stage.target.fault = undefined;
    await until(() => stage.cursors.offsets.get('copy/1/0') === 2);
    expect(await later(PARENT)).toEqual({
      type: 'done',
      status: 200,
      count: { ...NOTHING, dispatchBacklog: { local: 0 } },
    });
  });

  it('lets one child go while another is behind', async () => {
    const { stage, later, own } = await staged();
    own(1, 2);
    stage.parents.append(0, 'a=1');
    stage.link();
    stage.link({ child: 'slow', topic: 'slow', paused: true });
    await running(stage, 6);
    await until(() => stage.cursors.offsets.get('copy/1/0') === 1);
    expect(await later({ ...PARENT, child: 'copy', expectRemote: 'b' })).toMatchObject({ type: 'done' });
    expect(await later({ ...PARENT, child: 'slow' })).toMatchObject({ status: 409, count: { lagMessages: 1 } });
    expect(await later(PARENT)).toMatchObject({ status: 409, count: { lagMessages: 1, lagComplete: true } });
    const other = await later({ ...PARENT, child: 'copy', expectRemote: 'c', force: true });
    expect(other).toMatchObject({ type: 'refused', status: 409 });
    expect(other).not.toHaveProperty('count');
    expect(await later({ ...PARENT, child: 'nothing' })).toMatchObject({ status: 404 });
    expect(await later({ parent: 'plain' })).toMatchObject({ type: 'done', count: { dispatchBacklog: {} } });
    await expect(later({ parent: '../orders' })).rejects.toMatchObject({ code: 'invalidArgument' });
  });

  it('does not answer from what it cannot read, and that does not count for the pace', async () => {
    const { stage } = await staged();
    const { read } = stage.metadata;
    stage.metadata.read = () => Promise.reject(new Error('no leader'));
    const answer = await stage.sender.checkUnshipped(PARENT);
    expect(answer).toMatchObject({ status: 503, reason: 'what is unshipped could not be counted: no leader' });
    stage.metadata.read = read;
    expect(await stage.sender.checkUnshipped(PARENT)).toMatchObject({ type: 'done' });
  });

  it('who asks during a count has the answer of the next, which began after the question', async () => {
    const ends: ((records: number) => void)[] = [];
    const scan: ClusterBacklogs['scan'] = () =>
      new Promise((resolve) => ends.push((records) => resolve({ records, isCapped: false })));
    const unasked = () => Promise.reject(new Error('there is no other'));
    const { stage } = await staged({ ports: { backlogs: { scan, backlog: unasked, lags: unasked } } });
    stage.link();
    const backlog = async () => (await stage.sender.checkUnshipped({ ...PARENT, force: true })) as { count?: object };
    const first = backlog();
    await until(() => ends.length === 1);
    const others = [backlog(), backlog()];
    ends[0]?.(7);
    expect(await first).toMatchObject({ count: { dispatchBacklog: { local: 7 } } });
    await until(() => ends.length === 2);
    ends[1]?.(8);
    for (const other of others) expect(await other).toMatchObject({ count: { dispatchBacklog: { local: 8 } } });
    expect(ends).toHaveLength(2);
  });
});

const MEMBERS: ClusterMembers = {
  names: () => ['local', 'second'],
  releases: async () => ({ error: 'not asked here' }),
  posture: () => Promise.reject(new Error('not asked here')),
  check: () => Promise.reject(new Error('not asked here')),
};

describe('two nodes', () => {
  /** The second owns the third partition; what it is asked goes to its own sender. */
  async function pair() {
    const asked: string[] = [];
    let second: Pick<ClusterBacklogs, 'backlog' | 'lags'>;
    const tell = <Answer>(what: string, answer: Promise<Answer>) => {
      asked.push(what);
      return answer;
    };
    const backlogs: ClusterBacklogs = {
      scan: () => tell('scan', Promise.resolve(EMPTY)),
      backlog: (...question) => tell('backlog', second.backlog(...question)),
      lags: (...question) => tell('lags', second.lags(...question)),
    };
    const { stage, later, own } = await staged({ ports: { members: MEMBERS, backlogs } });
    const { metadata: registry, parents, cursors, guard } = stage;
    const other = createRemoteSender({ registry, parents, cursors }, { keys: KEYS, guard, node: 'second' });
    onTestFinished(() => other.stop());
    other.start();
    other.takePartition('orders', 2);
    own(1);
    second = {
      backlog: (_, parent) => other.backlogHere(parent),
      lags: (_, parent) => other.lagsHere(parent),
    };
    stage.link();
    await running(stage, 2);
    await until(() => other.status().links.flatMap((link) => link.cursors).length === 1);
    const answerAs = (change: Partial<typeof second>) => {
      second = { ...second, ...change };
    };
    return { stage, later, asked, answerAs };
  }

  it('are both asked, for all backlogs before any lag', async () => {
    const { later, asked } = await pair();
    expect(await later(PARENT)).toMatchObject({ type: 'done', count: { dispatchBacklog: { local: 0, second: 0 } } });
    expect(asked).toEqual(['scan', 'backlog', 'lags']);
  });

  it('a backlog, a scan without an end, or silence of one refuses', async () => {
    const { later, answerAs } = await pair();
    answerAs({ backlog: async () => ({ records: 5, isCapped: false }) });
    expect(await later(PARENT)).toMatchObject({ status: 409, count: { dispatchBacklog: { local: 0, second: 5 } } });
    answerAs({ backlog: async () => ({ records: 0, isCapped: true }) });
    expect(await later(PARENT)).toMatchObject({ status: 409, count: { backlogOverScanLimit: ['second'] } });
    answerAs({ backlog: async () => EMPTY, lags: () => Promise.reject(new Error('no route')) });
    const silent = { notAnswering: ['second'], lagComplete: false };
    expect(await later(PARENT)).toMatchObject({ status: 409, count: silent });
  });

  it('one that hangs is named after one wait', async () => {
    const hangs = () => new Promise<never>(() => undefined);
    const backlogs = { scan: async () => EMPTY, backlog: hangs, lags: hangs };
    const clock = { ...systemClock, sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(ms / 100, signal) };
    const { stage } = await staged({ ports: { members: MEMBERS, backlogs, clock } });
    stage.link();
    await running(stage, 1);
    const count = { notAnswering: ['second'], dispatchBacklog: { local: 0 } };
    expect(await stage.sender.checkUnshipped(PARENT)).toMatchObject({ status: 409, count });
  });

  it('one that there is no way to ask is one that does not answer', async () => {
    const { stage, later, own } = await staged({ ports: { members: MEMBERS } });
    own(1, 2);
    stage.link();
    await running(stage, 3);
    expect(await later(PARENT)).toMatchObject({ status: 409, count: { ...NOTHING, notAnswering: ['second'] } });
  });
});
