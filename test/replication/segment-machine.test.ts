/** The life of the machine of a segment: where it begins, what it says of itself, and how it comes to rest. */
import { describe, expect, it } from 'vitest';
import type { SourcePosition } from '../../src/entry/index.js';
import { createLayout, splitSegment } from '../../src/layout/index.js';
import type { CursorRecord } from '../../src/ports/index.js';
import type { SegmentOptions } from '../../src/replication/index.js';
import { type Process, SegmentStage, START_MS, type StageOptions } from '../support/segment-stage.js';
import { encodeEntry } from '../support/stage-entries.js';

const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });
const reason = 'so it is';

interface Given {
  readonly remote?: StageOptions['remote'];
  readonly options?: Partial<SegmentOptions>;
  /** The end of the source segment's range; default: the lower half, which goes to one segment as it is. */
  readonly end?: number;
}

function stageOf({ remote = {}, options = {}, end = 0x7fff }: Given = {}): { stage: SegmentStage; process: Process } {
  const layout = createLayout({ segments: 2, buckets: 1, nowMs: START_MS });
  const stage = new SegmentStage({ source: { range: { start: 0, end } }, layout, remote, options });
  return { stage, process: stage.process('one') };
}

/** Appends entries, each given by its words. */
async function append(stage: SegmentStage, ...entries: readonly string[]): Promise<void> {
  for (const words of entries) {
    const [kind = '', ...rest] = words.split(' ');
    stage.source.append(encodeEntry(kind, rest, stage.nowMs));
  }
  await stage.sourceChanged();
}

async function seal(stage: SegmentStage): Promise<void> {
  stage.source.isSealed = true;
  await stage.sourceChanged();
}

const record = (more: Partial<CursorRecord>): CursorRecord => {
  return { session: 1, drained: false, skipped: [], checkpoints: new Map(), ...more };
};

describe('a beginning', () => {
  it('waits for the parents, and is told once that they are drained', async () => {
    const { stage, process } = stageOf();
    await process.takeUp();
    expect(process.machine.report()).toMatchObject({ state: 'waiting', waitingFor: { for: 'parents' } });
    await process.start();
    expect(process.machine.report()).toMatchObject({ state: 'running', waitingFor: { for: 'entries' } });
    expect(await stage.told(() => process.tell({ type: 'start', acknowledged: at(5) }))).toEqual([]);
    expect(process.machine.report()).not.toHaveProperty('settled');
  });

  const lost = (from: string) => `notice lost at the source: behind ${from} up to 7:3`;
  it.each<
    [string, CursorRecord | undefined, SourcePosition | undefined, string | undefined, SourcePosition | undefined]
  >([
    ['the source lost what was acknowledged', record({ settled: at(1) }), undefined, 'acknowledge 7:1', at(1)],
    ['the source is behind', record({ settled: at(1) }), at(0), 'acknowledge 7:1', at(1)],
    ['both stand alike', record({ settled: at(1) }), at(1), undefined, at(1)],
    ['the source is ahead', record({ settled: at(1) }), at(3), lost('7:1'), at(3)],
    ['the source is ahead of a cursor that settled nothing', record({}), at(3), lost('nothing'), at(3)],
    ['there is no cursor, and the source begins later', undefined, at(3), undefined, at(3)],
  ])('B23: %s', async (_, stored, acknowledged, expected, settled) => {
    const { stage, process } = stageOf();
    stage.replaceRecord(stored);
    stage.source.acknowledged = acknowledged;
    await process.takeUp();
    stage.held.add('writes');
    const told = await stage.told(() => process.tell({ type: 'start', acknowledged }));
    expect(told.find((line) => !/^(read|write)/.test(line))).toBe(expected);
    expect(process.machine.report().settled).toEqual(settled);
    expect(process.counters.lostAtSource).toBe(expected?.startsWith('notice') ? 1 : 0);
  });
});

describe('an end', () => {
  it('before the beginning comes at once, and nothing follows', async () => {
    const { stage, process } = stageOf();
    await process.takeUp();
    expect(await stage.told(() => process.tell({ type: 'stop' }))).toEqual(['stopped']);
    expect(process.machine).toMatchObject({ isAtRest: true, isDrained: false });
    expect(process.machine.report()).toMatchObject({ state: 'stopped', waitingFor: { for: 'nothing' } });
    expect(await stage.told(() => process.start())).toEqual([]);
  });

  it('waits for what is in flight, and for the cursor', async () => {
    const { stage, process } = stageOf({ options: { cursorDelayMs: 60_000 } });
    await process.start();
    stage.held.add('sends').add('writes');
    await append(stage, 'single 2.7');
    expect(await stage.told(() => process.tell({ type: 'stop' }))).toEqual([]);
    expect(process.machine.report().state).toBe('running');
    expect(await stage.told(() => process.arrives(0))).toEqual(['7:0 (2.7) arrives at 0: stored', 'write 7:0 ...']);
    expect(process.machine.isAtRest).toBe(false);
    expect(await stage.told(() => process.written())).toEqual([
      'the write: written',
      'acknowledge 7:0',
      'close 0',
      'stopped',
    ]);
    expect(process.machine).toMatchObject({ isAtRest: true, isDrained: false });
  });

  it('does not wait for a cursor that cannot be written', async () => {
    const { stage, process } = stageOf({ options: { cursorDelayMs: 60_000 } });
    await process.start();
    await append(stage, 'single 2.7');
    stage.held.add('writes');
    await process.tell({ type: 'stop' });
    expect(await stage.told(() => process.written('the disk is full'))).toEqual(['close 0', 'stopped']);
    expect(stage.source.acknowledged).toBeUndefined();
  });

  it('of a sealed segment is drained when that is durable; the next machine has nothing to do', async () => {
    const { stage, process } = stageOf();
    await process.start();
    await append(stage, 'single 2.7');
    stage.held.add('writes');
    await seal(stage);
    expect(process.machine.report()).toMatchObject({ state: 'running', waitingFor: { for: 'cursor' } });
    expect(await stage.told(() => process.written())).toEqual([
      'the write: written',
      'acknowledge 7:0',
      'close 0',
      'drained',
    ]);
    expect(process.machine).toMatchObject({ isAtRest: true, isDrained: true });
    expect(process.machine.report()).toMatchObject({ state: 'drained', waitingFor: { for: 'nothing' } });
    await process.crash();
    await process.takeUp();
    expect(process.machine).toMatchObject({ isAtRest: true, isDrained: true });
    expect(process.machine.report().state).toBe('drained');
    expect(await stage.told(() => process.start())).toEqual([]);
  });

  it('R14: of a segment of which something was passed over comes only when no process before can send that', async () => {
    const { stage, process } = stageOf({ end: 0xffff });
    stage.replaceRecord(record({ settled: at(1) }));
    stage.source.acknowledged = at(3);
    stage.held.add('opens');
    await process.start();
    await seal(stage);
    for (const segmentId of [0, 1]) {
      expect(process.machine.report()).toMatchObject({
        state: 'running',
        waitingFor: { for: 'remoteSegment', segmentId, reason: 'opening' },
      });
      await process.opened(segmentId);
    }
    expect(process.machine.isDrained).toBe(true);
  });

  it.each<[string, string, boolean]>([
    ['too old', 'single 2.7 age=70s', true],
    ['skipped by an operator', 'encrypted 2.7 c.7', true],
    ['a marker', 'marker', false],
    ['for others', 'single 2.7 to=c', false],
  ])('R14: of one that was %s: a process before may have sent it or not', async (_, words, mustOpen) => {
    const { stage, process } = stageOf({ end: 0xffff, options: { ttlMs: 60_000 } });
    stage.replaceRecord(record({}));
    await process.start();
    await append(stage, words);
    if (words.startsWith('encrypted')) await process.tell({ type: 'skip', position: at(0) });
    await seal(stage);
    expect(stage.lines.some((line) => line.startsWith('open'))).toBe(mustOpen);
    expect(process.machine.isDrained).toBe(true);
  });

  it('R14: of another comes without a producer', async () => {
    const { stage, process } = stageOf();
    stage.replaceRecord(record({ settled: at(1) }));
    stage.source.acknowledged = at(1);
    await process.start();
    const told = await stage.told(() => seal(stage));
    expect(told.filter((line) => line.startsWith('open'))).toEqual([]);
    expect(process.machine.isDrained).toBe(true);
  });
});

describe('what stands in the way', () => {
  it('B23: an entry that is to be sent again and is not at the source any more is counted, and passed', async () => {
    const { stage, process } = stageOf();
    await process.start();
    await append(stage, 'single 2.7', 'chunk m 1/2 2.7');
    stage.topic.change((layout) => splitSegment(layout, 0, { nowMs: START_MS }));
    stage.source.entries = [];
    stage.source.isSealed = true;
    const told = await stage.told(() => process.tell({ type: 'layout', layout: stage.remoteLayout }));
    expect(told).toContain('notice lost at the source: behind 7:0 up to 7:1');
    expect(process.counters.lostAtSource).toBe(1);
    expect(process.machine.report().settled).toEqual(at(1));
  });

  it('B18: an entry that the source gave before and does not give again is asked for again and again', async () => {
    const { stage, process } = stageOf();
    await process.start();
    await append(stage, 'chunk m 1/2 2.7');
    stage.held.add('reads');
    await process.split();
    const entries = stage.source.entries.splice(0);
    const waits: number[] = [];
    for (let i = 0; i < 3; i++) {
      await process.endRead();
      waits.push((process.wakeAtMs ?? 0) - stage.nowMs);
      await stage.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([100, 200, 400]);
    stage.source.entries = entries;
    await process.letGo('reads');
    await append(stage, 'chunk m 2/2 2.7');
    expect(process.machine.report()).toMatchObject({ settled: at(1), waitingFor: { for: 'entries' } });
  });

  it('nothing is planned before the remote is known', async () => {
    const { stage, process } = stageOf();
    await process.takeUp();
    await process.tell({ type: 'start' });
    await append(stage, 'single 2.7');
    expect(process.machine.report().waitingFor).toEqual({ for: 'layout' });
    await process.tell({ type: 'layout', layout: stage.remoteLayout });
    expect(process.machine.report()).toMatchObject({ settled: at(0), waitingFor: { for: 'entries' } });
  });

  it('B17: a version that is being translated is named', async () => {
    const { stage, process } = stageOf({ options: { translateSchemas: true } });
    await process.start();
    stage.held.add('translations');
    await append(stage, 'single 2.7 schema=\tv');
    expect(process.machine.report().waitingFor).toEqual({ for: 'schema', reason: 'version 0976 is being translated' });
  });

  it('R10: the budget is asked once for an entry, and what is not needed any more is given back', async () => {
    const { stage, process } = stageOf({ end: 0xffff });
    await process.start();
    stage.held.add('grants');
    expect(await stage.told(() => append(stage, 'entry 2.7 c.7', 'entry 3.7 d.7 size=200'))).toContain(
      'ask the budget ...',
    );
    expect(process.machine.report().waitingFor).toEqual({ for: 'budget' });
    const budget = (lines: readonly string[]) => lines.filter((line) => line.includes('budget'));
    // The larger entry asks for itself.
    expect(budget(await stage.told(() => process.granted()))).toEqual(['give the budget back', 'ask the budget ...']);
    expect(budget(await stage.told(() => process.tell({ type: 'pause' })))).toEqual(['give the budget back']);
    // The grant was under way.
    expect(budget(await stage.told(() => process.tell({ type: 'granted' })))).toEqual(['give the budget back']);
    expect(budget(await stage.told(() => process.tell({ type: 'resume' })))).toEqual(['ask the budget ...']);
    expect(budget(await stage.told(() => process.granted()))).toEqual(['give the budget back']);
    expect(process.machine.report()).toMatchObject({ settled: at(1), waitingFor: { for: 'entries' } });
  });

  it('R5: of several that are held the first is reported, and the TTL that ends first wakes', async () => {
    const { stage, process } = stageOf({ end: 0xffff, options: { ttlMs: 60_000 } });
    await process.start();
    stage.held.add('sends');
    await append(stage, 'single 2.7', 'single c.7 age=20s');
    await process.result(1, { type: 'rejected', reason });
    await process.result(0, { type: 'tooLarge', reason });
    expect(process.machine.report().held).toEqual({ position: at(0), reason: 'tooLarge', message: reason });
    expect(process.wakeAtMs).toBe(START_MS + 40_001);
    await stage.advance(40_001);
    expect(process.machine.report().held?.position).toEqual(at(0));
    expect(process.wakeAtMs).toBe(START_MS + 60_001);
    await stage.advance(20_000);
    expect(process.machine.report()).not.toHaveProperty('held');
    expect(process.counters).toMatchObject({ skipped: { expired: 2 }, held: { rejected: 1, tooLarge: 1 } });
  });

  it.each([undefined, 0])('R5: without a TTL (%s) nothing wakes what is held', async (ttlMs) => {
    const { stage, process } = stageOf({ options: { ttlMs } });
    await process.start();
    stage.held.add('sends');
    await append(stage, 'single 2.7');
    await process.result(0, { type: 'rejected', reason });
    expect(process.machine.report().held).toMatchObject({ reason: 'rejected' });
    expect(process.wakeAtMs).toBeUndefined();
  });

  it('B18: what an operator has to mend is told once, and over when it is mended', async () => {
    const { stage, process } = stageOf();
    stage.held.add('opens');
    await process.start();
    const first = await stage.told(async () => {
      await append(stage, 'single 2.7');
      await process.opened(0, { type: 'unauthorized', reason });
    });
    expect(first.filter((line) => line.startsWith('notice'))).toEqual([`notice unauthorized: ${reason}`]);
    await stage.advance(30_000);
    const second = await stage.told(() => process.opened(0, { type: 'unauthorized', reason }));
    expect(second.filter((line) => line.startsWith('notice'))).toEqual([]);
    await stage.advance(30_000);
    await process.opened(0);
    expect(process.machine.report()).toMatchObject({ settled: at(0), waitingFor: { for: 'entries' } });
  });
});

describe('what is counted', () => {
  it('entries and parts by their bytes, and what comes twice after a restart', async () => {
    const { stage, process } = stageOf({ end: 0xffff });
    await process.start();
    await append(stage, 'single 2.7', 'entry 2.7 c.7');
    const bytes = [0, 1].flatMap((id) => stage.topic.entries(id).map((entry) => entry.bytes.length));
    const { verbatimEntries, verbatimBytes, parts, rebatchedEntries, rebatchedBytes } = process.counters;
    expect({ verbatimEntries, parts, rebatchedEntries }).toEqual({ verbatimEntries: 1, parts: 2, rebatchedEntries: 1 });
    expect(verbatimBytes + rebatchedBytes).toBe(bytes.reduce((sum, length) => sum + length, 0));
    expect(verbatimBytes).toBe(bytes[0]);
    stage.held.add('sends');
    await append(stage, 'single 2.7');
    await process.result(0, { type: 'duplicate' });
    expect(process.counters).toMatchObject({ duplicates: { restart: 1 }, verbatimEntries: 1 });
  });
});
