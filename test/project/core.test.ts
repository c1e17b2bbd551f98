/** The core is deterministic, and the lint that says so does fail on a clock, a timer and a random number. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);
const biome = require.resolve('@biomejs/biome/bin/biome');

const BREACHES = [
  'Date.now();',
  'new Date();',
  'performance.now();',
  'Math.random();',
  'crypto.randomUUID();',
  'setTimeout(() => undefined, 1);',
  'setInterval(() => undefined, 1);',
  'setImmediate(() => undefined);',
  'queueMicrotask(() => undefined);',
  'process.env.HOME;',
  'globalThis.setTimeout(() => undefined, 1);',
  "globalThis[String('Date')];",
];
const ALLOWED = ['Math.max(1, 2);', 'new Map();', 'BigInt(1);'];

/** The rooms that the layer lint holds for the core, so that the two lints cannot drift apart. */
function coreRooms(): string[] {
  const { forbidden } = require('../../.dependency-cruiser.cjs') as {
    forbidden: { readonly name: string; readonly from: { readonly path: string } }[];
  };
  const path = forbidden.find((rule) => rule.name === 'core-without-node')?.from.path;
  return /\((.*)\)/.exec(path ?? '')?.[1]?.split('|') ?? [];
}

describe('the core', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'isthmus-core-'));
    for (const file of ['biome.json', '.gitignore', 'scripts/deterministic-core.grit']) {
      cpSync(join(root, file), join(folder, file));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function write(file: string): void {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), [...BREACHES, ...ALLOWED].join('\n'));
  }

  /** What the lint says about a src, as `file:line`. */
  function flagged(): Set<string> {
    const options = ['--reporter=github', '--max-diagnostics=none'];
    const { stdout } = spawnSync(process.execPath, [biome, 'lint', ...options, 'src'], {
      cwd: folder,
      encoding: 'utf8',
    });
    return new Set(
      [...stdout.matchAll(/file=.*?\b(src\/[^,]+),line=(\d+)/g)].map(([, file, line]) => `${file}:${line}`),
    );
  }

  it('may read no clock, arm no timer and draw no random number, in any of its rooms', () => {
    const files = coreRooms().map((room) => `src/${room}/breach.ts`);
    expect(files.length).toBeGreaterThan(8);
    files.forEach(write);
    write('src/drivers/clock.ts');
    const expected = files.flatMap((file) => BREACHES.map((_, i) => `${file}:${i + 1}`));
    expect([...flagged()].sort()).toEqual(expected.sort());
  });
});
