/**
 * Every cut and every flipped bit of the small stored entries. Whatever the bytes, each function of the room gives a
 * value or an IsthmusError; a damaged entry is noticed wherever a checksum covers the damage.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Entry, parseEntry, readBatch, restamp, verifyChecksum } from '../../src/entry/index.js';
import { frameEntry } from '../../src/testing/entries.js';
import { codecs } from '../support/codecs.js';
import { refusal } from '../support/expect.js';
import { ENTRIES, fixtureBytes } from '../support/fixtures.js';

const SMALL = 400;
const STAMP = { replicatedFrom: 'a', sourcePosition: '7:3' };
/** A flipped bit in a declared size must not make the run unpack 64 MiB over and over. */
const LIMITS = { maxUncompressedBytes: 64 * 1024 };

const small = ENTRIES.filter(({ byteLength }) => byteLength <= SMALL).map(
  ({ file }) => [file, fixtureBytes(file)] as const,
);

/** The entry without its headers, so that damage reaches the decoders and is not caught by the checksum before. */
function bare(bytes: Uint8Array): Uint8Array | undefined {
  const entry = parsed(bytes);
  return entry && frameEntry({ metadata: entry.metadataBytes, payload: entry.payload });
}

function parsed(bytes: Uint8Array): Entry | undefined {
  let entry: Entry | undefined;
  refusal(() => {
    entry = parseEntry(bytes);
  });
  return entry;
}

/** Runs all there is over these bytes; any error but an IsthmusError goes through and fails the test. */
function exercise(bytes: Uint8Array): Entry | undefined {
  const entry = parsed(bytes);
  if (entry === undefined) return undefined;
  const { metadata } = entry;
  verifyChecksum(entry);
  restamp(entry, STAMP);
  // What has been parsed is read without an error.
  for (const name of GETTERS) Reflect.get(metadata, name);
  void entry.broker;
  if (metadata.numMessagesInBatch !== undefined) {
    refusal(() => {
      for (const message of readBatch(entry, codecs, LIMITS))
        for (const name of MESSAGE_GETTERS) Reflect.get(message, name);
    });
  }
  return entry;
}

const GETTERS = [
  'properties',
  'sourcePosition',
  'replicateTo',
  'encryptionKeys',
  'txn',
  'chunk',
  'stamp',
  'compactedBatchIndexes',
  'partitionKey',
  'deliverAtMs',
];
const MESSAGE_GETTERS = [
  'properties',
  'payload',
  'partitionKey',
  'bucketHash',
  'segmentHash',
  'sequenceId',
  'eventTimeMs',
  'nullValue',
  'compactedOut',
];

describe('E2, E7: damaged entries', { timeout: 120_000 }, () => {
  // Hundreds of thousands of refusals, whose stacks nobody reads, would take most of the time.
  const { stackTraceLimit } = Error;
  beforeAll(() => {
    Error.stackTraceLimit = 0;
  });
  afterAll(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });

  it('the small entries are most of them', () => {
    expect(small.length).toBeGreaterThan(190);
  });

  it('every single flipped bit gives a value or an IsthmusError, and a checksum notices each one it covers', () => {
    let undetected = 0;
    for (const [, source] of small) {
      const original = parsed(source);
      const sound = original !== undefined && verifyChecksum(original) === 'ok';
      const coveredFrom = sound
        ? source.length - original.payloadLength - original.metadataBytes.length - 8
        : source.length;
      const bytes = Uint8Array.from(source);
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const at = bit >>> 3;
        bytes[at] = (bytes[at] as number) ^ (1 << (bit & 7));
        const entry = exercise(bytes);
        if (entry !== undefined && at >= coveredFrom && verifyChecksum(entry) !== 'mismatch') undetected++;
        bytes[at] = (bytes[at] as number) ^ (1 << (bit & 7));
      }
    }
    expect(undetected).toBe(0);
  });

  it('so does every flipped bit of a batch without a checksum, where the damage reaches the decoders', () => {
    let exercised = 0;
    for (const [, source] of small) {
      const stripped = bare(source);
      if (stripped === undefined || parseEntry(stripped).metadata.numMessagesInBatch === undefined) continue;
      for (let bit = 0; bit < stripped.length * 8; bit++) {
        stripped[bit >>> 3] = (stripped[bit >>> 3] as number) ^ (1 << (bit & 7));
        exercise(stripped);
        stripped[bit >>> 3] = (stripped[bit >>> 3] as number) ^ (1 << (bit & 7));
      }
      exercised++;
    }
    expect(exercised).toBeGreaterThan(40);
  });

  it('B24: an entry that is cut before its payload is refused, one that is cut inside it is noticed', () => {
    for (const [file, source] of small) {
      const original = parsed(source);
      if (original === undefined) {
        for (let length = 0; length < source.length; length++) exercise(source.subarray(0, length));
        continue;
      }
      const payloadAt = source.length - original.payloadLength;
      const isBatch = original.metadata.numMessagesInBatch !== undefined;
      for (let length = 0; length < source.length; length++) {
        const cut = source.subarray(0, length);
        if (length < payloadAt) {
          expect(
            refusal(() => parseEntry(cut)),
            `${file} cut at ${length}`,
          ).toBe('malformedEntry');
          continue;
        }
        const entry = parseEntry(cut);
        exercise(cut);
        expect(verifyChecksum(entry), `${file} cut at ${length}`).toBe(
          original.checksum === undefined ? 'absent' : 'mismatch',
        );
        if (isBatch)
          expect(
            refusal(() => readBatch(entry, codecs)),
            `${file} cut at ${length}`,
          ).not.toBeUndefined();
      }
    }
  });

  it('B24, E7: a batch without a checksum that is cut is refused, or has lost nothing but the flush of its zlib stream', () => {
    for (const [file, source] of small) {
      const stripped = bare(source);
      if (stripped === undefined) continue;
      const whole = parseEntry(stripped);
      const { metadata } = whole;
      if (metadata.numMessagesInBatch === undefined || metadata.encrypted) continue;
      let messages = -1;
      refusal(() => {
        messages = readBatch(whole, codecs).length;
      });
      // A finished zlib stream ends with four bytes of checksum and the rest of its last block, a flushed one with five of the flush.
      const spare = metadata.compression === 'zlib' ? 6 : 0;
      for (let length = stripped.length - whole.payloadLength; length < stripped.length; length++) {
        const cut = parseEntry(stripped.subarray(0, length));
        let left = -1;
        const code = refusal(() => {
          left = readBatch(cut, codecs).length;
        });
        if (length >= stripped.length - spare && code === undefined)
          expect(left, `${file} cut at ${length}`).toBe(messages);
        else expect(code, `${file} cut at ${length}`).toBe('undecodableBatch');
      }
    }
  });
});
