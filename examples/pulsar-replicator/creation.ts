/**
 * Topics that may not be on every cluster yet: each is created where it is missing, with the segments that it has where
 * it is, and looked at again until it is everywhere; only then is it handed on to be replicated. Several processes may
 * do this at once, and so may operators. Nothing is deleted, and nothing is created beside something else of the name.
 */
import type { ProvisioningCounters, TopicAdmin, TopicName } from 'isthmus';
import { creationFanOut, type FanOutResult } from 'isthmus/drivers';
import type { CreationView } from './status/index.js';

/** Waits between two looks at a topic in milliseconds; each is twice the one before. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** Topics that are looked at together: a namespace may have thousands. */
const AT_ONCE = 8;

export interface TopicCreationOptions {
  /** By the name of the cluster. */
  readonly admins: ReadonlyMap<string, TopicAdmin>;
  /** From, to: a topic is created where it is to be replicated to. */
  readonly directions: readonly (readonly [from: string, to: string])[];
  /** A topic that is on every cluster now; false when it could not be taken, and is to be handed on again. */
  readonly ready: (topic: string) => Promise<boolean>;
  /** Something for the operator, once for each change. */
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
}

interface Wanted {
  readonly topic: string;
  isReady: boolean;
  results: ReadonlyMap<string, FanOutResult>;
  readonly counters: Map<string, ProvisioningCounters>;
  said: string;
}

export class TopicCreation {
  private readonly wanted = new Map<string, Wanted>();
  private readonly tasks = new Set<Promise<void>>();
  private readonly createOn: ReadonlySet<string>;
  private readonly queue: (() => void)[] = [];
  private free = AT_ONCE;

  constructor(private readonly options: TopicCreationOptions) {
    this.createOn = new Set(options.directions.map(([, to]) => to));
  }

  /** A topic, `tenant/namespace/name`, was seen on a cluster that is replicated from. */
  want(topic: string): void {
    if (this.wanted.has(topic) || this.options.signal.aborted) return;
    const wanted: Wanted = { topic, isReady: false, results: new Map(), counters: new Map(), said: '' };
    this.wanted.set(topic, wanted);
    const task = this.pursue(wanted).finally(() => this.tasks.delete(task));
    this.tasks.add(task);
  }

  /** Resolves when nothing is under way any more, after the signal. */
  async ended(): Promise<void> {
    while (this.tasks.size > 0) await Promise.all(this.tasks);
  }

  view(): readonly CreationView[] {
    return Array.from(this.wanted.values(), ({ topic, isReady, results, counters }) => ({
      topic,
      isReady,
      clusters: Array.from(results, ([cluster, { decision, answer }]) => ({
        cluster,
        decision,
        ...(answer === undefined ? {} : { answer }),
        counters: counters.get(cluster) ?? NO_COUNTS,
      })),
    }));
  }

  /** For the metrics. */
  *counted(): Iterable<{ readonly topic: string; readonly remote: string; readonly counters: ProvisioningCounters }> {
    for (const { topic, counters } of this.wanted.values()) {
      for (const [remote, counted] of counters) yield { topic, remote, counters: counted };
    }
  }

  private async pursue(wanted: Wanted): Promise<void> {
    const { topic } = wanted;
    const { signal, say, ready } = this.options;
    try {
      for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)) {
        this.note(wanted, await this.inTurn(() => this.fanOut(topic)));
        const decisions = Array.from(wanted.results.values(), ({ decision }) => decision);
        if (decisions.every(({ type }) => type === 'replicate') && (await ready(topic))) {
          wanted.isReady = true;
          return;
        }
        // It has been deleted everywhere, and may come again.
        if (decisions.every(({ reason }) => reason === 'localMissing')) {
          this.wanted.delete(topic);
          return;
        }
        await sleep(waitMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) say(`${topic}: ${String(error)}`);
    }
  }

  private fanOut(topic: string): Promise<ReadonlyMap<string, FanOutResult>> {
    const { admins, signal } = this.options;
    const clusters = new Map(Array.from(admins, ([name, admin]) => [name, () => admin]));
    return creationFanOut({ clusters }, { topic: nameOf(topic), createOn: this.createOn, signal });
  }

  private note(wanted: Wanted, results: ReadonlyMap<string, FanOutResult>): void {
    wanted.results = results;
    const lines: string[] = [];
    for (const [cluster, { decision, answer }] of results) {
      const { type, reason, message } = decision;
      const before = wanted.counters.get(cluster) ?? NO_COUNTS;
      wanted.counters.set(cluster, {
        ...before,
        decisions: { ...before.decisions, [reason]: (before.decisions[reason] ?? 0) + 1 },
        creations:
          answer === undefined ? before.creations : { createScalable: (before.creations.createScalable ?? 0) + 1 },
      });
      if (type !== 'replicate')
        lines.push(`${cluster}: ${reason}: ${message}${answer === undefined ? '' : ` (${answer})`}`);
      else if (answer !== undefined) lines.push(`${cluster}: created`);
    }
    const text = lines.join('; ');
    if (text !== wanted.said && text !== '') this.options.say(`${wanted.topic}: ${text}`);
    wanted.said = text;
  }

  /** As many at once as there are places. */
  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.free === 0) await new Promise<void>((resolve) => this.queue.push(resolve));
    else this.free--;
    try {
      return await work();
    } finally {
      const next = this.queue.shift();
      if (next === undefined) this.free++;
      else next();
    }
  }
}

const NO_COUNTS: ProvisioningCounters = { decisions: {}, creations: {}, starts: 0, stops: 0 };

/** A topic by its parts. */
export function nameOf(topic: string): TopicName {
  const [tenant = '', namespace = '', ...name] = topic.split('/');
  return { tenant, namespace, name: name.join('/') };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    }
  });
}
