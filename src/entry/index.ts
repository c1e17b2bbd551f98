export { BatchMessage, BatchTable, openBatch, readBatch } from './batch.js';
export {
  type Codec,
  type Codecs,
  codecFor,
  type DecodeLimits,
  decompressPayload,
  DEFAULT_MAX_UNCOMPRESSED_BYTES,
  defaultCodecs,
  zstdCodecOf,
} from './codecs.js';
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
export type { ChunkInfo, CompressionType, EncryptionKey, EntryMetadata, Stamp } from './metadata.js';
export { formatSourcePosition, parseSourcePosition, type SourcePosition } from './position.js';
export {
  CHECKSUM_BLOCK,
  type EntryBuffers,
  fieldsToRemove,
  isRemoved,
  joinBuffers,
  prepareStamp,
  type RestampOptions,
  restamp,
  writeChecksum,
  writeStamp,
} from './restamp.js';
export { copyBytes, varintLength, writeUint32, writeVarint } from './wire.js';
