import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatPeerState,
  parseExchangeRequests,
  parseExchangeResults,
  parsePeerState,
  readExchangeRequests,
} from '../../src/convergence/parse-state.js';
import { IsthmusError } from '../../src/errors.js';
import { arbPeerState } from '../../src/testing/peer-states.js';
import { stateOf } from '../support/http.js';

const throughJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** A valid state as JSON, with members changed by path (`shape.cells.0.range`); undefined deletes. */
function changed(changes: Record<string, unknown>): unknown {
  const state = throughJson(
    formatPeerState(
      stateOf('a', {
        term: 3,
        base: [0x4000],
        coldMarks: { segments: [0x8000], buckets: [{ range: { start: 0, end: 0x7fff }, boundaries: [0x8000] }] },
        equalWidth: true,
        receiverTerm: 5,
      }),
    ),
  ) as Record<string, unknown>;
  for (const [path, value] of Object.entries(changes)) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    const owner = names.reduce((members, name) => members[name] as Record<string, unknown>, state);
    if (value === undefined) delete owner[last];
    else owner[last] = value;
  }
  return state;
}

function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof IsthmusError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'accepted';
}

describe('reading a peer state', () => {
  it('every state is read back as it was written, its JSON too', () => {
    fc.assert(
      fc.property(arbPeerState(), (state) => {
        const json = formatPeerState(state);
        expect(parsePeerState(throughJson(json))).toEqual(state);
        expect(throughJson(formatPeerState(parsePeerState(json)))).toEqual(json);
      }),
      { numRuns: 150 },
    );
  });

  it('shares nothing with what it was read from', () => {
    const json = changed({}) as { base: number[]; coldMarks: { segments: number[] } };
    const state = parsePeerState(json);
    json.base.push(1);
    json.coldMarks.segments.push(1);
    expect(state.base).toEqual([0x4000]);
    expect(state.coldMarks?.segments).toEqual([0x8000]);
  });

  it.each<[string, unknown, RegExp]>([
    ['text', 'x', /^invalidState: state is "x"/],
    ['null', null, /^invalidState: state is null/],
    ['a list', [], /^invalidState: state is \[\]/],
    ['no cluster', changed({ cluster: undefined }), /^invalidState: state\.cluster is undefined/],
    ['an empty cluster', changed({ cluster: '' }), /state\.cluster is ""/],
    ['a cluster that is a number', changed({ cluster: 7 }), /state\.cluster is 7/],
    [
      'a cluster of 256 characters',
      changed({ cluster: 'x'.repeat(256) }),
      /state\.cluster is "xxx.*1\.\.255 characters/,
    ],
    ['no epoch', changed({ epoch: undefined }), /state\.epoch is undefined/],
    ['a negative epoch', changed({ epoch: -1 }), /state\.epoch is -1/],
    ['a broken revision', changed({ revision: 0.5 }), /state\.revision is 0\.5/],
    ['an epoch as text', changed({ epoch: '1' }), /state\.epoch is "1"/],
    ['a null epoch', changed({ epoch: null }), /state\.epoch is null/],
    ['a negative term', changed({ term: -1 }), /state\.term is -1/],
    ['a negative receiverTerm', changed({ receiverTerm: -1 }), /state\.receiverTerm is -1/],
    ['no protocolVersion', changed({ protocolVersion: undefined }), /state\.protocolVersion is undefined/],
    ['no sentAtMs', changed({ sentAtMs: undefined }), /state\.sentAtMs is undefined/],
    ['no caps', changed({ caps: undefined }), /state\.caps is undefined/],
    ['no maxSegments', changed({ 'caps.maxSegments': undefined }), /state\.caps\.maxSegments is undefined/],
    ['room for no segment', changed({ 'caps.maxSegments': 0 }), /state\.caps\.maxSegments is 0: .*1\.\./],
    ['65,537 buckets', changed({ 'caps.maxEntryBucketsPerSegment': 65_537 }), /maxEntryBucketsPerSegment is 65537/],
    ['equalWidth as a number', changed({ equalWidth: 1 }), /state\.equalWidth is 1/],
    ['no shape', changed({ shape: undefined }), /^invalidShape: state\.shape: shape is undefined/],
    ['no cells', changed({ 'shape.cells': [] }), /^invalidShape: state\.shape: cells end before 0/],
    ['a gap', changed({ 'shape.cells.0.range.end': 0x7ffe }), /^invalidShape: state\.shape: cells\[1\]\.range\.start/],
    ['an overlap', changed({ 'shape.cells.0.range.end': 0x8000 }), /^invalidShape: state\.shape: cells\[1\]\.range/],
    ['a cell that is null', changed({ 'shape.cells.1': null }), /^invalidShape: state\.shape: cells\[1\]\.range/],
    ['bucket boundary 0', changed({ 'shape.cells.0.entryBucketSplits': [0] }), /^invalidShape: .*entryBucketSplits/],
    ['equal bucket boundaries', changed({ 'shape.cells.0.entryBucketSplits': [5, 5] }), /^invalidShape: .*Splits/],
    ['a base that descends', changed({ base: [2, 1] }), /^invalidState: state\.base holds 1 after 2/],
    ['a base that is no list', changed({ base: 'x' }), /^invalidState: state\.base is "x"/],
    ['base boundary 65536', changed({ base: [65_536] }), /^invalidState: state\.base holds 65536/],
    ['coldMarks as a list', changed({ coldMarks: [] }), /^invalidState: state\.coldMarks is \[\]/],
    ['no segment marks', changed({ 'coldMarks.segments': undefined }), /state\.coldMarks\.segments is undefined/],
    ['marks that descend', changed({ 'coldMarks.segments': [2, 1] }), /state\.coldMarks\.segments holds 1 after 2/],
    ['mark 0', changed({ 'coldMarks.segments': [0] }), /^invalidState: state\.coldMarks\.segments holds 0/],
    ['no bucket marks', changed({ 'coldMarks.buckets': undefined }), /state\.coldMarks\.buckets is undefined/],
    ['a bucket mark of no range', changed({ 'coldMarks.buckets.0.range': undefined }), /^invalidState: .*\[0\]\.range/],
    ['bucket marks that are null', changed({ 'coldMarks.buckets': [null] }), /coldMarks\.buckets\[0\] is null/],
    ['a bucket mark of 0', changed({ 'coldMarks.buckets.0.boundaries': [0] }), /buckets\[0\]\.boundaries holds 0/],
    [
      'bucket marks that overlap',
      changed({
        'coldMarks.buckets': [
          { range: { start: 0, end: 9 }, boundaries: [1] },
          { range: { start: 9, end: 9 }, boundaries: [1] },
        ],
      }),
      /coldMarks\.buckets\[1\]\.range is .*starts at 10 or later/,
    ],
  ])('C4, C21: refuses %s', (_, value, message) => {
    expect(refusalOf(() => parsePeerState(value))).toMatch(message);
  });

  it.each(['term', 'epoch', 'revision', 'protocolVersion', 'sentAtMs', 'receiverTerm', 'caps.maxSegments'])(
    'B46: %s may be the last safe integer, and no larger one',
    (name) => {
      const most = Number.MAX_SAFE_INTEGER;
      const readWith = (value: unknown) => refusalOf(() => parsePeerState(throughJson(changed({ [name]: value }))));
      expect(readWith(most)).toBe('accepted');
      expect(readWith(most + 1)).toContain(`state.${name} is 9007199254740992`);
      expect(readWith(2 ** 63)).toContain(`state.${name} is 9223372036854776000`);
    },
  );

  it('ignores members that it does not know, at every level', () => {
    const more = changed({ later: { deep: [1] }, 'caps.later': 1, 'shape.later': 1, 'shape.cells.0.later': 1 });
    expect(parsePeerState(more)).toEqual(parsePeerState(changed({})));
  });

  it('takes null for an absent optional member, and keeps absent marks apart from empty ones (C18)', () => {
    const absent = { term: null, base: null, coldMarks: null, equalWidth: null, receiverTerm: null };
    expect(parsePeerState(changed(absent))).toEqual(stateOf('a'));
    const empty = parsePeerState(changed({ 'coldMarks.segments': [], 'coldMarks.buckets': [] }));
    expect(empty.coldMarks).toEqual({ segments: [], buckets: [] });
  });

  it('C11: drops a mark that is no sibling of the state’s own shape, judged on its own base, and keeps the rest', () => {
    const marks = (changes: Record<string, unknown>) => parsePeerState(changed(changes)).coldMarks?.segments;
    expect(marks({ 'coldMarks.segments': [0x4000, 0x8000, 0xc000] })).toEqual([0x8000]);
    expect(marks({ base: [0x8000] })).toEqual([]);
  });
});

describe('reading the messages of the exchange', () => {
  const state = changed({});

  it('names topic and field of what it refuses', () => {
    const requests = [
      { topic: 't', state },
      { topic: 'u', state: changed({ epoch: -1 }) },
    ];
    expect(refusalOf(() => parseExchangeRequests(requests))).toContain('requests[1].state.epoch is -1');
    expect(refusalOf(() => parseExchangeRequests({}))).toContain('requests is {}');
    expect(refusalOf(() => parseExchangeRequests([7]))).toContain('requests[0] is 7');
    expect(refusalOf(() => parseExchangeRequests([{ topic: '', state }]))).toContain('requests[0].topic is ""');
    expect(refusalOf(() => parseExchangeRequests([{ topic: 'x'.repeat(4097), state }]))).toContain('requests[0].topic');
    expect(refusalOf(() => parseExchangeRequests([{ topic: 't' }]))).toContain('requests[0].state is undefined');
  });

  it('C17: one topic’s refusal is its own', () => {
    const read = readExchangeRequests([
      { topic: 't', state },
      { topic: 'u', state: changed({ 'shape.cells': [] }) },
      { topic: 'v', state },
    ]);
    expect(read.map((topic) => ('refusal' in topic ? topic.refusal.code : topic.state.cluster))).toEqual([
      'a',
      'invalidShape',
      'a',
    ]);
  });

  it('a result has a state, an error of a known code, or both', () => {
    const error = { code: 'foldLimit', message: 'too many' };
    const result = (members: object) => refusalOf(() => parseExchangeResults([{ topic: 't', ...members }]));
    expect(result({ state })).toBe('accepted');
    expect(result({ error })).toBe('accepted');
    expect(result({ state: null, error })).toBe('accepted');
    expect(parseExchangeResults([{ topic: 't', state, error }])).toEqual([
      { topic: 't', state: parsePeerState(state), error },
    ]);
    expect(result({})).toContain('results[0] is');
    expect(result({ error: { ...error, code: 'toString' } })).toContain('results[0].error.code is "toString"');
    expect(result({ error: { code: 'failed' } })).toContain('results[0].error.message is undefined');
    expect(result({ error: 'x' })).toContain('results[0].error is "x"');
    expect(result({ state: changed({ epoch: 'x' }) })).toContain('results[0].state.epoch is "x"');
  });

  it('whatever JSON comes in, the outcome is a value or an IsthmusError', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const parse of [parsePeerState, parseExchangeRequests, parseExchangeResults])
          refusalOf(() => parse(value));
      }),
    );
  });

  it('one member of a valid state replaced by anything: a value that reads back as itself, or an IsthmusError', () => {
    fc.assert(
      fc.property(arbPeerState(), fc.nat(), fc.jsonValue(), (valid, pick, replacement) => {
        const json = throughJson(formatPeerState(valid));
        const places = placesIn(json);
        const place = places[pick % places.length];
        place?.(replacement);
        let read: ReturnType<typeof parsePeerState>;
        try {
          read = parsePeerState(json);
        } catch (error) {
          expect(error).toBeInstanceOf(IsthmusError);
          return;
        }
        expect(parsePeerState(throughJson(formatPeerState(read)))).toEqual(read);
      }),
      { numRuns: 400 },
    );
  });
});

/** A setter for every member at every depth of a JSON value. */
function placesIn(value: unknown): ((replacement: unknown) => void)[] {
  if (typeof value !== 'object' || value === null) return [];
  const owner = value as Record<string, unknown>;
  return Object.keys(owner).flatMap((key) => [
    (replacement: unknown) => {
      owner[key] = replacement;
    },
    ...placesIn(owner[key]),
  ]);
}
