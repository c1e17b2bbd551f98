/** The table of mutants in docs/testing.md: a row for each, in the order of the list. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MUTANTS, type Mutant } from './mutants.js';

const page = fileURLToPath(new URL('../../docs/testing.md', import.meta.url));
const BEGIN = '<!-- mutants: npm run mutants -- --write -->\n\n';
const END = '\n\n<!-- end of mutants -->';
const HEAD = '| what is broken | where | caught by | at seed |\n| --- | --- | --- | --- |\n';

export interface CaughtMutant {
  readonly mutant: Mutant;
  readonly invariant: string;
  readonly seed: number;
}

/** The row of a mutant that was caught. */
export function rowOf({ mutant, invariant, seed }: CaughtMutant): string {
  return `| ${mutant.what} | ${mutant.file ?? 'an option'} | ${invariant} | ${seed} of ${mutant.seeds} |`;
}

/** The rows as they are written, by what is broken. */
export function readRows(): ReadonlyMap<string, string> {
  const [, , table = ''] = splitPage();
  const lines = table.split('\n').filter((line) => line.startsWith('| ') && !HEAD.includes(line));
  return new Map(lines.map((line) => [line.split(' | ')[0]?.slice(2) ?? '', line]));
}

/** Writes these rows, and keeps those of other mutants that there still are. */
export function writeRows(caught: readonly CaughtMutant[]): void {
  const rows = new Map([...readRows(), ...caught.map((one) => [one.mutant.what, rowOf(one)] as const)]);
  const [before, after] = splitPage();
  const lines = MUTANTS.flatMap(({ what }) => rows.get(what) ?? []);
  writeFileSync(page, `${before}${BEGIN}${HEAD}${lines.join('\n')}${END}${after}`);
}

/** The page before the table and behind it, and the table. */
function splitPage(): readonly [string, string, string] {
  const text = readFileSync(page, 'utf8');
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < 0) throw new Error('docs/testing.md has lost the marks of its table of mutants');
  return [text.slice(0, begin), text.slice(end + END.length), text.slice(begin + BEGIN.length, end)];
}
