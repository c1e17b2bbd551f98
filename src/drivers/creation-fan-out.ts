/**
 * Creates a scalable topic on every cluster of its replication set with the same first segments, so that the layouts
 * nest from the start. A broker fans nothing out by itself. Several clusters may do this at once, and it may be repeated.
 */
import { IsthmusError, show } from '../errors.js';
import type { Clock, TopicAdmin, TopicName } from '../ports/index.js';
import {
  decideProvisioning,
  equalSegmentStarts,
  type ProvisioningDecision,
  policyFromConfig,
  splitPartitionName,
  type TopicShape,
} from '../provisioning/index.js';
import { systemClock } from './clock.js';
import { answerOf, ClusterAdmin, type ConnectAdmin, performCreation } from './cluster-admin.js';

export interface CreationFanOutPorts {
  /** Every cluster of the replication set by its name, the own one included. */
  readonly clusters: ReadonlyMap<string, ConnectAdmin<TopicAdmin>>;
  /** Default: the clock of this process. */
  readonly clock?: Clock;
}

export interface CreationFanOutOptions {
  readonly topic: TopicName;
  /**
   * A power of two in 1..1024. Where the topic exists on some cluster, the others get its present segments instead;
   * without a number it is created only then, so that a topic that has just been deleted does not come back.
   */
  readonly segments?: number;
  /** The clusters where it may be created; default: all. With none, the result says what would be created. */
  readonly createOn?: ReadonlySet<string>;
  /** How long one look, or one creating call, may take in milliseconds; default 30,000. */
  readonly callLimitMs?: number;
  readonly signal?: AbortSignal;
}

/** What there is on one cluster now, as read after whatever was done. */
export interface FanOutResult {
  /**
   * `replicate`: the topic is there, with these segments (`sameShape`) or with others that convergence will bring
   * together (`layoutsDiffer`). Everything else is not done, and the reason says why; half made topics are not deleted.
   */
  readonly decision: ProvisioningDecision;
  /** What a creating call was answered, where one was made: no proof of having created. */
  readonly answer?: string;
}

/**
 * Creates a scalable topic where it is missing. Namespaces are never created, and nothing is created beside a classic
 * topic of the name. Throws `invalidArgument`, before any call, for a count that is no power of two in 1..1024 and for a
 * name that ends in a partition suffix; rejects later only when the signal aborts.
 */
export async function creationFanOut(
  { clusters, clock = systemClock }: CreationFanOutPorts,
  options: CreationFanOutOptions,
): Promise<ReadonlyMap<string, FanOutResult>> {
  const { topic, segments, createOn, callLimitMs = 30_000, signal = new AbortController().signal } = options;
  const wanted = segments === undefined ? undefined : equalSegmentStarts(segments);
  if (splitPartitionName(topic.name) !== undefined) {
    throw new IsthmusError('invalidArgument', `${show(topic.name)} ends in a partition suffix: no scalable topic may`);
  }
  const looks = await Promise.all(
    Array.from(clusters, async ([cluster, connect]) => {
      const admin = new ClusterAdmin(connect, clock, callLimitMs);
      return { cluster, admin, shape: await admin.shape(topic, signal) };
    }),
  );
  const starts = presentStarts(looks) ?? wanted;
  const local: TopicShape = starts === undefined ? { type: 'missing' } : { type: 'scalable', starts };
  const results = looks.map(async ({ cluster, admin, shape }): Promise<[string, FanOutResult]> => {
    const decision = decide(local, shape, createOn?.has(cluster) ?? true);
    if (decision.type !== 'create') return [cluster, { decision }];
    const answer = await admin.use(
      signal,
      async (client, limited) => answerOf(await performCreation(client, topic, decision.creation, limited)),
      ({ failure, reason }) => `${failure}: ${reason}`,
    );
    return [cluster, { decision: decide(local, await admin.shape(topic, signal), true), answer }];
  });
  return new Map(await Promise.all(results));
}

function decide(local: TopicShape, remote: TopicShape, createTopicToRemoteCluster: boolean): ProvisioningDecision {
  const policy = { ...POLICY, createTopicToRemoteCluster };
  return decideProvisioning({ local, remote, policy, phase: 'waiting' });
}

const POLICY = policyFromConfig({});

/** The segments of the first cluster by name that has the topic: whoever looks at the same clusters takes the same. */
function presentStarts(
  looks: readonly { readonly cluster: string; readonly shape: TopicShape }[],
): readonly number[] | undefined {
  const inOrder = [...looks].sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  return inOrder.flatMap(({ shape }) => (shape.type === 'scalable' ? [shape.starts] : [])).at(0);
}
