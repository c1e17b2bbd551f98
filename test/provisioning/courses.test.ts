/**
 * Provisioners over courses drawn at random: operators, faults and time come in any order, and a recorder has every call.
 */
import fc from 'fast-check';
import type { AdminCall, AdminFault, MemoryTopicAdmins } from 'isthmus/adapters/memory';
import { describe, expect, it } from 'vitest';
import type { ProvisioningPolicy } from '../../src/provisioning/index.js';
import { arbPolicy } from './shapes.js';
import { by, creationsOf, ISTHMUS, Turns, topic } from './turns.js';

const { signal } = new AbortController();

/** One thing that happens in a random course. */
type Happening =
  | { readonly type: 'turns'; readonly drawn: readonly number[] }
  | { readonly type: 'time' | 'lost' | 'permit' | 'updated' }
  | {
      readonly type: 'operator';
      readonly cluster: 'a' | 'b';
      readonly what: keyof typeof OPERATIONS;
      readonly count: number;
    };

/** What operators do to a topic, in and out of order. */
const OPERATIONS = {
  createPlain: (admins: MemoryTopicAdmins, cluster: string) => by(admins, cluster).createPlain(topic, signal),
  createPartitioned: (admins: MemoryTopicAdmins, cluster: string, count: number) =>
    by(admins, cluster).createPartitioned(topic, count, signal),
  expand: (admins: MemoryTopicAdmins, cluster: string, count: number) =>
    by(admins, cluster).expandPartitions(topic, count, signal),
  createScalable: (admins: MemoryTopicAdmins, cluster: string) =>
    by(admins, cluster).createScalable(topic, { starts: [0, 0x8000], segments: 2 }, signal),
  remove: async (admins: MemoryTopicAdmins, cluster: string) => admins.remove(cluster, topic),
  removeRecord: async (admins: MemoryTopicAdmins, cluster: string) => admins.remove(cluster, topic, { record: true }),
  removePartition: async (admins: MemoryTopicAdmins, cluster: string, count: number) =>
    admins.remove(cluster, topic, { partitions: [count - 1] }),
  orphan: async (admins: MemoryTopicAdmins, cluster: string, count: number) =>
    admins.place(cluster, topic, { partitions: [count] }),
};

const arbTurns = fc.record({
  type: fc.constant('turns' as const),
  drawn: fc.array(fc.nat(20), { minLength: 1, maxLength: 24 }),
});
function arbOperator(what = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]) {
  return fc.record({
    type: fc.constant('operator' as const),
    cluster: fc.constantFrom('a' as const, 'b' as const),
    what: fc.constantFrom(...what),
    count: fc.integer({ min: 1, max: 3 }),
  });
}
const arbHappening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 6, arbitrary: arbTurns },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('time' as const, 'lost', 'permit', 'updated') }) },
  { weight: 2, arbitrary: arbOperator() },
);
const fault: AdminFault = { type: 'failed', failure: 'unavailable', reason: '503' };

/** Lets a provisioner from a to b live through what happens, and checks that it never has two replicators. */
async function liveThrough(turns: Turns, happenings: readonly Happening[], allowed: ProvisioningPolicy): Promise<void> {
  const provisioner = turns.provision('a', 'b', allowed);
  for (const happening of happenings) {
    if (happening.type === 'turns') for (const drawn of happening.drawn) await turns.step(drawn);
    else if (happening.type === 'time') turns.passTime();
    else if (happening.type === 'updated') provisioner.partitionsUpdated();
    else if (happening.type === 'operator') {
      await OPERATIONS[happening.what](turns.admins, happening.cluster, happening.count);
    } else {
      const run = turns.replicators.at(-1)?.run;
      if (happening.type === 'lost') run?.lost();
      else void run?.permit(0);
    }
    if (turns.running('b') > 1) throw new Error('two replicators run');
  }
  await turns.stop();
  if (turns.running('b') > 0) throw new Error('a replicator outlives its provisioner');
}

describe('over random courses', () => {
  /** Most courses begin with topics, so that more than their absence is met. */
  const arbHappenings = fc
    .tuple(
      fc.oneof(
        fc.constant([]),
        fc.array(arbOperator(['createPartitioned', 'createPartitioned', 'removePartition']), {
          minLength: 4,
          maxLength: 6,
        }),
        fc.array(arbOperator(['createScalable']), { minLength: 1, maxLength: 2 }),
      ),
      fc.array(arbHappening, { minLength: 10, maxLength: 40 }),
    )
    .map(([first, rest]): Happening[] => [...first, ...rest]);

  it('B61: with creation off the recorder has not one creating call', async () => {
    const seen = new Set<string>();
    const law = async (happenings: readonly Happening[], allowed: ProvisioningPolicy, faults: readonly boolean[]) => {
      let calls = 0;
      const turns = new Turns(() => (faults[calls++ % faults.length] === true ? fault : undefined));
      await liveThrough(turns, happenings, { ...allowed, createTopicToRemoteCluster: false });
      for (const { call, caller } of turns.admins.calls) if (caller === ISTHMUS) seen.add(call);
      expect(creationsOf(turns.admins)).toEqual([]);
    };
    const arbFaults = fc.array(
      fc.nat(9).map((n) => n === 0),
      { minLength: 7, maxLength: 13 },
    );
    await fc.assert(fc.asyncProperty(arbHappenings, arbPolicy, arbFaults, law), { numRuns: 100, seed: 61 });
    expect([...seen].sort()).toEqual(['names', 'namespace', 'partitions', 'segment', 'segments']);
  });

  it('there is never a second replicator, and what is created is looked for first', async () => {
    const created = new Set<string>();
    const law = async (happenings: readonly Happening[], allowed: ProvisioningPolicy) => {
      const turns = new Turns();
      await liveThrough(turns, happenings, { ...allowed, createTopicToRemoteCluster: true });
      const own = turns.admins.calls.filter(({ caller, cluster }) => caller === ISTHMUS && cluster === 'b');
      own.forEach(({ creates, call }, i) => {
        if (!creates) return;
        created.add(call);
        // Between two creating calls lies a whole look.
        expect(lookBefore(own, i)).toEqual(expect.arrayContaining(['namespace', 'names', 'partitions', 'segments']));
      });
      expect(
        turns.admins.calls.filter(({ caller, creates, cluster }) => caller === ISTHMUS && creates && cluster === 'a'),
      ).toEqual([]);
    };
    await fc.assert(fc.asyncProperty(arbHappenings, arbPolicy, law), { numRuns: 100, seed: 370 });
    expect([...created].sort()).toEqual([
      'completePartitions',
      'createPartitioned',
      'createPlain',
      'createScalable',
      'expandPartitions',
    ]);
  });

  function lookBefore(calls: readonly AdminCall[], at: number): string[] {
    const before = calls.slice(0, at);
    const last = before.map(({ creates }) => creates).lastIndexOf(true);
    return before.slice(last + 1).map(({ call }) => call);
  }
});
