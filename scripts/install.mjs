/**
 * Installs the dependencies if they are missing or older than package-lock.json; otherwise does nothing.
 * The scripts that a fresh clone is tried with (test, demo, bench) run it first. Plain Node, no dependency.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const OLDEST_NODE = 20;
const root = fileURLToPath(new URL('..', import.meta.url));

/** npm writes this file last, so an install that was cut short lacks it. */
const installed = fileURLToPath(new URL('../node_modules/.package-lock.json', import.meta.url));
const lock = fileURLToPath(new URL('../package-lock.json', import.meta.url));

const major = Number(process.versions.node.split('.')[0]);
if (major < OLDEST_NODE) stop(`isthmus needs Node ${OLDEST_NODE} or newer; this is Node ${process.versions.node}.`);
if (!existsSync(lock)) stop('package-lock.json is missing, so there is nothing to install from.');
if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lock).mtimeMs) install();

function install() {
  const startMs = Date.now();
  process.stdout.write('Installing dependencies (npm ci) ... ');
  const run = npm(['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
  const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
  if (run.error === undefined && run.status === 0) {
    process.stdout.write(`done in ${seconds} s\n`);
    return;
  }
  process.stdout.write(`failed after ${seconds} s\n`);
  const reason = run.error?.message ?? `it ended with ${run.signal ?? `code ${run.status}`}`;
  stop(
    `${run.stdout ?? ''}${run.stderr ?? ''}\nCould not install the dependencies: npm ci failed, ${reason}. Can npm reach its registry?`,
  );
}

/** Runs the npm that started this script; by name if none did. */
function npm(args) {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 };
  const cli = process.env.npm_execpath ?? '';
  if (/npm-cli\.c?js$/.test(cli)) return spawnSync(process.execPath, [cli, ...args], options);
  return spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
}

function stop(message) {
  process.stderr.write(`${message.trim()}\n`);
  process.exit(1);
}
