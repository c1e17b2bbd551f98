/** The codecs under test: with the zstd that is always installed, and every other zstd that this machine has. */
import { it } from 'vitest';
import { type Codec, type Codecs, defaultCodecs, zstdCodecOf } from '../../src/entry/index.js';

const wasm = await zstdCodecOf('@foxglove/wasm-zstd');
if (wasm === undefined) throw new Error('@foxglove/wasm-zstd is a dependency, but does not load');

/** All four, zstd from the wasm package. */
export const codecs: Codecs & Required<Codecs> = { ...((await defaultCodecs()) as Required<Codecs>), zstd: wasm };

/** Every zstd provider by name; undefined where this machine has none. */
export const ZSTD_PROVIDERS: readonly (readonly [name: string, codec: Codec | undefined])[] = [
  ['@foxglove/wasm-zstd', wasm],
  ['node:zlib', await zstdCodecOf('node:zlib')],
  ['zstd-napi', await zstdCodecOf('zstd-napi')],
];

/** One test for each zstd provider, shown as skipped where the machine has none. */
export function itEachZstd(title: (provider: string) => string, run: (provider: string, zstd: Codec) => void): void {
  for (const [provider, zstd] of ZSTD_PROVIDERS) {
    it.skipIf(zstd === undefined)(title(provider), () => {
      if (zstd !== undefined) run(provider, zstd);
    });
  }
}

export const CODEC_NAMES = ['lz4', 'zlib', 'zstd', 'snappy'] as const;

/** What a codec was asked for. */
export interface Ask {
  readonly declaredSize: number | undefined;
  readonly limit: number;
}

/** The same codecs, noting every call of `decompress`. */
export function recording(real: Required<Codecs>): { codecs: Codecs; asks: Ask[] } {
  const asks: Ask[] = [];
  const record = (codec: Codec): Codec => ({
    provider: codec.provider,
    compress: (input) => codec.compress(input),
    decompress(input, declaredSize, limit) {
      asks.push({ declaredSize, limit });
      return codec.decompress(input, declaredSize, limit);
    },
  });
  const { lz4, zlib, zstd, snappy } = real;
  return { codecs: { lz4: record(lz4), zlib: record(zlib), zstd: record(zstd), snappy: record(snappy) }, asks };
}
