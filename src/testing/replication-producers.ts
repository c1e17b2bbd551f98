/**
 * The local producers of one cluster of a simulated world: they write every kind of entry that a replicator meets, where
 * the layout puts its key, and note in the truth what they wrote.
 */
import {
  batchMessage,
  type Codecs,
  type EntryBuffers,
  encodeBatch,
  encodeMessage,
  joinBuffers,
  type OuterFields,
} from '../entry/index.js';
import { findActiveSegment, isLegacy, type Segment } from '../layout/index.js';
import { bucketIndex, classicPartition, contains, hashKey } from '../ring/index.js';
import type { WorldLog, WorldTopic } from './replication-topic.js';
import type { Message, SourceEntry, Truth } from './replication-truth.js';
import type { VirtualClock } from './virtual-clock.js';

/** What a producer can write. */
export type EntryKind =
  | 'single'
  /** Messages of one bucket, as a bucket batcher puts them together. */
  | 'batch'
  /** Messages of all buckets of a segment. */
  | 'wideBatch'
  /** The same without a stamp, as older producers write it. */
  | 'unstampedBatch'
  /** Messages without keys, stamped [0,0]. */
  | 'unkeyedBatch'
  /** Messages whose keys have a bucket hash of 0: their stamp looks like that of unkeyed ones (R4). */
  | 'zeroBatch'
  /** Keyed and unkeyed messages together. */
  | 'mixedBatch'
  | 'unkeyed'
  /** With an ordering key. */
  | 'ordered'
  | 'orderedBatch'
  | 'encrypted'
  | 'encryptedBatch'
  /** A key whose text does not hash into the segment. */
  | 'stray'
  /** The next chunk of a chunked message, or the first of a new one. */
  | 'chunk'
  /** The producer of the oldest unfinished chunked message dies. */
  | 'chunkDies'
  | 'marker'
  /** For some remotes only. */
  | 'listed'
  /** From a cluster beyond this world. */
  | 'replicated';

interface Key {
  readonly text: string;
  readonly hash: number;
  readonly orderingKey?: Uint8Array;
}

const keyOf = (text: string): Key => ({ text, hash: hashKey(text) });
const KEYS = Array.from({ length: 40 }, (_, i) => keyOf(`k${i}`));
/** So few are written often, so that their order can be broken. */
const USUAL_KEYS = 10;
const ZERO_KEYS = ['z198787', 'z199471', 'z244742', 'z259478'].map(keyOf);
const ORDERING_KEYS = ['o1', 'o2', 'o3'].map((text) => new TextEncoder().encode(text));

/** A message to be written: keyed or not. */
type Written = Partial<Key>;

interface OpenChunks {
  readonly uuid: string;
  readonly key: Key;
  readonly numChunks: number;
  readonly segmentId: number;
  readonly message: Message;
  next: number;
}

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** What producers need of their world. */
export interface ProducersHost {
  readonly topic: WorldTopic;
  readonly truth: Truth;
  readonly codecs: Codecs;
  readonly clock: VirtualClock;
  random(): number;
  readonly remotes: readonly string[];
  count(what: string): void;
}

export class LocalProducers {
  private readonly open: OpenChunks[] = [];
  private sequenceId = 0n;
  private nextUuid = 0;

  constructor(private readonly host: ProducersHost) {}

  /** Writes one entry; nothing where the layout has no place for it now. `pick` chooses its key, size and codec. */
  write(kind: EntryKind, pick: number): SourceEntry | undefined {
    const key = KEYS[pick % USUAL_KEYS] as Key;
    const other = Math.floor(pick / USUAL_KEYS);
    const segment = this.segmentOf(kind === 'zeroBatch' ? (ZERO_KEYS[pick % ZERO_KEYS.length] as Key) : key);
    const isStamped = !isLegacy(segment);
    switch (kind) {
      case 'single':
        return this.single(segment, key, {});
      case 'batch':
        return this.batch(segment, this.neighbours(segment, key, 1 + (other % 4)), pick, isStamped);
      case 'wideBatch':
        return this.batch(segment, this.inSegment(segment, 2 + (other % 5), pick), pick, isStamped);
      case 'unstampedBatch':
        return this.batch(segment, this.inSegment(segment, 1 + (other % 5), pick), pick, false);
      case 'unkeyedBatch':
        return this.batch(segment, new Array<Written>(1 + (other % 3)).fill({}), pick, isStamped);
      case 'zeroBatch':
        return this.zeroBatch(segment, pick);
      case 'mixedBatch':
        return this.batch(segment, [key, {}, ...this.inSegment(segment, 2, pick), {}], pick, isStamped);
      case 'unkeyed':
        return this.single(segment, {}, {});
      case 'ordered':
        return this.single(segment, { ...key, orderingKey: pickedOf(ORDERING_KEYS, other) }, {});
      case 'orderedBatch': {
        const keys = this.inSegment(segment, 3, pick);
        return this.batch(
          segment,
          [...keys, ...keys].map((one, i) => ({ ...one, orderingKey: pickedOf(ORDERING_KEYS, i + other) })),
          pick,
          isStamped,
        );
      }
      case 'encrypted':
        return this.single(segment, key, { encryptionKeys: [{ key: 'k', value: bytesOf('v') }] });
      case 'encryptedBatch':
        return this.batch(segment, this.neighbours(segment, key, 1 + (other % 3)), pick, isStamped, true);
      case 'stray':
        return this.stray(segment, pick);
      case 'chunk':
        return this.chunk(segment, key, other);
      case 'chunkDies':
        this.open.shift();
        return undefined;
      case 'marker':
        return this.foreign(segment, { markerType: 13 });
      case 'replicated':
        return this.foreign(segment, { replicatedFrom: 'elsewhere', partitionKey: key.text });
      case 'listed': {
        const remotes = this.host.remotes.filter((_, i) => ((other >> i) & 1) === 1);
        return this.single(segment, key, { replicateTo: remotes.length > 0 ? remotes : ['elsewhere'] }, remotes);
      }
    }
  }

  private segmentOf({ hash }: Key): Segment {
    const { layout } = this.host.topic;
    const [first] = layout.active;
    if (first !== undefined && isLegacy(first))
      return pickedOf(layout.active, classicPartition(hash, layout.active.length));
    return findActiveSegment(layout, hash >>> 16);
  }

  /** Some keys of a segment, each perhaps more than once. */
  private inSegment(segment: Segment, size: number, pick: number): Key[] {
    const keys = KEYS.filter((key) => this.segmentOf(key) === segment);
    return keys.length === 0 ? [] : Array.from({ length: size }, (_, i) => pickedOf(keys, pick + i * 7));
  }

  /** Some keys of the bucket that a key lies in. */
  private neighbours(segment: Segment, key: Key, size: number): Key[] {
    const bucketOf = ({ hash }: Key) => bucketIndex(segment.entryBucketSplits, hash & 0xffff);
    const keys = KEYS.filter((other) => this.segmentOf(other) === segment && bucketOf(other) === bucketOf(key));
    return Array.from({ length: size }, (_, i) => (i === 0 ? key : pickedOf(keys, i * 3 + size)));
  }

  private zeroBatch(segment: Segment, pick: number): SourceEntry | undefined {
    const keys = ZERO_KEYS.filter((key) => this.segmentOf(key) === segment);
    return this.batch(segment, [...keys, ...keys], pick, !isLegacy(segment), false, false);
  }

  /** Of the keys of other segments one, written here all the same. */
  private stray(segment: Segment, pick: number): SourceEntry | undefined {
    const key = keyOf(`stray${segment.segmentId}-${pick % 3}`);
    if (isLegacy(segment) || contains(segment.range, key.hash >>> 16)) return undefined;
    return pick % 2 === 0 ? this.single(segment, key, {}) : this.batch(segment, [key, key], pick, true);
  }

  private single(
    segment: Segment,
    key: Written,
    fields: Partial<OuterFields>,
    remotes?: readonly string[],
  ): SourceEntry | undefined {
    const log = this.logOf(segment);
    if (log === undefined) return undefined;
    const message = this.message(segment, key);
    const outer = { ...this.outer(key), ...fields };
    const buffers = encodeMessage(bytesOf(`${message.id}`), { outer, stamp: !isLegacy(segment) });
    return this.append(log, buffers, [message], { remotes });
  }

  private batch(
    segment: Segment,
    keys: readonly Written[],
    pick: number,
    isStamped: boolean,
    encrypted = false,
    withOuterKey = true,
  ): SourceEntry | undefined {
    const log = this.logOf(segment);
    if (log === undefined || keys.length === 0) return undefined;
    const messages = keys.map((key) => this.message(segment, key));
    const records = messages.map(({ id }, i) => {
      const { text, orderingKey } = keys[i] as Written;
      return batchMessage({
        payload: bytesOf(`${id}`),
        ...(text === undefined ? {} : { partitionKey: text }),
        ...(orderingKey === undefined ? {} : { orderingKey }),
        sequenceId: this.sequenceId,
      });
    });
    const outer = {
      ...this.outer(withOuterKey ? (keys[0] as Written) : {}),
      ...(encrypted ? { encryptionKeys: [{ key: 'k', value: bytesOf('v') }] } : {}),
    };
    const compression = pick % 3 === 0 && this.host.codecs.lz4 !== undefined ? 'lz4' : 'none';
    const buffers = encodeBatch(records, { outer, compression, codecs: this.host.codecs, stamp: isStamped });
    if (encrypted)
      for (let i = 0; i < buffers.payload.length; i++) buffers.payload[i] = (buffers.payload[i] as number) ^ 0x5a;
    return this.append(log, buffers, messages, {});
  }

  private chunk(segment: Segment, key: Key, pick: number): SourceEntry | undefined {
    let open = pick % 5 === 0 ? undefined : pickedOrNone(this.open, pick);
    if (open === undefined) {
      const uuid = `${this.host.topic.cluster}-${this.nextUuid++}`;
      const message = this.message(segment, key);
      open = { uuid, key, numChunks: 2 + (pick % 2), segmentId: segment.segmentId, message, next: 0 };
      this.open.push(open);
    }
    const { uuid, numChunks, message, segmentId } = open;
    const log = this.host.topic.logs.get(segmentId);
    if (log === undefined || log.sealed) {
      // Its producer begins anew elsewhere, under another name.
      this.open.splice(this.open.indexOf(open), 1);
      return undefined;
    }
    const chunkId = open.next++;
    if (open.next === numChunks) this.open.splice(this.open.indexOf(open), 1);
    const chunk = { uuid, chunkId, numChunks, totalSize: 8 * numChunks };
    const outer = { ...this.outer(open.key), chunk };
    const buffers = encodeMessage(bytesOf(`${message.id}/${chunkId}`), { outer });
    return this.append(log, buffers, [message], { chunk });
  }

  /** An entry that no remote is owed. */
  private foreign(segment: Segment, fields: Partial<OuterFields>): SourceEntry | undefined {
    const log = this.logOf(segment);
    if (log === undefined) return undefined;
    const buffers = encodeMessage(bytesOf('-'), { outer: { ...this.outer({}), ...fields } });
    return this.append(log, buffers, [], {});
  }

  /** A segment that is sealed before its layout says so: the producer waits, and writes nothing. */
  private logOf({ segmentId }: Segment): WorldLog | undefined {
    const log = this.host.topic.logs.get(segmentId);
    return log === undefined || log.sealed ? undefined : log;
  }

  private message(segment: Segment, { text, hash = -1, orderingKey }: Written): Message {
    const { topic, truth } = this.host;
    const line = text ?? `segment ${segment.segmentId}`;
    const ordering = orderingKey === undefined ? '' : `/${Buffer.from(orderingKey)}`;
    const bucket = (orderingKey === undefined ? (text === undefined ? 0 : hash) : hashKey(orderingKey)) & 0xffff;
    return truth.message(`${topic.cluster}/${line}${ordering}`, hash, bucket);
  }

  private outer({ text, orderingKey }: Written): OuterFields {
    return {
      producerName: 'p',
      sequenceId: this.sequenceId++,
      publishTimeMs: this.host.clock.nowMs,
      ...(text === undefined ? {} : { partitionKey: text }),
      ...(orderingKey === undefined ? {} : { orderingKey }),
    };
  }

  private append(
    log: WorldLog,
    buffers: EntryBuffers,
    messages: readonly Message[],
    { remotes, chunk }: { remotes?: readonly string[] | undefined; chunk?: SourceEntry['chunk'] },
  ): SourceEntry {
    const { host } = this;
    const bytes = joinBuffers(buffers);
    const position = log.append(bytes, host.random() < 0.1);
    const entry: SourceEntry = {
      cluster: host.topic.cluster,
      segmentId: log.segmentId,
      position,
      bytes,
      messages,
      chunk,
      publishedAtMs: host.clock.nowMs,
      remotes,
      refusedBy: new Map(),
      excused: new Map(),
      verbatim: undefined,
    };
    host.truth.written(entry);
    host.count('written');
    return entry;
  }
}

function pickedOf<T>(list: readonly T[], pick: number): T {
  return list[pick % list.length] as T;
}

function pickedOrNone<T>(list: readonly T[], pick: number): T | undefined {
  return list.length === 0 ? undefined : pickedOf(list, pick);
}
