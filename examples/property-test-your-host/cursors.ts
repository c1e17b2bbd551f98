/**
 * How you test your own adapter: the acceptance suite of its port, and properties over isthmus' arbitraries. Here a
 * `CursorStore` over rows of text, such as a table of your database has; give `testCursors` the `it` of your runner.
 */
import fc from 'fast-check';
import type { CursorRecord, CursorStore, CursorWrite } from 'isthmus';
import { arbCursorRecord, type RegisterTest, testCursorStore } from 'isthmus/testing';

export type Table = Map<number, string>;

export class TableCursors implements CursorStore {
  constructor(private readonly table: Table) {}

  async load(): Promise<ReadonlyMap<number, CursorRecord>> {
    return new Map([...this.table].map(([segmentId, row]) => [segmentId, fromRow(row)]));
  }

  async write(changes: ReadonlyMap<number, CursorRecord | undefined>): Promise<CursorWrite> {
    for (const [segmentId, record] of changes) {
      const row = this.table.get(segmentId);
      const session = row === undefined ? 0 : fromRow(row).session;
      if (record !== undefined && session > record.session) return { type: 'fenced', session };
    }
    for (const [segmentId, record] of changes) {
      if (record === undefined) this.table.delete(segmentId);
      else this.table.set(segmentId, toRow(record));
    }
    return { type: 'written' };
  }
}

export function toRow(record: CursorRecord): string {
  return JSON.stringify(record, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`;
    return value instanceof Map ? [...value] : value;
  });
}

function fromRow(row: string): CursorRecord {
  const record = JSON.parse(row, (_, value) => (/^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value));
  return { ...record, checkpoints: new Map(record.checkpoints) };
}

export function testCursors(test: RegisterTest, open = (table: Table): CursorStore => new TableCursors(table)): void {
  testCursorStore(() => {
    const table: Table = new Map();
    return { store: open(table), reopen: () => open(table) };
  }, test);

  test('whatever is written is loaded as it was', () =>
    fc.assert(
      fc.asyncProperty(fc.nat(), arbCursorRecord(), async (segmentId, record) => {
        const store = open(new Map());
        await store.write(new Map([[segmentId, record]]));
        return fc.stringify((await store.load()).get(segmentId)) === fc.stringify(record);
      }),
    ));
}
