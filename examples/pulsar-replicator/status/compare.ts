/**
 * How the layouts of two clusters stand to each other: the ranges on which both have the same segments and buckets, and
 * for each range on which they do not, what either side has there. Only what both are is compared, not what a
 * controller is on its way to.
 */
import { equalShapes, type HashRange, type Layout, type Segment, shapeOf } from 'isthmus';

/** Ranges are in ring order, and tile the ring. */
export type Convergence =
  | { readonly state: 'converged' }
  | { readonly state: 'diverged'; readonly ranges: readonly ComparedRange[] }
  | { readonly state: 'unknown'; readonly reason: string };

/** Neighbouring ranges are told as one. */
export interface ComparedRange extends HashRange {
  readonly same: boolean;
  /** In words, where they differ. */
  readonly difference?: string;
}

interface Side {
  readonly cluster: string;
  readonly layout?: Layout;
}

/** Compares the active segments of two clusters. */
export function compareLayouts(a: Side, b: Side): Convergence {
  for (const { cluster, layout } of [a, b]) {
    const reason = layout === undefined ? 'is not known yet' : unshapely(layout);
    if (reason !== undefined) return { state: 'unknown', reason: `the layout of ${cluster} ${reason}` };
  }
  const [own, theirs] = [a.layout?.active ?? [], b.layout?.active ?? []];
  const ranges = joinNeighbours(pieces(own, theirs));
  if (ranges.every(({ same }) => same)) return { state: 'converged' };
  return {
    state: 'diverged',
    ranges: ranges.map((range) =>
      range.same ? range : { ...range, difference: `${inWords(a, range)}, ${inWords(b, range)}` },
    ),
  };
}

/** Segments of classic topics overlap, so that there is nothing to compare. */
function unshapely(layout: Layout): string | undefined {
  try {
    shapeOf(layout);
    return undefined;
  } catch {
    return 'still has the segments of a classic topic, whose ranges overlap';
  }
}

/** The smallest ranges that begin and end at a boundary of both: one segment of either side, or some that differ. */
function pieces(a: readonly Segment[], b: readonly Segment[]): ComparedRange[] {
  const theirs = new Map(b.map((segment) => [segment.range.end, segment]));
  const found: ComparedRange[] = [];
  let start = 0;
  for (const own of a) {
    const { end } = own.range;
    const their = theirs.get(end);
    if (their === undefined) continue;
    found.push({ start, end, same: start === own.range.start && isSame(own, their) });
    start = end + 1;
  }
  return found;
}

function isSame(a: Segment, b: Segment): boolean {
  return equalShapes({ cells: [a] }, { cells: [b] });
}

function joinNeighbours(ranges: readonly ComparedRange[]): ComparedRange[] {
  const joined: ComparedRange[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last?.same === range.same) joined[joined.length - 1] = { ...last, end: range.end };
    else joined.push(range);
  }
  return joined;
}

/** `us has 2 segments of 4 buckets`. */
function inWords({ cluster, layout }: Side, { start, end }: HashRange): string {
  const inside = layout?.active.filter(({ range }) => start <= range.start && range.end <= end) ?? [];
  const buckets = [...new Set(inside.map(({ entryBucketSplits }) => entryBucketSplits.length + 1))];
  const counts = buckets.sort((a, b) => a - b).join(' or ');
  return `${cluster} has ${plural(inside.length, 'segment')} of ${counts} ${counts === '1' ? 'bucket' : 'buckets'}`;
}

function plural(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
