/** The lanes of a segment together: openings, retries, seals, and where the checkpoints of those that idle stand. */
import { describe, expect, it } from 'vitest';
import type { MemoryRemoteOptions } from '../../src/adapters/memory/index.js';
import type { SourcePosition } from '../../src/entry/index.js';
import { createLayout } from '../../src/layout/index.js';
import { type Process, SegmentStage, START_MS } from '../support/segment-stage.js';
import { encodeEntry } from '../support/stage-entries.js';

const at = (entryId: number): SourcePosition => ({ ledgerId: 7n, entryId: BigInt(entryId) });
const there = (entryId: number): SourcePosition => ({ ledgerId: 0n, entryId: BigInt(entryId) });
const unavailable = { type: 'unavailable', reason: 'so it is' } as const;
const DEDUP = ['window', 'readBack'] as const;

/** A source that reaches both halves of the remote, or the lower one only. */
async function stageOf(remote: MemoryRemoteOptions, end = 0x7fff): Promise<{ stage: SegmentStage; process: Process }> {
  const layout = createLayout({ segments: 2, buckets: 1, nowMs: START_MS });
  const stage = new SegmentStage({ source: { range: { start: 0, end } }, layout, remote });
  const process = stage.process('one');
  await process.start();
  return { stage, process };
}

async function append(stage: SegmentStage, key = '2.7'): Promise<void> {
  stage.source.append(encodeEntry('single', [key], stage.nowMs));
  await stage.sourceChanged();
}

const laneOf = ({ machine }: Process, segmentId: number) =>
  machine.report().lanes.find((lane) => lane.segmentId === segmentId);

describe('an opening', () => {
  it.each(DEDUP)('R14, %s: has one answer; a second neither drops the producer nor opens another', async (dedup) => {
    const { stage, process } = await stageOf({ dedup });
    stage.held.add('sends');
    await append(stage);
    const laneId = stage.lines.filter((line) => line.startsWith('open ')).length;
    const told = () => stage.told(() => process.tell({ type: 'openFailed', laneId, failure: unavailable }));
    expect(await told()).toEqual([]);
    expect(await stage.told(() => process.tell({ type: 'opened', laneId }))).toEqual([]);
    await process.letGo('sends');
    expect(stage.source.acknowledged).toEqual(at(0));
  });

  it('of two lanes that failed, each is tried again in its own time', async () => {
    const { stage, process } = await stageOf({}, 0xffff);
    stage.held.add('sends');
    for (const key of ['2.7', 'c.7']) await append(stage, key);
    await process.result(0, unavailable);
    await stage.advance(100);
    await process.result(0, unavailable);
    await process.result(1, unavailable);
    expect([0, 1].map((id) => laneOf(process, id)?.state)).toEqual(['failed', 'failed']);
    expect(process.wakeAtMs).toBe(START_MS + 200);
    const opens = async () => (await stage.told(() => stage.advance(100))).filter((line) => /^(open|wake)/.test(line));
    expect(await opens()).toEqual(['open 1: opened', 'wake at 300ms']);
    expect(await opens()).toEqual(['open 0: opened']);
    await process.letGo('sends');
    expect(stage.source.acknowledged).toEqual(at(1));
  });
});

describe('a lane that begins anew', () => {
  it('R12b: what comes twice after a gap is counted as that', async () => {
    const { stage, process } = await stageOf({});
    stage.held.add('sends');
    for (let i = 0; i < 2; i++) await append(stage);
    await process.result(0, { type: 'gap' });
    await process.result(0, { type: 'gap' });
    await process.result(0, { type: 'duplicate' });
    await process.result(0, { type: 'stored' });
    expect(process.counters.duplicates).toEqual({ rewind: 1 });
    expect(stage.source.acknowledged).toEqual(at(1));
  });
});

describe('a segment that is sealed', () => {
  it('R15: asks for no producer after a send that is refused', async () => {
    const { stage, process } = await stageOf({ dedup: 'readBack' });
    stage.held.add('sends');
    await append(stage);
    await process.split();
    const told = await stage.told(() => process.result(0, { type: 'rejected', reason: 'so it is' }));
    expect(told.filter((line) => line.startsWith('open 0'))).toEqual([]);
    expect(told.some((line) => line.startsWith('ask sealed 0'))).toBe(true);
  });

  it.each(['unavailable', 'stored'] as const)(
    'R13: is asked what it has if an answer does not come: %s',
    async (type) => {
      const { stage, process } = await stageOf({});
      stage.held.add('sends').add('recoveries');
      for (let i = 0; i < 2; i++) await append(stage);
      await process.split();
      expect(laneOf(process, 0)).toMatchObject({ state: 'closing', inFlight: 2 });
      await process.result(0, { type: 'stored' });
      const result = type === 'stored' ? ({ type } as const) : unavailable;
      const told = await stage.told(() => process.result(0, result));
      expect(told.some((line) => line.startsWith('ask sealed 0'))).toBe(type !== 'stored');
    },
  );

  it('B18: is asked again, after longer and longer waits, and says why it does not go on', async () => {
    const { stage, process } = await stageOf({});
    stage.held.add('sends').add('recoveries');
    await append(stage);
    await process.result(0, { type: 'ambiguous', reason: 'no answer' });
    await process.split();
    const waits: number[] = [];
    for (const reason of ['the first', 'the second', 'the third']) {
      await process.recovered(0, reason);
      expect(process.machine.report().waitingFor).toMatchObject({
        for: 'remoteSegment',
        reason: `waits for what sealed segment 0 has: ${reason}`,
      });
      waits.push((process.wakeAtMs ?? 0) - stage.nowMs);
      await stage.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([100, 200, 400]);
    await process.letGo('recoveries');
    await process.letGo('sends');
    expect(stage.source.acknowledged).toEqual(at(0));
    // A second answer to what was asked once.
    expect(
      await stage.told(() => process.tell({ type: 'recovered', segmentId: 0, recovery: { type: 'pruned' } })),
    ).toEqual([]);
  });
});

describe('R15: the checkpoint', () => {
  it('of an open lane without copies follows the end of its segment, and is written soon', async () => {
    const { stage, process } = await stageOf({ dedup: 'readBack' });
    await append(stage);
    const end = (segmentId: number, place: SourcePosition) =>
      stage.told(() => process.tell({ type: 'end', segmentId, at: place }));
    expect(await end(0, there(40))).toContain('write 7:0, checkpoint 0:40 in 0: written');
    expect(stage.record?.checkpoints).toEqual(new Map([[0, there(40)]]));
    // Where it stands already, behind it, and of a segment that this one has no lane to.
    for (const place of [there(40), there(39)]) expect(await end(0, place)).toEqual([]);
    expect(await end(1, there(7))).toEqual([]);
    expect(stage.record?.checkpoints).toEqual(new Map([[0, there(40)]]));
  });

  it('is none where the remote has a window, whatever it tells of the places', async () => {
    const { stage, process } = await stageOf({});
    stage.held.add('sends');
    await append(stage);
    await process.result(0, { type: 'stored', at: there(3) });
    expect(stage.source.acknowledged).toEqual(at(0));
    expect(stage.record?.checkpoints).toEqual(new Map());
  });
});
