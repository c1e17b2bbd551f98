/**
 * A topic in memory passes the suites of all its ports, in all its forms. The suites of a layout's host fail on hosts
 * that are broken, for the right reason; those of replication have files of their own for that.
 */
import type { Layout } from 'isthmus';
import { testCursorStore, testEntrySource, testLayoutStore, testRemoteTopic, testSegmentHost } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import type { LayoutHost } from '../../src/ports/index.js';
import { cursorSetup, newTopic, remoteSetup, sourceSetup } from '../support/memory-suites.js';
import { verdictOf } from '../support/verdict.js';

const atomic = () => newTopic().layoutHost();

describe('a host whose layout is written', () => {
  testLayoutStore(() => ({ host: atomic() }), it);
  testSegmentHost(() => ({ host: atomic() }), it);
});

describe('a host that performs operations', () => {
  testLayoutStore(() => ({ host: newTopic().planningHost() }), it);
  testSegmentHost(() => ({ host: newTopic().planningHost() }), it);
});

describe('a source', () => testEntrySource(sourceSetup, it));

describe('cursors', () => testCursorStore(cursorSetup, it));

describe.each([
  { dedup: 'window', failStop: true },
  { dedup: 'window', failStop: false },
  { dedup: 'readBack', failStop: true },
  { dedup: 'readBack', failStop: false },
] as const)('a remote with $dedup, fail-stop $failStop', (options) => {
  testRemoteTopic(() => remoteSetup(options), it);
});

const verdict = (host: () => LayoutHost) =>
  verdictOf((test) => {
    for (const suite of [testLayoutStore, testSegmentHost]) suite(() => ({ host: host(), patienceMs: 200 }), test);
  });

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
