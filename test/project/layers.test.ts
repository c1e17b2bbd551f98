/** The floors of src hold, and the lint that says so does fail where they do not. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cruise } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs the lint on the src of a folder; each violation reads `rule: file -> what it imports`. */
async function violationsIn(folder: string): Promise<string[]> {
  const options = await extractDepcruiseOptions(join(root, '.dependency-cruiser.cjs'));
  const { output } = await cruise(['src'], { ...options, baseDir: folder });
  if (typeof output === 'string') throw new TypeError('the lint printed a report instead of returning one');
  return output.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`);
}

/** A package that breaks every rule, and next to each breach has what is allowed. */
const FILES: Record<string, string> = {
  'package.json': `{
    "type": "module",
    "dependencies": { "codec": "1" },
    "peerDependencies": { "fast-check": "1" },
    "devDependencies": { "fast-check": "1", "vitest": "1" }
  }`,
  'node_modules/codec/index.js': '',
  'node_modules/fast-check/index.js': '',
  'node_modules/vitest/index.js': '',
  'src/errors.ts': `import './ring/index.js';`,
  'src/index.ts': `
    export * from './drivers/index.js';
    export * from './ring/hash.js';
    export * from './ring/index.js';`,
  'src/extra/index.ts': `export * from '../ring/index.js';`,
  'src/ring/hash.ts': `import 'codec';`,
  'src/ring/index.ts': `
    import '../errors.js';
    import './hash.js';`,
  'src/entry/index.ts': `
    import 'node:zlib';
    import 'node:fs';
    import 'codec';
    import '../ring/index.js';`,
  'src/layout/index.ts': `
    import '../ring/hash.js';
    import '../dedup/index.js';`,
  'src/dedup/index.ts': `
    import 'node:zlib';
    import type { setTimeout } from 'node:timers';`,
  'src/convergence/a.ts': `import type { B } from './b.js';`,
  'src/convergence/b.ts': `import type { A } from './a.js';`,
  'src/sender/index.ts': `import type { Own } from '../dedup/index.js';`,
  'src/provisioning/index.ts': `import './nowhere.js';`,
  'src/ports/index.ts': `
    import type { Own } from '../dedup/index.js';
    import { hash } from '../ring/index.js';`,
  'src/drivers/index.ts': `
    import '../adapters/memory/index.js';
    import '../ports/index.js';`,
  'src/adapters/memory/index.ts': `
    import '../../ring/index.js';
    import '../../testing/index.js';`,
  'src/adapters/disk/index.ts': `
    import 'codec';
    import '../memory/index.js';
    import '../../drivers/index.js';`,
  'src/testing/index.ts': `
    import 'fast-check';
    import 'vitest';
    import '../drivers/index.js';`,
};

describe('the floors of src', () => {
  let broken: string;

  beforeAll(() => {
    broken = mkdtempSync(join(tmpdir(), 'isthmus-layers-'));
    for (const [file, text] of Object.entries(FILES)) {
      mkdirSync(dirname(join(broken, file)), { recursive: true });
      writeFileSync(join(broken, file), text);
    }
  });
  afterAll(() => rmSync(broken, { recursive: true, force: true }));

  it('hold in the sources', async () => {
    expect(await violationsIn(root)).toEqual([]);
  });

  it('are seen to break where they are broken', async () => {
    expect((await violationsIn(broken)).sort()).toMatchInlineSnapshot(`
      [
        "adapters-apart: src/adapters/disk/index.ts -> src/adapters/memory/index.ts",
        "by-the-face: src/layout/index.ts -> src/ring/hash.ts",
        "core-without-node: src/dedup/index.ts -> timers",
        "core-without-node: src/entry/index.ts -> fs",
        "floor-of-adapters: src/adapters/disk/index.ts -> src/drivers/index.ts",
        "floor-of-adapters: src/adapters/memory/index.ts -> src/testing/index.ts",
        "floor-of-drivers: src/drivers/index.ts -> src/adapters/memory/index.ts",
        "floor-of-errors: src/errors.ts -> src/ring/index.ts",
        "floor-of-index: src/index.ts -> src/drivers/index.ts",
        "floor-of-layout: src/layout/index.ts -> src/dedup/index.ts",
        "floor-of-sender: src/sender/index.ts -> src/dedup/index.ts",
        "found: src/provisioning/index.ts -> ./nowhere.js",
        "index-by-the-face: src/index.ts -> src/ring/hash.ts",
        "known-room: src/extra/index.ts -> src/ring/index.ts",
        "no-circle: src/adapters/memory/index.ts -> src/testing/index.ts",
        "no-circle: src/convergence/a.ts -> src/convergence/b.ts",
        "no-circle: src/errors.ts -> src/ring/index.ts",
        "no-dev-package: src/testing/index.ts -> node_modules/vitest/index.js",
        "packages-at-the-edge: src/ring/hash.ts -> node_modules/codec/index.js",
        "ports-are-types: src/ports/index.ts -> src/ring/index.ts",
        "zlib-in-entry: src/dedup/index.ts -> zlib",
      ]
    `);
  });
});
