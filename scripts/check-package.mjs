/**
 * Looks at the built package as somebody who installs it: packs it, puts it into an empty project, and there
 * - type-checks every entry point, declarations included, without this project's settings;
 * - compares the values that the declarations promise with those that are there at run time;
 * - checks that a value offered by two entry points is one and the same.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const { name, exports, dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entryPoints = Object.keys(exports).filter((entryPoint) => entryPoint !== './package.json');

const project = mkdtempSync(join(tmpdir(), `${name}-package-`));
try {
  install();
  const offered = await valuesAtRunTime();
  typeCheck(offered);
  checkSame(offered);
  checkInternal();
  console.log(`${entryPoints.length} entry points, ${offered.flatMap(Object.keys).length} values: as declared`);
} catch (error) {
  console.error(error.stdout || error.stack);
  process.exitCode = 1;
} finally {
  rmSync(project, { recursive: true, force: true });
}

function install() {
  const home = join(project, 'node_modules');
  mkdirSync(join(home, name), { recursive: true });
  const options = { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' };
  const [{ filename }] = JSON.parse(execFileSync('npm', ['pack', '--json', '--pack-destination', project], options));
  execFileSync('tar', ['-xzf', join(project, filename), '--strip-components=1', '-C', join(home, name)]);
  for (const needed of ['@types/node', ...Object.keys({ ...dependencies, ...peerDependencies })]) {
    mkdirSync(dirname(join(home, needed)), { recursive: true });
    symlinkSync(join(root, 'node_modules', needed), join(home, needed), 'junction');
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
}

/** The module namespace of each entry point. */
function valuesAtRunTime() {
  const script = join(project, 'load.mjs');
  const loads = entryPoints.map((entryPoint) => `await import('${nameOf(entryPoint)}')`);
  writeFileSync(script, `export default [${loads.join(', ')}];`);
  return import(pathToFileURL(script).href).then((loaded) => loaded.default);
}

/** A record over `keyof typeof` a module: tsc names every value that is only promised, and every one that is only there. */
function typeCheck(offered) {
  const lines = entryPoints.flatMap((entryPoint, i) => [
    `import type * as m${i} from '${nameOf(entryPoint)}';`,
    `export const values${i}: Record<keyof typeof m${i}, 1> = {${Object.keys(offered[i]).map((key) => ` ${key}: 1`)} };`,
  ]);
  writeFileSync(join(project, 'consumer.ts'), lines.join('\n'));
  const compilerOptions = {
    strict: true,
    target: 'ES2022',
    module: 'NodeNext',
    types: ['node'],
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
  execFileSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' });
}

function checkSame(offered) {
  const seen = new Map();
  for (const [key, value] of offered.flatMap(Object.entries)) {
    if (seen.has(key) && seen.get(key) !== value) throw new Error(`two entry points have a ${key} of their own`);
    seen.set(key, value);
  }
}

function checkInternal() {
  const installed = join(project, 'node_modules', name);
  const leaking = readdirSync(installed, { recursive: true })
    .filter((file) => file.endsWith('.d.ts'))
    .filter((file) => readFileSync(join(installed, file), 'utf8').includes('@internal'));
  if (leaking.length > 0) throw new Error(`declarations of internals: ${leaking.join(', ')}`);
}

function nameOf(entryPoint) {
  return name + entryPoint.slice(1);
}
