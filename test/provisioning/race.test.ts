/** The operators of two clusters create the topic at once, and so do the provisioners of both directions: in any order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ProvisioningPolicy, policyFromConfig } from '../../src/provisioning/index.js';
import { policy } from './shapes.js';
import { by, Turns, topic } from './turns.js';

const { signal } = new AbortController();

describe('clusters that create at once', () => {
  type Wanted = 'plain' | 1 | 2 | 3 | 'scalable';
  const arbWanted = fc.constantFrom<Wanted>('plain', 1, 2, 3, 'scalable');
  const arbOrder = fc.array(fc.nat(30), { minLength: 10, maxLength: 50 });
  /** When each side's own operator creates, as a place in the order. */
  const arbPlaces = fc.tuple(fc.nat(25), fc.nat(25));

  async function createOn(turns: Turns, cluster: string, wanted: Wanted): Promise<void> {
    if (wanted === 'plain') await by(turns.admins, cluster).createPlain(topic, signal);
    else if (wanted === 'scalable') {
      const starts = cluster === 'a' ? [0] : [0, 0x8000];
      await by(turns.admins, cluster).createScalable(topic, { starts, segments: starts.length }, signal);
    } else await by(turns.admins, cluster).createPartitioned(topic, wanted, signal);
  }

  /** Both operators and both provisioners at once, in the order drawn; what each direction comes to. */
  async function race(
    wanted: readonly [Wanted, Wanted],
    order: readonly number[],
    places: readonly [number, number],
    allowed: ProvisioningPolicy,
  ): Promise<{ outcomes: string[]; names: string[] }> {
    const turns = new Turns();
    const directions = [turns.provision('a', 'b', allowed), turns.provision('b', 'a', allowed)];
    for (const [i, drawn] of [...order, ...Array<number>(26).fill(0)].entries()) {
      if (places[0] === i) await createOn(turns, 'a', wanted[0]);
      if (places[1] === i) await createOn(turns, 'b', wanted[1]);
      await turns.step(drawn);
    }
    await turns.toTheEnd();
    const outcomes = directions.map((each) => {
      const { decision } = each.status().provisioning;
      return `${decision?.outcome} ${decision?.reason}`;
    });
    const running = ['b', 'a'].map((cluster) => turns.running(cluster));
    expect(running).toEqual(outcomes.map((outcome) => (outcome.startsWith('replicate') ? 1 : 0)));
    const names = await Promise.all(
      ['a', 'b'].map(async (cluster) => {
        const { lookUps } = turns.admins.admin(cluster, 'operator');
        return JSON.stringify([await lookUps.partitions(topic, signal), await lookUps.names(topic, signal)]);
      }),
    );
    await turns.stop();
    return { outcomes, names };
  }

  it('clones end well in any order', async () => {
    const law = async (wanted: Wanted, order: readonly number[], places: readonly [number, number]) => {
      const { outcomes, names } = await race([wanted, wanted], order, places, policy());
      for (const outcome of outcomes) {
        expect(outcome).toMatch(
          wanted === 'scalable' ? /^replicate (sameShape|layoutsDiffer)$/ : /^replicate sameShape$/,
        );
      }
      expect(names[0]).toBe(names[1]);
    };
    await fc.assert(fc.asyncProperty(arbWanted, arbOrder, arbPlaces, law), { numRuns: 40, seed: 433 });
  });

  it('others end well, or both sides stop with a reason of this list, and leave no orphans', async () => {
    const seen = new Set<string>();
    const law = async (a: Wanted, b: Wanted, order: readonly number[], places: readonly [number, number]) => {
      const { outcomes, names } = await race([a, b], order, places, policy());
      outcomes.sort();
      seen.add(outcomes.join(', '));
      for (const cluster of names) expect(hasOrphans(cluster)).toBe(false);
      const isAll = (form: RegExp) => outcomes.every((outcome) => form.test(outcome));
      const reasons = /^stop (partitionMismatch|typeMismatch|kindMismatch|both|localIrregular)$/;
      expect(isAll(/^replicate/) || isAll(reasons)).toBe(true);
    };
    await fc.assert(fc.asyncProperty(arbWanted, arbWanted, arbOrder, arbPlaces, law), { numRuns: 80, seed: 23124 });
    for (const end of ['replicate sameShape', 'stop partitionMismatch', 'stop typeMismatch', 'stop kindMismatch']) {
      expect([...seen]).toContain(`${end}, ${end}`);
    }
  });

  it('unequal counts meet in the larger one where the smaller side may be expanded', async () => {
    const allowed = policyFromConfig({ onPartitionMismatch: 'expand' });
    const arbCount = fc.constantFrom<Wanted>(1, 2, 3);
    const law = async (a: Wanted, b: Wanted, order: readonly number[], places: readonly [number, number]) => {
      const { outcomes } = await race([a, b], order, places, allowed);
      expect(outcomes).toEqual(['replicate sameShape', 'replicate sameShape']);
    };
    await fc.assert(fc.asyncProperty(arbCount, arbCount, arbOrder, arbPlaces, law), { numRuns: 40, seed: 24136 });
  });

  function hasOrphans(cluster: string): boolean {
    const [partitions, listed] = JSON.parse(cluster) as [{ value?: number }, { value: string[] }];
    return listed.value.filter((name) => name.includes('-partition-')).length > (partitions.value ?? 0);
  }
});
