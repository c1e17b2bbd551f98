/**
 * The five codecs of Pulsar in exactly the forms that Pulsar writes (E6): an LZ4 raw block, a zlib stream that ends
 * with a sync flush, one zstd frame, a snappy raw block. A codec is a small object that the host may replace; the
 * ones here are loaded from packages, zstd from the first of three that is there.
 */
import zlib from 'node:zlib';
import { IsthmusError, show } from '../errors.js';
import type { CompressionType } from './metadata.js';

/** One compression format. Synchronous; throws anything at all on corrupt input. */
export interface Codec {
  /** Named in messages: the package that does the work. */
  readonly provider: string;
  compress(input: Uint8Array): Uint8Array;
  /**
   * Decompresses to `declaredSize` bytes, or where that is undefined to whatever comes out, never more than
   * `limit`. It must not allocate beyond the larger of the declared size and what it holds to be the true size.
   */
  decompress(input: Uint8Array, declaredSize: number | undefined, limit: number): Uint8Array;
}

/** The codecs that a host has; one that is absent leaves its batches held where they do not fit. */
export interface Codecs {
  readonly lz4?: Codec;
  readonly zlib?: Codec;
  readonly zstd?: Codec;
  readonly snappy?: Codec;
}

/** What opening a payload may cost. */
export interface DecodeLimits {
  /** Bytes of a payload after decompression; default 64 MiB. */
  readonly maxUncompressedBytes?: number;
}

export const DEFAULT_MAX_UNCOMPRESSED_BYTES = 64 * 1024 * 1024;

/** The packages to install for a codec that is missing. */
const PACKAGES = { lz4: 'lz4-napi', zlib: 'node:zlib', zstd: '@foxglove/wasm-zstd or zstd-napi', snappy: 'snappy' };

/** The codec for a compression type. Throws `codecUnavailable`, naming what to install. */
export function codecFor(compression: Exclude<CompressionType, 'none'>, codecs: Codecs): Codec {
  if (typeof compression === 'number') {
    throw new IsthmusError('codecUnavailable', `compression type ${compression} is unknown: Pulsar 5.0.1 has 0..4`);
  }
  const codec = codecs[compression];
  if (codec === undefined) {
    throw new IsthmusError('codecUnavailable', `no codec for ${compression}: install ${PACKAGES[compression]}`);
  }
  return codec;
}

/**
 * Opens a payload: checks the declared size against the limit before anything is allocated, and what comes out
 * against the declared size. Throws `undecodableBatch` or `codecUnavailable`.
 */
export function decompressPayload(
  payload: Uint8Array,
  compression: CompressionType,
  declaredSize: number | undefined,
  codecs: Codecs,
  limits: DecodeLimits = {},
): Uint8Array {
  const limit = limits.maxUncompressedBytes ?? DEFAULT_MAX_UNCOMPRESSED_BYTES;
  if (!(limit >= 0)) {
    throw new IsthmusError('invalidArgument', `maxUncompressedBytes ${show(limit)}: a limit is a number of bytes`);
  }
  if ((declaredSize ?? 0) > limit) refuse(`declares ${declaredSize} bytes uncompressed; the limit is ${limit}`);
  const output = compression === 'none' ? payload : run(payload, compression, declaredSize, codecs, limit);
  if (output.length > limit) refuse(`has ${output.length} bytes uncompressed; the limit is ${limit}`);
  if (declaredSize !== undefined && output.length !== declaredSize) {
    refuse(`declares ${declaredSize} bytes uncompressed, but holds ${output.length}`);
  }
  return output;
}

function run(
  payload: Uint8Array,
  compression: Exclude<CompressionType, 'none'>,
  declaredSize: number | undefined,
  codecs: Codecs,
  limit: number,
): Uint8Array {
  const codec = codecFor(compression, codecs);
  try {
    return codec.decompress(payload, declaredSize, limit);
  } catch (cause) {
    if (cause instanceof IsthmusError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    return refuse(`does not decompress as ${compression} (${codec.provider}: ${why})`, cause);
  }
}

function refuse(rule: string, cause?: unknown): never {
  throw new IsthmusError('undecodableBatch', `the payload ${rule}`, { cause });
}

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

async function optional<T>(load: () => Promise<T>): Promise<T | undefined> {
  try {
    return await load();
  } catch {
    // A package that is not installed, or has no binary for this platform, is a codec that the host does not have.
    return undefined;
  }
}

/** A Buffer over the same memory, which is what native packages take. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
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

const ZSTD_LEVEL = 3;

/** A zstd implementation: compress at level 3, decompress into exactly `capacity` bytes or fewer, else throw. */
interface ZstdEngine {
  readonly provider: string;
  compress(input: Uint8Array): Uint8Array;
  decompress(input: Uint8Array, capacity: number): Uint8Array;
}

async function zstdCodec(): Promise<Codec | undefined> {
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
    const name = 'zstd-napi/binding';
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
