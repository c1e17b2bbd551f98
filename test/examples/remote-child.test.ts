/** The example of a remote child, whole: real processes, real HTTPS, an outage and a kill. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { compare, countDuplicates } from '../../examples/remote-child/compare.js';
import { NdjsonParent } from '../../examples/remote-child/ndjson-parent.js';
import { FolderCursors, FolderRegistry } from '../../examples/remote-child/state-folder.js';
import { runStory, SLAB_RECORDS } from '../../examples/remote-child/story.js';

let folder: string | undefined;
function newFolder(): string {
  folder = mkdtempSync(join(tmpdir(), 'isthmus-remote-child-'));
  return folder;
}
afterEach(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

describe('the example of a remote child', () => {
  it('nothing is lost and no key is overtaken, though the target goes down and the process is killed', async () => {
    const lines: string[] = [];
    const outcome = await runStory({ records: 12_000, folder: newFolder(), print: (line) => lines.push(line) });
    expect(outcome).toMatchObject({ records: 12_000, lost: 0, strangers: 0, overtaken: 0, lives: 2 });
    // The cursor that was not written sends its slab again; an interruption costs each of three cursors one at most.
    expect(outcome.duplicatesOfKill).toBeGreaterThanOrEqual(1);
    expect(outcome.duplicatesOfKill).toBeLessThanOrEqual(3 * SLAB_RECORDS);
    expect(outcome.duplicatesOfOutage).toBeLessThanOrEqual(3 * SLAB_RECORDS);
    expect(outcome.states.slice(0, 3)).toEqual(['running', 'unavailable', 'running']);
    expect(lines.map((line) => line.replaceAll(/\d+/g, 'N'))).toEqual([
      'copying N records of N partitions in N lanes each to https://N.N.N.N:N',
      'the target goes down with N messages',
      'the link is unavailable; the target comes back',
      'kill -N between a N and the cursor write: partition N had come to record N',
      'all is there: N messages in the second life, N requests',
    ]);
  }, 120_000);

  it('its comparison sees what is lost, strange, overtaken or doubled', () => {
    const bytes = (text: string) => Buffer.from(text);
    const record = (text: string, offset: number) => ({ offset, key: bytes('k'), payload: bytes(text), storedAtMs: 0 });
    const stored = (...texts: string[]) =>
      texts.map((text, offset) => ({ key: bytes('k'), payload: bytes(text), isRaw: true, partition: 0, offset }));
    const records = [['1', '2', '3'].map(record)];
    const good = { records: 3, lost: 0, strangers: 0, overtaken: 0, duplicates: 0 };
    expect(compare(records, stored('1', '2', '3'))).toEqual(good);
    expect(compare(records, stored('1', '2', '1', '2', '3'))).toEqual({ ...good, duplicates: 2 });
    expect(compare(records, stored('1', '3', '2', '3'))).toEqual({ ...good, overtaken: 1, duplicates: 1 });
    expect(compare(records, stored('1', '3', '4'))).toEqual({ ...good, lost: 1, strangers: 1 });
    expect(countDuplicates(stored('1', '1', '2', '1'))).toBe(2);
  });

  it('what outlives the process is there for the next one, and a link keeps its name to itself', async () => {
    const state = newFolder();
    const cursors = new FolderCursors(state);
    expect(await cursors.read('copy', 1, 0)).toBeUndefined();
    await cursors.write('copy', 1, 0, 7);
    expect([await new FolderCursors(state).read('copy', 1, 0), await cursors.read('copy', 2, 0)]).toEqual([
      7,
      undefined,
    ]);
    const registry = await FolderRegistry.open(state);
    const rest = {
      remote: 'b',
      topic: 't',
      targetId: '',
      lanes: 1,
      paused: false,
      skips: [],
      startOffsets: [],
      retentionMs: 0,
    };
    const attach = { type: 'attach', link: { parent: 'p', child: 'copy', ...rest }, delayMs: 0 } as const;
    expect(await registry.write(attach)).toEqual({ type: 'written' });
    expect(await registry.write(attach)).toMatchObject({ type: 'refused' });
    const { attachEpoch = -1 } = (await registry.read()).links[0] ?? {};
    const link = { child: 'copy', attachEpoch };
    await registry.write({ type: 'pause', ...link, reason: 'a test' });
    await registry.write({ type: 'skip', ...link, skip: { partition: 0, offset: 3 } });
    const again = await FolderRegistry.open(state);
    expect([again.version(), (await again.read()).links]).toMatchObject([
      registry.version(),
      [{ paused: true, skips: [{ offset: 3 }] }],
    ]);
    expect(await again.write({ type: 'resume', ...link, attachEpoch: 99, targetId: '' })).toMatchObject({
      type: 'refused',
    });
  });

  it('a folder that is not there, or a line that is no JSON, is refused', () => {
    const empty = newFolder();
    expect(new NdjsonParent('flights', empty, 'origin').partitions).toEqual([]);
    expect(() => new NdjsonParent('flights', join(empty, 'none'), 'origin')).toThrow(/ENOENT/);
  });
});
