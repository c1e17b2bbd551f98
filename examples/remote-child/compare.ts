/** What a target holds, against what was to be copied there. */
import type { SourceRecord } from 'isthmus';
import type { StoredMessage } from 'isthmus/testing';

export interface Comparison {
  readonly records: number;
  /** Records that are not there. */
  readonly lost: number;
  /** Messages that are of no record, or not byte for byte. */
  readonly strangers: number;
  /** Records that came before an earlier one of the same key. */
  readonly overtaken: number;
  /** Messages above the first copy of a record. */
  readonly duplicates: number;
}

/** Every payload occurs once among the records. */
export function compare(
  partitions: readonly (readonly SourceRecord[])[],
  stored: readonly StoredMessage[],
): Comparison {
  const places = new Map<string, number>();
  stored.forEach((message, at) => {
    const name = nameOf(message);
    if (!places.has(name)) places.set(name, at);
  });
  let [records, lost, overtaken] = [0, 0, 0];
  for (const partition of partitions) {
    const last = new Map<string, number>();
    for (const record of partition) {
      records++;
      const at = places.get(nameOf(record));
      if (at === undefined) {
        lost++;
        continue;
      }
      const key = Buffer.from(record.key).toString('latin1');
      if (at < (last.get(key) ?? -1)) overtaken++;
      last.set(key, at);
    }
  }
  const found = records - lost;
  return { records, lost, strangers: places.size - found, overtaken, duplicates: stored.length - places.size };
}

function nameOf({ key, payload }: { readonly key: Uint8Array; readonly payload: Uint8Array }): string {
  return `${Buffer.from(key).toString('latin1')} ${Buffer.from(payload).toString('latin1')}`;
}

/** How many messages are copies of ones before them. */
export function countDuplicates(stored: readonly StoredMessage[]): number {
  return stored.length - new Set(stored.map(nameOf)).size;
}
