/**
 * What the files of a run share: two clusters, unless PULSAR_A and PULSAR_B name running ones, and the replicator's
 * program, built once. Files that kill brokers, or need other settings, start brokers of their own.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'tsup';
import { type BrokerOptions, startBrokers } from './brokers.js';

const OPTIONS: BrokerOptions = { shortChecks: true, quickTakeOver: true, transactions: true };
const root = fileURLToPath(new URL('../..', import.meta.url));
const example = join(root, 'examples/pulsar-replicator');

export async function setup(): Promise<() => Promise<void>> {
  // Below the root, so that it finds the packages; and not in the folder that is made anew when jars are fetched.
  const cache = join(root, 'node_modules/.cache/isthmus-replicator');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'run-'));
  const end = () => rmSync(folder, { recursive: true, force: true });
  try {
    await buildReplicator(folder);
    if (process.env.PULSAR_A !== undefined && process.env.PULSAR_B !== undefined) return async () => end();
    const brokers = await startBrokers(2, OPTIONS);
    for (const { name, serviceUrl, adminUrl } of brokers.all) {
      process.env[`PULSAR_${name.toUpperCase()}`] = `${serviceUrl},${adminUrl}`;
    }
    process.env.PULSAR_OPTIONS = Object.keys(OPTIONS).join();
    return async () => {
      await brokers.stop();
      end();
    };
  } catch (error) {
    end();
    throw error;
  }
}

async function buildReplicator(folder: string): Promise<void> {
  const outDir = folder;
  const entry = { main: join(example, 'main.ts') };
  const quiet = { config: false, silent: true, clean: false } as const;
  await build({
    entry,
    outDir,
    format: ['esm'],
    platform: 'node',
    target: 'node20',
    tsconfig: 'tsconfig.json',
    ...quiet,
  });
  copyFileSync(join(example, 'status/page.html'), join(folder, 'page.html'));
  process.env.ISTHMUS_REPLICATOR = join(folder, 'main.js');
}
