/**
 * Reads a slab: waits up to a second for its first record, and then lingers a moment for more, so that a slow trickle
 * does not become one request for each record.
 */
import type { Clock, ParentTopics } from '../../ports/index.js';
import type { Slab, SlabLimits, SourceRecord } from '../../sender/index.js';

const LONG_POLL_MS = 1_000;
const LINGER_MS = 25;

export interface SlabPlace {
  readonly parent: string;
  readonly partition: number;
  readonly offset: number;
}

/** Rejects when the first read does; what a later one says is left for the next slab. */
export async function readSlab(
  { parents, clock }: { readonly parents: Pick<ParentTopics, 'read'>; readonly clock: Clock },
  place: SlabPlace,
  limits: SlabLimits,
  signal: AbortSignal,
): Promise<Slab> {
  let slab = await parents.read(place, limits, LONG_POLL_MS, signal);
  const endMs = clock.now() + LINGER_MS;
  while (slab.records.length > 0) {
    const waitMs = endMs - clock.now();
    const maxRecords = limits.maxRecords - slab.records.length;
    const maxBytes = limits.maxBytes - bytesOf(slab.records);
    if (waitMs <= 0 || maxRecords <= 0 || maxBytes <= 0) break;
    const at = { ...place, offset: slab.nextOffset };
    const more = await parents.read(at, { maxRecords, maxBytes }, waitMs, signal).catch(() => undefined);
    if (more === undefined || more.records.length === 0 || more.lost !== undefined) break;
    // A read brings one record in any case.
    if (bytesOf(more.records) > maxBytes) break;
    slab = { ...slab, records: [...slab.records, ...more.records], nextOffset: more.nextOffset };
  }
  return slab;
}

function bytesOf(records: readonly SourceRecord[]): number {
  return records.reduce((sum, { key, payload }) => sum + key.length + payload.length, 0);
}
