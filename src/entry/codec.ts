/** What a codec is, and how a payload is opened with one: sizes are checked before and after (E6). */
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

/** Refuses a payload. */
export function refuse(rule: string, cause?: unknown): never {
  throw new IsthmusError('undecodableBatch', `the payload ${rule}`, { cause });
}

/** What loads, or undefined. */
export async function optional<T>(load: () => Promise<T>): Promise<T | undefined> {
  try {
    return await load();
  } catch {
    // A package that is not installed, or has no binary for this platform, is a codec that the host does not have.
    return undefined;
  }
}

/** A Buffer over the same memory, which is what native packages take. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
