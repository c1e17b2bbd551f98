/**
 * Whether replication can work, found out without changing anything on either cluster. Every finding names the thing, what
 * is wrong with it, and what to do about it. The program checks the same before it begins.
 */
import { joinShapes, type Layout, planOperations, shapeOf } from 'isthmus';
import { type NamespaceLimits, namespaceLimits, prepareState } from 'isthmus/adapters/pulsar';
import type { Cluster } from './cluster.js';
import type { Config } from './config.js';
import { creationFindings, creationRights, incompleteTopics } from './creation-check.js';

export interface Finding {
  /** `fault`: replication does not begin. `advice`: it does, and this should be known. */
  readonly severity: 'fault' | 'advice';
  readonly where: string;
  readonly what: string;
  readonly remedy: string;
}

type Report = (finding: Finding) => void;

/** What 5.0.1's own layout operations can do. */
const CAPABILITIES = { explicitBoundary: false, unequalBuckets: false, maxBuckets: 1_024 };

export async function check(config: Config, clusters: ReadonlyMap<string, Cluster>): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const report = (finding: Finding) => findings.push(finding);
  const reached = await Promise.all([...clusters.values()].map((cluster) => checkCluster(cluster, config, report)));
  if (reached.includes(false)) return findings;
  for (const topic of config.topics) await checkTopic(topic, config, clusters, report);
  if (config.createTopics) {
    for (const finding of await creationRights(config, clusters, namespacesOf(config))) report(finding);
    for (const topic of await incompleteTopics(config, clusters)) {
      for (const finding of await creationFindings(topic, config, clusters, 'advice')) report(finding);
    }
  }
  for (const cluster of clusters.values()) {
    for (const namespace of namespacesOf(config)) await checkNamespace(cluster, namespace, config, report);
  }
  return findings;
}

/** True when both its brokers and its admin REST answer. */
async function checkCluster(cluster: Cluster, config: Config, report: Report): Promise<boolean> {
  const { name, client, admin, config: settings } = cluster;
  const fault = (where: string, what: string, remedy: string) => report({ severity: 'fault', where, what, remedy });
  // A look-up of a topic that is there nowhere shows that a broker answers and knows this role.
  const session = await client.openLayoutSession(`topic://${config.stateNamespace}/isthmus-check`, {
    onUpdate: () => undefined,
    onClosed: () => undefined,
  });
  if (session.type === 'opened') session.session.close();
  if (session.type === 'unreachable') {
    fault(`cluster ${name}`, `${settings.serviceUrls.join(', ')}: ${session.reason}`, remedyOf(session.reason));
    return false;
  }
  if (session.type === 'unsupported') {
    fault(`cluster ${name}`, session.reason, 'scalable topics need Pulsar 5.0.1 or newer');
    return false;
  }
  if (session.type === 'refused' && session.code !== TOPIC_NOT_FOUND && session.code !== METADATA_ERROR) {
    if (session.code !== NOT_ALLOWED) {
      const remedy = session.code === NOT_AUTHENTICATED ? VALID_TOKEN : 'see the cluster';
      fault(`cluster ${name}`, session.message, remedy);
      return false;
    }
  }
  for (const namespace of namespacesOf(config)) {
    const listed = await admin.persistentTopics(namespace);
    if (listed.type === 'unavailable') {
      fault(
        `cluster ${name}`,
        `${settings.adminUrls.join(', ')}: ${listed.reason}`,
        'put the cluster’s web service URL into adminUrls',
      );
      return false;
    }
    if (listed.type === 'notFound') {
      fault(`cluster ${name}`, `namespace ${namespace} does not exist`, 'create it, or correct its name');
      return false;
    }
    // Topics that are named are looked at one by one: rights to them alone are enough.
    if (listed.type === 'unauthorized' && config.namespaces.includes(namespace)) {
      fault(`cluster ${name}`, `the admin REST refuses this role: ${listed.reason}`, RIGHTS);
      return false;
    }
  }
  await checkState(cluster, report);
  return true;
}

const METADATA_ERROR = 1;
const NOT_AUTHENTICATED = 3;
const NOT_ALLOWED = 4;
const TOPIC_NOT_FOUND = 11;

const VALID_TOKEN = 'name a valid token in the configuration';
const RIGHTS = 'name a token of a role with produce and consume on the namespace';

function remedyOf(reason: string): string {
  if (/authenticat|token/i.test(reason)) return VALID_TOKEN;
  if (/certificate|self.signed|altname|issuer/i.test(reason))
    return 'name the authority of the broker’s certificate in caFile';
  return 'put the address of a broker that runs into serviceUrls';
}

async function checkState({ name, admin, stateTopic }: Cluster, report: Report): Promise<void> {
  const { steps, problems } = await prepareState(admin, { topic: stateTopic, checkOnly: true });
  if (steps.length > 0) {
    report({
      severity: 'advice',
      where: `cluster ${name}`,
      what: `for its own state this is missing: ${steps.join('; ')}`,
      remedy: 'nothing: it is made when replication begins, with the layoutToken',
    });
  }
  for (const problem of problems) {
    report({
      severity: 'advice',
      where: `cluster ${name}`,
      what: problem,
      remedy: 'see that the namespace of its own state has a compaction threshold, no time to live and no quota',
    });
  }
}

async function checkTopic(
  topic: string,
  config: Config,
  clusters: ReadonlyMap<string, Cluster>,
  report: Report,
): Promise<void> {
  const layouts: { readonly cluster: Cluster; readonly layout: Layout }[] = [];
  for (const cluster of clusters.values()) {
    const where = `topic ${topic} on cluster ${cluster.name}`;
    const found = await cluster.admin.scalableLayout(topic);
    if (found.type === 'ok') layouts.push({ cluster, layout: found.value });
    else if (found.type !== 'notFound') {
      const remedy = found.type === 'unauthorized' ? RIGHTS : 'see the cluster';
      report({ severity: 'fault', where, what: found.reason, remedy });
    } else if (!config.createTopics) await explainMissing(cluster, topic, where, report);
    if (found.type === 'ok' && config.convergeLayouts) await checkLayoutRights(cluster, topic, where, report);
  }
  const [a, b] = layouts;
  if (a === undefined || b === undefined) {
    if (config.createTopics) for (const each of await creationFindings(topic, config, clusters, 'fault')) report(each);
    return;
  }
  const finding = unequalLayouts(topic, [a.layout, b.layout], config.convergeLayouts);
  if (finding !== undefined) report(finding);
}

async function explainMissing({ admin }: Cluster, topic: string, where: string, report: Report): Promise<void> {
  const name = `persistent://${topic}`;
  const classic = await admin.persistentTopics(namespaceOf(topic));
  const isClassic =
    classic.type === 'ok' && classic.value.some((one) => one === name || one.startsWith(`${name}-partition-`));
  const base = { severity: 'fault' as const, where };
  if (isClassic) {
    const what = 'it is a classic topic, not a scalable one';
    report({
      ...base,
      what,
      remedy: 'migrate it to a scalable topic, or replicate it with the cluster’s own replication',
    });
    return;
  }
  report({
    ...base,
    what: 'it does not exist',
    remedy: 'create it with the same number of initial segments as on the other cluster',
  });
}

async function checkLayoutRights({ admin }: Cluster, topic: string, where: string, report: Report): Promise<void> {
  // Reading this takes the same right as changing the layout.
  const policy = await admin.autoScalePolicy(topic);
  if (policy.type !== 'unauthorized') return;
  report({
    severity: 'fault',
    where,
    what: `layout changes are not allowed: ${policy.reason}`,
    remedy:
      'name a layoutToken of a tenant admin, or set convergeLayouts to false and let what does not fit be re-batched',
  });
}

/** Layouts that the clusters' own operations can never bring together. */
export function unequalLayouts(
  topic: string,
  layouts: readonly [Layout, Layout],
  converges: boolean,
): Finding | undefined {
  const [a, b] = layouts;
  if ([a, b].some(({ active }) => active.some(({ legacyTopicName }) => legacyTopicName !== undefined)))
    return undefined;
  const target = joinShapes(shapeOf(a), shapeOf(b));
  const stuck = layouts.some((layout) => planOperations(layout, target, CAPABILITIES).unreachable.length > 0);
  if (!stuck) return undefined;
  return {
    severity: converges ? 'fault' : 'advice',
    where: `topic ${topic}`,
    what: `its segments (${a.active.length} and ${b.active.length}) cannot be split to the same ranges on both clusters`,
    remedy: converges
      ? 'create the topic with the same number of initial segments on both, or set convergeLayouts to false and let it be re-batched for good'
      : 'nothing: what does not fit is re-batched for good',
  };
}

async function checkNamespace(
  { name, admin }: Cluster,
  namespace: string,
  config: Config,
  report: Report,
): Promise<void> {
  const limits = await namespaceLimits(admin, namespace);
  if (limits.type !== 'ok') return;
  for (const [what, remedy] of adviceOn(limits.value, config)) {
    report({ severity: 'advice', where: `namespace ${namespace} on cluster ${name}`, what, remedy });
  }
}

function* adviceOn(limits: NamespaceLimits, { subscriptionPrefix }: Config): Iterable<readonly [string, string]> {
  const { messageTtlSeconds, subscriptionExpirationMinutes, backlogQuota, publishRate, subscriptionAuthMode } = limits;
  if (isSet(messageTtlSeconds)) {
    yield [
      `messages live for ${messageTtlSeconds} s`,
      'an outage of the other cluster that lasts longer loses what expires; it is counted',
    ];
  }
  if (isSet(subscriptionExpirationMinutes)) {
    yield [
      `subscriptions that nobody is connected to expire after ${subscriptionExpirationMinutes} min`,
      'while the replicator is stopped for longer, what comes is lost',
    ];
  }
  if (typeof backlogQuota === 'object' && backlogQuota.policy === 'consumer_backlog_eviction') {
    yield [
      'a full backlog loses its oldest entries (consumer_backlog_eviction)',
      'use a policy that holds producers up',
    ];
  } else if (typeof backlogQuota === 'object') {
    yield [
      `a backlog may grow to ${backlogQuota.bytes} bytes, then producers are held up (${backlogQuota.policy})`,
      'an outage of the other cluster counts as backlog',
    ];
  }
  if (typeof publishRate === 'object' && publishRate.messagesPerSecond + publishRate.bytesPerSecond > 0) {
    yield [
      `a publish rate is set (${publishRate.messagesPerSecond} messages/s, ${publishRate.bytesPerSecond} bytes/s)`,
      'replication is held to it as well',
    ];
  }
  if (isSet(limits.maxProducersPerTopic))
    yield [`at most ${limits.maxProducersPerTopic} producers per topic`, 'leave one for each source segment'];
  if (isSet(limits.maxConsumersPerTopic))
    yield [
      `at most ${limits.maxConsumersPerTopic} consumers per topic`,
      'leave three: one that reads, one pin, one that reads back',
    ];
  if (subscriptionAuthMode === 'Prefix') {
    yield [
      'subscriptions must begin with the name of the role',
      `set subscriptionPrefix to the role (it is ${subscriptionPrefix})`,
    ];
  }
  if (limits.transactions === true) {
    yield ['transactions are enabled', 'one that stays open on a segment delays a takeover until it ends'];
  }
}

function isSet(limit: number | 'unknown'): boolean {
  return limit !== 'unknown' && limit > 0;
}

function namespacesOf({ namespaces, topics }: Config): ReadonlySet<string> {
  return new Set([...namespaces, ...topics.map(namespaceOf)]);
}

function namespaceOf(topic: string): string {
  return topic.slice(0, topic.lastIndexOf('/'));
}
