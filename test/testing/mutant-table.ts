/** The table of mutants in docs/testing.md: a row for each, in the order of the list. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MUTANTS, type Mutant } from './mutants.js';

const page = fileURLToPath(new URL('../../docs/testing.md', import.meta.url));
const BEGIN = '<!-- mutants: npm run mutants -- --write -->\n\n';
const END = '\n\n<!-- end of mutants -->';
const HEAD: Row = ['what is broken', 'where', 'caught by', 'at seed'];

/** What is broken, where, which invariant caught it, and at which seed of how many. */
export type Row = readonly [string, string, string, string];

/** The row of a mutant that was caught. */
export function rowOf({ what, file = 'an option', seeds }: Mutant, invariant: string, seed: number): Row {
  return [what, file, invariant, `${seed} of ${seeds}`];
}

/** The rows as they are written, by what is broken. */
export function readRows(): ReadonlyMap<string, Row> {
  const lines = splitPage().table.split('\n').slice(2);
  const rows = lines.map(
    (line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()) as unknown as Row,
  );
  return new Map(rows.map((row) => [row[0], row]));
}

/** Writes these rows, and keeps those of other mutants that there still are. */
export function writeRows(caught: readonly Row[]): void {
  const rows = new Map([...readRows(), ...caught.map((row) => [row[0], row] as const)]);
  const { before, after } = splitPage();
  const table = [HEAD, ...MUTANTS.map(({ what }) => rows.get(what)).filter((row) => row !== undefined)];
  // Columns are aligned, as the formatter wants them.
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  const lines = table.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  lines.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`);
  writeFileSync(page, `${before}${BEGIN}${lines.join('\n')}${END}${after}`);
}

function splitPage(): { readonly before: string; readonly table: string; readonly after: string } {
  const text = readFileSync(page, 'utf8');
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < 0) throw new Error('docs/testing.md has lost the marks of its table of mutants');
  const table = text.slice(begin + BEGIN.length, end);
  return { before: text.slice(0, begin), table, after: text.slice(end + END.length) };
}
