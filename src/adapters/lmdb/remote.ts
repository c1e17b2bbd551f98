/**
 * The topic as the destination of replication from one source cluster. The segment's window decides about each send
 * in the transaction that stores it, so a send that fails fails all behind it: they name a previous one that is
 * missing.
 */
import type { SourcePosition } from '../../entry/index.js';
import { IsthmusError, messageOf } from '../../errors.js';
import type { OpenResult, RemoteProducer, RemoteTopic, Send, SendResult, WatermarkResult } from '../../ports/index.js';
import { appendEntry, checkSize, sizeOf } from './append.js';
import type { SegmentRow } from './environment.js';
import type { TopicState } from './topic-state.js';
import { StoreStopped } from './write-queue.js';
import type { WriteTransaction } from './write-transaction.js';

/** Names of open producers of one topic, each with its segment: a name is a lock (R14). */
export type ProducerLocks = Set<string>;

/** One producer's way into one segment. */
interface Lane {
  readonly topic: TopicState;
  readonly segmentId: number;
  readonly producer: string;
  readonly lock: string;
  readonly locks: ProducerLocks;
  onResult(result: SendResult): void;
}

/** The remote that a source cluster's replicator writes to. */
export function remoteTopic(topic: TopicState, sourceCluster: string, locks: ProducerLocks): RemoteTopic {
  const nameOf = (sourceSegmentId: number) => `pulsar.repl.${sourceCluster}.${sourceSegmentId}`;
  return {
    cluster: topic.cluster,
    maxEntryBytes: topic.maxEntryBytes,
    supports: { dedup: 'window', failStop: true },
    layouts: (signal) =>
      topic.layouts(signal, ({ epoch, active, segments }) => ({ cluster: topic.cluster, epoch, active, segments })),
    open(sourceSegmentId, segmentId, onResult) {
      const producer = nameOf(sourceSegmentId);
      return open({ topic, segmentId, producer, lock: `${segmentId}/${producer}`, locks, onResult });
    },
    watermark: (sourceSegmentId, segmentId) => watermark(topic, segmentId, nameOf(sourceSegmentId)),
    // biome-ignore lint/correctness/useYield: it has nothing to bring.
    async *readBack() {
      throw withoutReadBack();
    },
  };
}

async function open(lane: Lane): Promise<OpenResult> {
  const { topic, segmentId, producer, lock, locks } = lane;
  try {
    const state = topic.environment.tables.segments.get([topic.id, segmentId])?.state;
    if (state !== 'open') return closedTo(segmentId, state);
    if (locks.has(lock)) return { type: 'fenced', reason: `${producer} is open on segment ${segmentId}` };
    locks.add(lock);
    const opened = await openLocked(lane);
    if (opened.type !== 'opened') locks.delete(lock);
    return opened;
  } catch (error) {
    return { type: 'unavailable', reason: messageOf(error) };
  }
}

async function openLocked(lane: Lane): Promise<OpenResult> {
  const { topic, segmentId, producer } = lane;
  try {
    // Behind whatever an earlier producer of this name has sent: that has come in before this looks.
    const { state, watermark } = await topic.queue.transact((transaction) => ({
      state: transaction.segment(topic.id, segmentId)?.state,
      watermark: transaction.window(topic.id, segmentId, producer).watermark(producer),
    }));
    if (state !== 'open') return closedTo(segmentId, state);
    return { type: 'opened', producer: producerOf(lane), ...(watermark === undefined ? {} : { watermark }) };
  } catch (error) {
    return { type: 'unavailable', reason: messageOf(error) };
  }
}

function producerOf(lane: Lane): RemoteProducer {
  const { topic, segmentId, lock, locks } = lane;
  let closed = false;
  const tell = (result: SendResult) => {
    if (!closed) lane.onResult(result);
  };
  return {
    send(send) {
      if (closed) return;
      topic.queue.submit({
        bytes: sizeOf(send.buffers),
        run: (transaction) => (closed ? undefined : store(transaction, lane, send)),
        done(result) {
          if (result?.type === 'stored') topic.wakeSegments([segmentId]);
          if (result !== undefined) tell(result);
        },
        failed: (error) => tell(failureOf(error)),
      });
    },
    async barrier(): Promise<SourcePosition> {
      throw withoutReadBack();
    },
    async close() {
      if (closed) return;
      closed = true;
      locks.delete(lock);
    },
  };
}

function store(transaction: WriteTransaction, { topic, segmentId, producer }: Lane, send: Send): SendResult {
  const state = transaction.segment(topic.id, segmentId)?.state;
  if (state !== 'open') return closedTo(segmentId, state);
  checkSize(topic, send.buffers);
  const result = appendEntry(transaction, topic, segmentId, send.buffers, producer, send);
  return result.type === 'sealed' ? closedTo(segmentId, 'sealed') : result;
}

async function watermark(topic: TopicState, segmentId: number, producer: string): Promise<WatermarkResult> {
  try {
    return await topic.queue.transact((transaction): WatermarkResult => {
      const state = transaction.segment(topic.id, segmentId)?.state;
      if (state === undefined || state === 'deleted') return { type: 'pruned' };
      const known = transaction.window(topic.id, segmentId, producer).handedOn(producer);
      return { type: 'known', ...(known === undefined ? {} : { watermark: known }) };
    });
  } catch (error) {
    return { type: 'unavailable', reason: messageOf(error) };
  }
}

function failureOf(error: unknown): SendResult {
  if (error instanceof IsthmusError) {
    return { type: error.code === 'tooLarge' ? 'tooLarge' : 'rejected', reason: error.message };
  }
  return { type: error instanceof StoreStopped ? 'unavailable' : 'ambiguous', reason: messageOf(error) };
}

/** Why a segment in this state takes no sends. */
function closedTo(segmentId: number, state: SegmentRow['state'] | undefined) {
  if (state === 'created')
    return { type: 'unavailable', reason: `segment ${segmentId} is not in the layout yet` } as const;
  return { type: 'sealed', reason: `segment ${segmentId} takes no more writes` } as const;
}

function withoutReadBack(): IsthmusError {
  return new IsthmusError('invalidOperation', 'reading back: this remote keeps a window with each segment instead');
}
