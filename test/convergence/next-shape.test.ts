import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  effectiveCaps,
  type NextShape,
  type NextShapeInput,
  NO_MARKS,
  nextShape,
  type PeerState,
} from '../../src/convergence/index.js';
import { standingMarks } from '../../src/convergence/marks.js';
import { boundariesOf, equalShapes, isAtLeastAsFine, joinShapes, type Shape } from '../../src/layout/index.js';
import { arbShape } from '../../src/testing/layouts.js';
import { arbColdMarks, arbPeerState } from '../../src/testing/peer-states.js';
import { marks, marksText, peer, shape, shapeText } from './shorthand.js';

interface Case {
  readonly local: string;
  readonly cold?: string;
  readonly base?: string;
  readonly peers?: readonly PeerState[];
  readonly unheard?: readonly string[];
  readonly foldLimit?: number;
  readonly bucketLimit?: number;
  readonly equalWidth?: boolean;
}

function input({ local, cold, base, peers = [], unheard = [], foldLimit = 64, ...more }: Case): NextShapeInput {
  const grid = base === undefined ? {} : { base: marks(base).segments };
  return { local: shape(local), localMarks: marks(cold), peers, unheard, foldLimit, ...grid, ...more };
}

function next(from: Case): string {
  return shapeText(nextShape(input(from)).shape);
}

const hotB = peer('b', '0/1 8000/1');
const coldB = peer('b', '0/1 8000/1', { cold: '8000' });

describe('the next shape', () => {
  it.each<[string, Case, string]>([
    ['C7: a boundary that a peer has is added', { local: '0/1', peers: [hotB] }, '0/1 8000/1'],
    ['C7: not one that the peer calls cold', { local: '0/1', peers: [coldB] }, '0/1'],
    [
      'C7: one that another peer demands all the same',
      { local: '0/1', peers: [coldB, peer('c', '0/1 8000/1')] },
      '0/1 8000/1',
    ],
    ['C7: children have the parent’s buckets (C3)', { local: '0/4', peers: [hotB] }, '0/4 8000/4'],
    ['C7: buckets join, here on one half only', { local: '0/2', peers: [peer('b', '0/2 8000/8')] }, '0/2 8000/8'],
    [
      'C7: 4 and 3 buckets meet at all of their boundaries (C1)',
      { local: '0/4', peers: [peer('b', '0/3')] },
      '0/(4000 5555 8000 aaaa c000)',
    ],
    [
      'C7: a cold bucket boundary is not added',
      { local: '0/2', peers: [peer('b', '0/4', { cold: '0-ffff:4000' })] },
      '0/(8000 c000)',
    ],

    ['C9: cold here and at every peer', { local: '0/1 8000/1', cold: '8000', peers: [coldB] }, '0/1'],
    ['C9: cold here, and the peer has it not', { local: '0/1 8000/1', cold: '8000', peers: [peer('b', '0/1')] }, '0/1'],
    ['C9: cold here alone', { local: '0/1 8000/1', cold: '8000', peers: [hotB] }, '0/1 8000/1'],
    ['C9: cold at the peer alone', { local: '0/1 8000/1', peers: [coldB] }, '0/1 8000/1'],
    [
      'C9: one peer of two holds it',
      { local: '0/1 8000/1', cold: '8000', peers: [coldB, peer('c', '0/1 8000/1')] },
      '0/1 8000/1',
    ],
    [
      'C9: one peer was never heard',
      { local: '0/1 8000/1', cold: '8000', peers: [coldB], unheard: ['c'] },
      '0/1 8000/1',
    ],
    ['C9: nobody else is there', { local: '0/1 8000/1', cold: '8000' }, '0/1'],
    ['C9: buckets wait for an unheard peer too', { local: '0/2', cold: '0-ffff:8000', unheard: ['c'] }, '0/2'],

    [
      'C10: siblings are judged on the joined set',
      { local: '0/1 4000/1 8000/1', cold: '4000', peers: [peer('b', '0/1 2000/1 8000/1')] },
      '0/1 2000/1 4000/1 8000/1',
    ],
    ['C10: an inner node is no sibling boundary', { local: '0/1 4000/1 8000/1', cold: '8000' }, '0/1 4000/1 8000/1'],
    [
      'C10: a base boundary never is',
      { local: '0/1 5555/1 aaaa/1', cold: '5555 aaaa', base: '5555 aaaa' },
      '0/1 5555/1 aaaa/1',
    ],
    [
      'C10: nor one of a peer’s base',
      { local: '0/1 5555/1', cold: '5555', peers: [peer('b', '0/1', { base: [0x5555] })] },
      '0/1 5555/1',
    ],
    ['C10: without the base the highest is the root', { local: '0/1 5555/1 aaaa/1', cold: '5555' }, '0/1 aaaa/1'],

    [
      'C12: a bucket boundary leaves where all let it go',
      { local: '0/4', cold: '0-ffff:4000,c000', peers: [peer('b', '0/4', { cold: '0-ffff:4000' })] },
      '0/(8000 c000)',
    ],
    [
      'C12: it stays on a cell on part of which it is demanded',
      { local: '0/4 8000/4', cold: '0-7fff:4000', peers: [peer('b', '0/4 4000/4', { cold: '0-3fff:4000' })] },
      '0/(8000 c000) 4000/4 8000/4',
    ],
    ['C12: and on a cell on part of which it is not marked', { local: '0/4', cold: '0-7fff:4000' }, '0/4'],
    [
      'C12: buckets go first, then segments merge',
      { local: '0/4 8000/4', cold: '8000 0-7fff:4000 8000-ffff:4000' },
      '0/(8000 c000)',
    ],
    [
      'C12: what one of two cells keeps comes back with the merge',
      { local: '0/4 8000/4', cold: '8000 0-7fff:4000' },
      '0/4',
    ],

    ['C13: a merged cell has the lists of both', { local: '0/4 8000/3', cold: '8000' }, '0/(4000 5555 8000 aaaa c000)'],
    ['C13: all that may go goes at once', { local: '0/1 4000/1 8000/1 c000/1', cold: '4000 c000' }, '0/1 8000/1'],
    [
      'C5b: who hears of a merge merges in the same step, and raises what is merged',
      { local: '0/2 8000/2', cold: '8000', peers: [peer('b', '0/4')] },
      '0/4',
    ],
    [
      'C5b: adds here and removes there',
      { local: '0/1 8000/1 c000/1', cold: 'c000', peers: [peer('b', '0/1 4000/1 8000/1')] },
      '0/1 4000/1 8000/1',
    ],

    [
      'C20: within the limit all fold',
      { local: '0/1', peers: [hotB, peer('c', '0/1 4000/1 8000/1')], foldLimit: 3 },
      '0/1 4000/1 8000/1',
    ],
    [
      'C20: beyond it, in the order of names, whoever fits',
      { local: '0/1', peers: [peer('c', '0/1 8000/1'), peer('b', '0/1 4000/1 8000/1')], foldLimit: 2 },
      '0/1 8000/1',
    ],
    [
      'C20: who does not fit still holds what it demands (C9)',
      { local: '0/1 8000/1', cold: '8000', peers: [peer('b', '0/1 4000/1 8000/1')], foldLimit: 2 },
      '0/1 8000/1',
    ],
    [
      'C20: a layout beyond the limit stays as it is',
      { local: '0/1 4000/1 8000/1', peers: [hotB], foldLimit: 2 },
      '0/1 4000/1 8000/1',
    ],
    ['C20: buckets have a limit of their own', { local: '0/2', peers: [peer('b', '0/8')], bucketLimit: 4 }, '0/2'],
    [
      'C20: a merge of long lists leaves nobody out',
      { local: '0/4 8000/3', cold: '8000', peers: [peer('b', '0/1')], bucketLimit: 4 },
      '0/(4000 5555 8000 aaaa c000)',
    ],

    [
      'C22: with an equal-width cluster lists are rounded up',
      { local: '0/4', peers: [peer('b', '0/3', { equalWidth: true })] },
      '0/12',
    ],
    ['C22: or where the cluster itself is one', { local: '0/4', peers: [peer('b', '0/3')], equalWidth: true }, '0/12'],
    [
      'C22: a list that no equal-width one holds stays',
      { local: '0/(1234)', equalWidth: true, bucketLimit: 128 },
      '0/(1234)',
    ],
    [
      'C22: 12 marked down to 4 and to 3 stay 12',
      {
        local: '0/12',
        cold: '0-ffff:1555,2aaa,5555,6aaa,9555,aaaa,d555,eaaa',
        peers: [peer('b', '0/12', { cold: '0-ffff:1555,2aaa,4000,6aaa,8000,9555,c000,d555,eaaa', equalWidth: true })],
      },
      '0/12',
    ],
  ])('%s', (_, from, expected) => {
    expect(next(from)).toBe(expected);
  });

  it('C6: the shape itself where nothing changes', () => {
    const from = input({ local: '0/1 8000/1', cold: '8000', peers: [hotB] });
    expect(nextShape(from).shape).toBe(from.local);
  });

  it('C20: names who is left out', () => {
    const peers = [peer('d', '0/1 c000/1'), peer('b', '0/1 8000/1'), peer('c', '0/1 4000/1')];
    expect(nextShape(input({ local: '0/1', peers, foldLimit: 2 })).leftOut).toEqual(['c', 'd']);
  });

  it.each<[string, Case, string]>([
    ['as many cells as the limit', { local: '0/1', peers: [hotB], foldLimit: 2 }, '0/1 8000/1'],
    ['one cell more', { local: '0/1', peers: [hotB], foldLimit: 1 }, '0/1'],
    [
      'what the cluster has beyond the limit',
      { local: '0/1 4000/1 8000/1', peers: [hotB], foldLimit: 2 },
      '0/1 4000/1 8000/1',
    ],
    [
      'one more than that',
      { local: '0/1 4000/1 8000/1', peers: [peer('b', '0/1 c000/1')], foldLimit: 2 },
      '0/1 4000/1 8000/1',
    ],
    ['as many buckets as the limit', { local: '0/1', peers: [peer('b', '0/4')], bucketLimit: 4 }, '0/4'],
    ['a bucket more', { local: '0/1', peers: [peer('b', '0/4')], bucketLimit: 3 }, '0/1'],
    [
      'a bucket more in one cell of two',
      { local: '0/1 8000/1', peers: [peer('b', '0/1 8000/4')], bucketLimit: 3 },
      '0/1 8000/1',
    ],
    [
      'the buckets that the cluster has beyond the limit',
      { local: '0/4 8000/1', peers: [peer('b', '0/4 8000/2')], bucketLimit: 3 },
      '0/4 8000/2',
    ],
    [
      'as many in another cell',
      { local: '0/4 8000/1', peers: [peer('b', '0/1 8000/4')], bucketLimit: 3 },
      '0/4 8000/1',
    ],
    ['buckets that only the join makes too many', { local: '0/3', peers: [peer('b', '0/2')], bucketLimit: 3 }, '0/3'],
  ])('C20: the limits are exact: %s', (_, from, expected) => {
    expect(next(from)).toBe(expected);
    const isTaken = (from.peers ?? []).every((state) => isAtLeastAsFine(shape(expected), state.shape));
    expect(nextShape(input(from)).leftOut).toEqual(isTaken ? [] : ['b']);
  });

  it('tells what is added and what goes, on both rings', () => {
    const peers = [peer('b', '0/1 4000/2 8000/1 c000/1', { cold: 'c000' })];
    const { added, removed } = nextShape(input({ local: '0/1 8000/1 c000/1', cold: 'c000', peers }));
    expect([marksText(added), marksText(removed)]).toEqual(['4000 4000-7fff:8000', 'c000']);
  });

  it('C10: joins the bases', () => {
    const peers = [peer('b', '0/1', { base: [0x5555, 0xaaaa] })];
    expect(nextShape(input({ local: '0/1', base: '3000', peers })).base).toEqual([0x3000, 0x5555, 0xaaaa]);
  });
});

/** Local shape with marks that stand on it, and peers of different names. */
const arbInput = fc
  .record({
    local: arbShape(),
    base: fc.constantFrom<number[]>([], [], [0x5555, 0xaaaa]),
    names: fc.uniqueArray(fc.constantFrom('b', 'c', 'd', 'e'), { maxLength: 4 }),
    unheard: fc.constantFrom<string[]>([], [], ['z']),
    foldLimit: fc.constantFrom(1, 3, 6, 1000),
    bucketLimit: fc.constantFrom(2, 6, 1024),
    equalWidth: fc.constantFrom(false, false, true),
  })
  .chain(({ names, ...rest }) =>
    fc.record({
      ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, fc.constant(value)])),
      localMarks: arbColdMarks(rest.local, rest.base),
      peers: fc.tuple(...names.map((cluster) => arbPeerState({ cluster }))),
    }),
  ) as unknown as fc.Arbitrary<NextShapeInput & { readonly base: readonly number[] }>;

it('C21: two states whose join would hold hundreds of millions of boundaries are left out before anything is joined', () => {
  // Even bucket boundaries over the whole ring, and an odd one in each of 32,768 cells: 2^15 times 2^15 in the join.
  const all = Array.from({ length: 0x7fff }, (_, i) => 2 * i + 2);
  const wide = { ...hotB, shape: { cells: [{ range: { start: 0, end: 0xffff }, entryBucketSplits: all }] } };
  const cells = [0, ...all].map((start) => ({ range: { start, end: start + 1 }, entryBucketSplits: [start + 1] }));
  const narrow = { ...hotB, cluster: 'c', shape: { cells } };
  const peers = [wide, narrow, peer('d', '0/1 4000/1')];
  const { leftOut, shape: reached } = nextShape(input({ local: '0/1', peers }));
  expect([leftOut, shapeText(reached)]).toEqual([['b', 'c'], '0/1 4000/1']);
});

describe('laws of the next shape', () => {
  const check = (law: (from: NextShapeInput & { readonly base: readonly number[] }) => void) => {
    fc.assert(fc.property(arbInput, law), { numRuns: 400 });
  };

  it('does not depend on the order of peers', () => {
    check((from) => {
      expect(nextShape({ ...from, peers: [...from.peers].reverse() })).toEqual(nextShape(from));
    });
  });

  const again = (from: NextShapeInput, { shape: local, base }: NextShape): NextShapeInput => {
    return { ...from, local, localMarks: standingMarks(from.localMarks, local, base).marks, base };
  };

  it('is at rest when it is applied', () => {
    check((from) => {
      const first = nextShape({ ...from, foldLimit: 1000, bucketLimit: 2048, equalWidth: false });
      const unlimited = { ...from, foldLimit: 1000, bucketLimit: 2048, equalWidth: false };
      expect(nextShape(again(unlimited, first)).shape).toBe(first.shape);
    });
  });

  it('C20: is at rest after a few times where limits leave somebody out: what merged has made room', () => {
    check((from) => {
      let at: NextShapeInput = from;
      for (let times = 0; times <= from.peers.length; times++) at = again(at, nextShape(at));
      expect(nextShape(at).shape).toBe(at.local);
    });
  });

  it('C9: removes nothing that is demanded, and nothing without a mark of its own (C21)', () => {
    check((from) => {
      const { removed } = nextShape(from);
      for (const boundary of removed.segments) {
        expect(from.localMarks.segments).toContain(boundary);
        for (const { shape: theirs, coldMarks } of from.peers) {
          expect(boundariesOf(theirs).includes(boundary) && !coldMarks?.segments.includes(boundary)).toBe(false);
        }
      }
      for (const { range, boundaries } of removed.buckets) {
        for (const hash of [range.start, range.end]) {
          for (const boundary of boundaries) {
            expect(isColdAt(from.localMarks.buckets, hash, boundary)).toBe(true);
            expect(from.peers.some((state) => demandsAt(state, hash, boundary))).toBe(false);
          }
        }
      }
    });
  });

  it('C9: is at least as fine while somebody is unheard', () => {
    check((from) => {
      expect(isAtLeastAsFine(nextShape({ ...from, unheard: ['z'] }).shape, from.local)).toBe(true);
    });
  });

  it('C1: is the join where there are no marks and no limits', () => {
    check((from) => {
      const peers = from.peers.map(({ coldMarks: _, equalWidth: __, ...state }) => state);
      const { shape: joined } = nextShape({
        local: from.local,
        localMarks: NO_MARKS,
        peers,
        unheard: [],
        foldLimit: 1000,
      });
      const [first = from.local, ...others] = [...peers.map((state) => state.shape), from.local];
      expect(
        equalShapes(
          joined,
          others.reduce((a: Shape, b) => joinShapes(a, b), first),
        ),
      ).toBe(true);
    });
  });

  it('C7: has every boundary that a peer that fits demands', () => {
    check((from) => {
      const { shape: result, leftOut } = nextShape(from);
      for (const { cluster, shape: theirs, coldMarks } of from.peers) {
        if (leftOut.includes(cluster)) continue;
        const demanded = boundariesOf(theirs).filter((boundary) => !coldMarks?.segments.includes(boundary));
        expect(boundariesOf(result)).toEqual(expect.arrayContaining(demanded));
      }
    });
  });

  it('C20: demands lead to no more cells than the limit', () => {
    check((from) => {
      const alone = nextShape({ ...from, foldLimit: 1, peers: from.peers }).shape.cells.length;
      expect(nextShape(from).shape.cells.length).toBeLessThanOrEqual(Math.max(from.foldLimit, alone));
    });
  });
});

function isColdAt(buckets: NextShapeInput['localMarks']['buckets'], hash: number, boundary: number): boolean {
  return buckets.some(
    ({ range, boundaries }) => range.start <= hash && hash <= range.end && boundaries.includes(boundary),
  );
}

function demandsAt(
  { shape: theirs, coldMarks }: NextShapeInput['peers'][number],
  hash: number,
  boundary: number,
): boolean {
  const cell = theirs.cells.find(({ range }) => range.start <= hash && hash <= range.end);
  return cell?.entryBucketSplits.includes(boundary) === true && !isColdAt(coldMarks?.buckets ?? [], hash, boundary);
}

describe('C20: effective caps', () => {
  const own = { maxSegments: 8, maxEntryBucketsPerSegment: 16 };

  it('are the least of all, each by itself', () => {
    const peers = [
      { cluster: 'b', caps: { maxSegments: 4, maxEntryBucketsPerSegment: 64 } },
      { cluster: 'c', caps: { maxSegments: 64, maxEntryBucketsPerSegment: 2 } },
    ];
    expect(effectiveCaps(own, peers).caps).toEqual({ maxSegments: 4, maxEntryBucketsPerSegment: 2 });
  });

  it('are the own ones without peers', () => {
    expect(effectiveCaps(own, [])).toEqual({ caps: own, mismatches: [] });
  });

  it('tell every difference, in either direction', () => {
    const caps = { maxSegments: 9, maxEntryBucketsPerSegment: 16 };
    expect(effectiveCaps(own, [{ cluster: 'b', caps }]).mismatches).toEqual([
      { cluster: 'b', cap: 'maxSegments', own: 8, theirs: 9 },
    ]);
  });
});
