import { defineConfig } from 'tsup';

/** The replicator is measured as it is run in earnest: bundled, not through a loader that translates it. */
export default defineConfig({
  entry: { replicator: 'examples/pulsar-replicator/main.ts' },
  outDir: 'dist/bench-pulsar',
  format: ['esm'],
  platform: 'node',
  target: 'node20',
  silent: true,
});
