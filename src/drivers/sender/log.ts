/**
 * What a sender tells of itself: entries for programs, and a line of words and fields for an operator's log. Nothing in
 * them comes from a target but statuses, and nothing from a credential.
 */
import type { CursorName, SenderLog } from '../../sender/index.js';

/** What the driver itself has to tell, besides the machine. */
export type DriverLog =
  /** At the start: which key exchanges remotes are offered. A warning where none is post-quantum. */
  | { readonly type: 'keyExchange'; readonly level: 'info' | 'warn'; readonly groups: string }
  /** Remotes and links are as they were before. */
  | { readonly type: 'registryUnread'; readonly level: 'error'; readonly reason: string }
  /** A stored remote breaks a rule, so that nothing can be sent to it. */
  | { readonly type: 'remoteUnusable'; readonly level: 'error'; readonly remote: string; readonly reason: string }
  | { readonly type: 'linkUnusable'; readonly level: 'error'; readonly child: string; readonly reason: string }
  | (CursorName & { readonly type: 'cursorUnread'; readonly level: 'error'; readonly reason: string })
  | (CursorName & { readonly type: 'cursorUnwritten'; readonly level: 'error'; readonly reason: string })
  | (CursorName & { readonly type: 'parentUnread'; readonly level: 'warn'; readonly reason: string });

export type RemoteSenderEvent = SenderLog | DriverLog;

/** Where lines go; `console` is one. */
export interface SenderLogger {
  error(message: string, fields: Readonly<Record<string, string | number>>): void;
  warn(message: string, fields: Readonly<Record<string, string | number>>): void;
  info(message: string, fields: Readonly<Record<string, string | number>>): void;
}

const WORDS: Readonly<Record<RemoteSenderEvent['type'], string>> = {
  stalled: 'a remote child has stalled',
  runningAgain: 'a remote child runs again',
  blocked: 'a remote child is blocked on a record that the target refuses',
  skipped: 'a record was skipped on request',
  heldFull: 'no room to hold waiting records: they are read again later',
  fewerMessages: 'the target takes fewer messages a request than it said',
  lost: 'the parent dropped records before they were sent',
  credentialUnreadable: 'the credential of a remote does not open on this node',
  keyExchange: 'key exchanges that are offered to remotes',
  registryUnread: 'remotes and links could not be read',
  remoteUnusable: 'a stored remote cannot be used',
  linkUnusable: 'a stored link cannot be used',
  cursorUnread: 'a cursor could not be read',
  cursorUnwritten: 'a cursor could not be written',
  parentUnread: 'a parent could not be read',
};

const REPEAT_MS = 60_000;

export class SenderVoice {
  private readonly toldMs = new Map<string, number>();

  constructor(
    private readonly logger: SenderLogger | undefined,
    private readonly emit: (event: RemoteSenderEvent) => void,
  ) {}

  tell(event: RemoteSenderEvent): void {
    this.emit(event);
    const { type, level, ...fields } = event;
    this.logger?.[level](WORDS[type], fields);
  }

  /** What goes wrong again and again is told once a minute for each subject. */
  repeat(event: DriverLog, nowMs: number): void {
    const { reason: _, ...subject } = { reason: '', ...event };
    const key = JSON.stringify(subject);
    if (nowMs - (this.toldMs.get(key) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS) return;
    this.toldMs.set(key, nowMs);
    this.tell(event);
  }
}
