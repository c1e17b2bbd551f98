/** The suite of `CursorStore` fails on stores that are broken, each for the rule that it breaks. */
import { testCursorStore } from 'isthmus/testing';
import { expect, it } from 'vitest';
import type { CursorRecord, CursorStore, CursorWrite } from '../../src/ports/index.js';
import { verdictOf } from '../support/verdict.js';

/** What outlives a process. */
type Disk = Map<number, CursorRecord>;
type Changes = ReadonlyMap<number, CursorRecord | undefined>;

const verdict = (open: (disk: Disk) => CursorStore) =>
  verdictOf((test) => {
    testCursorStore(() => {
      const disk: Disk = new Map();
      return { store: open(disk), reopen: () => open(disk), patienceMs: 200 };
    }, test);
  });

/** A store as it should be, in few lines. */
function storeOn(disk: Disk): CursorStore {
  return {
    load: async () => new Map(disk),
    write: async (changes) => {
      const fenced = laterOn(disk, changes);
      if (fenced === undefined) apply(disk, changes);
      return fenced ?? { type: 'written' };
    },
  };
}

/** Who writes later than these changes. */
function laterOn(disk: Disk, changes: Changes): CursorWrite | undefined {
  for (const [segmentId, record] of changes) {
    const session = disk.get(segmentId)?.session ?? 0;
    if (record !== undefined && session > record.session) return { type: 'fenced', session };
  }
  return undefined;
}

function apply(disk: Disk, changes: Changes): void {
  for (const [segmentId, record] of changes) {
    if (record === undefined) disk.delete(segmentId);
    else disk.set(segmentId, { ...record, skipped: [...record.skipped], checkpoints: new Map(record.checkpoints) });
  }
}

/** A store that writes in a way of its own. */
const writing =
  (write: (disk: Disk, changes: Changes) => CursorWrite | Promise<CursorWrite>) =>
  (disk: Disk): CursorStore => ({ ...storeOn(disk), write: async (changes) => write(disk, changes) });

/** A store whose records are changed on their way in. */
const changing = (change: (record: CursorRecord) => CursorRecord) =>
  writing((disk, changes) => {
    const changed = [...changes].map(
      ([id, record]) => [id, record === undefined ? undefined : change(record)] as const,
    );
    return storeOn(disk).write(new Map(changed));
  });

const written: CursorWrite = { type: 'written' };
const soon = (ms = 1) => new Promise((resolve) => setTimeout(resolve, ms));
/** So the second halves of several writes come in another order than the first. */
const laterSessionsSooner = (record: CursorRecord | undefined) => soon(40 - 4 * (record?.session ?? 0));

it.each<[string, (disk: Disk) => CursorStore, RegExp]>([
  [
    'that begins with a record',
    (disk) => {
      disk.set(0, { session: 1, drained: false, skipped: [], checkpoints: new Map() });
      return storeOn(disk);
    },
    /never written is not empty/,
  ],
  [
    'that refuses an empty write',
    writing((disk, changes) => (changes.size === 0 ? { type: 'fenced', session: 0 } : storeOn(disk).write(changes))),
    /a write of nothing is refused/,
  ],
  [
    'that notes every write',
    writing((disk, changes) => {
      disk.set(99, { session: 1, drained: false, skipped: [], checkpoints: new Map() });
      return storeOn(disk).write(changes);
    }),
    /a write of nothing leaves something/,
  ],
  [
    'that takes no first write',
    writing((_, { size }) => (size ? { type: 'fenced', session: 1 } : written)),
    /first write is refused/,
  ],
  ['that writes nothing', writing(() => written), /not what was written/],
  ['that loses the session', changing((record) => ({ ...record, session: 1 })), /not what was written/],
  ['that loses what is settled', changing(({ settled: _, ...record }) => record), /not what was written/],
  [
    'that settles what is not',
    changing((record) => ({ ...record, settled: record.settled ?? { ledgerId: 0n, entryId: 0n } })),
    /not what was written/,
  ],
  ['that loses the drain', changing((record) => ({ ...record, drained: false })), /not what was written/],
  ['that loses what is skipped', changing((record) => ({ ...record, skipped: [] })), /not what was written/],
  ['that loses checkpoints', changing((record) => ({ ...record, checkpoints: new Map() })), /not what was written/],
  [
    'whose positions are doubles',
    changing(({ skipped, ...record }) => ({
      ...record,
      skipped: skipped.map(({ ledgerId, entryId }) => ({ ledgerId: BigInt(Number(ledgerId)), entryId })),
    })),
    /not what was written/,
  ],
  [
    'whose segment ids are 32 bits wide',
    changing(({ checkpoints, ...record }) => ({
      ...record,
      checkpoints: new Map([...checkpoints].map(([id, position]) => [id >>> 0, position])),
    })),
    /not what was written/,
  ],
  ['that is not durable', () => storeOn(new Map()), /does not outlive the process/],
  [
    'that writes all records at once',
    writing((disk, changes) => {
      disk.clear();
      apply(disk, changes);
      return written;
    }),
    /just the records that it names/,
  ],
  [
    'that removes nothing',
    writing((disk, changes) => storeOn(disk).write(new Map([...changes].filter(([, record]) => record !== undefined)))),
    /just the records that it names/,
  ],
  [
    'that removes for its own process only',
    (disk) => {
      const cache: Disk = new Map(disk);
      const { load, write } = storeOn(cache);
      return {
        load,
        write: (changes) => {
          apply(disk, new Map([...changes].filter(([, record]) => record !== undefined)));
          return write(changes);
        },
      };
    },
    /a change or a removal does not outlive the process/,
  ],
  [
    'that keeps values that others change',
    writing((disk, changes) => {
      const fenced = laterOn(disk, changes);
      if (fenced !== undefined) return fenced;
      apply(disk, changes);
      for (const [id, record] of changes) if (record !== undefined) disk.set(id, record);
      return written;
    }),
    /changes with the value that it was written from/,
  ],
  ['that lends its own map', (disk) => ({ ...storeOn(disk), load: async () => disk }), /changes with a later write/],
  [
    'without a fence',
    writing((disk, changes) => {
      apply(disk, changes);
      return written;
    }),
    /a write of an earlier session is taken/,
  ],
  [
    'whose fence lives in its process',
    (disk) => {
      const seen: Disk = new Map();
      return {
        ...storeOn(disk),
        write: async (changes) => {
          const fenced = laterOn(seen, changes);
          if (fenced !== undefined) return fenced;
          apply(seen, changes);
          apply(disk, changes);
          return written;
        },
      };
    },
    /a write of an earlier session is taken/,
  ],
  [
    'that tells a session of its own',
    writing(async (disk, changes) => {
      const answer = await storeOn(disk).write(changes);
      return answer.type === 'written' ? answer : { type: 'fenced', session: 1 };
    }),
    /does not tell the session that is stored/,
  ],
  [
    'that refuses, and writes all the same',
    writing((disk, changes) => {
      const fenced = laterOn(disk, changes);
      apply(disk, changes);
      return fenced ?? written;
    }),
    /refused has changed a record/,
  ],
  [
    'that lets a session write once',
    writing((disk, changes) => {
      const session = disk.get(1)?.session;
      const isSame = session === 3 && session === changes.get(1)?.session;
      return isSame ? { type: 'fenced', session } : storeOn(disk).write(changes);
    }),
    /a session cannot write twice/,
  ],
  [
    'that belongs to the session that comes first',
    writing((disk, changes) => {
      const session = disk.get(1)?.session;
      const isOther = session === 3 && session !== changes.get(1)?.session;
      return isOther ? { type: 'fenced', session } : storeOn(disk).write(changes);
    }),
    /a later session cannot take over/,
  ],
  [
    'that ignores who takes over',
    writing((disk, changes) => {
      const isTakeover = disk.get(1)?.session === 3 && changes.get(1)?.session === 4;
      return isTakeover ? written : storeOn(disk).write(changes);
    }),
    /a later session has not taken over/,
  ],
  [
    'that counts sessions on',
    writing(async (disk, changes) => {
      const answer = await storeOn(disk).write(changes);
      return answer.type === 'fenced' && changes.size > 1 ? { type: 'fenced', session: 9 } : answer;
    }),
    /tells a session that is not stored/,
  ],
  [
    'that finds a part of a refused write when it is opened again',
    (disk) => {
      const cache: Disk = new Map(disk);
      const { load, write } = storeOn(cache);
      return {
        load,
        write: (changes) => {
          if (laterOn(disk, changes) === undefined || changes.size > 1) apply(disk, new Map([...changes].slice(0, 4)));
          return write(changes);
        },
      };
    },
    /a part of itself, for later/,
  ],
  [
    'that writes up to the record that is refused',
    writing((disk, changes) => {
      for (const change of changes) {
        const fenced = laterOn(disk, new Map([change]));
        if (fenced !== undefined) return fenced;
        apply(disk, new Map([change]));
      }
      return written;
    }),
    /has written a part of itself/,
  ],
  [
    'that leaves out the records that are refused',
    writing((disk, changes) => {
      const taken = [...changes].filter((change) => laterOn(disk, new Map([change])) === undefined);
      apply(disk, new Map(taken));
      return taken.length > 0 ? written : (laterOn(disk, changes) ?? written);
    }),
    /although one of its segments belongs to a later session/,
  ],
  [
    'that removes nothing of a later session',
    writing((disk, changes) => {
      const removed = [...changes].find(([segmentId, record]) => record === undefined && disk.has(segmentId));
      const session = disk.get(removed?.[0] ?? -1)?.session ?? 0;
      return session > 5 ? { type: 'fenced', session } : storeOn(disk).write(changes);
    }),
    /the removal of a record is refused/,
  ],
  [
    'that keeps an empty record where one was removed',
    writing((disk, changes) => {
      const emptied = [...changes].map(([id, record]): [number, CursorRecord | undefined] => {
        const session = disk.get(id)?.session ?? 0;
        return record !== undefined || session < 9
          ? [id, record]
          : [id, { session, drained: false, skipped: [], checkpoints: new Map() }];
      });
      return storeOn(disk).write(new Map(emptied));
    }),
    /a record that was removed is loaded/,
  ],
  [
    'that removes only when it writes nothing',
    writing((disk, changes) => {
      const records = [...changes.values()];
      const isMixed = records.includes(undefined) && records.some((record) => record?.settled?.entryId === 3n);
      return isMixed ? { type: 'fenced', session: 1 } : storeOn(disk).write(changes);
    }),
    /a removal beside a write is refused/,
  ],
  [
    'that looks first and writes later',
    writing(async (disk, changes) => {
      const fenced = laterOn(disk, changes);
      await soon();
      if (fenced === undefined) apply(disk, changes);
      return fenced ?? written;
    }),
    /the latest session has not the last word/,
  ],
  [
    'that writes one record after the other',
    writing(async (disk, changes) => {
      const fenced = laterOn(disk, changes);
      if (fenced !== undefined) return fenced;
      for (const change of changes) {
        apply(disk, new Map([change]));
        await laterSessionsSooner(change[1]);
      }
      return written;
    }),
    /each has written a part/,
  ],
  [
    'that writes one field after the other',
    writing(async (disk, changes) => {
      const fenced = laterOn(disk, changes);
      if (fenced !== undefined) return fenced;
      apply(disk, changes);
      for (const [segmentId, record] of changes) {
        if (record?.settled === undefined || changes.size !== 2) continue;
        await laterSessionsSooner(record);
        disk.set(segmentId, { ...(disk.get(segmentId) ?? record), settled: record.settled });
      }
      return written;
    }),
    /put together from two writes/,
  ],
])('it refuses a store %s', async (_, broken, rule) => {
  expect(await verdict(broken)).toMatch(rule);
});

it('it takes a store as it should be', async () => {
  expect(await verdict(storeOn)).toBe('accepted');
});
