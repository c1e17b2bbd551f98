/** The suites of a layout's host fail on hosts that are broken, each for the rule that it breaks. */
import { createLayout, type Layout, type LayoutHost, pruneSegment, rebucketSegment, splitSegment } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { testLayoutStore, testSegmentHost } from 'isthmus/testing';
import { expect, it } from 'vitest';
import { verdictOf } from '../support/verdict.js';

const nowMs = 1_700_000_000_000;

type Atomic = Extract<LayoutHost, { segments: { supports: { atomicLayoutChange: true } } }>;
type Planning = Extract<LayoutHost, { segments: { supports: { atomicLayoutChange: false } } }>;

const newTopic = () => new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 2, nowMs }) });

const verdict = (host: () => LayoutHost) =>
  verdictOf((test) => {
    for (const suite of [testLayoutStore, testSegmentHost]) suite(() => ({ host: host(), patienceMs: 100 }), test);
  });

/** A host of a topic in memory with another store, or other segments. */
const atomic = (change: (host: Atomic, topic: MemoryTopic) => { store?: object; segments?: object }) => () => {
  const topic = newTopic();
  const host = topic.layoutHost() as Atomic;
  const { store = {}, segments = {} } = change(host, topic);
  return { store: { ...host.store, ...store }, segments: { ...host.segments, ...segments } };
};

const planning = (change: (host: Planning, topic: MemoryTopic) => { store?: object; segments?: object }) => () => {
  const topic = newTopic();
  const host = topic.planningHost() as Planning;
  const { store = {}, segments = {} } = change(host, topic);
  return { store: { ...host.store, ...store }, segments: { ...host.segments, ...segments } };
};

/** A store that loads something else than what is stored. */
const loading = (change: (layout: Layout, times: number) => Layout) =>
  atomic(({ store }) => {
    let times = 0;
    return { store: { load: async () => change(await store.load(), times++) } };
  });

/** A store that tells its layouts in another way. */
const watching = (watch: (host: Atomic, signal: AbortSignal) => AsyncIterable<Layout>) =>
  atomic((host) => ({ store: { watch: (signal: AbortSignal) => watch(host, signal) } }));

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

it.each<[string, () => LayoutHost, RegExp]>([
  [
    'that loads what is no layout',
    loading((layout) => ({ ...layout, segments: new Map([...layout.segments].slice(1)) })),
    /leaves a gap/,
  ],
  [
    'that loads something new each time',
    loading((layout, times) => ({ ...layout, epoch: layout.epoch + times })),
    /loading twice gives two different layouts/,
  ],
  [
    'whose watch waits for a change',
    watching(async function* ({ store }, signal) {
      let isFirst = true;
      for await (const layout of store.watch(signal)) {
        if (!isFirst) yield layout;
        isFirst = false;
      }
    }),
    /the watch does not begin with the present layout/,
  ],
  [
    'whose watch ends by itself',
    watching(async function* ({ store }) {
      yield await store.load();
    }),
    /does not tell of a change/,
  ],
  [
    'whose watch ends behind the first change',
    watching(async function* ({ store }, signal) {
      const first = await store.load();
      for await (const layout of store.watch(signal)) {
        yield layout;
        if (layout.epoch > first.epoch) return;
      }
    }),
    /the watch ends before its signal/,
  ],
  [
    'whose watch outlives its signal',
    watching(async function* ({ store }, signal) {
      // A watch may end by an error once it is aborted.
      try {
        yield* store.watch(signal);
      } finally {
        await new Promise(() => undefined);
      }
    }),
    /the watch does not end with its signal/,
  ],
  [
    'whose watch begins with an older layout',
    watching(async function* ({ store }, signal) {
      const layout = await store.load();
      yield { ...layout, epoch: layout.epoch - 1 };
      yield* store.watch(signal);
    }),
    /the first layout of the watch is not the present one/,
  ],
  [
    'whose watch is ahead of its store',
    watching(async function* ({ store }, signal) {
      const first = await store.load();
      for await (const layout of store.watch(signal)) {
        yield layout.epoch === first.epoch ? layout : { ...layout, epoch: layout.epoch + 5 };
      }
      await aborted(signal);
    }),
    /the watch tells of a layout that is not stored/,
  ],
  [
    'that stores what has lost',
    atomic(({ store }) => ({
      store: {
        commit: async (expected: number, layout: Layout) => {
          const { epoch } = await store.load();
          const result = await store.commit(epoch, layout);
          return expected === epoch ? result : { type: 'conflict' };
        },
      },
    })),
    /a commit that lost has changed the layout/,
  ],
  [
    'that looks first and writes later',
    atomic(({ store }) => ({
      store: {
        commit: async (expected: number, layout: Layout) => {
          const { epoch } = await store.load();
          if (epoch !== expected) return { type: 'conflict' };
          await new Promise((resolve) => setTimeout(resolve, 1));
          await store.commit(expected, layout);
          return { type: 'committed' };
        },
      },
    })),
    /4 of four commits on one epoch have won/,
  ],
  [
    'that commits nothing',
    atomic(({ store }) => {
      let isTaken = false;
      return {
        store: {
          // So that the watch sees its change.
          commit: async (expected: number, layout: Layout) => {
            if (expected !== (await store.load()).epoch || isTaken) return { type: 'conflict' };
            isTaken = true;
            const [{ segmentId = 0 } = {}] = layout.active;
            return store.commit(expected, rebucketSegment(await store.load(), segmentId === 1 ? 1 : 0, [7], { nowMs }));
          },
        },
      };
    }),
    /what is loaded is not what was committed/,
  ],
  [
    'that writes the layout when it creates a segment once more',
    atomic(({ segments }, topic) => {
      let times = 0;
      return {
        segments: {
          create: async (...call: Parameters<Atomic['segments']['create']>) => {
            await segments.create(...call);
            if (++times > 1) topic.change((layout) => rebucketSegment(layout, 1, [7], { nowMs }));
          },
        },
      };
    }),
    /creating a segment has changed the layout/,
  ],
  [
    'that deletes nothing',
    atomic(() => ({ segments: { delete: async () => undefined } })),
    /a deleted segment is still listed/,
  ],
  [
    'that performs nothing',
    planning(() => ({ segments: { perform: async () => ({ type: 'failed', reason: 'not now' }) } })),
    /a split is not performed/,
  ],
  [
    'whose splits have no effect',
    planning(({ store }, topic) => ({
      segments: {
        perform: async () => {
          topic.change((layout) => rebucketSegment(layout, 0, [7], { nowMs }));
          return { type: 'performed', layout: await store.load() };
        },
      },
      store,
    })),
    /a split has no effect/,
  ],
  [
    'that answers with the layout before',
    performing(async ({ store, segments }, operation) => {
      const layout = await store.load();
      const result = await segments.perform(operation);
      return result.type === 'performed' ? { type: 'performed', layout } : result;
    }),
    /the answer is not a newer layout/,
  ],
  [
    'that answers with another layout',
    performing(async ({ segments }, operation) => {
      const result = await segments.perform(operation);
      if (result.type !== 'performed') return result;
      return { type: 'performed', layout: { ...result.layout, epoch: result.layout.epoch + 1 } };
    }),
    /the answer is not the layout that is stored/,
  ],
  [
    'that splits in four',
    performing(async ({ store, segments }, operation, topic) => {
      const result = await segments.perform(operation);
      if (result.type !== 'performed') return result;
      topic.change((layout) => splitSegment(layout, layout.active[0]?.segmentId ?? 0, { nowMs }));
      return { type: 'performed', layout: await store.load() };
    }),
    /a split does not give one segment more/,
  ],
  [
    'that takes a sealed segment for one of its children',
    performing(async ({ store, segments }, operation) => {
      const { segments: known } = await store.load();
      const { segmentId = 0 } = operation as { readonly segmentId?: number };
      const child = known.get(segmentId)?.childIds[0];
      return segments.perform(child === undefined ? operation : { type: 'split', segmentId: child });
    }),
    /a split of a sealed segment is not refused/,
  ],
  [
    'that tidies up while it refuses',
    performing(async ({ segments }, operation, topic) => {
      const result = await segments.perform(operation);
      if (result.type === 'failed') topic.change((layout) => pruneSegment(layout, 0));
      return result;
    }),
    /an operation that was refused has changed the layout/,
  ],
])('they refuse a host %s', async (_, host, rule) => {
  expect(await verdict(host)).toMatch(rule);
});

type Perform = Planning['segments']['perform'];

/** A planning host with a `perform` of its own. */
function performing(
  perform: (host: Planning, operation: Parameters<Perform>[0], topic: MemoryTopic) => ReturnType<Perform>,
): () => LayoutHost {
  return planning((host, topic) => ({
    segments: { perform: (operation: Parameters<Perform>[0]) => perform(host, operation, topic) },
  }));
}

it('they take a host as it should be', async () => {
  expect(await verdict(atomic(() => ({})))).toBe('accepted');
  expect(await verdict(planning(() => ({})))).toBe('accepted');
});
