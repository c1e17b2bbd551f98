/** The memory hosts pass the suites, in both forms; and the suites fail on hosts that are broken, for the right reason. */
import { createLayout, type Layout } from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { testLayoutStore, testSegmentHost } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { LayoutHost } from '../../src/ports/index.js';

const topic = () => new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 2, nowMs: 1_700_000_000_000 }) });
const atomic = () => topic().layoutHost();

describe('a host whose layout is written', () => {
  testLayoutStore(() => ({ host: atomic() }), it);
  testSegmentHost(() => ({ host: atomic() }), it);
});

describe('a host that performs operations', () => {
  testLayoutStore(() => ({ host: topic().planningHost() }), it);
  testSegmentHost(() => ({ host: topic().planningHost() }), it);
});

/** What the suites say of a host: the first rule that it breaks. */
async function verdict(host: () => LayoutHost): Promise<string> {
  const tests: (() => Promise<void>)[] = [];
  for (const suite of [testLayoutStore, testSegmentHost])
    suite(
      () => ({ host: host() }),
      (_, test) => tests.push(test),
    );
  for (const test of tests) {
    try {
      await test();
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
  return 'accepted';
}

describe('the suites refuse', () => {
  it.each<[string, (host: ReturnType<typeof atomic>) => LayoutHost, RegExp]>([
    [
      'a store that takes any commit',
      ({ store, segments }) => ({
        segments,
        store: { ...store, commit: async (_, layout: Layout) => store.commit((await store.load()).epoch, layout) },
      }),
      /epoch that is not stored answers committed/,
    ],
    [
      'a store that says no without looking',
      ({ store, segments }) => ({ segments, store: { ...store, commit: async () => ({ type: 'conflict' }) } }),
      /a commit on the stored epoch is refused/,
    ],
    [
      'a watch that tells of nothing new',
      ({ store, segments }) => ({
        segments,
        store: {
          ...store,
          async *watch() {
            yield await store.load();
          },
        },
      }),
      /does not tell of a change/,
    ],
    [
      'a watch that repeats itself',
      ({ store, segments }) => ({
        segments,
        store: {
          ...store,
          async *watch(signal: AbortSignal) {
            for await (const layout of store.watch(signal)) {
              yield layout;
              yield layout;
            }
          },
        },
      }),
      /repeats or reorders epochs/,
    ],
    [
      'a seal that does not last',
      ({ store, segments }) => ({ store, segments: { ...segments, seal: async () => undefined } }),
      /not listed as sealed/,
    ],
    [
      'a host that forgets what it created',
      ({ store, segments }) => ({ store, segments: { ...segments, create: async () => undefined } }),
      /not listed as open/,
    ],
  ])('%s', async (_, broken, rule) => {
    expect(await verdict(() => broken(atomic()))).toMatch(rule);
  });

  it('and nothing else', async () => {
    expect(await verdict(atomic)).toBe('accepted');
  });
});
