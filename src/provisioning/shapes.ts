/**
 * What there is of one topic on one cluster, as far as it can be told. Two shapes, the local one and the remote one,
 * are all that a decision looks at; a shape that could not be read is `unknown`, and unknown is never missing.
 */

/** Why a look-up has no answer. */
export type LookUpFailure =
  /** 401, 403: a role without rights gets the same answer whether the topic is there or not. */
  | 'unauthorized'
  /** Any other refusal, such as 412; also a 404 whose text does not name the topic. */
  | 'refused'
  /** The cluster is too old to be asked without the risk of creating. */
  | 'unsupported'
  /** Cannot be reached, or 5xx. */
  | 'unavailable'
  /** No answer within the time limit. */
  | 'timedOut'
  /** The client of the cluster could not be built. */
  | 'noClient'
  /** Answers that contradict each other: something changed between two of them. */
  | 'unclear';

/** One topic on one cluster. Partition indices ascend and begin with 0. */
export type TopicShape =
  | { readonly type: 'missing' }
  /** A plain topic. `partitionNamed`: its name ends in a partition suffix, so that it can never be given partitions. */
  | { readonly type: 'nonPartitioned'; readonly partitionNamed: boolean }
  /** A partitioned-topic record, and the partitions that it promises and that do not exist. */
  | { readonly type: 'partitioned'; readonly partitions: number; readonly absent: readonly number[] }
  /** Partition topics without a record. */
  | { readonly type: 'orphans'; readonly indices: readonly number[] }
  /** A record, and partition topics beyond what it promises. */
  | {
      readonly type: 'partitionedAndOrphans';
      readonly partitions: number;
      readonly absent: readonly number[];
      readonly beyond: readonly number[];
    }
  /** A record and a plain topic of one name. */
  | { readonly type: 'mixed'; readonly partitions: number }
  /** A scalable topic: the starts of its active segments, ascending from 0 in 0..0xFFFF. */
  | { readonly type: 'scalable'; readonly starts: readonly number[] }
  /** A scalable topic some of whose active segments do not exist. */
  | { readonly type: 'scalablePartial'; readonly starts: readonly number[]; readonly absent: readonly number[] }
  /** A scalable topic and a classic one of the same name. */
  | { readonly type: 'both' }
  | { readonly type: 'namespaceMissing' }
  | { readonly type: 'unknown'; readonly failure: LookUpFailure; readonly reason: string };

/** How many partitions a record promises; 0 where there is none. */
export function partitionsOf(shape: TopicShape): number {
  return 'partitions' in shape ? shape.partitions : 0;
}

/** The index of a partition topic by its name, and the name of its topic; undefined for any other name. */
export function splitPartitionName(name: string): { readonly base: string; readonly index: number } | undefined {
  const match = /^(.+)-partition-(0|[1-9]\d*)$/.exec(name);
  const [, base, digits] = match ?? [];
  const index = Number(digits);
  return base === undefined || !Number.isSafeInteger(index) ? undefined : { base, index };
}

/** A shape in words, with its numbers. */
export function describeShape(shape: TopicShape): string {
  switch (shape.type) {
    case 'missing':
      return 'no topic';
    case 'nonPartitioned':
      return shape.partitionNamed ? 'a plain topic named like a partition' : 'a plain topic';
    case 'partitioned':
      return `${shape.partitions} partitions${listed(', absent', shape.absent)}`;
    case 'orphans':
      return `no record${listed(', but partitions', shape.indices)}`;
    case 'partitionedAndOrphans':
      return `${shape.partitions} partitions${listed(', absent', shape.absent)}${listed(', beyond them', shape.beyond)}`;
    case 'mixed':
      return `${shape.partitions} partitions and a plain topic`;
    case 'scalable':
      return `a scalable topic of ${shape.starts.length} segments`;
    case 'scalablePartial':
      return `a scalable topic of ${shape.starts.length} segments${listed(', absent', shape.absent)}`;
    case 'both':
      return 'a scalable and a classic topic';
    case 'namespaceMissing':
      return 'no namespace';
    case 'unknown':
      return `unknown (${shape.failure}: ${shape.reason})`;
  }
}

function listed(word: string, numbers: readonly number[]): string {
  if (numbers.length === 0) return '';
  return `${word} ${numbers.slice(0, 10).join(', ')}${numbers.length > 10 ? ' and more' : ''}`;
}
