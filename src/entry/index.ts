export { BatchMessage, BatchTable, openBatch, readBatch } from './batch.js';
export {
  type Codec,
  type Codecs,
  codecFor,
  DEFAULT_MAX_UNCOMPRESSED_BYTES,
  type DecodeLimits,
  decompressPayload,
} from './codec.js';
export { defaultCodecs } from './codecs.js';
export { concatCrc, crc32c, shiftCrc } from './crc32c.js';
export {
  batchMessage,
  type EncodeBatchOptions,
  type EncodeMessageOptions,
  encodeBatch,
  encodeMessage,
  type MessageFields,
  type OuterFields,
} from './encode.js';
export { type BrokerEntry, type Entry, parseEntry, verifyChecksum } from './entry.js';
export { Inner, Outer, SOURCE_POSITION_PROPERTY } from './fields.js';
export {
  type ChunkInfo,
  type CompressionType,
  compressionCode,
  type EncryptionKey,
  type EntryMetadata,
  type Stamp,
} from './metadata.js';
export { formatSourcePosition, parseSourcePosition, type SourcePosition } from './position.js';
export {
  type EntryBuffers,
  joinBuffers,
  restamp,
} from './restamp.js';
export type { RestampOptions } from './stamp.js';
export { allocate, copyBytes, RunCopier, WireReader, WireWriter, writeUint32 } from './wire.js';
export { zstdCodecOf } from './zstd.js';

// For the rooms above, not for the package's users:

/** @internal */
export { CHECKSUM_BLOCK, fieldsToRemove, isRemoved, writeChecksum } from './restamp.js';
/** @internal */
export { prepareStamp, writeStamp } from './stamp.js';
