/**
 * Mutation testing of one room: `npm run mutation -- ring`, or of one file of it, `npm run mutation -- layout/shape`. The
 * tests are those of the room (vitest.mutation.config.ts). What has not changed since the last time is not run again.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';

const [target = '', ...options] = process.argv.slice(2);
const [room = ''] = target.split('/');
const path = `src/${target}`;
const files = existsSync(path) && statSync(path).isDirectory() ? `${path}/**/*.ts` : `${path}.ts`;
if (room === '' || !(existsSync(path) || existsSync(`${path}.ts`)) || !existsSync(`test/${room}`)) {
  console.error(
    `${target || 'nothing'} is named: give a room of src that has tests, such as ring, or a file of one, such as ring/hash`,
  );
  process.exit(2);
}
const mutate = `${files},!src/**/index.ts`;
const incremental = `node_modules/.cache/mutation-${room}.json`;
const { status } = spawnSync(
  'npx',
  ['stryker', 'run', '--mutate', mutate, '--incrementalFile', incremental, ...options],
  { stdio: 'inherit', env: { ...process.env, ISTHMUS_ROOM: room } },
);
process.exit(status ?? 1);
