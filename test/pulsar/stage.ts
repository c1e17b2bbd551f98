/** Two real clusters with Pulsar's own clients, shared by the scenarios of a file; each has a topic of its own. */
import { PulsarAdmin } from '../../src/adapters/pulsar/index.js';
import { type BrokerOptions, type Cluster, type Clusters, openClusters } from './brokers.js';
import { JavaClients, type JavaCluster } from './java-client.js';
import { ReplicatorProcess } from './replicator.js';
import { rest } from './rest.js';

/** The subscription of the consumer that compares. */
export const CHECK = 'check';

export interface Side {
  readonly broker: Cluster;
  readonly admin: PulsarAdmin;
  readonly java: JavaCluster;
}

export class Stage {
  private readonly replicators: ReplicatorProcess[] = [];

  private constructor(
    private readonly clusters: Clusters,
    readonly java: JavaClients,
    readonly a: Side,
    readonly b: Side,
  ) {}

  /** On brokers that are shared with other files, or on those that are given, which end with the stage. */
  static async open(given: Clusters | BrokerOptions = {}): Promise<Stage> {
    const clusters = 'all' in given ? given : await openClusters(2, given);
    const java = await JavaClients.start();
    const [a, b] = await Promise.all(
      clusters.all.map(async (broker) => ({
        broker,
        admin: new PulsarAdmin({ urls: [broker.adminUrl] }),
        java: await java.open(broker),
      })),
    );
    if (a === undefined || b === undefined) throw new Error('two clusters are needed');
    return new Stage(clusters, java, a, b);
  }

  /** Makes a topic on both clusters, `tenant/namespace/name`. */
  async topic(name: string, segments = 2, namespace = 'public/default'): Promise<string> {
    const topic = `${namespace}/${name}-${Date.now().toString(36)}`;
    for (const { broker, admin } of [this.a, this.b]) {
      expectOk(await admin.createScalable(topic, segments));
      await subscribeCheck(broker, topic);
    }
    return topic;
  }

  /** A replicator process for a topic, ended with the stage at the latest. */
  async replicate(
    topic: string,
    more: Readonly<Record<string, unknown>> = {},
    name = 'one',
  ): Promise<ReplicatorProcess> {
    const clusters = [this.a.broker, this.b.broker];
    // Processes of other topics on the same clusters are none of its own.
    const stateNamespace = `public/state-${topic.split('/').at(-1)}`;
    const settings = { clusters, topics: [topic], name, more: { stateNamespace, ...more } };
    const replicator = await ReplicatorProcess.start(settings);
    this.replicators.push(replicator);
    return replicator;
  }

  /** Ends what the last scenario has started. */
  async clear(): Promise<void> {
    await Promise.all(this.replicators.splice(0).map((replicator) => replicator.stop()));
  }

  async close(): Promise<void> {
    await this.clear();
    await this.java.stop();
    await this.clusters.stop();
  }
}

/**
 * Makes the subscription of the consumer that compares: what no subscription waits for is trimmed when a ledger ends. By
 * the admin REST: one that a consumer made holds no sealed segment back once that consumer is gone.
 */
export async function subscribeCheck(cluster: Cluster, topic: string): Promise<void> {
  await rest(cluster, 'PUT', `scalable/${topic}/subscriptions/${CHECK}?type=STREAM`);
}

/** The value of a call that must succeed. */
export function expectOk<T>(
  result: { readonly type: 'ok'; readonly value: T } | { readonly type: string; readonly reason?: string },
): T {
  if (result.type !== 'ok') throw new Error(`${result.type}: ${'reason' in result ? result.reason : ''}`);
  return (result as { readonly value: T }).value;
}
