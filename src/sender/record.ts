/** What a remote child sends: the parent's records, and the lane on which each of them travels. */

/** One record of a partition of the parent. Its bytes must not change while the sender holds them. */
export interface SourceRecord {
  /** Ascending within the partition; a safe integer of at least 0. */
  readonly offset: number;
  /** Empty: the record has no key. */
  readonly key: Uint8Array;
  readonly payload: Uint8Array;
  /** When the parent stored it, in milliseconds since the epoch. */
  readonly storedAtMs: number;
}

/** The most lanes of a link. */
export const MAX_LANES = 8;

/** The lanes of a link as they are stored: unset means 1, and anything else is brought into 1..8. */
export function laneCount(stored: number | undefined): number {
  return Math.min(MAX_LANES, Math.max(1, Math.trunc(stored ?? 1)));
}

/** FNV-1a, 32 bit, unsigned. */
export function fnv1a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash >>> 0;
}

/** The lane of a record: by the hash of its key, so that a key's records never overtake each other; without one by its offset. */
export function laneOf(record: Pick<SourceRecord, 'key' | 'offset'>, lanes: number): number {
  if (lanes <= 1) return 0;
  return (record.key.length === 0 ? record.offset : fnv1a(record.key)) % lanes;
}

/** What a record weighs in a slab and in the held budget: its payload and its key. */
export function recordBytes({ key, payload }: SourceRecord): number {
  return key.length + payload.length;
}
