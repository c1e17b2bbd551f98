/** CRC32C against Pulsar's own, and the algebra that moves a checksum without reading the payload (E3). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  concatCrc,
  crc32c,
  joinBuffers,
  parseEntry,
  restamp,
  shiftCrc,
  verifyChecksum,
} from '../../src/entry/index.js';
import { arbEntry, frameEntry, rawField } from '../../src/testing/entries.js';
import { codecs } from '../support/codecs.js';
import { CRCS } from '../support/fixtures.js';

const PERIOD = Uint8Array.from({ length: 256 }, (_, i) => (i * 31 + 7) & 255);
const content = (length: number) => Buffer.alloc(length, PERIOD);
const word = (crc: string) => Number.parseInt(crc, 16);
const ONE_MIB = content(1024 * 1024);

describe('CRC32C', () => {
  it('equals Crc32cIntChecksum on every prefix, text and byte string', () => {
    for (const { length, crc } of CRCS.prefixes) expect(crc32c(ONE_MIB, 0, length), `${length} bytes`).toBe(word(crc));
    for (const { text, hex, crc } of CRCS.texts) {
      expect(crc32c(text === undefined ? Buffer.from(hex ?? '', 'hex') : Buffer.from(text)), text ?? hex).toBe(
        word(crc),
      );
    }
  });

  it('continues over a cut, in native code and in its own, and at any offset', () => {
    fc.assert(
      fc.property(fc.nat({ max: 700 }), fc.nat({ max: 700 }), fc.nat({ max: 9 }), (first, second, offset) => {
        const cut = offset + first;
        const whole = crc32c(ONE_MIB, offset, cut + second);
        expect(crc32c(ONE_MIB, cut, cut + second, crc32c(ONE_MIB, offset, cut))).toBe(whole);
        expect(crc32c(Uint8Array.from(ONE_MIB.subarray(offset, cut + second)))).toBe(whole);
      }),
      { numRuns: 300 },
    );
  });

  it('E3: concatenations, as Pulsar computes them', () => {
    for (const { first, second, crcFirst, crcSecond, crcBoth } of CRCS.concatenations) {
      expect(concatCrc(word(crcFirst), word(crcSecond), second), `${first} + ${second}`).toBe(word(crcBoth));
    }
  });

  it('E3: a head replaced before a tail, as Pulsar computes it', () => {
    for (const { crcOld, crcOldHead, crcNewHead, crcNew, crcTail, tailLength } of CRCS.headReplaced) {
      const moved = (word(crcOld) ^ shiftCrc(word(crcOldHead) ^ word(crcNewHead), tailLength)) >>> 0;
      expect(moved, `tail of ${tailLength}`).toBe(word(crcNew));
      expect(concatCrc(word(crcNewHead), word(crcTail), tailLength)).toBe(word(crcNew));
    }
  });

  it('E3: shifting in two steps equals shifting in one, over lengths beyond what any entry has', () => {
    const length = fc.oneof(
      fc.nat({ max: 70 }),
      fc.constantFrom(4095, 4096, 262143, 262144, 2 ** 31, 2 ** 40),
      fc.nat(),
    );
    fc.assert(
      fc.property(fc.nat(), length, length, (difference, a, b) => {
        expect(shiftCrc(shiftCrc(difference, a), b)).toBe(shiftCrc(difference, a + b));
      }),
      { numRuns: 200 },
    );
    expect(shiftCrc(shiftCrc(1, 2 ** 31), 2 ** 31)).toBe(shiftCrc(1, 2 ** 32));
  });
});

describe('the moved checksum', () => {
  const LENGTHS = [0, 1, 63, 64, 65, 4095, 4096, 262143, 16 * 1024 * 1024];
  const options = { replicatedFrom: 'a', sourcePosition: '7:3' };

  it.each(LENGTHS)('E3: equals one recomputed over a payload of %i bytes', (length) => {
    const payload = content(length);
    for (const name of ['p', 'p'.repeat(300)]) {
      const metadata = Buffer.concat([rawField(1, name), rawField(2, 1n), rawField(3, 1n)]);
      const { head } = restamp(parseEntry(frameEntry({ metadata, payload, checksum: true })), options);
      expect(Buffer.from(head).readUInt32BE(2)).toBe(crc32c(payload, 0, length, crc32c(head, 6)));
    }
  });

  it('E3: equals one recomputed, for arbitrary entries', () => {
    fc.assert(
      fc.property(arbEntry(codecs, { headers: ['checksum', 'broker+checksum'] }), ({ bytes }) => {
        const joined = joinBuffers(restamp(parseEntry(bytes), options));
        expect(parseEntry(joined).checksum).toBe(crc32c(joined, 6));
      }),
      { numRuns: 400 },
    );
  });

  it('E3: the payload is not read: overwritten behind the back of a re-stamp of 16 MiB, it leaves the checksum of the original', () => {
    const length = 16 * 1024 * 1024;
    const metadata = Buffer.concat([rawField(1, 'p'), rawField(2, 1n), rawField(3, 1n)]);
    const bytes = frameEntry({ metadata, payload: content(length), checksum: true });
    const untouched = restamp(parseEntry(bytes), options).head;
    const entry = parseEntry(bytes);
    entry.payload.fill(0xee);
    const { head, payload } = restamp(entry, options);
    expect(Buffer.compare(head, untouched)).toBe(0);
    expect(Buffer.from(head).readUInt32BE(2)).toBe(crc32c(content(length), 0, length, crc32c(head, 6)));
    expect(payload[0]).toBe(0xee);
    expect(verifyChecksum(parseEntry(joinBuffers({ head, payload })))).toBe('mismatch');
  });
});
