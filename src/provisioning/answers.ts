/**
 * From what the look-ups of a cluster answered to the shape of a topic. No single look-up can tell: classic and
 * scalable topics of one name do not see each other, partition topics without a record look missing, and a missing
 * namespace looks like an empty one to the scalable look-up.
 */
import { type LookUpFailure, splitPartitionName, type TopicShape } from './shapes.js';

/** What one look-up came to. `missing` only if the cluster said so of just what was asked for. */
export type LookUp<T> =
  | { readonly type: 'found'; readonly value: T }
  | { readonly type: 'missing' }
  | { readonly type: 'failed'; readonly failure: LookUpFailure; readonly reason: string };

/** An active segment of a scalable topic as its layout tells it, and whether its segment topic exists. */
export interface LookedUpSegment {
  readonly segmentId: number;
  /** The start of its range, 0..0xFFFF. */
  readonly start: number;
  readonly exists: boolean;
}

/** What the look-ups of one topic on one cluster answered. */
export interface TopicAnswers {
  /** The topic's name without tenant and namespace. */
  readonly name: string;
  readonly namespace: LookUp<true>;
  /** The count in the partitioned-topic record; 0 for a plain topic. */
  readonly partitions: LookUp<number>;
  /** The names of all classic topics of the namespace, partition topics among them. */
  readonly names: LookUp<readonly string[]>;
  readonly scalable: LookUp<readonly LookedUpSegment[]>;
}

type Unknown = Extract<TopicShape, { readonly type: 'unknown' }>;

/** The shape of a topic; `unknown` as soon as one look-up that matters has failed. */
export function shapeFromAnswers({ name, namespace, partitions, names, scalable }: TopicAnswers): TopicShape {
  if (namespace.type === 'missing') return { type: 'namespaceMissing' };
  if (namespace.type === 'failed') return unknown(namespace);
  if (names.type === 'missing') return unclear('the namespace answered, and then its topics were missing');
  for (const answer of [partitions, names, scalable]) if (answer.type === 'failed') return unknown(answer);
  const classic = classicShape(name, partitions, names.type === 'found' ? names.value : []);
  if (scalable.type !== 'found' || classic.type === 'unknown') return classic;
  return classic.type === 'missing' ? scalableShape(scalable.value) : { type: 'both' };
}

function classicShape(name: string, partitions: LookUp<number>, names: readonly string[]): TopicShape {
  const isListed = names.includes(name);
  const indices = names
    .map(splitPartitionName)
    .flatMap((parts) => (parts?.base === name ? [parts.index] : []))
    .sort((a, b) => a - b);
  if (partitions.type !== 'found') {
    // Whoever looks missing and is listed was made or removed between the two answers.
    if (isListed) return unclear('the topic is listed, and its record is missing');
    return indices.length > 0 ? { type: 'orphans', indices } : { type: 'missing' };
  }
  const count = partitions.value;
  if (count === 0) return { type: 'nonPartitioned', partitionNamed: splitPartitionName(name) !== undefined };
  if (isListed) return { type: 'mixed', partitions: count };
  const present = new Set(indices);
  const absent = Array.from({ length: count }, (_, index) => index).filter((index) => !present.has(index));
  const beyond = indices.filter((index) => index >= count);
  return beyond.length > 0
    ? { type: 'partitionedAndOrphans', partitions: count, absent, beyond }
    : { type: 'partitioned', partitions: count, absent };
}

function scalableShape(segments: readonly LookedUpSegment[]): TopicShape {
  const starts = segments.map(({ start }) => start).sort((a, b) => a - b);
  if (starts[0] !== 0) return unclear('the active segments do not begin with the ring');
  const absent = segments.filter(({ exists }) => !exists).map(({ segmentId }) => segmentId);
  return absent.length > 0 ? { type: 'scalablePartial', starts, absent } : { type: 'scalable', starts };
}

function unknown({ failure, reason }: { readonly failure: LookUpFailure; readonly reason: string }): Unknown {
  return { type: 'unknown', failure, reason };
}

function unclear(reason: string): Unknown {
  return { type: 'unknown', failure: 'unclear', reason };
}
