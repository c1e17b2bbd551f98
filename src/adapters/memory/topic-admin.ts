/**
 * The administration of several clusters in memory, with a record of every call. It behaves as a Pulsar 5.0 broker does,
 * its traps included: a classic topic and a scalable one of one name stand beside each other, a scalable topic is created
 * without its namespace, and a conflict looks alike whatever is there.
 */
import type { CreationResult, ListedSegment, TopicAdmin, TopicLookUps, TopicName } from '../../ports/index.js';
import { type LookUp, splitPartitionName } from '../../provisioning/index.js';

/** One call, as the cluster saw it. */
export interface AdminCall {
  /** Who called. */
  readonly caller: string;
  readonly cluster: string;
  readonly call: keyof TopicLookUps | keyof TopicAdmin['creations'];
  /** Whether the call can create anything. */
  readonly creates: boolean;
  readonly topic: TopicName;
}

/** What becomes of a call instead of its answer. A rejection is one that never arrived. */
export type AdminFault = Extract<LookUp<never>, { readonly type: 'failed' }>;

/** What a test wants to happen around calls. */
export interface MemoryTopicAdminsOptions {
  /** Awaited before a call takes effect; a fault keeps it from taking effect. */
  readonly before?: (call: AdminCall) => Promise<AdminFault | undefined>;
  /** Awaited when a call has taken effect; a fault keeps its answer back. */
  readonly after?: (call: AdminCall) => Promise<AdminFault | undefined>;
}

/** One name of a namespace on one cluster. */
interface Entry {
  /** The count of the partitioned-topic record. */
  record?: number;
  plain: boolean;
  readonly partitions: Set<number>;
  segments?: ListedSegment[];
  /** Segments in the layout that do not exist. */
  readonly absentSegments: Set<number>;
}

const DONE: CreationResult = { type: 'done' };
const MISSING = { type: 'missing' } as const;

export class MemoryTopicAdmins {
  /** Every call, in the order of arrival. */
  readonly calls: AdminCall[] = [];
  /** Clusters, then namespaces, then names. */
  private readonly clusters = new Map<string, Map<string, Map<string, Entry>>>();
  private readonly namespaces = new Set<string>();

  constructor(private readonly options: MemoryTopicAdminsOptions = {}) {}

  /** Makes a namespace on a cluster, empty. */
  addNamespace(cluster: string, { tenant, namespace }: Pick<TopicName, 'tenant' | 'namespace'>): void {
    this.namespaces.add(`${cluster} ${tenant}/${namespace}`);
  }

  /** Removes a topic with all that belongs to it; with `parts` only those: the record, the plain topic, partitions, segments. */
  remove(
    cluster: string,
    topic: TopicName,
    parts: {
      readonly record?: boolean;
      readonly plain?: boolean;
      readonly partitions?: readonly number[];
      readonly segments?: readonly number[];
    } = {},
  ): void {
    if (Object.keys(parts).length === 0) {
      this.names(cluster, topic).delete(topic.name);
      return;
    }
    const entry = this.entry(cluster, topic);
    if (parts.record === true) delete entry.record;
    if (parts.plain === true) entry.plain = false;
    for (const index of parts.partitions ?? []) entry.partitions.delete(index);
    for (const segmentId of parts.segments ?? []) entry.absentSegments.add(segmentId);
  }

  /** Puts parts of a topic where they are, past all rules: partitions without a record, a record beside a plain topic. */
  place(
    cluster: string,
    topic: TopicName,
    parts: { readonly record?: number; readonly plain?: boolean; readonly partitions?: readonly number[] },
  ): void {
    const entry = this.entry(cluster, topic);
    if (parts.record !== undefined) entry.record = parts.record;
    if (parts.plain === true) entry.plain = true;
    for (const index of parts.partitions ?? []) entry.partitions.add(index);
  }

  /** The administration of a cluster for one caller. */
  admin(cluster: string, caller: string): TopicAdmin {
    const entryOf = (topic: TopicName) => this.entry(cluster, topic);
    const look = <T>(call: keyof TopicLookUps, answer: (entry: Entry, topic: TopicName) => LookUp<T>) => {
      const work = (topic: TopicName) => answer(entryOf(topic), topic);
      return (topic: TopicName) => this.run({ caller, cluster, call, creates: false, topic }, () => work(topic));
    };
    const create = (call: keyof TopicAdmin['creations'], topic: TopicName, work: (entry: Entry) => CreationResult) =>
      this.run<CreationResult>({ caller, cluster, call, creates: true, topic }, () =>
        // Whoever creates a scalable topic is not asked for its namespace.
        call === 'createScalable' || this.hasNamespace(cluster, topic) ? work(entryOf(topic)) : refused('no namespace'),
      );
    const hasSegment = (topic: TopicName, { segmentId }: ListedSegment): LookUp<true> => {
      const { segments = [], absentSegments } = entryOf(topic);
      const exists = segments.some((segment) => segment.segmentId === segmentId) && !absentSegments.has(segmentId);
      return exists ? found(true) : MISSING;
    };
    return {
      lookUps: {
        namespace: look('namespace', (_, topic) => (this.hasNamespace(cluster, topic) ? found(true) : MISSING)),
        partitions: look('partitions', (entry, topic) => this.countOf(cluster, topic, entry)),
        names: look('names', (_, topic) => found(classicNames(this.names(cluster, topic)))),
        segments: look('segments', ({ segments }) => (segments === undefined ? MISSING : found(segments))),
        segment: (topic, segment) =>
          this.run({ caller, cluster, call: 'segment', creates: false, topic }, () => hasSegment(topic, segment)),
      },
      creations: {
        createPlain: (topic) => create('createPlain', topic, (entry) => createPlain(entry, topic)),
        createPartitioned: (topic, count) =>
          create('createPartitioned', topic, (entry) => createPartitioned(entry, topic, count)),
        completePartitions: (topic) => create('completePartitions', topic, completePartitions),
        expandPartitions: (topic, count) => create('expandPartitions', topic, (entry) => expand(entry, count)),
        createScalable: (topic, { starts }) =>
          create('createScalable', topic, (entry) => createScalable(entry, topic, starts)),
      },
    };
  }

  private async run<Answer extends LookUp<unknown> | CreationResult>(
    call: AdminCall,
    work: () => Answer,
  ): Promise<Answer> {
    this.calls.push(call);
    const lost = await this.options.before?.(call);
    // A fault is an answer of look-ups and of creating calls alike: it has the form of a failure of either.
    if (lost !== undefined) return lost as Answer;
    const answer = work();
    const kept = await this.options.after?.(call);
    return kept === undefined ? answer : (kept as Answer);
  }

  private hasNamespace(cluster: string, { tenant, namespace }: TopicName): boolean {
    return this.namespaces.has(`${cluster} ${tenant}/${namespace}`);
  }

  private names(cluster: string, { tenant, namespace }: TopicName): Map<string, Entry> {
    const namespaces = getOrMake(this.clusters, cluster, () => new Map<string, Map<string, Entry>>());
    return getOrMake(namespaces, `${tenant}/${namespace}`, () => new Map<string, Entry>());
  }

  private entry(cluster: string, topic: TopicName): Entry {
    const fresh = (): Entry => ({ plain: false, partitions: new Set(), absentSegments: new Set() });
    return getOrMake(this.names(cluster, topic), topic.name, fresh);
  }

  private countOf(cluster: string, topic: TopicName, { record, plain }: Entry): LookUp<number> {
    if (record !== undefined) return found(record);
    if (plain) return found(0);
    const parts = splitPartitionName(topic.name);
    if (parts === undefined) return MISSING;
    return this.entry(cluster, { ...topic, name: parts.base }).partitions.has(parts.index) ? found(0) : MISSING;
  }
}

function classicNames(names: ReadonlyMap<string, Entry>): string[] {
  return [...names].flatMap(([name, { plain, partitions }]) => [
    ...(plain ? [name] : []),
    ...[...partitions].map((index) => `${name}-partition-${index}`),
  ]);
}

function createPlain(entry: Entry, { name }: TopicName): CreationResult {
  if (splitPartitionName(name) !== undefined) return refused('the name ends in a partition suffix');
  if (entry.plain || entry.record !== undefined) return conflict('this topic already exists');
  entry.plain = true;
  return DONE;
}

function createPartitioned(entry: Entry, { name }: TopicName, count: number): CreationResult {
  if (splitPartitionName(name) !== undefined) return refused('the name ends in a partition suffix');
  if (count < 1) return refused('a partitioned topic has at least one partition');
  if (entry.plain || entry.record !== undefined) return conflict('this topic already exists');
  const beyond = [...entry.partitions].some((index) => index >= count);
  if (beyond) return conflict('partition topics exist beyond that count');
  entry.record = count;
  return completePartitions(entry);
}

function completePartitions(entry: Entry): CreationResult {
  if (entry.record === undefined) return refused('there is no such partitioned topic');
  for (let index = 0; index < entry.record; index++) entry.partitions.add(index);
  return DONE;
}

function expand(entry: Entry, count: number): CreationResult {
  const { record } = entry;
  if (record === undefined) return conflict('this is not the partitioned topic');
  if (count < record) return refused(`${count} partitions are fewer than the current ${record}`);
  if ([...entry.partitions].some((index) => index >= record)) return conflict('unexpected partition topics exist');
  for (let index = record; index < count; index++) entry.partitions.add(index);
  entry.record = count;
  return DONE;
}

function createScalable(entry: Entry, { name }: TopicName, starts: readonly number[]): CreationResult {
  if (entry.segments !== undefined) return conflict('this topic already exists');
  entry.segments = starts.map((start, segmentId) => ({ segmentId, start }));
  if (splitPartitionName(name) === undefined) return DONE;
  // The record stays, and no segment is made.
  for (const { segmentId } of entry.segments) entry.absentSegments.add(segmentId);
  return { type: 'failed', reason: 'internal error' };
}

function found<T>(value: T): { readonly type: 'found'; readonly value: T } {
  return { type: 'found', value };
}

function conflict(reason: string): CreationResult {
  return { type: 'conflict', reason };
}

function refused(reason: string): CreationResult {
  return { type: 'refused', reason };
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
