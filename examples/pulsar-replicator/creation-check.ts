/** What would be created, and what stands in the way of that, found out by look-ups alone. */
import { PROVISIONING_REASONS, type ProvisioningDecision, splitPartitionName } from 'isthmus';
import { creationFanOut } from 'isthmus/drivers';
import type { Finding } from './check.js';
import type { Cluster } from './cluster.js';
import type { Config } from './config.js';
import { nameOf } from './creation.js';

/** Topics of the namespaces that are not on every cluster, as far as they can be listed. */
export async function incompleteTopics(
  { namespaces, directions }: Config,
  clusters: ReadonlyMap<string, Cluster>,
): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const namespace of namespaces) {
    const lists = await Promise.all(
      Array.from(clusters.values(), async ({ name, admin }) => {
        const listed = await admin.scalableTopics(namespace);
        return { name, topics: new Set(listed.type === 'ok' ? listed.value : []) };
      }),
    );
    const sources = lists.filter(({ name }) => directions.some(([from]) => from === name));
    for (const topic of sources.flatMap(({ topics }) => [...topics])) {
      if (!lists.every(({ topics }) => topics.has(topic))) found.add(topic.replace(/^topic:\/\//, ''));
    }
  }
  return [...found].sort();
}

/** Destinations on which these credentials may not create, which takes a tenant admin. */
export async function creationRights(
  { directions }: Config,
  clusters: ReadonlyMap<string, Cluster>,
  namespaces: Iterable<string>,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { name, admin } of clusters.values()) {
    if (!directions.some(([, to]) => to === name)) continue;
    for (const namespace of namespaces) {
      // Reading this takes the same right as creating a topic.
      const policies = await admin.namespacePolicies(namespace);
      if (policies.type !== 'unauthorized') continue;
      const [where, what] = [
        `namespace ${namespace} on cluster ${name}`,
        `topics may not be created: ${policies.reason}`,
      ];
      findings.push({ severity: 'fault', where, what, remedy: RIGHTS });
    }
  }
  return findings;
}

const RIGHTS = 'name a layoutToken of a tenant admin, or set createTopics to false';

/** Where a topic would be created, and where it cannot be; without a finding for a cluster that has it. */
export async function creationFindings(
  topic: string,
  { directions }: Config,
  clusters: ReadonlyMap<string, Cluster>,
  severity: Finding['severity'],
): Promise<readonly Finding[]> {
  if (splitPartitionName(topic) !== undefined) {
    const what = 'its name ends in a partition suffix, so it can be no scalable topic';
    return [{ severity, where: `topic ${topic}`, what, remedy: 'delete it, or give it another name' }];
  }
  const admins = new Map(Array.from(clusters, ([name, { topicAdmin }]) => [name, () => topicAdmin]));
  const results = await creationFanOut({ clusters: admins }, { topic: nameOf(topic), createOn: new Set() });
  const decisions = Array.from(results, ([cluster, { decision }]) => ({ cluster, decision }));
  if (decisions.every(({ decision }) => decision.reason === 'localMissing')) {
    const what = 'it does not exist on any cluster';
    return [
      { severity, where: `topic ${topic}`, what, remedy: 'create it on one of them, with a power of two of segments' },
    ];
  }
  return decisions.flatMap(({ cluster, decision }) => {
    const where = `topic ${topic} on cluster ${cluster}`;
    const isTarget = directions.some(([, to]) => to === cluster);
    if (decision.type === 'replicate') return [];
    if (decision.reason === 'topicMissing' && isTarget) {
      const what = `it would be created (${decision.message})`;
      return [{ severity: 'advice' as const, where, what, remedy: 'nothing: it is created when replication begins' }];
    }
    return [{ severity, where, what: `${decision.reason}: ${decision.message}`, remedy: remedyOf(decision) }];
  });
}

function remedyOf({ reason, message }: ProvisioningDecision): string {
  if (reason === 'remoteUnknown' && message.includes('unauthorized')) {
    return RIGHTS;
  }
  return PROVISIONING_REASONS[reason];
}
