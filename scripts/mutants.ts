/**
 * `npm run mutants`: runs every machine that lacks one rule until the simulator catches it, and prints what caught it, at
 * which seed. `-- TEXT` takes only those whose description or file has the text, `-- --write` puts what is found into the
 * table of docs/testing.md, `-- --check` says whether it stands there.
 */
import { parseArgs } from 'node:util';
import { type Row, readRows, rowOf, writeRows } from '../test/testing/mutant-table.js';
import { MUTANTS } from '../test/testing/mutants.js';
import { firstCaught, timesFound } from '../test/testing/mutated.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
});
const chosen = MUTANTS.filter(({ what, file = '' }) => positionals.every((text) => `${what} ${file}`.includes(text)));
const written = readRows();
const rows: Row[] = [];
let isWrong = false;

for (const mutant of chosen) {
  if (timesFound(mutant) !== 1) {
    complain(mutant.what, `its line is found ${timesFound(mutant)} times in ${mutant.file}`);
    continue;
  }
  const seeds = Array.from({ length: mutant.seeds }, (_, i) => i + 1);
  const failure = await firstCaught(mutant, seeds);
  if (failure === undefined) complain(mutant.what, `not caught in ${mutant.seeds} seeds`);
  else if (!mutant.breaks.includes(failure.invariant)) {
    complain(mutant.what, `breaks ${failure.invariant} at seed ${failure.seed}: ${failure.message}`);
  } else {
    const row = rowOf(mutant, failure.invariant, failure.seed);
    rows.push(row);
    console.log(`${failure.invariant.padEnd(12)} seed ${row[3].padEnd(10)} ${mutant.what}`);
    if (values.check && written.get(mutant.what)?.join() !== row.join()) {
      complain(mutant.what, 'docs/testing.md says something else: npm run mutants -- --write');
    }
  }
}
if (values.write) writeRows(rows);
console.log(`${rows.length} of ${chosen.length} mutants are caught`);
if (isWrong) process.exitCode = 1;

function complain(what: string, why: string): void {
  isWrong = true;
  console.log(`NOT SO       ${what}: ${why}`);
}
