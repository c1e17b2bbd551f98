/**
 * What becomes of every failure of a send and of an opening, one row for each class, towards remotes with a dedup window
 * and towards those that are read back; and the stop reasons: each is reached, and each has its remedy.
 */
import { describe, expect, it } from 'vitest';
import { createLayout } from '../../src/layout/index.js';
import type { SendResult } from '../../src/ports/index.js';
import { FAILURES, type FailureClass, STOP_REASONS, type StopReason } from '../../src/replication/index.js';
import { type Process, SegmentStage, START_MS, type StageOptions } from '../support/segment-stage.js';
import { encodeEntry } from '../support/stage-entries.js';
import { storedText, waitText } from '../support/stage-text.js';

const CLASSES = Object.keys(FAILURES) as FailureClass[];
const DEDUP = ['window', 'readBack'] as const;
type Dedup = (typeof DEDUP)[number];
const reason = 'so it is';

/** A lower half of the ring that goes to one segment, and everything of it in flight. */
async function inFlight(dedup: Dedup, entries: number): Promise<{ stage: SegmentStage; process: Process }> {
  const { stage, process } = stageOf({ remote: { dedup } });
  await process.start();
  stage.held.add('sends');
  for (let i = 0; i < entries; i++) stage.source.append(encodeEntry('single', ['2.7'], stage.nowMs));
  await stage.sourceChanged();
  return { stage, process };
}

function stageOf(options: Partial<StageOptions> = {}): { stage: SegmentStage; process: Process } {
  const layout = createLayout({ segments: 2, buckets: 1, nowMs: START_MS });
  const stage = new SegmentStage({ source: { range: { start: 0, end: 0x7fff } }, layout, ...options });
  return { stage, process: stage.process('one') };
}

/** What follows at once, and what the status says then. */
interface Row {
  readonly told: readonly string[];
  readonly waitsFor: string;
  readonly lane: string;
}

const again = (type: string, wake = '100ms'): Row => ({
  told: ['close 0', `wake at ${wake}`],
  waitsFor: 'results',
  lane: `failed; ${type}: ${reason}`,
});
const stop = (type: string): Row => ({
  told: [`notice ${type}: ${reason}`, 'close 0', 'wake at 30s'],
  waitsFor: `an operator (${type}: ${reason})`,
  lane: `failed; ${type}: ${reason}`,
});
const hold = (type: string): Row => ({
  told: [`notice held 7:0, ${type}: ${reason}`],
  waitsFor: `an operator (held: ${reason})`,
  lane: 'open',
});

const SENDS: Readonly<Record<FailureClass, Row>> = {
  sealed: {
    told: ['close 0'],
    waitsFor: `remote segment 0 (closing: sealed: ${reason})`,
    lane: `closing; sealed: ${reason}`,
  },
  ambiguous: again('ambiguous'),
  unavailable: again('unavailable'),
  throttled: again('throttled'),
  // The cursor store tells whether another process owns the segment now.
  fenced: { ...again('fenced'), told: ['close 0', 'write nothing: written', 'wake at 100ms'] },
  unauthorized: stop('unauthorized'),
  unsupported: stop('unsupported'),
  rejected: hold('rejected'),
  tooLarge: hold('tooLarge'),
};

/** What differs where nothing tells what was stored behind a refused send: it is read back. */
const READ_BACK: Partial<Record<FailureClass, Partial<Row>>> = {
  fenced: { told: ['close 0', 'write nothing, checkpoint 0:0 in 0: written', 'wake at 100ms'] },
  rejected: { told: [...hold('rejected').told, 'close 0', 'open 0 from 0:0: opened, found nothing'] },
  tooLarge: { told: [...hold('tooLarge').told, 'close 0', 'open 0 from 0:0: opened, found nothing'] },
};

function laneText({ machine }: Process): string | undefined {
  const lane = machine.report().lanes.find(({ segmentId }) => segmentId === 0);
  return lane === undefined ? undefined : `${lane.state}${lane.failure === undefined ? '' : `; ${lane.failure}`}`;
}

const BOTH = CLASSES.flatMap((type) => DEDUP.map((dedup) => ({ type, dedup })));

describe('a send that fails', () => {
  it.each(BOTH)(
    '$type, $dedup: B18 it is stated what follows, and nothing behind it is settled',
    async ({ type, dedup }) => {
      const { stage, process } = await inFlight(dedup, 3);
      const row = { ...SENDS[type], ...(dedup === 'readBack' ? READ_BACK[type] : {}) };
      expect(await stage.told(() => process.result(0, { type, reason } as SendResult))).toEqual(row.told);
      const { waitingFor, settled, unsettledEntries } = process.machine.report();
      expect({ waitsFor: waitText(waitingFor), lane: laneText(process) }).toEqual({
        waitsFor: row.waitsFor,
        lane: row.lane,
      });
      expect({ settled, unsettledEntries }).toEqual({ settled: undefined, unsettledEntries: 3 });
    },
  );

  it.each(BOTH)(
    '$type, $dedup: B01 all goes on in order when the cause is gone, and nothing is lost',
    async ({ type, dedup }) => {
      const { stage, process } = await inFlight(dedup, 3);
      await process.result(0, { type, reason } as SendResult);
      if (type === 'sealed') await process.split();
      await process.letGo('sends');
      const isHeld = type === 'rejected' || type === 'tooLarge';
      if (isHeld) await process.tell({ type: 'skip', position: { ledgerId: 7n, entryId: 0n } });
      await stage.advance(30_000);
      const kept = isHeld ? ['7:1 (2.7)', '7:2 (2.7)'] : ['7:0 (2.7)', '7:1 (2.7)', '7:2 (2.7)'];
      expect(storedText(stage.topic).find((line) => line.includes('2.7'))).toContain(`: ${kept.join(', ')}`);
      expect(process.machine.report()).toMatchObject({ settled: { ledgerId: 7n, entryId: 2n }, unsettledEntries: 0 });
      expect(process.machine.report().waitingFor).toEqual({ for: 'entries' });
    },
  );

  it.each(BOTH)(
    '$type, $dedup: R13 a segment that seals then is asked what it has, if that is not certain; R15 always, for its end',
    async ({ type, dedup }) => {
      const { stage, process } = await inFlight(dedup, 2);
      await process.result(0, { type, reason } as SendResult);
      stage.held.add('recoveries');
      const told = await stage.told(() => process.split());
      const isAsked = told.some((line) => line.startsWith('ask sealed 0'));
      expect(isAsked).toBe(dedup === 'readBack' || type === 'ambiguous' || type === 'fenced');
    },
  );
});

describe('an answer that is none', () => {
  it('R12b: a lane without fail-stop keeps one send in flight', async () => {
    const { stage, process } = stageOf({ remote: { failStop: false } });
    await process.start();
    stage.held.add('sends');
    for (let i = 0; i < 3; i++) stage.source.append(encodeEntry('single', ['2.7'], stage.nowMs));
    await stage.sourceChanged();
    const lane = () => process.machine.report().lanes[0];
    expect(lane()).toMatchObject({ inFlight: 1, queued: 2 });
    await process.arrives(0);
    expect(lane()).toMatchObject({ inFlight: 1, queued: 1 });
    await process.result(0, { type: 'ambiguous', reason });
    await stage.advance(100);
    expect(lane()).toMatchObject({ inFlight: 1, queued: 1 });
  });

  it('R12b: answers of a lane that was reopened belong to the old one', async () => {
    const { stage, process } = await inFlight('window', 2);
    await process.result(0, { type: 'unavailable', reason });
    await process.tell({ type: 'result', laneId: 1, result: { type: 'stored' } });
    await process.tell({ type: 'opened', laneId: 1 });
    expect(process.machine.report()).toMatchObject({ unsettledEntries: 2, lanes: [{ state: 'failed', queued: 2 }] });
    expect(stage.topic.entries(0)).toEqual([]);
  });

  it('R12b: a gap makes the lane begin anew, with nobody for a previous', async () => {
    const { stage, process } = await inFlight('window', 3);
    const told = await stage.told(() => process.result(0, { type: 'gap' }));
    expect(told).toEqual([
      'send 7:0 (2.7) to 0 ...',
      'send 7:1 (2.7) to 0 behind 7:0 ...',
      'send 7:2 (2.7) to 0 behind 7:1 ...',
    ]);
    // The answers to the two sends that were behind it.
    expect(await stage.told(() => process.result(0, { type: 'gap' }))).toEqual([]);
    expect(await stage.told(() => process.result(0, { type: 'gap' }))).toEqual([]);
    await process.letGo('sends');
    expect(storedText(stage.topic)[0]).toBe('0 0000-7fff: 7:0 (2.7), 7:1 (2.7), 7:2 (2.7)');
  });
});

/** How each reason is reached; the state of the machine is read afterwards. */
const REACHED: Readonly<Record<Exclude<StopReason, 'notProvisioned'>, () => Promise<Process>>> = {
  held: async () => {
    const { process } = await inFlight('window', 1);
    await process.result(0, { type: 'rejected', reason });
    return process;
  },
  fenced: async () => {
    const { process } = await inFlight('window', 1);
    await process.tell({ type: 'writeFenced', session: 2 });
    return process;
  },
  pinLost: async () => failedOpening('pinLost'),
  unauthorized: async () => failedOpening('unauthorized'),
  unsupported: async () => failedOpening('unsupported'),
  sourceWentBackwards: async () => {
    const { stage, process } = await inFlight('window', 1);
    await process.letGo('sends');
    await process.crash();
    stage.source.rebuild(3n);
    stage.replaceRecord(undefined);
    stage.source.append(encodeEntry('single', ['2.7'], stage.nowMs));
    await process.start();
    return process;
  },
  paused: async () => {
    const { process } = await inFlight('window', 1);
    await process.tell({ type: 'pause' });
    return process;
  },
};

async function failedOpening(type: 'pinLost' | 'unauthorized' | 'unsupported'): Promise<Process> {
  const { stage, process } = stageOf();
  stage.held.add('opens');
  await process.start();
  stage.source.append(encodeEntry('single', ['2.7'], stage.nowMs));
  await stage.sourceChanged();
  await process.opened(0, { type, reason });
  return process;
}

describe('stop reasons', () => {
  it.each(Object.keys(REACHED) as (keyof typeof REACHED)[])(
    '%s is reached, stated, and has a remedy',
    async (stopReason) => {
      const process = await REACHED[stopReason]();
      expect(process.machine.report().waitingFor).toMatchObject({ for: 'operator', reason: stopReason });
      expect(STOP_REASONS[stopReason]).toMatch(/\w.*\.$/);
    },
  );

  it('the list is closed: no reason is missing above but the one of provisioning', () => {
    expect(Object.keys(STOP_REASONS).sort()).toEqual([...Object.keys(REACHED), 'notProvisioned'].sort());
    expect(STOP_REASONS.notProvisioned).toMatch(/\w.*\.$/);
  });
});
