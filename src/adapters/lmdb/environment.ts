/**
 * One LMDB environment in a folder, and its tables. Everything that is special to the package `lmdb` is here.
 *
 * The environment is opened without `overlappingSync`, which lmdb-js turns on by default. Without it a transaction is
 * LMDB's own two steps: its pages are written and synced, then the page that points to them is written through to the
 * disk; only then the promise resolves, and only then a reader sees anything of it. With it a reader would see, and a
 * replicator would send, what a power cut can still take back; and nothing would be gained, as the queue in front
 * (`WriteQueue`) puts whatever waits into one transaction anyway.
 */
import { type Database, open, type RootDatabase } from 'lmdb';
import type { DedupSnapshot } from '../../dedup/index.js';
import { IsthmusError, messageOf, show } from '../../errors.js';
import { preparedFolder, syncFolder } from './folder.js';

/** What is known of a topic. */
export interface TopicRow {
  readonly id: number;
  readonly cluster: string;
}

/** What is known of a segment. */
export interface SegmentRow {
  /**
   * - `created`: behind the record, told to nobody; takes no writes.
   * - `deleted`: gone for everybody; its entries are being removed.
   */
  readonly state: 'created' | 'open' | 'sealed' | 'deleted';
  /** How many entries were ever written: the id of the next one. */
  readonly entries: number;
}

/** The stored form of a `CursorRecord`: positions as text in the form of E10. */
export interface CursorRow {
  readonly session: number;
  readonly settled?: string;
  readonly drained: boolean;
  readonly skipped: readonly string[];
  readonly checkpoints: Readonly<Record<string, string>>;
}

/** The tables. Keys that are lists begin with the topic's id, and sort by their members. */
export interface Tables {
  readonly topics: Database<TopicRow, string>;
  /** Pulsar's JSON record of each layout, by topic id. */
  readonly layouts: Database<string, number>;
  /** By topic and segment. */
  readonly segments: Database<SegmentRow, [number, number]>;
  /** The windows, each producer for itself: by topic, segment and producer. */
  readonly windows: Database<DedupSnapshot, [number, number, string]>;
  /** By topic, remote cluster and source segment. */
  readonly cursors: Database<CursorRow, [number, string, number]>;
  /** The last entry id that was acknowledged: by topic, remote cluster and segment. */
  readonly acknowledged: Database<number, [number, string, number]>;
  /** The bytes, by `entryKey`. */
  readonly entries: Database<Uint8Array, Uint8Array>;
}

/** The version of the tables above. A folder of another version is refused, never converted by opening it. */
const FORMAT = 1;

/** Folders that are open in this process: a second environment would not see the first one's wake-ups and locks. */
const openFolders = new Set<string>();

/** An open environment. */
export class Environment {
  private closed = false;

  private constructor(
    /** The folder, as an absolute path. */
    readonly folder: string,
    private readonly root: RootDatabase<unknown, string>,
    private readonly opened: Tables,
  ) {}

  /**
   * Opens the environment in a folder, and makes the folder if there is none. Throws `invalidArgument` for a folder
   * that this process has open already, that holds something else, or that is of another format.
   */
  static open(path: string): Environment {
    const folder = preparedFolder(path);
    if (openFolders.has(folder)) refuse(folder, 'a process opens a store once, and shares it');
    let root: RootDatabase<unknown, string>;
    try {
      root = open(folder, {
        // A folder with a dot in its name would otherwise be taken for a file.
        noSubdir: false,
        overlappingSync: false,
        // With it, a commit that fails rejects a promise that lmdb-js keeps to itself, and that ends the process.
        eventTurnBatching: false,
        encoding: 'json',
      });
    } catch (error) {
      throw new IsthmusError('invalidArgument', `store ${show(folder)}: LMDB cannot open it: ${messageOf(error)}`, {
        cause: error,
      });
    }
    try {
      checkFormat(folder, root);
      const tables = openTables(root);
      syncFolder(folder);
      openFolders.add(folder);
      return new Environment(folder, root, tables);
    } catch (error) {
      // The message of what went wrong is worth more than that of a close that fails on top.
      root.close().catch(() => {});
      throw error;
    }
  }

  /** Throws when the environment is closed: LMDB itself is not to be touched then. */
  get tables(): Tables {
    if (this.closed) throw new Error(`the store ${show(this.folder)} is closed`);
    return this.opened;
  }

  /**
   * Runs work in one transaction of all tables, on this thread, and resolves once it is on the disk. When the work
   * throws, nothing of it is stored and the rejection is what it threw.
   */
  async transaction(work: (tables: Tables) => void): Promise<void> {
    const { tables } = this;
    try {
      // A child transaction, because only such a one is taken back when the work throws.
      await this.root.childTransaction(() => work(tables));
    } catch (error) {
      throw await withReason(error);
    }
  }

  /** Closes the environment. What is being written is finished first. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.root.close();
    openFolders.delete(this.folder);
  }
}

/** Whether a commit failed, rather than the work in it: what the disk has is then not known. */
export function isCommitFailure(error: unknown): boolean {
  return error instanceof Error && 'commitError' in error;
}

/**
 * lmdb-js rejects with an error that says nothing and holds a promise of the reason; left alone, that promise would
 * end the process as an unhandled rejection.
 */
async function withReason(error: unknown): Promise<unknown> {
  if (!isCommitFailure(error)) return error;
  const { commitError } = error as { commitError: Promise<unknown> };
  const reason = await commitError.then(
    () => error,
    (cause: unknown) => cause,
  );
  return Object.assign(new Error(`the commit failed: ${messageOf(reason)}`, { cause: reason }), { commitError });
}

function checkFormat(folder: string, root: RootDatabase<unknown, string>): void {
  // The names of tables are keys of the root.
  const names = [...root.getKeys()];
  const strange = names.find((name) => name !== 'meta');
  const isNew = names.length === 0;
  if (!isNew && !names.includes('meta')) refuse(folder, `it holds ${show(strange)}, which is no store of isthmus`);
  const meta = root.openDB<number, string>('meta', { encoding: 'json' });
  const format = meta.get('format');
  if (format === FORMAT) return;
  // A new store whose making was cut off has no tables yet.
  if (format !== undefined || strange !== undefined) {
    refuse(folder, `it is of format ${show(format)}, and this version reads format ${FORMAT}`);
  }
  meta.putSync('format', FORMAT);
}

function openTables(root: RootDatabase<unknown, string>): Tables {
  return {
    topics: root.openDB('topics', { encoding: 'json' }),
    layouts: root.openDB('layouts', { encoding: 'string' }),
    segments: root.openDB('segments', { encoding: 'json' }),
    windows: root.openDB('windows', { encoding: 'json' }),
    cursors: root.openDB('cursors', { encoding: 'json' }),
    acknowledged: root.openDB('acknowledged', { encoding: 'json' }),
    entries: root.openDB('entries', { encoding: 'binary', keyEncoding: 'binary' }),
  };
}

function refuse(folder: string, rule: string): never {
  throw new IsthmusError('invalidArgument', `store ${show(folder)}: ${rule}`);
}
