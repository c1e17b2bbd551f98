/** What the parts of a simulated process know of each other. */
import type { SourcePosition } from '../entry/index.js';
import type { Layout, Segment } from '../layout/index.js';
import type { RemoteSupport, RemoteTopicLayout } from '../ports/index.js';
import type { SegmentEffect, SegmentEvent, SegmentOptions, SegmentReplicator } from '../replication/index.js';
import type { WorldBudget } from './replication-budget.js';
import type { WorldTopic } from './replication-topic.js';
import type { Wire, WireHost } from './replication-wire.js';

/** What can go wrong once, where the next of its kind is done. */
export type OnceFault =
  | 'readFails'
  | 'openFails'
  /** The server has opened it, and the answer is lost. */
  | 'openAnswerLost'
  | 'recoverFails'
  | 'writeFailsBefore'
  | 'writeFailsAfter'
  | 'acknowledgementLost'
  | 'loadFails';

/** What a process runs on: one direction between two clusters of a world. */
export interface ProcessHost extends WireHost {
  readonly name: string;
  readonly source: WorldTopic;
  readonly remote: WorldTopic;
  readonly supports: RemoteSupport;
  readonly options: SegmentOptions;
  readonly maxEntryBytes: number;
  readonly budget: WorldBudget;
  /** What the process takes for the time. */
  readonly nowMs: number;
  /** The gate that a segment waits at; absent: that of its parents. */
  readonly isParentGateDropped: boolean;
  /** What happens in one moment is told together. */
  readonly tellsTogether: boolean;
  /** The remote tells at every opening what it has. */
  readonly tellsWatermarks: boolean;
  random(): number;
  /** True when a fault of this kind was asked for: once each. */
  fails(fault: OnceFault): boolean;
  /** An effect is about to be done; true when the process dies instead. */
  diesBefore(process: RunningProcess, effect: SegmentEffect): boolean;
  checkEffect(process: RunningProcess, run: SegmentRun, effect: SegmentEffect): void;
  checkStep(process: RunningProcess, run: SegmentRun): void;
  checkOpening(process: RunningProcess, run: SegmentRun): void;
  /** A cursor is durable. */
  written(process: RunningProcess): void;
  trace(line: () => string): void;
}

/** One machine and what it has asked for. */
export interface SegmentRun {
  readonly segmentId: number;
  readonly segment: Segment;
  readonly machine: SegmentReplicator;
  readonly wires: Map<number, Wire | undefined>;
  /** Questions without an answer, timers included. */
  outstanding: number;
  isStarted: boolean;
  cancelTimer: (() => void) | undefined;
  readonly events: SegmentEvent[];
  isStepping: boolean;
  /** Timers in a row that were due at once. */
  spins: number;
  /** How often a payload was opened since the budget granted it. */
  openings: number;
  /** By the place of its first chunk: the remote segment that a chunked message goes to, unless it was given up. */
  readonly messages: Map<string, number | 'givenUp'>;
  /** Up to where the checkpoints of its record were checked. */
  checkedCheckpoints: ReadonlyMap<number, SourcePosition>;
}

/** A process, as those see it who do its effects. */
export interface RunningProcess {
  readonly host: ProcessHost;
  readonly isAlive: boolean;
  /** Undefined before the cursors are loaded. */
  readonly session: number | undefined;
  readonly runs: ReadonlyMap<number, SegmentRun>;
  readonly sourceLayout: Layout | undefined;
  readonly remoteLayout: RemoteTopicLayout | undefined;
  /** The last places told of remote segments (R15). */
  readonly seenAt: Map<number, SourcePosition>;
  dispatch(run: SegmentRun, event: SegmentEvent): void;
  /** After the time that a message takes, if it lives then. */
  later(work: () => void): void;
  closeLane(run: SegmentRun, laneId: number): void;
  noticedInMs(): number;
}
