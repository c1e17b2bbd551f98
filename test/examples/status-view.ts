/** Views as the program gives them to the status document: two clusters in the middle of a split, with something of everything. */
import {
  createLayout,
  equalWidthSplits,
  type Layout,
  mergeSegments,
  newCounters,
  type ReplicatorCounters,
  rebucketSegment,
  type SegmentWait,
  splitSegment,
} from 'isthmus';
import type { ReplicatorStatus } from 'isthmus/drivers';
import type { StatusView, TopicView } from '../../examples/pulsar-replicator/status/index.js';

export const nowMs = 1_800_000_000_000;

type Segment = ReplicatorStatus['segments'][number];

export function segment(segmentId: number, waitingFor: SegmentWait, more: Partial<Segment> = {}): Segment {
  const nothing = { unsettledEntries: 0, unsettledBytes: 0, spanEntries: 0, lanes: [] };
  return { segmentId, state: 'running', waitingFor, ...nothing, ...more };
}

export function replicator(
  remote: string,
  segments: readonly Segment[],
  counters: Partial<ReplicatorCounters> = {},
): ReplicatorStatus {
  return { remote, state: 'running', segments, counters: { ...newCounters(), ...counters }, pinnedSegments: [] };
}

/** Four segments, of which the first was split; the third has finer buckets. */
export function splitLayout(): Layout {
  const first = createLayout({ segments: 4, buckets: 4, nowMs });
  return rebucketSegment(splitSegment(first, 0, { nowMs }), 2, equalWidthSplits(8), { nowMs });
}

/** Two clusters that have split and rebucketed on their own, and met on half of the ring. */
export function divergedTopic(topic: string): TopicView {
  const us = splitLayout();
  const eu = createLayout({ segments: 4, buckets: 4, nowMs });
  return {
    topic,
    clusters: [
      { cluster: 'us-west', layout: us, term: 7n },
      { cluster: 'eu-central', layout: eu, failure: 'its layout may not be changed: unauthorized (403)' },
    ],
    directions: [
      {
        from: 'us-west',
        status: {
          ...replicator(
            'eu-central',
            [
              segment(
                0,
                { for: 'results' },
                {
                  backlog: 18_204,
                  unsettledEntries: 512,
                  lanes: [{ segmentId: 0, state: 'open', inFlight: 512, queued: 0 }],
                },
              ),
              segment(1, { for: 'entries' }, { backlog: 0 }),
              segment(2, { for: 'entries' }, { state: 'drained', backlog: 0 }),
              segment(3, { for: 'claim' }, { state: 'waiting' }),
              segment(4, { for: 'parents' }, { state: 'waiting', backlog: 960 }),
              segment(5, { for: 'parents' }, { state: 'waiting', backlog: 1_177 }),
              segment(6, { for: 'budget' }, { backlog: 2_310 }),
            ],
            {
              verbatimEntries: 1_204_331,
              verbatimBytes: 31_280_000_000,
              rebatchedEntries: 88_120,
              rebatchedBytes: 2_210_000_000,
              parts: 171_003,
              duplicates: { restart: 12 },
              skipped: { replicated: 40_112 },
            },
          ),
          pinnedSegments: [0],
        },
      },
      {
        from: 'eu-central',
        status: replicator(
          'us-west',
          [
            segment(0, { for: 'entries' }, { backlog: 0 }),
            segment(1, { for: 'rateLimit' }, { backlog: 77 }),
            segment(
              2,
              { for: 'operator', reason: 'held', message: 'the batch is encrypted and does not fit as it is' },
              {
                state: 'stopped',
                backlog: 3_902,
                held: {
                  position: { ledgerId: 8_812n, entryId: 41n },
                  reason: 'encryptedBatch',
                  message: 'the batch is encrypted and does not fit as it is',
                },
              },
            ),
            segment(3, { for: 'claim' }, { state: 'waiting' }),
          ],
          { verbatimEntries: 40_112, verbatimBytes: 812_000_000, held: { encryptedBatch: 1 } },
        ),
      },
    ],
  };
}

/** Both clusters have the same layout, and everything is through. */
export function convergedTopic(topic: string): TopicView {
  const layout = mergeSegments(createLayout({ segments: 4, buckets: 2, nowMs }), 0, 1, { nowMs });
  const segments = [0, 1, 2, 3, 4].map((id) =>
    segment(id, { for: 'entries' }, { backlog: 0, state: id < 2 ? 'drained' : 'running' }),
  );
  return {
    topic,
    clusters: [
      { cluster: 'us-west', layout, term: 3 },
      { cluster: 'eu-central', layout, term: 12 },
    ],
    directions: [
      {
        from: 'us-west',
        status: replicator('eu-central', segments, { verbatimEntries: 90_011, verbatimBytes: 1_800_300_000 }),
      },
      {
        from: 'eu-central',
        status: replicator('us-west', segments, { verbatimEntries: 88_740, verbatimBytes: 1_710_000_000 }),
      },
    ],
  };
}

export function statusView(topics: readonly TopicView[]): StatusView {
  return {
    process: 'isthmus-1',
    nowMs,
    startedAtMs: nowMs - 7_384_000,
    members: [
      { name: 'isthmus-1', isSelf: true, leads: 3, lastSeenMsAgo: 0 },
      { name: 'isthmus-2', isSelf: false, leads: 1, lastSeenMsAgo: 1_800 },
    ],
    topics,
    budget: {
      bytesPerSecond: 16_777_216,
      slots: 4,
      levelBytes: 100,
      holding: 3,
      waiting: 1,
      windowMs: 60_000,
      utilisation: 0.62,
      slotUtilisation: 0.5,
      throttled: new Map([
        ['orders segment 6', { totalMs: 41_000, sinceMs: nowMs - 40 }],
        ['orders segment 1', { totalMs: 0 }],
      ]),
    },
  };
}
