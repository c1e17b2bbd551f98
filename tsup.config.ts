import { existsSync, readdirSync } from 'node:fs';
import { defineConfig } from 'tsup';

/** The entry points of package.json: the core, the drivers, the test kit, and every adapter that there is. */
const adapters = existsSync('src/adapters') ? readdirSync('src/adapters') : [];
const names = ['index', 'drivers/index', 'testing/index', ...adapters.map((name) => `adapters/${name}/index`)];
const present = names.filter((name) => existsSync(`src/${name}.ts`));

/**
 * The JavaScript. The declarations come from tsc (tsconfig.build.json): bundled ones would offer a class that is
 * exported as a type only (`Entry`) as a value, which at run time is not there.
 */
export default defineConfig({
  entry: Object.fromEntries(present.map((name) => [name, `src/${name}.ts`])),
  format: ['esm'],
  platform: 'node',
  target: 'node20',
  // Code that two entry points share goes into one chunk, so that `instanceof IsthmusError` holds across them.
  splitting: true,
  sourcemap: true,
  clean: true,
});
