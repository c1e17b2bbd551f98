/**
 * What the records of a state topic are called and look like: keys by which compaction keeps the last of each, and
 * values in JSON. A cursor's key holds its session, so that what a replaced owner still writes takes another key, and
 * compaction never puts it in the place of what its successor wrote.
 */
import { formatSourcePosition, parseSourcePosition } from '../../../entry/index.js';
import { IsthmusError, show } from '../../../errors.js';
import type { CursorRecord } from '../../../ports/index.js';

/** One of the topics that are replicated, towards one remote: what has a `CursorStore` of its own. */
export interface StoreName {
  readonly topic: string;
  readonly remote: string;
}

/** What a record of the log is about; undefined for kinds that this version does not know. */
export type RecordKey =
  | { readonly type: 'cursor'; readonly store: string; readonly segmentId: number; readonly session: number }
  | { readonly type: 'bundle'; readonly store: string; readonly process: string; readonly number: number }
  | { readonly type: 'member'; readonly process: string };

/** Changes of several segments that count together or not at all. */
export interface Bundle {
  readonly puts: ReadonlyMap<number, CursorRecord>;
  readonly removed: readonly number[];
}

/** What a process says of itself. */
export interface Heartbeat {
  /** The names of what it has a share of. */
  readonly groups: readonly string[];
  /** How often it says so, in milliseconds. */
  readonly intervalMs: number;
}

/** The text that names a store within the log. */
export function storeKey({ topic, remote }: StoreName): string {
  return `${quote(topic)}|${quote(remote)}`;
}

export function cursorKey(store: string, segmentId: number, session: number): string {
  return `cursor|${store}|${segmentId}|${session}`;
}

export function bundleKey(store: string, process: string, number: number): string {
  return `bundle|${store}|${quote(process)}|${number}`;
}

export function memberKey(process: string): string {
  return `member|${quote(process)}`;
}

/** Throws `invalidState` for a key of a known kind that is not well formed. */
export function parseKey(key: string): RecordKey | undefined {
  const parts = key.split('|');
  const [type, first = '', second = '', third = '', fourth = ''] = parts;
  const store = `${first}|${second}`;
  const count = { cursor: 5, bundle: 5, member: 2 }[type ?? ''];
  if (count === undefined) return undefined;
  if (count !== parts.length) refuse(`key ${show(key)}`, `${count} parts between bars are needed`);
  if (type === 'member') return { type, process: unquote(first) };
  if (type === 'bundle') return { type, store, process: unquote(third), number: number(fourth, key) };
  return { type: 'cursor', store, segmentId: number(third, key), session: number(fourth, key) };
}

export function formatCursor(record: CursorRecord): object {
  const { settled, drained, skipped, checkpoints } = record;
  const places = [...checkpoints].map(([id, place]) => [id, formatSourcePosition(place)] as const);
  return {
    ...(settled === undefined ? {} : { settled: formatSourcePosition(settled) }),
    drained,
    skipped: skipped.map(formatSourcePosition),
    checkpoints: Object.fromEntries(places),
  };
}

/** Throws `invalidState`, or `invalidPosition` for a position. */
export function parseCursor(value: unknown, session: number): CursorRecord {
  const { settled, drained, skipped, checkpoints } = object(value, 'a cursor');
  if (typeof drained !== 'boolean') refuse(`drained is ${show(drained)}`, 'must be true or false');
  const places = Object.entries(object(checkpoints, 'checkpoints'));
  return {
    session,
    ...(settled === undefined ? {} : { settled: position(settled) }),
    drained,
    skipped: list(skipped, 'skipped').map(position),
    checkpoints: new Map(places.map(([id, place]) => [number(id, 'a checkpoint'), position(place)])),
  };
}

export function formatBundle({ puts, removed }: Bundle): object {
  const members = [...puts].map(([id, record]) => [id, { session: record.session, ...formatCursor(record) }] as const);
  return { puts: Object.fromEntries(members), removed };
}

/** Throws `invalidState`, or `invalidPosition` for a position. */
export function parseBundle(value: unknown): Bundle {
  const { puts, removed } = object(value, 'a bundle');
  const records = Object.entries(object(puts, 'puts')).map(([id, put]) => {
    const session = integer(object(put, 'a put').session, 'session');
    return [number(id, 'a put'), parseCursor(put, session)] as const;
  });
  return { puts: new Map(records), removed: list(removed, 'removed').map((id) => integer(id, 'a segment id')) };
}

/** Throws `invalidState`. */
export function parseHeartbeat(value: unknown): Heartbeat {
  const { groups, intervalMs } = object(value, 'a heartbeat');
  const names = list(groups, 'groups').map((name) => {
    return typeof name === 'string' ? name : refuse(`group ${show(name)}`, 'a name is text');
  });
  return { groups: names, intervalMs: integer(intervalMs, 'intervalMs') };
}

/** Bars separate the parts of a key. */
function quote(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('|', '%7C');
}

function unquote(part: string): string {
  return part.replaceAll('%7C', '|').replaceAll('%25', '%');
}

function refuse(what: string, rule: string): never {
  throw new IsthmusError('invalidState', `a record of the state topic: ${what}: ${rule}`);
}

function number(text: string, where: string): number {
  if (!/^(0|[1-9]\d{0,15})$/.test(text)) refuse(`${show(text)} in ${show(where)}`, 'a decimal number is needed');
  return integer(Number(text), where);
}

function integer(value: unknown, where: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  return refuse(`${where} is ${show(value)}`, 'a safe integer of 0 or more is needed');
}

function position(value: unknown) {
  return parseSourcePosition(typeof value === 'string' ? value : refuse(show(value), 'a position is text'));
}

function object(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  return refuse(`${where} is ${show(value)}`, 'an object is needed');
}

function list(value: unknown, where: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(`${where} is ${show(value)}`, 'a list is needed');
}
