/**
 * zstd: the one frame that an entry holds, read and written by Node itself, by zstd-napi, or by a WebAssembly package,
 * whichever is there (E6). What they do not check alike is checked here, on the frame, before any of them is asked.
 */
import zlib from 'node:zlib';
import { asBuffer, type Codec, optional, refuse } from './codec.js';

const ZSTD_LEVEL = 3;

/** A zstd implementation: compress at level 3, decompress into exactly `capacity` bytes or fewer, else throw. */
interface ZstdEngine {
  readonly provider: string;
  compress(input: Uint8Array): Uint8Array;
  decompress(input: Uint8Array, capacity: number): Uint8Array;
}

/** The best zstd codec of this process; undefined where there is none. */
export async function zstdCodec(): Promise<Codec | undefined> {
  const engine = (await nodeZstd()) ?? (await zstdNapi()) ?? (await wasmZstd());
  return engine === undefined ? undefined : zstdFromEngine(engine);
}

/** The zstd codec of one named provider, for hosts that want to choose; undefined where it is not installed. */
export async function zstdCodecOf(
  provider: 'node:zlib' | 'zstd-napi' | '@foxglove/wasm-zstd',
): Promise<Codec | undefined> {
  const load = { 'node:zlib': nodeZstd, 'zstd-napi': zstdNapi, '@foxglove/wasm-zstd': wasmZstd }[provider];
  const engine = await load();
  return engine === undefined ? undefined : zstdFromEngine(engine);
}

function zstdFromEngine(engine: ZstdEngine): Codec {
  return {
    provider: engine.provider,
    compress: (input) => engine.compress(input),
    decompress(input, declaredSize, limit) {
      const { contentSize, frameLength } = zstdFrame(input);
      if (frameLength !== input.length) refuse(`has ${input.length - frameLength} bytes behind its zstd frame`);
      const bound = declaredSize ?? limit;
      if (contentSize !== undefined) {
        if (contentSize > bound) refuse(`is a zstd frame that claims ${contentSize} bytes`);
        // Room for one byte where none is claimed, so that the engine still looks at the frame and refuses a false claim.
        return engine.decompress(input, Math.max(1, contentSize));
      }
      if (declaredSize !== undefined) return engine.decompress(input, declaredSize);
      return growing(engine, input, limit);
    },
  };
}

/** No size anywhere: tries ever larger outputs, so that a small frame does not cost the limit. */
function growing(engine: ZstdEngine, input: Uint8Array, limit: number): Uint8Array {
  for (let capacity = Math.max(1024, input.length * 4); ; capacity *= 4) {
    const last = capacity >= limit;
    try {
      return engine.decompress(input, last ? limit : capacity);
    } catch (error) {
      if (last) throw error;
    }
  }
}

/**
 * Walks the one frame of RFC 8878 that an entry holds, without decoding it: its content size, where stated, and its
 * length. Refuses a dictionary, a skippable frame and one that is cut.
 */
function zstdFrame(input: Uint8Array): { contentSize: number | undefined; frameLength: number } {
  const bytes = asBuffer(input);
  if (bytes.length < 6 || bytes.readUInt32LE(0) !== 0xfd2fb528) refuse('is no zstd frame');
  const descriptor = bytes[4] as number;
  const singleSegment = (descriptor & 0x20) !== 0;
  if ((descriptor & 0x03) !== 0) refuse('is a zstd frame that needs a dictionary');
  const sizeBytes = [singleSegment ? 1 : 0, 2, 4, 8][descriptor >>> 6] as number;
  let at = 5 + (singleSegment ? 0 : 1);
  if (at + sizeBytes > bytes.length) refuse('is a zstd frame that is cut');
  let contentSize: number | undefined;
  if (sizeBytes === 8) contentSize = Number(bytes.readBigUInt64LE(at));
  else if (sizeBytes > 0) contentSize = bytes.readUIntLE(at, sizeBytes) + (sizeBytes === 2 ? 256 : 0);
  at += sizeBytes;
  for (let last = false; !last; ) {
    if (at + 3 > bytes.length) refuse('is a zstd frame that is cut');
    const block = bytes.readUIntLE(at, 3);
    last = (block & 1) !== 0;
    // Type 1 repeats one byte; the others hold as many bytes as the header says.
    at += 3 + (((block >>> 1) & 3) === 1 ? 1 : block >>> 3);
  }
  if ((descriptor & 0x04) !== 0) at += 4;
  if (at > bytes.length) refuse('is a zstd frame that is cut');
  return { contentSize, frameLength: at };
}

type NodeZstd = {
  zstdCompressSync?: (input: Uint8Array, options: object) => Buffer;
  zstdDecompressSync?: (input: Uint8Array, options: object) => Buffer;
  constants: { ZSTD_c_compressionLevel?: number };
};

async function nodeZstd(): Promise<ZstdEngine | undefined> {
  const { zstdCompressSync, zstdDecompressSync, constants } = zlib as unknown as NodeZstd;
  const level = constants.ZSTD_c_compressionLevel;
  if (zstdCompressSync === undefined || zstdDecompressSync === undefined || level === undefined) return undefined;
  return {
    provider: 'node:zlib',
    compress: (input) => zstdCompressSync(input, { params: { [level]: ZSTD_LEVEL } }),
    decompress: (input, capacity) => zstdDecompressSync(input, { maxOutputLength: Math.max(1, capacity) }),
  };
}

interface ZstdNapiBinding {
  CCtx: new () => { compress(target: Uint8Array, input: Uint8Array, level: number): number };
  DCtx: new () => { decompress(target: Uint8Array, input: Uint8Array): number };
  compressBound(size: number): number;
}

/** zstd-napi is an optional peer, so its module is named only at run time. Contexts are reused: they cost more than small inputs. */
function zstdNapi(): Promise<ZstdEngine | undefined> {
  return optional(async () => {
    const name = 'zstd-napi/binding.js';
    const loaded = (await import(name)) as ZstdNapiBinding & { default?: ZstdNapiBinding };
    const binding = loaded.default ?? loaded;
    const compressor = new binding.CCtx();
    const decompressor = new binding.DCtx();
    return {
      provider: 'zstd-napi',
      compress(input) {
        const target = Buffer.allocUnsafe(binding.compressBound(input.length));
        return target.subarray(0, compressor.compress(target, input, ZSTD_LEVEL));
      },
      decompress(input, capacity) {
        const target = Buffer.allocUnsafe(capacity);
        return target.subarray(0, decompressor.decompress(target, input));
      },
    };
  });
}

function wasmZstd(): Promise<ZstdEngine | undefined> {
  return optional(async () => {
    const { default: zstd } = await import('@foxglove/wasm-zstd');
    await zstd.isLoaded;
    return {
      provider: '@foxglove/wasm-zstd',
      compress: (input) => zstd.compress(asBuffer(input), ZSTD_LEVEL),
      decompress: (input, capacity) => zstd.decompress(asBuffer(input), capacity),
    };
  });
}
