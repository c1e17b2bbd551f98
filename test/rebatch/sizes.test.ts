/** Parts that are too large: the codec that is kept, cuts by hash, and what cannot be cut (R8, R8b, B51). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DedupWindow } from '../../src/dedup/index.js';
import { type Entry, type MessageFields, readBatch } from '../../src/entry/index.js';
import { type Part, rebatch } from '../../src/rebatch/index.js';
import { FULL_RANGE } from '../../src/ring/index.js';
import { arbBucketSplits } from '../../src/testing/layouts.js';
import { CODEC_NAMES, codecs } from '../support/codecs.js';
import { refusal } from '../support/expect.js';
import {
  batch,
  bodiesOf,
  bucketHashOf,
  FIVE_MIB,
  keysIn,
  message,
  noise,
  OPTIONS,
  openPart,
  partLength,
  remoteOf,
  WHOLE_SOURCE,
} from '../support/rebatch.js';

const KEYS = keysIn(FULL_RANGE);
const ONE = remoteOf([0]);

function cut(
  entry: Entry,
  maxEntryBytes: number,
  options: { keepCodec?: boolean; splits?: readonly number[] } = {},
): Part[] {
  const { keepCodec = true, splits = [] } = options;
  return rebatch(entry, WHOLE_SOURCE, remoteOf([0], splits), { ...OPTIONS, keepCodec, maxEntryBytes });
}

/** Messages of many keys with bodies of one size, repeating text or noise. */
function messages(count: number, size: number, body: 'text' | 'noise' = 'text'): MessageFields[] {
  return Array.from({ length: count }, (_, i) => {
    const payload = body === 'noise' ? noise(size, i) : Buffer.from(`${i} `.padEnd(size, 'abcdefgh'));
    return { ...message(KEYS[i % KEYS.length]), payload };
  });
}

describe('R8: the codec of a part', () => {
  it.each(CODEC_NAMES)('%s is kept, or left off on request, and the messages are the same', (compression) => {
    const entry = batch(messages(50, 100), { compression });
    const kept = cut(entry, FIVE_MIB, { splits: [0x8000] });
    const plain = cut(entry, FIVE_MIB, { keepCodec: false, splits: [0x8000] });
    expect(kept.map((part) => openPart(part).metadata.compression)).toEqual([compression, compression]);
    for (const part of plain) {
      const { metadata } = openPart(part);
      expect([metadata.compression, metadata.uncompressedSize]).toEqual(['none', undefined]);
    }
    expect(plain.map(bodiesOf)).toEqual(kept.map(bodiesOf));
  });

  it('R8b: a part that is too large without its codec keeps it, each part for itself', () => {
    const small = messages(10, 20).filter((m) => bucketHashOf(m) < 0x8000);
    const large = messages(40, 2000).filter((m) => bucketHashOf(m) >= 0x8000);
    const entry = batch([...small, ...large], { compression: 'zstd' });
    const parts = cut(entry, 20_000, { keepCodec: false, splits: [0x8000] });
    expect(parts.map((part) => openPart(part).metadata.compression)).toEqual(['none', 'zstd']);
  });
});

describe('R8: a limit that is met exactly', () => {
  const sizeOf = (entry: Entry, keepCodec: boolean) => cut(entry, FIVE_MIB, { keepCodec }).map(partLength)[0] ?? 0;
  const compressionOf = (entry: Entry, limit: number, keepCodec = true) =>
    cut(entry, limit, { keepCodec }).map((part) => openPart(part).metadata.compression);

  it.each(CODEC_NAMES)('%s is left off as long as the part fits plain', (compression) => {
    const text = batch([{ ...message('k'), payload: Buffer.alloc(2000, 'ab') }], { compression });
    const plain = sizeOf(text, false);
    expect(compressionOf(text, plain, false)).toEqual(['none']);
    expect(compressionOf(text, plain - 1, false)).toEqual([compression]);
  });

  it.each(CODEC_NAMES)(
    '%s that makes noise larger is kept while it fits, and left off where only that fits',
    (compression) => {
      const payload = noise(2000, 1);
      const entry = batch([{ ...message('k'), payload }], { compression });
      const [kept, plain] = [sizeOf(entry, true), sizeOf(entry, false)];
      expect(kept).toBeGreaterThan(plain);
      expect(compressionOf(entry, kept)).toEqual([compression]);
      expect(compressionOf(entry, kept - 1)).toEqual(['none']);
      expect(() => cut(entry, plain - 1)).toThrow(
        expect.objectContaining({
          code: 'tooLarge',
          message: expect.stringMatching(/^1 messages of bucket hash \d+ take \d+ bytes; the limit is \d+/),
        }),
      );
    },
  );
});

describe('R8b: cuts', () => {
  const entry = batch(messages(60, 100));

  it('a limit that a part meets exactly is kept; one byte less, and the bucket is cut in two by hash', () => {
    const [whole] = cut(entry, FIVE_MIB);
    const size = partLength(whole ?? expect.fail('no part'));
    expect(cut(entry, size)).toHaveLength(1);
    expect(cut(entry, size - 1).map(({ position }) => position.part)).toEqual([0x7fff, 0xffff]);
  });

  it('begin at the middle of the bucket, and its end stays the last number', () => {
    const parts = cut(entry, 4000, { splits: [0x2000, 0x6000] });
    const numbers = parts.map(({ position }) => position.part);
    for (const end of [0x1fff, 0x5fff, 0xffff]) expect(numbers).toContain(end);
    expect(numbers).toContain(0x6000 + 0x9fff / 2 - 0.5);
  });

  it('B03, B51: a later attempt that is not cut meets the numbers of one that was', () => {
    const window = new DedupWindow();
    const [first, second, ...rest] = cut(entry, 3000);
    for (const part of [first, second]) expect(window.offer('p', part ?? expect.fail('no cut'))).toBe('accept');
    expect(rest.length).toBeGreaterThan(0);
    const [whole] = cut(entry, FIVE_MIB);
    const stored = second?.rectangle.buckets.end ?? -1;
    expect(window.offer('p', whole ?? expect.fail('no part'))).toEqual({ partial: stored });
    const done = [{ range: FULL_RANGE, buckets: { start: 0, end: stored } }];
    const [remainder] = rebatch(entry, WHOLE_SOURCE, ONE, { ...OPTIONS, done });
    expect(window.offer('p', remainder ?? expect.fail('no rest'))).toBe('accept');
    expect([first, second, remainder].flatMap((part) => (part === undefined ? [] : bodiesOf(part))).sort()).toEqual(
      cut(entry, FIVE_MIB).flatMap(bodiesOf).sort(),
    );
  });

  it('are disjoint, hold all messages in order, and none exceeds the limit; without need there are none', () => {
    const size = fc.integer({ min: 400, max: 6000 });
    const codec = fc.constantFrom('none' as const, ...CODEC_NAMES);
    const seen = { cut: 0, tooLarge: 0 };
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        size,
        codec,
        fc.boolean(),
        arbBucketSplits(),
        (count, limit, compression, keepCodec, splits) => {
          const source = batch(messages(count, 60, count % 2 === 0 ? 'text' : 'noise'), { compression });
          const whole = cut(source, FIVE_MIB, { keepCodec, splits });
          let parts: Part[];
          try {
            parts = cut(source, limit, { keepCodec, splits });
          } catch (error) {
            expect(error).toMatchObject({ code: 'tooLarge' });
            seen.tooLarge++;
            return;
          }
          for (const part of parts) expect(partLength(part)).toBeLessThanOrEqual(limit);
          let last = -1;
          for (const { rectangle, position, lowestHash } of parts) {
            expect(position.part).toBe(rectangle.buckets.end);
            expect(rectangle.buckets.start).toBeGreaterThan(last);
            expect(lowestHash).toBeGreaterThanOrEqual(rectangle.buckets.start);
            last = rectangle.buckets.end;
          }
          for (const bucket of whole) {
            const within = parts.filter(
              ({ rectangle: { buckets } }) =>
                bucket.rectangle.buckets.start <= buckets.start && buckets.end <= bucket.rectangle.buckets.end,
            );
            if (within.length > 1) seen.cut++;
            if (within.length > 1 && keepCodec) expect(partLength(bucket)).toBeGreaterThan(limit);
            const records = within.flatMap((part) => {
              const messages = readBatch(openPart(part), codecs);
              const { start, end } = part.rectangle.buckets;
              expect(messages.every(({ bucketHash }) => start <= bucketHash && bucketHash <= end)).toBe(true);
              return messages.map(({ payload }) => Buffer.from(payload).toString('hex'));
            });
            const all = readBatch(openPart(bucket), codecs);
            const order = all.map(({ payload }) => Buffer.from(payload).toString('hex'));
            expect([...records].sort()).toEqual([...order].sort());
          }
        },
      ),
      { numRuns: 100 },
    );
    expect(seen.cut).toBeGreaterThan(10);
  });

  it('keep the order of a key, all of whose messages have one hash', () => {
    const keys = KEYS.slice(0, 5);
    const source = batch(
      Array.from({ length: 100 }, (_, i) => ({
        ...message(keys[i % 5]),
        payload: Buffer.from(`${i}`.padStart(40, '0')),
      })),
    );
    const parts = cut(source, 1800);
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      const bodies = bodiesOf(part).map(Number);
      expect(bodies).toEqual([...bodies].sort((a, b) => a - b));
    }
  });

  it('tooLarge: one hash value alone exceeds the limit, and nothing is sent', () => {
    const source = batch([...messages(5, 50), { ...message('d'), payload: noise(3000) }]);
    expect(refusal(() => cut(source, 3000))).toBe('tooLarge');
    expect(cut(source, 3400).length).toBeGreaterThan(0);
  });

  it('tooLarge, R9: unkeyed messages all have hash 0 and cannot be cut', () => {
    const source = batch(Array.from({ length: 10 }, (_, i) => ({ payload: noise(500, i) })));
    expect(refusal(() => cut(source, 3000))).toBe('tooLarge');
  });

  it('a done rectangle takes out what was too large', () => {
    const source = batch([...messages(5, 50), { ...message('d'), payload: noise(3000) }]);
    const done = [{ range: FULL_RANGE, buckets: { start: 0x1473, end: 0x1473 } }];
    const parts = rebatch(source, WHOLE_SOURCE, ONE, { ...OPTIONS, maxEntryBytes: 3000, done });
    expect(parts.map(({ messageCount }) => messageCount)).toEqual([5]);
  });
});

describe('B51', () => {
  it('an entry just below the limit that the stamp makes too large is cut, or held where it has one key', () => {
    const limit = FIVE_MIB;
    const half = noise(limit / 2 - 100);
    const entryOf = (keys: readonly string[]) => batch(keys.map((key) => ({ ...message(key), payload: half })));
    const two = entryOf(['d', 'k2']);
    expect(two.bytes.length).toBeLessThanOrEqual(limit);
    const tight = two.bytes.length + 10;
    expect(rebatch(two, WHOLE_SOURCE, ONE, { ...OPTIONS, maxEntryBytes: tight }).map((p) => p.position.part)).toEqual([
      0x3fff, 0x7fff,
    ]);
    const one = entryOf(['d', 'd']);
    expect(refusal(() => rebatch(one, WHOLE_SOURCE, ONE, { ...OPTIONS, maxEntryBytes: one.bytes.length + 10 }))).toBe(
      'tooLarge',
    );
  });

  it('a small zstd entry whose parts are 40 MB without the codec keeps it', () => {
    const body = Buffer.alloc(1_000_000, 'repetition ');
    const source = batch(
      Array.from({ length: 40 }, (_, i) => ({ ...message(KEYS[i]), payload: body })),
      { compression: 'zstd' },
    );
    expect(source.bytes.length).toBeLessThan(200_000);
    const parts = cut(source, FIVE_MIB, { keepCodec: false });
    expect(parts.map(({ messageCount }) => messageCount)).toEqual([40]);
    expect(parts.map((part) => openPart(part).metadata.compression)).toEqual(['zstd']);
  });

  it('one single message over the limit is held, with its codec and without', () => {
    for (const keepCodec of [true, false]) {
      const source = batch([{ ...message('d'), payload: noise(2000) }], { compression: 'lz4' });
      expect(refusal(() => cut(source, 2000, { keepCodec }))).toBe('tooLarge');
    }
  });
});
