/** Stores in folders of their own, which are gone after the test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLayout, type Layout } from 'isthmus';
import { type LmdbStore, type LmdbTopic, openStore } from 'isthmus/adapters/lmdb';

/** A folder that can be opened, closed and opened again. */
export interface StoreFolder {
  readonly path: string;
  /** Opens the store, once the one that is open has been closed. */
  open(): Promise<LmdbStore>;
  close(): Promise<void>;
  remove(): Promise<void>;
}

export function storeFolder(): StoreFolder {
  const path = mkdtempSync(join(tmpdir(), 'isthmus-lmdb-'));
  let open: LmdbStore | undefined;
  const close = async () => open?.close();
  return {
    path,
    async open() {
      await close();
      open = await openStore(path);
      return open;
    },
    close,
    async remove() {
      await close();
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Two segments, made at a fixed time. */
export function twoSegments(): Layout {
  return createLayout({ segments: 2, nowMs: 1_700_000_000_000 });
}

/** The topic that most tests use, on cluster `a`. */
export function openTopic(store: LmdbStore): Promise<LmdbTopic> {
  return store.topic({ topic: 'orders', cluster: 'a', layout: twoSegments() });
}
