/** Windows of whole segments: loaded, and handed to successors. Each producer's is a row of its own. */
import { DedupWindow } from '../../dedup/index.js';
import type { Layout, Segment } from '../../layout/index.js';
import { FULL_RANGE } from '../../ring/index.js';
import type { Tables } from './environment.js';

/** What a segment knows of all its producers. */
export function loadWindow({ windows }: Tables, topicId: number, segmentId: number): DedupWindow {
  const producers: [string, string][] = [];
  const completeTo: [string, string | null][] = [];
  for (const { value } of windows.getRange(rowsOf(topicId, segmentId))) {
    producers.push(...Object.entries(value.producers));
    completeTo.push(...Object.entries(value.completeTo ?? {}));
  }
  return DedupWindow.restore({
    producers: Object.fromEntries(producers),
    completeTo: Object.fromEntries(completeTo),
  });
}

/**
 * Writes what a new segment of a layout inherits from its parents (R13). A parent that is gone counts as one that
 * stored nothing: twice is better than never.
 */
export function inheritWindow(tables: Tables, topicId: number, { segments }: Layout, child: Segment): void {
  const parents = child.parentIds.map((parentId) => ({
    window: loadWindow(tables, topicId, parentId),
    range: segments.get(parentId)?.range ?? FULL_RANGE,
  }));
  const { producers } = DedupWindow.inherit(parents).snapshot();
  for (const [producer, position] of Object.entries(producers)) {
    tables.windows.putSync([topicId, child.segmentId, producer], { producers: { [producer]: position } });
  }
}

/** The rows of one segment: texts sort behind numbers, so a longer key lies before the next id. */
export function rowsOf(topicId: number, segmentId: number) {
  return { start: [topicId, segmentId], end: [topicId, segmentId + 1] };
}
