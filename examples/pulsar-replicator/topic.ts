/**
 * One topic between two clusters: a replicator for each direction, whose segments all processes share, and while this
 * process leads, a controller for each cluster that brings the layouts together.
 */
import type { Codecs } from 'isthmus';
import { MemoryPeers } from 'isthmus/adapters/memory';
import {
  adminPin,
  adminSubscriptions,
  PulsarLayouts,
  type PulsarRemote,
  type PulsarSource,
  pulsarHost,
  pulsarRemote,
  pulsarSource,
  SegmentTopics,
  schemaTranslator,
  stopAutomaticMerges,
} from 'isthmus/adapters/pulsar';
import {
  createExchangeHandler,
  createLayoutController,
  createReplicator,
  type LayoutController,
  type RemoteRate,
  type Replicator,
  type SlowPath,
} from 'isthmus/drivers';
import type { Cluster } from './cluster.js';
import type { Config } from './config.js';
import type { TopicView } from './status/index.js';

/** What all topics of the process share. */
export interface Shared {
  readonly config: Config;
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly codecs: Codecs;
  readonly slowPath: SlowPath;
  /** By the cluster that is written to. */
  readonly rates: ReadonlyMap<string, RemoteRate>;
  /** Something for the operator, once. */
  say(text: string): void;
}

/** From one cluster to the other. */
interface Direction {
  readonly from: string;
  readonly replicator: Replicator;
  readonly source: PulsarSource;
  readonly remote: PulsarRemote;
}

interface Led {
  readonly controller: LayoutController;
  readonly term: number;
}

/** The broker's own limit on automatic splits; operators may go further by hand. */
const CAPS = { maxSegments: 64, maxEntryBucketsPerSegment: 1_024 };

export class ReplicatedTopic {
  private readonly layouts = new Map<string, PulsarLayouts>();
  private readonly directions: Direction[] = [];
  private readonly led = new Map<string, Led>();
  private readonly failures = new Map<string, string>();

  constructor(
    /** `tenant/namespace/name`. */
    readonly name: string,
    private readonly shared: Shared,
  ) {
    for (const [cluster, { client }] of shared.clusters) {
      this.layouts.set(cluster, new PulsarLayouts({ client, topic: this.topic }));
    }
  }

  private get topic(): string {
    return `topic://${this.name}`;
  }

  start(): void {
    for (const [from, to] of this.shared.config.directions) this.directions.push(this.direct(from, to));
    for (const { from, replicator } of this.directions) {
      replicator.start();
      void this.report(from, replicator);
    }
  }

  private direct(from: string, to: string): Direction {
    const { config, codecs, slowPath, rates } = this.shared;
    const { topic, name } = this;
    const [a, b] = [this.cluster(from), this.cluster(to)];
    const prefix = config.subscriptionPrefix;
    const stored = { topic: name, remote: `${from}>${to}` };
    const source = pulsarSource({
      client: a.client,
      cluster: from,
      topic,
      subscription: `${prefix}.${to}`,
      subscriptions: adminSubscriptions(a.admin, topic),
      layouts: this.layout(from),
      members: b.state.join(stored),
      startAt: config.startAt,
      onRefused: (segmentId, reason) => this.failures.set(from, `segment ${segmentId}: ${reason}`),
    });
    const remote = pulsarRemote({
      client: b.client,
      cluster: to,
      sourceCluster: from,
      topic,
      layouts: this.layout(to),
      ensurePin: adminPin(b.admin, topic),
      pinSubscription: `${prefix}.pin.${from}`,
      readSubscription: `${prefix}.read.${from}`,
      onWaiting: ({ reason }) => this.shared.say(`${name} ${from} -> ${to}: ${reason}`),
    });
    const rate = rates.get(to);
    const replicator = createReplicator(
      {
        source,
        remote,
        cursors: b.state.cursors(stored),
        schemas: schemaTranslator({ client: a.client, topic }, { client: b.client, topic: () => this.anySegment(to) }),
        slowPath,
        ...(rate === undefined ? {} : { rate }),
      },
      { codecs, name: `${name} ${from} -> ${to}` },
    );
    return { from, replicator, source, remote };
  }

  /** A segment that takes writes. */
  private async anySegment(cluster: string): Promise<string> {
    const topics = new SegmentTopics(this.topic, this.layout(cluster));
    const [segment] = (await topics.load()).active;
    const topic = segment === undefined ? undefined : await topics.of(segment.segmentId);
    if (topic === undefined) throw new Error(`${this.name} has no segment on ${cluster}`);
    return topic;
  }

  /** What happens that an operator should read once; the rest is in the status. */
  private async report(from: string, replicator: Replicator): Promise<void> {
    const to = replicator.status().remote;
    for await (const event of replicator) {
      const where = `${this.name} ${from} -> ${to}, segment ${event.segmentId}`;
      if (event.type === 'held') this.shared.say(`${where}: held: ${event.message}`);
      if (event.type === 'stoppedBy') this.shared.say(`${where}: stopped: ${event.message}`);
      if (event.type === 'lostAtSource')
        this.shared.say(`${where}: the source let entries go before they were replicated`);
      if (event.type === 'failed') this.shared.say(`${where}: failed: ${String(event.error)}`);
    }
  }

  /** This process leads now: it brings the layouts together. Terms by cluster. */
  async lead(terms: ReadonlyMap<string, number>): Promise<void> {
    const peers = new MemoryPeers();
    for (const [cluster, term] of terms) {
      const { admin } = this.cluster(cluster);
      const merges = await stopAutomaticMerges(admin, this.topic);
      if (merges.type === 'ok') this.failures.delete(cluster);
      else this.failures.set(cluster, `the cluster may merge segments by itself: ${merges.reason}`);
      const channel = peers.channel(cluster);
      const host = pulsarHost({ admin, layouts: this.layout(cluster), topic: this.topic });
      const controller = createLayoutController(
        { host, channel },
        { cluster, topic: this.name, members: [...terms.keys()], caps: CAPS, term },
      );
      peers.connect(
        cluster,
        createExchangeHandler((topic) => (topic === this.name ? controller : undefined)),
      );
      this.led.set(cluster, { controller, term });
    }
    await Promise.all(Array.from(this.led.values(), ({ controller }) => controller.start()));
  }

  async unlead(): Promise<void> {
    const controllers = Array.from(this.led.values(), ({ controller }) => controller);
    this.led.clear();
    await Promise.all(controllers.map((controller) => controller.stop()));
  }

  /** Settles what is in flight, and gives everything back to the other processes. */
  async stop(): Promise<void> {
    await this.unlead();
    await Promise.all(
      this.directions.map(async ({ replicator, source, remote }) => {
        await replicator.stop();
        await Promise.all([source.close(), remote.close()]);
      }),
    );
    for (const layouts of this.layouts.values()) await layouts.close();
  }

  replicators(): readonly Replicator[] {
    return this.directions.map(({ replicator }) => replicator);
  }

  controllers(): readonly LayoutController[] {
    return Array.from(this.led.values(), ({ controller }) => controller);
  }

  view(): TopicView {
    const [a, b] = Array.from(this.layouts, ([cluster, layouts]) => {
      const led = this.led.get(cluster);
      const layout = layouts.latest;
      const controller = led?.controller.status();
      const failure = this.failures.get(cluster) ?? layouts.trouble;
      return {
        cluster,
        ...(layout === undefined ? {} : { layout }),
        ...(led === undefined ? {} : { term: led.term }),
        ...(controller === undefined ? {} : { controller }),
        ...(failure === undefined ? {} : { failure }),
      };
    });
    if (a === undefined || b === undefined) throw new Error('a topic lies on two clusters');
    const directions = this.directions.map(({ from, replicator }) => ({ from, status: replicator.status() }));
    return { topic: this.topic, clusters: [a, b], directions };
  }

  private cluster(name: string): Cluster {
    const cluster = this.shared.clusters.get(name);
    if (cluster === undefined) throw new Error(`there is no cluster ${name}`);
    return cluster;
  }

  private layout(cluster: string): PulsarLayouts {
    const layouts = this.layouts.get(cluster);
    if (layouts === undefined) throw new Error(`there is no cluster ${cluster}`);
    return layouts;
  }
}
