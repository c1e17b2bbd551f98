/** What the example of a remote child keeps in a folder, and what it reads from one, passes the acceptance suites. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testLinkCursors, testParentTopics, testRemoteRegistry } from 'isthmus/testing';
import { describe, it } from 'vitest';
import { NdjsonParent } from '../../examples/remote-child/ndjson-parent.js';
import { FolderCursors, FolderRegistry } from '../../examples/remote-child/state-folder.js';

function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'isthmus-remote-child-'));
  return { folder, teardown: () => rmSync(folder, { recursive: true, force: true }) };
}

describe('the example’s registry', () => {
  testRemoteRegistry(async () => {
    const { folder, teardown } = newFolder();
    const registry = await FolderRegistry.open(folder);
    return {
      registry,
      addRemote: (remote) => registry.addRemote(remote),
      reopen: () => FolderRegistry.open(folder),
      teardown,
    };
  }, it);
});

describe('the example’s cursors', () => {
  testLinkCursors(() => {
    const { folder, teardown } = newFolder();
    return { cursors: new FolderCursors(folder), reopen: () => new FolderCursors(folder), teardown };
  }, it);
});

describe('the example’s parent', () => {
  testParentTopics((partitions) => {
    const { folder, teardown } = newFolder();
    for (const [partition, records] of partitions.entries()) {
      const lines = records.map(({ payload }) => `${payload}\n`);
      writeFileSync(join(folder, `${partition}.ndjson`), lines.join(''));
    }
    return { parents: new NdjsonParent('flights', folder, 'key'), parent: 'flights', teardown };
  }, it);
});
