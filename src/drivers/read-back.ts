/**
 * Reads back what earlier sends have left in a remote segment (R15): from the checkpoint to a barrier that was sent
 * under the producer's name, or to the final end of a sealed segment.
 */

import { comparePositions } from '../dedup/index.js';
import type { SourcePosition } from '../entry/index.js';
import type { CursorStore, RemoteProducer, RemoteTopic, RemoteTopicLayout } from '../ports/index.js';
import { type FoundCopy, type LaneStop, readCopy } from '../replication/index.js';

export interface ReadBackPorts {
  readonly remote: RemoteTopic;
  readonly cursors: CursorStore;
  readonly sourceCluster: string;
  readonly sourceSegmentId: number;
  /** Of the process that reads back. */
  readonly session: number;
}

export interface ReadBackRange {
  readonly segmentId: number;
  readonly checkpoint: SourcePosition | undefined;
  /** Open under its name; undefined for a sealed segment, whose end is final. */
  readonly producer: RemoteProducer | undefined;
  readonly layout: RemoteTopicLayout | undefined;
}

/** What was found up to the barrier, or to the last entry of a sealed segment; no copies: it does not exist any more. */
export type ReadBackResult =
  | { readonly copies?: readonly FoundCopy[]; readonly end?: SourcePosition }
  | { readonly failure: LaneStop };

/** Rejects when the remote cannot be reached. */
export async function readBackSegment(
  ports: ReadBackPorts,
  { segmentId, checkpoint, producer, layout }: ReadBackRange,
  signal: AbortSignal,
  onProgress: (entries: number) => void,
): Promise<ReadBackResult> {
  const { remote, sourceCluster } = ports;
  const segment = layout?.segments.get(segmentId);
  if (segment === undefined) return {};
  const barrier = await producer?.barrier();
  const begin = await beginning(ports, segmentId, checkpoint);
  if ('failure' in begin) return begin;
  const copies: FoundCopy[] = [];
  let entries = 0;
  let last = begin.after;
  for await (const stored of remote.readBack(segmentId, { after: begin.after, through: barrier ?? 'end' }, signal)) {
    for (const entry of stored) {
      last = entry.position;
      const copy = readCopy(entry, segment, sourceCluster);
      if (copy !== undefined) copies.push(copy);
    }
    entries += stored.length;
    onProgress(entries);
  }
  const end = barrier ?? last;
  return { copies, ...(end === undefined ? {} : { end }) };
}

/**
 * Where reading back begins: at the checkpoint. Where the pin has passed that, what lies between is gone: for good by
 * another owner or by nobody's will; or because this session's own checkpoint has moved on since it was asked for, and
 * then that one serves as well, for what it has passed is settled.
 */
async function beginning(
  { remote, cursors, sourceSegmentId, session }: ReadBackPorts,
  segmentId: number,
  checkpoint: SourcePosition | undefined,
): Promise<{ readonly after: SourcePosition | undefined } | { readonly failure: LaneStop }> {
  if (remote.pin === undefined || checkpoint === undefined) return { after: checkpoint };
  const pinned = await remote.pin.position(segmentId);
  if (pinned === undefined || comparePositions(pinned, checkpoint) <= 0) return { after: checkpoint };
  const stored = (await cursors.load()).get(sourceSegmentId);
  const later = stored?.checkpoints.get(segmentId);
  if (stored === undefined || later === undefined || comparePositions(pinned, later) > 0) {
    return { failure: { type: 'pinLost', reason: `the pin of segment ${segmentId} has passed the checkpoint` } };
  }
  if (stored.session === session) return { after: later };
  return { failure: { type: 'superseded', reason: `session ${stored.session} has gone on` } };
}
