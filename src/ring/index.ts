export {
  bucketIndex,
  bucketRange,
  equalBoundaries,
  equalWidthSplits,
  includesBoundaries,
  parseBoundaries,
  unionBoundaries,
} from './buckets.js';
export { bucketHash, classicPartition, hashBytes, hashKey, segmentHash } from './hash.js';
export {
  contains,
  covers,
  equalRanges,
  FULL_RANGE,
  formatRange,
  type HashRange,
  isRingHash,
  midpoint,
  overlaps,
  parseRange,
  RING_END,
} from './range.js';
