/** What a host that performs operations of its own makes of them: the effects that a plan reckons with (C22). */
import { equalWidthSplits } from '../ring/index.js';
import { mergeSegments, rebucketSegment, splitSegment } from './mutate.js';
import type { Operation } from './planned-host.js';
import type { Layout } from './segment.js';

/** What an unmodified Pulsar broker makes of one operation: splits halve the buckets, merges add them up. */
export function executeOperation(layout: Layout, operation: Operation, nowMs: number): Layout {
  switch (operation.type) {
    case 'split': {
      const at = operation.at === undefined ? {} : { at: operation.at };
      return splitSegment(layout, operation.segmentId, { ...at, bucketPolicy: 'divide', nowMs });
    }
    case 'merge':
      return mergeSegments(layout, operation.leftId, operation.rightId, { bucketPolicy: 'sum', nowMs });
    case 'rebucket': {
      const splits = operation.splits ?? equalWidthSplits(operation.buckets);
      return rebucketSegment(layout, operation.segmentId, splits, { nowMs });
    }
  }
}
