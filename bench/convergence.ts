/** nextShape with 2 and 16 peers: the cost of 4,096 cells over 64 times that of 64, which is 1 where it is linear. */
import { createLayout, equalWidthSplits, nextShape, type PeerState, type Shape, shapeOf } from 'isthmus';
import { atMost, measure, type Row } from './harness.js';

const FEW = 64;
const MANY = 4096;
const CAPS = { maxSegments: 65_536, maxEntryBucketsPerSegment: 1024 };

interface World {
  readonly local: Shape;
  readonly peers: readonly PeerState[];
  /** Every second boundary: those between siblings. */
  readonly cold: readonly number[];
}

/** Peers of other bucket counts; half of the boundaries are marked cold by all but the last peer. */
function world(cells: number, count: number): World {
  const local = shapeOf(createLayout({ segments: cells, buckets: 4, nowMs: 0 }));
  const cold = local.cells.filter((_, i) => i % 2 === 1).map(({ range }) => range.start);
  const peers = Array.from({ length: count }, (_, i): PeerState => {
    const entryBucketSplits = equalWidthSplits(2 + (i % 3));
    return {
      cluster: `peer-${i}`,
      term: 1,
      epoch: 1,
      revision: 1,
      shape: { cells: local.cells.map(({ range }) => ({ range, entryBucketSplits })) },
      coldMarks: { segments: i === count - 1 ? cold.slice(0, cells / 8) : cold, buckets: [] },
      caps: CAPS,
      protocolVersion: 1,
      sentAtMs: 0,
    };
  });
  return { local, peers, cold };
}

export async function convergenceRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const count of [2, 16]) {
    const [few, many] = [world(FEW, count), world(MANY, count)];
    const run = ({ local, peers, cold }: World) => {
      const next = nextShape({
        local,
        localMarks: { segments: cold, buckets: [] },
        peers,
        unheard: [],
        foldLimit: CAPS.maxSegments,
      });
      if (next.removed.segments.length === 0 || next.added.buckets.length === 0) throw new Error('nothing was decided');
    };
    const repeat = (input: World) => (iterations: number) => {
      for (let i = 0; i < iterations; i++) run(input);
      return undefined;
    };
    const timings = await measure([
      { name: 'few', run: repeat(few) },
      { name: 'many', run: repeat(many) },
    ]);
    const [small = 0, large = 0] = timings.map(({ medianNs }) => medianNs);
    const growth = MANY / FEW;
    rows.push(
      atMost(`nextShape, ${MANY} cells, ${count} peers`, `${growth} x that of ${FEW}`, large, growth * small, 1.2),
    );
  }
  return rows;
}
