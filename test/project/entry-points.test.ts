/** A room that users import has its line in package.json. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

it('the package exports the core, the drivers, the test kit and every adapter that there is, and nothing else', () => {
  const adapters = readdirSync(`${root}src/adapters`).map((name) => `adapters/${name}`);
  const rooms = ['drivers', 'testing', ...adapters].filter((room) => existsSync(`${root}src/${room}/index.ts`));
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { exports: Record<string, unknown> };
  expect(exports).toEqual({
    '.': { types: './dist/index.d.ts', default: './dist/index.js' },
    ...Object.fromEntries(
      rooms.map((room) => [`./${room}`, { types: `./dist/${room}/index.d.ts`, default: `./dist/${room}/index.js` }]),
    ),
    './package.json': './package.json',
  });
});
