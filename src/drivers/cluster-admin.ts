/**
 * The administration of one cluster as a driver uses it: the client is built when it is needed, every use ends within a
 * time limit, and whatever goes wrong, a client that cannot be built included, is a value.
 */
import { messageOf } from '../errors.js';
import type { Clock, CreationResult, TopicAdmin, TopicLookUps, TopicName } from '../ports/index.js';
import {
  type Creation,
  type LookUp,
  type LookUpFailure,
  shapeFromAnswers,
  type TopicShape,
} from '../provisioning/index.js';

/** Builds the client of a cluster. It may throw, reject, or never end; it is called again at the next use. */
export type ConnectAdmin<Client> = (signal: AbortSignal) => Client | Promise<Client>;

/** What went wrong with a use, instead of an answer. */
interface Failed {
  readonly failure: LookUpFailure;
  readonly reason: string;
}

/** Segment topics that are asked for at once. */
const SEGMENTS_AT_ONCE = 16;

export class ClusterAdmin<Client extends Pick<TopicAdmin, 'lookUps'>> {
  private client: Client | undefined;

  constructor(
    private readonly connect: ConnectAdmin<Client>,
    private readonly clock: Clock,
    /** In milliseconds, for building the client and all calls of one use together. */
    private readonly limitMs: number,
  ) {}

  /** The shape of a topic, by look-ups alone. Rejects only when the signal aborts. */
  async shape(topic: TopicName, signal: AbortSignal): Promise<TopicShape> {
    const shape = await this.use<TopicShape>(
      signal,
      ({ lookUps }, limited) => askShape(lookUps, topic, limited),
      (failed) => ({ type: 'unknown', ...failed }),
    );
    // Rights and secrets are renewed outside: the next client takes up the new ones.
    if (shape.type === 'unknown' && shape.failure === 'unauthorized') this.client = undefined;
    return shape;
  }

  /** Rejects only when the signal aborts. */
  async use<Result>(
    signal: AbortSignal,
    work: (client: Client, signal: AbortSignal) => Promise<Result>,
    failed: (failed: Failed) => Result,
  ): Promise<Result> {
    let failure: LookUpFailure = 'noClient';
    const attempt = async (limited: AbortSignal): Promise<Result> => {
      try {
        const client = this.client ?? (await this.connect(limited));
        this.client = client;
        failure = 'unavailable';
        return await work(client, limited);
      } catch (error) {
        signal.throwIfAborted();
        return failed({ failure, reason: messageOf(error) });
      }
    };
    return this.within(signal, attempt, () =>
      failed({ failure: failure === 'noClient' ? failure : 'timedOut', reason: `no answer in ${this.limitMs} ms` }),
    );
  }

  private async within<Result>(
    signal: AbortSignal,
    attempt: (signal: AbortSignal) => Promise<Result>,
    late: () => Result,
  ): Promise<Result> {
    signal.throwIfAborted();
    const done = new AbortController();
    const limited = AbortSignal.any([signal, done.signal]);
    try {
      return await Promise.race([attempt(limited), this.clock.sleep(this.limitMs, limited).then(late)]);
    } finally {
      done.abort();
    }
  }
}

/** Makes one creating call. */
export function performCreation(
  { creations }: TopicAdmin,
  topic: TopicName,
  creation: Creation,
  signal: AbortSignal,
): Promise<CreationResult> {
  switch (creation.type) {
    case 'createPlain':
      return creations.createPlain(topic, signal);
    case 'createPartitioned':
      return creations.createPartitioned(topic, creation.partitions, signal);
    case 'completePartitions':
      return creations.completePartitions(topic, signal);
    case 'expandPartitions':
      return creations.expandPartitions(topic, creation.partitions, signal);
    case 'createScalable':
      return creations.createScalable(topic, creation, signal);
  }
}

/** The answer to a creating call, in words. */
export function answerOf(result: CreationResult): string {
  return result.type === 'done' ? result.type : `${result.type}: ${result.reason}`;
}

/** The namespace is asked for first: without it, all other answers mean nothing. */
async function askShape(lookUps: TopicLookUps, topic: TopicName, signal: AbortSignal): Promise<TopicShape> {
  const { name } = topic;
  const namespace = await lookUps.namespace(topic, signal);
  const missing: LookUp<never> = { type: 'missing' };
  if (namespace.type !== 'found') {
    return shapeFromAnswers({ name, namespace, partitions: missing, names: missing, scalable: missing });
  }
  const [partitions, names, segments] = await Promise.all([
    lookUps.partitions(topic, signal),
    lookUps.names(topic, signal),
    lookUps.segments(topic, signal),
  ]);
  if (segments.type !== 'found') return shapeFromAnswers({ name, namespace, partitions, names, scalable: segments });
  const listed = segments.value;
  const existing: LookUp<true>[] = [];
  for (let i = 0; i < listed.length; i += SEGMENTS_AT_ONCE) {
    const some = listed.slice(i, i + SEGMENTS_AT_ONCE);
    existing.push(...(await Promise.all(some.map((segment) => lookUps.segment(topic, segment, signal)))));
  }
  const failed = existing.find((answer) => answer.type === 'failed');
  const value = listed.map((segment, i) => ({ ...segment, exists: existing[i]?.type === 'found' }));
  return shapeFromAnswers({ name, namespace, partitions, names, scalable: failed ?? { type: 'found', value } });
}
