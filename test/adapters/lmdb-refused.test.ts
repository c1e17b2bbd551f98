/** What the embedded store refuses, with the value and the rule: folders that are no stores, and topics that are others. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openStore } from 'isthmus/adapters/lmdb';
import { open } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type StoreFolder, storeFolder, twoSegments } from '../support/lmdb.js';

let folder: StoreFolder;
beforeEach(() => {
  folder = storeFolder();
});
afterEach(() => folder.remove());

describe('what is refused', () => {
  const refused = (message: RegExp) => ({ code: 'invalidArgument', message: expect.stringMatching(message) });

  it('a folder that is open already, under any of its names', async () => {
    await folder.open();
    await expect(openStore(join(folder.path, '..', basename(folder.path)))).rejects.toMatchObject(
      refused(/opens a store once/),
    );
  });

  it('a folder that holds something else, or is none', async () => {
    const file = join(folder.path, 'file');
    writeFileSync(file, 'x');
    await expect(openStore(file)).rejects.toMatchObject(refused(/a folder that can be written/));
    const foreign = open(join(folder.path, 'foreign'), { noSubdir: false });
    await foreign.openDB('users', {}).put('key', 'value');
    await foreign.close();
    await expect(openStore(join(folder.path, 'foreign'))).rejects.toMatchObject(
      refused(/"users".*no store of isthmus/),
    );
    const contents: [Uint8Array, RegExp][] = [
      [new Uint8Array(100_000).fill(7), /not one of LMDB/],
      [Uint8Array.of(1), /not one of LMDB/],
      [readFileSync(join(folder.path, 'foreign', 'data.mdb')).subarray(0, 5000), /cut off after 5000 bytes/],
    ];
    for (const [i, [bytes, message]] of contents.entries()) {
      const broken = join(folder.path, `broken ${i}`);
      mkdirSync(broken);
      writeFileSync(join(broken, 'data.mdb'), bytes);
      await expect(openStore(broken)).rejects.toMatchObject(refused(message));
    }
  });

  it('a folder of another format', async () => {
    await folder.open();
    await folder.close();
    const root = open(folder.path, { noSubdir: false, overlappingSync: false });
    await root.openDB('meta', { encoding: 'json' }).put('format', 2);
    await root.close();
    await expect(openStore(folder.path)).rejects.toMatchObject(refused(/format 2.*reads format 1/));
  });

  it('a topic of another cluster, a new one without a layout, one that is open with other options, and bad names', async () => {
    const store = await folder.open();
    const layout = twoSegments();
    await store.topic({ topic: 't', cluster: 'a', layout });
    const cases: [Parameters<typeof store.topic>[0], RegExp][] = [
      [{ topic: 't', cluster: 'b', layout }, /cluster "b".*cluster "a"/],
      [{ topic: 'u', cluster: 'a' }, /topic "u".*needs a layout/],
      [{ topic: 't', cluster: 'a', maxEntryBytes: 7 }, /maxEntryBytes 7.*open with 5242880/],
      [{ topic: 't', cluster: 'a', maxEntryBytes: 0.5 }, /maxEntryBytes 0.5.*integer/],
      [{ topic: '', cluster: 'a', layout }, /topic "".*1 to 512/],
      [{ topic: 'a\0b', cluster: 'a', layout }, /without a zero/],
      [{ topic: 'x'.repeat(513), cluster: 'a', layout }, /1 to 512/],
    ];
    for (const [options, message] of cases) {
      await expect(store.topic(options)).rejects.toMatchObject(refused(message));
    }
    expect(store.topicNames()).toEqual(['t']);
    expect(await store.topic({ topic: 'u', cluster: 'a', layout })).toBeDefined();
    const topic = await store.topic({ topic: 't', cluster: 'a' });
    for (const make of [() => topic.cursors(''), () => topic.source('a\0'), () => topic.remote('')]) {
      expect(make).toThrow(/a name is a text/);
    }
  });
});
