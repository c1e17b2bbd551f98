/** What a lane asks of its cursor. */
import type { ChunkOutcome } from './answer-table.js';
import type { Hub, Observed } from './hub.js';
import type { Link } from './link.js';

/** Why a slab ends before all of it is sent. */
export type SlabEnd =
  /** Nothing is held; it is read again after the resume. */
  | { readonly type: 'paused' }
  /** The records could not be kept; it is read again then, or once the gate lets somebody through. */
  | { readonly type: 'heldFull'; readonly untilMs: number | undefined }
  /** The cursor is detached, or its link is gone. */
  | { readonly type: 'detached' };

export interface LaneCursor extends Observed {
  readonly hub: Hub;
  readonly link: Link;
  /** The slab ends: whoever has no answer to wait for comes to rest. */
  readonly isEnding: boolean;
  end(reason: SlabEnd): void;
  /** A lane has come to rest. */
  rested(): void;
  /** One of the lanes is the gate's probe. */
  holdsProbe(): boolean;
  /** An administrator lets this record pass unsent. */
  skips(offset: number): boolean;
  skipped(offset: number): void;
  /** Until when a stall keeps the lanes from trying; 0 when none does. */
  readonly stallUntilMs: number;
  /** A lane goes on although the cursor stalls: the target is checked first. */
  retriesStall(): void;
  answered(lane: object, chunk: ChunkOutcome, isCurrent: boolean): void;
}
