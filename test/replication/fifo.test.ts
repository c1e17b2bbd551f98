import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from '../../src/replication/fifo.js';

describe('a queue', () => {
  it('gives what an array gives, whatever comes and goes', () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.nat({ max: 99 }) },
      { weight: 4, arbitrary: fc.constant('shift' as const) },
      { weight: 1, arbitrary: fc.constant('takeAll' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const queue = new Fifo<number>();
        let model: number[] = [];
        for (const what of steps) {
          if (what === 'shift') expect(queue.shift()).toBe(model.shift());
          else if (what === 'takeAll') {
            expect(queue.takeAll()).toEqual(model);
            model = [];
          } else {
            queue.push(what);
            model.push(what);
          }
          expect(queue.size).toBe(model.length);
        }
      }),
      { numRuns: 100 },
    );
  });
});
