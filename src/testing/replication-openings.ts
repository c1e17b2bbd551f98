/** How a simulated process opens lanes, asks sealed segments what they have, and reads back, as the driver does. */
import { comparePositions } from '../dedup/index.js';
import { encodeMessage, joinBuffers, type SourcePosition } from '../entry/index.js';
import type { SendResult } from '../ports/index.js';
import {
  type Failure,
  type FoundCopy,
  type LaneStop,
  type Recovery,
  readCopy,
  type SegmentEffect,
} from '../replication/index.js';
import type { RunningProcess, SegmentRun } from './replication-run.js';
import { Wire } from './replication-wire.js';

const UNREACHABLE = { type: 'unavailable', reason: 'the remote cannot be reached' } as const;

const BARRIER = joinBuffers(
  encodeMessage(new Uint8Array(0), {
    outer: { producerName: 'barrier', sequenceId: 0n, publishTimeMs: 0, markerType: 1000 },
    stamp: false,
  }),
);

/** Entries of one piece of a read-back. */
const PIECE = 5;

/** The name of the producer of a source segment, which is a lock (R14). */
export function producerName(sourceCluster: string, segmentId: number): string {
  return `pulsar.repl.${sourceCluster}.${segmentId}`;
}

/** Carries out `open`. */
export function openLane(
  process: RunningProcess,
  run: SegmentRun,
  { laneId, segmentId, checkpoint }: Extract<SegmentEffect, { type: 'open' }>,
): void {
  const { host } = process;
  run.outstanding++;
  const failed = (failure: Failure | LaneStop) => {
    process.closeLane(run, laneId);
    run.outstanding--;
    process.dispatch(run, { type: 'openFailed', laneId, failure });
  };
  host.clock.schedule(host.delayMs(), () => {
    const log = host.remote.logs.get(segmentId);
    const name = producerName(host.source.cluster, run.segmentId);
    if (host.fails('openFails')) return process.later(() => failed(UNREACHABLE));
    if (log === undefined || log.sealed) {
      return process.later(() => failed({ type: 'sealed', reason: 'the segment takes no more writes' }));
    }
    if (log.names.has(name)) {
      host.count('fenced');
      return process.later(() => failed({ type: 'fenced', reason: `a producer ${name} is open` }));
    }
    const onResult = (result: SendResult) => {
      if (result.type === 'stored' && result.at !== undefined) process.seenAt.set(segmentId, result.at);
      process.dispatch(run, { type: 'result', laneId, result });
    };
    const wire = new Wire(host, log, name, onResult);
    const watermark = host.tellsWatermarks ? log.window.watermark(name) : undefined;
    if (!process.isAlive || host.fails('openAnswerLost')) {
      wire.abandon(process.noticedInMs());
      return process.later(() => failed(UNREACHABLE));
    }
    host.clock.schedule(host.delayMs(), () => {
      if (!process.isAlive) return wire.abandon(process.noticedInMs());
      if (!run.wires.has(laneId)) {
        run.outstanding--;
        return wire.close();
      }
      run.wires.set(laneId, wire);
      if (host.supports.dedup === 'window') {
        return process.later(() => {
          const source = host.source.logs.get(run.segmentId);
          // It was pruned: the source cannot tell.
          if (source === undefined) return failed(UNREACHABLE);
          const { lastPosition } = source;
          run.outstanding--;
          process.dispatch(run, { type: 'opened', laneId, watermark, lastPosition });
        });
      }
      wire.barrier(BARRIER, (end) => {
        if (!process.isAlive) return;
        if (end === undefined) return failed(UNREACHABLE);
        readBack(process, run, { segmentId, checkpoint, end }, (found) => {
          if ('stop' in found) return failed(found.stop);
          if ('failure' in found) return failed(found.failure);
          const source = host.source.logs.get(run.segmentId);
          if (source === undefined) return failed(UNREACHABLE);
          const { lastPosition } = source;
          run.outstanding--;
          process.dispatch(run, { type: 'opened', laneId, lastPosition, end, ...found });
        });
      });
    });
  });
}

/** Carries out `recover`. */
export function recoverSegment(
  process: RunningProcess,
  run: SegmentRun,
  { segmentId, checkpoint }: Extract<SegmentEffect, { type: 'recover' }>,
): void {
  const { host } = process;
  run.outstanding++;
  const answer = (recovery: Recovery) => {
    run.outstanding--;
    host.count(`recovered ${recovery.type}`);
    process.dispatch(run, { type: 'recovered', segmentId, recovery });
  };
  process.later(() => {
    const log = host.remote.logs.get(segmentId);
    if (host.fails('recoverFails')) return process.later(() => answer({ type: 'failed', reason: 'no answer' }));
    if (log === undefined) return process.later(() => answer({ type: 'pruned' }));
    if (host.supports.dedup === 'window') {
      const watermark = log.window.handedOn(producerName(host.source.cluster, run.segmentId));
      return process.later(() => answer({ type: 'watermark', watermark }));
    }
    readBack(process, run, { segmentId, checkpoint, end: undefined }, (found) => {
      if ('stop' in found) answer(found.stop);
      else if ('failure' in found) answer({ type: 'failed', reason: found.failure.reason });
      else if (found.copies === undefined) answer({ type: 'pruned' });
      else {
        const lastPosition = host.source.logs.get(run.segmentId)?.lastPosition;
        answer({ type: 'copies', copies: found.copies, end: found.last, lastPosition });
      }
    });
  });
}

type ReadBack =
  | { readonly copies?: readonly FoundCopy[]; readonly last?: SourcePosition | undefined }
  | { readonly failure: Failure }
  | { readonly stop: LaneStop };

/** Reads a remote segment from a checkpoint to a barrier, or to its final end, piece by piece. */
function readBack(
  process: RunningProcess,
  run: SegmentRun,
  {
    segmentId,
    checkpoint,
    end,
  }: {
    readonly segmentId: number;
    readonly checkpoint: SourcePosition | undefined;
    readonly end: SourcePosition | undefined;
  },
  done: (found: ReadBack) => void,
): void {
  const { host, remoteLayout } = process;
  const segment = remoteLayout?.segments.get(segmentId);
  if (segment === undefined) return done({});
  const begin = beginning(process, run, segmentId, checkpoint);
  if ('stop' in begin) return done(begin);
  host.count('readBack');
  const copies: FoundCopy[] = [];
  const next = (after: SourcePosition | undefined) => {
    process.later(() => {
      const log = host.remote.logs.get(segmentId);
      if (log === undefined || (end === undefined && !log.sealed)) return done({ failure: UNREACHABLE });
      const from = Math.max(log.indexBehind(after), log.trimmed);
      const to = end === undefined ? log.entries.length : log.indexBehind(end);
      const piece = log.entries.slice(from, Math.min(to, from + PIECE));
      for (const stored of piece) {
        const copy = readCopy(stored, segment, host.source.cluster);
        if (copy === undefined) continue;
        copies.push(copy);
        host.count('copyFound');
      }
      const last = piece.at(-1)?.position ?? after;
      if (from + piece.length >= to) return done({ copies, last });
      next(last);
    });
  };
  next(begin.after);
}

/** Where the pin lets reading back begin, as the driver has it. */
function beginning(
  { host, session }: RunningProcess,
  run: SegmentRun,
  segmentId: number,
  checkpoint: SourcePosition | undefined,
): { readonly after: SourcePosition | undefined } | { readonly stop: LaneStop } {
  const pinned = host.remote.pin(host.source.cluster).get(segmentId);
  if (checkpoint === undefined || pinned === undefined || comparePositions(pinned, checkpoint) <= 0) {
    return { after: checkpoint };
  }
  const stored = host.source.toward(host.remote.cluster).records.get(run.segmentId);
  const later = stored?.checkpoints.get(segmentId);
  if (stored === undefined || later === undefined || comparePositions(pinned, later) > 0) {
    return { stop: { type: 'pinLost', reason: `the pin of segment ${segmentId} has passed the checkpoint` } };
  }
  if (stored.session === session) return { after: later };
  return { stop: { type: 'superseded', reason: `session ${stored.session} has gone on` } };
}
