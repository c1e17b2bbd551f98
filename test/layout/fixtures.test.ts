/** Records of a live broker: read, written, and made again by the same operations. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { IsthmusError } from '../../src/errors.js';
import {
  createLayout,
  findActiveSegment,
  formatLayout,
  isLegacy,
  type Layout,
  mergeSegments,
  parseLayout,
  pruneSegment,
  rebucketSegment,
  type Segment,
  shapeOf,
  splitSegment,
} from '../../src/layout/index.js';
import { equalWidthSplits } from '../../src/ring/index.js';

interface ActiveSegment {
  readonly segmentId: number;
  readonly start: number;
  readonly end: number;
  readonly entryBucketSplits: readonly number[];
}

interface StoredLayout {
  readonly topic: string;
  readonly stored: string;
  readonly operations: readonly string[];
  readonly epoch: number;
  readonly nextSegmentId: number;
  readonly active: readonly ActiveSegment[];
  readonly findActiveSegment: readonly (readonly [hash: number, segmentId: number])[];
}

interface Attempt {
  readonly topic: string;
  readonly refusedOperation: string;
  readonly accepted: boolean;
}

const folder = new URL('../fixtures/pulsar/layouts/', import.meta.url);
const readJson = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
const manifest = readJson('manifest.json') as (StoredLayout | Attempt)[];
const stored = manifest.filter((entry): entry is StoredLayout => 'stored' in entry);
const nowMs = 1_800_000_000_000;

function activeOf(layout: Layout): ActiveSegment[] {
  return layout.active.map(({ segmentId, range, entryBucketSplits }) => ({ segmentId, ...range, entryBucketSplits }));
}

/** Plays one operation of the manifest as a broker does it. */
function play(layout: Layout, operation: string): Layout {
  const [verb, ...words] = operation.split(' ');
  const [first = Number.NaN, second = Number.NaN] = words.filter((word) => /^\d+$/.test(word)).map(Number);
  switch (verb) {
    case 'split':
      return splitSegment(layout, first, { bucketPolicy: 'divide', nowMs });
    case 'merge':
      return mergeSegments(layout, first, second, { bucketPolicy: 'sum', nowMs });
    case 'rebucket': {
      const present = layout.segments.get(first)?.entryBucketSplits ?? [];
      const splits = operation.endsWith('present count') ? present : equalWidthSplits(second);
      return rebucketSegment(layout, first, splits, { nowMs });
    }
    case 'garbage':
      return collectGarbage(layout);
    default:
      throw new Error(`unknown operation in the manifest: ${operation}`);
  }
}

/** One tick of the broker's collector takes the sealed segments that were roots when it began. */
function collectGarbage(layout: Layout): Layout {
  const roots = [...layout.segments.values()].filter((s) => s.state === 'sealed' && s.parentIds.length === 0);
  return roots.reduce((pruned, root) => pruneSegment(pruned, root.segmentId), layout);
}

function withoutTimes(layout: Layout): unknown {
  const timeless = (segment: Segment) => ({ ...segment, createdAtMs: 0, sealedAtMs: 0 });
  const { segments, active, unknownMembers: _, properties: __, ...rest } = layout;
  return { ...rest, segments: [...segments.values()].map(timeless), active: active.map(timeless) };
}

describe('layout records of a live broker', () => {
  it('are all there', () => {
    expect(stored).toHaveLength(59);
  });

  it.each(stored.map((entry) => [entry.stored, entry] as const))('%s: read and written back', (name, entry) => {
    const record = readJson(name);
    const layout = parseLayout(record);
    expect(formatLayout(layout)).toEqual(record);
    expect(JSON.parse(JSON.stringify(formatLayout(layout)))).toEqual(record);
    expect(layout.epoch).toBe(entry.epoch);
    expect(layout.nextSegmentId).toBe(entry.nextSegmentId);
    const expected = entry.active.map(({ segmentId, start, end, entryBucketSplits }) => ({
      segmentId,
      start,
      end,
      entryBucketSplits,
    }));
    expect(activeOf(layout)).toEqual(expected);
    for (const [hash, segmentId] of entry.findActiveSegment) {
      expect(findActiveSegment(layout, hash).segmentId).toBe(segmentId);
    }
  });

  const histories = new Map<string, StoredLayout[]>();
  for (const entry of stored) histories.set(entry.topic, [...(histories.get(entry.topic) ?? []), entry]);

  it.each([...histories])('%s: the same operations make the same layouts', (_, history) => {
    let layout: Layout | undefined;
    for (const entry of history) {
      const operation = entry.operations.at(-1) ?? '';
      const [, count] = /^create (\d+)/.exec(operation) ?? [];
      if (count !== undefined) layout = createLayout({ segments: Number(count), nowMs });
      // Migration is the broker's own; from its outcome on, the operations are the same.
      else if (layout === undefined) layout = parseLayout(readJson(entry.stored));
      else if (!operation.startsWith('set ')) layout = play(layout, operation);
      expect(withoutTimes(layout as Layout)).toEqual(withoutTimes(parseLayout(readJson(entry.stored))));
    }
  });

  it('operations that the broker refused are refused, and nothing changes', () => {
    let layout: Layout | undefined;
    let refused = 0;
    for (const entry of manifest) {
      if ('stored' in entry) {
        layout = parseLayout(readJson(entry.stored));
      } else if (!entry.accepted) {
        const before = formatLayout(layout as Layout);
        expect(() => play(layout as Layout, entry.refusedOperation), entry.refusedOperation).toThrow(IsthmusError);
        expect(formatLayout(layout as Layout)).toEqual(before);
        refused++;
      }
    }
    expect(refused).toBe(7);
  });

  it('a migrated topic keeps its legacy parents, and its shape comes from the new segments alone', () => {
    const layout = parseLayout(readJson('migrated3-00.stored.json'));
    const legacy = [...layout.segments.values()].filter(isLegacy);
    expect(legacy.map((segment) => segment.legacyTopicName?.slice(-11))).toEqual([
      'partition-0',
      'partition-1',
      'partition-2',
    ]);
    expect(shapeOf(layout).cells.map((cell) => cell.range.start)).toEqual([0, 21845, 43690]);
    expect(layout.base).toEqual([21845, 43690]);
  });

  it('members that isthmus does not know pass through an operation', () => {
    const record = readJson('autoscale-policy-01.stored.json') as { autoScalePolicy: unknown };
    const layout = splitSegment(parseLayout(record), 0, { nowMs });
    expect(formatLayout(layout)).toMatchObject({ autoScalePolicy: record.autoScalePolicy });
  });
});
