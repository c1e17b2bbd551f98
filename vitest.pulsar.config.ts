import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const countsFile = process.env.ISTHMUS_TEST_JSON;
const src = fileURLToPath(new URL('./src', import.meta.url));

/** Tests on real brokers, which `npm test` does without. */
export default defineConfig({
  resolve: {
    alias: [
      { find: /^isthmus$/, replacement: `${src}/index.ts` },
      { find: /^isthmus\/(drivers|testing|adapters\/[^/]+)$/, replacement: `${src}/$1/index.ts` },
    ],
  },
  test: {
    include: ['test/pulsar/**/*.pulsar.test.ts'],
    globalSetup: ['test/pulsar/setup.ts'],
    // They wait more than they work; but brokers and clients share the machine with them.
    maxWorkers: 3,
    reporters: countsFile ? ['default', 'json'] : ['default'],
    ...(countsFile ? { outputFile: { json: countsFile } } : {}),
    testTimeout: 240_000,
    hookTimeout: 300_000,
  },
});
