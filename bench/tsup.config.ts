import { defineConfig } from 'tsup';

/** The benchmarks run what users run: the bundled sources, not a loader's view of them. */
export default defineConfig({
  entry: { main: 'bench/main.ts' },
  outDir: 'dist/bench',
  format: ['esm'],
  platform: 'node',
  target: 'node20',
  silent: true,
});
