/**
 * Every measure of the project in one table: isthmus beside what it is compared with, in turns, in one process.
 * `--json` writes the rows as JSON, `--only TEXT` runs the suites whose name holds the text.
 */
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { convergenceRows } from './convergence.js';
import { dedupRows } from './dedup.js';
import { printRows, type Row } from './harness.js';
import { startPeer } from './java-peer.js';
import { layoutRows } from './layout.js';
import { memoryRows } from './memory.js';
import { rebatchRows } from './rebatch.js';
import { replicatorRows } from './replicator.js';
import { senderRows } from './sender.js';
import { stormRows } from './storm.js';
import { verbatimRows } from './verbatim.js';

const json = process.argv.includes('--json');
const only = process.argv[process.argv.indexOf('--only') + 1];
const suites = {
  verbatim: verbatimRows,
  rebatch: rebatchRows,
  layout: layoutRows,
  convergence: convergenceRows,
  dedup: dedupRows,
  replicator: replicatorRows,
  sender: senderRows,
  storm: stormRows,
  memory: memoryRows,
};

const peer = await startPeer();
if (typeof peer === 'string') console.error(`without the rows of Pulsar's own classes: ${peer}`);
const rows: Row[] = [];
for (const [name, suite] of Object.entries(suites)) {
  if (process.argv.includes('--only') && !name.includes(only ?? '')) continue;
  console.error(`measuring ${name} ...`);
  rows.push(...(await suite(typeof peer === 'string' ? undefined : peer)));
}
if (typeof peer !== 'string') await peer.stop();

if (json) {
  const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length };
  writeFileSync('bench.json', `${JSON.stringify({ machine, rows }, null, 2)}\n`);
  console.error('written to bench.json');
} else {
  printRows(rows);
}
