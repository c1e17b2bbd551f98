/** The suites of `Clock` and `Random` pass for every one here, and fail on those that are broken, each for its rule. */
import { systemClock } from 'isthmus/drivers';
import { seededRandom, testClock, testRandom } from 'isthmus/testing';
import { describe, expect, it } from 'vitest';
import { processClock } from '../../src/adapters/pulsar/protocol/time.js';
import type { Clock } from '../../src/ports/index.js';
import { HandClock } from '../support/hand-clock.js';
import { verdictOf } from '../support/verdict.js';

describe('the clock of the drivers', () => testClock(() => ({ clock: systemClock }), it));
describe('the clock of the Pulsar adapter', () => testClock(() => ({ clock: processClock }), it));
describe('the clock that is moved by hand', () => {
  testClock(() => {
    const clock = new HandClock();
    return { clock, pass: (ms) => clock.advance(ms) };
  }, it);
});

const never = () => new AbortController().signal;
const { now, sleep } = systemClock;

it.each<[string, Clock, RegExp]>([
  ['that does not know the time', { now: () => Number.NaN, sleep }, /the time is NaN/],
  ['that runs backwards', { now: () => -now(), sleep }, /the time falls from/],
  ['whose sleeps are no sleeps', { now, sleep: async () => undefined }, /a sleep of 20 ms took \d+ ms/],
  ['whose sleeps last for ever', { now, sleep: (_, signal) => sleep(60_000, signal) }, /a sleep does not end/],
  [
    'that does not wake up when it is asked to',
    { now, sleep: (ms) => sleep(Math.min(ms, 400), never()) },
    /a sleep does not end when its signal aborts/,
  ],
  [
    'that does not see that it is asked to already',
    { now, sleep: (ms, signal) => sleep(Math.min(ms, 400), signal.aborted ? never() : signal) },
    /a sleep does not end when its signal has aborted already/,
  ],
  [
    'that takes an abort for the end',
    { now, sleep: (ms, signal) => sleep(ms, signal).catch(() => undefined) },
    /a sleep ends as if its time were over when its signal aborts/,
  ],
  ['with one timer for all that is lost', oneTimer('left'), /a sleep does not end, because another was ended/],
  ['with one timer for all that rings', oneTimer('rung'), /a sleep ends with the signal of another/],
])('it refuses a clock %s', async (_, clock, rule) => {
  expect(await verdictOf((test) => testClock(() => ({ clock, patienceMs: 200 }), test))).toMatch(rule);
});

/** A clock whose abort forgets the other sleepers, or wakes them all. */
function oneTimer(others: 'left' | 'rung'): Clock {
  const sleepers = new Set<() => void>();
  return {
    now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        sleepers.add(resolve);
        setTimeout(() => sleepers.has(resolve) && resolve(), Math.min(ms, 400));
        const abort = () => {
          reject(signal.reason);
          if (others === 'rung') for (const wake of sleepers) wake();
          sleepers.clear();
        };
        if (signal.aborted) abort();
        else signal.addEventListener('abort', abort, { once: true });
      }),
  };
}

describe('the random source of a seed', () => testRandom(() => ({ next: seededRandom(1) }), it));
describe('the random source of a process', () => testRandom(() => ({ next: Math.random }), it));

it.each<[string, () => number, RegExp]>([
  ['that reaches 1', () => 1, /1 is not in \[0, 1\)/],
  ['below 0', () => Math.random() - 0.5, /-0\.\d+ is not in \[0, 1\)/],
  ['of no number', () => Number.NaN, /NaN is not in \[0, 1\)/],
  ['that is always the same', () => 0.5, /lie in 1 tenths/],
])('it refuses a random source %s', async (_, next, rule) => {
  expect(await verdictOf((test) => testRandom(() => ({ next }), test))).toMatch(rule);
});
