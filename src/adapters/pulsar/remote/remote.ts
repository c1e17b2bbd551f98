/**
 * A topic of a Pulsar cluster as the destination of replication from one source cluster. The broker's own deduplication
 * is not relied on, since what it knows of this use does not outlive its restart: copies are found by reading back (R15).
 */
import { randomUUID } from 'node:crypto';
import { IsthmusError, show } from '../../../errors.js';
import type {
  Clock,
  LayoutReader,
  OpenResult,
  RemotePin,
  RemoteSupport,
  RemoteTopic,
  RemoteTopicLayout,
  SendResult,
  StoredEntry,
  WatermarkResult,
} from '../../../ports/index.js';
import type { PulsarClient } from '../protocol/index.js';
import { processClock } from '../protocol/time.js';
import { type PinEnsured, TopicPin } from './pin.js';
import { openProducer } from './producer.js';
import { type ReadBackWait, readBack } from './read-back.js';
import { SegmentTopics } from './segment-topics.js';

export interface PulsarRemoteOptions {
  /** Connected to the destination cluster, with the rights to produce and to consume. */
  readonly client: PulsarClient;
  /** The destination cluster's name. */
  readonly cluster: string;
  /** The source cluster's name. */
  readonly sourceCluster: string;
  /** `topic://tenant/namespace/name`; of a classic topic, `persistent://` in its place. */
  readonly topic: string;
  /** The layout of the topic. */
  readonly layouts: LayoutReader;
  /**
   * Makes the pin on the topic, a subscription of type QUEUE, and what is missing of it if it is there already:
   * `PUT .../subscriptions/NAME?type=QUEUE`. Called again when there is no topic behind a segment of the layout.
   */
  readonly ensurePin: (subscription: string) => Promise<PinEnsured>;
  /** The name of the pin, the same in all processes; default `isthmus.pin.<sourceCluster>`. Not `pulsar.repl.*`. */
  readonly pinSubscription?: string;
  /**
   * What the names of the subscriptions begin with that read back, each with an end of its own; default
   * `isthmus.read.<sourceCluster>`. Not `pulsar.repl.*`.
   */
  readonly readSubscription?: string;
  /**
   * Bytes, 0 or more, that an entry stays below the broker's `max_message_size`; default 1,024. An entry just below
   * that size may be accepted and then never stored, since the storage behind the broker has a limit of its own.
   */
  readonly reserveBytes?: number;
  /** The broker's `max_message_size` in bytes, until a broker has told it; default 5 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Milliseconds without any answer on the connection after which sends are ambiguous, from 1; default 60,000. Ten times
   * as long while other producers on the connection get answers.
   */
  readonly sendTimeoutMs?: number;
  /** Told while a read-back gets nothing and has not reached its end. */
  readonly onWaiting?: (wait: ReadBackWait) => void;
  /** How long such a wait lasts before it is told, in milliseconds, from 1; default 5,000. */
  readonly waitingAfterMs?: number;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

/** The remote. What it still holds is given back by `close`, after the replicator has stopped. */
export interface PulsarRemote extends RemoteTopic {
  readonly pin: RemotePin;
  /** Gives back the consumers that hold the pin, which itself stays. */
  close(): Promise<void>;
}

/** Throws `invalidArgument`. */
export function pulsarRemote(options: PulsarRemoteOptions): PulsarRemote {
  return new TopicRemote(readOptions(options));
}

type Settings = Required<PulsarRemoteOptions>;

function readOptions(options: PulsarRemoteOptions): Settings {
  const { sourceCluster } = options;
  const settings = {
    pinSubscription: `isthmus.pin.${sourceCluster}`,
    readSubscription: `isthmus.read.${sourceCluster}`,
    reserveBytes: 1_024,
    maxMessageBytes: 5 * 1024 * 1024,
    sendTimeoutMs: 60_000,
    waitingAfterMs: 5_000,
    onWaiting: () => undefined,
    clock: processClock,
    ...options,
  };
  const { pinSubscription, readSubscription, reserveBytes, maxMessageBytes, sendTimeoutMs, waitingAfterMs } = settings;
  checkNumbers({ reserveBytes }, 0);
  checkNumbers({ maxMessageBytes, sendTimeoutMs, waitingAfterMs }, 1);
  checkNames({ pinSubscription, readSubscription });
  return settings;
}

class TopicRemote implements PulsarRemote {
  readonly cluster: string;
  // What is behind a failed send may be stored, but is never told as settled, and a new producer reads back first.
  readonly supports: RemoteSupport = { dedup: 'readBack', failStop: true };
  readonly pin: TopicPin;
  private readonly topics: SegmentTopics;
  private maxMessageBytes: number;
  /** Names that are being given back, by topic and name. */
  private readonly closing = new Map<string, Promise<void>>();

  constructor(private readonly settings: Settings) {
    const { client, clock, topic, layouts, ensurePin, pinSubscription: subscription } = settings;
    this.cluster = settings.cluster;
    this.maxMessageBytes = settings.maxMessageBytes;
    this.topics = new SegmentTopics(topic, layouts);
    this.pin = new TopicPin({ client, clock, topics: this.topics, subscription, ensurePin });
  }

  get maxEntryBytes(): number {
    return Math.max(0, this.maxMessageBytes - this.settings.reserveBytes);
  }

  async *layouts(signal: AbortSignal): AsyncGenerator<RemoteTopicLayout, void, undefined> {
    const { cluster } = this;
    for await (const { epoch, active, segments } of this.settings.layouts.watch(signal)) {
      yield { cluster, epoch, active, segments };
    }
  }

  async open(sourceSegmentId: number, segmentId: number, onResult: (result: SendResult) => void): Promise<OpenResult> {
    const { client, clock, sendTimeoutMs, sourceCluster } = this.settings;
    const topic = await this.topics.of(segmentId);
    if (topic === undefined) return { type: 'unavailable', reason: `segment ${segmentId} is not in the layout` };
    const missing = await this.pin.ensure(segmentId, topic);
    if (missing !== undefined) return missing;
    const name = `isthmus.${sourceCluster}.${sourceSegmentId}`;
    const key = `${topic} ${name}`;
    await this.closing.get(key);
    const maxEntryBytes = (told: number) => {
      this.maxMessageBytes = told;
      return this.maxEntryBytes;
    };
    const onClosing = (closed: Promise<void>) => this.noteClosing(key, closed);
    return openProducer({ client, topic, name, clock, sendTimeoutMs, maxEntryBytes, onClosing }, onResult);
  }

  async watermark(): Promise<WatermarkResult> {
    return { type: 'unsupported', reason: 'a Pulsar cluster is read back' };
  }

  async *readBack(
    segmentId: number,
    range: Parameters<RemoteTopic['readBack']>[1],
    signal: AbortSignal,
  ): AsyncGenerator<readonly StoredEntry[], void, undefined> {
    const { client, clock, waitingAfterMs, onWaiting, readSubscription } = this.settings;
    const topic = await topicToReadBack(this.topics, segmentId, range.through === 'end');
    // Several segments of the source are read back in one segment at the same time, by one process or by many.
    const subscription = `${readSubscription}.${randomUUID()}`;
    yield* readBack({ client, segmentId, topic, subscription, clock, waitingAfterMs, onWaiting }, range, signal);
  }

  close(): Promise<void> {
    return this.pin.close();
  }

  private noteClosing(key: string, closed: Promise<void>): void {
    this.closing.set(key, closed);
    void closed.finally(() => {
      if (this.closing.get(key) === closed) this.closing.delete(key);
    });
  }
}

/** Rejects for a segment that is not there, or that was to be read to its end and has none yet. */
async function topicToReadBack(topics: SegmentTopics, segmentId: number, toEnd: boolean): Promise<string> {
  if (toEnd && (await topics.load()).segments.get(segmentId)?.state === 'active') {
    throw new Error(`segment ${segmentId} is not sealed: it has no final end`);
  }
  const topic = await topics.of(segmentId);
  if (topic === undefined) throw new Error(`segment ${segmentId} is not in the layout`);
  return topic;
}

function checkNumbers(numbers: Readonly<Record<string, number>>, lowest: number): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (Number.isSafeInteger(value) && value >= lowest) continue;
    throw new IsthmusError('invalidArgument', `${name} ${show(value)}: an integer from ${lowest}`);
  }
}

/** Names that brokers keep for replication of their own, where they mean something else. */
function checkNames(names: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(names)) {
    if (value !== '' && !value.startsWith('pulsar.repl.')) continue;
    throw new IsthmusError('invalidArgument', `${name} ${show(value)}: not empty, and not one of pulsar.repl.*`);
  }
}
