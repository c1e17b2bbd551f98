/** The suite of `ParentTopics` fails on parents that are broken, each for the rule that it breaks. */
import { type ParentRecord, testParentTopics } from 'isthmus/testing';
import { expect, it } from 'vitest';
import type { ParentTopics, PartitionBacklog } from '../../src/ports/index.js';
import type { Slab, SlabLimits, SourceRecord } from '../../src/sender/index.js';
import { verdictOf } from '../support/verdict.js';

type Partitions = SourceRecord[][];
type Read = ParentTopics['read'];

const STORED_MS = 1_700_000_000_000;

/** A record; every offset is a multiple of 10, so that nobody takes it for a count. */
function stored({ key, payload }: ParentRecord, place: number): SourceRecord {
  const bytes = (text: string) => new TextEncoder().encode(text);
  return { offset: place * 10, key: bytes(key), payload: bytes(payload), storedAtMs: STORED_MS + place };
}

/** A parent as it should be, in few lines: it looks for what is new every millisecond. */
function parentsOf(partitions: Partitions): ParentTopics {
  const log = (partition: number) => partitions[partition] ?? [];
  const endOf = (partition: number) => log(partition).length * 10;
  const read: Read = async (place, limits, waitMs, signal) => {
    for (let waited = 0; waited < waitMs && endOf(place.partition) <= place.offset; waited++) {
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const records: SourceRecord[] = [];
    let bytes = 0;
    for (const record of log(place.partition).filter(({ offset }) => offset >= place.offset)) {
      bytes += record.key.length + record.payload.length;
      if (records.length > 0 && (bytes > limits.maxBytes || records.length === limits.maxRecords)) break;
      records.push(record);
    }
    return { records, nextOffset: records.length === 0 ? place.offset : (records.at(-1)?.offset ?? 0) + 10 };
  };
  return {
    describe: async (name) => {
      const none = { id: '', createdAt: 0, retentionMs: 0, children: 0, remoteChildren: 0, isChild: false };
      return name === 'orders' ? { name, ...none } : undefined;
    },
    startOffsets: async (_, from) => partitions.map((_, partition) => (from === 'latest' ? endOf(partition) : 0)),
    read,
    backlog: async (_, partition, from) => {
      const [first, ...more] = log(partition).filter(({ offset }) => offset >= from);
      return first === undefined ? { records: 0 } : { records: 1 + more.length, oldestStoredMs: first.storedAtMs };
    },
  };
}

type Change = (good: ParentTopics, partitions: Partitions) => Partial<ParentTopics>;

const verdict = (change: Change) =>
  verdictOf((test) => {
    testParentTopics((records) => {
      const partitions = records.map((each) => each.map(stored));
      const good = parentsOf(partitions);
      return {
        parents: { ...good, ...change(good, partitions) },
        parent: 'orders',
        append(partition, record) {
          const log = partitions[partition];
          log?.push(stored(record, log.length));
        },
        patienceMs: 100,
      };
    }, test);
  });

/** A parent whose slabs are changed on their way out. */
const reading =
  (change: (slab: Slab, ...call: Parameters<Read>) => Slab): Change =>
  ({ read }) => ({ read: async (...call) => change(await read(...call), ...call) });

const counting =
  (change: (backlog: PartitionBacklog) => PartitionBacklog): Change =>
  ({ backlog }) => ({ backlog: async (...call) => change(await backlog(...call)) });

/** A read from the middle of a partition to its end. */
const isInside = ({ offset }: { readonly offset: number }, { maxRecords }: SlabLimits) =>
  offset === 20 && maxRecords > 2;

it.each<[string, Change, RegExp]>([
  [
    'that is called otherwise',
    ({ describe }) => ({
      describe: async (name) => {
        const told = await describe(name);
        return told && { ...told, name: `persistent://${name}` };
      },
    }),
    /the topic is described as persistent:/,
  ],
  [
    'that answers to every name',
    ({ describe }) => ({ describe: async () => describe('orders') }),
    /a topic that is not there is described/,
  ],
  [
    'that starts in one partition',
    ({ startOffsets }) => ({ startOffsets: async (...call) => (await startOffsets(...call)).slice(0, 1) }),
    /there is not one start for each partition/,
  ],
  [
    'that always starts at the end',
    ({ startOffsets }) => ({ startOffsets: (parent) => startOffsets(parent, 'latest') }),
    /the earliest start is not before all that is kept/,
  ],
  [
    'that takes unconsumed for latest',
    ({ startOffsets }) => ({
      startOffsets: (parent, from) => startOffsets(parent, from === 'unconsumed' ? 'latest' : from),
    }),
    /the unconsumed start passes what nobody has consumed/,
  ],
  [
    'that always starts at the beginning',
    ({ startOffsets }) => ({ startOffsets: (parent) => startOffsets(parent, 'earliest') }),
    /the latest start is not behind what is there/,
  ],
  [
    'that loses keys',
    reading((slab) => ({
      ...slab,
      records: slab.records.map((record) => ({ ...record, key: new Uint8Array() })),
    })),
    /what is read is not what was stored/,
  ],
  [
    'whose texts are Latin',
    reading((slab) => ({
      ...slab,
      records: slab.records.map((record) => ({
        ...record,
        payload: Buffer.from(Buffer.from(record.payload).toString('ascii')),
      })),
    })),
    /what is read is not what was stored/,
  ],
  [
    'that mixes partitions',
    ({ read }) => ({ read: (place, ...call) => read({ ...place, partition: 0 }, ...call) }),
    /what is read is not what was stored/,
  ],
  ['that does not come on', reading((slab, { offset }) => ({ ...slab, nextOffset: offset })), /does not come on/],
  [
    'that begins behind its offset',
    ({ read }) => ({
      read: (place, limits, ...call) =>
        read(isInside(place, limits) ? { ...place, offset: 30 } : place, limits, ...call),
    }),
    /a read begins beside its offset/,
  ],
  [
    'that reports losses where there are none',
    reading((slab) => ({ ...slab, lost: { from: 0, to: 0 } })),
    /a read tells of records that were lost/,
  ],
  [
    'whose offsets descend',
    reading((slab, place, limits) => ({
      ...slab,
      records: slab.records.map((record, i) => (isInside(place, limits) ? { ...record, offset: 50 - i } : record)),
    })),
    /the offsets of a slab do not ascend/,
  ],
  [
    'that comes back to its last record',
    reading((slab, ...[place, limits]) => (isInside(place, limits) ? { ...slab, nextOffset: 50 } : slab)),
    /the next offset lies before the end of the slab/,
  ],
  [
    'that counts no records',
    ({ read }) => ({
      read: (place, limits, ...call) => read(place, { ...limits, maxRecords: Math.max(5, limits.maxRecords) }, ...call),
    }),
    /of at most 2 records 5 are read/,
  ],
  [
    'that counts no keys',
    ({ read }) => ({
      read: (place, limits, ...call) => read(place, { ...limits, maxBytes: limits.maxBytes + 1 }, ...call),
    }),
    /of at most \d+ bytes \d+ are read/,
  ],
  [
    'that brings nothing above its limit',
    reading((slab, _, { maxBytes }) => (maxBytes === 1 ? { ...slab, records: [] } : slab)),
    /a record above the limit is never read/,
  ],
  [
    'that goes round',
    ({ read }) => ({
      read: async (place, limits, waitMs, signal) => {
        const slab = await read(place, limits, waitMs, signal);
        return waitMs === 30 ? read({ ...place, offset: 0 }, limits, 0, signal) : slab;
      },
    }),
    /records are read behind the end/,
  ],
  [
    'that begins anew at its end',
    reading((slab, _, __, waitMs) => (slab.records.length === 0 && waitMs > 0 ? { ...slab, nextOffset: 0 } : slab)),
    /a read of nothing goes on or back/,
  ],
  [
    'that does not wait',
    ({ read }) => ({ read: (place, limits, _, signal) => read(place, limits, 0, signal) }),
    /a read of nothing does not wait/,
  ],
  [
    'that sleeps while it waits',
    ({ read }) => ({
      read: async (place, limits, waitMs, signal) => {
        const slab = await read(place, limits, 0, signal);
        if (slab.records.length > 0 || waitMs === 0) return slab;
        await new Promise((resolve, reject) => {
          setTimeout(resolve, Math.min(waitMs, 1_000));
          signal.addEventListener('abort', reject, { once: true });
        });
        return read(place, limits, 0, signal);
      },
    }),
    /what comes while a read waits is not brought/,
  ],
  [
    'that brings what it read before',
    ({ read }) => ({
      read: async (place, limits, waitMs, signal) => {
        const slab = await read(place, limits, waitMs, signal);
        return waitMs > 1_000 ? read({ ...place, offset: place.offset - 10 }, limits, 0, signal) : slab;
      },
    }),
    /is another record/,
  ],
  [
    'that waits on whatever is aborted',
    ({ read }) => ({
      read: (...[place, limits, waitMs]) => read(place, limits, Math.min(waitMs, 400), new AbortController().signal),
    }),
    /a read does not end when its signal aborts/,
  ],
  [
    'that does not see that it is aborted already',
    ({ read }) => ({
      read: (place, limits, waitMs, signal) =>
        read(place, limits, Math.min(waitMs, 400), signal.aborted ? new AbortController().signal : signal),
    }),
    /a read does not end when its signal has aborted already/,
  ],
  [
    'that takes an abort for an end',
    ({ read }) => ({
      read: (place, ...call) => read(place, ...call).catch(() => ({ records: [], nextOffset: place.offset })),
    }),
    /a read brings something when its signal aborts/,
  ],
  [
    'that counts what lies behind an offset without it',
    ({ backlog }) => ({
      backlog: async (...call) => {
        const told = await backlog(...call);
        // So that the starts seem right.
        return call[2] === 0 ? told : { ...told, records: Math.max(0, told.records - 1) };
      },
    }),
    /a backlog of 5 is told as 4/,
  ],
  [
    'that tells when its last record came',
    counting((told) => ({ ...told, ...(told.records > 1 && { oldestStoredMs: STORED_MS + 5 }) })),
    /the time of a backlog is not that of its first record/,
  ],
  [
    'that tells a time of nothing',
    counting((told) => ({ oldestStoredMs: STORED_MS, ...told })),
    /there is a backlog behind the end/,
  ],
])('it refuses a parent %s', async (_, change, rule) => {
  expect(await verdict(change)).toMatch(rule);
});

it('it takes a parent as it should be', async () => {
  expect(await verdict(() => ({}))).toBe('accepted');
});
