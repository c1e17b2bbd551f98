/**
 * The eight invariants of replication, in simulated worlds: whatever happens to layouts, processes, connections and
 * stores, no message is lost, none comes out of order, twice without a reason, where it does not belong or home again;
 * cursors, gates and the slow path keep their rules; and in the end everything is everywhere. The world checks all of
 * it after every step; see also `npm run simulate`.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultCodecs } from '../../src/entry/index.js';
import { arbReplicationSchedule, runReplicationSchedule } from '../../src/testing/replication-schedule.js';

const codecs = await defaultCodecs();

/** Always the same worlds; others by `npm run simulate`. */
const SEED = 1;
const WORLDS = 300;
const TIMEOUT_MS = 120_000;

const KINDS = ['window', 'readBack'] as const;

describe('R1 to R15: nothing is lost, or comes twice, out of order, to the wrong place or home', () => {
  it.each(KINDS)('two clusters, %s', { timeout: TIMEOUT_MS }, (dedup) => {
    fc.assert(
      fc.property(arbReplicationSchedule(), (schedule) => {
        runReplicationSchedule(schedule, { dedup, codecs });
      }),
      { seed: SEED, numRuns: WORLDS },
    );
  });

  it.each(KINDS)('three clusters, %s', { timeout: TIMEOUT_MS }, (dedup) => {
    fc.assert(
      fc.property(arbReplicationSchedule({ clusters: 3 }), (schedule) => {
        runReplicationSchedule(schedule, { dedup, codecs });
      }),
      { seed: SEED, numRuns: WORLDS / 6 },
    );
  });
});

/** What must happen in so many worlds, and how often at least: on both kinds of remotes, and on one. */
const HAPPENS: { readonly [what: string]: number } = {
  delivered: 5_000,
  opened: 300,
  split: 60,
  merge: 40,
  migrate: 40,
  prune: 40,
  crash: 100,
  takeover: 40,
  restart: 15,
  ambiguous: 40,
  sealedInFlight: 40,
  sealedInMessage: 80,
  chunksSentAgain: 15,
  'notice chunksGivenUp': 60,
  'notice held': 20,
  'notice skipped': 5,
  'notice lostAtSource': 5,
  'excused expired': 40,
  'answered sealed': 80,
  'answered gap': 5,
  'answered rejected': 3,
  'stopped fenced': 30,
  'recovered pruned': 4,
  readFails: 10,
  writeFailsBefore: 8,
  writeFailsAfter: 8,
  storedTwice: 15,
};
const HAPPENS_ON: { readonly [kind in (typeof KINDS)[number]]: { readonly [what: string]: number } } = {
  window: { 'answered duplicate': 100, 'answered partial': 1, 'recovered watermark': 1_000 },
  readBack: { readBack: 3_000, copyFound: 2_000, pinMoved: 1_000, 'stopped pinLost': 5, trimmed: 20 },
};

describe('the worlds are not idle', () => {
  it.each(KINDS)(
    'in three hundred worlds everything happens that they are for: %s',
    { timeout: TIMEOUT_MS },
    (dedup) => {
      const counts = new Map<string, number>();
      for (const schedule of fc.sample(arbReplicationSchedule(), { seed: SEED, numRuns: WORLDS })) {
        const world = runReplicationSchedule(schedule, { dedup, codecs });
        for (const [what, times] of world.counts) counts.set(what, (counts.get(what) ?? 0) + times);
      }
      const rare = Object.entries({ ...HAPPENS, ...HAPPENS_ON[dedup] }).filter(([what, least]) => {
        return (counts.get(what) ?? 0) < least;
      });
      expect(rare.map(([what]) => `${what}: ${counts.get(what) ?? 0}`)).toEqual([]);
    },
  );
});
