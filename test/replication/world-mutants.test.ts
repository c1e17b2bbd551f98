/**
 * A simulator that cannot fail is worthless: each of these machines, stores and drivers lacks one rule, and the worlds
 * of the first so many seeds show it.
 */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { comparePositions, DedupWindow } from '../../src/dedup/index.js';
import { defaultCodecs, formatSourcePosition, type SourcePosition } from '../../src/entry/index.js';
import { Chunking } from '../../src/replication/chunking.js';
import { Found } from '../../src/replication/found.js';
import { Lane } from '../../src/replication/lane.js';
import { Lanes } from '../../src/replication/lanes.js';
import { Planner } from '../../src/replication/planner.js';
import type { SegmentMachine } from '../../src/replication/segment-machine.js';
import { BrokenInvariant } from '../../src/testing/convergence-invariants.js';
import {
  arbReplicationSchedule,
  runReplicationSchedule,
  type WorldSettings,
} from '../../src/testing/replication-schedule.js';

const codecs = await defaultCodecs();
const TIMEOUT_MS = 120_000;

/** A method of a class, private ones too, as a mutant sees it. */
type Method = (this: unknown, ...args: readonly unknown[]) => unknown;

/** Puts a method in the place of one of a class, which it may call. */
function replace(type: { readonly prototype: object }, name: string, mutate: (original: Method) => Method): void {
  const methods = type.prototype as Record<string, Method>;
  const original = methods[name];
  if (original === undefined) throw new Error(`there is no method ${name} to be replaced`);
  methods[name] = mutate(original);
}

interface Mutant {
  readonly dedup: WorldSettings['dedup'];
  /** It shows within so many seeds. */
  readonly seeds: number;
  /** What is broken then. */
  readonly breaks: RegExp;
  readonly settings?: Partial<WorldSettings>;
  readonly mutate?: () => void;
}

const MUTANTS: { readonly [what: string]: Mutant } = {
  'a segment does not wait for its parents': {
    dedup: 'window',
    seeds: 100,
    breaks: /^order/,
    settings: { isParentGateDropped: true },
  },
  'a lane does not wait for those of the segments before it (R12)': {
    dedup: 'window',
    seeds: 300,
    breaks: /^(order|cursor)/,
    mutate: () => replace(Lanes, 'isGateOpen', () => () => true),
  },
  'what is stored of an entry is forgotten': {
    dedup: 'window',
    seeds: 100,
    breaks: /^(duplicates|order|progress)/,
    mutate: () => replace(Planner, 'storedOf', () => () => undefined),
  },
  'an entry is settled when it is sent': {
    dedup: 'window',
    seeds: 20,
    breaks: /^cursor/,
    mutate: () =>
      replace(Lanes, 'enqueue', (enqueue) => {
        return function (this: unknown, lane, send) {
          enqueue.call(this, lane, send);
          (this as { readonly host: SegmentMachine }).host.settle((send as { readonly record: never }).record);
        };
      }),
  },
  'an answer that did not come is taken for a good one': {
    dedup: 'window',
    seeds: 50,
    breaks: /^(cursor|order)/,
    mutate: () =>
      replace(Lanes, 'take', (take) => {
        return function (this: unknown, lane, send, result) {
          const isLost = (result as { readonly type: string }).type === 'ambiguous';
          return take.call(this, lane, send, isLost ? { type: 'duplicate' } : result);
        };
      }),
  },
  'what is sent behind a failure is stored (R12b)': {
    dedup: 'window',
    seeds: 200,
    breaks: /^(cursor|order)/,
    mutate: () =>
      replace(DedupWindow, 'offer', (offer) => {
        return function (this: unknown, producer, send) {
          return offer.call(this, producer, { ...(send as object), previous: undefined });
        };
      }),
  },
  'a merge hands on the highest watermark (R13)': {
    dedup: 'window',
    seeds: 500,
    breaks: /^(cursor|order)/,
    mutate: () => {
      DedupWindow.inherit = highestOf;
    },
  },
  'a seal hands on what lies behind an incomplete message (R6)': {
    dedup: 'window',
    seeds: 300,
    breaks: /^(cursor|order|progress)/,
    mutate: () => replace(Chunking, 'completeTo', () => () => undefined),
  },
  'a chunked message that a seal has cut is not sent again (R6)': {
    dedup: 'window',
    seeds: 300,
    breaks: /^(cursor|progress)/,
    mutate: () => replace(Chunking, 'closed', () => () => undefined),
  },
  'a payload is opened without asking the budget': {
    dedup: 'window',
    seeds: 20,
    breaks: /^budget/,
    mutate: () => replace(Planner, 'mayOpen', () => () => true),
  },
  'nothing is read back (R15)': {
    dedup: 'readBack',
    seeds: 50,
    breaks: /^duplicates/,
    mutate: () => replace(Found, 'addCopies', () => () => undefined),
  },
  'what was read back counts up to the highest position (R15)': {
    dedup: 'readBack',
    seeds: 100,
    breaks: /^(cursor|order|duplicates)/,
    mutate: () =>
      replace(Found, 'addCopies', () => {
        return function (this: unknown, copies) {
          const found = this as Found;
          const [first, ...others] = copies as Parameters<Found['addCopies']>[0];
          const last = others.reduce((a, b) => (comparePositions(a.position, b.position) < 0 ? b : a), first as never);
          if (first !== undefined) found.addWatermark({ start: 0, end: 0xffff }, (last as typeof first).position);
        };
      }),
  },
  'the checkpoint is the last receipt (R15)': {
    dedup: 'readBack',
    seeds: 50,
    breaks: /^checkpoint/,
    mutate: () =>
      replace(Lane, 'storedAt', (storedAt) => {
        return function (this: unknown, position, at) {
          storedAt.call(this, position, at);
          (this as { settledAt: unknown }).settledAt = at;
        };
      }),
  },
};

function highestOf(parents: Parameters<typeof DedupWindow.inherit>[0]): DedupWindow {
  const highest = new Map<string, SourcePosition>();
  for (const { window } of parents) {
    for (const producer of Object.keys(window.snapshot().producers)) {
      const own = window.handedOn(producer);
      const before = highest.get(producer);
      if (own === undefined || (before !== undefined && comparePositions(own, before) <= 0)) continue;
      highest.set(producer, own);
    }
  }
  const producers = Array.from(highest, ([producer, position]) => [producer, formatSourcePosition(position)]);
  return DedupWindow.restore({ producers: Object.fromEntries(producers) });
}

const { inherit } = DedupWindow;
const ORIGINALS = [DedupWindow, Lanes, Lane, Planner, Chunking, Found].map(({ prototype }) => {
  return [prototype, Object.getOwnPropertyDescriptors(prototype)] as const;
});

afterEach(() => {
  DedupWindow.inherit = inherit;
  for (const [prototype, descriptors] of ORIGINALS) Object.defineProperties(prototype, descriptors);
});

/** The first seed whose world is broken, and how. */
function firstBroken(settings: WorldSettings, seeds: number): { readonly seed: number; readonly message: string } {
  const schedules = arbReplicationSchedule();
  for (let seed = 1; seed <= seeds; seed++) {
    const [schedule] = fc.sample(schedules, { seed, numRuns: 1 });
    if (schedule === undefined) continue;
    try {
      runReplicationSchedule(schedule, settings);
    } catch (error) {
      if (error instanceof BrokenInvariant) return { seed, message: error.message };
      // A lane refuses what would overtake.
      const isLane = error instanceof Error && error.message.startsWith('a send at');
      if (isLane) return { seed, message: `order: ${error.message}` };
      throw error;
    }
  }
  return { seed: seeds, message: 'none of them is' };
}

it.each(['window', 'readBack'] as const)('no world is broken when nothing is wrong: %s', (dedup) => {
  expect(firstBroken({ dedup, codecs }, 50).message).toBe('none of them is');
});

describe('a world of replication shows it when', () => {
  it.each(Object.entries(MUTANTS))('%s', { timeout: TIMEOUT_MS }, (_what, mutant) => {
    mutant.mutate?.();
    const { message, seed } = firstBroken({ dedup: mutant.dedup, codecs, ...mutant.settings }, mutant.seeds);
    if (process.env.SHOW_SEEDS !== undefined) console.log(seed, message);
    expect(message).toMatch(mutant.breaks);
  });
});
