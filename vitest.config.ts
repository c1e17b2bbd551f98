import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const src = fileURLToPath(new URL('./src', import.meta.url));
const countsFile = process.env.ISTHMUS_TEST_JSON;

export default defineConfig({
  resolve: {
    // Tests, like readers, import the package by its entry points; here they lead to the sources.
    alias: [
      { find: /^isthmus$/, replacement: `${src}/index.ts` },
      { find: /^isthmus\/(drivers|testing|adapters\/[^/]+)$/, replacement: `${src}/$1/index.ts` },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    // On real brokers: vitest.pulsar.config.ts.
    exclude: ['**/*.pulsar.test.ts', '**/node_modules/**'],
    // A property that shrinks, or a real file on a slow disk, may take its time; a test that hangs must still end.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
    reporters: countsFile ? ['default', 'json'] : ['default'],
    ...(countsFile ? { outputFile: { json: countsFile } } : {}),
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['text-summary', 'html'] },
  },
});
