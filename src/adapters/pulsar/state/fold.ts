/**
 * What the records of a state topic amount to, read in their order: cursors by store, segment and session; bundles that
 * are not written out yet; members. The value of a segment is its highest session's, so it does not depend on the order
 * of keys, which compaction changes; only the verdict on a write does, and that is given once, where its record lies.
 */
import type { Clock, CursorRecord, CursorWrite } from '../../../ports/index.js';
import type { LogFollower } from './log.js';
import {
  type Bundle,
  cursorKey,
  formatCursor,
  type Heartbeat,
  parseBundle,
  parseCursor,
  parseHeartbeat,
  parseKey,
} from './records.js';

/** A bundle that lies in the log: what of it is still to be written record by record before it may be deleted. */
export interface OpenBundle {
  readonly key: string;
  readonly process: string;
  readonly seenMs: number;
  /** By the key of a record; undefined: to be deleted. */
  readonly rest: Map<string, object | undefined>;
}

/** One topic and remote. */
export class StoreFold {
  /** By segment and session. */
  private readonly sessions = new Map<number, Map<number, CursorRecord>>();
  readonly bundles = new Map<string, OpenBundle>();

  constructor(private readonly store: string) {}

  /** The record of the highest session, by segment. */
  records(): Map<number, CursorRecord> {
    const records = new Map<number, CursorRecord>();
    for (const [segmentId, sessions] of this.sessions) {
      const record = sessions.get(Math.max(...sessions.keys()));
      if (record !== undefined) records.set(segmentId, record);
    }
    return records;
  }

  /** The keys of a segment's records, the highest session's last. */
  keysOf(segmentId: number): string[] {
    const sessions = [...(this.sessions.get(segmentId)?.keys() ?? [])].sort((a, b) => a - b);
    return sessions.map((session) => cursorKey(this.store, segmentId, session));
  }

  /** A record by itself. */
  put(segmentId: number, record: CursorRecord): CursorWrite {
    this.writtenOut(cursorKey(this.store, segmentId, record.session));
    const verdict = this.judge(new Map([[segmentId, record]]));
    // What comes too late is kept below its successor's, as it is in the topic: nothing depends on when it is deleted.
    this.set(segmentId, record);
    return verdict;
  }

  remove(segmentId: number, session: number): void {
    this.writtenOut(cursorKey(this.store, segmentId, session));
    const sessions = this.sessions.get(segmentId);
    sessions?.delete(session);
    if (sessions?.size === 0) this.sessions.delete(segmentId);
  }

  /** All of a bundle, or nothing. */
  putBundle(bundle: Omit<OpenBundle, 'rest'>, { puts, removed }: Bundle): CursorWrite {
    const verdict = this.judge(puts);
    const rest = new Map<string, object | undefined>();
    this.bundles.set(bundle.key, { ...bundle, rest });
    if (verdict.type === 'fenced') return verdict;
    for (const segmentId of removed) {
      for (const key of this.keysOf(segmentId)) rest.set(key, undefined);
      this.sessions.delete(segmentId);
    }
    for (const [segmentId, record] of puts) {
      rest.set(cursorKey(this.store, segmentId, record.session), formatCursor(record));
      this.set(segmentId, record);
    }
    return verdict;
  }

  /** Refused when a later session has written one of the segments. */
  private judge(puts: ReadonlyMap<number, CursorRecord>): CursorWrite {
    let latest = -1;
    for (const [segmentId, { session }] of puts) {
      for (const other of this.sessions.get(segmentId)?.keys() ?? [])
        if (other > session) latest = Math.max(latest, other);
    }
    return latest < 0 ? { type: 'written' } : { type: 'fenced', session: latest };
  }

  private set(segmentId: number, record: CursorRecord): void {
    const sessions = this.sessions.get(segmentId);
    if (sessions === undefined) this.sessions.set(segmentId, new Map([[record.session, record]]));
    else sessions.set(record.session, record);
  }

  /** The log holds a record of its own under this key now. */
  private writtenOut(key: string): void {
    for (const { rest } of this.bundles.values()) rest.delete(key);
  }
}

/** A process that says that it lives. */
export interface LiveMember extends Heartbeat {
  /** When it was heard last, by the clock of this process. */
  readonly heardMs: number;
}

export class StateFold implements LogFollower<CursorWrite> {
  readonly members = new Map<string, LiveMember>();
  private readonly stores = new Map<string, StoreFold>();

  constructor(
    private readonly clock: Clock,
    private readonly onMember: () => void,
  ) {}

  store(name: string): StoreFold {
    let store = this.stores.get(name);
    if (store === undefined) {
      store = new StoreFold(name);
      this.stores.set(name, store);
    }
    return store;
  }

  reset(): void {
    this.stores.clear();
    this.members.clear();
  }

  fold(text: string, value: unknown): CursorWrite {
    const key = parseKey(text);
    const written: CursorWrite = { type: 'written' };
    if (key === undefined) return written;
    if (key.type === 'member') {
      if (value === undefined) this.members.delete(key.process);
      else this.members.set(key.process, { ...parseHeartbeat(value), heardMs: this.clock.now() });
      this.onMember();
      return written;
    }
    const store = this.store(key.store);
    if (key.type === 'cursor') {
      if (value !== undefined) return store.put(key.segmentId, parseCursor(value, key.session));
      store.remove(key.segmentId, key.session);
      return written;
    }
    if (value !== undefined) {
      return store.putBundle({ key: text, process: key.process, seenMs: this.clock.now() }, parseBundle(value));
    }
    store.bundles.delete(text);
    return written;
  }
}
