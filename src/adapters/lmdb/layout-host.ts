/** The topic as a host whose layout a controller writes whole. */
import { IsthmusError, messageOf } from '../../errors.js';
import type { AtomicSegmentHost, CommitResult, LayoutStore } from '../../ports/index.js';
import { createSegments, deleteSegments, recordLayout, sealSegments } from './layout-changes.js';
import type { TopicState } from './topic-state.js';
import type { WriteTransaction } from './write-transaction.js';

/** `removed` is called when there are deleted segments to be removed. */
export function layoutHost(topic: TopicState, removed: () => void) {
  return { store: layoutStore(topic, removed), segments: segmentHost(topic, removed) };
}

function layoutStore(topic: TopicState, removed: () => void): LayoutStore {
  return {
    load: async () => topic.layout(),
    watch: (signal) => topic.layouts(signal, (layout) => layout),
    async commit(expectedEpoch, layout): Promise<CommitResult> {
      const commit = (transaction: WriteTransaction) => {
        const current = topic.layout();
        if (current.epoch !== expectedEpoch) return;
        if (layout.epoch > expectedEpoch) return recordLayout(transaction, topic.id, current, layout);
        const rule = 'a commit raises the epoch, or two could win on the same one';
        throw new IsthmusError('invalidArgument', `epoch ${layout.epoch} over ${expectedEpoch}: ${rule}`);
      };
      let gone: readonly number[] | undefined;
      try {
        gone = await topic.queue.transact(commit);
      } catch (error) {
        if (error instanceof IsthmusError) throw error;
        return { type: 'failed', reason: messageOf(error) };
      }
      if (gone === undefined) return { type: 'conflict' };
      topic.layoutChanged.wake();
      topic.wakeSegments(layout.segments.keys());
      topic.forgetSegments(gone);
      if (gone.length > 0) removed();
      return { type: 'committed' };
    },
  };
}

function segmentHost(topic: TopicState, removed: () => void): AtomicSegmentHost {
  return {
    supports: { atomicLayoutChange: true },
    async list() {
      const rows = topic.environment.tables.segments.getRange({ start: [topic.id], end: [topic.id + 1] });
      return [...rows]
        .filter(({ value }) => value.state !== 'deleted')
        .map(({ key, value }) => ({ segmentId: key[1], sealed: value.state === 'sealed' }));
    },
    create: (segments) => topic.queue.transact((transaction) => createSegments(transaction, topic, segments)),
    async seal(segmentIds) {
      await topic.queue.transact((transaction) => sealSegments(transaction, topic, segmentIds));
      topic.wakeSegments(segmentIds);
    },
    async delete(segmentIds) {
      const gone = await topic.queue.transact((transaction) => deleteSegments(transaction, topic, segmentIds));
      topic.forgetSegments(gone);
      if (gone.length > 0) removed();
    },
  };
}
