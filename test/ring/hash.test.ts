import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import murmurhash from 'murmurhash';
import { describe, expect, it } from 'vitest';
import { bucketHash, classicPartition, hashBytes, hashKey, segmentHash } from '../../src/ring/index.js';

interface HashVector {
  readonly key: string;
  readonly utf8: string;
  readonly raw: string;
  readonly segmentHash: number;
  readonly bucketHash: number;
  readonly masked: number;
  readonly mod4: number;
  readonly mod7: number;
  readonly mod16: number;
}

const vectors = JSON.parse(
  readFileSync(new URL('../fixtures/pulsar/hash-vectors.json', import.meta.url), 'utf8'),
) as HashVector[];

describe('the hash of a key', () => {
  it('agrees with the Java client on every vector: raw, both rings, masked modulo', () => {
    expect(vectors).toHaveLength(564);
    for (const vector of vectors) {
      const hash = hashKey(vector.key);
      expect({
        utf8: hashKey(Buffer.from(vector.utf8, 'hex')),
        raw: hash.toString(16).padStart(8, '0'),
        segment: segmentHash(hash),
        bucket: bucketHash(hash),
        masked: hash & 0x7fffffff,
        partitions: [4, 7, 16].map((partitions) => classicPartition(hash, partitions)),
      }).toEqual({
        utf8: hash,
        raw: vector.raw,
        segment: vector.segmentHash,
        bucket: vector.bucketHash,
        masked: vector.masked,
        partitions: [vector.mod4, vector.mod7, vector.mod16],
      });
    }
  });

  it('agrees with another implementation on any bytes, wherever they lie in a buffer', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat({ max: 7 }), fc.nat({ max: 7 }), (key, before, after) => {
        const buffer = new Uint8Array(before + key.length + after).fill(0xa5);
        buffer.set(key, before);
        const expected = murmurhash.v3(key, 0);
        expect(hashKey(key)).toBe(expected);
        expect(hashBytes(buffer, before, before + key.length)).toBe(expected);
      }),
      { numRuns: 1000 },
    );
  });

  it('hashes text as its UTF-8 bytes, a lone surrogate as a question mark', () => {
    expect(hashKey('ключ-é-🚢')).toBe(hashKey(Buffer.from('ключ-é-🚢', 'utf8')));
    expect(hashKey('a\ud800b')).toBe(hashKey('a?b'));
    expect(hashKey('\udc00')).toBe(hashKey('?'));
  });

  it('B07: the raw hash, not the masked one, picks segment and bucket', () => {
    const hash = hashKey('k1');
    expect([hash, segmentHash(hash), bucketHash(hash)]).toEqual([0xfdc6602a, 0xfdc6, 0x602a]);
    expect(classicPartition(hash, 4)).toBe(0x7dc6602a % 4);
    // Keys reach both halves of the ring, and no step leaks a sign.
    const segments = vectors.map((vector) => segmentHash(hashKey(vector.key)));
    expect(segments.some((segment) => segment >= 0x8000)).toBe(true);
    expect(segments.every((segment) => segment >= 0 && segment <= 0xffff)).toBe(true);
  });
});
