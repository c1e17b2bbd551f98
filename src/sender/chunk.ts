/** Cutting a lane's records into requests: how many go into one body, and how large a body may be. */
import { BodyWriter, type SendItem, writeItem } from './encode.js';
import { recordBytes } from './record.js';

const OPENING = '{"messages":[';
const CLOSING = ']}';

/** Bytes of an item besides its key and payload, roughly: enough that a body of raw records is allocated once. */
const ITEM_BYTES = 24;

/** The body of one request. Its memory is its own: a transport may be writing it while the next one is cut. */
export interface Chunk {
  readonly body: Uint8Array;
  readonly count: number;
}

/**
 * The body for the first records of a lane, uncompressed: at most `maxMessages` of them, at least 1, and as long as the
 * whole body stays within `maxBytes`; the first record always goes, alone where it is larger.
 */
export function cutChunk(items: readonly SendItem[], { maxMessages, maxBytes }: ChunkLimits): Chunk {
  const most = Math.min(items.length, maxMessages);
  let capacity = OPENING.length + CLOSING.length;
  for (let i = 0; i < most && capacity <= maxBytes; i++) {
    capacity += recordBytes((items[i] as SendItem).record) + ITEM_BYTES;
  }
  const body = new BodyWriter(capacity).ascii(OPENING);
  let count = 0;
  for (; count < most; count++) {
    const { length } = body;
    if (count > 0) body.ascii(',');
    writeItem(body, items[count] as SendItem);
    if (count > 0 && body.length + CLOSING.length > maxBytes) {
      body.length = length;
      break;
    }
  }
  return { body: body.ascii(CLOSING).taken(), count };
}

export interface ChunkLimits {
  readonly maxMessages: number;
  readonly maxBytes: number;
}

/** The largest body of a lane at first, and the smallest it falls to. */
export const MAX_CHUNK_BYTES = 983_040;
export const MIN_CHUNK_BYTES = 65_536;

/** So many accepted requests in a row double the cap. */
const STREAK = 20;

/** How large a lane's bodies may be: halved when a request was too slow, and doubled back as requests are accepted. */
export class ByteCap {
  bytes = MAX_CHUNK_BYTES;
  private streak = 0;

  shrink(): void {
    this.bytes = Math.max(MIN_CHUNK_BYTES, Math.floor(this.bytes / 2));
    this.streak = 0;
  }

  accepted(): void {
    if (this.bytes >= MAX_CHUNK_BYTES) {
      this.streak = 0;
      return;
    }
    if (++this.streak < STREAK) return;
    this.streak = 0;
    this.bytes = Math.min(MAX_CHUNK_BYTES, this.bytes * 2);
  }
}

/** Compresses a body into one zstd frame that declares its content size, at the fastest level. */
export type Compress = (body: Uint8Array) => Uint8Array;

/** A compressed body goes only where it saves a tenth. */
export function compressIfWorthwhile(body: Uint8Array, compress: Compress): Uint8Array | undefined {
  const compressed = compress(body);
  return compressed.length <= body.length * 0.9 ? compressed : undefined;
}
