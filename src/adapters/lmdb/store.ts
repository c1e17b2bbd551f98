/**
 * The store: a folder with topics in it. What resolves is durable: an append, a commit of a layout, a seal and a
 * cursor write resolve when the disk has confirmed them, and are seen by readers only then, so nothing that was
 * replicated can be missing after a power cut.
 */
import { IsthmusError, show } from '../../errors.js';
import type { Layout } from '../../layout/index.js';
import { Environment, type TopicRow } from './environment.js';
import { recordLayout } from './layout-changes.js';
import { checkName } from './names.js';
import { removeDeleted } from './removal.js';
import { LmdbTopic } from './topic.js';
import { TopicState } from './topic-state.js';
import { WriteQueue } from './write-queue.js';
import type { WriteTransaction } from './write-transaction.js';

export interface LmdbTopicOptions {
  /** The topic's name, 1 to 512 characters. */
  readonly topic: string;
  /** The name of the cluster that the topic lies on, 1 to 512 characters. A stored topic keeps the one it was made with. */
  readonly cluster: string;
  /** What a new topic begins with; a stored one has its own, and then this is not looked at. */
  readonly layout?: Layout;
  /** The largest entry that is stored, in bytes, 1 to 2^30; default 5 MiB, as a Pulsar broker has it. It may change with each opening. */
  readonly maxEntryBytes?: number;
}

/** A topic with what its parts share. */
interface OpenTopic {
  readonly state: TopicState;
  readonly topic: LmdbTopic;
}

const DEFAULT_MAX_ENTRY_BYTES = 5 * 1024 * 1024;
const MOST_MAX_ENTRY_BYTES = 2 ** 30;

/**
 * Opens the store in a folder, and makes it if there is none. Rejects with `invalidArgument` for a folder that this
 * process has open already, that holds something else, or that is of another format.
 *
 * - *A process that is killed* at any moment, and *a machine that loses its power*, lose nothing that has resolved, as
 *   far as the disk does what it says: each transaction is synced before it resolves. What had not resolved is stored
 *   whole or not at all.
 * - *A commit that fails* (a full or broken disk) stops the store: its writes reject, and so do all later ones until
 *   it is opened again, since what the disk has is not known. Reads go on.
 * - *A second process* may open the same folder. Each append, commit and cursor write is decided in a transaction that
 *   both share, and a read or `load` that begins later sees it. But waits and watches are woken only by changes of
 *   their own process, and a producer's name is a lock within one process only; what is to be fenced between
 *   processes is, by the windows and by the sessions of cursors.
 */
export async function openStore(path: string): Promise<LmdbStore> {
  return new LmdbStore(Environment.open(path));
}

/** An open store. */
export class LmdbStore {
  private readonly queue: WriteQueue;
  private readonly topics = new Map<string, Promise<OpenTopic>>();
  private removing: Promise<void> | undefined;
  private closing: Promise<void> | undefined;

  /** Made by `openStore`. @internal */
  constructor(private readonly environment: Environment) {
    this.queue = new WriteQueue(environment);
    this.remove();
  }

  /** The folder, as an absolute path. */
  get folder(): string {
    return this.environment.folder;
  }

  /** The names of all topics that are stored. */
  topicNames(): readonly string[] {
    return [...this.environment.tables.topics.getKeys()];
  }

  /**
   * Opens a topic, and makes it when it is new; all calls for one name give the same object. Rejects with
   * `invalidArgument` for a new topic without a layout, one that is stored for another cluster, or other options than
   * it is open with.
   */
  async topic(options: LmdbTopicOptions): Promise<LmdbTopic> {
    const { topic: name, cluster, maxEntryBytes = DEFAULT_MAX_ENTRY_BYTES } = options;
    checkName('topic', name);
    checkName('cluster', cluster);
    if (!Number.isInteger(maxEntryBytes) || maxEntryBytes < 1 || maxEntryBytes > MOST_MAX_ENTRY_BYTES) {
      refuse(`maxEntryBytes ${show(maxEntryBytes)}`, 'it is an integer of 1 to 2^30');
    }
    let opening = this.topics.get(name);
    if (opening === undefined) {
      opening = this.open(options, maxEntryBytes);
      this.topics.set(name, opening);
      // Whoever failed to open it does not stop the next.
      opening.catch(() => this.topics.delete(name));
    }
    const { state, topic } = await opening;
    checkCluster(name, state.cluster, cluster);
    if (state.maxEntryBytes !== maxEntryBytes) {
      refuse(`maxEntryBytes ${maxEntryBytes}`, `topic ${show(name)} is open with ${state.maxEntryBytes}`);
    }
    return topic;
  }

  /** Finishes what was submitted, closes the folder, and rejects what waits. */
  close(): Promise<void> {
    this.closing ??= this.stop();
    return this.closing;
  }

  private async stop(): Promise<void> {
    await this.queue.stop();
    await this.removing;
    await this.environment.close();
    const openings = await Promise.allSettled(this.topics.values());
    for (const opening of openings) if (opening.status === 'fulfilled') opening.value.state.wakeAll();
  }

  private async open({ topic: name, cluster, layout }: LmdbTopicOptions, maxEntryBytes: number): Promise<OpenTopic> {
    const row =
      this.environment.tables.topics.get(name) ??
      (await this.queue.transact((transaction) => makeTopic(transaction, name, cluster, layout)));
    checkCluster(name, row.cluster, cluster);
    const state = new TopicState(name, row, maxEntryBytes, this.environment, this.queue);
    // A record that cannot be read is told now, not at the first use.
    state.layout();
    return { state, topic: new LmdbTopic(state, () => this.remove()) };
  }

  /** In the background, one after the other. What a failure leaves is removed after the next opening. */
  private remove(): void {
    const remove = () => removeDeleted(this.environment, this.queue).catch(() => {});
    this.removing = this.removing === undefined ? remove() : this.removing.then(remove);
  }
}

function makeTopic(transaction: WriteTransaction, name: string, cluster: string, layout: Layout | undefined): TopicRow {
  const { topics } = transaction.tables;
  const stored = topics.get(name);
  if (stored !== undefined) return stored;
  if (layout === undefined) refuse(`topic ${show(name)}`, 'it is not stored, and a new topic needs a layout');
  let id = 1;
  for (const { value } of topics.getRange({})) id = Math.max(id, value.id + 1);
  const row = { id, cluster };
  topics.putSync(name, row);
  recordLayout(transaction, id, undefined, layout);
  return row;
}

function checkCluster(topic: string, stored: string, cluster: string): void {
  if (stored === cluster) return;
  refuse(`cluster ${show(cluster)}`, `topic ${show(topic)} is stored as one of cluster ${show(stored)}`);
}

function refuse(value: string, rule: string): never {
  throw new IsthmusError('invalidArgument', `${value}: ${rule}`);
}
