/**
 * The tests that mutation testing runs, hundreds of times over: those of one room, without simulated worlds, with few runs
 * of each property and always the same ones. `scripts/mutation.mjs` names the room.
 */
import { defineConfig } from 'vitest/config';
import base from './vitest.config.js';

const room = process.env.ISTHMUS_ROOM ?? '*';

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [`test/${room}/**/*.test.ts`],
    exclude: [
      'test/convergence/convergence.test.ts',
      'test/layout/model.test.ts',
      'test/replication/world*.test.ts',
      'test/*/{controller,segment}-events.test.ts',
      '**/*.pulsar.test.ts',
    ],
    setupFiles: ['test/testing/few-runs.ts'],
    maxWorkers: 1,
    // Modules need not be loaded anew for every file: no test leaves anything behind.
    isolate: false,
  },
});
