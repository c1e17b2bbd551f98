/**
 * Reports from the field, retold as schedules. Where the right behaviour of a report differs from a decision, the
 * decision wins and the test says so.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_MARKS, nextShape, type PeerState } from '../../src/convergence/index.js';
import { Bench, met, split } from './bench.js';
import { peer, shape, shapeText } from './shorthand.js';

describe('B13: a merge decided on missing knowledge', () => {
  const cold = (cluster: string) => peer(cluster, '0/1 8000/1', { cold: '8000' });

  it.each<[string, (bench: Bench) => void, boolean]>([
    ['only b has answered since the leader began', () => {}, false],
    ['c has answered as well, cold', (bench) => bench.answer(cold('c')), true],
    ['c has left the set', (bench) => bench.send({ type: 'members', members: ['b'] }), true],
    ['c has the boundary and no mark', (bench) => bench.answer(peer('c', '0/1 8000/1')), false],
    ['c does not have the boundary', (bench) => bench.answer(peer('c', '0/1')), true],
    [
      'c demands a boundary beside it, so that they are no siblings',
      (bench) => bench.answer(peer('c', '0/1 4000/1', { cold: '' })),
      false,
    ],
  ])('%s', (_, happens, merges) => {
    const bench = new Bench('0/1 8000/1', { members: ['b', 'c'] });
    bench.decide('8000');
    bench.answer(cold('b'));
    happens(bench);
    bench.finish();
    expect(bench.layout.includes('8000')).toBe(!merges);
  });

  it('a new leader holds back splits and rebuckets for the grace only, for C18 wins: adding is always safe', () => {
    const bench = new Bench('0/1');
    bench.decide('', split(1));
    expect(bench.state.isChanging).toBe(false);
    bench.nowMs += 30_000;
    bench.decide('', split(1));
    expect(bench.state.isChanging).toBe(true);
  });
});

describe('B14: a peer’s epoch goes back and it is ignored for ever', () => {
  const known = peer('b', '0/1 8000/1', { term: 1, epoch: 41, cold: '' });

  it('a state of epoch 12 after 41 is not applied and not lost sight of; with a new leader it is taken', () => {
    const bench = met('0/1 8000/1', {}, [known]);
    bench.decide('8000');
    const restored = peer('b', '0/1 8000/1', { term: 1, epoch: 12, cold: '8000' });
    expect(bench.push(restored)).toContain('report wentBack b 12');
    expect(bench.state.isChanging).toBe(false);
    expect(bench.statusOf('b')?.wentBack).toBe(true);
    expect(bench.push({ ...restored, term: 2 }, 2)).toContain('commit 0/1');
    expect(bench.statusOf('b')?.wentBack).toBe(false);
  });

  it('no jump forward is implausible', () => {
    const bench = met('0/1 8000/1', {}, [known]);
    const ahead = peer('b', '0/1 8000/1 c000/1', { term: 1, epoch: Number.MAX_SAFE_INTEGER });
    expect(bench.push(ahead)).toEqual(['commit 0/1 8000/1 c000/1']);
  });

  it('of two states of one epoch the later stays, in whatever order they arrive: a withdrawn mark does not come back', () => {
    const bench = met('0/1 8000/1', {}, [known]);
    bench.decide('8000');
    bench.push({ ...known, revision: 3, coldMarks: NO_MARKS }, 2);
    bench.push({ ...known, revision: 2, coldMarks: { segments: [0x8000], buckets: [] } }, 3);
    expect(bench.state.isChanging).toBe(false);
  });

  it('without terms the late one may merge too early, which the next push undoes', () => {
    const bench = met('0/1 8000/1', {}, [peer('b', '0/1 8000/1', { epoch: 41, cold: '' })]);
    bench.decide('8000');
    bench.push(peer('b', '0/1 8000/1', { epoch: 41, revision: 2, cold: '8000' }), 2);
    bench.finish();
    expect(bench.layout).toBe('e2  0/1');
    bench.push(peer('b', '0/1 8000/1', { epoch: 41, revision: 4, cold: '' }), 4);
    bench.finish();
    expect(bench.layout).toBe('e3  0/1 8000/1');
  });
});

describe('B35: leaving the replication set', () => {
  it.each([[['b']], [[]]])('to %j changes nothing but who is talked to', (members) => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] });
    expect(bench.send({ type: 'members', members })).toEqual([]);
    expect(bench.layout).toBe('e1  0/1 8000/1');
    expect([...bench.state.peers.keys()]).toEqual(members);
  });

  it('the empty set is a legal off: the policy goes on alone', () => {
    const bench = met('0/1 8000/1');
    bench.send({ type: 'members', members: [] });
    expect(bench.decide('8000')).toEqual(['commit 0/1']);
  });

  it('who leaves while its mark is missing blocks no merge', () => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] });
    bench.push(peer('b', '0/1 8000/1', { epoch: 2, cold: '8000' }));
    expect(bench.decide('8000').filter((line) => line.startsWith('commit'))).toEqual([]);
    expect(bench.send({ type: 'members', members: ['b'] })).toContain('commit 0/1');
  });
});

describe('B56: ghost peers', () => {
  it('a delayed push of one that has left is refused, and one that rejoins is a new acquaintance', () => {
    const bench = met('0/1 8000/1', { members: ['b', 'c'] }, [
      peer('b', '0/1 8000/1', { cold: '' }),
      peer('c', '0/1 8000/1', { epoch: 40, cold: '' }),
    ]);
    bench.send({ type: 'members', members: ['b'] });
    expect(bench.push(peer('c', '0/1 8000/1 c000/1', { epoch: 41 }))).toEqual(['answer 1 notMember']);
    expect(bench.send({ type: 'members', members: ['b', 'c'] })).toEqual(['push c 0/1 8000/1']);
    expect(bench.statusOf('c')?.condition).toBe('unheard');
    expect(bench.push(peer('c', '0/1', { epoch: 1 }), 2)).toEqual(['answer 2 0/1 8000/1']);
    expect(bench.statusOf('c')).toMatchObject({ condition: 'heard', wentBack: false });
  });

  it('nothing is relayed: what is told is the own state', () => {
    const bench = met('0/1', { members: ['b', 'c'] });
    bench.push(peer('b', '0/1 8000/1', { epoch: 2, cold: '8000' }));
    expect(bench.told).toEqual(['answer 1 0/1']);
  });
});

describe('B57: layouts that do not nest, and unequal caps', () => {
  const folded = (local: string, peers: readonly PeerState[], foldLimit = 64) =>
    shapeText(nextShape({ local: shape(local), localMarks: NO_MARKS, peers, unheard: [], foldLimit }).shape);

  it('both sides end on the union', () => {
    const union = '0/1 5555/1 8000/1 aaaa/1';
    expect(folded('0/1 8000/1', [peer('b', '0/1 5555/1 aaaa/1')])).toBe(union);
    expect(folded('0/1 5555/1 aaaa/1', [peer('a', '0/1 8000/1')])).toBe(union);
  });

  it('every order of arrival ends on the same, whatever is repeated', () => {
    const states = [
      peer('b', '0/1 1/1 2/1 ffff/1'),
      peer('c', '0/1 7fff/1 8000/1 8001/1'),
      peer('d', '0/3 5555/4'),
    ] as const;
    const order = fc.array(fc.constantFrom(...states), { maxLength: 6 });
    fc.assert(
      fc.property(order, (arrivals) => {
        const bench = new Bench('0/1', { members: ['b', 'c', 'd'] });
        for (const state of [...arrivals, ...states]) {
          bench.push(state);
          bench.finish();
        }
        expect(bench.stated).toBe(folded('0/1', states));
      }),
      { numRuns: 50 },
    );
  });

  it('three buckets against four are all boundaries of both, for C1 wins over the maximum', () => {
    expect(folded('0/3', [peer('b', '0/4')])).toBe('0/(4000 5555 8000 aaaa c000)');
  });

  it('caps of 4 and 64 with a union of 7 still meet, for C20 wins: caps bind policies, and the fold limit is their sum', () => {
    const caps = { maxSegments: 4, maxEntryBucketsPerSegment: 64 };
    const bench = met('0/1 4000/1 8000/1 c000/1', { caps });
    bench.push(peer('b', '0/1 2000/1 4000/1 6000/1 8000/1 a000/1 c000/1', { epoch: 2 }));
    expect(bench.told).toContain('commit 0/1 2000/1 4000/1 6000/1 8000/1 a000/1 c000/1');
    expect(bench.statusOf('b')?.mismatches).toEqual([{ cluster: 'b', cap: 'maxSegments', own: 4, theirs: 64 }]);
  });

  it('over the limit nothing is applied half-way, and it is told', () => {
    const bench = met('0/1 4000/1 8000/1 c000/1', { foldLimit: 4 });
    expect(bench.push(peer('b', '0/1 2000/1 4000/1 6000/1 8000/1 a000/1 c000/1', { epoch: 2 }))).toEqual([
      'report leftOut b',
      'answer 1 foldLimit 0/1 4000/1 8000/1 c000/1',
    ]);
    expect(bench.statusOf('b')).toMatchObject({ leftOut: true, ackedEpoch: 1 });
  });
});
