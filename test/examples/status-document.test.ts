/** The status document says of real layouts and real replicators what an operator has to know, in plain JSON. */
import fc from 'fast-check';
import {
  createLayout,
  defaultCodecs,
  encodeMessage,
  equalShapes,
  equalWidthSplits,
  type Layout,
  rebucketSegment,
  shapeOf,
  splitSegment,
} from 'isthmus';
import { MemoryTopic } from 'isthmus/adapters/memory';
import { createReplicator } from 'isthmus/drivers';
import { arbLayout } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import { compareLayouts, statusDocument } from '../../examples/pulsar-replicator/status/index.js';
import { until } from '../support/until.js';
import { divergedTopic, nowMs, splitLayout, statusView } from './status-view.js';

const compare = (a: Layout, b: Layout) => compareLayouts({ cluster: 'a', layout: a }, { cluster: 'b', layout: b });

describe('compareLayouts', () => {
  const four = createLayout({ segments: 4, buckets: 4, nowMs });

  it.each<[string, Layout, Layout, string[]]>([
    ['the same', four, four, []],
    [
      'a split',
      splitSegment(four, 0, { nowMs }),
      four,
      ['0000-3fff a has 2 segments of 4 buckets, b has 1 segment of 4 buckets', '4000-ffff same'],
    ],
    [
      'finer buckets on the other side',
      four,
      rebucketSegment(four, 3, equalWidthSplits(8), { nowMs }),
      ['0000-bfff same', 'c000-ffff a has 1 segment of 4 buckets, b has 1 segment of 8 buckets'],
    ],
    [
      'boundaries that only meet at the ends',
      createLayout({ boundaries: [0x3000], buckets: 1, nowMs }),
      createLayout({ boundaries: [0x5000, 0x6000], buckets: 1, nowMs }),
      ['0000-ffff a has 2 segments of 1 bucket, b has 3 segments of 1 bucket'],
    ],
  ])('%s', (_, a, b, expected) => {
    const convergence = compare(a, b);
    const hex = (hash: number) => hash.toString(16).padStart(4, '0');
    const told = convergence.state === 'diverged' ? convergence.ranges : [];
    expect(told.map(({ start, end, difference = 'same' }) => `${hex(start)}-${hex(end)} ${difference}`)).toEqual(
      expected,
    );
  });

  it('is converged when the shapes are equal, and else its ranges tile the ring and cut no segment', () => {
    fc.assert(
      fc.property(arbLayout(), arbLayout(), (a, b) => {
        const convergence = compare(a, b);
        expect(convergence.state === 'converged').toBe(equalShapes(shapeOf(a), shapeOf(b)));
        if (convergence.state !== 'diverged') return;
        const { ranges } = convergence;
        expect(ranges.map(({ start }) => start)).toEqual([0, ...ranges.slice(0, -1).map(({ end }) => end + 1)]);
        expect(ranges.at(-1)?.end).toBe(0xffff);
        const ends = [a, b].map((layout) => new Set(layout.active.map(({ range }) => range.end)));
        for (const { end } of ranges) expect(ends.every((known) => known.has(end))).toBe(true);
      }),
      { seed: 6 },
    );
  });

  it('says which layout it does not know', () => {
    expect(compareLayouts({ cluster: 'a', layout: four }, { cluster: 'b' })).toEqual({
      state: 'unknown',
      reason: 'the layout of b is not known yet',
    });
  });
});

describe('statusDocument', () => {
  it('is JSON as it stands: terms and positions are text', () => {
    const document = statusDocument(statusView([divergedTopic('t')]));
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
    const [topic] = document.topics;
    expect(topic?.clusters.map(({ term, notes }) => ({ term, notes }))).toEqual([
      { term: '7', notes: [] },
      { term: undefined, notes: ['its layout may not be changed: unauthorized (403)'] },
    ]);
    expect(topic?.directions[1]?.segments[2]).toMatchObject({
      owner: 'self',
      needsOperator: true,
      held: { position: '8812:41', reason: 'encryptedBatch' },
      remedy: expect.stringContaining('skip'),
    });
    expect(topic?.directions.map(({ segments }) => segments[3]?.owner)).toEqual(['other', 'other']);
    expect(document.budget?.throttled).toEqual([{ segment: 'orders segment 6', totalMs: 41_000, waitsNow: true }]);
  });

  it('tells of a running replicator what it has done and what is left', async () => {
    const codecs = await defaultCodecs();
    const [a, b] = [
      new MemoryTopic({ cluster: 'a', layout: createLayout({ segments: 1, buckets: 1, nowMs }) }),
      new MemoryTopic({ cluster: 'b', layout: splitLayout() }),
    ];
    const outer = { producerName: 'p', sequenceId: 0n, publishTimeMs: nowMs, partitionKey: 'key' };
    for (let i = 0; i < 3; i++) a.append(0, encodeMessage(new Uint8Array(40), { outer }));
    a.change((layout) => splitSegment(layout, 0, { nowMs }));
    const ports = { source: a.source('b'), remote: b.remote('a'), cursors: a.cursors('b') };
    const replicator = createReplicator(ports, { codecs, backlogDelayMs: 1 });
    replicator.start();
    await until(() => replicator.status().segments.some(({ segmentId, backlog }) => segmentId === 2 && backlog === 0));
    const view = statusView([
      {
        topic: 't',
        clusters: [{ cluster: 'a' }, { cluster: 'b', layout: splitLayout() }],
        directions: [{ from: 'a', status: replicator.status() }],
      },
    ]);
    await replicator.stop();
    const [direction] = statusDocument(view).topics[0]?.directions ?? [];
    expect(direction).toMatchObject({ from: 'a', to: 'b', state: 'running', backlog: 0 });
    const { verbatimEntries = 0, rebatchedEntries = 0 } = direction?.counters ?? {};
    expect(verbatimEntries + rebatchedEntries).toBe(3);
    expect(direction?.segments.map(({ segmentId, state, owner }) => [segmentId, state, owner])).toEqual([
      [0, 'drained', 'self'],
      [1, 'running', 'self'],
      [2, 'running', 'self'],
    ]);
  });
});
