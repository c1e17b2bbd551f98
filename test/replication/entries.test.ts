/**
 * What becomes of each kind of entry: the path of the design's table, and what the machine adds to it: the lane, the
 * count, the acknowledgement, the budget, the hold.
 */
import { describe, expect, it } from 'vitest';
import { parseEntry } from '../../src/entry/index.js';
import { IsthmusError } from '../../src/errors.js';
import { createLayout } from '../../src/layout/index.js';
import type { SegmentOptions } from '../../src/replication/index.js';
import { holdOf } from '../../src/replication/planning.js';
import { batchOf, single } from '../support/rebatch.js';
import { type Process, SegmentStage, START_MS } from '../support/segment-stage.js';
import { encodeEntry } from '../support/stage-entries.js';
import { contentText, keyAt, storedText, waitText } from '../support/stage-text.js';

interface Given {
  readonly segments?: number;
  readonly buckets?: number;
  readonly maxEntryBytes?: number;
  readonly options?: Partial<SegmentOptions>;
  /** Where the budget's answers wait. */
  readonly isBudgetHeld?: boolean;
}

interface Outcome {
  readonly stage: SegmentStage;
  readonly process: Process;
  /** What the remote has, over all segments. */
  readonly stored: readonly string[];
  readonly counted: Record<string, unknown>;
  readonly waitsFor: string;
}

/** Replicates entries that are there at the start, and says what became of them. */
async function replicate(entries: readonly Uint8Array[], given: Given = {}): Promise<Outcome> {
  const { segments = 2, buckets = 1, maxEntryBytes, options = {}, isBudgetHeld = false } = given;
  const layout = createLayout({ segments, buckets, nowMs: START_MS });
  const stage = new SegmentStage({ layout, options, ...(maxEntryBytes === undefined ? {} : { maxEntryBytes }) });
  if (isBudgetHeld) stage.held.add('grants');
  for (const bytes of entries) stage.source.append(bytes);
  const process = stage.process('one');
  await process.start();
  return outcome(stage, process);
}

function outcome(stage: SegmentStage, process: Process): Outcome {
  const { verbatimEntries, parts, rebatchedEntries, inspected, skipped, held } = process.counters;
  return {
    stage,
    process,
    stored: storedText(stage.topic)
      .map((line) => line.split(': ')[1] ?? '')
      .filter((text) => text !== 'nothing'),
    counted: { verbatimEntries, parts, rebatchedEntries, inspected, skipped, held },
    waitsFor: waitText(process.machine.report().waitingFor),
  };
}

const counts = (more: Record<string, unknown>) => ({
  verbatimEntries: 0,
  parts: 0,
  rebatchedEntries: 0,
  inspected: 0,
  skipped: {},
  held: {},
  ...more,
});

const entry = (kind: string, ...words: string[]) => encodeEntry(kind, words, START_MS);
/** A last entry that is sent in any case, so that it shows whether what is before it holds it up. */
const AFTER = entry('single', '2.7');

describe('an entry that is passed', () => {
  const ROWS: readonly (readonly [what: string, bytes: Uint8Array, reason: string])[] = [
    ['B30 a marker of transactions', single({ markerType: 20 }).bytes, 'marker'],
    ['B30 a marker of replicated subscriptions', single({ markerType: 13 }).bytes, 'marker'],
    ['B30 a marker that nobody knows', single({ markerType: 99 }).bytes, 'marker'],
    ['R14 one that was replicated here', single({ replicatedFrom: 'c' }).bytes, 'replicated'],
    ['R14 one that comes from there', single({ replicatedFrom: 'b' }).bytes, 'replicated'],
    ['B26 one that is not to be replicated', single({ replicateTo: ['__local__'] }).bytes, 'notListed'],
    ['B26 one for others only', entry('entry', '2.7', '9.1', 'to=c,d'), 'notListed'],
    ['B23 one that is older than the TTL', entry('entry', '2.7', '9.1', 'age=61s'), 'expired'],
  ];

  it.each(ROWS)('%s: counted, acknowledged, and asks neither lane nor budget', async (_what, bytes, reason) => {
    const options = { ttlMs: 60_000 };
    const { process, stage, counted } = await replicate([bytes], { options, isBudgetHeld: true });
    expect(counted).toEqual(counts({ skipped: { [reason]: 1 } }));
    expect(stage.source.acknowledged).toEqual({ ledgerId: 7n, entryId: 0n });
    expect(process.outstanding).toEqual(['read']);
    expect(process.machine.report().lanes).toEqual([]);
  });

  it('B26: absent, empty or with this remote in it, a list lets it through', async () => {
    const lists = [undefined, [], ['b'], ['b', 'b'], ['c', 'b']];
    const { counted } = await replicate(lists.map((replicateTo) => single({ replicateTo }).bytes));
    expect(counted).toEqual(counts({ verbatimEntries: lists.length }));
  });

  it('B23: ages of 0 s, 60 s and 61 s under a TTL of 60 s: only the last is passed; none without a TTL', async () => {
    const ages = ['age=0s', 'age=60s', 'age=61s'].map((age) => entry('single', '2.7', age));
    const { counted } = await replicate(ages, { options: { ttlMs: 60_000 } });
    expect(counted).toEqual(counts({ verbatimEntries: 2, skipped: { expired: 1 } }));
    for (const options of [{}, { ttlMs: 0 }]) {
      expect((await replicate(ages, { options })).counted).toEqual(counts({ verbatimEntries: 3 }));
    }
  });

  it('B30, B32: markers alone do not hold up the drain gate', async () => {
    const { stage, process } = await replicate([10, 11, 12, 99].map((markerType) => single({ markerType }).bytes));
    stage.source.isSealed = true;
    await stage.sourceChanged();
    expect(process.machine.isDrained).toBe(true);
  });
});

describe('an entry that is sent', () => {
  it('R2, B43: single messages go by their outer key and are not opened, encrypted or not', async () => {
    const encryptionKeys = [{ key: 'k', value: Uint8Array.of(1) }];
    const bytes = ['2.7', '9.1', '-'].flatMap((place) => {
      const partitionKey = keyAt(place);
      return [single({ partitionKey }).bytes, single({ partitionKey, encryptionKeys }).bytes];
    });
    const { stored, counted } = await replicate(bytes, { isBudgetHeld: true });
    expect(counted).toEqual(counts({ verbatimEntries: 6 }));
    expect(stored).toEqual(['7:0 (2.7), 7:1 (encrypted), 7:4 (-), 7:5 (encrypted)', '7:2 (9.1), 7:3 (encrypted)']);
  });

  it('B22: a committed message goes without the ids of its transaction, an open one is for the source not to give', async () => {
    const txn = { mostBits: 1n, leastBits: 1n };
    const { stage } = await replicate([single({ partitionKey: keyAt('2.7'), txn }).bytes]);
    const [stored] = stage.topic.entries(0);
    const { metadata } = parseEntry(stored?.bytes ?? new Uint8Array());
    expect({ txn: metadata.txn, from: metadata.replicatedFrom }).toEqual({ txn: undefined, from: 'a' });
  });

  it('B21: pending sends are told apart by source position, not by what their producers number', async () => {
    const sends = ['p1', 'p2'].flatMap((producerName) =>
      [0n, 1n].map((sequenceId) => single({ producerName, sequenceId, partitionKey: keyAt('2.7') }).bytes),
    );
    const { stage, process } = await replicate([]);
    stage.held.add('sends');
    for (const bytes of sends) stage.source.append(bytes);
    await stage.sourceChanged();
    await process.arrives(0);
    await process.arrives(0, true);
    stage.held.delete('sends');
    await stage.advance(100);
    const stored = stage.topic.entries(0).map(({ bytes }) => {
      const { producerName, sequenceId } = parseEntry(bytes).metadata;
      return `${producerName} ${sequenceId}`;
    });
    expect(stored).toEqual(['p1 0', 'p1 1', 'p2 0', 'p2 1']);
    expect(process.counters.duplicates).toEqual({ ambiguous: 1 });
  });

  it('B49: interleaved chunks of two messages are entries of their own, all of a message to one segment', async () => {
    const chunks = ['m 1/3 2.7', 'n 1/2 9.1', 'm 2/3 2.7', 'm 3/3 2.7', 'n 2/2 9.1'];
    const { stored, counted, stage } = await replicate(chunks.map((text) => entry('chunk', ...text.split(' '))));
    expect(stored).toEqual(['7:0 (m 1/3), 7:2 (m 2/3), 7:3 (m 3/3)', '7:1 (n 1/2), 7:4 (n 2/2)']);
    expect(counted).toEqual(counts({ verbatimEntries: 5 }));
    expect(stage.source.acknowledged).toEqual({ ledgerId: 7n, entryId: 4n });
  });

  it('R6, B49: a chunk that is sent twice by its producer goes twice, and completes no message', async () => {
    const chunks = ['m 1/3', 'm 2/3', 'm 2/3', 'm 3/3'].map((text) => entry('chunk', ...text.split(' '), '2.7'));
    const { stage, stored } = await replicate(chunks);
    expect(stored).toEqual(['7:0 (m 1/3), 7:1 (m 2/3), 7:2 (m 2/3), 7:3 (m 3/3)']);
    expect(stage.source.acknowledged).toEqual({ ledgerId: 7n, entryId: 3n });
  });

  it('R4: a batch stamped [0,0] is looked into, within the budget, and goes whole when it has no keys', async () => {
    const bytes = batchOf([undefined, undefined]).bytes;
    const { stage, process, waitsFor } = await replicate([bytes], { isBudgetHeld: true });
    expect(waitsFor).toBe('budget');
    await process.granted();
    expect(outcome(stage, process).counted).toEqual(counts({ verbatimEntries: 1, inspected: 1 }));
    const trusted = await replicate([bytes], { isBudgetHeld: true, options: { unkeyedBatches: 'trust' } });
    expect(trusted.counted).toEqual(counts({ verbatimEntries: 1 }));
  });

  it('B24: a damaged payload is forwarded as it is where it fits, since nobody looks at it', async () => {
    const { stored, counted } = await replicate([entry('damaged', '2.7', '9.1')], { segments: 1 });
    expect(counted).toEqual(counts({ verbatimEntries: 1 }));
    expect(stored).toEqual(['7:0 (damaged)']);
  });
});

describe('an entry that is held (R5)', () => {
  const HUGE = { compression: 'lz4' as const };
  interface Row {
    readonly what: string;
    readonly bytes: Uint8Array;
    readonly reason: string;
    readonly given?: Given;
  }
  const ROWS: readonly Row[] = [
    {
      what: 'B24 its outer metadata cannot be read',
      bytes: Uint8Array.of(0x0e, 0x01, 0, 0, 0, 0, 0),
      reason: 'malformedEntry',
    },
    {
      what: 'B24 its payload is damaged and it does not fit',
      bytes: entry('damaged', '2.7', '9.1'),
      reason: 'checksumMismatch',
    },
    {
      what: 'B43 an encrypted batch that straddles',
      bytes: entry('encrypted', '2.7', '9.1'),
      reason: 'encryptedBatch',
    },
    {
      what: 'B24 its codec is not there',
      bytes: batchOf(['a', 'b'], HUGE).bytes,
      reason: 'codecUnavailable',
      given: { options: { codecs: {} } },
    },
    {
      what: 'B48 it unpacks to more than is allowed',
      bytes: batchOf(['a', 'b'], HUGE).bytes,
      reason: 'undecodableBatch',
      given: { options: { limits: { maxUncompressedBytes: 10 } } },
    },
    {
      what: 'B51 a single message is over the limit, its stamp included',
      bytes: entry('single', '2.7', 'size=900'),
      reason: 'tooLarge',
      given: { maxEntryBytes: 1000 },
    },
    {
      what: 'B51, R8b one key of a batch is',
      bytes: entry('entry', '2.7', 'size=900'),
      reason: 'tooLarge',
      given: { maxEntryBytes: 1000 },
    },
  ];

  it.each(ROWS)('$what: stated, counted, nothing behind it goes, and it is not tried again', async (row) => {
    const { bytes, reason, given } = row;
    const { stage, process, stored, counted } = await replicate([bytes, AFTER], given);
    expect(stored).toEqual([]);
    expect(counted).toEqual(counts({ held: { [reason]: 1 } }));
    expect(process.machine.report()).toMatchObject({
      waitingFor: { for: 'operator', reason: 'held' },
      held: { position: { ledgerId: 7n, entryId: 0n }, reason },
    });
    expect(stage.source.acknowledged).toBeUndefined();
    await stage.advance(3_600_000);
    expect(process.counters.held).toEqual({ [reason]: 1 });
  });

  it.each(ROWS)('$what: an operator lets it pass, and what is behind it goes', async ({ bytes, given }) => {
    const { stage, process } = await replicate([bytes, AFTER], given);
    await process.tell({ type: 'skip', position: { ledgerId: 7n, entryId: 0n } });
    const { stored, counted } = outcome(stage, process);
    expect(stored).toEqual(['7:1 (2.7)']);
    expect(counted).toMatchObject({ skipped: { operator: 1 } });
    expect(stage.source.acknowledged).toEqual({ ledgerId: 7n, entryId: 1n });
  });

  it('B24: a cursor that is lost in the middle of a skip ends it', async () => {
    const { stage, process } = await replicate([entry('encrypted', '2.7', '9.1'), AFTER]);
    stage.held.add('writes');
    await process.tell({ type: 'skip', position: { ledgerId: 7n, entryId: 0n } });
    await process.tell({ type: 'writeFenced', session: 2 });
    expect(process.machine.isAtRest).toBe(true);
    expect(outcome(stage, process).stored).toEqual([]);
  });

  it('B48: what claims more than is allowed is not charged to the budget, nor opened', async () => {
    const given = { isBudgetHeld: true, options: { limits: { maxUncompressedBytes: 10 } } };
    const { counted } = await replicate([batchOf(['a', 'b'], HUGE).bytes], given);
    expect(counted).toEqual(counts({ held: { undecodableBatch: 1 } }));
  });

  it('a newer layout of the remote lets it try again; the same one told twice does not', async () => {
    const { stage, process } = await replicate([entry('encrypted', '2.7', '9.1')]);
    await process.tell({ type: 'layout', layout: stage.remoteLayout });
    expect(process.counters.held).toEqual({ encryptedBatch: 1 });
    await process.tell({ type: 'layout', layout: { ...stage.remoteLayout, epoch: stage.remoteLayout.epoch + 1 } });
    expect(process.counters.held).toEqual({ encryptedBatch: 2 });
  });
});

describe('R8b, B51: what is too large is made to fit', () => {
  it('a stamp that makes a batch too large: it is cut, within the budget', async () => {
    const bytes = entry('entry', '2.1', '2.9', 'size=200');
    const maxEntryBytes = bytes.length + 10;
    const { stage, stored, counted, process } = await replicate([bytes], { segments: 1, maxEntryBytes });
    expect(stored).toEqual(['7:0 (2.1), 7:0 (2.9)']);
    expect(counted).toEqual(counts({ parts: 2, rebatchedEntries: 1 }));
    for (const stored of stage.topic.entries(0)) {
      expect(stored.bytes.length).toBeLessThanOrEqual(maxEntryBytes);
      expect(contentText(parseEntry(stored.bytes))).toMatch(/^2\.[19]$/);
    }
    expect(process.machine.report().waitingFor).toEqual({ for: 'entries' });
  });

  it('what meets the limit exactly with its stamp goes; a byte less, and a single message is held with both sizes', async () => {
    const bytes = entry('single', '2.7', 'size=200');
    const { stage } = await replicate([bytes]);
    const size = stage.topic.entries(0)[0]?.bytes.length ?? -1;
    expect((await replicate([bytes], { maxEntryBytes: size })).counted).toEqual(counts({ verbatimEntries: 1 }));
    const { counted, process } = await replicate([bytes], { maxEntryBytes: size - 1 });
    expect(counted).toEqual(counts({ held: { tooLarge: 1 } }));
    const message = `the entry has ${size} bytes with its stamp; the limit is ${size - 1}`;
    expect(process.machine.report().held).toMatchObject({ reason: 'tooLarge', message });
  });
});

describe('R5: an error that holds an entry', () => {
  it('is one of the entry itself; another is a defect, and is thrown on', () => {
    const { reason, message } = holdOf(new IsthmusError('malformedEntry', 'so it is'));
    expect([reason, message]).toEqual(['malformedEntry', 'so it is']);
    for (const defect of [new IsthmusError('invalidLayout', 'no'), new TypeError('no'), { code: 'malformedEntry' }]) {
      expect(() => holdOf(defect)).toThrow(
        expect.objectContaining(defect instanceof Error ? { message: 'no' } : defect),
      );
    }
  });
});
