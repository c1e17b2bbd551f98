/** A topic in memory as the destination of replication from one source cluster. */
import { IsthmusError } from '../../errors.js';
import type {
  OpenResult,
  RemotePin,
  RemoteSupport,
  RemoteTopic,
  SendResult,
  StoredEntry,
  WatermarkResult,
} from '../../ports/index.js';
import { MemoryProducer } from './producer.js';
import type { SegmentLog } from './segment-log.js';
import type { TopicStore } from './store.js';

/** What kind of destination a topic is to be. */
export interface MemoryRemoteOptions {
  /** Default `window`. With `readBack` nothing is checked: sends are stored as they come. */
  readonly dedup?: RemoteSupport['dedup'];
  /** Default true. */
  readonly failStop?: boolean;
}

/** Entries of one piece of a read-back. */
const READ_BACK_ENTRIES = 100;

export function memoryRemote(
  store: TopicStore,
  sourceCluster: string,
  { dedup = 'window', failStop = true }: MemoryRemoteOptions,
): RemoteTopic {
  const supports: RemoteSupport = { dedup, failStop };
  const remote: RemoteTopic = {
    cluster: store.cluster,
    maxEntryBytes: store.maxEntryBytes,
    supports,
    async *layouts(signal) {
      for await (const { epoch, active, segments } of store.watch(signal)) {
        yield { cluster: store.cluster, epoch, active, segments };
      }
    },
    open: async (sourceSegmentId, segmentId, onResult) => {
      const name = producerName(sourceCluster, sourceSegmentId);
      return open(store, { segmentId, name, sourceCluster, supports }, onResult);
    },
    watermark: async (sourceSegmentId, segmentId) => {
      if (dedup !== 'window') return { type: 'unsupported', reason: 'this remote is read back' };
      return watermark(store.logs.get(segmentId), producerName(sourceCluster, sourceSegmentId));
    },
    async *readBack(segmentId, range, signal) {
      if (dedup !== 'readBack') throw new IsthmusError('invalidOperation', 'this remote keeps dedup windows');
      yield* readBack(store.log(segmentId), range, signal);
    },
  };
  return dedup === 'readBack' ? { ...remote, pin: pin(store, sourceCluster) } : remote;
}

/** The name that is the lock of one source segment on one segment (R14). */
function producerName(sourceCluster: string, sourceSegmentId: number): string {
  return `pulsar.repl.${sourceCluster}.${sourceSegmentId}`;
}

interface Opening {
  readonly segmentId: number;
  readonly name: string;
  readonly sourceCluster: string;
  readonly supports: RemoteSupport;
}

function open(
  store: TopicStore,
  { segmentId, name, sourceCluster, supports }: Opening,
  onResult: (result: SendResult) => void,
): OpenResult {
  const log = store.logs.get(segmentId);
  if (log === undefined || log.sealed) return { type: 'sealed', reason: `segment ${segmentId} takes no more writes` };
  if (!store.layout.segments.has(segmentId)) {
    return { type: 'unavailable', reason: `segment ${segmentId} is not in the layout yet` };
  }
  if (log.producers.has(name)) return { type: 'fenced', reason: `a producer ${name} is open` };
  const { maxEntryBytes } = store;
  const producer = new MemoryProducer({ log, name, sourceCluster, supports, maxEntryBytes }, onResult);
  log.producers.set(name, producer);
  const known = supports.dedup === 'window' ? log.window.watermark(name) : undefined;
  return { type: 'opened', producer, ...(known === undefined ? {} : { watermark: known }) };
}

function watermark(log: SegmentLog | undefined, name: string): WatermarkResult {
  if (log === undefined) return { type: 'pruned' };
  const known = log.window.handedOn(name);
  return { type: 'known', ...(known === undefined ? {} : { watermark: known }) };
}

/** Piece by piece; rejects when entries are lost to it on the way, for then it would not know of them. */
async function* readBack(
  log: SegmentLog,
  { after, through }: Parameters<RemoteTopic['readBack']>[1],
  signal: AbortSignal,
): AsyncGenerator<readonly StoredEntry[], void, undefined> {
  signal.throwIfAborted();
  if (through === 'end' && !log.sealed) throw new Error('the segment is not sealed: it has no final end');
  const to = through === 'end' ? log.end : log.placeBehind(through);
  if (to > log.end) throw new Error('the segment does not reach that far');
  for (let place = Math.max(log.placeBehind(after), log.start); place < to; place += READ_BACK_ENTRIES) {
    signal.throwIfAborted();
    if (log.pruned || place < log.start) throw new Error('the entries were trimmed before they were read back');
    yield log.slice(place, Math.min(to, place + READ_BACK_ENTRIES));
  }
}

/** The subscription of a source cluster, shared by all its replicators. */
function pin(store: TopicStore, sourceCluster: string): RemotePin {
  const name = `isthmus.${sourceCluster}`;
  store.subscribe(name, 'pin');
  return {
    position: async (segmentId) => {
      const log = store.log(segmentId);
      return log.positionBefore(log.place(name));
    },
    move: async (segmentId, position) => {
      const log = store.log(segmentId);
      log.acknowledge(name, log.placeBehind(position));
    },
  };
}
