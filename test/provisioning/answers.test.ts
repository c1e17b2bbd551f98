/** From the answers of a cluster to a shape: what each look-up cannot see by itself, the others tell. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  describeShape,
  equalSegmentStarts,
  type LookUp,
  nearestSegmentCount,
  shapeFromAnswers,
  splitPartitionName,
  type TopicAnswers,
  type TopicShape,
} from '../../src/provisioning/index.js';
import { refusal } from '../support/expect.js';

const gone: LookUp<never> = { type: 'missing' };
const failed: LookUp<never> = { type: 'failed', failure: 'unauthorized', reason: '401' };
const found = <T>(value: T): LookUp<T> => ({ type: 'found', value });

/** Answers of a cluster that has the namespace and nothing in it, with changes. */
function shape(changes: Partial<TopicAnswers>): TopicShape {
  return shapeFromAnswers({
    name: 'x',
    namespace: found(true),
    partitions: gone,
    names: found([]),
    scalable: gone,
    ...changes,
  });
}

const names = (...list: string[]) => ({ names: found(list) });
const segments = (...exist: boolean[]) => ({
  scalable: found(exist.map((exists, segmentId) => ({ segmentId, start: segmentId * 0x4000, exists }))),
});

describe('shapes', () => {
  it.each<[string, Partial<TopicAnswers>, TopicShape]>([
    ['nothing', {}, { type: 'missing' }],
    ['no namespace, whatever else is said', { namespace: gone, ...segments(true) }, { type: 'namespaceMissing' }],
    ['a plain topic', { partitions: found(0), ...names('x') }, { type: 'nonPartitioned', partitionNamed: false }],
    [
      'a plain topic that is named like a partition',
      { name: 'x-partition-3', partitions: found(0), ...names('x-partition-3') },
      { type: 'nonPartitioned', partitionNamed: true },
    ],
    [
      'partitions, in any order, and others of like names',
      { partitions: found(2), ...names('x-partition-1', 'xx-partition-7', 'x-partition-0', 'x-partition-01', 'y') },
      { type: 'partitioned', partitions: 2, absent: [] },
    ],
    [
      'a record without its partitions',
      { partitions: found(2), ...names('x-partition-1') },
      { type: 'partitioned', partitions: 2, absent: [0] },
    ],
    [
      'partitions beyond the record',
      { partitions: found(1), ...names('x-partition-0', 'x-partition-10', 'x-partition-9') },
      { type: 'partitionedAndOrphans', partitions: 1, absent: [], beyond: [9, 10] },
    ],
    ['partitions without a record', names('x-partition-1', 'x-partition-0'), { type: 'orphans', indices: [0, 1] }],
    ['a record and a plain topic', { partitions: found(3), ...names('x') }, { type: 'mixed', partitions: 3 }],
    ['a scalable topic', segments(true, true), { type: 'scalable', starts: [0, 0x4000] }],
    [
      'a scalable topic without a segment',
      segments(true, false),
      { type: 'scalablePartial', starts: [0, 0x4000], absent: [1] },
    ],
    ['both kinds', { partitions: found(0), ...names('x'), ...segments(true) }, { type: 'both' }],
    ['a scalable topic and orphans', { ...names('x-partition-0'), ...segments(true) }, { type: 'both' }],
  ])('%s', (_, answers, expected) => {
    expect(shape(answers)).toEqual(expected);
    expect(describeShape(expected)).not.toBe('');
  });

  it.each<[string, Partial<TopicAnswers>]>([
    ['listed without being there', names('x')],
    ['a namespace that vanished meanwhile', { names: gone }],
    ['segments that do not begin with the ring', { scalable: found([{ segmentId: 1, start: 5, exists: true }]) }],
    ['a scalable topic without segments', { scalable: found([]) }],
  ])('are unclear: %s', (_, answers) => {
    expect(shape(answers)).toMatchObject({ type: 'unknown', failure: 'unclear' });
  });

  it('are unknown as soon as one look-up has failed, and never missing', () => {
    const arbAnswer = <T>(...values: T[]) => fc.constantFrom<LookUp<T>>(gone, failed, ...values.map(found));
    const arbAnswers = fc.record({
      name: fc.constant('x'),
      namespace: arbAnswer(true as const),
      partitions: arbAnswer(0, 2),
      names: arbAnswer<readonly string[]>([], ['x'], ['x-partition-0']),
      scalable: arbAnswer([{ segmentId: 0, start: 0, exists: true }]),
    });
    const law = (answers: TopicAnswers) => {
      const { type } = shapeFromAnswers(answers);
      const { namespace, partitions, names: listed, scalable } = answers;
      if (namespace.type === 'missing') return type === 'namespaceMissing';
      const hasFailed = [namespace, partitions, listed, scalable].some((answer) => answer.type === 'failed');
      return hasFailed ? type === 'unknown' : type !== 'namespaceMissing';
    };
    fc.assert(fc.property(arbAnswers, law), { numRuns: 500 });
  });
});

describe('names and first segments', () => {
  it.each([
    ['x-partition-0', { base: 'x', index: 0 }],
    ['x-partition-1-partition-12', { base: 'x-partition-1', index: 12 }],
    ['x-partition-', undefined],
    ['x-partition-01', undefined],
    ['-partition-1', undefined],
    ['x-partition-99999999999999999999', undefined],
    ['x', undefined],
  ])('%s as the name of a partition', (name, parts) => {
    expect(splitPartitionName(name)).toEqual(parts);
  });

  it('a topic begins everywhere with a power of two of equal segments', () => {
    expect(equalSegmentStarts(4)).toEqual([0, 0x4000, 0x8000, 0xc000]);
    for (const segments of [0, 3, -2, 1.5, 2_048, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(refusal(() => equalSegmentStarts(segments))).toBe('invalidArgument');
    }
  });

  it('a cluster that can only be told a count begins no finer than the peer', () => {
    expect(nearestSegmentCount([0])).toBe(1);
    expect(nearestSegmentCount([0, 0x4000, 0x8000])).toBe(2);
    expect(nearestSegmentCount([0, 0x5555, 0xaaaa])).toBe(1);
    for (const segments of [1, 2, 64, 1_024]) expect(nearestSegmentCount(equalSegmentStarts(segments))).toBe(segments);
    const arbStarts = fc
      .uniqueArray(fc.integer({ min: 1, max: 15 }))
      .map((cuts) => [0, ...cuts.map((at) => at * 0x1000)]);
    const law = (starts: number[]) =>
      equalSegmentStarts(nearestSegmentCount(starts)).every((start) => starts.includes(start));
    fc.assert(fc.property(arbStarts, law));
  });
});
