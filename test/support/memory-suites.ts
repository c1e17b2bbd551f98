/** Topics in memory as the suites of the ports of replication want them. */
import { createLayout, encodeMessage, parseEntry, pruneSegment, splitSegment } from 'isthmus';
import { type MemoryRemoteOptions, MemoryTopic } from 'isthmus/adapters/memory';
import type { CursorStoreSetup, EntrySourceSetup, RemoteTopicSetup } from 'isthmus/testing';

const nowMs = 1_700_000_000_000;
/** How long a suite waits for something that a broken adapter never does. */
const patienceMs = 200;

export function newTopic(): MemoryTopic {
  return new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 2, nowMs }), maxEntryBytes: 1000 });
}

function entry(body: string) {
  const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: nowMs };
  return encodeMessage(new TextEncoder().encode(body), { outer });
}

const split = (topic: MemoryTopic) => (segmentId: number) =>
  topic.change((layout) => splitSegment(layout, segmentId, { nowMs }));

export function sourceSetup(topic = newTopic()): EntrySourceSetup {
  return {
    source: topic.source('b'),
    append: (segmentId, count) => {
      for (let i = 0; i < count; i++) topic.append(segmentId, entry(`entry ${i}`));
    },
    split: split(topic),
    patienceMs,
  };
}

export function cursorSetup(topic = newTopic()): CursorStoreSetup {
  return { store: topic.cursors('b'), reopen: () => topic.cursors('b'), patienceMs };
}

export function remoteSetup(options: MemoryRemoteOptions, topic = newTopic()): RemoteTopicSetup {
  return {
    remote: topic.remote('s', options),
    another: () => topic.remote('s', options),
    stored: (segmentId) =>
      topic
        .entries(segmentId)
        .map(({ bytes }) => bytes)
        .filter((bytes) => parseEntry(bytes).metadata.markerType === undefined),
    split: split(topic),
    prune: (segmentId) => topic.change((layout) => pruneSegment(layout, segmentId)),
    disconnect: () => topic.disconnect('s'),
    trim: (segmentId, upTo) => {
      topic.trim(segmentId, upTo);
    },
    patienceMs,
  };
}
