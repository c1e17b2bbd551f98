/**
 * Pulsar's own Java clients, in one process for all clusters of a test: producers and consumers of scalable topics,
 * and comparisons of what they have sent and read. Large amounts stay on the Java side, in tallies with a name.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { SOURCE_POSITION_PROPERTY } from '../../src/entry/index.js';
import type { Cluster } from './brokers.js';
import { javaTools } from './java.js';

export type Compression = 'none' | 'lz4' | 'zlib' | 'zstd' | 'snappy';

/** `json` is `{text: string, number: int}`; `jsonWider` has a text `more` in addition; `jsonOther` does not fit. */
export type ValueSchema = 'bytes' | 'string' | 'json' | 'jsonWider' | 'jsonOther';

export interface ProducerSettings {
  /** What consumers see is this and `-seg-<segment id>`. Absent: the broker makes one up. */
  readonly producerName?: string;
  /** Default `bytes`. */
  readonly schema?: ValueSchema;
  readonly compression?: Compression;
  /** Default true, and false with `chunkBytes`. */
  readonly batching?: boolean;
  readonly batchMessages?: number;
  readonly batchDelayMs?: number;
  /** Cuts larger messages into chunks of this size. */
  readonly chunkBytes?: number;
  readonly encryption?: { readonly name: string; readonly publicKeyFile: string };
}

/** One message: with neither `text` nor `hex` its value is null. */
export interface MessageSpec {
  readonly key?: string;
  /** The value as text; JSON for a JSON schema. */
  readonly text?: string;
  /** The value as bytes. */
  readonly hex?: string;
  readonly properties?: Readonly<Record<string, string>>;
  readonly eventTimeMs?: number;
  readonly deliverAfterMs?: number;
  readonly deliverAtMs?: number;
  readonly sequence?: number;
  readonly transaction?: JavaTransaction;
}

/** Messages of bytes, made on the Java side: the same for the same settings. */
export interface GenerateSettings {
  readonly count: number;
  readonly seed: number;
  /** Begins every value, followed by a number, so that no two are equal; default `s<seed>`. */
  readonly name?: string;
  /** How many keys there are, default 100, and what their names begin with, default `k`. */
  readonly keys?: number;
  readonly keyPrefix?: string;
  readonly unkeyedPercent?: number;
  /** Sizes of values; default 20 and 200. */
  readonly minBytes?: number;
  readonly maxBytes?: number;
  /** Default true: a value can be compressed to a fourth. */
  readonly compressible?: boolean;
  /** Absent: as quickly as the brokers take them. */
  readonly ratePerSecond?: number;
  /** Where the stored ones are noted down. */
  readonly tally?: string;
}

export interface Generated {
  readonly stored: number;
  readonly failed: number;
  /** The first failure, empty when there is none. */
  readonly error: string;
  readonly ms: number;
}

export interface ConsumerSettings {
  /** What values are read as; `auto` is what the message's schema version says, told in `fields`. Default `bytes`. */
  readonly schema?: ValueSchema | 'auto';
  readonly encryption?: { readonly name: string; readonly privateKeyFile: string };
}

export interface ReadSettings {
  /** Ends when there are so many. */
  readonly count?: number;
  /**
   * Ends when nothing has come for so long; default 5,000, and 60,000 with `count`: a stream consumer is silent for
   * seconds at each sealed segment that it has to get past.
   */
  readonly quietMs?: number;
  /** Where what is read is noted down; then `messages` is empty unless `show` is true. */
  readonly tally?: string;
  readonly show?: boolean;
  /** Default true. */
  readonly acknowledge?: boolean;
}

export interface ReadMessage {
  readonly key?: string;
  /** These three are absent for a null value, and `hex` for one of more than 256 bytes. */
  readonly bytes?: number;
  readonly hash?: string;
  readonly hex?: string;
  /** With schema `auto`. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly properties: Readonly<Record<string, string>>;
  readonly producerName?: string;
  readonly sequenceId: number;
  readonly eventTimeMs?: number;
  readonly publishTimeMs: number;
  readonly replicatedFrom?: string;
  readonly redeliveries: number;
  /** In hex. */
  readonly schemaVersion?: string;
  readonly segmentId: number;
  /** `ledger:entry`, and `:index` in a batch. */
  readonly at: string;
}

export interface Read {
  /** How many different messages there were. */
  readonly count: number;
  /** How many of them came again; they are in nothing else. */
  readonly redelivered: number;
  readonly messages: readonly ReadMessage[];
}

/** What two tallies have in common; all zero from `missing` on when they are equal and in the same order. */
export interface Comparison {
  readonly left: number;
  readonly right: number;
  /** In the left one and not in the right one. */
  readonly missing: number;
  readonly extra: number;
  readonly duplicatesLeft: number;
  readonly duplicatesRight: number;
  /** Keys, of one origin, whose messages come in another order. */
  readonly orderBreaks: number;
  /** A few of each, for whoever has to find out. */
  readonly examples: Readonly<Record<'missing' | 'extra' | 'orderBreaks', readonly string[]>>;
}

export interface TallySummary {
  readonly count: number;
  /** By content. */
  readonly distinct: number;
  readonly keys: number;
  /** How many come from which cluster. */
  readonly origins: Readonly<Record<string, number>>;
}

/** One entry as it is stored. */
export interface RawEntry {
  readonly ledgerId: number;
  readonly entryId: number;
  readonly bytes: number;
  /** Of all its bytes. */
  readonly hash: string;
  /** Of what a replicator must not change: all but the checksum, `replicated_from` and the source position. */
  readonly content: string;
  readonly messages: number;
  readonly producerName: string;
  readonly sequenceId: number;
  readonly replicatedFrom?: string;
  /** The source position, where there is one. */
  readonly ignoredProperties: Readonly<Record<string, string>>;
  /** With `show`. */
  readonly hex?: string;
}

type Call = Readonly<Record<string, unknown>>;

/** What a replicator adds and a comparison leaves out. */
const IGNORED_PROPERTIES = [SOURCE_POSITION_PROPERTY];

/** The Java process. */
export class JavaClients {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  readonly #log: string[] = [];
  #calls = 0;
  #names = 0;

  private constructor(process: ChildProcessWithoutNullStreams) {
    this.#process = process;
    createInterface(process.stdout).on('line', (line) => this.#answered(line));
    createInterface(process.stderr).on('line', (line) => {
      this.#log.push(line);
      if (this.#log.length > 200) this.#log.shift();
    });
    process.stdin.on('error', () => undefined);
    process.once('close', () => {
      const error = new Error(`the Java clients have ended; what they said last:\n${this.logTail()}`);
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
  }

  static async start(): Promise<JavaClients> {
    const { java, clientPath, options } = await javaTools();
    const memory = ['-Xmx1g', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
    return new JavaClients(spawn(java, [...memory, ...options, '-cp', clientPath, 'isthmus.pulsar.Main']));
  }

  /** The last lines of what it has logged. */
  logTail(lines = 40): string {
    return this.#log.slice(-lines).join('\n');
  }

  /**
   * Clients of a cluster, known by its name in comparisons. A secure cluster needs a role. A transaction that is not
   * ended in `transactionTimeoutMs` is aborted by the broker.
   */
  async open(
    cluster: Cluster,
    { role, transactionTimeoutMs }: { readonly role?: string; readonly transactionTimeoutMs?: number } = {},
  ): Promise<JavaCluster> {
    const { name: client, secure } = cluster;
    const token = role === undefined ? undefined : secure?.token(role);
    // Not by TLS: stream consumers of 5.0.1 connect to the plain address of the controller, whatever they are told.
    const serviceUrl = secure?.plainServiceUrl ?? cluster.serviceUrl;
    await this.call('open', { client, serviceUrl, token, transactionTimeoutMs });
    return new JavaCluster(this, client);
  }

  /**
   * Compares two tallies: by content, and as whole messages (producer, sequence id and publish time too) where both were
   * read.
   */
  compare(left: string, right: string, { asWhole = false } = {}): Promise<Comparison> {
    return this.call('compare', { left, right, asWhole });
  }

  tally(tally: string): Promise<TallySummary> {
    return this.call('tally', { tally });
  }

  forget(tally: string): Promise<void> {
    return this.call('forget', { tally });
  }

  /** Ends the process, whatever it is doing. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'close');
    this.#process.stdin.end();
    await ended;
  }

  /** @internal */
  nextName(kind: string): string {
    this.#names++;
    return `${kind}-${this.#names}`;
  }

  /** @internal Rejects with what the Java side says. */
  call<T>(what: string, args: Call): Promise<T> {
    this.#calls++;
    const id = this.#calls;
    return new Promise<T>((resolve, reject) => {
      if (!this.#process.stdin.writable) return reject(new Error('the Java clients have ended'));
      this.#waiting.set(id, { resolve: (result) => resolve(result as T), reject });
      this.#process.stdin.write(`${JSON.stringify({ ...args, id, do: what })}\n`);
    });
  }

  #answered(line: string): void {
    const answer = JSON.parse(line) as { id: number; result?: unknown; error?: string; type?: string };
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.error === undefined) waiting?.resolve(answer.result);
    else waiting?.reject(new Error(`${answer.type}: ${answer.error}`));
  }
}

/** The clients of one cluster. */
export class JavaCluster {
  constructor(
    private readonly clients: JavaClients,
    readonly name: string,
  ) {}

  /** `topic` is `topic://tenant/namespace/name`. */
  async producer(topic: string, settings: ProducerSettings = {}): Promise<JavaProducer> {
    const producer = this.clients.nextName('producer');
    await this.clients.call('producer', { ...settings, client: this.name, producer, topic });
    return new JavaProducer(this.clients, producer);
  }

  /** Keeps the order of each key, across splits and merges too. */
  streamConsumer(topic: string, subscription: string, settings: ConsumerSettings = {}): Promise<JavaConsumer> {
    return this.#consumer('stream', topic, subscription, settings);
  }

  /** Reads all segments at once; keeps no order across a split or merge. */
  queueConsumer(topic: string, subscription: string, settings: ConsumerSettings = {}): Promise<JavaConsumer> {
    return this.#consumer('queue', topic, subscription, settings);
  }

  async #consumer(kind: string, topic: string, subscription: string, settings: ConsumerSettings) {
    const consumer = this.clients.nextName('consumer');
    await this.clients.call('consumer', { ...settings, client: this.name, consumer, kind, topic, subscription });
    return new JavaConsumer(this.clients, consumer);
  }

  /** Begins a transaction; it stays open until it is ended, or its time is over. */
  async begin(): Promise<JavaTransaction> {
    const name = this.clients.nextName('transaction');
    await this.clients.call('begin', { client: this.name, transaction: name });
    return new JavaTransaction(this.clients, name);
  }

  /** The entries of a segment (`segment://...`) or an ordinary topic. The default ends after 2 s without another. */
  async raw(
    topic: string,
    options: { readonly count?: number; readonly quietMs?: number; readonly show?: boolean } = {},
  ): Promise<readonly RawEntry[]> {
    const call = { ...options, client: this.name, topic, ignoredProperties: IGNORED_PROPERTIES };
    const { entries } = await this.clients.call<{ entries: readonly RawEntry[] }>('raw', call);
    return entries;
  }

  /** Sends texts to an ordinary topic as clients before 5.0 do, after making a subscription where one is named. */
  classicSend(
    topic: string,
    options: { readonly count: number; readonly keys?: number; readonly subscription?: string },
  ): Promise<void> {
    return this.clients.call('classicSend', { ...options, client: this.name, topic });
  }

  /** Ends all that is open, at once: an open transaction is left to its time limit. */
  close(): Promise<void> {
    return this.clients.call('close', { client: this.name });
  }
}

export class JavaProducer {
  constructor(
    private readonly clients: JavaClients,
    private readonly handle: string,
  ) {}

  /** Sends in this order, and resolves with where they are stored when all are (for those of a transaction too). */
  async send(messages: readonly MessageSpec[]): Promise<readonly string[]> {
    const specs = messages.map((spec) => ({ ...spec, transaction: spec.transaction?.name }));
    const { at } = await this.clients.call<{ at: readonly string[] }>('send', {
      producer: this.handle,
      messages: specs,
    });
    return at;
  }

  /** Sends many; resolves when all are answered. Needs schema `bytes`. */
  generate(settings: GenerateSettings): Promise<Generated> {
    return this.clients.call('generate', { ...settings, producer: this.handle });
  }

  flush(): Promise<void> {
    return this.clients.call('flush', { producer: this.handle });
  }

  close(): Promise<void> {
    return this.clients.call('closeProducer', { producer: this.handle });
  }
}

export class JavaConsumer {
  constructor(
    private readonly clients: JavaClients,
    private readonly handle: string,
  ) {}

  read(settings: ReadSettings = {}): Promise<Read> {
    const quietMs = settings.count === undefined ? 5_000 : 60_000;
    const call = { quietMs, ...settings, consumer: this.handle, ignoredProperties: IGNORED_PROPERTIES };
    return this.clients.call('read', call);
  }

  close(): Promise<void> {
    return this.clients.call('closeConsumer', { consumer: this.handle });
  }
}

export class JavaTransaction {
  constructor(
    private readonly clients: JavaClients,
    readonly name: string,
  ) {}

  commit(): Promise<void> {
    return this.clients.call('commit', { transaction: this.name });
  }

  abort(): Promise<void> {
    return this.clients.call('abort', { transaction: this.name });
  }
}
