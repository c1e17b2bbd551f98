/** The machine of one controller, step by step. What it tells is written as in the scenarios. */
import { describe, expect, it } from 'vitest';
import {
  controllerStatus,
  isNewer,
  NO_MARKS,
  type PeerState,
  startController,
  statedShape,
} from '../../src/convergence/index.js';
import {
  applyShape,
  createLayout,
  type Layout,
  mergeSegments,
  rebucketSegment,
  shapeOf,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits } from '../../src/ring/index.js';
import { checkPlan } from '../../src/testing/convergence-invariants.js';
import { PULSAR_OPERATIONS } from '../../src/testing/convergence-world.js';
import { refusal } from '../support/expect.js';
import { Bench, effectText, met, START_MS, split } from './bench.js';
import { peer, shape, shapeText } from './shorthand.js';

describe('C14: the order of states', () => {
  const state = (term: number | undefined, epoch: number, revision: number): PeerState =>
    peer('b', '0/1', { epoch, revision, ...(term === undefined ? {} : { term }) });
  const told = (newer: boolean) => (newer ? 'newer' : 'not newer');

  it.each<[string, PeerState, PeerState, boolean]>([
    ['a higher revision of one epoch', state(1, 5, 3), state(1, 5, 2), true],
    ['the same again', state(1, 5, 2), state(1, 5, 2), false],
    ['a lower revision', state(1, 5, 1), state(1, 5, 2), false],
    ['a higher epoch, whatever the revision', state(1, 6, 1), state(1, 5, 9), true],
    ['a lower epoch', state(1, 4, 9), state(1, 5, 2), false],
    ['a higher term of a recreated topic', state(2, 0, 1), state(1, 5, 2), true],
    ['a lower term', state(1, 9, 9), state(2, 0, 1), false],
    ['without terms, a lower epoch', state(undefined, 4, 9), state(undefined, 5, 1), false],
    ['without terms, an equal epoch', state(undefined, 5, 1), state(undefined, 5, 9), true],
    ['a term against none', state(1, 0, 0), state(undefined, 9, 9), true],
    ['none against a term', state(undefined, 9, 9), state(1, 0, 0), false],
  ])('%s', (_, candidate, known, newer) => {
    expect(told(isNewer(candidate, known))).toBe(told(newer));
    expect(isNewer(candidate, undefined)).toBe(true);
  });

  it('a lower epoch of the same leader is ignored and reported, once', () => {
    const bench = met('0/1 8000/1', {}, [peer('b', '0/1 8000/1', { term: 1, epoch: 5, cold: '' })]);
    const old = peer('b', '0/1', { term: 1, epoch: 4 });
    expect(bench.push(old)).toEqual(['report wentBack b 4', 'answer 1 0/1 8000/1']);
    expect(bench.push(old, 2)).toEqual(['answer 2 0/1 8000/1']);
    expect(bench.statusOf('b')?.wentBack).toBe(true);
  });

  it('a recreated topic is newer by its term, and has acknowledged nothing', () => {
    const bench = met('0/1 8000/1', {}, [peer('b', '0/1 8000/1', { term: 1, epoch: 5, cold: '' })]);
    expect(bench.statusOf('b')?.ackedEpoch).toBe(1);
    expect(bench.push(peer('b', '0/1', { term: 2, epoch: 0 }))).toEqual(['answer 1 0/1 8000/1', 'push b 0/1 8000/1']);
    expect(bench.statusOf('b')?.ackedEpoch).toBe(undefined);
  });
});

describe('C5 to C13: deciding', () => {
  it('C5b: what a peer has is added and what it has let go is merged, in one commit', () => {
    const bench = met('0/1 8000/1 c000/1');
    bench.decide('c000');
    expect(bench.push(peer('b', '0/1 4000/1 8000/1', { epoch: 2 }))).toContain('commit 0/1 4000/1 8000/1');
  });

  it('C6: a shape that is there already leads to no commit', () => {
    const bench = met('0/1 8000/1');
    expect(bench.push(peer('b', '0/1', { epoch: 2 }))).toEqual(['answer 1 0/1 8000/1']);
    expect(bench.layout).toBe('e1  0/1 8000/1');
  });

  it('C7: a boundary that its only holder calls cold is not added', () => {
    const bench = met('0/1');
    expect(bench.push(peer('b', '0/1 8000/1', { epoch: 2, cold: '8000' }))).toEqual(['answer 1 0/1']);
  });

  it('C9: the own mark is not enough; a peer’s that follows is', () => {
    const bench = met('0/1 8000/1');
    expect(bench.decide('8000')).toEqual(['push b 0/1 8000/1 cold 8000']);
    expect(bench.push(peer('b', '0/1 8000/1', { epoch: 2, cold: '8000' }))).toEqual(['commit 0/1']);
  });

  it('C9: a peer without an endpoint does not count', () => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] }, [peer('b', '0/1 8000/1', { cold: '8000' })]);
    expect(bench.decide('8000')).toEqual(['push b 0/1 8000/1 cold 8000']);
    expect(bench.failPush('c', true)).toEqual(['commit 0/1']);
  });

  it('C10: a peer’s base is told at once, and recorded with the next change only', () => {
    const bench = met('0/1 5555/1');
    bench.decide('5555');
    bench.answer(peer('b', '0/1 5555/1', { cold: '' }));
    expect(bench.cold).toBe('5555');
    const told = bench.push(peer('b', '0/1 5555/1', { epoch: 2, base: [0x5555], cold: '' }));
    expect(told).toEqual(['answer 1 0/1 5555/1', 'push b 0/1 5555/1']);
    expect(bench.state.layout.base).toBe(undefined);
    bench.operate({ type: 'split', segmentId: 1 });
    bench.commit();
    expect(bench.state.layout.base).toEqual([0x5555]);
  });

  it('C11: a manual mark falls, and is reported, when its boundary is no sibling any more', () => {
    const bench = met('0/1 8000/1');
    bench.operate({ type: 'merge', boundary: 0x8000 });
    bench.push(peer('b', '0/1 4000/1 8000/1', { epoch: 2, cold: '' }));
    expect(bench.commit()).toContain('report markDropped 32768');
    expect(bench.cold).toBe('');
  });

  it('C11: a policy’s mark does not come back with its boundary', () => {
    const bench = met('0/1 8000/1');
    bench.decide('8000');
    bench.push(peer('b', '0/1', { epoch: 2, cold: '' }));
    bench.commit();
    expect(bench.layout).toBe('e2  0/1');
    bench.push(peer('b', '0/1 8000/1', { epoch: 3, cold: '' }), 2);
    bench.commit();
    expect([bench.layout, bench.cold]).toEqual(['e3  0/1 8000/1', '']);
  });

  it('C12: a manual merge lasts through evaluations until it is withdrawn', () => {
    const bench = met('0/1 8000/1');
    bench.operate({ type: 'merge', boundary: 0x8000 });
    bench.decide('');
    expect(bench.cold).toBe('8000');
    bench.operate({ type: 'withdraw', boundary: 0x8000 });
    expect(bench.cold).toBe('');
    expect(refusal(() => bench.operate({ type: 'merge', boundary: 0x4000 }))).toBe('invalidOperation');
  });

  it('C12: a rebucket joins its list, and marks what is not in it', () => {
    const bench = met('0/3');
    expect(bench.operate({ type: 'rebucket', segmentId: 1, splits: equalWidthSplits(4) })).toContain(
      'commit 0/(4000 5555 8000 aaaa c000)',
    );
    expect(bench.cold).toBe('0-ffff:5555,aaaa');
    expect(refusal(() => bench.operate({ type: 'rebucket', segmentId: 7, splits: [] }))).toBe('invalidOperation');
  });

  it('C12: a rebucket that names a marked boundary takes its mark back', () => {
    const bench = met('0/4');
    bench.operate({ type: 'rebucket', segmentId: 1, splits: equalWidthSplits(2) });
    expect(bench.cold).toBe('0-ffff:4000,c000');
    bench.operate({ type: 'rebucket', segmentId: 1, splits: equalWidthSplits(4) });
    expect(bench.cold).toBe('');
    const same = { type: 'rebucket', segmentId: 1, splits: equalWidthSplits(4) } as const;
    expect(refusal(() => bench.operate(same))).toBe('invalidOperation');
  });

  it('C12: bucket marks are withdrawn by range', () => {
    const bench = met('0/4 8000/4');
    bench.operate({ type: 'rebucket', segmentId: 1, splits: [0x8000] });
    bench.operate({ type: 'rebucket', segmentId: 2, splits: [0x8000] });
    bench.operate({ type: 'withdraw', range: { start: 0, end: 0x7fff } });
    expect(bench.cold).toBe('8000-ffff:4000,c000');
  });

  it('C13: several boundaries go in one commit, whatever the cooldowns say', () => {
    const bench = met('0/1 4000/1 8000/1 c000/1');
    bench.decide('4000 c000');
    expect(bench.push(peer('b', '0/1 8000/1', { epoch: 2, cold: '' }))).toContain('commit 0/1 8000/1');
  });

  it('a policy’s split and its marks go together, and neither undoes the other', () => {
    const bench = met('0/1 8000/1 c000/1', { members: [] });
    expect(bench.decide('c000', split(1))).toEqual(['commit 0/1 4000/1 8000/1']);
    expect(bench.commit()).toEqual([]);
    expect(bench.layout).toBe('e2  0/1 4000/1 8000/1');
  });

  it('an operator’s split that waits for a merge brings no other merged boundary back', () => {
    const bench = met('0/1 4000/1 8000/1 c000/1', { members: [] });
    expect(bench.decide('4000 c000')).toEqual(['commit 0/1 8000/1']);
    bench.operate({ type: 'split', segmentId: 1 });
    // The segment was [0, 4000): its own end comes back, so that the cut is at a midpoint; c000 does not.
    bench.send({ type: 'committed', layout: applyShape(bench.state.layout, shape('0/1 8000/1'), { nowMs: START_MS }) });
    expect(bench.told).toEqual(['commit 0/1 2000/1 4000/1 8000/1']);
  });

  it('what is asked for is not let go in the same step, whatever marks say', () => {
    const bench = met('0/1 2000/1', { members: [] });
    bench.operate({ type: 'split', segmentId: 2, at: [0x8000] });
    // The mark of 2000 arrives before the commit. Both clauses hold, one after the other, and nothing comes back.
    bench.decide('2000');
    bench.send({ type: 'changeFailed', reason: 'the store is not there', layout: bench.state.layout, random: 0 });
    expect(bench.after(0)).toContain('commit 0/1 2000/1 8000/1');
    expect(bench.commit()).toContain('commit 0/1 8000/1');
    expect(bench.commit()).toEqual([]);
    expect([bench.layout, bench.state.wish]).toEqual(['e3  0/1 8000/1', undefined]);
  });

  it('an action of the policy does not replace what the operator waits for', () => {
    const bench = met('0/1 8000/1');
    bench.operate({ type: 'split', segmentId: 1 });
    const { layout } = bench.state;
    bench.send({ type: 'changeFailed', reason: 'the store is not there', layout, random: 0.5 });
    bench.decide('', split(2));
    expect(bench.after(100)).toContain('commit 0/1 4000/1 8000/1');
  });

  it('an action on a segment that is gone is passed over', () => {
    expect(met('0/1 8000/1').decide('', split(77))).toEqual([]);
  });
});

describe('C15 to C17: the exchange', () => {
  it('C15: a push is answered when its fold is committed, with the state after it', () => {
    const bench = met('0/1');
    expect(bench.push(peer('b', '0/1 8000/1', { epoch: 2 }))).toEqual(['commit 0/1 8000/1']);
    expect(bench.commit()).toEqual(['answer 1 0/1 8000/1', 'push b 0/1 8000/1']);
  });

  it('C15: after a conflict it folds again, onto what somebody else committed', () => {
    const bench = met('0/1');
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }));
    const theirs = splitSegment(bench.state.layout, 1, { at: [0x4000], nowMs: START_MS });
    expect(bench.send({ type: 'conflict', layout: theirs })).toEqual(['commit 0/1 4000/1 8000/1', 'push b 0/1 4000/1']);
  });

  it('C15: a later commit that was seen while the own one was under way is not forgotten', () => {
    const bench = met('0/1');
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }));
    const own = applyShape(bench.state.layout, shape('0/1 8000/1'), { nowMs: START_MS });
    const later = applyShape(own, shape('0/1 4000/1 8000/1'), { nowMs: START_MS });
    bench.send({ type: 'layout', layout: later });
    bench.send({ type: 'committed', layout: own });
    expect(bench.layout).toBe('e3  0/1 4000/1 8000/1');
  });

  it('C15: a copy of a push waits for the commit as the push does', () => {
    const bench = met('0/1');
    const state = peer('b', '0/1 8000/1', { epoch: 2, revision: 9, term: 1 });
    bench.push(state, 1);
    expect(bench.push(state, 2)).toEqual([]);
    bench.send({ type: 'committed', layout: applyShape(bench.state.layout, shape('0/1 8000/1'), { nowMs: START_MS }) });
    expect(bench.told.filter((line) => line.startsWith('answer'))).toEqual([
      'answer 1 0/1 8000/1',
      'answer 2 0/1 8000/1',
    ]);
  });

  it('C15: a stale push is acknowledged without folding', () => {
    const bench = met('0/1', {}, [peer('b', '0/1', { term: 1, epoch: 5, cold: '' })]);
    expect(bench.push(peer('b', '0/1 8000/1', { term: 1, epoch: 5, revision: 0 }))).toEqual(['answer 1 0/1']);
  });

  it('C15: a change that failed fails the push, and is tried again', () => {
    const bench = met('0/1');
    bench.push(peer('b', '0/1 8000/1', { epoch: 2 }));
    const { layout } = bench.state;
    const told = bench.send({ type: 'changeFailed', reason: 'the store is not there', layout, random: 0.5 });
    expect(told).toEqual(['answer 1 failed 0/1']);
    expect(bench.wakesInMs).toBe(100);
    expect(bench.after(100)).toEqual(['commit 0/1 8000/1']);
  });

  it('C15: only an answer without an error acknowledges; one with an error is learnt from all the same', () => {
    const bench = new Bench('0/1');
    bench.answer(peer('b', '0/1 8000/1'), 'failed');
    expect(bench.told).toContain('commit 0/1 8000/1');
    expect(bench.statusOf('b')).toMatchObject({ condition: 'heard', lastError: 'failed: so it is' });
    expect(bench.statusOf('b')?.ackedEpoch).toBe(undefined);
  });

  it('C16: one push at a time; what changes meanwhile makes one more', () => {
    const bench = new Bench('0/1 8000/1');
    expect(bench.told).toEqual(['push b 0/1 8000/1 cold ?']);
    expect(bench.decide('8000')).toEqual([]);
    expect(bench.decide('')).toEqual([]);
    expect(bench.answer(peer('b', '0/1 8000/1'))).toEqual(['push b 0/1 8000/1']);
    expect(bench.answer(peer('b', '0/1 8000/1'))).toEqual([]);
  });

  it('C16: a change of marks alone is a change', () => {
    expect(met('0/1 8000/1').decide('8000')).toEqual(['push b 0/1 8000/1 cold 8000']);
  });

  it('C16: retries come within twice the time of the last', () => {
    const bench = new Bench('0/1');
    const waits = [200, 400, 800, 1600].map(() => {
      bench.failPush('b');
      const ms = bench.wakesInMs ?? 0;
      expect(bench.after(ms)).toEqual(['push b 0/1 cold ?']);
      return ms;
    });
    expect(waits).toEqual([100, 200, 400, 800]);
  });

  it('C16: times are whole, and a timer that fires early is set again', () => {
    const bench = new Bench('0/1');
    const pushId = bench.state.peers.get('b')?.inFlight?.pushId ?? -1;
    bench.send({ type: 'pushFailed', peer: 'b', pushId, reason: 'no answer', unsupported: false, random: 0.3333 });
    expect(bench.wakesInMs).toBe(67);
    expect(bench.after(66)).toEqual([]);
    expect(bench.wakesInMs).toBe(1);
  });

  it('C16: anti-entropy reads the layout first, then tells it regardless of change', () => {
    const bench = met('0/1');
    expect(bench.after(60_000)).toEqual(['reload']);
    const layout = splitSegment(bench.state.layout, 1, { nowMs: START_MS });
    expect(bench.send({ type: 'layout', layout, reloaded: true })).toEqual(['push b 0/1 8000/1']);
  });

  it('C17: one topic’s failure is its own', () => {
    const [one, two] = [new Bench('0/1'), new Bench('0/1 8000/1')];
    one.answer(undefined, 'unknownTopic');
    expect(two.answer(peer('b', '0/1 8000/1'))).toEqual([]);
    expect([one.statusOf('b')?.condition, two.statusOf('b')?.condition]).toEqual(['unheard', 'heard']);
    expect([one.statusOf('b')?.ackedEpoch, two.statusOf('b')?.ackedEpoch]).toEqual([undefined, 1]);
  });
});

describe('C18: what a new leader does not know', () => {
  it('it merges nothing until every peer has answered', () => {
    const bench = new Bench('0/1 8000/1', { members: ['b', 'c'] });
    bench.decide('8000');
    bench.answer(peer('b', '0/1', { cold: '' }));
    expect(bench.state.isChanging).toBe(false);
    expect(bench.answer(peer('c', '0/1 8000/1', { cold: '8000' }))).toContain('commit 0/1');
  });

  it('it holds back its policy’s splits and rebuckets for the grace only', () => {
    const bench = new Bench('0/1');
    expect(bench.decide('', split(1))).toEqual(['report deferred split b']);
    const rebucket = { type: 'rebucket', segmentIds: [1], buckets: 4, reason: 'consumers' } as const;
    expect(bench.decide('', rebucket)).toEqual(['report deferred rebucket b']);
    bench.nowMs += 30_000;
    expect(bench.decide('', split(1))).toContain('commit 0/1 8000/1');
    expect(controllerStatus(bench.state, bench.nowMs).unheard).toEqual(['b']);
  });

  it('it says nothing of marks before its policy has run; a host without a policy says that there are none', () => {
    const bench = new Bench('0/1 8000/1');
    expect(bench.told).toEqual(['push b 0/1 8000/1 cold ?']);
    bench.send({ type: 'policy', decision: { coldMarks: NO_MARKS } });
    expect(bench.answer(peer('b', '0/1 8000/1'))).toEqual(['push b 0/1 8000/1']);
  });

  it('of a state that says nothing of marks the last ones are kept that still are siblings', () => {
    const bench = met('0/1 8000/1 c000/1', {}, [peer('b', '0/1 8000/1 c000/1', { term: 1, cold: 'c000' })]);
    bench.push(peer('b', '0/1 8000/1 c000/1', { term: 2 }));
    expect(bench.decide('c000')).toContain('commit 0/1 8000/1');
  });

  it('marks of another shape are not kept', () => {
    const bench = met('0/1 8000/1', {}, [peer('b', '0/1 8000/1', { term: 1, cold: '8000' })]);
    bench.push(peer('b', '0/1 4000/1 8000/1', { term: 2 }));
    expect(bench.state.peers.get('b')?.state?.coldMarks).toEqual(NO_MARKS);
  });

  it.each<[string, number | undefined, number | undefined, boolean]>([
    ['the present term', 7, 7, true],
    ['another term', 7, 6, false],
    ['no term, where the receiver has one', 7, undefined, false],
    ['no term, where the receiver has none', undefined, undefined, true],
    ['a term, where the receiver has none', undefined, 6, true],
  ])('a push that names %s', (_, term, receiverTerm, isTaken) => {
    const bench = new Bench('0/1', term === undefined ? {} : { term });
    const told = bench.push(peer('b', '0/1 8000/1', receiverTerm === undefined ? {} : { receiverTerm }));
    expect(told).toEqual([isTaken ? 'commit 0/1 8000/1' : 'answer 1 wrongTerm 0/1 cold ?']);
    // What is refused is neither remembered nor counted as heard.
    expect(bench.statusOf('b')?.condition).toBe(isTaken ? 'heard' : 'unheard');
  });

  it('who is refused for the term pushes again at once, with the term that it was told', () => {
    const bench = new Bench('0/1');
    const told = bench.answer(peer('b', '0/1', { term: 7 }), 'wrongTerm');
    expect(told).toEqual(['push b 0/1 cold ?']);
    expect(bench.state.peers.get('b')?.state?.term).toBe(7);
    // A second refusal in a row waits.
    expect(bench.answer(peer('b', '0/1', { term: 8 }), 'wrongTerm')).toEqual([]);
  });
});

describe('C19: arriving and leaving', () => {
  it('states of strangers are refused, and so are states in another’s name', () => {
    const bench = met('0/1');
    expect(bench.push(peer('c', '0/1 8000/1'))).toEqual(['answer 1 notMember']);
    expect(bench.send({ type: 'pushed', requestId: 2, from: 'b', state: peer('c', '0/1 8000/1') })).toEqual([
      'answer 2 notMember',
    ]);
  });

  it('who leaves is forgotten, and the merge rule is evaluated again', () => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] });
    bench.decide('8000');
    bench.push(peer('b', '0/1', { epoch: 2 }));
    expect(bench.send({ type: 'members', members: ['b'] })).toEqual(['commit 0/1']);
    expect([...bench.state.peers.keys()]).toEqual(['b']);
  });

  it('a push of a cluster that leaves while it waits is answered', () => {
    const bench = met('0/1', { members: ['b', 'c'] });
    bench.push(peer('c', '0/1 8000/1', { epoch: 2 }), 5);
    expect(bench.send({ type: 'members', members: ['b'] })).toEqual(['answer 5 notMember']);
  });

  it('a peer without an endpoint is asked again on the anti-entropy timer only', () => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] }, [peer('b', '0/1 8000/1', { cold: '' })]);
    bench.failPush('c', true);
    expect(bench.statusOf('c')?.condition).toBe('unsupported');
    expect(bench.decide('8000')).toEqual(['push b 0/1 8000/1 cold 8000']);
    bench.after(60_000);
    const { layout } = bench.state;
    expect(bench.send({ type: 'layout', layout, reloaded: true })).toEqual(['push c 0/1 8000/1 cold 8000']);
    // It does not answer at all this time: still unsupported, and nothing is retried before the next round.
    bench.failPush('c');
    expect(bench.statusOf('c')?.condition).toBe('unsupported');
    expect(bench.wakesInMs ?? 60_000).toBe(60_000);
  });

  it('a peer whose endpoint is back counts again with what it last said', () => {
    const bench = met('0/1 8000/1');
    bench.decide('8000');
    expect(bench.failPush('b', true)).toContain('commit 0/1');
    bench.commit();
    bench.send({ type: 'layout', layout: bench.state.layout, reloaded: true });
    expect(bench.answer(undefined, 'failed', 'b')).toContain('commit 0/1 8000/1');
  });

  it('a peer that does not know the topic is unheard, not unsupported, and blocks merges', () => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] }, [peer('b', '0/1', { cold: '' })]);
    bench.answer(undefined, 'unknownTopic', 'c');
    expect(bench.statusOf('c')?.condition).toBe('unheard');
    bench.decide('8000');
    expect(bench.state.isChanging).toBe(false);
  });
});

describe('C20: caps', () => {
  const small = { maxSegments: 2, maxEntryBucketsPerSegment: 4 };

  it('bind the policy, by the least of all', () => {
    const bench = met('0/2 8000/2', {}, [peer('b', '0/2 8000/2', { caps: small, cold: '' })]);
    expect(bench.decide('', split(1))).toEqual(['report capped split']);
    const rebucket = { type: 'rebucket', segmentIds: [1], buckets: 8, reason: 'consumers' } as const;
    expect(bench.decide('', rebucket)).toEqual(['report capped rebucket']);
    // Three buckets beside two would be four, which the cap allows; beside four they would be six.
    expect(bench.decide('', { ...rebucket, buckets: 3 })).toContain('commit 0/(5555 8000 aaaa) 8000/2');
  });

  it('bind neither the operator nor a fold', () => {
    const bench = met('0/2 8000/2', { caps: small });
    expect(bench.operate({ type: 'split', segmentId: 1 })).toContain('commit 0/2 4000/2 8000/2');
    bench.commit();
    expect(bench.push(peer('b', '0/2 8000/8 c000/8', { epoch: 2 }))).toContain('commit 0/2 4000/2 8000/8 c000/8');
  });

  it('a peer that does not fit is left out, its call fails, and others fold', () => {
    const bench = met('0/1', { members: ['b', 'c'], foldLimit: 2 });
    expect(bench.push(peer('b', '0/1 4000/1 8000/1', { epoch: 2 }))).toEqual([
      'report leftOut b',
      'answer 1 foldLimit 0/1',
    ]);
    expect(bench.push(peer('c', '0/1 8000/1', { epoch: 2 }), 2)).toEqual(['commit 0/1 8000/1']);
    expect(bench.statusOf('b')).toMatchObject({ condition: 'heard', leftOut: true });
  });

  it('a difference is told even where nothing is refused', () => {
    const bench = met('0/1', {}, [peer('b', '0/1', { caps: small })]);
    expect(bench.statusOf('b')?.mismatches).toHaveLength(2);
  });
});

describe('C21: a peer that misbehaves', () => {
  it('removes nothing by its marks alone', () => {
    const bench = met('0/1 8000/1');
    expect(bench.push(peer('b', '0/1', { epoch: 9, cold: '8000' }))).toEqual(['answer 1 0/1 8000/1']);
  });

  it('spoils no other’s slot by an epoch far ahead', () => {
    const bench = met('0/1', { members: ['b', 'c'] });
    bench.push(peer('b', '0/1', { term: 1, epoch: Number.MAX_SAFE_INTEGER }));
    expect(bench.push(peer('c', '0/1 8000/1', { epoch: 2 }), 2)).toEqual(['commit 0/1 8000/1']);
    expect(bench.state.layout.epoch).toBe(1);
  });
});

describe('C22: a host that performs operations', () => {
  const operations = PULSAR_OPERATIONS;

  it('the goal is told, not the way there', () => {
    const bench = met('0/4', { operations });
    expect(bench.push(peer('b', '0/4 8000/4', { epoch: 2, equalWidth: true }))).toEqual([
      'perform split 1',
      'push b 0/4 8000/4 equal-width',
    ]);
    bench.send({ type: 'committed', layout: bench.performed({ type: 'split', segmentId: 1 }) });
    expect([bench.layout, bench.stated]).toEqual(['e2  0/2 8000/2', '0/4 8000/4']);
    expect(bench.finish()).toEqual(['perform rebucket 2 to 4', 'perform rebucket 3 to 4']);
    expect(bench.told).toContain('answer 1 0/4 8000/4 equal-width');
  });

  it('a leader without a goal reads it from the lineage', () => {
    const half = splitSegment(createLayout({ buckets: 4, nowMs: START_MS }), 0, {
      bucketPolicy: 'divide',
      nowMs: START_MS,
    });
    const options = { cluster: 'a', caps: { maxSegments: 8, maxEntryBucketsPerSegment: 8 }, operations };
    const { state, effects } = startController({ options, layout: half, members: [], nowMs: START_MS });
    expect(shapeText(statedShape(state))).toBe('0/4 8000/4');
    expect(effects.map(effectText)).toContain('perform rebucket 1 to 4');
  });

  it('a wish on the way takes over no bucket list of the way', () => {
    const bench = met('0/4 8000/4', { operations, members: [] });
    bench.decide('8000');
    bench.commit();
    expect([bench.layout, bench.stated]).toEqual(['e2  0/8', '0/4']);
    bench.operate({ type: 'split', segmentId: 3 });
    bench.send({
      type: 'committed',
      layout: rebucketSegment(bench.state.layout, 3, equalWidthSplits(4), { nowMs: START_MS }),
    });
    bench.finish();
    expect(bench.layout).toMatch(/ {2}0\/4 8000\/4$/);
  });

  it.each<[string, (layout: Layout) => Layout, string]>([
    [
      'a split adds',
      (layout) => splitSegment(layout, 1, { bucketPolicy: 'divide', nowMs: START_MS }),
      '0/4 2000/4 4000/4 8000/4 c000/4',
    ],
    [
      'a merge removes, and lists join',
      (layout) => mergeSegments(layout, 1, 2, { bucketPolicy: 'sum', nowMs: START_MS }),
      '0/4 8000/4 c000/4',
    ],
    [
      'a rebucket joins',
      (layout) => rebucketSegment(layout, 1, equalWidthSplits(8), { nowMs: START_MS }),
      '0/8 4000/4 8000/4 c000/4',
    ],
  ])('what somebody else does on the way alters the goal: %s', (_, change, goal) => {
    for (const wasFirst of [true, false]) {
      const bench = met('0/4 4000/4 8000/4', { operations, members: [] });
      bench.operate({ type: 'split', segmentId: 3 });
      const theirs = change(bench.state.layout);
      if (wasFirst) bench.send({ type: 'changeFailed', reason: 'not now', layout: theirs, random: 0.5 });
      // Both are done before the leader sees either.
      else bench.send({ type: 'committed', layout: bench.performed({ type: 'split', segmentId: 3 }, theirs) });
      expect(bench.stated).toBe(goal);
      bench.finish();
      expect(shapeText(shapeOf(bench.state.layout))).toBe(goal);
    }
  });

  it('a merge of its own that failed but was made is nobody else’s', () => {
    // 8000 is no midpoint of [4000, ffff]: the plan merges that up to the whole ring, and cuts both again.
    const bench = met('0/1 4000/1', { operations, members: [] });
    bench.operate({ type: 'split', segmentId: 2, at: [0x8000] });
    expect(bench.told).toEqual(['perform merge 1 2']);
    const layout = bench.performed(bench.operation);
    bench.send({ type: 'changeFailed', reason: 'no answer', layout, random: 0.5 });
    expect(bench.stated).toBe('0/1 4000/1 8000/1');
    bench.finish();
    expect(bench.layout).toMatch(/ {2}0\/1 4000\/1 8000\/1$/);
  });

  it('a plan that ends short of its goal goes on from the layout as reached', () => {
    const bench = met('0/2', { operations });
    bench.push(peer('b', '0/2 5000/2 8000/2', { epoch: 2, equalWidth: true }));
    const { operation } = bench;
    // Meanwhile b gives 5000 up, which is out of reach here, and raises what it lay in.
    bench.push(peer('b', '0/8 8000/2', { epoch: 3, equalWidth: true }), 2);
    bench.send({ type: 'committed', layout: bench.performed(operation) });
    bench.finish();
    expect([bench.state.goal, shapeText(shapeOf(bench.state.layout))]).toEqual([undefined, '0/8 8000/2']);
  });

  it('while there is still something to do, it goes on from the goal, and what that has let go needs no mark again', () => {
    const bench = met('0/3', { operations });
    bench.decide('0-ffff:5555,aaaa');
    bench.push(peer('b', '0/1 5000/1 8000/1', { epoch: 2, equalWidth: true }));
    bench.commit();
    // The last step: 5000 is out of reach, so the segment around it gets its own three buckets back.
    expect(bench.told).toEqual(['perform rebucket 2 to 3']);
    const layout = bench.performed(bench.operation);
    bench.push(peer('b', '0/1 5000/1 8000/1 c000/1', { epoch: 3, equalWidth: true }), 2);
    const before = bench.state;
    bench.send({ type: 'committed', layout });
    expect([bench.layout, bench.stated, bench.cold]).toEqual(['e3  0/3 8000/1', '0/1 5000/1 8000/1 c000/1', '']);
    expect(checkPlan(before, bench.state)).toBeUndefined();
    // Neither from the goal nor from the layout may it come to a shape that b's demand is missing from.
    expect(checkPlan(before, { ...bench.state, goal: shape('0/1') })).toBe('8000 was removed, and it has no mark');
  });

  it('a mark on buckets lasts until the host lacks them: where its plan ends short, they are no demand (C12)', () => {
    const bench = met('0/3', { operations });
    bench.operate({ type: 'rebucket', segmentId: 1, splits: [] });
    expect([bench.state.isChanging, bench.cold]).toEqual([false, '0-ffff:5555,aaaa']);
    // b gives the buckets up, and so does the goal; 5000 is out of reach, and the segment around it keeps its own three.
    bench.push(peer('b', '0/1 5000/1 8000/1', { epoch: 2, equalWidth: true }));
    expect([bench.stated, bench.cold]).toEqual(['0/1 5000/1 8000/1', '']);
    expect(bench.finish()).toEqual(['perform split 1', 'perform rebucket 2 to 3']);
    expect([bench.layout, bench.stated, bench.cold]).toEqual(['e3  0/3 8000/1', '0/3 8000/1', '0-7fff:5555,aaaa']);
    // They go with what kept them.
    bench.push(peer('b', '0/1 8000/1', { epoch: 3, equalWidth: true }), 2);
    expect(bench.finish()).toEqual(['perform rebucket 4 to 1']);
    expect([bench.layout, bench.state.manualMarks.buckets]).toEqual(['e4  0/1 8000/1', []]);
  });

  it('what is out of reach is not done, and no wish waits for it', () => {
    const bench = met('0/2', { operations, members: [] });
    expect(bench.operate({ type: 'split', segmentId: 1, at: [0x5000] })).toEqual([]);
    expect([bench.state.wish, bench.state.goal, bench.layout]).toEqual([undefined, undefined, 'e1  0/2']);
    expect(bench.decide('', split(1))).toContain('perform split 1');
  });

  it('a recreated topic takes over no goal', () => {
    const bench = met('0/4 8000/4', { operations, members: [] });
    bench.decide('8000');
    bench.send({
      type: 'changeFailed',
      reason: 'no answer',
      layout: createLayout({ buckets: 2, nowMs: START_MS }),
      random: 0.5,
    });
    expect([bench.layout, bench.stated]).toEqual(['e0  0/2', '0/2']);
  });

  it('a mark of a boundary that is no sibling on the joined set falls, though the host has only a part of that (C10, C11)', () => {
    const bench = met('0/1 8000/1', { operations });
    bench.push(peer('b', '0/1 8bcb/1', { epoch: 2, cold: '' }));
    // 8bcb is out of reach. 8000 is its parent on the joined set, so it is demanded, and b can come to it.
    expect(bench.decide('8000')).toEqual([]);
    expect([bench.cold, bench.layout]).toEqual(['', 'e1  0/1 8000/1']);
  });

  it('it says that it makes equal-width buckets only, and rounds up', () => {
    const bench = met('0/4', { operations });
    const told = bench.push(peer('b', '0/3', { epoch: 2 }));
    expect(told).toEqual(['perform rebucket 1 to 12', 'push b 0/12 equal-width']);
  });
});
