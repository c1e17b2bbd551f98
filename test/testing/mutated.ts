/** Builds the simulator with one line of the sources changed, and runs it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Rolldown } from 'vite';
import type { SimulationFailure } from '../../src/testing/simulation-failure.js';
import type { Mutant } from './mutants.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

type Simulation = typeof import('../../src/testing/simulation.js');

/** How often a mutant's line stands in its file: once, or the mutant is out of date. */
export function timesFound({ file, from }: Mutant): number {
  if (file === undefined || from === undefined) return 1;
  return readFileSync(join(root, 'src', file), 'utf8').split(from).length - 1;
}

/** The first seed at which a mutant is caught, and how; undefined when none of its seeds shows it. */
export async function firstCaught(mutant: Mutant, seeds: readonly number[]): Promise<SimulationFailure | undefined> {
  const { simulate } = await mutatedSimulation(mutant);
  return simulate({ ...mutant.options, seeds, shrinks: false }).failure;
}

/** Each in a module of its own, so that nothing is left of the one before. */
async function mutatedSimulation({ file, from = '', to = '' }: Mutant): Promise<Simulation> {
  const output = await build({
    configFile: false,
    root,
    logLevel: 'error',
    build: { ssr: 'src/testing/simulation.ts', write: false, minify: false, target: 'node20' },
    plugins: [
      {
        name: 'mutant',
        enforce: 'pre',
        transform: (code, id) =>
          file !== undefined && id === join(root, 'src', file) ? code.replace(from, to) : undefined,
      },
    ],
  });
  const [chunk] = (output as Rolldown.RolldownOutput).output;
  // Where its packages are found.
  const folder = join(root, 'node_modules/.cache/isthmus-mutants');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${process.pid}-${++built}.mjs`);
  writeFileSync(path, chunk.code);
  try {
    return (await import(pathToFileURL(path).href)) as Simulation;
  } finally {
    rmSync(path);
  }
}

let built = 0;
