/** The host in memory that senders are tested with passes the acceptance suites of its ports. */
import { testLinkCursors, testParentTopics, testRemoteRegistry } from 'isthmus/testing';
import { describe, it } from 'vitest';
import { Cursors, Metadata, Parents } from './sender-stage.js';

describe('the metadata of a sender', () => {
  testRemoteRegistry(() => {
    const registry = new Metadata();
    return {
      registry,
      addRemote: (remote) => registry.setRemote(remote),
      detach(child) {
        registry.links.delete(child);
        registry.moved();
      },
      reopen: () => registry,
    };
  }, it);
});

describe('the parents of a sender', () => {
  testParentTopics((partitions) => {
    const parents = new Parents();
    for (const [partition, records] of partitions.entries()) {
      for (const { key, payload } of records) parents.append(partition, `${key}=${payload}`);
    }
    return {
      parents,
      parent: 'orders',
      append: (partition, { key, payload }) => parents.append(partition, `${key}=${payload}`),
    };
  }, it);
});

describe('the cursors of a sender', () => {
  testLinkCursors(() => {
    const cursors = new Cursors();
    return { cursors, reopen: () => cursors };
  }, it);
});
