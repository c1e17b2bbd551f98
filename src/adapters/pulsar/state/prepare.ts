/** Makes the state topic of a destination cluster ready, or says what of it is not. */
import { IsthmusError, show } from '../../../errors.js';
import type { AdminResult, PulsarAdmin } from '../admin/index.js';

/** What it takes of the cluster's administration. */
export type StateAdmin = Pick<
  PulsarAdmin,
  'namespacePolicy' | 'setNamespacePolicy' | 'createNamespace' | 'persistentTopics' | 'createPersistent'
>;

export interface PrepareStateOptions {
  /** `persistent://tenant/namespace/name`; the namespace is for replication's own state only. */
  readonly topic: string;
  /** Says what would be done, and does nothing. */
  readonly checkOnly?: boolean;
  /** When compaction sets in, in bytes; default 1 MiB. */
  readonly compactionThreshold?: number;
}

/** A line for each step and problem, for operators. Both empty: everything was ready. */
export interface StatePreparation {
  /** What was done; with `checkOnly` what is missing. */
  readonly steps: readonly string[];
  /** What could not be looked at or done, and why: without the rights to it, an operator has to see to it. */
  readonly problems: readonly string[];
}

const DEFAULT_THRESHOLD = 1024 * 1024;

/**
 * The namespace, with compaction switched on before the first record is written (else the broker trims what nobody
 * subscribes to) and without a time to live; and the topic. Throws `invalidArgument` for another form of name.
 */
export async function prepareState(admin: StateAdmin, options: PrepareStateOptions): Promise<StatePreparation> {
  const { topic, checkOnly = false, compactionThreshold = DEFAULT_THRESHOLD } = options;
  const namespace = namespaceOf(topic);
  const steps: string[] = [];
  const problems: string[] = [];
  const step = async (what: string, work: () => Promise<AdminResult<void>>) => {
    const result = checkOnly ? ({ type: 'ok' } as const) : await work();
    if (result.type === 'ok') steps.push(what);
    // Another process that begins at the same time was quicker.
    else if (result.type !== 'conflict') problems.push(`${what}: ${result.type}, ${result.reason}`);
  };

  const threshold = await admin.namespacePolicy(namespace, 'compactionThreshold');
  const isMissing = threshold.type === 'notFound';
  if (isMissing) await step(`namespace ${namespace}`, () => admin.createNamespace(namespace));
  if (isMissing || (threshold.type === 'ok' && !isPositive(threshold.value))) {
    await step(`compaction threshold of ${namespace}`, () =>
      admin.setNamespacePolicy(namespace, 'compactionThreshold', compactionThreshold),
    );
  } else if (threshold.type !== 'ok') {
    problems.push(`compaction threshold of ${namespace}: ${threshold.type}, ${threshold.reason}`);
  }
  if (!isMissing) {
    const ttl = await admin.namespacePolicy(namespace, 'messageTTL');
    if (ttl.type !== 'ok') problems.push(`time to live in ${namespace}: ${ttl.type}, ${ttl.reason}`);
    else if (isPositive(ttl.value)) {
      await step(`no time to live in ${namespace}`, () => admin.setNamespacePolicy(namespace, 'messageTTL', 0));
    }
  }
  const topics = await admin.persistentTopics(namespace);
  if (topics.type === 'ok' ? !topics.value.includes(topic) : topics.type === 'notFound') {
    await step(`topic ${topic}`, () => admin.createPersistent(topic));
  } else if (topics.type !== 'ok') problems.push(`topic ${topic}: ${topics.type}, ${topics.reason}`);
  return { steps, problems };
}

function isPositive(value: unknown): boolean {
  return typeof value === 'number' && value > 0;
}

function namespaceOf(topic: string): string {
  const namespace = /^persistent:\/\/([^/]+\/[^/]+)\/[^/]+$/.exec(topic)?.[1];
  if (namespace !== undefined) return namespace;
  throw new IsthmusError('invalidArgument', `topic ${show(topic)}: persistent://tenant/namespace/name is needed`);
}
