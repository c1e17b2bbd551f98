/** The creation of a scalable topic on all clusters in memory: the same segments everywhere, in races and half made. */
import { type AdminCall, type AdminFault, MemoryTopicAdmins } from 'isthmus/adapters/memory';
import { creationFanOut } from 'isthmus/drivers';
import { describe, expect, it } from 'vitest';
import { by, creationsOf, ISTHMUS, topic } from '../provisioning/turns.js';

const { signal } = new AbortController();
const fault: AdminFault = { type: 'failed', failure: 'unavailable', reason: '503' };

/** Clusters with the namespace. */
function clusters(options: ConstructorParameters<typeof MemoryTopicAdmins>[0] = {}): MemoryTopicAdmins {
  const admins = new MemoryTopicAdmins(options);
  for (const cluster of ['a', 'b', 'c']) admins.addNamespace(cluster, topic);
  return admins;
}

describe('the creation of a scalable topic on every cluster', () => {
  const fanOut = (admins: MemoryTopicAdmins, segments: number, names = ['a', 'b', 'c']) =>
    creationFanOut(
      { clusters: new Map(names.map((name) => [name, () => admins.admin(name, ISTHMUS)])) },
      { topic, segments, callLimitMs: 1_000 },
    );
  const told = (results: Awaited<ReturnType<typeof fanOut>>) =>
    Object.fromEntries(
      [...results].map(([cluster, { decision }]) => [cluster, `${decision.outcome} ${decision.reason}`]),
    );

  it('makes the same segments everywhere, and changes nothing the second time', async () => {
    const admins = clusters();
    const same = { a: 'replicate sameShape', b: 'replicate sameShape', c: 'replicate sameShape' };
    expect(told(await fanOut(admins, 4))).toEqual(same);
    expect(creationsOf(admins)).toHaveLength(3);
    expect(told(await fanOut(admins, 4))).toEqual(same);
    expect(creationsOf(admins)).toHaveLength(3);
  });

  it('gives a newcomer the present segments of a peer', async () => {
    const admins = clusters();
    const starts = [0, 0x2000, 0x8000];
    await by(admins, 'b').createScalable(topic, { starts, segments: 2 }, signal);
    expect(told(await fanOut(admins, 4))).toMatchObject({ a: 'replicate sameShape', c: 'replicate sameShape' });
    const { lookUps } = admins.admin('c', 'operator');
    expect(await lookUps.segments(topic, signal)).toMatchObject({ value: starts.map((start) => ({ start })) });
  });

  it('creates nothing without the namespace, beside a classic topic, on half of a topic, or where nothing is known', async () => {
    const unreachable = ({ cluster, creates }: AdminCall) => (cluster === 'f' && !creates ? fault : undefined);
    const admins = clusters({ before: async (call) => unreachable(call) });
    for (const cluster of ['e', 'f']) admins.addNamespace(cluster, topic);
    await by(admins, 'b').createPlain(topic, signal);
    await by(admins, 'c').createScalable(topic, { starts: [0, 0x8000], segments: 2 }, signal);
    admins.remove('c', topic, { segments: [1] });
    expect(told(await fanOut(admins, 2, ['a', 'b', 'c', 'd', 'e', 'f']))).toEqual({
      a: 'replicate sameShape',
      b: 'stop kindMismatch',
      c: 'stop scalablePartial',
      d: 'wait namespaceMissing',
      e: 'replicate sameShape',
      f: 'hold remoteUnknown',
    });
    expect(
      admins.calls.filter(({ creates, caller }) => creates && caller === ISTHMUS).map(({ cluster }) => cluster),
    ).toEqual(['a', 'e']);
  });

  it('believes what it reads, not what it is told', async () => {
    // Whoever creates is told that it failed, and has created.
    const admins = clusters({ after: async ({ creates }) => (creates ? fault : undefined) });
    const [one, other] = await Promise.all([fanOut(admins, 4), fanOut(admins, 4)]);
    for (const results of [one, other]) {
      expect(told(results)).toEqual({ a: 'replicate sameShape', b: 'replicate sameShape', c: 'replicate sameShape' });
    }
  });

  it('two that differ leave topics that convergence brings together', async () => {
    const admins = clusters();
    const results = await Promise.all([fanOut(admins, 2), fanOut(admins, 8)]);
    for (const outcome of results.flatMap((each) => Object.values(told(each)))) {
      expect(outcome).toMatch(/^replicate (sameShape|layoutsDiffer)$/);
    }
  });

  it('without a count it creates only what some cluster has; where it may not create it says what is missing', async () => {
    const admins = clusters();
    const clients = new Map(['a', 'b', 'c'].map((name) => [name, () => admins.admin(name, ISTHMUS)]));
    const nowhere = { a: 'wait localMissing', b: 'wait localMissing', c: 'wait localMissing' };
    expect(told(await creationFanOut({ clusters: clients }, { topic }))).toEqual(nowhere);
    await by(admins, 'b').createScalable(topic, { starts: [0, 0x8000], segments: 2 }, signal);
    const none = await creationFanOut({ clusters: clients }, { topic, createOn: new Set() });
    expect(told(none)).toEqual({ a: 'wait topicMissing', b: 'replicate sameShape', c: 'wait topicMissing' });
    expect(creationsOf(admins)).toEqual([]);
    const some = await creationFanOut({ clusters: clients }, { topic, createOn: new Set(['c']) });
    expect(told(some)).toEqual({ a: 'wait topicMissing', b: 'replicate sameShape', c: 'replicate sameShape' });
    expect([...some.values()].map(({ answer }) => answer)).toEqual([undefined, undefined, 'done']);
  });

  it('refuses a count that is no power of two, and a name that ends in a partition suffix, before any call', async () => {
    const admins = clusters();
    await expect(fanOut(admins, 3)).rejects.toMatchObject({ code: 'invalidArgument' });
    const named = { ...topic, name: 'orders-partition-1' };
    const connect = () => admins.admin('a', ISTHMUS);
    const refused = creationFanOut({ clusters: new Map([['a', connect]]) }, { topic: named, segments: 2 });
    await expect(refused).rejects.toMatchObject({ code: 'invalidArgument' });
    expect(admins.calls).toEqual([]);
  });
});
