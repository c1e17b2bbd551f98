/**
 * Order for each key and nothing lost, over real HTTPS: random faults, a target that is killed, and processes that come
 * after each other. The clock runs fast, so that waits of seconds pass in a moment; connections know nothing of it.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/ports/index.js';
import { edgeAnswer, errorAnswer, type TargetFault } from '../../src/testing/index.js';
import { until } from '../support/until.js';
import { Stage } from './sender-stage.js';

const SPEED = 40;
const startedMs = Date.now();

const fast: Clock = {
  now: () => startedMs + (Date.now() - startedMs) * SPEED,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const abort = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', abort);
        resolve();
      }, ms / SPEED);
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
    }),
};

const FAULTS: readonly TargetFault[] = [
  { type: 'reset' },
  { type: 'reset', stores: true },
  { type: 'cutAnswer', bytes: 5 },
  { type: 'accepted', count: 0 },
  { type: 'answer', answer: edgeAnswer(403) },
  { type: 'answer', answer: edgeAnswer(502), stores: true },
  { type: 'answer', answer: errorAnswer(429, 'too many requests') },
  { type: 'answer', answer: errorAnswer(500, 'produce failed') },
  { type: 'answer', answer: errorAnswer(401, 'authentication required') },
  { type: 'answer', answer: errorAnswer(413, 'request body too large') },
  { type: 'slow', ms: 20, stores: true },
];

/** One number for each request: a fault, or none. */
const arbFaults = fc.array(fc.nat({ max: FAULTS.length + 8 }), { minLength: 5, maxLength: 25 });
const arbSchedule = fc.record({
  faults: arbFaults,
  lanes: fc.integer({ min: 1, max: 8 }),
  records: fc.integer({ min: 1, max: 400 }),
  outageAfter: fc.nat({ max: 20 }),
  restartAfter: fc.nat({ max: 20 }),
});

describe('whatever goes wrong on the way', () => {
  it('each key arrives in order, with repetitions at most, and nothing is lost', async () => {
    await fc.assert(
      fc.asyncProperty(arbSchedule, async ({ faults, lanes, records, outageAfter, restartAfter }) => {
        const stage = await Stage.start({ ports: { clock: fast } });
        const left = [...faults];
        stage.target.fault = () => FAULTS[left.shift() ?? FAULTS.length];
        for (let i = 0; i < records; i++) stage.parents.append(0, `k${i % 7}=${i}`);
        stage.link({ lanes });
        const passed = () => stage.target.requests.length;
        await until(() => passed() > outageAfter || stage.cursors.offsets.get('copy/1/0') === records);
        await stage.target.down();
        await until(() => stage.state() !== 'running' || stage.cursors.offsets.get('copy/1/0') === records);
        await stage.target.up();
        const before = passed();
        await until(() => passed() >= before + restartAfter || stage.cursors.offsets.get('copy/1/0') === records);
        const old = stage.sender.stop();
        stage.sender = stage.newSender();
        await old;
        stage.sender.takePartition('orders', 0);
        stage.sender.start();
        await until(() => stage.cursors.offsets.get('copy/1/0') === records);
        await stage.sender.stop();
        for (let key = 0; key < 7; key++) {
          const own = stage.target.stored().filter((message) => Buffer.from(message.key).toString() === `k${key}`);
          const seen = own.map(({ payload }) => Number(Buffer.from(payload)));
          expect(firstTimes(seen)).toEqual(Array.from({ length: records }, (_, i) => i).filter((i) => i % 7 === key));
          // What was stored before comes again only in the order in which it came.
          for (const [at, value] of seen.entries()) if (at > 0) expect(value).toBeLessThanOrEqual(reach(seen, at));
        }
        await stage.target.close();
      }),
      { numRuns: 20, seed: 20_260_701 },
    );
  }, 120_000);
});

function firstTimes(values: readonly number[]): number[] {
  return [...new Set(values)];
}

/** What may come next at the latest: the one behind the highest so far. */
function reach(values: readonly number[], at: number): number {
  return Math.max(...values.slice(0, at)) + 7;
}
