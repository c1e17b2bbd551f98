/**
 * Acceptance suite for `CursorStore`: the same tests that the adapters here pass. It is given the test function of the
 * runner, `it` or `test`, and a `setup` that makes a fresh store for each test. Each message of a failure is the rule
 * that is broken.
 */
import { formatSourcePosition, parseSourcePosition } from '../entry/index.js';
import type { CursorRecord, CursorStore, CursorWrite } from '../ports/index.js';
import { check, onFresh, type RegisterTest, type SuiteSetup } from './suite.js';

/** A store in which nothing was ever written. */
export interface CursorStoreSetup extends SuiteSetup {
  readonly store: CursorStore;
  /** The same store opened anew, as another process opens it once this one has died without closing anything. */
  reopen(): Promise<CursorStore> | CursorStore;
}

/** Makes a fresh store for one test. */
export type CursorStoreFactory = () => Promise<CursorStoreSetup> | CursorStoreSetup;

type Changes = Readonly<Record<number, CursorRecord | undefined>>;

/** Registers the tests of `CursorStore`. */
export function testCursorStore(setup: CursorStoreFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `CursorStore: ${what}`;

  test(
    name('it is empty as long as replication was never enabled'),
    using(async ({ store }) => {
      await checkStored(store, {}, 'a store that was never written is not empty');
      check((await write(store, {})).type === 'written', 'a write of nothing is refused');
      await checkStored(store, {}, 'a write of nothing leaves something');
    }),
  );

  test(
    name('what was written is loaded, every field of it, and outlives the process'),
    using(async ({ store, reopen }) => {
      check((await write(store, RECORDS)).type === 'written', 'a first write is refused');
      await checkStored(store, RECORDS, 'what is loaded is not what was written');
      await checkStored(await reopen(), RECORDS, 'what was written does not outlive the process');
    }),
  );

  test(
    name('a write changes the segments that it names, and no other'),
    using(async ({ store, reopen }) => {
      await write(store, { 1: record(1, '7:1'), 2: record(1, '7:2'), 3: record(1, '7:3') });
      await write(store, { 2: record(1, '7:9'), 3: undefined, 4: undefined });
      const expected = { 1: record(1, '7:1'), 2: record(1, '7:9') };
      await checkStored(store, expected, 'a write does not change just the records that it names');
      await checkStored(await reopen(), expected, 'a change or a removal does not outlive the process');
    }),
  );

  test(
    name('what was loaded or written stays apart from what is stored later'),
    using(async ({ store }) => {
      const checkpoints = new Map([[4, parseSourcePosition('4:1')]]);
      await write(store, { 1: { ...record(1, '7:1'), checkpoints } });
      const loaded = await store.load();
      checkpoints.set(5, parseSourcePosition('5:1'));
      const kept = (await store.load()).get(1)?.checkpoints.size;
      check(kept === 1, 'a record changes with the value that it was written from');
      await write(store, { 1: record(1, '7:8'), 2: record(1) });
      check(loaded.size === 1 && settledOf(loaded.get(1)) === '7:1', 'what was loaded changes with a later write');
    }),
  );

  test(
    name('an earlier session cannot write where a later one has'),
    using(async ({ store, reopen }) => {
      await write(store, { 1: record(3, '7:5') });
      for (const process of [store, await reopen()]) {
        const refused = await write(process, { 1: record(2, '7:9') });
        check(refused.type === 'fenced', 'a write of an earlier session is taken');
        check(refused.session === 3, 'a refused write does not tell the session that is stored');
        await checkStored(store, { 1: record(3, '7:5') }, 'a write that was refused has changed a record');
      }
      check((await write(store, { 1: record(3, '7:6') })).type === 'written', 'a session cannot write twice');
      check((await write(store, { 1: record(4, '7:6') })).type === 'written', 'a later session cannot take over');
      await checkStored(store, { 1: record(4, '7:6') }, 'a later session has not taken over');
    }),
  );

  test(
    name('a write is refused as a whole'),
    using(async ({ store, reopen }) => {
      const before = { 1: record(1), 2: record(2, '7:2'), 3: record(1), 4: record(5, '7:4') };
      await write(store, before);
      const refused = await write(store, {
        0: record(1),
        1: record(1, '7:9'),
        2: record(1),
        3: undefined,
        4: record(1),
      });
      check(refused.type === 'fenced', 'a write is taken although one of its segments belongs to a later session');
      check(refused.session === 2 || refused.session === 5, 'a refused write tells a session that is not stored');
      await checkStored(store, before, 'a write that was refused has written a part of itself');
      await checkStored(await reopen(), before, 'a write that was refused has written a part of itself, for later');
    }),
  );

  test(
    name('removing a record is never refused'),
    using(async ({ store }) => {
      await write(store, { 1: record(9, '7:1'), 2: record(1) });
      check((await write(store, { 1: undefined })).type === 'written', 'the removal of a record is refused');
      await checkStored(store, { 2: record(1) }, 'a record that was removed is loaded');
      const mixed = await write(store, { 2: record(1, '7:3'), 3: undefined });
      check(mixed.type === 'written', 'a removal beside a write is refused');
    }),
  );

  test(
    name('of writes at the same time the later session has the last word, and each is whole'),
    using(async ({ store, reopen }) => {
      const processes = [store, await reopen()];
      const writes = Array.from({ length: 8 }, (_, i) => {
        const process = processes[i % 2] as CursorStore;
        // The sessions come out of their order: 4, 7, 2, 5, 8, 3, 6, 1.
        const session = ((i * 3 + 3) % 8) + 1;
        return write(process, { 1: record(session, `7:${session}`), 2: record(session, `7:${session}`) });
      });
      await Promise.all(writes);
      const loaded = await store.load();
      const sessions = [1, 2].map((segmentId) => loaded.get(segmentId)?.session);
      check(sessions[0] === sessions[1], 'of two writes at the same time each has written a part');
      check(sessions[0] === 8, 'of writes at the same time the latest session has not the last word');
      check(settledOf(loaded.get(1)) === '7:8', 'a record is put together from two writes');
    }),
  );
}

/** One of every kind: nothing settled, everything set, and the largest numbers that there are. */
const RECORDS: Changes = {
  0: { session: 1, drained: false, skipped: [], checkpoints: new Map() },
  1: {
    session: 2,
    settled: parseSourcePosition('7:12'),
    drained: true,
    skipped: ['7:14', '9:0'].map(parseSourcePosition),
    checkpoints: new Map([
      [3, parseSourcePosition('31:0')],
      [12, parseSourcePosition('30:99')],
    ]),
  },
  9007199254740991: {
    session: 9007199254740991,
    settled: parseSourcePosition('9223372036854775807:9223372036854775807'),
    drained: false,
    skipped: [parseSourcePosition('9007199254740993:9007199254740993')],
    checkpoints: new Map([[9007199254740991, parseSourcePosition('9223372036854775806:9007199254740993')]]),
  },
};

function record(session: number, settled?: string): CursorRecord {
  return {
    session,
    ...(settled === undefined ? {} : { settled: parseSourcePosition(settled) }),
    drained: false,
    skipped: [],
    checkpoints: new Map(),
  };
}

function write(store: CursorStore, changes: Changes): Promise<CursorWrite> {
  return store.write(new Map(Object.entries(changes).map(([segmentId, change]) => [Number(segmentId), change])));
}

async function checkStored(store: CursorStore, expected: Changes, rule: string): Promise<void> {
  const loaded = await store.load();
  const lines = [...loaded].map(([segmentId, stored]) => lineOf(segmentId, stored)).sort();
  const wanted = Object.entries(expected).flatMap(([segmentId, stored]) => {
    return stored === undefined ? [] : [lineOf(Number(segmentId), stored)];
  });
  check(lines.join('\n') === wanted.sort().join('\n'), rule);
}

/** All of a record in one line, so that an absent field and a field of another type are seen. */
function lineOf(segmentId: number, { session, settled, drained, skipped, checkpoints }: CursorRecord): string {
  const places = [...checkpoints].map(([id, position]) => `${JSON.stringify(id)}@${formatSourcePosition(position)}`);
  return JSON.stringify([
    segmentId,
    session,
    settled === undefined ? null : formatSourcePosition(settled),
    drained,
    skipped.map(formatSourcePosition),
    places.sort(),
  ]);
}

function settledOf(stored: CursorRecord | undefined): string | undefined {
  return stored?.settled === undefined ? undefined : formatSourcePosition(stored.settled);
}
