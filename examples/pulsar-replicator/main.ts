/**
 * Replicates scalable topics between two Pulsar clusters:
 *
 *   pulsar-replicator --config isthmus.json [--check]
 *
 * `--check` says what is wrong with the configuration or the clusters, changes nothing, and ends. Without it the same is
 * checked, and replication goes on until SIGINT or SIGTERM. Ends with 0 when all was well, 1 when something was wrong with
 * the clusters, 2 when the configuration cannot be used.
 */
import { parseArgs } from 'node:util';
import { check, type Finding } from './check.js';
import { Cluster } from './cluster.js';
import { type Config, ConfigError, loadConfig } from './config.js';
import { Program } from './program.js';
import { Progress, startStatusServer } from './status/index.js';

const USAGE = 'usage: pulsar-replicator --config FILE [--check]';
const SHOW_MS = 250;

process.exitCode = await main();

async function main(): Promise<number> {
  let config: Config;
  let isCheck: boolean;
  try {
    const { values } = parseArgs({
      options: { config: { type: 'string' }, check: { type: 'boolean', default: false } },
    });
    if (values.config === undefined) throw new ConfigError([USAGE]);
    isCheck = values.check;
    config = loadConfig(values.config);
  } catch (error) {
    for (const fault of error instanceof ConfigError ? error.faults : [String(error), USAGE]) console.error(fault);
    return 2;
  }
  let clusters: ReadonlyMap<string, Cluster>;
  try {
    clusters = new Map(Array.from(config.clusters, ([name, one]) => [name, new Cluster(name, one, config)]));
  } catch (error) {
    console.error(String(error));
    return 2;
  }
  const findings = await check(config, clusters);
  const faults = findings.filter(({ severity }) => severity === 'fault');
  for (const finding of isCheck ? findings : faults) tell(finding);
  if (isCheck || faults.length > 0) {
    await Promise.all(Array.from(clusters.values(), (cluster) => cluster.close()));
    if (isCheck && faults.length === 0) console.log('ready to replicate');
    return faults.length === 0 ? 0 : 1;
  }
  return run(config, clusters);
}

function tell({ severity, where, what, remedy }: Finding): void {
  const print = severity === 'fault' ? console.error : console.log;
  print(`${severity}: ${where}: ${what}\n  ${severity === 'fault' ? 'remedy' : 'note'}: ${remedy}`);
}

async function run(config: Config, clusters: ReadonlyMap<string, Cluster>): Promise<number> {
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  const progress = new Progress(process.stdout);
  const program = new Program(config, clusters, (text) => progress.say(text));
  const server =
    config.http === undefined
      ? undefined
      : await startStatusServer({ ...config.http, status: () => program.status(), metrics: program.metrics });
  if (server?.type === 'failed') {
    console.error(`the status page: ${server.reason}`);
    await Promise.all(Array.from(clusters.values(), (cluster) => cluster.close()));
    return 1;
  }
  if (server !== undefined) progress.say(`status page: ${server.url}`);
  try {
    await program.start();
    const timer = setInterval(() => progress.show(program.status()), SHOW_MS);
    await stopped;
    clearInterval(timer);
    progress.end();
    progress.say('stopping');
    return 0;
  } catch (error) {
    progress.say(String(error));
    return 1;
  } finally {
    await program.stop();
    await server?.close();
  }
}
