/**
 * Two real clusters for provisioning: shapes of topics made by hand, orphans, mixed and half made ones too, and
 * administrations whose every request is noted down.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TopicAdmin, TopicName } from 'isthmus';
import { pulsarTopicAdmin } from 'isthmus/adapters/pulsar';
import { createProvisioner, type Provisioner, type ProvisionerOptions, systemClock } from 'isthmus/drivers';
import { ClusterAdmin } from '../../src/drivers/cluster-admin.js';
import { type ProvisioningPolicy, policyFromConfig, type TopicShape } from '../../src/provisioning/index.js';
import { IdleReplicator } from '../provisioning/turns.js';
import { type Cluster, type Clusters, openClusters } from './brokers.js';
import { RecordingProxy } from './provisioning-proxy.js';
import { rest } from './rest.js';

export const OFF = policyFromConfig({ createTopicToRemoteClusterForReplication: false });
export const ON = policyFromConfig({});

/** One cluster, and the way to it that is watched. */
export interface ProvisioningSide {
  readonly cluster: Cluster;
  readonly proxy: RecordingProxy;
  readonly admin: TopicAdmin;
}

/** Puts something of a topic, `tenant/namespace/name`, on a cluster. */
export type Make = (cluster: Cluster, topic: string) => Promise<unknown>;

export const nothing: Make = async () => undefined;

export const plain: Make = (cluster, topic) => rest(cluster, 'PUT', `persistent/${topic}`);

export function partitions(count: number): Make {
  return (cluster, topic) => rest(cluster, 'PUT', `persistent/${topic}/partitions`, count);
}

/** A record of `count`, without these partition topics. */
export function lacking(count: number, ...absent: readonly number[]): Make {
  return async (cluster, topic) => {
    await partitions(count)(cluster, topic);
    for (const index of absent) await rest(cluster, 'DELETE', `persistent/${topic}-partition-${index}?force=true`);
  };
}

/** A record of `count`, and partition topics beyond it, up to `all`: what a fan-out of 5.0.1 makes of a smaller remote. */
export function exceeding(count: number, all: number): Make {
  return async (cluster, topic) => {
    await partitions(count)(cluster, topic);
    await rest(cluster, 'PUT', `persistent/${topic}/partitions?createLocalTopicOnly=true`, all);
  };
}

/** The partition topics 1 to `last` without a record. */
export function orphans(last: number): Make {
  return async (cluster, topic) => {
    await exceeding(1, last + 1)(cluster, topic);
    await rest(cluster, 'DELETE', `persistent/${topic}/partitions?force=true`);
  };
}

/** Both kinds at once: now and then a broker says yes to both. */
export const mixed: Make = async (cluster, topic) => {
  for (let tries = 0; tries < 60; tries++) {
    const made = await Promise.allSettled([plain(cluster, topic), partitions(2)(cluster, topic)]);
    if (made.every(({ status }) => status === 'fulfilled')) return;
    const path = made[0]?.status === 'fulfilled' ? topic : `${topic}/partitions`;
    await rest(cluster, 'DELETE', `persistent/${path}?force=true`);
  }
  throw new Error('it never came out mixed');
};

export function scalable(segments: number): Make {
  return (cluster, topic) => rest(cluster, 'PUT', `scalable/${topic}?numInitialSegments=${segments}`, {});
}

/** A scalable topic of two segments without the first one. */
export const halfMade: Make = async (cluster, topic) => {
  await scalable(2)(cluster, topic);
  await rest(cluster, 'DELETE', `segments/${topic}/0000-7fff-0`);
};

export function together(...all: readonly Make[]): Make {
  return async (cluster, topic) => {
    for (const make of all) await make(cluster, topic);
  };
}

/** A namespace whose topics a broker leaves alone: none is deleted when idle, no segments are merged. */
export async function makeNamespace(cluster: Cluster, namespace: string): Promise<void> {
  await rest(cluster, 'PUT', `namespaces/${namespace}`);
  await rest(cluster, 'POST', `namespaces/${namespace}/scalableTopicAutoScalePolicy`, { enabled: false });
  await rest(cluster, 'POST', `namespaces/${namespace}/inactiveTopicPolicies`, {
    inactiveTopicDeleteMode: 'delete_when_no_subscriptions',
    maxInactiveDurationSeconds: 3_600,
    deleteWhileInactive: false,
  });
}

export class ProvisioningStage {
  private readonly running: Provisioner[] = [];
  private made = 0;

  private constructor(
    private readonly clusters: Clusters,
    readonly a: ProvisioningSide,
    readonly b: ProvisioningSide,
    readonly namespace: string,
  ) {}

  static async open(): Promise<ProvisioningStage> {
    const clusters = await openClusters(2, { shortChecks: true });
    const namespace = `public/provisioning-${Date.now().toString(36)}`;
    const sides = clusters.all.map(async (cluster) => {
      await makeNamespace(cluster, namespace);
      const proxy = await RecordingProxy.start(cluster.adminUrl);
      return { cluster, proxy, admin: pulsarTopicAdmin({ urls: [proxy.url] }) };
    });
    const [a, b] = (await Promise.all(sides)) as [ProvisioningSide, ProvisioningSide];
    return new ProvisioningStage(clusters, a, b, namespace);
  }

  /** A name that nothing has yet, with both sides made. */
  async topic(local: Make, remote: Make, namespace = this.namespace, suffix = ''): Promise<TopicName> {
    const [tenant = '', space = ''] = namespace.split('/');
    const topic = { tenant, namespace: space, name: `t${++this.made}${suffix}` };
    await Promise.all([local(this.a.cluster, pathOf(topic)), remote(this.b.cluster, pathOf(topic))]);
    return topic;
  }

  /** A provisioner that looks often, with a replicator that replicates nothing. */
  provision(
    topic: TopicName,
    policy: ProvisioningPolicy,
    {
      from = this.a,
      to = this.b,
      ...more
    }: { readonly from?: ProvisioningSide; readonly to?: ProvisioningSide } & Partial<ProvisionerOptions> = {},
  ): { readonly provisioner: Provisioner; readonly replicators: readonly IdleReplicator[] } {
    const replicators: IdleReplicator[] = [];
    const cluster = to.cluster.name;
    const provisioner = createProvisioner(
      {
        local: () => from.admin,
        remote: () => to.admin,
        replicator: (run) => {
          const replicator = new IdleReplicator(cluster, run);
          replicators.push(replicator);
          return replicator;
        },
      },
      { topic, cluster, policy, retryInitialMs: 50, retryMaxMs: 300, watchMs: 300, ...more },
    );
    this.running.push(provisioner);
    provisioner.start();
    return { provisioner, replicators };
  }

  async clear(): Promise<void> {
    await Promise.all(this.running.splice(0).map((provisioner) => provisioner.stop()));
  }

  async close(): Promise<void> {
    await this.clear();
    await Promise.all([this.a, this.b].map(({ proxy }) => proxy.stop()));
    await this.clusters.stop();
  }
}

export function pathOf({ tenant, namespace, name }: TopicName): string {
  return `${tenant}/${namespace}/${name}`;
}

/** The shape of a topic as the driver reads it. */
export function shapeOn(admin: TopicAdmin, topic: TopicName): Promise<TopicShape> {
  return new ClusterAdmin(() => admin, systemClock, 20_000).shape(topic, new AbortController().signal);
}

/** What a provisioner has decided last, `outcome reason`. */
export function decisionOf(provisioner: Provisioner): string {
  const { decision } = provisioner.status().provisioning;
  return decision === undefined ? '' : `${decision.outcome} ${decision.reason}`;
}

/** Waits until it has decided so, and has looked again and not changed its mind. */
export async function untilDecided(provisioner: Provisioner, wanted: string): Promise<void> {
  const reason = wanted.split(' ').at(-1) as keyof Looks;
  const looks = () => provisioner.status().provisioning.counters.decisions[reason] ?? 0;
  for (const endMs = Date.now() + 60_000; decisionOf(provisioner) !== wanted || looks() < 2; await sleep(20)) {
    if (Date.now() < endMs) continue;
    throw new Error(
      `${wanted} is awaited, and it is ${decisionOf(provisioner)}; ${provisioner.status().failure ?? ''}`,
    );
  }
}

type Looks = ReturnType<Provisioner['status']>['provisioning']['counters']['decisions'];
