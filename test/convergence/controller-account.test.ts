/** What a controller remembers and says of itself: lags, the times of its changes, retries, and refusals in words. */
import { describe, expect, it } from 'vitest';
import { controllerStatus, stepController } from '../../src/convergence/index.js';
import { splitSegment } from '../../src/layout/index.js';
import { Bench, met, START_MS, split } from './bench.js';
import { peer } from './shorthand.js';

/** What the last step told those whose pushes it refused. */
function refusals(bench: Bench, event: Parameters<Bench['send']>[0]): string[] {
  const { effects } = stepController(bench.state, { ...event, nowMs: bench.nowMs } as Parameters<
    typeof stepController
  >[1]);
  return effects.flatMap((effect) => (effect.type === 'answer' ? [effect.result.error?.message ?? 'none'] : []));
}

describe('how long a peer differs', () => {
  it('is counted from its first different state to the first equal one, and then stays known', () => {
    const bench = met('0/1', { members: ['b', 'c'] });
    const lags = () => ['b', 'c'].map((cluster) => bench.statusOf(cluster)?.lagMs);
    expect(lags()).toEqual([undefined, undefined]);
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }));
    bench.nowMs += 300;
    expect(lags()).toEqual([300, undefined]);
    bench.nowMs += 200;
    // Now c is the one that differs; another state of it that differs as well does not begin anew.
    bench.commit();
    bench.nowMs += 40;
    bench.push(peer('c', '0/1', { revision: 2 }));
    bench.nowMs += 10;
    expect(lags()).toEqual([500, 50]);
    bench.push(peer('c', '0/1 8000/1', { epoch: 2 }));
    bench.nowMs += 1_000;
    expect(lags()).toEqual([500, 50]);
  });

  it('is not known of who is unheard', () => {
    const bench = new Bench('0/1');
    bench.nowMs += 300;
    expect(bench.statusOf('b')).toMatchObject({ condition: 'unheard', converged: [], diverged: [] });
    expect(bench.statusOf('b')).not.toHaveProperty('lagMs');
  });
});

describe('the status', () => {
  const changing = ({ state, nowMs }: Bench) => controllerStatus(state, nowMs).changing;

  it('of a peer that is unheard says no more than that', () => {
    expect(new Bench('0/1').statusOf('b')).toStrictEqual({
      cluster: 'b',
      condition: 'unheard',
      converged: [],
      diverged: [],
      mismatches: [],
      leftOut: false,
      wentBack: false,
    });
  });

  it('of one that is heard says how old its state is, what it knows, and where it differs', () => {
    const caps = { maxSegments: 2, maxEntryBucketsPerSegment: 4 };
    const bench = met('0/1 4000/2 8000/1 c000/1', { members: ['b', 'c'] });
    bench.push(peer('b', '0/1 4000/1 8000/1 c000/1', { epoch: 2, caps }));
    bench.nowMs += 40;
    const { converged, diverged, mismatches, ...rest } = bench.statusOf('b') ?? expect.fail('no status');
    expect(rest).toStrictEqual({
      ...{ cluster: 'b', condition: 'heard', ackedEpoch: 1, ageMs: 40, lagMs: 40 },
      ...{ leftOut: false, wentBack: false },
    });
    expect({ converged, diverged }).toEqual({
      converged: [
        { start: 0, end: 0x3fff },
        { start: 0x8000, end: 0xffff },
      ],
      diverged: [{ start: 0x4000, end: 0x7fff }],
    });
    expect(mismatches).toHaveLength(2);
    expect(bench.statusOf('c')?.mismatches).toEqual([]);
  });

  it('says that the layout is changing while a change is under way, or waits to be tried again', () => {
    const bench = met('0/1');
    expect(changing(bench)).toBe(false);
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }));
    expect(changing(bench)).toBe(true);
    bench.send({ type: 'changeFailed', reason: 'down', layout: bench.state.layout, random: 0.5 });
    expect([bench.state.isChanging, changing(bench)]).toEqual([false, true]);
    bench.after(100);
    bench.commit();
    expect(changing(bench)).toBe(false);
  });
});

describe('C13: the time of a change, which cooldowns go by', () => {
  const times = ({ state }: Bench) => [state.lastSplitAtMs, state.lastMergeAtMs, state.lastRebucketAtMs];
  const rebucket = { type: 'rebucket', segmentIds: [1], buckets: 2, reason: 'consumers' } as const;

  it.each<[string, (bench: Bench) => unknown, (number | undefined)[]]>([
    ['a split of the policy', (bench) => bench.decide('', split(1)), [START_MS + 7, undefined, undefined]],
    ['a rebucket of the policy', (bench) => bench.decide('', rebucket), [undefined, undefined, START_MS + 7]],
    [
      'a split of an operator',
      (bench) => bench.operate({ type: 'split', segmentId: 1 }),
      [START_MS + 7, undefined, undefined],
    ],
    [
      'a rebucket of an operator',
      (bench) => bench.operate({ type: 'rebucket', segmentId: 1, splits: [0x8000] }),
      [undefined, undefined, START_MS + 7],
    ],
    [
      'a merge, when it is asked of the host',
      (bench) => {
        bench.decide('8000');
        bench.push(peer('b', '0/1', { epoch: 2 }));
      },
      [undefined, START_MS + 7, undefined],
    ],
    [
      'none: what a peer demands',
      (bench) => bench.push(peer('b', '0/1 8000/1 c000/1', { epoch: 2 })),
      [undefined, undefined, undefined],
    ],
  ])('%s', (_, happens, expected) => {
    const bench = met('0/1 8000/1');
    bench.nowMs += 7;
    happens(bench);
    expect(bench.state.isChanging).toBe(true);
    expect(times(bench)).toEqual(expected);
  });

  it('an operator’s split at a boundary of its own makes just that one', () => {
    expect(met('0/1').operate({ type: 'split', segmentId: 1, at: [0x1000] })).toContain('commit 0/1 1000/1');
    expect(() => met('0/1 8000/1').operate({ type: 'split', segmentId: 1, at: [0x9000] })).toThrow(/36864/);
  });
});

describe('C15, C16: what is tried again', () => {
  it('a change that fails again and again waits longer and longer, and begins anew once it is made', () => {
    const bench = met('0/1');
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }));
    const fail = () => {
      bench.send({ type: 'changeFailed', reason: 'down', layout: bench.state.layout, random: 0.5 });
      return bench.wakesInMs ?? 0;
    };
    const waits = [0, 1, 2].map(() => {
      const ms = fail();
      expect(bench.after(ms - 1)).toEqual([]);
      expect(bench.after(1)).toEqual(['commit 0/1 8000/1']);
      return ms;
    });
    expect(waits).toEqual([100, 200, 400]);
    bench.commit();
    bench.push(peer('b', '0/1 4000/1 8000/1', { epoch: 3 }));
    expect(fail()).toBe(100);
  });

  it('an answer to an earlier push says nothing of the one that is out', () => {
    const bench = new Bench('0/1');
    const pushIdOf = () => bench.state.peers.get('b')?.inFlight?.pushId ?? -1;
    const late = pushIdOf();
    bench.failPush('b');
    bench.after(100);
    expect(pushIdOf()).toBeGreaterThan(late);
    expect(bench.send({ type: 'answered', peer: 'b', pushId: late, result: {}, random: 0.5 })).toEqual([]);
    expect(bench.failPushOf('b', late)).toEqual([]);
    expect(bench.statusOf('b')).not.toHaveProperty('ackedEpoch');
    bench.answer(peer('b', '0/1'));
    expect(bench.statusOf('b')?.ackedEpoch).toBe(1);
    // Nothing is out now, and the same answer comes once more.
    expect(bench.failPushOf('b', late)).toEqual([]);
  });

  it('who could not be reached and pushes is told at once; who refuses is not', () => {
    const bench = new Bench('0/1');
    bench.failPush('b');
    expect(bench.push(peer('b', '0/1', { cold: '' }))).toContain('push b 0/1 cold ?');
    bench.answer(undefined, 'failed', 'b');
    expect(bench.push(peer('b', '0/1', { cold: '', revision: 2 }), 2)).toEqual(['answer 2 0/1 cold ?']);
    // Refused once, and not reached after that: a push of its own counts again.
    bench.after(1_000);
    bench.failPush('b');
    expect(bench.push(peer('b', '0/1', { cold: '', revision: 3 }), 3)).toContain('push b 0/1 cold ?');
  });
});

describe('C16: a layout that is seen', () => {
  it('counts if its epoch is later; read anew, if its epoch is another', () => {
    const bench = met('0/1 8000/1');
    const first = bench.state.layout;
    const later = splitSegment(first, 1, { nowMs: START_MS });
    bench.send({ type: 'layout', layout: later });
    expect(bench.layout).toBe('e2  0/1 4000/1 8000/1');
    const other = splitSegment(first, 2, { nowMs: START_MS });
    for (const layout of [first, other]) expect(bench.send({ type: 'layout', layout })).toEqual([]);
    bench.send({ type: 'layout', layout: other, reloaded: true });
    expect(bench.layout).toBe('e2  0/1 4000/1 8000/1');
    bench.send({ type: 'layout', layout: first, reloaded: true });
    expect(bench.layout).toBe('e1  0/1 8000/1');
  });
});

describe('what is said to peers', () => {
  const pushed = (from: string, state = peer('b', '0/1 8000/1', { epoch: 2 })) =>
    ({ type: 'pushed', requestId: 1, from, state }) as const;

  it('a refusal names what is wrong', () => {
    expect(refusals(met('0/1'), pushed('x'))).toEqual(['"x" is not in the replication set of this topic']);
    const led = new Bench('0/1', { term: 4 });
    const wrong = { ...pushed('b'), state: peer('b', '0/1', { receiverTerm: 3 }) };
    expect(refusals(led, wrong)).toEqual(["the push names term 3; the leader's is 4"]);
    const full = met('0/1', { foldLimit: 1 });
    expect(refusals(full, pushed('b'))).toEqual(['the boundaries of this state do not fit the fold limit']);
    const failing = met('0/1');
    failing.send(pushed('b'));
    const { layout } = failing.state;
    const failed = { type: 'changeFailed', reason: 'down', layout, random: 0.5 } as const;
    expect(refusals(failing, failed)).toEqual(['the layout could not be changed: down']);
    failing.send(failed);
    expect(refusals(failing, pushed('b'))).toEqual(['the last change of the layout failed and is tried again']);
  });

  it('C20: without a limit of its own, a cluster folds as many segments as all caps together allow', () => {
    const caps = { maxSegments: 2, maxEntryBucketsPerSegment: 4 };
    const bench = met('0/1', { caps }, [peer('b', '0/1', { caps, cold: '' })]);
    const five = peer('b', '0/1 2000/1 4000/1 6000/1 8000/1', { caps, epoch: 2 });
    expect(bench.push(five)).toEqual(['report leftOut b', 'answer 1 foldLimit 0/1']);
    expect(bench.push(five, 2)).toEqual(['answer 2 foldLimit 0/1']);
    expect(bench.push(peer('b', '0/1 2000/1 4000/1 8000/1', { caps, epoch: 3 }), 3)).toContain(
      'commit 0/1 2000/1 4000/1 8000/1',
    );
    expect(bench.statusOf('b')?.leftOut).toBe(false);
  });

  it('C19: a state in another’s name is not learnt from an answer either', () => {
    const bench = new Bench('0/1');
    expect(bench.answer(peer('c', '0/1 8000/1'), undefined, 'b')).toEqual([]);
    expect(bench.statusOf('b')).toMatchObject({ condition: 'unheard', ackedEpoch: 1 });
  });

  it('C19: who leaves is answered once, and no more when the change is made', () => {
    const bench = met('0/1', { members: ['b', 'c'] });
    bench.push(peer('c', '0/1 8000/1', { epoch: 2 }), 5);
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }), 6);
    const { layout } = bench.state;
    expect(bench.send({ type: 'members', members: ['b'] })).toEqual(['answer 5 notMember']);
    const made = splitSegment(layout, 1, { nowMs: START_MS });
    const told = bench.send({ type: 'committed', layout: made });
    expect(told.filter((line) => line.startsWith('answer'))).toEqual(['answer 6 0/1 8000/1']);
    expect(bench.failPush('c')).toEqual([]);
  });

  it('a state has no member that it says nothing by', () => {
    const { state } = new Bench('0/1');
    const { effects } = stepController(state, { type: 'members', members: ['b', 'c'], nowMs: START_MS });
    const push = effects.find((effect) => effect.type === 'push') ?? expect.fail('no push');
    const caps = { maxSegments: 64, maxEntryBucketsPerSegment: 64 };
    const { shape: own, ...rest } = push.state;
    expect(own.cells).toHaveLength(1);
    expect(rest).toStrictEqual({ cluster: 'a', epoch: 1, revision: 2, caps, protocolVersion: 1, sentAtMs: START_MS });
    expect(state).not.toHaveProperty('term');
  });

  it('C10, C18: a later state of a peer takes back neither its base nor, without a word, its marks', () => {
    const bench = met('0/1 8000/1', {}, [peer('b', '0/1 8000/1', { base: [0x5555], cold: '8000' })]);
    bench.push(peer('b', '0/1 8000/1', { revision: 2 }));
    expect(bench.state.peers.get('b')?.state).toMatchObject({ base: [0x5555], coldMarks: { segments: [0x8000] } });
    bench.push(peer('b', '0/1 8000/1', { revision: 3, base: [0xaaaa], cold: '' }));
    expect(bench.state.peers.get('b')?.state).toMatchObject({ base: [0x5555, 0xaaaa], coldMarks: { segments: [] } });
    const plain = met('0/1');
    plain.push(peer('b', '0/1', { revision: 2 }));
    expect(plain.state.peers.get('b')?.state).not.toHaveProperty('base');
  });
});
