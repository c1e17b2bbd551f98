/**
 * What the tests of the remote have beside it on a real broker: fresh topics, the admin calls that change them, a
 * reader that knows nothing of read-backs, and a wire between client and broker that can be cut.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Layout,
  type LayoutReader,
  parseEntry,
  parseLayout,
  type RemoteProducer,
  type RemoteTopic,
  type SendResult,
  type SourcePosition,
} from 'isthmus';
import { createPulsarClient, type EntryPosition, type PulsarClient } from '../../src/adapters/pulsar/protocol/index.js';
import { type PulsarRemote, type PulsarRemoteOptions, pulsarRemote } from '../../src/adapters/pulsar/remote/index.js';
import { lastPositionOf } from '../../src/adapters/pulsar/source/hold.js';
import { comparePositions } from '../../src/dedup/index.js';
import type { Cluster } from './brokers.js';
import { rest } from './rest.js';

/** The source cluster that the tests replicate from. */
export const SOURCE = 's';

/** A way to a broker that passes everything on, until it is cut. */
export interface Wire {
  readonly serviceUrl: string;
  /** Cuts all connections at once; new ones pass. */
  cut(): void;
  close(): void;
}

export async function layWire(serviceUrl: string): Promise<Wire> {
  const { hostname, port } = new URL(serviceUrl);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [from, to] of [[near, far] as const, [far, near] as const]) {
      sockets.add(from);
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    serviceUrl: `pulsar://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    close() {
      cut();
      server.close();
    },
  };
}

/** A scalable topic on a cluster, with nothing stored. */
export class Topic {
  private static made = 0;
  readonly path: string;

  private constructor(
    private readonly cluster: Cluster,
    readonly namespace: string,
    name: string,
  ) {
    this.path = `${namespace}/${name}`;
  }

  /** In a namespace of this process's own by default, which it may unload without disturbing others. */
  static async create(cluster: Cluster, segments = 2, namespace?: string): Promise<Topic> {
    if (namespace === undefined) {
      namespace = `public/process-${process.pid}`;
      await rest(cluster, 'PUT', `namespaces/${namespace}`).catch((error: unknown) => {
        if (!/: 409 /.test(String(error))) throw error;
      });
    }
    const name = `remote-${process.pid}-${Date.now().toString(36)}-${Topic.made++}`;
    const topic = new Topic(cluster, namespace, name);
    await topic.call('PUT', `?numInitialSegments=${segments}`);
    await topic.call('POST', '/autoScalePolicy', { enabled: false });
    return topic;
  }

  /** One that is there, by `tenant/namespace/name`. */
  static existing(cluster: Cluster, path: string): Topic {
    const at = path.lastIndexOf('/');
    return new Topic(cluster, path.slice(0, at), path.slice(at + 1));
  }

  get name(): string {
    return `topic://${this.path}`;
  }

  async load(): Promise<Layout> {
    return parseLayout(await this.call('GET', ''));
  }

  readonly layouts: LayoutReader = {
    load: () => this.load(),
    watch: (signal) => this.watch(signal),
  };

  private async *watch(signal: AbortSignal): AsyncGenerator<Layout, void, undefined> {
    let epoch = -1;
    while (!signal.aborted) {
      const layout = await this.load();
      if (layout.epoch > epoch) yield layout;
      epoch = Math.max(epoch, layout.epoch);
      await sleep(20, undefined, { signal }).catch(() => undefined);
    }
  }

  split(segmentId: number): Promise<unknown> {
    return this.call('POST', `/split/${segmentId}`);
  }

  async ensurePin(subscription: string): Promise<{ readonly type: 'ensured' }> {
    await this.call('PUT', `/subscriptions/${encodeURIComponent(subscription)}?type=QUEUE`);
    return { type: 'ensured' };
  }

  async segmentTopic(segmentId: number): Promise<string> {
    const { range } = (await this.load()).segments.get(segmentId) as { range: { start: number; end: number } };
    const hex = (hash: number) => hash.toString(16).padStart(4, '0');
    return `segment://${this.path}/${hex(range.start)}-${hex(range.end)}-${segmentId}`;
  }

  call(method: string, below: string, body?: unknown): Promise<unknown> {
    return rest(this.cluster, method, `scalable/${this.path}${below}`, body);
  }
}

/** A client and remotes that are put away together. */
export class Stage {
  private readonly ends: (() => unknown)[] = [];

  constructor(readonly cluster: Cluster) {}

  async wire(): Promise<Wire> {
    const wire = await layWire(this.cluster.serviceUrl);
    this.ends.push(() => wire.close());
    return wire;
  }

  client(serviceUrl = this.cluster.serviceUrl): PulsarClient {
    const client = createPulsarClient({ serviceUrls: [serviceUrl] });
    this.ends.push(() => client.close());
    return client;
  }

  remote(topic: Topic, client: PulsarClient, options: Partial<PulsarRemoteOptions> = {}): PulsarRemote {
    const remote = pulsarRemote({
      client,
      cluster: this.cluster.name,
      sourceCluster: SOURCE,
      topic: topic.name,
      layouts: topic.layouts,
      ensurePin: (subscription) => topic.ensurePin(subscription),
      ...options,
    });
    this.ends.push(() => remote.close());
    return remote;
  }

  async end(): Promise<void> {
    for (const end of this.ends.splice(0).reverse()) await end();
  }
}

/** Waits in real time for what comes about by itself, half a minute at most. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    if (tries > 1_500) throw new Error('it did not come about');
    await sleep(20);
  }
}

/** The lane of a source segment, 5, with its results. Opens until it is granted: a name may take a while to come free. */
export async function openLane(
  remote: RemoteTopic,
  segmentId: number,
): Promise<{ readonly producer: RemoteProducer; readonly results: readonly SendResult[] }> {
  const results: SendResult[] = [];
  for (let tries = 0; ; tries++) {
    const opened = await remote.open(5, segmentId, (result) => results.push(result));
    if (opened.type === 'opened') return { producer: opened.producer, results };
    if (tries === 300) throw new Error(`the producer is not granted: ${opened.type}: ${opened.reason}`);
    await sleep(50);
  }
}

/** The entries that a consumer of a segment gets, in order, until its cursor is at the end that the segment has now. */
export async function consumed(client: PulsarClient, segmentTopic: string): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = [];
  let at: EntryPosition | undefined;
  const end = await lastPositionOf(client, segmentTopic, 'check-end');
  const subscription = `check-${Math.random().toString(36).slice(2)}`;
  const subscribed = await client.subscribe(
    { topic: segmentTopic, subscription, durable: false, from: { ledgerId: 0n, entryId: 0n } },
    {
      onEntry: ({ bytes, ledgerId, entryId }) => {
        entries.push(bytes);
        at = { ledgerId, entryId };
      },
      onClosed: () => undefined,
    },
  );
  if (subscribed.type !== 'subscribed') throw new Error(`cannot read ${segmentTopic}: ${JSON.stringify(subscribed)}`);
  const { consumer } = subscribed;
  consumer.flow(1_000_000);
  await until(async () => {
    if (at !== undefined) consumer.ack('cumulative', [at]);
    const answer = await consumer.lastMessageId();
    if (answer.type !== 'answered') throw new Error(`${segmentTopic}: ${JSON.stringify(answer)}`);
    // Before the first entry of a ledger there is nothing to stand at: then what is called the last one is.
    const last = end.entryId < 0n ? (answer.last ?? end) : end;
    return answer.markDelete !== undefined && comparePositions(answer.markDelete, last) >= 0;
  });
  await consumer.close();
  return entries;
}

/** The source positions of what is stored in a segment, by reading it back. */
export async function readBack(remote: PulsarRemote, segmentId: number, through: SourcePosition | 'end') {
  const positions: (string | undefined)[] = [];
  const range = { after: undefined, through };
  for await (const piece of remote.readBack(segmentId, range, new AbortController().signal)) {
    positions.push(...piece.map(({ bytes }) => parseEntry(bytes).metadata.sourcePosition));
  }
  return positions;
}
