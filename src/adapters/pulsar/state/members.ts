/**
 * Who takes part: each process says so in the state topic every few seconds, and counts for three times that long. So
 * the segments of a topic are shared out without anybody who shares them out: everybody keeps to the same number.
 */
import type { Clock } from '../../../ports/index.js';
import type { LiveMember } from './fold.js';

/** The processes that share the segments of one topic towards one remote. */
export interface Members {
  /** How many of `segments` this process may have: the same for all, and together not too few; 0 while that is not known. */
  share(segments: number): number;
  /** Calls after every change of the number of members. Returns what takes it back. */
  onChange(listener: () => void): () => void;
}

/** After so many intervals without a word a process counts as dead. */
const SILENT_INTERVALS = 3;

/** The members of one group, as the others' heartbeats show them; this process is one of them. */
export class Group implements Members {
  private readonly listeners = new Set<() => void>();
  /** Undefined until the log was read to its end. */
  private live: number | undefined;

  constructor(
    private readonly name: string,
    private readonly process: string,
    private readonly clock: Clock,
  ) {}

  share(segments: number): number {
    return this.live === undefined ? 0 : Math.ceil(segments / this.live);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Counts anew. */
  count(members: ReadonlyMap<string, LiveMember>): void {
    const nowMs = this.clock.now();
    let live = 1;
    for (const [process, member] of members) {
      if (process !== this.process && member.groups.includes(this.name) && !isSilent(member, nowMs)) live++;
    }
    if (live === this.live) return;
    this.live = live;
    for (const listener of [...this.listeners]) listener();
  }
}

export function isSilent({ heardMs, intervalMs }: LiveMember, nowMs: number): boolean {
  return nowMs - heardMs > SILENT_INTERVALS * intervalMs;
}
