/** What the sender of a node is told, what it asks for, and what it tells operators. Times are milliseconds since the epoch. */
import type { HttpOutcome, LinkRecord, RemoteLookup, SenderRequest, Slab, SlabLimits } from './ports.js';
import type { StalledState } from './states.js';

/** An event, without its time. */
export type SenderInput =
  | { readonly type: 'tick' }
  /** What this node knows of a remote, now and after every change; before the first link to it. */
  | { readonly type: 'remote'; readonly remote: string; readonly lookup: RemoteLookup }
  /** The link's record, now and after every change; undefined once it is gone, which ends its cursors. */
  | { readonly type: 'link'; readonly child: string; readonly record: LinkRecord | undefined }
  /** This node owns the partition: sends from `offset` on. `cursor` is any name, unique among those attached. */
  | {
      readonly type: 'attach';
      readonly cursor: string;
      readonly child: string;
      readonly partition: number;
      readonly offset: number;
    }
  /** It owns it no more: what is in flight is waited for, then `detached` tells that nothing follows. */
  | { readonly type: 'detach'; readonly cursor: string }
  | { readonly type: 'slab'; readonly cursor: string; readonly slab: Slab }
  | { readonly type: 'readFailed'; readonly cursor: string }
  | { readonly type: 'written'; readonly cursor: string }
  | { readonly type: 'writeFailed'; readonly cursor: string }
  | { readonly type: 'answered'; readonly request: number; readonly outcome: HttpOutcome };

export type SenderEvent = { readonly nowMs: number } & SenderInput;

export type SenderEffect =
  /** Answered by `slab` or `readFailed`. */
  | { readonly type: 'read'; readonly cursor: string; readonly offset: number; readonly limits: SlabLimits }
  /** Answered by `written` or `writeFailed`. */
  | { readonly type: 'write'; readonly cursor: string; readonly offset: number }
  /** Answered by one `answered`, after `timeoutMs` at the latest. */
  | {
      readonly type: 'request';
      readonly id: number;
      readonly remote: string;
      /** Names the remote's ID and credential version. Where that is not the current one any more, nothing is sent. */
      readonly credential: string;
      readonly request: SenderRequest;
      readonly timeoutMs: number;
      /** How long the request waited for a slot. */
      readonly waitedMs: number;
    }
  /** Call with `tick` at this time; replaces the timer that was set. */
  | { readonly type: 'wake'; readonly atMs: number }
  | { readonly type: 'log'; readonly entry: SenderLog }
  /** After `detach`, or when the link is gone. */
  | { readonly type: 'detached'; readonly cursor: string };

/** Which cursor a log entry is about. */
export interface CursorName {
  readonly parent: string;
  readonly partition: number;
  readonly child: string;
}

/** Something an operator may want to know. Nothing in it comes from a target's answer but the status. */
export type SenderLog =
  /** It stands still: once for each state it gets into; `status` when an answer is the reason. */
  | (CursorName & {
      readonly type: 'stalled';
      readonly level: 'error' | 'warn';
      readonly remote: string;
      readonly state: StalledState;
      readonly status?: number;
    })
  /** It sends again, after a stall that was told. */
  | (CursorName & { readonly type: 'runningAgain'; readonly level: 'info'; readonly after: StalledState })
  /** The target refuses this record, and the lane waits at it. */
  | (CursorName & {
      readonly type: 'blocked';
      readonly level: 'warn';
      readonly offset: number;
      readonly state: StalledState;
    })
  | (CursorName & { readonly type: 'skipped'; readonly level: 'warn'; readonly offset: number })
  /** Records could not be kept in memory, and are read again. */
  | (CursorName & {
      readonly type: 'heldFull';
      readonly level: 'error';
      readonly remote: string;
      readonly unsentRecords: number;
    })
  | (CursorName & { readonly type: 'fewerMessages'; readonly level: 'warn'; readonly remote: string })
  /** The parent's retention took records before they were sent; offsets, both included. */
  | (CursorName & { readonly type: 'lost'; readonly level: 'error'; readonly from: number; readonly to: number })
  | { readonly type: 'credentialUnreadable'; readonly level: 'error'; readonly remote: string };
