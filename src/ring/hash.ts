/**
 * MurmurHash3 x86 32-bit (seed 0) over the bytes of a key, and the two rings that Pulsar cuts its result into:
 * the high half picks the segment, the low half (hashB) the entry bucket. The classic topics' hash is the same
 * value with bit 31 cleared; it must never be used for segments, since it would confine them to half of the ring.
 *
 * Own code rather than a package: on the re-batch path every message's key is hashed in place, inside a larger
 * buffer, and the packages that were compared copy or decode it first.
 */

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

const encoder = new TextEncoder();
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Hashes `bytes[start..end)` in place. Bounds are not checked: callers inside the core have done so. */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let h = 0;
  let at = start;
  for (const blocksEnd = end - ((end - start) & 3); at < blocksEnd; at += 4) {
    let k =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    k = Math.imul(k, C1);
    k = (k << 15) | (k >>> 17);
    h ^= Math.imul(k, C2);
    h = (h << 13) | (h >>> 19);
    h = (Math.imul(h, 5) + 0xe6546b64) | 0;
  }
  if (at < end) {
    let k = 0;
    for (let i = end - 1; i >= at; i--) k = (k << 8) | (bytes[i] as number);
    k = Math.imul(k, C1);
    k = (k << 15) | (k >>> 17);
    h ^= Math.imul(k, C2);
  }
  h ^= end - start;
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  return h >>> 0;
}

/**
 * The raw 32-bit hash of a key, unsigned. Bytes are hashed as they stand (a base64 text is not decoded, E9); a
 * string as its UTF-8 bytes, a lone surrogate in it as `?`, as the Java client routes it.
 */
export function hashKey(key: Uint8Array | string): number {
  if (typeof key !== 'string') return hashBytes(key, 0, key.length);
  const bytes = encoder.encode(key.replace(LONE_SURROGATE, '?'));
  return hashBytes(bytes, 0, bytes.length);
}

/** The position of a raw hash on the segment ring: its high 16 bits (PIP-495, Background). */
export function segmentHash(hash: number): number {
  return hash >>> 16;
}

/** The position of a raw hash on the bucket ring, `hashB`: its low 16 bits (PIP-486). */
export function bucketHash(hash: number): number {
  return hash & 0xffff;
}

/** The partition that a classic topic of `partitions` partitions gives a raw hash: bit 31 cleared, then modulo (E9). */
export function classicPartition(hash: number, partitions: number): number {
  return (hash & 0x7fffffff) % partitions;
}
