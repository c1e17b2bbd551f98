/**
 * The controller's driver on memory hosts: the order of a change, healing after a crash between any two steps,
 * conflicts, hosts that need a plan, several topics in a call. The rules themselves are tested with the machine.
 */
import {
  createLayout,
  equalShapes,
  formatLayout,
  IsthmusError,
  type Layout,
  parseLayout,
  shapeOf,
  splitSegment,
} from 'isthmus';
import { MemoryPeers, MemoryTopic } from 'isthmus/adapters/memory';
import {
  batchExchanges,
  createExchangeHandler,
  createLayoutController,
  type LayoutController,
  type LayoutControllerEvent,
} from 'isthmus/drivers';
import { afterEach, describe, expect, it } from 'vitest';
import type { ExchangeRequest } from '../../src/convergence/index.js';
import type { LayoutHost, PeerChannel } from '../../src/ports/index.js';
import { until } from '../support/until.js';

const nowMs = 1_700_000_000_000;
const caps = { maxSegments: 64, maxEntryBucketsPerSegment: 64 };
const running: LayoutController[] = [];
afterEach(async () => {
  for (const controller of running.splice(0)) await controller.stop();
});

interface Setup {
  readonly members?: readonly string[];
  readonly host?: LayoutHost;
  readonly channel?: PeerChannel;
  readonly term?: number;
  readonly antiEntropyMs?: number;
}

async function lead(topic: MemoryTopic, peers: MemoryPeers, setup: Setup = {}): Promise<LayoutController> {
  const { members = ['a', 'b'], host = topic.layoutHost(), channel = peers.channel(topic.cluster), term = 1 } = setup;
  const { antiEntropyMs = 60_000 } = setup;
  const controller = createLayoutController(
    { host, channel },
    {
      ...{ cluster: topic.cluster, topic: 't', members, caps, term, antiEntropyMs },
      ...{ retryInitialMs: 1, retryMaxMs: 5, retryDelayMs: 1 },
    },
  );
  running.push(controller);
  peers.connect(
    topic.cluster,
    createExchangeHandler((name) => (name === 't' ? controller : undefined)),
  );
  await controller.start();
  return controller;
}

const agree = (a: MemoryTopic, b: MemoryTopic) => () => equalShapes(shapeOf(a.layout), shapeOf(b.layout));

describe('clusters meet', () => {
  it('C15: one round trip does both directions, over hosts of both forms', async () => {
    const peers = new MemoryPeers();
    const a = new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 1, buckets: 4, nowMs }) });
    const b = new MemoryTopic({ cluster: 'b', layout: createLayout({ segments: 2, buckets: 2, nowMs }) });
    await lead(a, peers);
    await lead(b, peers, { host: b.planningHost() });
    await until(agree(a, b));
    expect(shapeOf(a.layout).cells.map(({ range }) => range.start)).toEqual([0, 0x8000]);
    expect(shapeOf(a.layout).cells.map(({ entryBucketSplits }) => entryBucketSplits.length + 1)).toEqual([4, 4]);
  });

  it('C12: a manual merge waits for the other side, and a refused one changes nothing', async () => {
    const peers = new MemoryPeers();
    const a = new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 2, nowMs }) });
    const b = new MemoryTopic({ cluster: 'b', layout: createLayout({ segments: 2, nowMs }) });
    const [one, other] = [await lead(a, peers), await lead(b, peers)];
    await until(() => one.status()?.unheard.length === 0 && other.status()?.unheard.length === 0);
    expect(() => one.operate({ type: 'merge', boundary: 0x4000 })).toThrow(IsthmusError);
    one.operate({ type: 'merge', boundary: 0x8000 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(a.layout.active).toHaveLength(2);
    expect(one.status()?.coldMarks.segments).toEqual([0x8000]);
    other.operate({ type: 'merge', boundary: 0x8000 });
    await until(() => a.layout.active.length === 1 && b.layout.active.length === 1);
    expect(one.status()?.coldMarks.segments).toEqual([]);
  });

  it('a manual split before start is refused, not forgotten', () => {
    const topic = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    const controller = createLayoutController(
      { host: topic.layoutHost(), channel: new MemoryPeers().channel('a') },
      { cluster: 'a', topic: 't', members: [], caps },
    );
    expect(() => controller.operate({ type: 'split', segmentId: 0 })).toThrow(/has not been started/);
  });
});

describe('a change of the layout on a host that isthmus writes', () => {
  /** A host that records its calls, and dies after the call with the given number. */
  function recording(topic: MemoryTopic, dieAfter = Number.POSITIVE_INFINITY): { host: LayoutHost; calls: string[] } {
    const { store, segments } = topic.layoutHost();
    const calls: string[] = [];
    const call = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
      if (calls.length >= dieAfter) return new Promise<T>(() => undefined);
      calls.push(name);
      return work();
    };
    const host: LayoutHost = {
      store: {
        ...store,
        commit: (epoch, layout) => call(`commit ${epoch} -> ${layout.epoch}`, () => store.commit(epoch, layout)),
      },
      segments: {
        ...segments,
        create: (created) => call(`create ${ids(created)}`, () => segments.create(created)),
        seal: (sealed) => call(`seal ${sealed}`, () => segments.seal(sealed)),
        delete: (deleted) => call(`delete ${deleted}`, () => segments.delete(deleted)),
      },
    };
    return { host, calls };
  }
  const ids = (segments: readonly { segmentId: number }[]) => segments.map(({ segmentId }) => segmentId).join(',');

  it('creates successors before it seals, and seals before it publishes', async () => {
    const topic = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    const { host, calls } = recording(topic);
    const controller = await lead(topic, new MemoryPeers(), { host, members: [] });
    controller.operate({ type: 'split', segmentId: 0 });
    await until(() => topic.layout.epoch === 1);
    expect(calls).toEqual(['create 1,2', 'seal 0', 'commit 0 -> 1']);
  });

  it('a crash between any two steps is healed by the next leader: writes go on, and one reader sees each epoch once', async () => {
    for (const dieAfter of [0, 1, 2, 3]) {
      const topic = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
      const { host } = recording(topic, dieAfter);
      const epochs: number[] = [];
      const stop = new AbortController();
      void (async () => {
        for await (const { epoch } of topic.layoutHost().store.watch(stop.signal)) epochs.push(epoch);
      })().catch(() => undefined);
      const first = createLayoutController(
        { host, channel: new MemoryPeers().channel('a') },
        { cluster: 'a', topic: 't', members: [], caps, term: 1 },
      );
      await first.start();
      first.operate({ type: 'split', segmentId: 0 });
      await new Promise((resolve) => setTimeout(resolve, 5));
      // The first leader is gone for good: nothing of it is stopped, as nothing of a killed process is.
      const second = await lead(topic, new MemoryPeers(), { members: [], term: 2 });
      const active = topic.layout.active;
      for (const { segmentId } of active) {
        const empty = { head: new Uint8Array(1), payload: new Uint8Array(0) };
        expect(topic.append(segmentId, empty), `after a crash behind ${dieAfter} calls`).not.toBe('sealed');
      }
      const hosted = await topic.layoutHost().segments.list();
      expect(hosted.map(({ segmentId }) => segmentId).sort()).toEqual([...topic.layout.segments.keys()].sort());
      expect(parseLayout(JSON.parse(JSON.stringify(formatLayout(topic.layout))))).toEqual(topic.layout);
      second.operate({ type: 'split', segmentId: topic.layout.active[0]?.segmentId ?? -1 });
      await until(() => topic.layout.active.length === active.length + 1);
      stop.abort();
      expect(epochs).toEqual([...new Set(epochs)].sort((x, y) => x - y));
    }
  });

  it('a commit that lost is folded again on what won', async () => {
    const peers = new MemoryPeers();
    const a = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    const b = new MemoryTopic({ cluster: 'b', layout: createLayout({ segments: 4, nowMs }) });
    const { store, segments } = a.layoutHost();
    let isFirst = true;
    const host: LayoutHost = {
      segments,
      store: {
        ...store,
        async commit(expectedEpoch, layout) {
          if (isFirst) a.change((current) => splitSegment(current, 0, { nowMs, at: [0x2000] }));
          isFirst = false;
          return store.commit(expectedEpoch, layout);
        },
      },
    };
    await lead(b, peers);
    await lead(a, peers, { host });
    await until(agree(a, b));
    expect(shapeOf(a.layout).cells.map(({ range }) => range.start)).toEqual([0, 0x2000, 0x4000, 0x8000, 0xc000]);
  });

  it('a store that cannot be reached for a while is tried again, and the answer to the peer says so', async () => {
    const peers = new MemoryPeers();
    const a = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    const b = new MemoryTopic({ cluster: 'b', layout: createLayout({ segments: 2, nowMs }) });
    const { store, segments } = a.layoutHost();
    let failures = 3;
    const host: LayoutHost = {
      segments,
      store: {
        ...store,
        async commit(expectedEpoch, layout) {
          if (failures-- > 0) throw new Error('the store is down');
          return store.commit(expectedEpoch, layout);
        },
      },
    };
    await lead(a, peers, { host });
    const other = await lead(b, peers);
    await until(agree(a, b));
    await until(() => other.status()?.peers[0]?.ackedEpoch === b.layout.epoch);
  });
});

describe('C16: the layout is read regularly', () => {
  it('and one that was read before a commit, and comes after it, is read again', async () => {
    const topic = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    const { store, segments } = topic.layoutHost();
    let loads = 0;
    let letGo: () => void = () => undefined;
    let held: Promise<void> | undefined;
    const host: LayoutHost = {
      segments,
      store: {
        ...store,
        async load() {
          const layout = await store.load();
          loads++;
          const isStale = held;
          held = undefined;
          await isStale;
          return layout;
        },
      },
    };
    const controller = await lead(topic, new MemoryPeers(), { members: [], host, antiEntropyMs: 5 });
    const epochs: number[] = [];
    const reading = (async () => {
      for await (const event of controller) if (event.type === 'layout') epochs.push(event.layout.epoch);
    })();
    held = new Promise((resolve) => {
      letGo = resolve;
    });
    await until(() => held === undefined);
    controller.operate({ type: 'split', segmentId: 0 });
    await until(() => epochs.length === 1);
    letGo();
    const before = loads;
    await until(() => loads > before + 2);
    await controller.stop();
    await reading;
    expect(epochs).toEqual([1]);
  });
});

describe('events and calls', () => {
  it('tells of every layout, and ends when the controller stops', async () => {
    const topic = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    const controller = await lead(topic, new MemoryPeers(), { members: [] });
    const seen: LayoutControllerEvent[] = [];
    const reading = (async () => {
      for await (const event of controller) seen.push(event);
    })();
    controller.operate({ type: 'split', segmentId: 0 });
    await until(() => topic.layout.epoch === 1);
    await controller.stop();
    await reading;
    expect(seen.map((event) => (event.type === 'layout' ? event.layout.epoch : event.type))).toEqual([1]);
  });

  it('C17: topics that push in one turn share one call, and one that fails is alone', async () => {
    const state = (topic: string): ExchangeRequest => ({ topic, state: stateOf(createLayout({ nowMs })) });
    const calls: string[][] = [];
    const channel = batchExchanges({
      async exchange(_, requests) {
        calls.push(requests.map(({ topic }) => topic));
        return {
          type: 'answered',
          results: requests.map(({ topic }) =>
            topic === 'y' ? { topic, error: { code: 'unknownTopic' as const, message: 'no' } } : { topic },
          ),
        };
      },
    });
    const { signal } = new AbortController();
    const replies = await Promise.all(['x', 'y', 'z'].map((topic) => channel.exchange('b', [state(topic)], signal)));
    expect(calls).toEqual([['x', 'y', 'z']]);
    expect(replies.map((reply) => (reply.type === 'answered' ? reply.results[0]?.error?.code : reply.type))).toEqual([
      undefined,
      'unknownTopic',
      undefined,
    ]);
  });

  it('C19: a topic that is not here is unknown to the peer, which stays unheard', async () => {
    const peers = new MemoryPeers();
    const a = new MemoryTopic({ cluster: 'a', layout: createLayout({ nowMs }) });
    peers.connect(
      'b',
      createExchangeHandler(() => undefined),
    );
    const controller = await lead(a, peers);
    await until(() => controller.status()?.peers[0]?.lastError !== undefined);
    expect(controller.status()?.peers[0]).toMatchObject({ condition: 'unheard' });
    expect(controller.status()?.peers[0]?.lastError).toMatch(/unknownTopic/);
  });
});

function stateOf(layout: Layout): ExchangeRequest['state'] {
  return { cluster: 'a', epoch: 0, revision: 1, shape: shapeOf(layout), caps, protocolVersion: 1, sentAtMs: nowMs };
}
