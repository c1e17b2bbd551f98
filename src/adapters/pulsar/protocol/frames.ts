/**
 * Frames of the binary protocol: `[total u32][command size u32][command][entry]`, all big-endian, where `total` counts
 * what follows it and the entry is absent from most. An entry is whatever lies behind the command, checksum and magic
 * included: it is neither read nor written here.
 */
import type { EntryBuffers } from '../../../entry/index.js';

export interface Frame {
  readonly command: Uint8Array;
  /** Empty when there is none. */
  readonly entry: Uint8Array;
}

const SIZE_BYTES = 4;

/** A payload up to this many bytes is copied behind its command: cheaper than a buffer of its own in the write. */
const COPIED_PAYLOAD_BYTES = 8 * 1024;

/** A frame of a command alone. */
export function encodeFrame(command: Uint8Array): Uint8Array {
  return startFrame(command, 0, 0);
}

/** A frame with an entry, in pieces to be written in this order; a large payload is not copied. */
export function encodeEntryFrame(command: Uint8Array, { head, payload }: EntryBuffers): readonly Uint8Array[] {
  const copied = payload.length <= COPIED_PAYLOAD_BYTES ? payload.length : 0;
  const start = startFrame(command, head.length + copied, payload.length - copied);
  const headStart = 2 * SIZE_BYTES + command.length;
  start.set(head, headStart);
  if (copied === 0) return payload.length === 0 ? [start] : [start, payload];
  start.set(payload, headStart + head.length);
  return [start];
}

/** The sizes and the command, with room for what follows in the same piece. */
function startFrame(command: Uint8Array, roomBytes: number, elsewhereBytes: number): Uint8Array {
  const frame = Buffer.allocUnsafe(2 * SIZE_BYTES + command.length + roomBytes);
  frame.writeUInt32BE(frame.length - SIZE_BYTES + elsewhereBytes, 0);
  frame.writeUInt32BE(command.length, SIZE_BYTES);
  frame.set(command, 2 * SIZE_BYTES);
  return frame;
}

/**
 * Cuts a stream of bytes into frames. A frame within one chunk is a view of it; one that spans several is collected in
 * memory of its own, each byte copied once.
 */
export class FrameDecoder {
  private readonly size = new Uint8Array(SIZE_BYTES);
  /** What follows the size, once that is known and while it is not all here. */
  private body: Uint8Array | undefined;
  /** Bytes of `body`, or of `size` without one, that are here. */
  private filled = 0;

  /** `maxFrameBytes` is the largest `total` that is taken; it may be changed at any time. */
  constructor(public maxFrameBytes: number) {}

  /**
   * Takes in the next bytes and hands out the frames that they complete. Returns what is wrong with the stream, which is
   * of no use from there on, or undefined.
   */
  push(chunk: Uint8Array, onFrame: (frame: Frame) => void): string | undefined {
    // Plain views: what is cut from a Buffer is one, and a Buffer's `slice` does not copy.
    let rest = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length);
    let fault: string | undefined;
    while (rest.length > 0 && fault === undefined) {
      rest = this.fill(this.body ?? this.size, rest);
      if (this.filled < (this.body ?? this.size).length) return undefined;
      this.filled = 0;
      if (this.body !== undefined) {
        fault = handOut(this.body, onFrame);
        this.body = undefined;
        continue;
      }
      const total = readUint32(this.size);
      fault = this.faultOf(total);
      if (fault !== undefined) return fault;
      if (rest.length < total) {
        this.body = new Uint8Array(Buffer.allocUnsafeSlow(total).buffer);
      } else {
        fault = handOut(rest.subarray(0, total), onFrame);
        rest = rest.subarray(total);
      }
    }
    return fault;
  }

  /** What is wrong with a stream that ends here; undefined when nothing is. */
  end(): string | undefined {
    if (this.body !== undefined) return `cut off in a frame, after ${this.filled} of ${this.body.length} bytes`;
    return this.filled === 0 ? undefined : 'cut off in the size of a frame';
  }

  private fill(target: Uint8Array, rest: Uint8Array): Uint8Array {
    const taken = rest.subarray(0, target.length - this.filled);
    target.set(taken, this.filled);
    this.filled += taken.length;
    return rest.subarray(taken.length);
  }

  private faultOf(total: number): string | undefined {
    if (total > this.maxFrameBytes) {
      return `a frame of ${total} bytes, where at most ${this.maxFrameBytes} are taken: is this a broker's binary port?`;
    }
    return total < SIZE_BYTES ? `a frame of ${total} bytes, too few for the size of a command` : undefined;
  }
}

function readUint32(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
}

function handOut(body: Uint8Array, onFrame: (frame: Frame) => void): string | undefined {
  const commandSize = readUint32(body);
  const entryStart = SIZE_BYTES + commandSize;
  if (entryStart > body.length) return `a command of ${commandSize} bytes in a frame of ${body.length}`;
  onFrame({ command: body.subarray(SIZE_BYTES, entryStart), entry: body.subarray(entryStart) });
  return undefined;
}
