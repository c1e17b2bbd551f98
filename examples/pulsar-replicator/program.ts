/**
 * The replicator as a whole: all topics that are named, and those of the named namespaces as they come and go; one
 * process of several leads. Nothing is changed on a cluster before `start`.
 */
import { type Codecs, defaultCodecs } from 'isthmus';
import { leaderships, prepareState, type TopicsUpdate } from 'isthmus/adapters/pulsar';
import { RemoteRate, SlowPath } from 'isthmus/drivers';
import { type Finding, unequalLayouts } from './check.js';
import type { Cluster } from './cluster.js';
import type { Config } from './config.js';
import { TopicCreation } from './creation.js';
import { metricsText, type StatusDocument, statusDocument } from './status/index.js';
import { ReplicatedTopic, type Shared } from './topic.js';

const WATCH_RETRY_MS = 5_000;
const LOCK_TRIES = 5;
const LOCK_RETRY_MS = 1_000;

export class Program {
  private readonly topics = new Map<string, ReplicatedTopic>();
  private readonly stopping = new AbortController();
  private readonly tasks: Promise<void>[] = [];
  private readonly startedAtMs = Date.now();
  private readonly slowPath: SlowPath;
  private readonly rates: ReadonlyMap<string, RemoteRate>;
  private shared: Shared | undefined;
  private terms: ReadonlyMap<string, number> | undefined;
  /** Only where topics may be created. */
  private readonly creation: TopicCreation | undefined;
  readonly metrics: () => string;

  constructor(
    private readonly config: Config,
    private readonly clusters: ReadonlyMap<string, Cluster>,
    private readonly say: (text: string) => void,
  ) {
    this.slowPath = new SlowPath(config.budget);
    const isLimited = Object.keys(config.rate).length > 0;
    this.rates = new Map(
      [...clusters.keys()].map((name) => [name, new RemoteRate(config.rate)] as const).filter(() => isLimited),
    );
    this.creation = config.createTopics
      ? new TopicCreation({
          admins: new Map(Array.from(clusters, ([name, { topicAdmin }]) => [name, topicAdmin])),
          directions: config.directions,
          ready: (topic) => this.addFound(topic),
          say,
          signal: this.stopping.signal,
        })
      : undefined;
    this.metrics = metricsText({
      replicators: () =>
        [...this.topics.values()].flatMap((topic) =>
          topic.replicators().map((replicator) => ({ topic: topic.name, replicator })),
        ),
      controllers: () => [...this.topics.values()].flatMap((topic) => topic.controllers()),
      provisioning: () => this.creation?.counted() ?? [],
      slowPath: this.slowPath,
      rates: this.rates,
    });
  }

  /** Makes the state topics ready, and begins. Rejects, with nothing begun, when they cannot be. */
  async start(): Promise<void> {
    const codecs: Codecs = await defaultCodecs();
    const { config, clusters, slowPath, rates, say } = this;
    for (const cluster of clusters.values()) await this.prepare(cluster);
    this.shared = { config, clusters, codecs, slowPath, rates, say };
    for (const topic of config.topics) {
      if (this.creation === undefined) this.add(topic);
      else this.creation.want(topic);
    }
    for (const namespace of config.namespaces) this.tasks.push(this.watchNamespace(namespace));
    if (config.convergeLayouts) this.tasks.push(this.takeTurns());
  }

  private async prepare({ name, admin, stateTopic, lockTopic }: Cluster): Promise<void> {
    const { steps, problems } = await prepareState(admin, { topic: stateTopic });
    for (const step of steps) this.say(`cluster ${name}: made ${step}`);
    for (const problem of problems) this.say(`cluster ${name}: ${problem}`);
    const lock = await admin.createPersistent(lockTopic);
    if (lock.type !== 'ok' && lock.type !== 'conflict' && lock.type !== 'unauthorized') {
      throw new Error(`cluster ${name}: ${lockTopic}: ${lock.reason}`);
    }
    await this.keepLock(name, admin, lockTopic);
  }

  /** Without a subscription the lock would be deleted when idle, and its terms begin anew. */
  private async keepLock(cluster: string, admin: Cluster['admin'], lockTopic: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      const kept = await admin.putPersistentSubscription(lockTopic, 'keep');
      if (kept.type === 'ok' || kept.type === 'conflict') return;
      // A broker is busy for a moment while another process, started at the same time, does the same.
      const mayPass = kept.type === 'refused' || kept.type === 'unavailable';
      if (!mayPass || tries === LOCK_TRIES) throw new Error(`cluster ${cluster}: ${lockTopic}: ${kept.reason}`);
      await sleep(LOCK_RETRY_MS, this.stopping.signal);
    }
  }

  private add(name: string): void {
    if (this.shared === undefined || this.topics.has(name) || this.stopping.signal.aborted) return;
    const topic = new ReplicatedTopic(name, this.shared);
    this.topics.set(name, topic);
    topic.start();
    this.say(`${name}: replicating`);
    const { terms } = this;
    if (terms !== undefined)
      this.tasks.push(topic.lead(terms).catch((error: unknown) => this.say(`${name}: ${String(error)}`)));
  }

  /** Topics that are on every cluster join. Those that go stay as they are: who deletes a topic ends its replication. */
  private async watchNamespace(namespace: string): Promise<void> {
    const { signal } = this.stopping;
    const seen = new Map<string, Set<string>>([...this.clusters.keys()].map((name) => [name, new Set()]));
    await Promise.all(
      Array.from(this.clusters, async ([name, { client }]) => {
        const found = seen.get(name) as Set<string>;
        const isFrom = this.config.directions.some(([from]) => from === name);
        const take = (names: readonly string[]) => {
          for (const topic of names.map((one) => one.replace(/^topic:\/\//, ''))) {
            found.add(topic);
            if (this.creation === undefined) {
              if ([...seen.values()].every((all) => all.has(topic))) void this.addFound(topic);
            } else if (isFrom && !this.topics.has(topic)) this.creation.want(topic);
          }
        };
        while (!signal.aborted) {
          let end: () => void = () => undefined;
          const ended = new Promise<void>((resolve) => {
            end = resolve;
          });
          const watch = await client.watchTopics(namespace, {
            onUpdate: (update) => take(namesIn(update)),
            onClosed: () => end(),
          });
          if (watch.type === 'opened') {
            take(namesIn(watch.first));
            await Promise.race([ended, aborted(signal)]);
            watch.session.close();
          }
          await sleep(WATCH_RETRY_MS, signal);
        }
      }),
    );
  }

  /**
   * A topic that was found joins if its layouts can meet; else that is said once, and it is left alone. False if they
   * cannot be read.
   */
  private async addFound(topic: string): Promise<boolean> {
    if (this.topics.has(topic) || this.refused.has(topic)) return true;
    this.refused.add(topic);
    const layouts = await Promise.all(Array.from(this.clusters.values(), ({ admin }) => admin.scalableLayout(topic)));
    const [a, b] = layouts;
    if (a?.type !== 'ok' || b?.type !== 'ok') {
      this.refused.delete(topic);
      return false;
    }
    const finding: Finding | undefined = unequalLayouts(topic, [a.value, b.value], this.config.convergeLayouts);
    if (finding?.severity === 'fault') this.say(`${finding.where}: ${finding.what}: ${finding.remedy}`);
    else {
      this.refused.delete(topic);
      this.add(topic);
    }
    return true;
  }

  private readonly refused = new Set<string>();

  /** Leads while it holds the locks of all clusters; they are taken in one order, so that two processes never wait for each other. */
  private async takeTurns(): Promise<void> {
    const clusters = [...this.clusters.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    await this.lock(clusters, new Map(), this.stopping.signal);
  }

  private async lock(
    clusters: readonly Cluster[],
    terms: ReadonlyMap<string, number>,
    signal: AbortSignal,
  ): Promise<void> {
    const [cluster, ...others] = clusters;
    if (cluster === undefined) return this.lead(terms, signal);
    const { client, lockTopic: topic, name } = cluster;
    for await (const { term, ended } of leaderships({ client, topic, name: this.config.name }, signal)) {
      const held = new AbortController();
      const abort = () => held.abort();
      signal.addEventListener('abort', abort, { once: true });
      void ended.then(abort);
      // Terms begin with 0, and a leader without one is older than any.
      await this.lock(others, new Map([...terms, [name, term + 1]]), held.signal);
      signal.removeEventListener('abort', abort);
    }
  }

  private async lead(terms: ReadonlyMap<string, number>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.say(`this process leads (terms ${[...terms].map(([name, term]) => `${name} ${term}`).join(', ')})`);
    this.terms = terms;
    const leading = Array.from(this.topics.values(), (topic) =>
      topic.lead(terms).catch((error: unknown) => this.say(`${topic.name}: ${String(error)}`)),
    );
    await Promise.all(leading);
    await aborted(signal);
    this.terms = undefined;
    await Promise.all(Array.from(this.topics.values(), (topic) => topic.unlead()));
    if (!this.stopping.signal.aborted) this.say('this process does not lead any more');
  }

  status(): StatusDocument {
    const { config, slowPath, startedAtMs } = this;
    return statusDocument({
      process: config.name,
      nowMs: Date.now(),
      startedAtMs,
      members: this.members(),
      topics: Array.from(this.topics.values(), (topic) => topic.view()),
      ...(this.creation === undefined ? {} : { creations: this.creation.view() }),
      budget: slowPath.report(),
    });
  }

  private members() {
    const seen = new Map<string, number>();
    for (const { state } of this.clusters.values()) {
      for (const { process, lastSeenMsAgo } of state.members()) {
        seen.set(process, Math.min(lastSeenMsAgo, seen.get(process) ?? Number.POSITIVE_INFINITY));
      }
    }
    seen.set(this.config.name, 0);
    const leads = this.terms === undefined ? 0 : this.terms.size * this.topics.size;
    return Array.from(seen, ([name, lastSeenMsAgo]) => {
      const isSelf = name === this.config.name;
      return { name, isSelf, lastSeenMsAgo, ...(isSelf ? { leads } : {}) };
    });
  }

  /** Settles what is in flight, writes the cursors, gives segments and locks back. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.tasks);
    await this.creation?.ended();
    await Promise.all(Array.from(this.topics.values(), (topic) => topic.stop()));
    await Promise.all(Array.from(this.clusters.values(), (cluster) => cluster.close()));
  }
}

function namesIn(update: TopicsUpdate): readonly string[] {
  return update.type === 'snapshot' ? update.topics : update.added;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
