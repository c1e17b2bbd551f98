import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.js';

// The tests that need a Chromium (`CHROMIUM`, or one of the usual paths); `npm test` runs without them.
const { test, ...rest } = base;

export default mergeConfig(
  rest,
  defineConfig({ test: { ...test, include: ['test/browser/**/*.browser.ts'], maxWorkers: 1, testTimeout: 60_000 } }),
);
