/** The five codecs: exactly Pulsar's forms, sizes checked before and after, nothing allocated on a claim (E6). */
import zlib from 'node:zlib';
import fc from 'fast-check';
import * as lz4 from 'lz4-napi';
import { describe, expect, it } from 'vitest';
import {
  type CompressionType,
  codecFor,
  crc32c,
  DEFAULT_MAX_UNCOMPRESSED_BYTES,
  decompressPayload,
  defaultCodecs,
  parseEntry,
  readBatch,
} from '../../src/entry/index.js';
import { frameEntry, rawField } from '../../src/testing/entries.js';
import { CODEC_NAMES, codecs, itEachZstd, recording, ZSTD_PROVIDERS } from '../support/codecs.js';
import { refusal, sameBytes } from '../support/expect.js';
import { ENTRIES, fixtureBytes, fixtureEntry } from '../support/fixtures.js';

const MIB = 1024 * 1024;
const TEXT = Buffer.from('one part of a batch, one part of a batch, one part of a batch');
const open = (payload: Uint8Array, codec: CompressionType, declared: number | undefined, limit?: number) =>
  decompressPayload(payload, codec, declared, codecs, limit === undefined ? {} : { maxUncompressedBytes: limit });

/** Bytes that compress a little, the same every time. */
function mixed(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = 1;
  for (let i = 0; i < length; i++) {
    if ((i & 7) === 0) state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[i] = (state >>> 16) & 0xff;
  }
  return bytes;
}

describe('E6, B44: each codec writes and reads exactly the form of Pulsar', () => {
  it.each(CODEC_NAMES)('%s: empty, one byte and 5 MB, with the true size declared', (name) => {
    for (const input of [new Uint8Array(0), Uint8Array.of(7), TEXT, mixed(5 * MIB)]) {
      const output = open(codecFor(name, codecs).compress(input), name, input.length);
      expect(sameBytes(output, input), `${input.length} bytes`).toBe(true);
    }
  });

  it('the outer forms: zlib with a sync flush and no trailer, one zstd frame with its size, lz4 and snappy blocks bare', () => {
    const form = (name: (typeof CODEC_NAMES)[number]) => Buffer.from(codecs[name].compress(TEXT)).toString('hex');
    expect(form('zlib')).toMatch(/^7801.*0000ffff$/);
    expect(form('zstd')).toMatch(/^28b52ffd/);
    // A raw LZ4 block opens with a token whose high half counts literals; a snappy block with the length.
    expect(Number.parseInt(form('lz4').slice(0, 2), 16) >>> 4).toBeGreaterThan(0);
    expect(Number.parseInt(form('snappy').slice(0, 2), 16)).toBe(TEXT.length);
  });

  it('a zlib stream that was finished is read as well, with and without a declared size', () => {
    for (const declared of [TEXT.length, undefined]) {
      expect(sameBytes(open(zlib.deflateSync(TEXT), 'zlib', declared), TEXT)).toBe(true);
    }
    expect(readBatch(parseEntry(fixtureEntry('bld-batch-zlib-finished')), codecs)).toHaveLength(6);
  });

  itEachZstd(
    (name) => `zstd by ${name} reads what Pulsar wrote, and all providers read each other`,
    (name, zstd) => {
      const own = { ...codecs, zstd };
      expect(zstd.provider).toBe(name);
      const stored = ENTRIES.filter(
        ({ file, compression }) => compression === 'ZSTD' && /batch-zstd|v5-zstd-/.test(file),
      );
      expect(stored).toHaveLength(4);
      for (const { file, isBatch, messages = [] } of stored) {
        const entry = parseEntry(fixtureBytes(file));
        const { uncompressedSize } = entry.metadata;
        if (isBatch) expect(readBatch(entry, own)).toHaveLength(messages.length);
        else
          expect(decompressPayload(entry.payload, 'zstd', uncompressedSize, own)).toHaveLength(uncompressedSize ?? -1);
      }
      // What one provider writes, each other reads.
      for (const [other, reader] of ZSTD_PROVIDERS) {
        for (const input of [new Uint8Array(0), TEXT, mixed(300_000)]) {
          const output = reader?.decompress(zstd.compress(input), input.length, MIB) ?? input;
          expect(sameBytes(output, input), `${name} to ${other}`).toBe(true);
        }
      }
    },
  );

  it('the default codecs are all four, zstd from the first provider that is there', async () => {
    const { lz4: one, zlib: two, zstd, snappy } = await defaultCodecs();
    expect([one?.provider, two?.provider, snappy?.provider]).toEqual(['lz4-napi', 'node:zlib', 'snappy']);
    expect(zstd?.provider).toBe(
      ['node:zlib', 'zstd-napi', '@foxglove/wasm-zstd'].find((name) =>
        ZSTD_PROVIDERS.some(([other, codec]) => other === name && codec),
      ),
    );
  });

  it('round trip of arbitrary bytes; without a declared size too, but for lz4', () => {
    fc.assert(
      fc.property(fc.constantFrom(...CODEC_NAMES), fc.uint8Array({ maxLength: 3000 }), (name, input) => {
        const stored = codecs[name].compress(input);
        expect(sameBytes(open(stored, name, input.length), input)).toBe(true);
        if (name !== 'lz4') expect(sameBytes(open(stored, name, undefined), input)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

describe('B44: look-alikes of another framing are refused', () => {
  const snappyFrame = () => {
    const masked = crc32c(TEXT);
    const chunk = Buffer.alloc(8);
    chunk.writeUIntLE(0x01, 0, 1);
    chunk.writeUIntLE(TEXT.length + 4, 1, 3);
    chunk.writeUInt32LE((((masked >>> 15) | (masked << 17)) + 0xa282ead8) >>> 0, 4);
    return Buffer.concat([Buffer.from('ff060000734e61507059', 'hex'), chunk, TEXT]);
  };
  const zstdFrame = Buffer.from(codecs.zstd.compress(TEXT));
  const skippable = Buffer.from('502a4d18020000000102', 'hex');
  const withDictionary = Buffer.from(zstdFrame);
  withDictionary[4] = (withDictionary[4] as number) | 1;
  const cases: readonly (readonly [what: string, codec: (typeof CODEC_NAMES)[number], payload: Uint8Array])[] = [
    ['an LZ4 frame', 'lz4', lz4.compressFrameSync(TEXT)],
    ['an LZ4 block behind its size', 'lz4', lz4.compressSync(TEXT)],
    ['a framed snappy stream', 'snappy', snappyFrame()],
    ['gzip', 'zlib', zlib.gzipSync(TEXT)],
    ['raw deflate', 'zlib', zlib.deflateRawSync(TEXT)],
    ['raw deflate with a sync flush', 'zlib', zlib.deflateRawSync(TEXT, { finishFlush: zlib.constants.Z_SYNC_FLUSH })],
    ['two zlib streams', 'zlib', Buffer.concat([zlib.deflateSync(TEXT), zlib.deflateSync(TEXT)])],
    ['two zstd frames', 'zstd', Buffer.concat([zstdFrame, zstdFrame])],
    ['a skippable frame behind the zstd frame', 'zstd', Buffer.concat([zstdFrame, skippable])],
    [
      'an empty zstd frame behind the zstd frame',
      'zstd',
      Buffer.concat([zstdFrame, codecs.zstd.compress(new Uint8Array(0))]),
    ],
    ['a skippable frame before the zstd frame', 'zstd', Buffer.concat([skippable, zstdFrame])],
    ['a skippable frame alone', 'zstd', skippable],
    ['a zstd frame that names a dictionary', 'zstd', withDictionary],
    ['a zstd frame without its magic', 'zstd', zstdFrame.subarray(4)],
    ...CODEC_NAMES.map((name) => ['plain text', name, TEXT] as const),
    ...CODEC_NAMES.flatMap((name) =>
      CODEC_NAMES.filter((other) => other !== name).map(
        (other) => [`what ${other} wrote`, name, codecs[other].compress(TEXT)] as const,
      ),
    ),
  ];

  it.each(cases)('%s as %s', (_, name, payload) => {
    expect(refusal(() => open(payload, name, TEXT.length))).toBe('undecodableBatch');
    expect(refusal(() => open(payload, name, undefined))).toBe('undecodableBatch');
  });

  it('B40: marked as compressed, but plain: refused and never guessed', () => {
    for (const name of CODEC_NAMES) {
      expect(
        refusal(() => open(Buffer.from('abcdef'), name, 6)),
        name,
      ).toBe('undecodableBatch');
    }
    expect(refusal(() => readBatch(parseEntry(fixtureEntry('bld-marked-compressed-but-plain')), codecs))).toBe(
      'undecodableBatch',
    );
  });
});

describe('B41, E6: the declared size', () => {
  const records = Buffer.from('000000021804626f6479000000021804626f6479', 'hex');
  const batch = (name: CompressionType, payload: Uint8Array, declared: number | undefined) => {
    const code = ['none', ...CODEC_NAMES].indexOf(String(name));
    const fields = [rawField(1, 'p'), rawField(2, 1n), rawField(3, 1n), rawField(8, BigInt(code)), rawField(11, 2n)];
    if (declared !== undefined) fields.push(rawField(9, BigInt(declared)));
    return parseEntry(frameEntry({ metadata: Buffer.concat(fields), payload, checksum: true }));
  };
  const truth = records.length;
  const table = (['none', ...CODEC_NAMES] as const).flatMap((name) =>
    [undefined, 0, truth - 1, truth, truth + 1].map((declared) => [name, declared] as const),
  );

  it.each(table)('%s with %s declared', (name, declared) => {
    const payload = name === 'none' ? records : codecs[name].compress(records);
    const readable = declared === truth || (declared === undefined && name !== 'lz4');
    const entry = batch(name, payload, declared);
    expect(refusal(() => readBatch(entry, codecs))).toBe(readable ? undefined : 'undecodableBatch');
    if (readable)
      expect(readBatch(entry, codecs).map(({ payload: body }) => Buffer.from(body).toString())).toEqual([
        'body',
        'body',
      ]);
  });

  it('a declared 0 is a declaration, and true of an empty body', () => {
    for (const name of CODEC_NAMES) {
      expect(open(codecs[name].compress(new Uint8Array(0)), name, 0), name).toHaveLength(0);
      expect(
        refusal(() => open(codecs[name].compress(Uint8Array.of(1)), name, 0)),
        name,
      ).toBe('undecodableBatch');
    }
  });

  it('bytes cut off a compressed payload are missed, and bytes behind it noticed', () => {
    for (const name of CODEC_NAMES) {
      const stored = Buffer.from(codecs[name].compress(TEXT));
      // A zlib stream's last five bytes are its flush: without them every byte of the content is still there.
      const spare = name === 'zlib' ? 5 : 0;
      for (let length = 0; length < stored.length - spare; length++) {
        expect(
          refusal(() => open(stored.subarray(0, length), name, TEXT.length)),
          `${name} cut at ${length}`,
        ).toBe('undecodableBatch');
        expect(
          refusal(() => open(stored.subarray(0, length), name, undefined)),
          `${name} cut at ${length}`,
        ).toBe('undecodableBatch');
      }
    }
    const finished = {
      lz4: codecs.lz4.compress(TEXT),
      zlib: zlib.deflateSync(TEXT),
      zstd: codecs.zstd.compress(TEXT),
      snappy: codecs.snappy.compress(TEXT),
    };
    for (const name of CODEC_NAMES) {
      const long = Buffer.concat([finished[name], Uint8Array.of(7)]);
      expect(
        refusal(() => open(long, name, TEXT.length)),
        name,
      ).toBe('undecodableBatch');
    }
  });

  it('a codec that is absent or unknown is named, and plain payloads need none', () => {
    for (const name of CODEC_NAMES)
      expect(() => decompressPayload(TEXT, name, 1, {})).toThrow(/install .*(lz4|zlib|zstd|snappy)/);
    expect(refusal(() => decompressPayload(TEXT, 'lz4', 1, {}))).toBe('codecUnavailable');
    expect(refusal(() => open(TEXT, 77, TEXT.length))).toBe('codecUnavailable');
    expect(decompressPayload(TEXT, 'none', TEXT.length, {})).toBe(TEXT);
  });

  it('a codec of the host that throws anything, or returns the wrong length, is an undecodable batch', () => {
    const lies = (decompress: () => Uint8Array) => ({
      lz4: { provider: 'mine', compress: (input: Uint8Array) => input, decompress },
    });
    const thrown = lies(() => {
      throw 'not even an error';
    });
    expect(refusal(() => decompressPayload(TEXT, 'lz4', 5, thrown))).toBe('undecodableBatch');
    expect(() => decompressPayload(TEXT, 'lz4', 5, thrown)).toThrow(/mine: not even an error/);
    expect(
      refusal(() =>
        decompressPayload(
          TEXT,
          'lz4',
          5,
          lies(() => new Uint8Array(6)),
        ),
      ),
    ).toBe('undecodableBatch');
    expect(
      refusal(() =>
        decompressPayload(
          TEXT,
          'lz4',
          undefined,
          lies(() => new Uint8Array(9)),
          { maxUncompressedBytes: 8 },
        ),
      ),
    ).toBe('undecodableBatch');
  });
});

/** A zstd frame of `blocks` times 128 KiB of zeros in 4 bytes each, with or without a stated content size. */
function zstdBomb(blocks: number, claim?: bigint): Buffer {
  const claimed = Buffer.alloc(8);
  if (claim !== undefined) claimed.writeBigUInt64LE(claim);
  // Without a claim: a window of 128 KiB. With one: a content size of eight bytes beside the window.
  const header = Buffer.concat([
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, claim === undefined ? 0x00 : 0xc0, 0x38]),
    claimed.subarray(0, claim === undefined ? 0 : 8),
  ]);
  const body = Buffer.alloc(4 * blocks);
  for (let i = 0; i < blocks; i++) body.writeUIntLE(((128 * 1024) << 3) | 2 | (i === blocks - 1 ? 1 : 0), 4 * i, 3);
  return Buffer.concat([header, body]);
}

describe('B48, E6: bombs and claims', () => {
  it('a claim above the limit is refused before any codec is asked, by default above 64 MiB', () => {
    const { codecs: asked, asks } = recording(codecs);
    for (const name of CODEC_NAMES) {
      for (const claim of [3 * 2 ** 30, 2 ** 32 - 1, DEFAULT_MAX_UNCOMPRESSED_BYTES + 1]) {
        expect(
          refusal(() => decompressPayload(TEXT, name, claim, asked)),
          name,
        ).toBe('undecodableBatch');
      }
      expect(refusal(() => decompressPayload(TEXT, name, 101, asked, { maxUncompressedBytes: 100 }))).toBe(
        'undecodableBatch',
      );
    }
    expect(refusal(() => readBatch(batchOf3GiB(), asked))).toBe('undecodableBatch');
    expect(asks).toEqual([]);
  });

  it('a codec is asked for the declared size and never beyond the limit', () => {
    const { codecs: asked, asks } = recording(codecs);
    for (const name of CODEC_NAMES)
      decompressPayload(codecs[name].compress(TEXT), name, TEXT.length, asked, { maxUncompressedBytes: 100 });
    decompressPayload(codecs.zstd.compress(TEXT), 'zstd', undefined, asked, { maxUncompressedBytes: 100 });
    expect(asks).toEqual([
      ...CODEC_NAMES.map(() => ({ declaredSize: TEXT.length, limit: 100 })),
      { declaredSize: undefined, limit: 100 },
    ]);
  });

  it('an honest size at the limit is opened, one byte above it is not', () => {
    const input = mixed(MIB);
    for (const name of CODEC_NAMES) {
      const stored = codecs[name].compress(input);
      expect(sameBytes(open(stored, name, MIB, MIB), input), name).toBe(true);
      expect(
        refusal(() => open(stored, name, MIB, MIB - 1)),
        name,
      ).toBe('undecodableBatch');
      if (name === 'lz4') continue;
      expect(sameBytes(open(stored, name, undefined, MIB), input), name).toBe(true);
      expect(
        refusal(() => open(stored, name, undefined, MIB - 1)),
        name,
      ).toBe('undecodableBatch');
    }
    expect(open(TEXT, 'none', undefined, TEXT.length)).toBe(TEXT);
    expect(refusal(() => open(TEXT, 'none', undefined, TEXT.length - 1))).toBe('undecodableBatch');
  });

  it('a small payload that unpacks to far more than it declares, or than the limit, stops at that bound', () => {
    const zeros = Buffer.alloc(20 * MIB);
    const bombs = {
      zlib: codecs.zlib.compress(zeros),
      snappy: codecs.snappy.compress(zeros),
      zstd: codecs.zstd.compress(zeros),
      lz4: codecs.lz4.compress(zeros),
    };
    for (const name of CODEC_NAMES) {
      for (const declared of [100, undefined]) {
        expect(
          refusal(() => open(bombs[name], name, declared, MIB)),
          name,
        ).toBe('undecodableBatch');
      }
    }
    const { payload, metadata } = parseEntry(fixtureEntry('bld-bomb-declared-small'));
    expect(refusal(() => open(payload, metadata.compression, metadata.uncompressedSize))).toBe('undecodableBatch');
  });

  itEachZstd(
    (name) => `4 GiB of zstd in 128 KiB, with an honest, a small, a huge and no content size, by ${name}`,
    (_, zstd) => {
      const own = { ...codecs, zstd };
      const read = (payload: Uint8Array, declared?: number) =>
        refusal(() => decompressPayload(payload, 'zstd', declared, own));
      for (const claim of [undefined, 4n * 2n ** 30n, 100n, 2n ** 64n - 1n]) {
        const bomb = zstdBomb(32768, claim);
        expect(bomb.length).toBeLessThan(132_000);
        expect(read(bomb, 100)).toBe('undecodableBatch');
        expect(read(bomb, undefined)).toBe('undecodableBatch');
      }
      // The same frame, honest and small enough, is no bomb.
      for (const claim of [undefined, BigInt(MIB)])
        expect(decompressPayload(zstdBomb(8, claim), 'zstd', MIB, own)).toHaveLength(MIB);
      expect(decompressPayload(zstdBomb(8), 'zstd', undefined, own)).toHaveLength(MIB);
    },
  );

  itEachZstd(
    (name) => `a zstd frame that claims to be empty, but is not, is refused by ${name}`,
    (_, zstd) => {
      const liar = Buffer.from('28b52ffd20002900000102030405', 'hex');
      for (const declared of [0, undefined]) {
        expect(refusal(() => decompressPayload(liar, 'zstd', declared, { zstd }))).toBe('undecodableBatch');
      }
    },
  );

  it('a snappy block that claims 4 GiB is refused by its claim', () => {
    const claims = Buffer.from('ffffffff0f00', 'hex');
    expect(() => open(claims, 'snappy', 100)).toThrow(/claims 4294967295 bytes/);
    expect(() => open(claims, 'snappy', undefined)).toThrow(/claims 4294967295 bytes/);
    for (const endless of ['ffffffffffff', 'ff', '']) {
      expect(refusal(() => open(Buffer.from(endless, 'hex'), 'snappy', 100))).toBe('undecodableBatch');
    }
  });

  it('a limit that is no number is refused, not taken for none', () => {
    for (const limit of [Number.NaN, -1])
      expect(refusal(() => open(TEXT, 'none', undefined, limit))).toBe('invalidArgument');
  });

  function batchOf3GiB() {
    const fields = [
      rawField(1, 'p'),
      rawField(2, 1n),
      rawField(3, 1n),
      rawField(8, 3n),
      rawField(9, 3n * 2n ** 30n),
      rawField(11, 2n),
    ];
    return parseEntry(frameEntry({ metadata: Buffer.concat(fields), payload: zstdBomb(256), checksum: true }));
  }
});
