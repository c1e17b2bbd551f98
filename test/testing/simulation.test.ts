/**
 * `simulate`: whole clusters under one seed and one virtual clock. Controllers change the layouts that replicators follow,
 * and whatever goes wrong for both of them, the invariants of replication hold after every step and the clusters come
 * to rest on the join of what each demands. See also `npm run simulate` and `npm run mutants`.
 */
import { defaultCodecs } from 'isthmus';
import { describeFailure, runSimulation, SIMULATION_FAULTS, type SimulateOptions, simulate } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';

const codecs = await defaultCodecs();
const TIMEOUT_MS = 120_000;

/** What must happen in sixty worlds at least so often. */
const HAPPENS: { readonly [what: string]: number } = {
  layoutWritten: 200,
  changeFailed: 20,
  'report deferred': 1,
  delivered: 1_000,
  opened: 60,
  prune: 200,
  takeover: 5,
  ambiguous: 5,
  storedTwice: 1,
  'answered sealed': 10,
  readBack: 100,
  shapesMet: 40,
  shapesApart: 1,
};

function failureIn(options: SimulateOptions): string {
  const { failure } = simulate({ codecs, ...options });
  return failure === undefined ? 'none' : describeFailure(failure);
}

describe('whole clusters', () => {
  it('keep every invariant, and much happens in them', { timeout: TIMEOUT_MS }, () => {
    const { failure, counts, faults } = simulate({ codecs, seeds: 60 });
    expect(failure === undefined ? 'none' : describeFailure(failure)).toBe('none');
    const rare = Object.entries(HAPPENS).filter(([what, least]) => (counts.get(what) ?? 0) < least);
    expect(rare.map(([what]) => `${what}: ${counts.get(what) ?? 0}`)).toEqual([]);
    expect(SIMULATION_FAULTS.filter((fault) => !faults.has(fault))).toEqual([]);
  });

  it.each([
    ['three of them', { clusters: 3, seeds: 12 }],
    ['five of them', { clusters: 5, seeds: 2, steps: 30 }],
    ['all brought to their layouts by plans of operations (C22)', { hosts: 'plan', seeds: 15 }],
    ['nothing of which goes wrong', { faults: [], seeds: 15 }],
  ] as const)('%s', { timeout: TIMEOUT_MS }, (_what, options) => {
    expect(failureIn(options)).toBe('none');
  });
});

describe('simulate', () => {
  it('takes the same course for the same seed', () => {
    const once = simulate({ codecs, seeds: [7, 8] });
    expect(simulate({ codecs, seeds: 2, firstSeed: 7 })).toEqual(once);
    expect(once.schedules).toBe(2);
  });

  it('gives a broken invariant as a value: the seed, a short schedule that runs again by itself', () => {
    const { failure } = simulate({ codecs, seeds: 200, mutant: { isParentGateDropped: true } });
    if (failure === undefined) throw new Error('the mutant is not caught');
    const { shortest, schedule, invariant } = failure;
    expect(invariant).toBe('order');
    expect(shortest.schedule.happenings.length).toBeLessThan(10);
    expect(shortest.schedule.happenings.length).toBeLessThanOrEqual(schedule.happenings.length);
    const again = () => runSimulation(shortest.schedule, { codecs, isParentGateDropped: true });
    expect(again).toThrow(shortest.message);
    expect(() => runSimulation(shortest.schedule, { codecs })).not.toThrow();
    expect(describeFailure(failure)).toMatch(
      /^seed \d+ breaks order: .*\nin a world of seed .*,\n\d+ of \d+ happenings/,
    );
  });

  it('lets a rule of the controllers be broken, and something be installed for as long as it runs', () => {
    const events: string[] = [];
    const { failure } = simulate({
      seeds: 3,
      shrinks: false,
      mutant: {
        install: () => {
          events.push('installed');
          return () => events.push('taken back');
        },
        // Nothing that a peer pushes is ever answered.
        step: (real) => (state, event) => (event.type === 'pushed' ? { state, effects: [] } : real(state, event)),
      },
    });
    expect(failure?.invariant).toBe('theorem');
    expect(events).toEqual(['installed', 'taken back']);
  });

  it.each([
    [{ clusters: 1 }, /clusters is 1: it is an integer of 2 to 6/],
    [{ seeds: 0 }, /seeds is 0: it is an integer of 1/],
    [{ seeds: [1, 0.5] }, /a seed is 0.5: seeds are safe integers/],
    [{ steps: -1 }, /steps is -1/],
    [{ faults: ['fire' as 'crash'] }, /"fire" is no fault: they are crash, cut/],
  ])('refuses %j', (options, rule) => {
    expect(() => simulate(options)).toThrow(rule);
  });
});
