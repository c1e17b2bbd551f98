/**
 * What sends name as incomplete in one direction of a simulated world (R6): that it is so, and what a segment that was
 * sealed then handed on less for it, which may be stored once more (R13).
 */
import { comparePositions, isSameEntry } from '../dedup/index.js';
import { formatSourcePosition, type SourcePosition } from '../entry/index.js';
import type { Send } from '../ports/index.js';
import type { SegmentRun } from './replication-run.js';
import type { WorldLog, WorldTopic } from './replication-topic.js';
import type { Repeat, SourceEntry, Truth } from './replication-truth.js';

/** What a remote segment has of a source segment, and does not hand on: everything behind one position, up to another. */
interface HeldBack {
  /** Null: from the start. */
  readonly after: SourcePosition | null;
  readonly to: SourcePosition;
}

export class Naming {
  /** By remote and by source segment: what the last send named that a window accepted. */
  private readonly heldBack = new Map<number, Map<number, HeldBack>>();

  constructor(
    private readonly truth: Truth,
    private readonly source: WorldTopic,
    private readonly remote: WorldTopic,
    /** An entry may have been passed over, so that no message of it becomes whole. */
    private readonly mayBePassed: (entry: SourceEntry) => boolean,
  ) {}

  /** A lane sends: why it may not name what it names; undefined when it may. */
  sent({ segmentId, messages }: SegmentRun, log: WorldLog, { position, completeTo }: Send): string | undefined {
    const entry = this.entryOf(position);
    const begin = entry?.chunk === undefined ? undefined : entry.messages[0]?.entries[0];
    if (begin !== undefined) {
      const name = formatSourcePosition(begin.position);
      if (messages.get(name) !== 'givenUp') messages.set(name, log.segmentId);
    }
    if (completeTo === undefined) return undefined;
    const isOpen = this.messagesBehind(segmentId, completeTo).some((first) => {
      if (messages.get(formatSourcePosition(first.position)) !== log.segmentId) return false;
      const [message] = first.messages;
      const last = message?.entries[(first.chunk?.numChunks ?? 0) - 1];
      if (last === undefined || comparePositions(last.position, position) > 0) return true;
      return message?.entries.some((chunk) => this.mayBePassed(chunk)) === true;
    });
    if (isOpen) return undefined;
    const after = completeTo === null ? 'the start' : formatSourcePosition(completeTo);
    return `${formatSourcePosition(position)} holds back what lies behind ${after}, and no message is open there`;
  }

  /** The first chunk that comes next behind a position; several where the source may have let the ones before go. */
  private messagesBehind(segmentId: number, after: SourcePosition | null): SourceEntry[] {
    const entries = this.truth.inSegment(this.source.cluster, segmentId);
    const from = after === null ? 0 : entries.findIndex(({ position }) => comparePositions(position, after) > 0);
    const trimmed = this.source.logs.get(segmentId)?.trimmed ?? entries.length;
    const firsts: SourceEntry[] = [];
    for (let i = from < 0 ? entries.length : from; i < entries.length; i++) {
      const entry = entries[i] as SourceEntry;
      if (entry.chunk?.chunkId === 0) firsts.push(entry);
      if (i >= trimmed) break;
    }
    return firsts;
  }

  private entryOf({ ledgerId, entryId }: SourcePosition): SourceEntry | undefined {
    return this.truth.at(this.source.cluster, { ledgerId, entryId });
  }

  accepted(log: WorldLog, { position, completeTo }: Send): void {
    const entry = this.entryOf(position);
    if (entry === undefined) return;
    let bySource = this.heldBack.get(log.segmentId);
    if (bySource === undefined) {
      bySource = new Map();
      this.heldBack.set(log.segmentId, bySource);
    }
    if (completeTo === undefined) bySource.delete(entry.segmentId);
    else bySource.set(entry.segmentId, { after: completeTo, to: position });
  }

  /** True when a segment before this one had the entry, and was sealed while it held it back. */
  allows({ entry, before, segmentId }: Repeat): boolean {
    const { remote } = this;
    return [...this.heldBack].some(([id, bySource]) => {
      const held = bySource.get(entry.segmentId);
      if (held === undefined || id === segmentId || !remote.descends(segmentId, id)) return false;
      const isBehind = held.after === null || comparePositions(entry.position, held.after) > 0;
      if (!isBehind || (comparePositions(entry.position, held.to) > 0 && !isSameEntry(entry.position, held.to))) {
        return false;
      }
      return before.some((other) => remote.descends(id, other));
    });
  }
}
