/** The suite of `RemoteTopic` fails on remotes whose reading back is broken, each for the rule that it breaks. */
import { encodeMessage, joinBuffers, parseEntry } from 'isthmus';
import { expect, it } from 'vitest';
import type { RemotePin, RemoteTopic, StoredEntry } from '../../src/ports/index.js';
import { type Defect, inProducers, inResults, inSending, verdictOn } from '../support/broken-remote.js';

const READ_BACK = { dedup: 'readBack' } as const;

/** A defect in what is read back. */
const inReading =
  (change: (entries: readonly StoredEntry[]) => readonly StoredEntry[]): Defect =>
  ({ readBack }) => ({
    async *readBack(...call) {
      for await (const piece of readBack(...call)) yield change(piece);
    },
  });

/** A defect in the range that is read back. */
const inRange =
  (change: (range: Parameters<RemoteTopic['readBack']>[1]) => Parameters<RemoteTopic['readBack']>[1]): Defect =>
  ({ readBack }) => ({ readBack: (segmentId, range, signal) => readBack(segmentId, change(range), signal) });

const inPin =
  (change: (pin: RemotePin) => Partial<RemotePin>): Defect =>
  ({ pin }) =>
    pin === undefined ? {} : { pin: { ...pin, ...change(pin) } };

it.each<[string, Defect, RegExp]>([
  [
    'whose barrier lies where the first one lay',
    (remote, around) => {
      let first: Awaited<ReturnType<RemotePin['position']>>;
      return inProducers((producer) => ({
        barrier: async () => {
          first ??= await producer.barrier();
          return first;
        },
      }))(remote, around);
    },
    /between two barriers does not lie between them/,
  ],
  [
    'whose barrier lies where the next entry will lie',
    inProducers((producer) => ({
      barrier: async () => {
        const { ledgerId, entryId } = await producer.barrier();
        return { ledgerId, entryId: entryId + 1n };
      },
    })),
    /an entry lies before a barrier that was stored before it/,
  ],
  [
    'that stores nothing behind a barrier',
    (remote, around) => {
      let barriers = 0;
      const barrier = inProducers((producer) => ({
        barrier: () => {
          barriers++;
          return producer.barrier();
        },
      }))(remote, around);
      return inSending((producer, sent, { tell }) => {
        if (barriers < 2) producer.send(sent);
        else tell({ type: 'stored' });
      })({ ...remote, ...barrier }, around);
    },
    /what consumers get is not what was sent/,
  ],
  [
    'whose old connections go on',
    inSending((producer, sent, { topic, segmentId, tell }) => {
      if (sent.position.entryId < 10n) return producer.send(sent);
      setTimeout(() => topic.append(segmentId, sent.buffers), 10);
      tell({ type: 'stored' });
    }),
    /of an older connection is stored behind the barrier/,
  ],
  [
    'that tells a barrier over a cut connection',
    inProducers((producer) => ({ barrier: () => producer.barrier().catch(() => ({ ledgerId: 0n, entryId: 0n })) })),
    /a barrier is told over a cut connection/,
  ],
  ['that loses entries', inReading((entries) => entries.slice(1)), /between two barriers does not lie between them/],
  ['that reads three entries', inReading((entries) => entries.slice(0, 3)), /what is stored up to its end/],
  ['that reads backwards', inReading((entries) => entries.toReversed()), /what is read back do not ascend/],
  [
    'that brings other bytes',
    inReading((entries) =>
      entries.map(({ position }, i) => ({
        position,
        bytes: (entries[i ^ 1] ?? entries[i])?.bytes ?? new Uint8Array(),
      })),
    ),
    /between two barriers does not lie between them/,
  ],
  [
    'that brings bytes without their stamp',
    inReading((entries) => entries.map(({ position, bytes }) => ({ position, bytes: unstamped(bytes) }))),
    /not the entry as it is stored/,
  ],
  [
    'that always begins at the start',
    inRange(({ through }) => ({ after: undefined, through })),
    /does not begin directly behind its position/,
  ],
  [
    'that begins with its position',
    inRange(({ after, through }) => ({
      after: after && after.entryId > 0n ? { ...after, entryId: after.entryId - 1n } : undefined,
      through,
    })),
    /directly behind its position/,
  ],
  [
    'that ends before its end',
    inRange(({ after, through }) => ({
      after,
      through: through === 'end' || through.entryId === 0n ? through : { ...through, entryId: through.entryId - 1n },
    })),
    /does not end with the entry at its end/,
  ],
  [
    'that tells other places than it reads',
    inResults((result, count) =>
      result.type === 'stored' ? { type: 'stored', at: { ledgerId: 9n, entryId: BigInt(count) } } : result,
    ),
    /at another place than its result told/,
  ],
  [
    'that reads sealed segments like others',
    ({ readBack }) => ({
      async *readBack(segmentId, range, signal) {
        if (range.through !== 'end') yield* readBack(segmentId, range, signal);
      },
    }),
    /not read back to its end/,
  ],
  [
    'that reads sealed segments from their start',
    inRange(({ after, through }) => ({ after: through === 'end' ? undefined : after, through })),
    /behind the end of a sealed segment/,
  ],
  [
    'that knows one sealed segment',
    ({ readBack }) => ({
      readBack: (segmentId, range, signal) => readBack(range.through === 'end' ? 0 : segmentId, range, signal),
    }),
    /of a segment that was sealed empty/,
  ],
  [
    'that goes on without its signal',
    ({ readBack }) => ({ readBack: (segmentId, range) => readBack(segmentId, range, new AbortController().signal) }),
    /does not reject when its signal aborts/,
  ],
  [
    'that reads nothing of what is gone',
    ({ readBack }, { topic }) => ({
      async *readBack(segmentId, range, signal) {
        if (topic.layout.segments.has(segmentId)) yield* readBack(segmentId, range, signal);
      },
    }),
    /ends as if nothing had been stored/,
  ],
  [
    'whose pin begins somewhere',
    inPin(({ position }) => ({
      position: async (segmentId) => (await position(segmentId)) ?? { ledgerId: 0n, entryId: 0n },
    })),
    /a fresh pin does not stand at the start/,
  ],
  ['whose pin stays', inPin(() => ({ move: async () => undefined })), /does not stand where it was moved to/],
  [
    'whose pin lives in its process',
    inPin(({ position, move }) => {
      const moved = new Set<number>();
      return {
        position: async (segmentId) => (moved.has(segmentId) ? position(segmentId) : undefined),
        move: async (segmentId, to) => {
          moved.add(segmentId);
          await move(segmentId, to);
        },
      };
    }),
    /another process finds it elsewhere/,
  ],
  [
    'with one pin for all segments',
    inPin(({ position }) => ({ position: () => position(0) })),
    /on one segment counts on another/,
  ],
  [
    'whose pin goes back',
    (_, { pinned }) => ({
      pin: {
        position: async (segmentId) => pinned.get(segmentId),
        move: async (segmentId, position) => void pinned.set(segmentId, position),
      },
    }),
    /a pin goes back/,
  ],
])('it refuses a remote %s', async (_, defect, rule) => {
  expect(await verdictOn(READ_BACK, defect)).toMatch(rule);
});

it('it refuses a remote whose barriers consumers see', async () => {
  const verdict = verdictOn(
    READ_BACK,
    () => ({}),
    (_, topic) => ({
      stored: (segmentId) => topic.entries(segmentId).map(({ bytes }) => bytes),
    }),
  );
  expect(await verdict).toMatch(/consumers see a barrier/);
});

it('it refuses a remote that trims behind the pin', async () => {
  const verdict = verdictOn(
    READ_BACK,
    () => ({}),
    (_, topic) => ({
      trim: (segmentId, upTo) => void topic.trim(segmentId, upTo, { force: true }),
    }),
  );
  expect(await verdict).toMatch(/what lies behind the pin is trimmed/);
});

/** The same entry without its source position; a barrier as it is. */
function unstamped(bytes: Uint8Array): Uint8Array {
  const { payload, metadata } = parseEntry(bytes);
  if (metadata.markerType !== undefined) return bytes;
  return joinBuffers(encodeMessage(payload, { outer: { producerName: 'p', sequenceId: 0n, publishTimeMs: 0 } }));
}
