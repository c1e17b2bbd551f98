/** What was measured, in lines: for each load the two, as medians of the rounds, and isthmus over the other. */
import type { Drain } from './drain.js';

export interface LoadResult {
  readonly load: string;
  /** In the order in which they are compared: the first over the second. */
  readonly ways: readonly { readonly name: string; readonly drains: readonly Drain[] }[];
}

type Value = number | undefined;

const PROCESSES = ['broker a', 'broker b', 'isthmus'] as const;
/** The place of `isthmus` among the values of a way. */
const OWN = 2 + PROCESSES.indexOf('isthmus');
const HEAD = ['load', 'backlog', '', 'entries/s', 'MB/s', ...PROCESSES.map((name) => `CPU s ${name}`), 'CPU s all'];

export function tableOf(results: readonly LoadResult[]): string {
  const lines = results.flatMap(({ load, ways }) => {
    const values = ways.map(({ drains }) => medians(drains));
    const [ours, theirs] = values;
    // What isthmus takes while the other one works is no measure of anything.
    const ratios = ours?.map((value, i) => (i === OWN ? '' : shown(ratio(value, theirs?.[i])))) ?? [];
    const first = ways[0]?.drains[0];
    const backlog = first === undefined ? '' : `${first.entries} x ${size(first.bytes / first.entries)}`;
    return [
      ...ways.map(({ name }, i) => [
        i === 0 ? load : '',
        i === 0 ? backlog : '',
        name,
        ...(values[i] ?? []).map(shown),
      ]),
      ['', '', 'ratio', ...ratios],
    ];
  });
  return aligned([HEAD, ...lines]);
}

function medians(drains: readonly Drain[]): readonly Value[] {
  const median = (of: (drain: Drain) => Value) => middle(drains.map(of));
  return [
    median(({ entriesPerSecond }) => entriesPerSecond),
    median(({ bytesPerSecond }) => bytesPerSecond / 1e6),
    ...PROCESSES.map((name) => median(({ cpu }) => cpu[name])),
    median(({ cpu }) => PROCESSES.reduce<Value>((sum, name) => plus(sum, cpu[name]), 0)),
  ];
}

function middle(values: readonly Value[]): Value {
  const known = values.filter((value) => value !== undefined).sort((x, y) => x - y);
  const [low, high] = [known[(known.length - 1) >> 1], known[known.length >> 1]];
  if (known.length < values.length || low === undefined || high === undefined) return undefined;
  return (low + high) / 2;
}

function plus(sum: Value, value: Value): Value {
  return sum === undefined || value === undefined ? undefined : sum + value;
}

function ratio(ours: Value, theirs: Value): Value {
  return ours === undefined || theirs === undefined ? undefined : ours / theirs;
}

function shown(value: Value): string {
  if (value === undefined) return 'unknown';
  if (!Number.isFinite(value)) return '-';
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

function size(bytes: number): string {
  return bytes < 10_000 ? `${bytes.toFixed(0)} B` : `${(bytes / 1e3).toFixed(0)} KB`;
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]?.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0))) ?? [];
  const texts = lines.map((line) =>
    line.map((cell, i) => (i < 3 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  );
  return texts.map((text) => text.trimEnd()).join('\n');
}
