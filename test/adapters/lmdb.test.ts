/** The embedded store: what outlives it, what goes on at the same time, and how it stops. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import {
  DedupWindow,
  type EntryBuffers,
  formatSourcePosition,
  type Layout,
  mergeSegments,
  type Offer,
  parseSourcePosition,
  pruneSegment,
  splitSegment,
} from 'isthmus';
import type { LmdbTopic } from 'isthmus/adapters/lmdb';
import { open } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTopic, type StoreFolder, storeFolder, twoSegments } from '../support/lmdb.js';

const nowMs = 1_700_000_000_001;
const PLENTY = { maxEntries: 1000, maxBytes: 1_000_000 };
const at = parseSourcePosition;

let folder: StoreFolder;
beforeEach(() => {
  folder = storeFolder();
});
afterEach(() => folder.remove());

function entry(text: string): EntryBuffers {
  return { head: new TextEncoder().encode(text), payload: new Uint8Array(0) };
}

function texts(topic: LmdbTopic, segmentId: number): string[] {
  return [...topic.entries(segmentId)].map(({ bytes }) => new TextDecoder().decode(bytes));
}

async function change(topic: LmdbTopic, mutation: (layout: Layout) => Layout): Promise<string> {
  const { layout } = topic;
  return (await topic.layoutHost().store.commit(layout.epoch, mutation(layout))).type;
}

/** Another process on the folder, to its end. */
async function otherProcess(...args: string[]): Promise<string[]> {
  const script = fileURLToPath(new URL('../support/lmdb-process.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script, ...args]);
  return stdout.trim().split('\n');
}

describe('what outlives the store', () => {
  it('a topic is found again as it was left: layout, entries, windows, cursors, acknowledgements', async () => {
    const before = await openTopic(await folder.open());
    await before.append(0, entry('a'), { producer: 'p', position: at('7:1') });
    await before.append(0, entry('b'));
    await change(before, (layout) => splitSegment(layout, 1, { nowMs }));
    await before.source('b').acknowledge(0, at('0:0'));
    const record = { session: 3, settled: at('0:1'), drained: false, skipped: [], checkpoints: new Map() };
    await before.cursors('b').write(new Map([[0, record]]));

    const store = await folder.open();
    expect(store.topicNames()).toEqual(['orders']);
    const topic = await store.topic({ topic: 'orders', cluster: 'a' });
    expect(topic.layout.active.map(({ segmentId }) => segmentId)).toEqual([0, 2, 3]);
    expect(texts(topic, 0)).toEqual(['a', 'b']);
    expect(topic.window(0).snapshot()).toEqual({ producers: { p: '7:1' } });
    expect(await topic.cursors('b').load()).toEqual(new Map([[0, record]]));
    expect(topic.backlog(0, 'b')).toBe(1);
    expect(await topic.append(0, entry('c'))).toEqual({ type: 'stored', at: at('0:2') });
  });

  it('a stored window answers as one in memory does, whatever is offered and whenever the store is opened anew', async () => {
    const arbPosition = fc.record({ entry: fc.nat(6), part: fc.option(fc.constantFrom(0x3fff, 0xffff)) });
    const arbOffer = fc.record({
      producer: fc.constantFrom('p', 'q'),
      position: arbPosition,
      previous: fc.option(arbPosition),
      lowestHash: fc.constantFrom(0, 0x4000),
      completeTo: fc.constantFrom(undefined, null, at('7:0')),
    });
    const toPosition = ({ entry, part }: { entry: number; part: number | null }) =>
      at(part === null ? `7:${entry}` : `7:${entry}:${part}`);
    const steps = fc.array(
      fc.oneof({ weight: 9, arbitrary: arbOffer }, { weight: 1, arbitrary: fc.constant('reopen') }),
      {
        maxLength: 30,
      },
    );
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (offers) => {
        const name = `topic ${runs++}`;
        const openNamed = async () => (await folder.open()).topic({ topic: name, cluster: 'a', layout: twoSegments() });
        const model = new DedupWindow();
        let topic = await openNamed();
        for (const step of offers) {
          if (typeof step === 'string') {
            topic = await openNamed();
            continue;
          }
          const { producer, position, previous, lowestHash, completeTo } = step;
          const offer: Offer = {
            position: toPosition(position),
            previous: previous === null ? undefined : toPosition(previous),
            lowestHash,
            completeTo,
          };
          const expected = model.offer(producer, offer);
          const result = await topic.append(0, entry('x'), { producer, ...offer });
          const answer = result.type === 'partial' ? { partial: result.partial } : result.type;
          expect(answer).toEqual(expected === 'accept' ? 'stored' : expected);
        }
        expect(topic.window(0).snapshot()).toEqual(model.snapshot());
      }),
      { numRuns: 25 },
    );
  });

  it('topics of one store, and remotes of one topic, know nothing of each other', async () => {
    const store = await folder.open();
    const layout = twoSegments();
    const [one, other] = (await Promise.all(
      ['one', 'other'].map((topic) => store.topic({ topic, cluster: 'a', layout })),
    )) as [LmdbTopic, LmdbTopic];
    await Promise.all([one.append(0, entry('1')), other.append(0, entry('2')), other.append(0, entry('3'))]);
    await change(one, (layout) => splitSegment(layout, 0, { nowMs }));
    expect([texts(one, 0), texts(other, 0), other.layout.epoch]).toEqual([['1'], ['2', '3'], layout.epoch]);
    for (const remote of ['b', 'bb', 'c']) {
      await other.source(remote).acknowledge(0, at('0:0'));
      await other
        .cursors(remote)
        .write(new Map([[0, { session: 1, drained: false, skipped: [], checkpoints: new Map() }]]));
    }
    await other.source('b').release();
    expect(['b', 'bb', 'c'].map((remote) => other.backlog(0, remote))).toEqual([2, 1, 1]);
    expect((await other.cursors('b').load()).size).toBe(1);
    expect((await one.cursors('b').load()).size).toBe(0);
  });
});

describe('what goes on at the same time', () => {
  it('many appends in flight are stored and answered in the order of the calls', async () => {
    const topic = await openTopic(await folder.open());
    const answered: number[] = [];
    const appends = Array.from({ length: 5000 }, async (_, i) => {
      const result = await topic.append(i % 2, entry(`${i}`));
      answered.push(i);
      return result.type === 'stored' ? formatSourcePosition(result.at) : result.type;
    });
    expect(await Promise.all(appends)).toEqual(appends.map((_, i) => `${i % 2}:${i >> 1}`));
    expect(answered).toEqual([...answered].sort((a, b) => a - b));
    expect(texts(topic, 1).map(Number)).toEqual(Array.from({ length: 2500 }, (_, i) => 2 * i + 1));
  });

  it('what is wrong with one append is not the fault of those beside it', async () => {
    const store = await folder.open();
    const topic = await store.topic({ topic: 'small', cluster: 'a', layout: twoSegments(), maxEntryBytes: 3 });
    const offer = { producer: 'p', position: { ledgerId: -1n, entryId: 0n } };
    const results = await Promise.allSettled([
      topic.append(0, entry('1')),
      topic.append(0, entry('long')),
      topic.append(9, entry('2')),
      topic.append(0, entry('3'), offer),
      topic.append(0, entry('4')),
    ]);
    const outcomes = results.map((result) => (result.status === 'rejected' ? result.reason.code : result.value.type));
    expect(outcomes).toEqual(['stored', 'tooLarge', 'invalidArgument', 'invalidPosition', 'stored']);
    expect(texts(topic, 0)).toEqual(['1', '4']);
  });

  it('R13: a seal comes between two sends: what lies before it is known to the successors, what lies behind is turned away', async () => {
    const topic = await openTopic(await folder.open());
    const results: string[] = [];
    const opened = await topic.remote('b').open(5, 0, (result) => results.push(result.type));
    if (opened.type !== 'opened') throw new Error(opened.reason);
    let commit: Promise<string> | undefined;
    for (let i = 0; i < 3000; i++) {
      const previous = i === 0 ? undefined : at(`7:${i - 1}`);
      opened.producer.send({ position: at(`7:${i}`), previous, lowestHash: undefined, buffers: entry(`${i}`) });
      if (i % 500 === 499) await new Promise((resolve) => setTimeout(resolve, 1));
      if (i === 1500) commit = change(topic, (layout) => splitSegment(layout, 0, { nowMs }));
    }
    expect(await commit).toBe('committed');
    await expect.poll(() => results.length).toBe(3000);
    const stored = results.filter((type) => type === 'stored').length;
    expect(results).toEqual([...Array(stored).fill('stored'), ...Array(3000 - stored).fill('sealed')]);
    expect(texts(topic, 0).length).toBe(stored);
    for (const childId of [2, 3]) {
      expect(topic.window(childId).snapshot().producers).toEqual({ 'pulsar.repl.b.5': `7:${stored - 1}` });
    }
  });

  it('entries that were read stay as they are, whatever is stored and read afterwards', async () => {
    const topic = await openTopic(await folder.open());
    const sizes = [0, 1, 100, 3000, 20_000, 100_000, 1_000_000];
    for (const [i, size] of sizes.entries()) {
      await topic.append(0, { head: Uint8Array.of(i), payload: new Uint8Array(size).fill(i) });
    }
    const { signal } = new AbortController();
    const read = await topic.source('b').read(0, undefined, { maxEntries: 100, maxBytes: 10_000_000, signal });
    for (let i = 0; i < 50; i++) {
      await topic.append(1, { head: Uint8Array.of(99), payload: new Uint8Array(30_000).fill(99) });
      [...topic.entries(1)].at(-1);
    }
    expect(read.entries.map(({ bytes }) => bytes.length)).toEqual(sizes.map((size) => size + 1));
    for (const [i, { bytes }] of read.entries.entries()) expect(bytes.every((byte) => byte === i)).toBe(true);
  });

  it('a second process may append: what is read later has its entries, and waits are woken by the own process', async () => {
    const topic = await openTopic(await folder.open());
    await topic.append(0, entry('own'));
    let woken = false;
    const { signal } = new AbortController();
    const waiting = topic.source('b').read(0, at('0:0'), { ...PLENTY, signal });
    waiting.then(
      () => {
        woken = true;
      },
      () => {},
    );
    expect(await otherProcess('append', folder.path, '3')).toEqual(['stored 3', 'closed']);
    expect([...topic.entries(0)].length).toBe(4);
    expect(woken).toBe(false);
    expect(await topic.append(0, entry('again'))).toEqual({ type: 'stored', at: at('0:4') });
    expect((await waiting).entries.length).toBe(4);
  });
});

describe('segments behind the layout', () => {
  it('one that was created takes nothing until the layout has it, and may be deleted and created again', async () => {
    const topic = await openTopic(await folder.open());
    const next = splitSegment(topic.layout, 0, { nowMs });
    const created = [...next.segments.values()].filter(({ segmentId }) => segmentId > 1);
    const { store, segments } = topic.layoutHost();
    await segments.create(created);
    await expect(topic.append(2, entry('x'))).rejects.toMatchObject({ code: 'invalidArgument' });
    expect(await topic.remote('b').open(0, 2, () => {})).toMatchObject({ type: 'unavailable' });
    await segments.delete([2, 3]);
    await segments.create(created);
    expect(await store.commit(topic.layout.epoch, next)).toEqual({ type: 'committed' });
    expect(await topic.append(2, entry('x'))).toMatchObject({ type: 'stored' });
  });

  it('one that is sealed before the layout says so takes nothing, and is read to its end', async () => {
    const topic = await openTopic(await folder.open());
    await topic.append(0, entry('x'));
    const { segments } = topic.layoutHost();
    const { signal } = new AbortController();
    const waiting = topic.source('b').read(0, at('0:0'), { ...PLENTY, signal });
    await segments.seal([0]);
    expect(await waiting).toEqual({ entries: [], ended: true });
    expect(await topic.append(0, entry('y'))).toEqual({ type: 'sealed' });
    expect(await topic.remote('b').open(0, 0, () => {})).toMatchObject({ type: 'sealed' });
    await expect(segments.seal([0, 9])).rejects.toMatchObject({ code: 'invalidArgument' });
  });

  it('a commit that does not raise the epoch is refused, and so is a segment that comes back', async () => {
    const topic = await openTopic(await folder.open());
    const { store, segments } = topic.layoutHost();
    const same = store.commit(topic.layout.epoch, topic.layout);
    await expect(same).rejects.toMatchObject({ code: 'invalidArgument', message: expect.stringContaining('epoch') });
    const before = topic.layout;
    await topic.append(0, entry('x'));
    await change(topic, (layout) => splitSegment(layout, 0, { nowMs }));
    await change(topic, (layout) => pruneSegment(layout, 0));
    const first = before.segments.get(0);
    await expect
      .poll(() =>
        segments.create(first === undefined ? [] : [first]).then(
          () => 'created',
          (error) => error.code,
        ),
      )
      .toBe('created');
    expect(texts(topic, 0)).toEqual([]);
  });

  it('pruning removes the entries piece by piece, and the next opening finishes what was cut off', async () => {
    const topic = await openTopic(await folder.open());
    await Promise.all(
      Array.from({ length: 5000 }, (_, i) =>
        topic.append(0, entry(`${i}`), { producer: `p${i % 9}`, position: at(`7:${i}`) }),
      ),
    );
    await topic.append(1, entry('kept'));
    await topic.source('b').acknowledge(0, at('0:7'));
    await change(topic, (layout) => mergeSegments(layout, 0, 1, { nowMs }));
    const waiting = topic.source('b').read(0, at('0:4999'), { ...PLENTY, signal: new AbortController().signal });
    expect((await waiting).ended).toBe(true);
    await change(topic, (layout) => pruneSegment(layout, 0));
    await expect(topic.source('b').lastPosition(0)).rejects.toMatchObject({ code: 'invalidArgument' });
    expect(await topic.remote('b').watermark(0, 0)).toEqual({ type: 'pruned' });
    await folder.close();
    const counts = () => {
      const root = open(folder.path, { noSubdir: false, overlappingSync: false, readOnly: true });
      const names = ['entries', 'segments', 'windows', 'acknowledged'];
      const found = names.map((name) => {
        const keyEncoding = name === 'entries' ? 'binary' : 'ordered-binary';
        return root.openDB(name, { keyEncoding }).getKeysCount();
      });
      return root.close().then(() => found);
    };
    expect((await counts())[0]).toBeGreaterThan(1);
    const leftAfterOpening = async () => {
      await openTopic(await folder.open());
      await folder.close();
      return counts();
    };
    // The entry of segment 1, segments 1 and 2, and what segment 2 has inherited: of nine producers nothing.
    await expect.poll(leftAfterOpening, { timeout: 10_000 }).toEqual([1, 2, 0, 0]);
  });
});

describe('a store that stops', () => {
  it('what was submitted before a close is stored; what waits or comes later is turned away', async () => {
    const store = await folder.open();
    const topic = await openTopic(store);
    const results: string[] = [];
    const opened = await topic.remote('b').open(0, 0, (result) => results.push(result.type));
    if (opened.type !== 'opened') throw new Error(opened.reason);
    const { signal } = new AbortController();
    const reading = topic.source('b').read(1, undefined, { ...PLENTY, signal });
    const watching = (async () => {
      for await (const _ of topic.layoutHost().store.watch(signal));
    })();
    const turnedAway = Promise.all([reading, watching].map((waiting) => expect(waiting).rejects.toThrow(/is closed/)));
    const stored = topic.append(0, entry('x'));
    const closing = store.close();
    opened.producer.send({ position: at('7:1'), previous: undefined, lowestHash: undefined, buffers: entry('y') });
    const late = expect(topic.append(0, entry('z'))).rejects.toThrow(/is closed/);
    expect(await stored).toMatchObject({ type: 'stored' });
    await Promise.all([closing, late, turnedAway]);
    expect(results).toEqual(['unavailable']);
    expect(() => topic.layout).toThrow(/is closed/);
    expect(await topic.remote('b').open(1, 0, () => {})).toMatchObject({ type: 'unavailable' });
    expect(texts(await openTopic(await folder.open()), 0)).toEqual(['x']);
  });

  it.skipIf(process.platform === 'win32')(
    'a full disk stops the store with its reason, and what was stored is there',
    async () => {
      const script = fileURLToPath(new URL('../support/lmdb-process.ts', import.meta.url));
      const limited = ['-c', 'ulimit -f 1500 && exec "$0" "$@"', process.execPath, '--import', 'tsx', script];
      const { stdout } = await promisify(execFile)('bash', [...limited, 'fill', folder.path]);
      const stored = /^stored (\d+)$/m.exec(stdout)?.[1];
      expect(stdout).toMatch(
        /^failed Error: the commit failed: .*\nstored \d+\nlater Error: the store takes no more writes/,
      );
      expect(stdout).toMatch(new RegExp(`read ${stored}\nclosed\n$`));
      expect([...(await openTopic(await folder.open())).entries(0)].length).toBe(Number(stored));
    },
  );
});
