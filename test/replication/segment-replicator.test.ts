/**
 * The machine of one segment, one rule at a time: reading, cursors and crashes, schemas, partial answers, a source that
 * was rebuilt, and what wakes it. Longer stories are told in the transcripts beside this.
 */
import { describe, expect, it } from 'vitest';
import type { MemoryRemoteOptions } from '../../src/adapters/memory/index.js';
import { encodeMessage, parseEntry, SOURCE_POSITION_PROPERTY, type SourcePosition } from '../../src/entry/index.js';
import { createLayout, mergeSegments } from '../../src/layout/index.js';
import type { SegmentOptions } from '../../src/replication/index.js';
import { type Process, SegmentStage, START_MS } from '../support/segment-stage.js';
import { encodeEntry } from '../support/stage-entries.js';
import { position, storedText } from '../support/stage-text.js';

interface Given {
  readonly remote?: MemoryRemoteOptions;
  readonly options?: Partial<SegmentOptions>;
  /** Default: the lower half, which goes to one segment as it is. */
  readonly range?: { readonly start: number; readonly end: number };
}

const LOWER = { start: 0, end: 0x7fff };
const WHOLE = { start: 0, end: 0xffff };

function stageOf({ remote = {}, options = {}, range = LOWER }: Given = {}): { stage: SegmentStage; process: Process } {
  const layout = createLayout({ segments: 2, buckets: 1, nowMs: START_MS });
  const stage = new SegmentStage({ source: { range }, layout, remote, options });
  return { stage, process: stage.process('one') };
}

const entry = (kind: string, ...words: string[]) => encodeEntry(kind, words, START_MS);

async function append(stage: SegmentStage, ...entries: readonly Uint8Array[]): Promise<void> {
  for (const bytes of entries) stage.source.append(bytes);
  await stage.sourceChanged();
}

/** Everything stored in a segment, as text. */
const stored = (stage: SegmentStage, segmentId = 0) =>
  storedText(stage.topic).find((line) => line.startsWith(`${segmentId} `));
const sends = (told: readonly string[]) => told.filter((line) => line.startsWith('send'));
const reads = (told: readonly string[]) => told.filter((line) => line.startsWith('read'));
const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });

describe('reading', () => {
  it('B06: a read that was on its way when the place changed is thrown away, and its slot is free', async () => {
    const { stage, process } = stageOf();
    await process.start();
    await append(stage, entry('chunk', 'm', '1/2', '2.7'));
    // The read behind 7:0 is out for long; meanwhile 7:0 has to be sent again, and to be read again for that.
    const comes = process.takeRead();
    stage.held.add('reads');
    expect(reads(await stage.told(() => process.split()))).toEqual(['read ...']);
    await append(stage, entry('single', '2.8'), entry('chunk', 'm', '2/2', '2.7'));
    await comes();
    expect(process.machine.report()).toMatchObject({ unsettledEntries: 1, waitingFor: { for: 'entries' } });
    await process.letGo('reads');
    expect(stored(stage, 2)).toBe('2 0000-3fff: 7:0 (m 1/2), 7:1 (2.8), 7:2 (m 2/2)');
    expect(stage.source.acknowledged).toEqual(at(2));
  });

  it('B18: a read that fails is made again, after longer and longer waits', async () => {
    const { stage, process } = stageOf();
    await process.start();
    stage.held.add('reads');
    const waits: number[] = [];
    for (let i = 0; i < 3; i++) {
      await process.endRead('the source is down');
      expect(process.machine.report().waitingFor).toEqual({ for: 'source', reason: 'the source is down' });
      waits.push((process.wakeAtMs ?? 0) - stage.nowMs);
      await stage.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([100, 200, 400]);
    stage.held.delete('reads');
    await append(stage, entry('single', '2.7'));
    expect(stored(stage)).toBe('0 0000-7fff: 7:0 (2.7)');
  });

  it('B18: while an entry is held, a read that failed is not made again, and sets no timer', async () => {
    const { stage, process } = stageOf();
    await process.start();
    stage.held.add('sends').add('reads');
    stage.source.append(entry('single', '2.7'));
    await process.endRead();
    await process.endRead('the source is down');
    await process.result(0, { type: 'rejected', reason: 'no' });
    const told = await stage.told(() => stage.advance(60_000));
    expect(told).toEqual([]);
    await process.tell({ type: 'skip', position: at(0) });
    expect(process.outstanding).toContain('read');
  });

  it('B19: two answers in one tick ask for one read, and no more is in flight than the window holds', async () => {
    const { stage, process } = stageOf({ options: { windowEntries: 4, maxReadEntries: 2 } });
    await process.start();
    stage.held.add('sends');
    await append(stage, ...Array.from({ length: 12 }, () => entry('single', '2.7')));
    const { machine } = process;
    expect(machine.report().unsettledEntries).toBe(4);
    for (let i = 0; i < 2; i++) machine.tell({ type: 'result', laneId: 1, result: { type: 'stored' } }, stage.nowMs);
    const asked = machine.flush().filter(({ type }) => type === 'read');
    expect(asked).toMatchObject([{ type: 'read', after: at(3), maxEntries: 2 }]);
    machine.tell({ type: 'result', laneId: 1, result: { type: 'stored' } }, stage.nowMs);
    expect(machine.flush().filter(({ type }) => type === 'read')).toEqual([]);
  });

  it('a window of bytes holds as well, and lets one entry through in any case', async () => {
    const { stage, process } = stageOf({ options: { windowBytes: 300 } });
    await process.start();
    stage.held.add('sends');
    await append(stage, ...Array.from({ length: 3 }, () => entry('single', '2.7', 'size=500')));
    expect(process.machine.report().unsettledEntries).toBe(1);
    await process.arrives(0);
    expect(process.machine.report()).toMatchObject({ unsettledEntries: 1, settled: at(0) });
  });
});

describe('B31: a process that dies anywhere', () => {
  const rows = (['window', 'readBack'] as const).flatMap((dedup) =>
    [0, 1, 3, 5].flatMap((answered) => [true, false].map((isWritten) => ({ dedup, answered, isWritten }))),
  );
  it.each(rows)(
    '$dedup, $answered of 5 sends answered, cursor written: $isWritten: nothing is lost or twice',
    async ({ dedup, answered, isWritten }) => {
      const { stage, process } = stageOf({ remote: { dedup }, range: WHOLE });
      await process.start();
      stage.held.add('sends');
      if (!isWritten) stage.held.add('writes');
      await append(stage, ...Array.from({ length: 5 }, () => entry('entry', '2.7')));
      for (let i = 0; i < answered; i++) await process.arrives(0);
      expect(stage.record?.settled).toEqual(isWritten && answered > 0 ? at(answered - 1) : undefined);
      // One more is stored, whose answer does not come any more.
      if (answered < 5) await process.arrives(0, true);
      await process.crash();
      // The acknowledgement was not durable at the source.
      stage.source.acknowledged = undefined;
      stage.held.clear();
      await process.start();
      expect(stored(stage)).toBe('0 0000-7fff: 7:0 (2.7), 7:1 (2.7), 7:2 (2.7), 7:3 (2.7), 7:4 (2.7)');
      expect(stage.source.acknowledged).toEqual(at(4));
    },
  );

  it('the cursor is written by count and by time, and the source told only what is written', async () => {
    const { stage, process } = stageOf({ options: { cursorEntries: 3, cursorDelayMs: 1000 } });
    await process.start();
    await append(stage, entry('single', '2.7'), entry('single', '2.7'));
    expect(stage.record?.settled).toBeUndefined();
    await stage.advance(1000);
    expect(stage.record?.settled).toEqual(at(1));
    stage.held.add('writes');
    await append(stage, ...Array.from({ length: 3 }, () => entry('single', '2.7')));
    expect(process.outstanding).toContain('write');
    expect(stage.source.acknowledged).toEqual(at(1));
    await process.written('the disk is full');
    await stage.advance(100);
    await process.written();
    expect(stage.source.acknowledged).toEqual(at(4));
  });
});

describe('schemas (B17)', () => {
  const versions = (stage: SegmentStage) =>
    [0, 1].flatMap((id) =>
      stage.topic
        .entries(id)
        .map(({ bytes }) => Buffer.from(parseEntry(bytes).metadata.schemaVersion ?? []).toString()),
    );

  it.each([
    ['as it is', LOWER, ['w1', 'w2', 'w1']],
    ['re-batched', WHOLE, ['w1', 'w2', 'w1', 'w1', 'w2', 'w1']],
  ])(
    '%s: the version is translated, one that is unknown makes all behind it wait, and order holds',
    async (_how, range, expected) => {
      const { stage, process } = stageOf({ options: { translateSchemas: true }, range });
      const keys = range === WHOLE ? ['2.7', '9.1'] : ['2.7'];
      stage.schemas.set('v1', { type: 'translated', version: Buffer.from('w1') });
      await process.start();
      await append(stage, ...['v1', 'v2', 'v1'].map((version) => entry('entry', ...keys, `schema=${version}`)));
      expect(versions(stage)).toEqual(expected.filter((_, i) => i % 3 === 0));
      expect(process.machine.report().waitingFor).toEqual({ for: 'schema', reason: 'not registered yet' });
      stage.schemas.set('v2', { type: 'translated', version: Buffer.from('w2') });
      await stage.advance(100);
      expect(versions(stage)).toEqual(expected);
    },
  );

  it('B18: of two versions that are unknown at once, both are asked for again', async () => {
    const { stage, process } = stageOf({ options: { translateSchemas: true, ttlMs: 1_000 } });
    await process.start();
    stage.held.add('translations');
    await append(stage, entry('single', '2.7', 'schema=v1'));
    // The entry that asked for the first is too old when the second is asked for.
    await stage.advance(2_000);
    const young = (version: string) => encodeEntry('single', ['2.7', `schema=${version}`], stage.nowMs);
    await append(stage, young('v2'));
    for (let i = 0; i < 2; i++) await process.letGo('translations');
    for (const version of ['v1', 'v2']) stage.schemas.set(version, { type: 'translated', version: Buffer.from('w') });
    await stage.advance(500);
    await append(stage, young('v1'));
    expect(process.machine.report().settled).toEqual(at(2));
  });

  it('a schema that the remote cannot take holds its entry, and nothing overtakes it', async () => {
    const { stage, process } = stageOf({ options: { translateSchemas: true } });
    stage.schemas.set('v1', { type: 'translated', version: Buffer.from('w1') });
    stage.schemas.set('v2', { type: 'incompatible', reason: 'a field is missing' });
    await process.start();
    await append(
      stage,
      entry('single', '2.7', 'schema=v2'),
      entry('single', '2.7', 'schema=v1'),
      entry('single', '2.7'),
    );
    expect(process.machine.report()).toMatchObject({
      held: { reason: 'incompatibleSchema', message: 'a field is missing' },
    });
    expect(versions(stage)).toEqual([]);
    await process.tell({ type: 'skip', position: at(0) });
    expect(versions(stage)).toEqual(['w1', '']);
  });
});

describe('what the remote knows', () => {
  it('R11: a partial answer leaves its messages out and sends the rest at the same place, and then what was behind it', async () => {
    const { stage, process } = stageOf();
    await process.start();
    stage.held.add('sends');
    await append(stage, entry('entry', '2.1', '2.9', '2.d'), entry('single', '2.7'));
    const told = await stage.told(() => process.result(0, { type: 'partial', partial: 0x9fff }));
    expect(told).toEqual(['send 7:0:ffff (2.d) to 0 ...', 'send 7:1 (2.7) to 0 behind 7:0:ffff ...']);
  });

  it('R12, R13: what a sealed segment has is not sent to its successors, split or merged', async () => {
    const { stage, process } = stageOf({ range: WHOLE });
    await process.start();
    stage.held.add('writes');
    await append(stage, entry('entry', '2.7', '9.1'), entry('entry', '5.8', 'c.6'));
    await process.crash();
    stage.topic.change((layout) => mergeSegments(layout, 0, 1, { bucketPolicy: 'sum', nowMs: START_MS }));
    stage.held.clear();
    const told = await stage.told(() => process.start());
    expect(told.filter((line) => /^(ask|send)/.test(line))).toEqual([
      'ask sealed 0: has 7:1:ffff',
      'ask sealed 1: has 7:1:ffff',
    ]);
    expect(process.counters.foundStored).toBe(2);
  });

  it.each(['active', 'sealed'])(
    'R12c, B04: a watermark beyond what the source ever wrote stops it, in an %s segment',
    async (state) => {
      const { stage, process } = stageOf();
      await process.start();
      await append(stage, entry('single', '2.7'), entry('single', '2.7'));
      await process.crash();
      stage.source.rebuild(3n);
      stage.replaceRecord(undefined);
      if (state === 'sealed')
        stage.topic.change((layout) => mergeSegments(layout, 0, 1, { bucketPolicy: 'sum', nowMs: START_MS }));
      stage.source.append(entry('single', '2.7'));
      await process.start();
      expect(process.machine.report()).toMatchObject({
        state: 'stopped',
        waitingFor: { reason: 'sourceWentBackwards', message: 'the remote has 7:1, the source ever wrote up to 3:0' },
      });
      expect(stage.source.acknowledged).toBeUndefined();
    },
  );

  it('R12c: an ordinary replay does not stop it', async () => {
    const { stage, process } = stageOf();
    await process.start();
    await append(stage, entry('single', '2.7'), entry('single', '2.7'));
    await process.crash();
    stage.replaceRecord(undefined);
    stage.source.acknowledged = undefined;
    await process.start();
    expect(stage.source.acknowledged).toEqual(at(1));
    expect(process.counters).toMatchObject({ foundStored: 2, verbatimEntries: 2 });
  });

  it('R14: a name that is taken is polled, and nothing is sent without it', async () => {
    const { stage, process } = stageOf();
    await process.start();
    await append(stage, entry('single', '2.7'));
    // The first one does not learn from the cursor store that it was replaced.
    stage.held.add('writes');
    const second = stage.process('two');
    await second.start();
    expect(second.machine.report().lanes).toEqual([]);
    await append(stage, entry('single', '2.7'));
    expect(second.machine.report().lanes).toMatchObject([
      { state: 'failed', failure: expect.stringContaining('fenced') },
    ]);
    expect(stored(stage)).toBe('0 0000-7fff: 7:0 (2.7), 7:1 (2.7)');
  });

  it('R15: who was replaced and has nothing to write learns it when its name is taken', async () => {
    const { stage, process } = stageOf({ remote: { dedup: 'readBack' } });
    await process.start();
    await append(stage, entry('single', '2.7'));
    stage.topic.disconnect();
    await stage.process('two').start();
    expect(process.machine.isAtRest).toBe(false);
    await append(stage, entry('single', '2.7'));
    await stage.advance(100);
    expect(process.machine.report().waitingFor).toMatchObject({ for: 'operator', reason: 'fenced' });
    expect(stored(stage)).toBe('0 0000-7fff: 7:0 (2.7), 7:1 (2.7)');
  });

  it('R15: an encrypted batch that was stored whole is found, not held, also from a classic source', async () => {
    for (const legacy of [false, true]) {
      const layout = createLayout({ segments: 1, buckets: 1, nowMs: START_MS });
      const stage = new SegmentStage({ source: { range: WHOLE, legacy }, layout });
      const process = stage.process('one');
      await process.start();
      stage.held.add('writes');
      await append(stage, entry('encrypted', '2.7', '9.1'));
      await process.crash();
      stage.held.clear();
      await process.start();
      expect(process.machine.report(), `legacy ${legacy}`).toMatchObject({
        waitingFor: { for: 'entries' },
        settled: at(0),
      });
      expect(process.counters).toMatchObject({ foundStored: 1, held: {} });
    }
  });

  it('R15, B28: only copies from this cluster count, not what an application copied with its properties', async () => {
    const { stage, process } = stageOf({ remote: { dedup: 'readBack' } });
    for (const replicatedFrom of [undefined, 'c']) {
      const properties = [[SOURCE_POSITION_PROPERTY, '7:0']] as const;
      const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: START_MS, properties, replicatedFrom };
      stage.topic.append(0, encodeMessage(Buffer.from('body'), { outer }));
    }
    await process.start();
    await append(stage, entry('single', '2.7'));
    expect(process.counters).toMatchObject({ foundStored: 0, verbatimEntries: 1 });
  });

  it('R15: a checkpoint is named durably before the first send', async () => {
    const { stage, process } = stageOf({ remote: { dedup: 'readBack' } });
    stage.held.add('writes');
    await process.start();
    await append(stage, entry('single', '2.7'));
    // The first write makes the session known, the next one the checkpoint.
    await process.written();
    expect(stored(stage)).toBe('0 0000-7fff: nothing');
    await process.written();
    expect(stored(stage)).toBe('0 0000-7fff: 7:0 (2.7)');
    expect([...(stage.record?.checkpoints ?? [])].map(([id, place]) => `${id} ${position(place)}`)).toEqual(['0 0:0']);
  });
});

describe('R5: a skip', () => {
  it('counts for nothing before it is durable, even when a newer layout lets the entry try again', async () => {
    const { stage, process } = stageOf({ range: WHOLE });
    await process.start();
    await append(stage, entry('encrypted', '2.7', '9.1'), entry('entry', '2.7'));
    stage.held.add('writes');
    await process.tell({ type: 'skip', position: at(0) });
    await process.tell({ type: 'layout', layout: { ...stage.remoteLayout, epoch: 1 } });
    expect(process.counters).toMatchObject({ skipped: {}, held: { encryptedBatch: 2 } });
    expect(stored(stage)).toBe('0 0000-7fff: nothing');
    const told = await stage.told(() => process.written());
    expect(told).toContain('notice skipped 7:0');
    expect(stored(stage)).toBe('0 0000-7fff: 7:1 (2.7)');
  });
});

describe('time', () => {
  it('R6: a message that stays incomplete for too long, or spans too much, is given up', async () => {
    const { stage, process } = stageOf({ options: { maxSpanEntries: 4 } });
    await process.start();
    await append(stage, entry('chunk', 'm', '1/2', '2.7'), ...Array.from({ length: 8 }, () => entry('single', '2.7')));
    expect(process.counters.chunksGivenUp).toBe(1);
    expect(stage.source.acknowledged).toEqual(at(8));
  });

  it('R6: what waits in a lane names no message that was given up meanwhile', async () => {
    const { stage, process } = stageOf({ remote: { failStop: false }, options: { chunkExpiryMs: 1_000 } });
    await process.start();
    stage.held.add('sends');
    const first = await stage.told(() =>
      append(stage, entry('chunk', 'm', '1/2', '2.7'), entry('single', '2.7'), entry('single', '2.8')),
    );
    expect(sends(first)).toEqual(['send 7:0 (m 1/2) to 0, whole up to nothing ...']);
    await stage.advance(1_000);
    expect(sends(await stage.told(() => process.letGo('sends')))).toEqual([
      'send 7:1 (2.7) to 0 behind 7:0: stored',
      'send 7:2 (2.8) to 0 behind 7:1: stored',
    ]);
  });

  it('R5, B23: a held entry wakes the machine when the TTL passes it', async () => {
    const { stage, process } = stageOf({ options: { ttlMs: 60_000 }, range: WHOLE });
    await process.start();
    await append(stage, entry('encrypted', '2.7', '9.1'), entry('entry', '2.7'));
    expect(process.wakeAtMs).toBe(START_MS + 60_001);
    await stage.advance(60_001);
    expect(process.counters).toMatchObject({ skipped: { expired: 2 }, held: { encryptedBatch: 1 } });
    expect(process.machine.report().waitingFor).toEqual({ for: 'entries' });
  });
});
