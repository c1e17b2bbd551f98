/** The suites of `BacklogQuery` and `LoadSource` fail on adapters that are broken, each for the rule that it breaks. */
import { createLayout, splitSegment } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { type BacklogQuerySetup, type LoadSourceSetup, testBacklogQuery, testLoadSource } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { SegmentLoad } from '../../src/convergence/index.js';
import type { BacklogQuery, LoadSource } from '../../src/ports/index.js';
import { verdictOf } from '../support/verdict.js';

const nowMs = 1_700_000_000_000;

type Change = (good: BacklogQuery, topic: MemoryTopic) => Partial<BacklogQuery>;

function inMemory(change: Change = () => ({})): BacklogQuerySetup {
  const topic = new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 2, nowMs }) });
  const good = topic.backlogQuery();
  return {
    backlogs: { ...good, ...change(good, topic) },
    segmentIds: [0, 1],
    subscribe: (name) => topic.subscribe(name),
    replicate: (remote) => void topic.source(remote),
    append(segmentId, count) {
      for (let i = 0; i < count; i++) topic.append(segmentId, { head: Uint8Array.of(1), payload: Uint8Array.of(2) });
    },
    consume: (name, segmentId) => topic.consume(name, segmentId),
    split: (segmentId) => topic.change((layout) => splitSegment(layout, segmentId, { nowMs })),
    patienceMs: 100,
  };
}

describe('in memory', () => testBacklogQuery(inMemory, it));

it.each<[string, Change, RegExp]>([
  [
    'that begins with a subscription',
    ({ subscriptions }) => ({ subscriptions: async () => ['pin', ...(await subscriptions())] }),
    /a topic that nobody has subscribed to has subscriptions/,
  ],
  [
    'that keeps what it was told first',
    ({ subscriptions }) => {
      const told = subscriptions();
      return { subscriptions: () => told };
    },
    /a subscription is not told/,
  ],
  [
    'that counts replication among consumers',
    ({ subscriptions }) => ({
      subscriptions: async () => {
        const told = await subscriptions();
        return told.length > 0 ? [...told, 'isthmus.b'] : told;
      },
    }),
    /x and y have subscribed, and told are \[isthmus\.b,x,y\]/,
  ],
  [
    'that counts the topic',
    ({ backlog }) => ({ backlog: async (_, name) => (await backlog(0, name)) + (await backlog(1, name)) }),
    /a backlog is not the number of entries/,
  ],
  [
    'that knows one subscription',
    ({ backlog }) => ({ backlog: (segmentId) => backlog(segmentId, 'x') }),
    /is not taken from just its backlog/,
  ],
  [
    'that tells what there was at first',
    ({ backlog }) => {
      let least = Number.POSITIVE_INFINITY;
      return {
        backlog: async (segmentId, name) => {
          const told = await backlog(segmentId, name);
          if (segmentId !== 0 || name !== 'x') return told;
          if (told > 0) least = Math.min(least, told === 3 ? least : 0);
          return Math.min(told, least);
        },
      };
    },
    /a backlog does not grow with what comes/,
  ],
  [
    'that takes a sealed segment for a drained one',
    ({ backlog }, topic) => ({
      backlog: async (segmentId, name) =>
        topic.layout.segments.get(segmentId)?.state === 'sealed' ? 0 : backlog(segmentId, name),
    }),
    /a segment that is sealed has lost its backlog/,
  ],
  [
    'that never lets a sealed segment go',
    ({ backlog }, topic) => ({
      backlog: async (segmentId, name) =>
        topic.layout.segments.get(segmentId)?.state === 'sealed' ? 3 : backlog(segmentId, name),
    }),
    /a sealed segment that is consumed is not drained/,
  ],
  [
    'that takes what it does not know for nothing',
    ({ backlog }) => ({ backlog: (...call) => backlog(...call).catch(() => 0) }),
    /a segment that is not there has a backlog/,
  ],
])('it refuses backlogs of a host %s', async (_, change, rule) => {
  expect(await verdictOf((test) => testBacklogQuery(() => inMemory(change), test))).toMatch(rule);
});

const LOAD: SegmentLoad = { msgRateIn: 1.5, bytesRateIn: 0, msgRateOut: 0, bytesRateOut: 3, changedAtMs: nowMs };

/** The loads of a host as it should be, in few lines. */
function loads(change: (good: LoadSource, consumers: ReadonlyMap<string, number>) => LoadSource): LoadSourceSetup {
  const consumers = new Map<string, number>();
  const read = async () => ({ loads: new Map([[0, LOAD]]), consumers: Math.max(0, ...consumers.values()) });
  return {
    source: change({ read }, consumers),
    segmentIds: [0, 1],
    connect: (name, count) => void consumers.set(name, count),
    patienceMs: 100,
  };
}

const loaded =
  (segmentId: number, load: Partial<SegmentLoad>) =>
  (good: LoadSource): LoadSource => ({
    read: async () => ({ ...(await good.read()), loads: new Map([[segmentId, { ...LOAD, ...load }]]) }),
  });

it.each<[string, Parameters<typeof loads>[0], RegExp]>([
  ['of a segment that is not there', loaded(7, {}), /segment 7 has a load, and is not there/],
  ['that are no numbers', loaded(1, { msgRateOut: Number.NaN }), /segment 1 has a load of \[1.5,0,NaN,3/],
  ['below nothing', loaded(0, { bytesRateIn: -1 }), /segment 0 has a load of \[1.5,-1,0,3/],
  [
    'of one consumer more than there are',
    ({ read }) => ({ read: async () => ({ ...(await read()), consumers: (await read()).consumers + 1 }) }),
    /a topic without consumers has some/,
  ],
  [
    'of the consumers of all subscriptions',
    ({ read }, consumers) => ({
      read: async () => ({ ...(await read()), consumers: [...consumers.values()].reduce((sum, one) => sum + one, 0) }),
    }),
    /3 are the most consumers of one subscription/,
  ],
  [
    'of the consumers of one subscription',
    ({ read }, consumers) => ({ read: async () => ({ ...(await read()), consumers: consumers.get('x') ?? 0 }) }),
    /3 are the most consumers of one subscription/,
  ],
])('it refuses loads %s', async (_, change, rule) => {
  expect(await verdictOf((test) => testLoadSource(() => loads(change), test))).toMatch(rule);
});

it('it takes a host as it should be', async () => {
  expect(await verdictOf((test) => testBacklogQuery(inMemory, test))).toBe('accepted');
  expect(await verdictOf((test) => testLoadSource(() => loads((good) => good), test))).toBe('accepted');
});
