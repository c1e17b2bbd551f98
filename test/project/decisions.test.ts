/** docs/decisions.md keeps up: every decision and field report that a test or a story names has its row, once. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ID = /\b(?:[CRE]\d{1,2}[bc]?|B\d{2})\b/g;

/** The ids in the titles of all tests, in quoted text behind `it(`, `describe(` and their relatives, and in the heads of stories. */
function namedIds(): Set<string> {
  const ids = new Set<string>();
  for (const file of readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })) {
    if (!/\.test\.ts$|scenarios.*\.txt$/.test(file) || file.includes('fixtures')) continue;
    const source = readFileSync(join(root, 'test', file), 'utf8');
    if (file.endsWith('.txt')) {
      for (const [id] of (source.split('\n\n')[0] ?? '').matchAll(ID)) ids.add(id);
      continue;
    }
    for (const [title] of source.matchAll(/\b(?:it|describe)(?:\.each\([^;]*?\))?\(\s*['"`][^\n]*/g)) {
      for (const [id] of title.matchAll(ID)) ids.add(id);
    }
  }
  return ids;
}

it('every id that a test title names is a row of docs/decisions.md', () => {
  const rows = [...readFileSync(join(root, 'docs/decisions.md'), 'utf8').matchAll(/^\| ([A-Z]\d+[bc]?) +\|/gm)].map(
    ([, id]) => id as string,
  );
  const named = namedIds();
  expect(named.size).toBeGreaterThan(60);
  expect([...named].filter((id) => !rows.includes(id))).toEqual([]);
  expect(new Set(rows).size).toBe(rows.length);
});
