/**
 * The path of one entry: forwarded as it is, re-batched, looked into, skipped or held. Decided from the outer
 * metadata, the source segment and the remote's layout alone, never from the payload (R1 to R6).
 */
import { type Codecs, type DecodeLimits, type Entry, openBatch } from '../entry/index.js';
import { IsthmusError, show } from '../errors.js';
import type { Segment } from '../layout/index.js';
import { bucketIndex, hashKey } from '../ring/index.js';
import { isDone, type Rectangle } from './rectangle.js';
import { type RemoteLayout, type Routes, routesOf, type SourceSegment } from './routes.js';

/** Why an entry is not sent, but acknowledged and counted. */
export type SkipReason =
  /** A marker: of transactions or of replicated subscriptions. */
  | 'marker'
  /** It was replicated here: copying it on would make a loop. */
  | 'replicated'
  /** Its `replicate_to` does not list the remote. */
  | 'notListed'
  /** Older than the topic's TTL. */
  | 'expired'
  /** All of it has been acknowledged in an earlier attempt. */
  | 'done';

/** Where an entry goes. `segmentId` is the remote's. */
export type Path =
  | { readonly kind: 'verbatim'; readonly reason: 'fits' | 'single' | 'unkeyed'; readonly segmentId: number }
  | { readonly kind: 'rebatch'; readonly reason: 'segmentFit' | 'bucketFit' | 'unstamped' | 'partlyDone' }
  | { readonly kind: 'inspect'; readonly reason: 'zeroStamp' }
  | { readonly kind: 'skip'; readonly reason: SkipReason }
  | { readonly kind: 'hold'; readonly reason: 'encryptedBatch' };

/** What a path depends on beyond the entry and the two layouts. */
export interface PathOptions {
  /** The clock, needed with `ttlMs`. */
  readonly nowMs?: number | undefined;
  /** The topic's message TTL; absent or 0 means that nothing expires. */
  readonly ttlMs?: number | undefined;
  /** A batch stamped [0,0] without an outer key that does not fit: look at its keys (default), or trust that it has none (R4). */
  readonly unkeyedBatches?: 'inspect' | 'trust' | undefined;
  /** What of this entry has been acknowledged already. */
  readonly done?: readonly Rectangle[] | undefined;
}

/** Chooses the path of an entry. Throws `invalidLayout` on a remote layout that does not tile the ring. */
export function choosePath(entry: Entry, source: SourceSegment, remote: RemoteLayout, options: PathOptions = {}): Path {
  const { metadata } = entry;
  const skipped = skipReason(entry, remote, options);
  if (skipped !== undefined) return { kind: 'skip', reason: skipped };
  const routes = routesOf(remote);
  const cover = routes.cover(source);
  if (metadata.numMessagesInBatch === undefined) return singlePath(entry, source, routes, cover, options);
  if (options.done !== undefined && options.done.length > 0) {
    return metadata.encrypted ? HELD : { kind: 'rebatch', reason: 'partlyDone' };
  }
  const stamp = metadata.stamp;
  if (stamp !== undefined && cover !== undefined && isInOneBucket(cover, stamp.min, stamp.max)) {
    return { kind: 'verbatim', reason: 'fits', segmentId: cover.segmentId };
  }
  const looksUnkeyed =
    stamp?.max === 0 && metadata.partitionKeyBytes === undefined && metadata.orderingKey === undefined;
  if (looksUnkeyed && options.unkeyedBatches === 'trust') return unkeyedPath(source, routes);
  if (metadata.encrypted) return HELD;
  if (looksUnkeyed) return { kind: 'inspect', reason: 'zeroStamp' };
  if (stamp === undefined) return { kind: 'rebatch', reason: 'unstamped' };
  return { kind: 'rebatch', reason: cover === undefined ? 'segmentFit' : 'bucketFit' };
}

const HELD: Path = { kind: 'hold', reason: 'encryptedBatch' };

/**
 * The second half of an `inspect` path: opens the batch and looks for keys (R4). Without any, the batch is forwarded
 * as it is; else it is re-batched. Draws on the slow-path budget, since it decompresses. Throws as `readBatch` does.
 */
export function inspectBatch(
  entry: Entry,
  source: SourceSegment,
  remote: RemoteLayout,
  options: { readonly codecs: Codecs; readonly limits?: DecodeLimits | undefined },
): Extract<Path, { kind: 'verbatim' | 'rebatch' }> {
  const table = openBatch(entry, options.codecs, options.limits);
  for (let i = 0; i < table.count; i++) {
    if (!table.isUnkeyed(i)) return { kind: 'rebatch', reason: 'segmentFit' };
  }
  return unkeyedPath(source, routesOf(remote));
}

function unkeyedPath(source: SourceSegment, routes: Routes): Extract<Path, { kind: 'verbatim' }> {
  const segment = routes.segments[routes.indexOfUnkeyed(source)] as Segment;
  return { kind: 'verbatim', reason: 'unkeyed', segmentId: segment.segmentId };
}

function isInOneBucket(segment: Segment, min: number, max: number): boolean {
  const splits = segment.entryBucketSplits;
  return splits.length === 0 || bucketIndex(splits, min) === bucketIndex(splits, max);
}

/** A single message's key is in the clear, so it is always forwarded as it is (R2), a chunk of one too (R6). */
function singlePath(
  entry: Entry,
  source: SourceSegment,
  routes: Routes,
  cover: Segment | undefined,
  { done }: PathOptions,
): Path {
  const { metadata } = entry;
  if (done !== undefined && done.length > 0) {
    const { keyHash, orderingKey } = metadata;
    const bucket = orderingKey !== undefined ? hashKey(orderingKey) & 0xffff : keyHash < 0 ? 0 : keyHash & 0xffff;
    if (isDone(done, source, keyHash, bucket)) return { kind: 'skip', reason: 'done' };
  }
  if (cover !== undefined) return { kind: 'verbatim', reason: 'single', segmentId: cover.segmentId };
  const { keyHash } = metadata;
  if (keyHash < 0) return unkeyedPath(source, routes);
  const segment = routes.segments[routes.indexOfKey(keyHash)] as Segment;
  return { kind: 'verbatim', reason: 'single', segmentId: segment.segmentId };
}

function skipReason(entry: Entry, remote: RemoteLayout, options: PathOptions): SkipReason | undefined {
  const { metadata } = entry;
  if (metadata.markerType !== undefined) return 'marker';
  if (metadata.replicatedFrom !== undefined) return 'replicated';
  const { replicateTo } = metadata;
  if (replicateTo.length > 0 && !replicateTo.includes(remote.cluster)) return 'notListed';
  return isExpired(entry, options) ? 'expired' : undefined;
}

/** Older than the TTL, judged as Pulsar does: by the source broker's own time where it noted one, else by the producer's. */
function isExpired(entry: Entry, { ttlMs, nowMs }: PathOptions): boolean {
  if (ttlMs === undefined || ttlMs === 0) return false;
  if (nowMs === undefined) {
    throw new IsthmusError('invalidArgument', `a TTL of ${show(ttlMs)} ms needs nowMs to be compared with`);
  }
  return nowMs - (entry.broker?.timestampMs ?? entry.metadata.publishTimeMs) > ttlMs;
}
