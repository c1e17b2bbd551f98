/** Opens a body that was sent compressed, within the limits of the target. */
import { gunzipSync } from 'node:zlib';
import { errorAnswer, type TargetAnswer } from './answers.js';

/** Opens one zstd frame to at most so many bytes; throws for anything else. */
export type OpenZstd = (body: Uint8Array, maxBytes: number) => Uint8Array;

/** The body itself, or the answer that refuses it: it counts as sent and as opened. */
export function decodeBody(
  sent: Uint8Array,
  encoding: string,
  maxBytes: number,
  openZstd: OpenZstd,
): Uint8Array | TargetAnswer {
  const tooLarge = errorAnswer(413, 'request body too large');
  if (sent.length > maxBytes) return tooLarge;
  if (encoding === 'identity') return sent;
  if (encoding === 'zstd' && claimedSize(sent) > maxBytes) return tooLarge;
  try {
    return encoding === 'gzip' ? gunzipSync(sent, { maxOutputLength: maxBytes }) : openZstd(sent, maxBytes);
  } catch (error) {
    // What gunzip says when there is no end of it.
    if (error instanceof RangeError) return tooLarge;
    return errorAnswer(400, 'invalid json: the body does not decode');
  }
}

/** The content size in the header of a zstd frame (RFC 8878, 3.1.1.1); 0 where it names none. */
function claimedSize(frame: Uint8Array): number {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.length);
  const descriptor = bytes[4] ?? 0;
  const isSingle = (descriptor & 0x20) !== 0;
  const size = [isSingle ? 1 : 0, 2, 4, 8][descriptor >>> 6] ?? 0;
  const at = 5 + (isSingle ? 0 : 1) + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  if (size === 0 || at + size > bytes.length) return 0;
  if (size === 8) return Number(bytes.readBigUInt64LE(at));
  return bytes.readUIntLE(at, size) + (size === 2 ? 256 : 0);
}
