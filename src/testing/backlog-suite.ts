/**
 * Acceptance suites for what the garbage collector and a local policy ask of a host: `BacklogQuery` and `LoadSource`. Each
 * is given the test function of the runner, `it` or `test`, and a `setup` that makes a fresh topic for each test. Each
 * message of a failure is the rule that is broken.
 */
import type { BacklogQuery, LoadSource } from '../ports/index.js';
import { check, onFresh, type RegisterTest, rejects, type SuiteSetup } from './suite.js';

/** A fresh topic with two active segments or more, nothing stored and nobody subscribed. */
export interface BacklogQuerySetup extends SuiteSetup {
  readonly backlogs: BacklogQuery;
  /** Two of its active segments. */
  readonly segmentIds: readonly [number, number];
  /** Makes a consumers' subscription. */
  subscribe(subscription: string): Promise<void> | void;
  /** Makes what replication to a remote keeps entries with. */
  replicate(remote: string): Promise<void> | void;
  /** Stores so many entries in a segment. */
  append(segmentId: number, count: number): Promise<void> | void;
  /** Acknowledges all that is stored in a segment, for one subscription. */
  consume(subscription: string, segmentId: number): Promise<void> | void;
  /** Splits an active segment, which seals it. */
  split(segmentId: number): Promise<void> | void;
}

/** Makes a fresh topic for one test. */
export type BacklogQueryFactory = () => Promise<BacklogQuerySetup> | BacklogQuerySetup;

/** Registers the tests of `BacklogQuery`. */
export function testBacklogQuery(setup: BacklogQueryFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `BacklogQuery: ${what}`;

  test(
    name('the subscriptions are those of consumers, as they are now, and not the cursors of replication'),
    using(async ({ backlogs, subscribe, replicate }, eventually) => {
      check((await backlogs.subscriptions()).length === 0, 'a topic that nobody has subscribed to has subscriptions');
      await replicate('b');
      await subscribe('x');
      await subscribe('y');
      const told = async () => [...(await backlogs.subscriptions())].sort().join();
      await eventually(async () => (await told()).includes('y'), 'a subscription is not told');
      check((await told()) === 'x,y', `x and y have subscribed, and told are [${await told()}]`);
    }),
  );

  test(
    name('each subscription has a backlog of its own in each segment, 0 once it is drained'),
    using(async ({ backlogs, segmentIds: [first, second], subscribe, append, consume }, eventually) => {
      for (const subscription of ['x', 'y']) await subscribe(subscription);
      await append(first, 3);
      await append(second, 2);
      const told = async () => {
        const places = [first, second].flatMap((segmentId) => ['x', 'y'].map((name) => [segmentId, name] as const));
        return (await Promise.all(places.map(([segmentId, name]) => backlogs.backlog(segmentId, name)))).join();
      };
      const expect = (wanted: string, what: string) => eventually(async () => (await told()) === wanted, what);
      await expect('3,3,2,2', 'a backlog is not the number of entries that nobody has acknowledged');
      await consume('x', first);
      await expect('0,3,2,2', 'what one subscription acknowledges in a segment is not taken from just its backlog');
      await append(first, 1);
      await expect('1,4,2,2', 'a backlog does not grow with what comes');
    }),
  );

  test(
    name('a sealed segment keeps its backlog until it is consumed'),
    using(async ({ backlogs, segmentIds: [segmentId], subscribe, append, consume, split }, eventually) => {
      await subscribe('x');
      await append(segmentId, 3);
      await split(segmentId);
      const told = () => backlogs.backlog(segmentId, 'x');
      await eventually(async () => (await told()) === 3, 'a segment that is sealed has lost its backlog');
      await consume('x', segmentId);
      await eventually(async () => (await told()) === 0, 'a sealed segment that is consumed is not drained');
    }),
  );

  test(
    name('what is not known is a rejection, and never 0'),
    using(async ({ backlogs, segmentIds, subscribe }) => {
      await subscribe('x');
      const strange = Math.max(...segmentIds) + 1_000;
      check(await rejects(backlogs.backlog(strange, 'x')), 'a segment that is not there has a backlog');
    }),
  );
}

/** A fresh topic with nobody subscribed. */
export interface LoadSourceSetup extends SuiteSetup {
  readonly source: LoadSource;
  /** All segments of its layout. */
  readonly segmentIds: readonly number[];
  /** Connects so many consumers to a subscription, which is made where there is none. */
  connect(subscription: string, consumers: number): Promise<void> | void;
}

/** Makes a fresh topic for one test. */
export type LoadSourceFactory = () => Promise<LoadSourceSetup> | LoadSourceSetup;

/** Registers the tests of `LoadSource`. */
export function testLoadSource(setup: LoadSourceFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `LoadSource: ${what}`;

  test(
    name('loads are of segments that there are, and every number of one is finite and not below 0'),
    using(async ({ source, segmentIds }) => {
      const { loads } = await source.read();
      for (const [segmentId, load] of loads) {
        check(segmentIds.includes(segmentId), `segment ${segmentId} has a load, and is not there`);
        const { msgRateIn, bytesRateIn, msgRateOut, bytesRateOut, changedAtMs } = load;
        const numbers = [msgRateIn, bytesRateIn, msgRateOut, bytesRateOut, changedAtMs];
        check(
          numbers.every((number) => Number.isFinite(number) && number >= 0),
          `segment ${segmentId} has a load of [${numbers.join()}]`,
        );
      }
    }),
  );

  test(
    name('the consumers are the most that one subscription has'),
    using(async ({ source, connect }, eventually) => {
      check((await source.read()).consumers === 0, 'a topic without consumers has some');
      const connected = async (subscription: string, count: number, most: number) => {
        await connect(subscription, count);
        const isTold = async () => (await source.read()).consumers === most;
        await eventually(isTold, `${most} are the most consumers of one subscription, and another number is told`);
      };
      await connected('x', 2, 2);
      await connected('y', 3, 3);
      await connected('z', 1, 3);
    }),
  );
}
