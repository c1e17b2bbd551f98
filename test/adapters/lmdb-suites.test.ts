/** The embedded store passes the acceptance suites, each test in a folder of its own. */
import { type Layout, pruneSegment, splitSegment } from 'isthmus';
import type { LmdbTopic } from 'isthmus/adapters/lmdb';
import { testCursorStore, testEntrySource, testLayoutStore, testRemoteTopic, testSegmentHost } from 'isthmus/testing';
import { describe, it } from 'vitest';
import { openTopic, storeFolder } from '../support/lmdb.js';

async function freshTopic() {
  const folder = storeFolder();
  const topic = await openTopic(await folder.open());
  return { folder, topic, teardown: () => folder.remove() };
}

async function change(topic: LmdbTopic, mutation: (layout: Layout) => Layout): Promise<void> {
  const { layout } = topic;
  await topic.layoutHost().store.commit(layout.epoch, mutation(layout));
}

const split = (topic: LmdbTopic) => (segmentId: number) =>
  change(topic, (layout) => splitSegment(layout, segmentId, { nowMs: 1_700_000_000_001 }));

describe('the layout of a topic', () => {
  const host = async () => {
    const { topic, teardown } = await freshTopic();
    return { host: topic.layoutHost(), teardown };
  };
  testLayoutStore(host, it);
  testSegmentHost(host, it);
});

describe('a topic that is read', () => {
  testEntrySource(async () => {
    const { topic, teardown } = await freshTopic();
    return {
      source: topic.source('b'),
      async append(segmentId, count) {
        const entry = { head: Uint8Array.of(1, 2), payload: Uint8Array.of(3) };
        for (let i = 0; i < count; i++) await topic.append(segmentId, entry);
      },
      split: split(topic),
      teardown,
    };
  }, it);
});

describe('a topic that is replicated to', () => {
  testRemoteTopic(async () => {
    const { topic, teardown } = await freshTopic();
    return {
      remote: topic.remote('s'),
      another: () => topic.remote('s'),
      stored: (segmentId) => [...topic.entries(segmentId)].map(({ bytes }) => bytes),
      split: split(topic),
      prune: (segmentId) => change(topic, (layout) => pruneSegment(layout, segmentId)),
      teardown,
    };
  }, it);
});

describe('the cursors of a topic', () => {
  testCursorStore(async () => {
    const { folder, topic, teardown } = await freshTopic();
    // A process opens a folder once: who holds the store from before goes on with the one that is open.
    let cursors = topic.cursors('b');
    const store = {
      load: () => cursors.load(),
      write: (...args: Parameters<typeof cursors.write>) => cursors.write(...args),
    };
    return {
      store,
      async reopen() {
        cursors = (await openTopic(await folder.open())).cursors('b');
        return store;
      },
      teardown,
    };
  }, it);
});
