import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CreateLayoutOptions, createLayout, findActiveSegment, parseLayout } from '../../src/layout/index.js';
import { contains } from '../../src/ring/index.js';
import { arbLayout } from '../../src/testing/layouts.js';

const nowMs = 1_700_000_000_000;

describe('creating a layout', () => {
  it('gives segments at explicit boundaries and buckets as asked', () => {
    const layout = createLayout({ boundaries: [0x1000, 0xf000], buckets: 3, nowMs, properties: { tier: 'gold' } });
    expect(layout.active.map((segment) => segment.range)).toEqual([
      { start: 0, end: 0x0fff },
      { start: 0x1000, end: 0xefff },
      { start: 0xf000, end: 0xffff },
    ]);
    expect(layout.active.map((segment) => segment.entryBucketSplits)).toEqual(Array(3).fill([0x5555, 0xaaaa]));
    expect(layout.properties).toEqual({ tier: 'gold' });
  });

  it('reaches every number of segments', () => {
    expect(createLayout({ segments: 65536, nowMs }).active).toHaveLength(65536);
  });

  it('is not changed by what the caller does with their arrays', () => {
    const boundaries = [0x8000];
    const layout = createLayout({ boundaries, nowMs });
    boundaries[0] = 1;
    expect(layout.active[1]?.range.start).toBe(0x8000);
  });

  it.each<[string, CreateLayoutOptions]>([
    ['segments is 0', { segments: 0, nowMs }],
    ['segments is 65537', { segments: 65537, nowMs }],
    ['segments is 1.5', { segments: 1.5, nowMs }],
    ['segments is 2 beside boundaries', { segments: 2, boundaries: [7], nowMs }],
    ['boundaries holds 0', { boundaries: [0], nowMs }],
    ['boundaries holds 7 after 7', { boundaries: [7, 7], nowMs }],
    ['boundaries holds 65536', { boundaries: [65536], nowMs }],
    ['bucket count 0', { buckets: 0, nowMs }],
    ['bucket count 65537', { buckets: 65537, nowMs }],
    ['nowMs is -1', { nowMs: -1 }],
    ['nowMs is NaN', { nowMs: Number.NaN }],
    ['properties is {"a":1}', { properties: { a: 1 as unknown as string }, nowMs }],
  ])('%s: refused', (message, options) => {
    expect(() => createLayout(options)).toThrow(
      expect.objectContaining({ code: 'invalidArgument', message: expect.stringContaining(message) }),
    );
  });
});

describe('finding the segment of a hash', () => {
  it('is the one active segment whose range holds it', () => {
    fc.assert(
      fc.property(arbLayout(), fc.integer({ min: 0, max: 0xffff }), (layout, hash) => {
        const holders = layout.active.filter((segment) => contains(segment.range, hash));
        expect(holders).toEqual([findActiveSegment(layout, hash)]);
      }),
    );
  });

  it.each([-1, 65536, 1.5, Number.NaN])('%d is refused', (hash) => {
    expect(() => findActiveSegment(createLayout({ nowMs }), hash)).toThrow(
      expect.objectContaining({ code: 'invalidArgument' }),
    );
  });

  it('is refused while several legacy segments are active: the masked hash decides there', () => {
    const legacySegment = (segmentId: number) => ({
      segmentId,
      hashRange: { start: 0, end: 0xffff },
      state: 'ACTIVE',
      createdAtEpoch: 0,
      sealedAtEpoch: -1,
      createdAtMs: nowMs,
      sealedAtMs: -1,
      legacyTopicName: `persistent://t/n/x-partition-${segmentId}`,
    });
    const one = parseLayout({ epoch: 0, nextSegmentId: 1, segments: { 0: legacySegment(0) } });
    expect(findActiveSegment(one, 0xffff).segmentId).toBe(0);
    const two = parseLayout({ epoch: 0, nextSegmentId: 2, segments: { 0: legacySegment(0), 1: legacySegment(1) } });
    expect(() => findActiveSegment(two, 0)).toThrow(
      expect.objectContaining({ code: 'invalidOperation', message: expect.stringContaining('[0,1]') }),
    );
  });
});
