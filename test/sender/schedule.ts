/** What random schedules share: records by chance, and what must hold of what a target stored. */
import type { SourceRecord } from '../../src/sender/index.js';

/** A record as it is stored; bytes as Latin-1 text, so that they compare and print. */
export interface Stored {
  readonly key: string;
  readonly payload: string;
}

export const pick = <T>(random: () => number, values: readonly T[]): T =>
  values[Math.floor(random() * values.length)] as T;

/** Records of the n-th cursor: with and without a key, JSON and not. */
export function randomRecords(random: () => number, n: number, count: number): SourceRecord[] {
  return Array.from({ length: count }, (_, offset) => {
    const payload = `${n} ${offset}`;
    const key = Buffer.from(pick(random, ['', 'a', 'b', '\xff', 'd"']), 'latin1');
    return { offset, key, payload: Buffer.from(random() < 0.5 ? `"${payload}"` : payload), storedAtMs: offset };
  });
}

export const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

/** What is wrong with what a target holds of records; undefined: all are there, and first copies of a key are in order. */
export function faultOf(records: readonly Stored[], stored: readonly Stored[]): string | undefined {
  const place = new Map<string, number>();
  stored.forEach(({ key, payload }, at) => {
    const name = `${key} ${payload}`;
    if (!place.has(name)) place.set(name, at);
  });
  const last = new Map<string, number>();
  for (const { key, payload } of records) {
    const at = place.get(`${key} ${payload}`);
    if (at === undefined) return `lost: ${payload}`;
    // A key of one parent's partition; keyless records have no order.
    const stream = `${key} ${payload.replace('"', '').split(' ')[0]}`;
    if (key !== '' && at < (last.get(stream) ?? -1)) return `overtaken: ${payload}`;
    last.set(stream, at);
  }
  const names = new Set(records.map(({ key, payload }) => `${key} ${payload}`));
  return place.size > names.size ? 'something else came' : undefined;
}
