/**
 * What a cluster can be asked, and told, about the existence of topics. Look-ups and creating calls are two objects, so
 * that whoever may not create is not even handed the means, and a recorder can prove that none was used. Failures are
 * values; a rejection counts as `unavailable`.
 */
import type { LookUp } from '../provisioning/index.js';

/** A topic by its parts; `name` is without domain, tenant and namespace. */
export interface TopicName {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
}

/** An active segment as the layout of a scalable topic tells it. */
export interface ListedSegment {
  readonly segmentId: number;
  /** The start of its range, 0..0xFFFF. */
  readonly start: number;
}

/**
 * Look-ups none of which can create anything: no topic, no record, no layout, no system topic. `missing` only where the
 * cluster said so of just what was asked for (a 404 whose text names it); everything else is `failed`, a cluster
 * that cannot be asked without the risk of creating included.
 */
export interface TopicLookUps {
  /** Whether the namespace exists; `missing` for a missing tenant too. */
  namespace(topic: TopicName, signal: AbortSignal): Promise<LookUp<true>>;
  /** The count in the partitioned-topic record; 0 for a plain topic. Never with auto-creation allowed. */
  partitions(topic: TopicName, signal: AbortSignal): Promise<LookUp<number>>;
  /** The names of all classic topics of the namespace, loaded or not, each partition topic by its own name. */
  names(topic: TopicName, signal: AbortSignal): Promise<LookUp<readonly string[]>>;
  /** The active segments of a scalable topic. Never asked for under the name of a classic topic. */
  segments(topic: TopicName, signal: AbortSignal): Promise<LookUp<readonly ListedSegment[]>>;
  /** Whether the segment topic of an active segment exists. */
  segment(topic: TopicName, segment: ListedSegment, signal: AbortSignal): Promise<LookUp<true>>;
}

/**
 * How a creating call ended. None of the answers is believed: a `done` does not tell who created, a `conflict` not what
 * is there, and a `failed` call may have been carried out in part. Both sides are read again after each.
 */
export type CreationResult =
  | { readonly type: 'done' }
  /** Something of the name exists, or a count does not fit what exists. */
  | { readonly type: 'conflict'; readonly reason: string }
  /** Not allowed, or not possible with this name or count. */
  | { readonly type: 'refused'; readonly reason: string }
  /** No answer, or one that says nothing about what was done. */
  | { readonly type: 'failed'; readonly reason: string };

/** Calls every one of which can create. None copies a topic to other clusters, and none is forced. */
export interface TopicCreations {
  createPlain(topic: TopicName, signal: AbortSignal): Promise<CreationResult>;
  /** Creates the record and its partition topics; those that exist already are taken in. `partitions` from 1. */
  createPartitioned(topic: TopicName, partitions: number, signal: AbortSignal): Promise<CreationResult>;
  /** Creates the partition topics that a record promises and that do not exist. */
  completePartitions(topic: TopicName, signal: AbortSignal): Promise<CreationResult>;
  /** Raises the count of a record to `partitions`. */
  expandPartitions(topic: TopicName, partitions: number, signal: AbortSignal): Promise<CreationResult>;
  /**
   * Creates a scalable topic with segments at these starts. A cluster that can only be told a count creates `segments`
   * equal ones.
   */
  createScalable(
    topic: TopicName,
    wanted: { readonly starts: readonly number[]; readonly segments: number },
    signal: AbortSignal,
  ): Promise<CreationResult>;
}

/** The administration of one cluster. */
export interface TopicAdmin {
  readonly lookUps: TopicLookUps;
  readonly creations: TopicCreations;
}
