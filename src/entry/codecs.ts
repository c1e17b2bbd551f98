/**
 * The five codecs of Pulsar in exactly the forms that Pulsar writes (E6): an LZ4 raw block, a zlib stream that ends
 * with a sync flush, one zstd frame, a snappy raw block. A codec is a small object that the host may replace; the
 * ones here are loaded from packages.
 */
import zlib from 'node:zlib';
import { asBuffer, type Codec, type Codecs, optional, refuse } from './codec.js';
import { zstdCodec } from './zstd.js';

/** The codecs of this Node process; zstd from Node itself (22.15 and newer), else zstd-napi, else the wasm package. */
export async function defaultCodecs(): Promise<Codecs> {
  const [lz4, snappy, zstd] = await Promise.all([lz4Codec(), snappyCodec(), zstdCodec()]);
  return {
    ...(lz4 === undefined ? {} : { lz4 }),
    zlib: zlibCodec,
    ...(zstd === undefined ? {} : { zstd }),
    ...(snappy === undefined ? {} : { snappy }),
  };
}

/** lz4-napi puts a 4-byte little-endian size before the raw block; Pulsar has the block alone. */
function lz4Codec(): Promise<Codec | undefined> {
  return optional(async () => {
    const { compressSync, uncompressSync } = await import('lz4-napi');
    return {
      provider: 'lz4-napi',
      compress: (input) => compressSync(asBuffer(input)).subarray(4),
      decompress(input, declaredSize) {
        if (declaredSize === undefined) refuse('is an LZ4 block without a declared size, which cannot be decoded');
        const sized = Buffer.allocUnsafe(4 + input.length);
        sized.writeUInt32LE(declaredSize, 0);
        sized.set(input, 4);
        return uncompressSync(sized);
      },
    };
  });
}

const ZLIB_LEVEL = 1;
const SYNC_FLUSH_TAIL = [0x00, 0x00, 0xff, 0xff];

/**
 * Pulsar's writer never finishes its stream; a finished one is read as well. Written at the quickest level: what is
 * compressed here is on the slow path, which is bounded by CPU and lasts only while layouts differ.
 */
const zlibCodec: Codec = {
  provider: 'node:zlib',
  compress: (input) => zlib.deflateSync(input, { level: ZLIB_LEVEL, finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  decompress(input, declaredSize, limit) {
    const { buffer, engine } = zlib.inflateSync(input, {
      finishFlush: zlib.constants.Z_SYNC_FLUSH,
      maxOutputLength: Math.max(1, declaredSize ?? limit),
      info: true,
    }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
    if (engine.bytesWritten !== input.length) {
      refuse(`has ${input.length - engine.bytesWritten} bytes behind the end of its zlib stream`);
    }
    if (declaredSize === undefined && !isWholeStream(input, limit)) refuse('is a zlib stream that is cut');
    return buffer;
  },
};

/** Without a declared size, a stream that just stops is told from a flushed one by its tail, and from a finished one by inflating strictly. */
function isWholeStream(input: Uint8Array, limit: number): boolean {
  if (SYNC_FLUSH_TAIL.every((byte, i) => input[input.length - 4 + i] === byte)) return true;
  try {
    zlib.inflateSync(input, { maxOutputLength: Math.max(1, limit) });
    return true;
  } catch {
    return false;
  }
}

/** The option copies the output into JavaScript's own memory, which is faster than an external buffer for each call. */
function snappyCodec(): Promise<Codec | undefined> {
  return optional(async () => {
    const { compressSync, uncompressSync } = await import('snappy');
    return {
      provider: 'snappy',
      compress: (input) => compressSync(asBuffer(input), { copyOutputData: true }),
      decompress(input, declaredSize, limit) {
        const claimed = snappyLength(input);
        if (claimed > (declaredSize ?? limit)) refuse(`is a snappy block that claims ${claimed} bytes`);
        return uncompressSync(asBuffer(input), { asBuffer: true, copyOutputData: true }) as Buffer;
      },
    };
  });
}

/** The varint at the start of a snappy block: the length it unpacks to. */
function snappyLength(input: Uint8Array): number {
  let length = 0;
  for (let at = 0; at < 5; at++) {
    const byte = input[at];
    if (byte === undefined) break;
    length += (byte & 0x7f) * 2 ** (7 * at);
    if (byte < 0x80) return length;
  }
  return refuse('is a snappy block without a length');
}
