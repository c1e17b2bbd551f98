/**
 * Shapes and marks as text. `0/4 8000/2` is two segments of four and two equal-width buckets, by their starts in hex;
 * a list that is not equal-width is written out, `0/(1234 8000)`. `8000 0-7fff:4000,c000` marks a segment boundary, and
 * two bucket boundaries of a range.
 */
import type { ColdMarks, PeerState, ShapeDifference } from '../../src/convergence/index.js';
import { isEqualWidth, type Layout, type Shape, shapeOf } from '../../src/layout/index.js';
import { equalWidthSplits, type HashRange } from '../../src/ring/index.js';

export function hexNumber(text: string): number {
  return Number.parseInt(text, 16);
}

export function hexText(value: number): string {
  return value.toString(16);
}

/** The shape that a text tells. */
export function shape(text: string): Shape {
  const cells = [...text.matchAll(/([0-9a-f]+)\/(?:(\d+)|\(([^)]*)\))/g)].map(([, start = '', count, list = '']) => ({
    start: hexNumber(start),
    entryBucketSplits: count === undefined ? list.split(' ').map(hexNumber) : equalWidthSplits(Number(count)),
  }));
  return {
    cells: cells.map(({ start, entryBucketSplits }, i) => ({
      range: { start, end: (cells[i + 1]?.start ?? 0x10000) - 1 },
      entryBucketSplits,
    })),
  };
}

export function shapeText({ cells }: Shape): string {
  return cells
    .map(({ range, entryBucketSplits }) => `${hexText(range.start)}/${listText(entryBucketSplits)}`)
    .join(' ');
}

function listText(list: readonly number[]): string {
  return isEqualWidth(list) ? `${list.length + 1}` : `(${list.map(hexText).join(' ')})`;
}

export function layoutText(layout: Layout): string {
  return `e${layout.epoch}  ${shapeText(shapeOf(layout))}`;
}

/** The marks that a text tells. */
export function marks(text = ''): ColdMarks {
  const words = text.split(' ').filter((word) => word !== '');
  return {
    segments: words.filter((word) => !word.includes(':')).map(hexNumber),
    buckets: words.filter((word) => word.includes(':')).map(bucketMark),
  };
}

function bucketMark(word: string): { range: HashRange; boundaries: number[] } {
  const [range = '', list = ''] = word.split(':');
  const [start = '', end = ''] = range.split('-');
  return { range: { start: hexNumber(start), end: hexNumber(end) }, boundaries: list.split(',').map(hexNumber) };
}

export function marksText({ segments, buckets }: ColdMarks | ShapeDifference): string {
  const lists = buckets.map(({ range, boundaries }) => {
    return `${hexText(range.start)}-${hexText(range.end)}:${boundaries.map(hexText).join(',')}`;
  });
  return [...segments.map(hexText), ...lists].join(' ');
}

/** A state of a peer: its shape as text, its marks, and what else is said. */
export function peer(
  cluster: string,
  text: string,
  { cold, ...more }: Partial<Omit<PeerState, 'coldMarks'>> & { readonly cold?: string | undefined } = {},
): PeerState {
  return {
    cluster,
    epoch: 1,
    revision: 1,
    shape: shape(text),
    ...(cold === undefined ? {} : { coldMarks: marks(cold) }),
    caps: { maxSegments: 64, maxEntryBucketsPerSegment: 64 },
    protocolVersion: 1,
    sentAtMs: 0,
    ...more,
  };
}
