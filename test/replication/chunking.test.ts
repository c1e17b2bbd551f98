/** R6: which entries are chunks of one message, and what a message that stays incomplete holds back. */
import { describe, expect, it } from 'vitest';
import type { ChunkInfo, SourcePosition } from '../../src/entry/index.js';
import { Chunking } from '../../src/replication/chunking.js';
import type { EntryRecord } from '../../src/replication/entry-record.js';
import { EntryWindow } from '../../src/replication/entry-window.js';

const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });

/** A window with entries, each named by `uuid chunk/chunks`, or `-` for none, and what became of them. */
class Stage {
  readonly window = new EntryWindow();
  readonly told: string[] = [];
  nowMs = 0;
  readonly chunking: Chunking;

  constructor(options = { chunkExpiryMs: 1_000, maxSpanEntries: 100 }) {
    const { window, told } = this;
    const stage = this;
    this.chunking = new Chunking({
      window,
      options,
      get nowMs() {
        return stage.nowMs;
      },
      before: ({ index }) => (index === 0 ? undefined : at(index - 1)),
      settle: (record) => {
        window.settle(record);
        told.push(`settled ${record.index}`);
      },
      needPlan: ({ index }) => told.push(`again ${index}`),
      gaveUp: ({ uuid, first }) => told.push(`gave up ${uuid} from ${first.entryId}`),
    });
  }

  add(words: string): EntryRecord {
    const record = this.window.add(at(this.window.end), new Uint8Array(8));
    this.chunking.track(record, chunkOf(words));
    return record;
  }

  /** What is told since it was asked last. */
  get news(): string[] {
    return this.told.splice(0);
  }

  store(...records: readonly EntryRecord[]): void {
    for (const record of records) {
      this.chunking.sending(record, 3);
      if (record.message !== undefined) this.chunking.stored(record, record.message);
    }
  }
}

/** `m 1/2`: the first of two chunks of a message; `-`: none. */
function chunkOf(words: string): ChunkInfo | undefined {
  const [uuid = '', share] = words.split(' ');
  if (share === undefined) return undefined;
  const [number = 0, numChunks = 0] = share.split('/').map(Number);
  return { uuid, chunkId: number - 1, numChunks, totalSize: 9 };
}

describe('a chunked message', () => {
  it('is settled as a whole, when its last chunk is stored', () => {
    const stage = new Stage();
    const [first, other, second] = [stage.add('m 1/2'), stage.add('-'), stage.add('m 2/2')] as const;
    expect([first, other, second].map(({ message }) => message?.uuid)).toEqual(['m', undefined, 'm']);
    stage.store(first);
    expect([stage.news, first.bytes, stage.window.unsettledEntries]).toEqual([[], undefined, 2]);
    stage.store(second);
    expect([stage.news, stage.chunking.isEmpty, stage.window.unsettledEntries]).toEqual([
      ['settled 0', 'settled 2'],
      true,
      1,
    ]);
  });

  it.each<[string, string[], (string | undefined)[]]>([
    ['a first chunk that was not seen', ['m 2/2'], [undefined]],
    ['a chunk is missing', ['m 1/3', 'm 3/3'], ['m', undefined]],
    ['another count', ['m 1/2', 'm 2/3'], ['m', undefined]],
    ['two messages, one in the other', ['m 1/2', 'n 1/2', 'n 2/2', 'm 2/2'], ['m', 'n', 'n', 'm']],
    ['one that comes twice', ['m 1/3', 'm 2/3', 'm 2/3'], ['m', 'm', undefined]],
  ])('takes its chunks in order, others go alone: %s', (_, words, expected) => {
    const stage = new Stage();
    const records = words.map((one) => stage.add(one));
    expect(records.map(({ message }) => message?.uuid)).toEqual(expected);
    expect(records.map(({ isAlone }) => isAlone)).toEqual(expected.map((uuid) => uuid === undefined));
    // Planned again, each is what it was.
    for (const [i, record] of records.entries()) stage.chunking.track(record, chunkOf(words[i] ?? '-'));
    expect(records.map(({ message }) => message?.uuid)).toEqual(expected);
  });

  it('that begins anew under its name gives up the one before: what is stored of that is settled', () => {
    const stage = new Stage();
    const [first, second] = [stage.add('m 1/3'), stage.add('m 2/3')];
    stage.store(first);
    const anew = stage.add('m 1/2');
    expect(stage.news).toEqual(['gave up m from 0', 'settled 0']);
    expect([first, second, anew].map(({ message, isAlone }) => [message?.first.entryId, isAlone])).toEqual([
      [undefined, true],
      [undefined, true],
      [2n, false],
    ]);
  });

  it('of which a chunk passes unsent cannot become complete', () => {
    const stage = new Stage();
    const record = stage.add('m 1/2');
    stage.chunking.passed(stage.add('-'));
    expect(stage.news).toEqual([]);
    stage.chunking.passed(record);
    expect([stage.news, stage.chunking.isEmpty]).toEqual([['gave up m from 0'], true]);
  });

  it('is given up at the end of the source if a chunk of it was never read', () => {
    const stage = new Stage();
    for (const words of ['m 1/2', 'n 1/2', 'n 2/2']) stage.add(words);
    stage.chunking.ended();
    expect([stage.news, stage.chunking.isEmpty]).toEqual([['gave up m from 0'], false]);
  });

  it('goes again as a whole where a seal cuts it, and only there', () => {
    const stage = new Stage();
    const [first, second, other] = [stage.add('m 1/3'), stage.add('m 2/3'), stage.add('n 1/2')] as const;
    stage.store(first);
    stage.chunking.sending(second, 3);
    stage.chunking.sending(other, 4);
    second.repeated = 'ambiguous';
    stage.chunking.closed(3);
    expect([stage.news, stage.window.unsettledEntries]).toEqual([['again 0', 'again 1'], 3]);
    expect([first, second, other].map(({ repeated }) => repeated)).toEqual(['rewind', 'ambiguous', undefined]);
    stage.chunking.closed(3);
    expect(stage.news).toEqual([]);
  });

  it('holds back what a seal hands on, from its first chunk to its last', () => {
    const stage = new Stage();
    const upTo = (...ids: number[]) => ids.map((id) => stage.chunking.completeTo(3, at(id)));
    stage.add('-');
    const first = stage.add('m 1/2');
    expect(upTo(0, 1)).toEqual([undefined, undefined]);
    stage.chunking.sending(first, 3);
    stage.chunking.sending(stage.add('-'), 3);
    expect(upTo(0, 1, 2)).toEqual([undefined, at(0), at(0)]);
    expect(stage.chunking.completeTo(4, at(2))).toBeUndefined();
    stage.add('m 2/2');
    expect(upTo(0, 1, 2, 3, 4)).toEqual([undefined, at(0), at(0), undefined, undefined]);
    const begun = new Stage();
    begun.chunking.sending(begun.add('m 1/2'), 3);
    expect(begun.chunking.completeTo(3, at(0))).toBeNull();
  });
});

describe('time and room', () => {
  it('end a message that is too old, the oldest first, and say when the next is', () => {
    const stage = new Stage();
    stage.add('m 1/2');
    stage.nowMs = 400;
    stage.add('n 1/2');
    expect(stage.chunking.due()).toBe(1_000);
    stage.nowMs = 999;
    expect([stage.chunking.due(), stage.news]).toEqual([1_000, []]);
    stage.nowMs = 1_000;
    expect([stage.chunking.due(), stage.news]).toEqual([1_400, ['gave up m from 0']]);
    stage.nowMs = 1_400;
    expect([stage.chunking.due(), stage.news]).toEqual([undefined, ['gave up n from 1']]);
  });

  it('end the first message of which something is stored where too much lies behind it', () => {
    const stage = new Stage({ chunkExpiryMs: 1_000, maxSpanEntries: 3 });
    const record = stage.add('m 1/2');
    for (let i = 0; i < 2; i++) stage.add('-');
    expect([stage.chunking.due(), stage.news]).toEqual([1_000, []]);
    stage.store(record);
    expect([stage.chunking.due(), stage.news]).toEqual([undefined, ['gave up m from 0', 'settled 0']]);
  });
});
