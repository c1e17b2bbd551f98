import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const countsFile = process.env.ISTHMUS_TEST_JSON;
const src = fileURLToPath(new URL('./src', import.meta.url));

/** Those that wait for minutes come first, so that others fill the time. */
const LONG = ['limits', 'takeovers', 'outages', 'scenarios', 'secure', 'leader', 'messages', 'provisioning'];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((name) => moduleId.endsWith(`/${name}.pulsar.test.ts`));
      return at < 0 ? LONG.length : at;
    };
    return [...files].sort((one, other) => place(one) - place(other));
  }
}

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
    sequence: { sequencer: LongFirst },
    reporters: countsFile ? ['default', 'json'] : ['default'],
    ...(countsFile ? { outputFile: { json: countsFile } } : {}),
    // In CI one flaw of a busy machine is not the end: what was tried again is said in the report.
    retry: process.env.CI ? 1 : 0,
    testTimeout: 240_000,
    hookTimeout: 300_000,
  },
});
