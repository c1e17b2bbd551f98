import { existsSync, readdirSync } from 'node:fs';
import { defineConfig } from 'tsup';

/** The entry points of package.json: the core, the drivers, the test kit, and every adapter that there is. */
const adapters = existsSync('src/adapters') ? readdirSync('src/adapters') : [];
const names = ['index', 'drivers/index', 'testing/index', ...adapters.map((name) => `adapters/${name}/index`)];
const present = names.filter((name) => existsSync(`src/${name}.ts`));

export default defineConfig({
  entry: Object.fromEntries(present.map((name) => [name, `src/${name}.ts`])),
  format: ['esm'],
  platform: 'node',
  target: 'node20',
  // Code that two entry points share goes into one chunk, so that `instanceof IsthmusError` holds across them.
  splitting: true,
  dts: { compilerOptions: { stripInternal: true } },
  sourcemap: true,
  clean: true,
});
