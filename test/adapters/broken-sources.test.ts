/** The suite of `EntrySource` fails on sources that are broken, each for the rule that it breaks. */
import type { Layout, SourcePosition } from 'isthmus';
import { type EntrySourceSetup, testEntrySource } from 'isthmus/testing';
import { expect, it } from 'vitest';
import type { EntrySource, StoredEntry } from '../../src/ports/index.js';
import { newTopic, sourceSetup } from '../support/memory-suites.js';
import { verdictOf } from '../support/verdict.js';

type Read = EntrySource['read'];

/** A setup whose source is changed in some of its methods. */
const verdict = (broken: (source: EntrySource, setup: EntrySourceSetup) => Partial<EntrySource>) =>
  verdictOf((test) => {
    testEntrySource(() => {
      const setup = sourceSetup();
      return { ...setup, source: { ...setup.source, ...broken(setup.source, setup) } };
    }, test);
  });

/** A source whose entries are changed on their way to the reader. */
const changed =
  (change: (entries: readonly StoredEntry[], after: SourcePosition | undefined) => readonly StoredEntry[]) =>
  ({ read }: EntrySource): Partial<EntrySource> => ({
    read: async (segmentId, after, options) => {
      const { entries, ended } = await read(segmentId, after, options);
      return { entries: change(entries, after), ended };
    },
  });

const forever = <T>() => new Promise<T>(() => undefined);
const ATOP: SourcePosition = { ledgerId: 1n << 40n, entryId: 0n };

it.each<[string, (source: EntrySource, setup: EntrySourceSetup) => Partial<EntrySource>, RegExp]>([
  ['without a name', () => ({ cluster: '' }), /the cluster has no name/],
  ['that tells no layout', () => ({ async *layouts() {} }), /does not begin with the present layout/],
  [
    'that tells of no change',
    ({ layouts }) => ({
      async *layouts(signal) {
        for await (const layout of layouts(signal)) {
          yield layout;
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          return;
        }
      },
    }),
    /does not tell of a change/,
  ],
  [
    'that repeats its layouts',
    ({ layouts }) => ({
      async *layouts(signal) {
        for await (const layout of layouts(signal)) yield* [layout, layout];
      },
    }),
    /repeats or reorders epochs/,
  ],
  [
    'whose watch outlives its signal',
    ({ layouts }) => ({ layouts: () => layouts(new AbortController().signal) }),
    /the watch does not end with its signal/,
  ],
  [
    'that forgets sealed segments',
    ({ layouts }) => ({
      async *layouts(signal) {
        for await (const { epoch, active, ...rest } of layouts(signal)) {
          const segments = new Map(active.map((segment) => [segment.segmentId, segment]));
          yield { ...rest, epoch, active, segments } as Layout;
        }
      },
    }),
    /does not hold the sealed segments/,
  ],
  [
    'that brings every entry once only',
    ({ read }) => {
      const known = new Map<number, SourcePosition | undefined>();
      return {
        read: async (segmentId, after, options) => {
          const result = await read(segmentId, known.get(segmentId) ?? after, options);
          known.set(segmentId, result.entries.at(-1)?.position ?? after);
          return result;
        },
      };
    },
    /a read waits although there are entries/,
  ],
  [
    'that begins one too late',
    changed((entries, after) => (after ? entries.slice(1) : entries)),
    /does not go on directly behind/,
  ],
  [
    'whose bytes change',
    ({ read }) => {
      let reads = 0;
      return {
        read: async (segmentId, after, options) => {
          reads++;
          const { entries, ended } = await read(segmentId, after, options);
          const other = entries.map(({ position, bytes }) => ({
            position,
            bytes: Uint8Array.from(bytes).fill(reads, -1),
          }));
          return { entries: other, ended };
        },
      };
    },
    /a second read from the start brings something else/,
  ],
  [
    'that brings the last entry again',
    ({ read }) => ({
      read: (segmentId, after, options) =>
        read(segmentId, after && after.entryId > 0n ? { ...after, entryId: after.entryId - 1n } : after, options),
    }),
    /does not go on directly behind its position/,
  ],
  ['whose entries come in no order', changed((entries) => entries.toReversed()), /do not ascend/],
  [
    'whose positions have parts',
    changed((entries) => entries.map(({ position, bytes }) => ({ position: { ...position, part: 1 }, bytes }))),
    /has a part/,
  ],
  [
    'that brings the entries of all segments',
    ({ read }, { source }) => ({
      read: async (segmentId, after, options) => {
        const { entries, ended } = await read(segmentId, after, options);
        const hasOthers = segmentId === 0 && (await source.lastPosition(1)) !== undefined;
        const others = hasOthers ? (await read(1, undefined, options)).entries : [];
        return { entries: [...entries, ...others], ended };
      },
    }),
    /not written to this segment/,
  ],
  [
    'that keeps to no number of entries',
    ({ read }) => ({ read: (segmentId, after, options) => read(segmentId, after, { ...options, maxEntries: 1_000 }) }),
    /more entries than its limit/,
  ],
  [
    'that keeps to no number of bytes',
    ({ read }) => ({
      read: (segmentId, after, options) => read(segmentId, after, { ...options, maxBytes: 1_000_000 }),
    }),
    /more bytes than its limit/,
  ],
  [
    'that has no room for an entry beyond the limit of bytes',
    ({ read }) => ({
      read: async (segmentId, after, options) =>
        options.maxBytes === 1 ? { entries: [], ended: false } : read(segmentId, after, options),
    }),
    /comes back with nothing before the segment has ended/,
  ],
  [
    'that begins anew under a limit of entries',
    ({ read }) => ({
      read: (segmentId, after, options) => read(segmentId, options.maxEntries < 6 ? undefined : after, options),
    }),
    /limit on entries do not bring all/,
  ],
  [
    'that begins anew under a limit of bytes',
    ({ read }) => ({
      read: (segmentId, after, options) => read(segmentId, options.maxBytes < 1_000 ? undefined : after, options),
    }),
    /limit on bytes do not bring all/,
  ],
  [
    'that does not wait',
    ({ read }, { source }) => ({
      read: async (segmentId, after, options) => {
        const last = await source.lastPosition(segmentId);
        const isAtEnd = after !== undefined && last?.entryId === after.entryId;
        return isAtEnd ? { entries: [], ended: false } : read(segmentId, after, options);
      },
    }),
    /does not wait/,
  ],
  [
    'that is deaf to a first entry',
    ({ read }, { source }) => ({
      read: async (segmentId, after, options) =>
        (await source.lastPosition(segmentId)) === undefined ? forever() : read(segmentId, after, options),
    }),
    /does not see a first entry/,
  ],
  [
    'that is deaf while it waits',
    ({ read }, { source }) => ({
      read: async (segmentId, after, options) => {
        const last = await source.lastPosition(segmentId);
        return after !== undefined && last?.entryId === after.entryId ? forever() : read(segmentId, after, options);
      },
    }),
    /does not see a new entry/,
  ],
  [
    'that brings an old entry with a new one',
    ({ read }, { source }) => ({
      read: async (segmentId, after, options) => {
        const last = await source.lastPosition(segmentId);
        const hasWaited = after !== undefined && last?.entryId === after.entryId;
        const result = await read(segmentId, after, options);
        return hasWaited && result.entries.length > 0 ? read(segmentId, undefined, options) : result;
      },
    }),
    /does not bring the new entry alone/,
  ],
  [
    'that waits beyond its signal',
    ({ read }) => ({
      read: (segmentId, after, options) => read(segmentId, after, { ...options, signal: new AbortController().signal }),
    }),
    /does not end with its signal/,
  ],
  [
    'that takes an abort for an end',
    ({ read }) => ({
      read: (segmentId, after, options) => read(segmentId, after, options).catch(() => ({ entries: [], ended: true })),
    }),
    /does not reject when its signal aborts/,
  ],
  [
    'that sees no seal while it waits',
    ({ read }) => ({
      read: async (segmentId, after, options) => {
        const result = await read(segmentId, after, options);
        return result.ended && result.entries.length === 0 && after !== undefined ? forever() : result;
      },
    }),
    /does not see the seal/,
  ],
  [
    'that says nothing of a seal that it waited for',
    ({ read }) => ({
      read: async (segmentId, after, options) => {
        const { entries, ended } = await read(segmentId, after, options);
        return { entries, ended: ended && (entries.length > 0 || after === undefined) };
      },
    }),
    /waited for the seal does not say that the segment has ended/,
  ],
  [
    'that puts something into an empty segment',
    ({ read }) => ({
      read: async (segmentId, after, options) => {
        const result = await read(segmentId, after, options);
        const isEmpty = after === undefined && result.ended && result.entries.length === 0;
        return isEmpty ? read(0, undefined, options) : result;
      },
    }),
    /sealed empty has entries/,
  ],
  [
    'that takes every segment for ended',
    ({ read }) => ({ read: async (...call: Parameters<Read>) => ({ ...(await read(...call)), ended: true }) }),
    /ended which is active/,
  ],
  [
    'that ends before the last entry',
    (source) => {
      const sealed = new Set<number>();
      return {
        read: async (segmentId, after, options) => {
          const result = await source.read(segmentId, after, options);
          if (result.ended) sealed.add(segmentId);
          return { ...result, ended: result.ended || sealed.has(segmentId) };
        },
      };
    },
    /a sealed segment does not bring all/,
  ],
  [
    'that never says that an empty segment has ended',
    ({ read }) => ({
      read: async (segmentId, after, options) => {
        const result = await read(segmentId, after, options);
        return result.ended && after === undefined && result.entries.length === 0 ? forever() : result;
      },
    }),
    /a read waits although there are entries, or the segment has ended/,
  ],
  [
    'that invents a first position',
    ({ lastPosition }, { source }) => ({
      lastPosition: async (segmentId) =>
        (await lastPosition(segmentId)) ?? { ledgerId: BigInt(source.cluster.length), entryId: 0n },
    }),
    /never written has a last position/,
  ],
  [
    'whose last position lags',
    ({ lastPosition }) => ({
      lastPosition: async (segmentId) => {
        const last = await lastPosition(segmentId);
        return last === undefined || last.entryId === 0n ? undefined : { ...last, entryId: last.entryId - 1n };
      },
    }),
    /not that of the last entry/,
  ],
  [
    'whose last position goes with the acknowledgement',
    ({ lastPosition, acknowledged }) => ({
      lastPosition: async (segmentId) => ((await acknowledged(segmentId)) ? undefined : lastPosition(segmentId)),
    }),
    /another once the entry is acknowledged/,
  ],
  [
    'whose last position goes with the seal',
    ({ lastPosition, read }) => ({
      lastPosition: async (segmentId) => {
        const last = await lastPosition(segmentId);
        if (last === undefined) return undefined;
        const stop = new AbortController();
        const end = read(segmentId, last, { maxEntries: 1, maxBytes: 1, signal: stop.signal }).catch(() => undefined);
        setTimeout(() => stop.abort());
        return (await end)?.ended ? undefined : last;
      },
    }),
    /another once the segment is sealed/,
  ],
  [
    'that takes reading for an acknowledgement',
    ({ read, acknowledge }) => ({
      read: async (segmentId, after, options) => {
        const result = await read(segmentId, after, options);
        const last = result.entries.at(-1);
        if (last !== undefined) await acknowledge(segmentId, last.position);
        return result;
      },
    }),
    /reading is no acknowledgement/,
  ],
  [
    'that acknowledges all at once',
    ({ acknowledge }) => ({ acknowledge: (segmentId) => acknowledge(segmentId, ATOP) }),
    /beyond what was acknowledged/,
  ],
  ['that forgets acknowledgements', () => ({ acknowledge: async () => undefined }), /never counted/],
  [
    'that acknowledges all segments',
    ({ acknowledge }) => ({
      acknowledge: async (segmentId, position) => {
        await acknowledge(segmentId, position);
        await acknowledge(1 - segmentId, { ledgerId: BigInt(1 - segmentId), entryId: 0n });
      },
    }),
    /on one segment counts on another/,
  ],
  [
    'that loses what lies behind an acknowledgement',
    ({ acknowledge, read }) => {
      const gone = new Map<number, SourcePosition>();
      return {
        acknowledge: async (segmentId, position) => {
          gone.set(segmentId, { ...position, entryId: position.entryId + 1n });
          await acknowledge(segmentId, position);
        },
        read: (segmentId, after, options) => read(segmentId, gone.get(segmentId) ?? after, options),
      };
    },
    /behind the acknowledged position cannot be read/,
  ],
  ['that never gives up', () => ({ release: async () => undefined }), /that was released is kept/],
])('it refuses a source %s', async (_, broken, rule) => {
  expect(await verdict(broken)).toMatch(rule);
});

it('it takes a source that says nothing of a subscription it has given up', async () => {
  const topic = newTopic();
  expect(topic.source('b').cluster).toBe('a');
  const released = ({ acknowledged, release }: EntrySource): Partial<EntrySource> => {
    let isReleased = false;
    return {
      release: async () => {
        isReleased = true;
        await release();
      },
      acknowledged: async (segmentId) => {
        if (isReleased) throw new Error('no such subscription');
        return acknowledged(segmentId);
      },
    };
  };
  expect(await verdict(released)).toBe('accepted');
});
