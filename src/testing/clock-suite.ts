/**
 * Acceptance suites for `Clock` and `Random`: the same tests that those of a process pass. Each is given the test function
 * of the runner, `it` or `test`, and a `setup`. Each message of a failure is the rule that is broken.
 */
import type { Clock, Random } from '../ports/index.js';
import { check, onFresh, type RegisterTest, rejects, type SuiteSetup, watched } from './suite.js';

/** A clock. */
export interface ClockSetup extends SuiteSetup {
  readonly clock: Clock;
  /** Lets so many milliseconds pass; absent where they pass by themselves. */
  pass?(ms: number): Promise<void> | void;
}

/** Makes a clock for one test. */
export type ClockFactory = () => Promise<ClockSetup> | ClockSetup;

const SHORT_MS = 20;
const FOR_EVER_MS = 600_000;

/** Registers the tests of `Clock`. */
export function testClock(setup: ClockFactory, test: RegisterTest): void {
  const using = onFresh(setup);
  const name = (what: string) => `Clock: ${what}`;

  test(
    name('a sleep lasts as long as it was asked for, by the clock that never falls'),
    using(async ({ clock, pass }, eventually) => {
      const begunMs = clock.now();
      check(Number.isFinite(begunMs), `the time is ${begunMs}`);
      let lastMs = begunMs;
      const sleeping = watched(clock.sleep(SHORT_MS, new AbortController().signal));
      for (let passed = 0; pass !== undefined && passed < SHORT_MS; passed++) await pass(1);
      const isAwake = () => {
        const nowMs = clock.now();
        check(nowMs >= lastMs, `the time falls from ${lastMs} to ${nowMs}`);
        lastMs = nowMs;
        return sleeping.isSettled();
      };
      await eventually(isAwake, 'a sleep does not end');
      await sleeping.promise;
      // Timers of a process may be early by the part of a millisecond that its clock cuts off.
      check(clock.now() - begunMs >= SHORT_MS - 1, `a sleep of ${SHORT_MS} ms took ${clock.now() - begunMs} ms`);
    }),
  );

  test(
    name('a sleep whose signal aborts ends by a rejection, at once where it has aborted already'),
    using(async ({ clock }, eventually) => {
      for (const isEarly of [false, true]) {
        const stop = new AbortController();
        if (isEarly) stop.abort();
        const sleeping = watched(rejects(clock.sleep(FOR_EVER_MS, stop.signal)));
        stop.abort();
        const when = isEarly ? 'has aborted already' : 'aborts';
        await eventually(sleeping.isSettled, `a sleep does not end when its signal ${when}`);
        check(await sleeping.promise, `a sleep ends as if its time were over when its signal ${when}`);
      }
    }),
  );

  test(
    name('one sleep that is ended leaves the others'),
    using(async ({ clock, pass }, eventually) => {
      const stop = new AbortController();
      const ended = rejects(clock.sleep(SHORT_MS, stop.signal));
      const other = watched(clock.sleep(SHORT_MS, new AbortController().signal));
      stop.abort();
      await ended;
      check(!other.isSettled(), 'a sleep ends with the signal of another');
      await pass?.(SHORT_MS);
      await eventually(other.isSettled, 'a sleep does not end, because another was ended');
      await other.promise;
    }),
  );
}

/** Makes a source of numbers for one test. */
export type RandomFactory = () => Random;

/** Registers the test of `Random`. */
export function testRandom(setup: RandomFactory, test: RegisterTest): void {
  test('Random: every number is in [0, 1), and they lie all over it', async () => {
    const random = setup();
    const numbers = Array.from({ length: 1_000 }, () => random.next());
    const wrong = numbers.find((number) => !(number >= 0 && number < 1));
    check(wrong === undefined, `${wrong} is not in [0, 1)`);
    // Of 1,000 numbers none lies in a tenth once in 10^45 times.
    const tenths = new Set(numbers.map((number) => Math.floor(number * 10)));
    check(tenths.size === 10, `1,000 numbers lie in ${tenths.size} tenths of [0, 1)`);
  });
}
