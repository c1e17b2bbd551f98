/** Frames against bytes that are put together by hand. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeEntryFrame,
  encodeFrame,
  type Frame,
  FrameDecoder,
} from '../../../../src/adapters/pulsar/protocol/frames.js';

const bytes = fc.uint8Array({ maxLength: 40 });
const frames = fc.array(fc.record({ command: bytes, entry: bytes }), { minLength: 1, maxLength: 8 });

function u32(value: number): Buffer {
  const written = Buffer.alloc(4);
  written.writeUInt32BE(value);
  return written;
}

function byHand({ command, entry }: Frame): Buffer {
  return Buffer.concat([u32(4 + command.length + entry.length), u32(command.length), command, entry]);
}

/** Cuts a stream at these places, whatever their order. */
function pieces(stream: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length];
  return places.slice(1).map((end, i) => stream.subarray(places[i], end));
}

function decode(chunks: readonly Uint8Array[], maxFrameBytes = 1000) {
  const decoder = new FrameDecoder(maxFrameBytes);
  const found: Frame[] = [];
  let fault: string | undefined;
  for (const chunk of chunks) fault ??= decoder.push(chunk, (frame) => found.push(frame));
  return { found, fault, end: decoder.end() };
}

const plain = ({ command, entry }: Frame) => ({ command: [...command], entry: [...entry] });

describe('the decoder', () => {
  it('gives the same frames however the stream is cut', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 12 }), (sent, cuts) => {
        const { found, fault, end } = decode(pieces(Buffer.concat(sent.map(byHand)), cuts));
        expect(found.map(plain)).toEqual(sent.map(plain));
        expect([fault, end]).toEqual([undefined, undefined]);
      }),
    );
  });

  it('says of a stream that ends within a frame how far it came', () => {
    fc.assert(
      fc.property(frames, fc.nat(), fc.array(fc.nat()), (sent, at, cuts) => {
        const stream = Buffer.concat(sent.map(byHand));
        const ends = [0];
        for (const frame of sent) ends.push((ends.at(-1) ?? 0) + byHand(frame).length);
        const cut = at % stream.length;
        const { found, end } = decode(pieces(stream.subarray(0, cut), cuts));
        expect(found).toHaveLength(ends.filter((place) => place <= cut).length - 1);
        expect(end === undefined).toBe(ends.includes(cut));
      }),
    );
  });

  it('hands out what comes before a frame that is too large, and nothing behind it', () => {
    const good = byHand({ command: Buffer.from('abc'), entry: Buffer.alloc(93) });
    const { found, fault } = decode([Buffer.concat([good, u32(101), good])], 100);
    expect(found).toHaveLength(1);
    expect(fault).toBe("a frame of 101 bytes, where at most 100 are taken: is this a broker's binary port?");
    expect(decode([Buffer.from('HTTP/1.1 400 Bad Request\r\n')]).fault).toMatch(/^a frame of 1213486160 bytes/);
  });

  it('refuses a frame without the size of its command, and a command that is larger than its frame', () => {
    expect(decode([u32(3), Buffer.alloc(3)]).fault).toBe('a frame of 3 bytes, too few for the size of a command');
    expect(decode([u32(6), u32(3), Buffer.alloc(2)]).fault).toBe('a command of 3 bytes in a frame of 6');
  });

  it('takes a changed limit at once', () => {
    const decoder = new FrameDecoder(10);
    const large = byHand({ command: Buffer.alloc(1), entry: Buffer.alloc(50) });
    decoder.maxFrameBytes = 60;
    expect(decoder.push(large, () => undefined)).toBe(undefined);
  });

  it('copies each byte of a large frame once, and hands out plain views', () => {
    const entry = Buffer.alloc(8 * 1024 * 1024, 7);
    const stream = byHand({ command: Buffer.from('c'), entry });
    const chunks = Array.from({ length: stream.length / 1024 }, (_, i) => stream.subarray(i * 1024, (i + 1) * 1024));
    const { found } = decode([...chunks, stream.subarray(chunks.length * 1024)], stream.length);
    expect(found[0]?.entry.length).toBe(entry.length);
    expect(Buffer.compare(found[0]?.entry ?? new Uint8Array(), entry)).toBe(0);
    expect(Buffer.isBuffer(found[0]?.entry)).toBe(false);
    expect(
      Buffer.isBuffer(decode([byHand({ command: Buffer.from('c'), entry: Buffer.from('e') })]).found[0]?.entry),
    ).toBe(false);
  });
});

describe('encoding', () => {
  it('writes frames as they are written by hand, large payloads in a piece of their own', () => {
    const size = fc.constantFrom(0, 1, 100, 8 * 1024, 8 * 1024 + 1, 100_000);
    fc.assert(
      fc.property(bytes, bytes, size, (command, head, payloadSize) => {
        const payload = Buffer.alloc(payloadSize, 3);
        const written = encodeEntryFrame(command, { head, payload });
        expect(Buffer.concat(written).equals(byHand({ command, entry: Buffer.concat([head, payload]) }))).toBe(true);
        expect(written.length).toBe(payloadSize > 8 * 1024 ? 2 : 1);
        if (written.length === 2) expect(written[1]).toBe(payload);
        expect(Buffer.from(encodeFrame(command)).equals(byHand({ command, entry: new Uint8Array() }))).toBe(true);
      }),
    );
  });
});
