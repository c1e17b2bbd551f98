/**
 * The status document: what an operator sees of the program, as plain JSON. The page, the progress line and whoever
 * polls `/status.json` read this and nothing else. Positions and terms are text, times are milliseconds, ranges are of
 * the 16-bit segment ring.
 */
import {
  type BudgetReport,
  type ControllerStatus,
  type HashRange,
  type Layout,
  type PeerStatus,
  PROVISIONING_REASONS,
  type ProvisioningCounters,
  type ProvisioningDecision,
  type ReplicatorCounters,
  type Segment,
} from 'isthmus';
import { type ReplicatorStatus, type SegmentLine, topicStatus } from 'isthmus/drivers';
import { type Convergence, compareLayouts } from './compare.js';

/** One process of those that share the topics, as this one sees it. */
export interface MemberView {
  readonly name: string;
  readonly isSelf: boolean;
  /** Layout controllers that it runs, one for each topic and cluster that it leads; absent where that is not known. */
  readonly leads?: number;
  /** The age of its last sign of life; 0 for this process. */
  readonly lastSeenMsAgo: number;
}

/** A topic on one cluster. */
export interface ClusterView {
  readonly cluster: string;
  /** As last read; absent until it was. */
  readonly layout?: Layout;
  /** Present while this process leads the topic there: the term of its lock. */
  readonly term?: bigint | number;
  /** Of the controller, where one runs here. */
  readonly controller?: ControllerStatus;
  /** What stands in the way of the cluster as a whole: not reached, or not allowed to change the layout. */
  readonly failure?: string;
}

/** One direction of a topic: the replicator that reads from a cluster; its status names the other one. */
export interface DirectionView {
  readonly from: string;
  readonly status: ReplicatorStatus;
}

export interface TopicView {
  readonly topic: string;
  readonly clusters: readonly [ClusterView, ClusterView];
  readonly directions: readonly DirectionView[];
}

/** A topic that the program creates where it is missing, as it was last looked at. */
export interface CreationView {
  readonly topic: string;
  /** It is on every cluster, and has been handed on to be replicated. */
  readonly isReady: boolean;
  readonly clusters: readonly {
    readonly cluster: string;
    readonly decision: ProvisioningDecision;
    /** What the last creating call was answered, where the last look made one. */
    readonly answer?: string;
    readonly counters: ProvisioningCounters;
  }[];
}

/** All that a document is built from. */
export interface StatusView {
  readonly process: string;
  readonly nowMs: number;
  readonly startedAtMs: number;
  readonly members: readonly MemberView[];
  readonly topics: readonly TopicView[];
  /** Absent where the program creates no topics. */
  readonly creations?: readonly CreationView[];
  /** Of the slow-path budget, which all topics of the process share. */
  readonly budget?: BudgetReport;
}

export interface StatusDocument {
  readonly process: string;
  /** When this was true, since the epoch. */
  readonly atMs: number;
  readonly uptimeMs: number;
  readonly members: readonly MemberView[];
  readonly budget?: BudgetLine;
  readonly topics: readonly TopicLine[];
  /** Absent where the program creates no topics. */
  readonly creations?: readonly CreationLine[];
}

/** A topic that the program creates where it is missing: what it found on each cluster, and what is to be done. */
export interface CreationLine {
  readonly topic: string;
  /** It is on every cluster; otherwise it is not replicated yet, and looked at again. */
  readonly isReady: boolean;
  readonly clusters: readonly {
    readonly cluster: string;
    readonly outcome: ProvisioningDecision['outcome'];
    readonly reason: ProvisioningDecision['reason'];
    /** What there is, in words. */
    readonly message: string;
    /** What an operator can do, while it does not go on by itself. */
    readonly remedy?: string;
    /** What the last creating call was answered. */
    readonly answer?: string;
    /** Looks by reason, and creating calls by kind. */
    readonly counters: Pick<ProvisioningCounters, 'decisions' | 'creations'>;
  }[];
}

/** The slow-path budget: who waits longest for it first. Shares are 0 to 1. */
export interface BudgetLine extends Omit<BudgetReport, 'throttled' | 'levelBytes'> {
  readonly throttled: readonly { readonly segment: string; readonly totalMs: number; readonly waitsNow: boolean }[];
}

export interface TopicLine {
  readonly topic: string;
  readonly convergence: Convergence;
  readonly clusters: readonly ClusterLine[];
  readonly directions: readonly DirectionLine[];
}

export interface ClusterLine {
  readonly cluster: string;
  /** Absent where another process leads the topic there, or none does. */
  readonly term?: string;
  /** The controller is changing the layout, or waits to try again. */
  readonly changing: boolean;
  /** What an operator may want to know of it, in words. */
  readonly notes: readonly string[];
  readonly epoch?: number;
  /** In ascending id; empty while the layout is not known. */
  readonly segments: readonly SegmentBar[];
}

/** A segment as it is drawn. */
export interface SegmentBar {
  readonly segmentId: number;
  readonly range: HashRange;
  readonly state: Segment['state'];
  readonly parentIds: readonly number[];
  /** Starts of buckets 1..N-1 on the bucket ring. */
  readonly bucketSplits: readonly number[];
  /** It came from a classic topic, and its range says nothing about its keys. */
  readonly isLegacy: boolean;
}

export interface DirectionLine {
  readonly from: string;
  readonly to: string;
  readonly state: ReplicatorStatus['state'];
  /** What it does not go on for as a whole. */
  readonly failure?: string;
  /** Since this process began. */
  readonly counters: Readonly<ReplicatorCounters>;
  /** Entries that are not settled, over the segments whose backlog is known here; absent while none is. */
  readonly backlog?: number;
  /** Sealed segments that the source keeps only because they are not drained. */
  readonly pinnedSegments: readonly number[];
  /** In ascending id. */
  readonly segments: readonly DirectionSegment[];
}

export interface DirectionSegment extends SegmentLine {
  /** Who replicates it: this process, or another one (or, for the moment, none). */
  readonly owner: 'self' | 'other';
  /** It does not go on before an operator has done something, or at all. */
  readonly needsOperator: boolean;
  /** Entries of the destination that were read so far to learn what it holds, while that is done. */
  readonly readBackEntries?: number;
}

/** The document of a moment. */
export function statusDocument(view: StatusView): StatusDocument {
  const { process, nowMs, startedAtMs, members, topics, creations, budget } = view;
  return {
    process,
    atMs: nowMs,
    uptimeMs: nowMs - startedAtMs,
    members: members.map(({ name, isSelf, leads, lastSeenMsAgo }) => ({
      name,
      isSelf,
      ...(leads === undefined ? {} : { leads }),
      lastSeenMsAgo,
    })),
    ...(budget === undefined ? {} : { budget: budgetLine(budget) }),
    topics: topics.map(topicLine),
    ...(creations === undefined ? {} : { creations: creations.map(creationLine) }),
  };
}

/** Lists as many of those that were kept waiting; the metrics have all. */
const MOST_THROTTLED = 10;

function budgetLine({ throttled, levelBytes: _, ...budget }: BudgetReport): BudgetLine {
  const waits = Array.from(throttled, ([segment, { totalMs, sinceMs }]) => ({
    segment,
    totalMs,
    waitsNow: sinceMs !== undefined,
  }));
  waits.sort((a, b) => b.totalMs - a.totalMs);
  return { ...budget, throttled: waits.filter(({ totalMs }) => totalMs > 0).slice(0, MOST_THROTTLED) };
}

function creationLine({ topic, isReady, clusters }: CreationView): CreationLine {
  return {
    topic,
    isReady,
    clusters: clusters.map(({ cluster, decision, answer, counters: { decisions, creations } }) => {
      const { type, outcome, reason, message } = decision;
      return {
        cluster,
        outcome,
        reason,
        message,
        ...(type === 'replicate' ? {} : { remedy: PROVISIONING_REASONS[reason] }),
        ...(answer === undefined ? {} : { answer }),
        counters: { decisions, creations },
      };
    }),
  };
}

function topicLine({ topic, clusters, directions }: TopicView): TopicLine {
  return {
    topic,
    convergence: compareLayouts(...clusters),
    clusters: clusters.map(clusterLine),
    directions: directions.map((direction) => directionLine(topic, direction)),
  };
}

function clusterLine({ cluster, layout, term, controller, failure }: ClusterView): ClusterLine {
  const segments = [...(layout?.segments.values() ?? [])].sort((a, b) => a.segmentId - b.segmentId);
  return {
    cluster,
    ...(term === undefined ? {} : { term: String(term) }),
    changing: controller?.changing ?? false,
    notes: [...(failure === undefined ? [] : [failure]), ...(controller?.peers.flatMap(peerNotes) ?? [])],
    ...(layout === undefined ? {} : { epoch: layout.epoch }),
    segments: segments.map(segmentBar),
  };
}

function segmentBar({ segmentId, range, state, parentIds, entryBucketSplits, legacyTopicName }: Segment): SegmentBar {
  const isLegacy = legacyTopicName !== undefined && legacyTopicName !== '';
  return { segmentId, range, state, parentIds, bucketSplits: entryBucketSplits, isLegacy };
}

/** What a controller has to say of a peer, besides how the shapes stand to each other. */
function peerNotes({ cluster, condition, mismatches, leftOut, wentBack, lastError }: PeerStatus): string[] {
  return [
    ...(condition === 'unheard' ? [`has not heard of ${cluster} yet`] : []),
    ...(condition === 'unsupported' ? [`${cluster} takes no part in the convergence of layouts`] : []),
    ...(leftOut ? [`the boundaries of ${cluster} do not fit the limit of this cluster, and are left out`] : []),
    ...(wentBack
      ? [`the layout of ${cluster} has gone back to an earlier epoch, and is ignored until it is newer`]
      : []),
    ...mismatches.map(
      ({ cap, own, theirs }) => `${cap} is ${own} here and ${theirs} on ${cluster}: the lower one counts`,
    ),
    ...(lastError === undefined ? [] : [`cannot tell ${cluster} its layout: ${lastError}`]),
  ];
}

function directionLine(topic: string, { from, status }: DirectionView): DirectionLine {
  const [remote] = topicStatus({ topic, replicators: [{ status: () => status }] }).remotes;
  const lines = new Map(remote?.segments.map((line) => [line.segmentId, line]));
  const { failure, counters, pinnedSegments, state } = status;
  const backlogs = status.segments.flatMap(({ backlog }) => backlog ?? []);
  return {
    from,
    to: status.remote,
    state,
    ...(failure === undefined ? {} : { failure }),
    counters,
    ...(backlogs.length === 0 ? {} : { backlog: backlogs.reduce((sum, backlog) => sum + backlog, 0) }),
    pinnedSegments,
    segments: status.segments.flatMap((segment) => {
      const line = lines.get(segment.segmentId);
      return line === undefined ? [] : [directionSegment(line, segment)];
    }),
  };
}

function directionSegment(
  line: SegmentLine,
  { waitingFor, error, readingBack }: ReplicatorStatus['segments'][number],
): DirectionSegment {
  return {
    ...line,
    owner: waitingFor.for === 'claim' ? 'other' : 'self',
    needsOperator: waitingFor.for === 'operator' || error !== undefined,
    ...(readingBack === undefined ? {} : { readBackEntries: readingBack.entries }),
  };
}
