/**
 * All that is known of a topic's replication in one object, as JSON: for each source segment and remote what it waits
 * for, for each peer how the layouts stand to each other (PIP-495, Admin/CLI: per-topic replication status).
 */

import type { ControllerStatus } from '../convergence/index.js';
import { formatSourcePosition, type SourcePosition } from '../entry/index.js';
import { type SegmentWait, STOP_REASONS } from '../replication/index.js';
import type { LayoutController } from './layout-controller.js';
import type { Replicator, ReplicatorStatus } from './replicator.js';
import type { SegmentStatus } from './segment.js';

/** What belongs to one topic. */
export interface TopicParts {
  readonly topic: string;
  readonly controller?: Pick<LayoutController, 'status'>;
  /** One for each remote. */
  readonly replicators: Iterable<Pick<Replicator, 'status'>>;
}

export interface TopicStatus {
  readonly topic: string;
  /** Absent where no controller runs here, or its layout is not loaded yet. */
  readonly layout?: Omit<ControllerStatus, 'peers'>;
  readonly peers: ControllerStatus['peers'];
  readonly remotes: readonly RemoteStatus[];
}

/** The way to one remote. */
export interface RemoteStatus
  extends Pick<ReplicatorStatus, 'remote' | 'state' | 'failure' | 'counters' | 'pinnedSegments'> {
  readonly segments: readonly SegmentLine[];
}

/** One source segment towards one remote. Positions are text, `ledger:entry`. */
export interface SegmentLine {
  readonly segmentId: number;
  readonly state: SegmentStatus['state'];
  /** In words: the one thing that stands in the way. */
  readonly waitingFor: string;
  /** What an operator can do about it, where it waits for one. */
  readonly remedy?: string;
  readonly settled?: string;
  readonly backlog?: number;
  readonly unsettledEntries: number;
  readonly held?: { readonly position: string; readonly reason: string; readonly message: string };
  readonly lanes: SegmentStatus['lanes'];
}

export function topicStatus({ topic, controller, replicators }: TopicParts): TopicStatus {
  const controllerStatus = controller?.status();
  const { peers = [], ...layout } = controllerStatus ?? {};
  return {
    topic,
    ...(controllerStatus === undefined ? {} : { layout: layout as Omit<ControllerStatus, 'peers'> }),
    peers,
    remotes: Array.from(replicators, (replicator) => remoteStatus(replicator.status())),
  };
}

function remoteStatus({ segments, ...status }: ReplicatorStatus): RemoteStatus {
  return { ...status, segments: segments.map(segmentLine) };
}

function segmentLine(status: SegmentStatus): SegmentLine {
  const { segmentId, state, waitingFor, settled, backlog, unsettledEntries, held, lanes } = status;
  return {
    segmentId,
    state,
    waitingFor: status.error === undefined ? inWords(waitingFor) : `nothing: it failed with ${String(status.error)}`,
    ...(waitingFor.for === 'operator' ? { remedy: STOP_REASONS[waitingFor.reason] } : {}),
    ...(settled === undefined ? {} : { settled: text(settled) }),
    ...(backlog === undefined ? {} : { backlog }),
    unsettledEntries,
    ...(held === undefined ? {} : { held: { ...held, position: text(held.position) } }),
    lanes,
  };
}

function text({ ledgerId, entryId }: SourcePosition): string {
  return formatSourcePosition({ ledgerId, entryId });
}

function inWords(wait: SegmentWait): string {
  switch (wait.for) {
    case 'claim':
      return 'its turn: another process has it';
    case 'parents':
      return 'its parents to drain';
    case 'layout':
      return "the remote's layout";
    case 'entries':
      return 'new entries';
    case 'results':
      return 'answers of the remote';
    case 'remoteSegment':
      return `remote segment ${wait.segmentId}: ${wait.reason}`;
    case 'budget':
      return 'the slow-path budget';
    case 'rateLimit':
      return 'the rate limit';
    case 'schema':
      return `a schema: ${wait.reason}`;
    case 'cursor':
      return 'the cursor to be written';
    case 'source':
      return `the source: ${wait.reason}`;
    case 'operator':
      return `an operator: ${wait.reason}: ${wait.message}`;
    case 'nothing':
      return 'nothing';
  }
}
