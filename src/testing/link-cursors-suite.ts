/**
 * Acceptance suite for `LinkCursors`: the same tests that the adapters here pass. It is given the test function of the
 * runner, `it` or `test`, and a `setup` that makes a fresh store for each test. Each message of a failure is the rule
 * that is broken.
 */
import type { LinkCursors } from '../ports/index.js';
import { check, onFresh, type RegisterTest, type SuiteSetup } from './suite.js';

/** Cursors of which none was ever written. */
export interface LinkCursorsSetup extends SuiteSetup {
  readonly cursors: LinkCursors;
  /** The same cursors as the next owner of the partitions finds them, once this one has died without closing anything. */
  reopen(): Promise<LinkCursors> | LinkCursors;
}

/** Makes fresh cursors for one test. */
export type LinkCursorsFactory = () => Promise<LinkCursorsSetup> | LinkCursorsSetup;

type Place = readonly [child: string, attachEpoch: number, partition: number];

/** Places of which each could be taken for another: in one number, and where names end in what could be a number. */
const PLACES: readonly Place[] = [
  ['copy', 1, 0],
  ['copy', 1, 1],
  ['copy', 2, 0],
  ['copy', 11, 0],
  ['copy', 1, 10],
  ['copy-1', 1, 0],
  ['copy-1', 0, 1],
  ['copy.1', 1, 0],
  ['copy_1', Number.MAX_SAFE_INTEGER, 0],
];

/** Registers the tests of `LinkCursors`. */
export function testLinkCursors(setup: LinkCursorsFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `LinkCursors: ${what}`;

  test(
    name('a cursor that was never written is undefined, and reading does not write it'),
    using(async ({ cursors, reopen }) => {
      for (const owner of [cursors, cursors, await reopen()]) {
        check((await owner.read('copy', 1, 0)) === undefined, 'a cursor that was never written has an offset');
      }
    }),
  );

  test(
    name('what was written last is read, by the next owner as well'),
    using(async ({ cursors, reopen }) => {
      for (const offset of [0, 7, Number.MAX_SAFE_INTEGER, 3]) {
        await cursors.write('copy', 1, 0, offset);
        const read = await cursors.read('copy', 1, 0);
        check(read === offset, `an offset of ${offset} was written last, and ${read} is read`);
        const next = await (await reopen()).read('copy', 1, 0);
        check(next === offset, `an offset of ${offset} was written last, and the next owner reads ${next}`);
      }
    }),
  );

  test(
    name('each child, each attachment of it and each partition has a cursor of its own'),
    using(async ({ cursors, reopen }) => {
      for (const [offset, place] of PLACES.entries()) {
        check((await cursors.read(...place)) === undefined, `cursor ${place.join('/')} was written by another`);
        await cursors.write(...place, offset);
      }
      const owner = await reopen();
      for (const [offset, place] of PLACES.entries()) {
        check((await owner.read(...place)) === offset, `cursor ${place.join('/')} was changed by another`);
      }
    }),
  );

  test(
    name('cursors that are written at the same time are all written'),
    using(async ({ cursors, reopen }) => {
      await Promise.all(PLACES.map((place, offset) => cursors.write(...place, offset)));
      const owner = await reopen();
      const read = await Promise.all(PLACES.map((place) => owner.read(...place)));
      const wanted = PLACES.map((_, offset) => offset);
      check(read.join() === wanted.join(), `of writes at the same time there are [${read.join()}], not [${wanted}]`);
    }),
  );
}
