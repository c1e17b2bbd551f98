/** The example of how a team tests its own adapter: it runs, it is short, and it takes nothing but what is published. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Table, TableCursors, testCursors } from '../../examples/property-test-your-host/cursors.js';
import { verdictOf } from '../support/verdict.js';

const EXAMPLE = new URL('../../examples/property-test-your-host/cursors.ts', import.meta.url);

describe('an own store of cursors', () => testCursors(it));

it('the property finds what the suite has no example of: a row with room for two checkpoints', async () => {
  const narrow = (table: Table) => {
    const store = new TableCursors(table);
    return {
      load: () => store.load(),
      write: (changes: Parameters<TableCursors['write']>[0]) => {
        const cut = [...changes].map(([segmentId, record]) => {
          return [
            segmentId,
            record && { ...record, checkpoints: new Map([...record.checkpoints].slice(0, 2)) },
          ] as const;
        });
        return store.write(new Map(cut));
      },
    };
  };
  expect(await verdictOf((test) => testCursors(test, narrow))).toMatch(/Property failed(.|\n)*"checkpoints":new Map/);
});

it('the example is under 60 lines, and imports published entry points alone', () => {
  const source = readFileSync(EXAMPLE, 'utf8');
  expect(source.trimEnd().split('\n').length).toBeLessThan(60);
  expect([...source.matchAll(/from '([^']+)'/g)].map(([, from]) => from)).toEqual([
    'fast-check',
    'isthmus',
    'isthmus/testing',
  ]);
});
