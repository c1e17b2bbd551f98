import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyShape, createLayout, formatLayout, parseLayout, pruneSegment, shapeOf } from '../../src/layout/index.js';
import { arbLayout } from '../../src/testing/layouts.js';

type Members = Record<string, unknown>;
interface StoredRecord extends Members {
  segments: Record<string, Members>;
}

const nowMs = 1_700_000_000_000;

function segment(segmentId: unknown, start: unknown, end: unknown, more: Members = {}): Members {
  return {
    segmentId,
    hashRange: { start, end },
    state: 'ACTIVE',
    parentIds: [],
    childIds: [],
    createdAtEpoch: 0,
    sealedAtEpoch: -1,
    createdAtMs: nowMs,
    sealedAtMs: -1,
    entryBucketSplits: [],
    ...more,
  };
}

/** Segment 0, split at 0x8000 into 1 and 2. */
function splitRecord(): StoredRecord {
  return {
    epoch: 1,
    nextSegmentId: 3,
    segments: {
      0: segment(0, 0, 0xffff, { state: 'SEALED', childIds: [1, 2], sealedAtEpoch: 1, sealedAtMs: nowMs }),
      1: segment(1, 0, 0x7fff, { parentIds: [0], createdAtEpoch: 1 }),
      2: segment(2, 0x8000, 0xffff, { parentIds: [0], createdAtEpoch: 1 }),
    },
    properties: {},
    deleted: false,
  };
}

/** The split record with members of it, or of segments, changed; a path is `segments.1.state` or `epoch`. */
function changed(changes: Record<string, unknown>): StoredRecord {
  const record = splitRecord();
  for (const [path, value] of Object.entries(changes)) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    const owner = names.reduce<Members>((members, name) => members[name] as Members, record);
    if (value === undefined) delete owner[last];
    else owner[last] = value;
  }
  return record;
}

function cellsOf(record: StoredRecord) {
  return shapeOf(parseLayout(record)).cells;
}

function legacy(segmentId: number): Members {
  return segment(segmentId, 0, 0xffff, { legacyTopicName: `persistent://t/n/x-partition-${segmentId}` });
}

describe('reading a layout record', () => {
  it('every layout is read back as it was written, its JSON too', () => {
    fc.assert(
      fc.property(arbLayout(), (layout) => {
        const record = formatLayout(layout);
        expect(parseLayout(JSON.parse(JSON.stringify(record)))).toStrictEqual(layout);
        expect(formatLayout(parseLayout(record))).toStrictEqual(record);
      }),
    );
  });

  it.each<[string, unknown, RegExp]>([
    ['no object', 'x', /record is "x": a layout is a JSON object/],
    ['no epoch', changed({ epoch: undefined }), /epoch is undefined: must be a safe integer of 0\.\.9007199254740991/],
    ['no nextSegmentId', changed({ nextSegmentId: undefined }), /nextSegmentId is undefined/],
    ['no segments', changed({ segments: undefined }), /segments is undefined/],
    ['segments as a list', changed({ segments: [] }), /segments is \[\]: an object keyed by segment id/],
    [
      'no active segment',
      { epoch: 0, nextSegmentId: 0, segments: {} },
      /holds 0\.\.65535, a gap: active segments tile the ring/,
    ],
    ['a negative epoch', changed({ epoch: -1 }), /epoch is -1/],
    ['an epoch as text', changed({ epoch: '1' }), /epoch is "1"/],
    [
      'a gap',
      changed({ 'segments.2.hashRange': { start: 0x8001, end: 0xffff } }),
      /segment 2 .* a gap at 32768: active segments tile/,
    ],
    [
      'a gap at the end',
      changed({ 'segments.2.hashRange': { start: 0x8000, end: 0xfffe } }),
      /65535\.\.65535, a gap: active segments tile/,
    ],
    ['an overlap', changed({ 'segments.2.hashRange': { start: 0x7fff, end: 0xffff } }), /segment 2 .* an overlap/],
    ['a range that runs backwards', changed({ 'segments.1.hashRange': { start: 9, end: 3 } }), /"start":9,"end":3/],
    ['a range beyond the ring', changed({ 'segments.2.hashRange': { start: 32768, end: 65536 } }), /65536/],
    ['no range', changed({ 'segments.1.hashRange': undefined }), /segments\["1"\]\.hashRange is undefined/],
    ['two spellings of an id', changed({ 'segments.01': segment(1, 0, 0x7fff) }), /segments\["01"\]\.segmentId is 1/],
    [
      'an id under another key',
      changed({ 'segments.1.segmentId': 2 }),
      /segments\["1"\]\.segmentId is 2: key and segmentId must agree/,
    ],
    ['an id not yet given out', changed({ nextSegmentId: 2 }), /segment 2 with nextSegmentId 2: ids in use are below/],
    ['an unknown state', changed({ 'segments.1.state': 'OPEN' }), /state is "OPEN": a state is ACTIVE or SEALED/],
    ['descending splits', changed({ 'segments.1.entryBucketSplits': [9, 3] }), /entryBucketSplits holds 3 after 9/],
    ['a split at zero', changed({ 'segments.1.entryBucketSplits': [0] }), /entryBucketSplits holds 0/],
    ['a split beyond the ring', changed({ 'segments.1.entryBucketSplits': [65536] }), /holds 65536/],
    ['splits that are no list', changed({ 'segments.1.entryBucketSplits': '8000' }), /entryBucketSplits is "8000"/],
    ['an active one that was sealed', changed({ 'segments.1.sealedAtEpoch': 1 }), /sealedAtEpoch .* is 1: must be -1/],
    ['a sealed one that was not', changed({ 'segments.0.sealedAtEpoch': -1 }), /sealedAtEpoch of a sealed .* is -1/],
    ['sealed after the record', changed({ 'segments.0.sealedAtEpoch': 2 }), /sealedAtEpoch of a sealed .* is 2/],
    ['created after the record', changed({ 'segments.1.createdAtEpoch': 2 }), /createdAtEpoch is 2/],
    ['no creation time', changed({ 'segments.1.createdAtMs': undefined }), /createdAtMs is undefined/],
    [
      'an active one with children',
      changed({ 'segments.1.childIds': [2] }),
      /segment 1 is active with childIds \[2\]: only sealed segments have children/,
    ],
    [
      'a child that does not know',
      changed({ 'segments.1.parentIds': [] }),
      /segment 0 has child 1: a child is a segment of the record that lists the parent/,
    ],
    [
      'a parent that does not know',
      changed({ 'segments.0.childIds': [1] }),
      /segment 2 has parent 0: a parent is an older segment of the record that lists the child/,
    ],
    ['a parent that is not there', changed({ 'segments.1.parentIds': [0, 7] }), /segment 1 has parent 7/],
    ['a parent that is younger', changed({ 'segments.1.parentIds': [0, 2] }), /segment 1 has parent 2/],
    [
      'a cycle',
      changed({
        'segments.0.parentIds': [3],
        nextSegmentId: 4,
        'segments.3': segment(3, 0, 9, { state: 'SEALED', sealedAtEpoch: 1, sealedAtMs: nowMs, childIds: [0] }),
      }),
      /segment 0 has parent 3/,
    ],
    ['a segment that is none', changed({ 'segments.1': 7 }), /segments\["1"\] is 7: a segment is a JSON object/],
    [
      'an own parent',
      changed({ 'segments.0.parentIds': [0], 'segments.0.childIds': [0, 1, 2] }),
      /segment 0 has parent 0/,
    ],
    ['parents as text', changed({ 'segments.1.parentIds': '0' }), /\["1"\]\.parentIds is "0": an array of segment ids/],
    ['a child id that is none', changed({ 'segments.0.childIds': [-1] }), /\["0"\]\.childIds.* -1/],
    ['sealed before time began', changed({ 'segments.0.sealedAtMs': -1 }), /sealedAtMs of a sealed segment is -1/],
    [
      'active and sealed at a time',
      changed({ 'segments.1.sealedAtMs': 1 }),
      /sealedAtMs of an active .* is 1: must be -1/,
    ],
    [
      'an edge twice',
      changed({ 'segments.0.childIds': [1, 1, 2] }),
      /segment 0 has childIds \[1,1,2\]: an id is listed once/,
    ],
    [
      'properties that are no texts',
      changed({ properties: { a: 1 } }),
      /properties is \{"a":1\}: a map of texts to texts/,
    ],
    ['a bad base', changed({ base: [3, 2] }), /base holds 2 after 3/],
    ['a flag that is none', changed({ deleted: 'no' }), /deleted is "no": must be true or false/],
    [
      'a topic name that is no text',
      changed({ 'segments.1.legacyTopicName': 7 }),
      /legacyTopicName is 7: a topic name is text/,
    ],
    [
      'legacy and ordinary side by side',
      { epoch: 0, nextSegmentId: 2, segments: { 0: legacy(0), 1: segment(1, 0, 0xffff) } },
      /segment 0 is legacy and segment 1 is not: active segments are all legacy or none is/,
    ],
  ])('%s is refused with the value and the rule', (_, record, message) => {
    expect(() => parseLayout(record)).toThrow(
      expect.objectContaining({ code: 'invalidLayout', message: expect.stringMatching(message) }),
    );
  });

  it('B46: numbers beyond the safe integers are refused, none is rounded', () => {
    const text = JSON.stringify(splitRecord());
    const unsafe = '9223372036854775807';
    for (const member of ['epoch', 'nextSegmentId', 'createdAtMs', 'createdAtEpoch']) {
      const record = JSON.parse(text.replace(new RegExp(`"${member}":\\d+`), `"${member}":${unsafe}`));
      expect(() => parseLayout(record), member).toThrow(
        expect.objectContaining({
          code: 'invalidLayout',
          message: expect.stringContaining(`${member} is 92233720368`),
        }),
      );
    }
    // Two neighbours that a double cannot tell apart, as the id of one segment.
    const id = '9007199254740993';
    const record = JSON.parse(text.replace('"2":{"segmentId":2', `"${id}":{"segmentId":${id}`));
    expect(() => parseLayout(record)).toThrow(/segmentId is 9007199254740992/);
    expect(() => parseLayout({ ...splitRecord(), epoch: 1n })).toThrow(/epoch is "1n"/);
  });

  it('null and absent lists are empty, and legacy segments may overlap', () => {
    const sparse = changed({ properties: null, deleted: null, base: null, 'segments.1.childIds': null });
    delete sparse.segments['2']?.entryBucketSplits;
    const named = changed({ 'segments.1.legacyTopicName': null, 'segments.2.legacyTopicName': '' });
    for (const record of [sparse, named]) expect(cellsOf(record)).toEqual(cellsOf(splitRecord()));
    expect(parseLayout(sparse)).toStrictEqual(parseLayout(splitRecord()));
    const classic = { epoch: 0, nextSegmentId: 2, segments: { 1: legacy(1), 0: legacy(0) } };
    expect(parseLayout(classic).active.map((s) => s.segmentId)).toEqual([0, 1]);
  });

  it('members that isthmus does not know are kept, derived ones are written anew', () => {
    const known = parseLayout(
      JSON.parse(
        '{"x":[1],"epoch":0,"nextSegmentId":1,"segments":{"0":' +
          `${JSON.stringify({ ...segment(0, 0, 0xffff), note: { a: null }, leaf: false, active: false })}}}`,
      ),
    );
    expect(formatLayout(known)).toMatchObject({
      x: [1],
      segments: { 0: { note: { a: null }, leaf: true, active: true, sealed: false, root: true, legacy: false } },
    });
  });
});

describe('C10: the base grid of a record', () => {
  it('is read from the first segments, and written once they no longer prove it', () => {
    const created = createLayout({ segments: 3, nowMs });
    expect(created.base).toEqual([21845, 43690]);
    expect(formatLayout(created)).not.toHaveProperty('base');

    const merged = applyShape(created, shapeOf(createLayout({ nowMs })), { nowMs });
    expect(formatLayout(merged)).not.toHaveProperty('base');
    const pruned = pruneSegment(merged, 1);
    expect(formatLayout(pruned)).toMatchObject({ base: [21845, 43690] });
    expect(parseLayout(formatLayout(pruned)).base).toEqual([21845, 43690]);
  });

  it('is not read from what is left of the first segments', () => {
    const created = createLayout({ segments: 6, nowMs });
    const merged = applyShape(created, shapeOf(createLayout({ nowMs })), { nowMs });
    for (const segmentId of [0, 2, 5]) {
      const record = formatLayout(pruneSegment(merged, segmentId));
      expect(record).toHaveProperty('base', created.base);
      expect(parseLayout({ ...record, base: undefined }).base).toBeUndefined();
    }
  });

  it('does not count legacy segments, and is absent for a power of two', () => {
    expect(createLayout({ segments: 4, nowMs })).not.toHaveProperty('base');
    expect(createLayout({ boundaries: [0x1234], nowMs })).not.toHaveProperty('base');
    expect(createLayout({ boundaries: [0x1234, 0x5678], nowMs }).base).toEqual([0x1234, 0x5678]);
  });
});
