/**
 * Peer states and the messages of the exchange as plain JSON. All that another cluster sends is checked here before
 * anything acts on it (C4, C21): a refusal names the field and the rule, and nothing is half read. Members that this
 * version does not know are ignored, and null stands for an absent optional member, as other languages write it.
 * The work is linear in what was received; tiling bounds a shape to 65,536 cells.
 */
import { IsthmusError, show } from '../errors.js';
import { parseShape, type Shape, siblingBoundaries } from '../layout/index.js';
import { parseBoundaries, parseRange, RING_END } from '../ring/index.js';
import type { ExchangeErrorCode, ExchangeRequest, ExchangeResult } from './exchange.js';
import type { BucketMarks, Caps, ColdMarks, PeerState } from './peer-state.js';

/** The longest name of a cluster, in UTF-16 units. */
const MAX_CLUSTER_LENGTH = 255;

/** The longest name of a topic, in UTF-16 units. */
const MAX_TOPIC_LENGTH = 4096;

/** A record, so that the compiler misses a code that is new. */
const ERROR_CODES: Readonly<Record<ExchangeErrorCode, true>> = {
  wrongTerm: true,
  foldLimit: true,
  notMember: true,
  unknownTopic: true,
  notLeader: true,
  invalidState: true,
  failed: true,
};

/** True for a code that a topic's result can carry. */
export function isExchangeErrorCode(value: unknown): value is ExchangeErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CODES, value);
}

/** A request or result of a known topic whose rest breaks a rule: that topic's own failure, not the call's (C17). */
export interface RefusedTopic {
  readonly topic: string;
  readonly refusal: IsthmusError;
}

/**
 * Reads a peer's state, already parsed from JSON. Throws `invalidShape` for its shape, `invalidState` for the rest.
 *
 * Marks of segment boundaries that are no siblings in the state's own shape are dropped (C11): a peer of another
 * version may see siblings where this one sees none, the rest of its state is still good, and what is not marked is
 * demanded, which is always safe.
 */
export function parsePeerState(value: unknown): PeerState {
  return readState(value, 'state');
}

/** A state as plain JSON: `parsePeerState` gives it back. */
export function formatPeerState(state: PeerState): object {
  const { cluster, term, epoch, revision, shape, base, coldMarks, caps, equalWidth, receiverTerm } = state;
  return withoutAbsent({
    cluster,
    term,
    epoch,
    revision,
    shape: {
      cells: shape.cells.map(({ range, entryBucketSplits }) => {
        return { range: { start: range.start, end: range.end }, entryBucketSplits: [...entryBucketSplits] };
      }),
    },
    base: base && [...base],
    coldMarks: coldMarks && formatMarks(coldMarks),
    caps: { maxSegments: caps.maxSegments, maxEntryBucketsPerSegment: caps.maxEntryBucketsPerSegment },
    equalWidth,
    protocolVersion: state.protocolVersion,
    sentAtMs: state.sentAtMs,
    receiverTerm,
  });
}

function formatMarks({ segments, buckets }: ColdMarks): object {
  return {
    segments: [...segments],
    buckets: buckets.map(({ range, boundaries }) => {
      return { range: { start: range.start, end: range.end }, boundaries: [...boundaries] };
    }),
  };
}

/** The requests of a call, all of them valid. Throws `invalidShape` or `invalidState`. */
export function parseExchangeRequests(value: unknown): ExchangeRequest[] {
  return readExchangeRequests(value).map(orThrow);
}

/** The results of a call, all of them valid. Throws `invalidShape` or `invalidState`. */
export function parseExchangeResults(value: unknown): ExchangeResult[] {
  return readExchangeResults(value).map(orThrow);
}

/** The requests of a call, topic by topic. Throws `invalidState` where it cannot be told which topics it is about. */
export function readExchangeRequests(value: unknown): (ExchangeRequest | RefusedTopic)[] {
  return readTopics(value, 'requests', ({ state }, topic, where) => {
    return { topic, state: readState(state, `${where}.state`) };
  });
}

/** The results of a call, topic by topic. Throws `invalidState` where it cannot be told which topics it is about. */
export function readExchangeResults(value: unknown): (ExchangeResult | RefusedTopic)[] {
  return readTopics(value, 'results', (members, topic, where) => {
    const state = optional(members.state, (given) => readState(given, `${where}.state`));
    const error = optional(members.error, (given) => readError(given, `${where}.error`));
    if (state === undefined && error === undefined) refuse(where, members, 'a result has a state, an error or both');
    return { topic, ...withoutAbsent({ state, error }) };
  });
}

type Members = Readonly<Record<string, unknown>>;

function readTopics<T>(
  value: unknown,
  name: string,
  read: (members: Members, topic: string, where: string) => T,
): (T | RefusedTopic)[] {
  if (!Array.isArray(value)) refuse(name, value, 'must be an array with one member for each topic');
  return (value as unknown[]).map((member, i) => {
    const where = `${name}[${i}]`;
    const members = readRecord(member, where);
    const topic = readText(members.topic, `${where}.topic`, MAX_TOPIC_LENGTH);
    try {
      return read(members, topic, where);
    } catch (refusal) {
      if (refusal instanceof IsthmusError) return { topic, refusal };
      throw refusal;
    }
  });
}

function orThrow<T extends object>(read: T | RefusedTopic): T {
  if ('refusal' in read) throw read.refusal;
  return read;
}

function readState(value: unknown, where: string): PeerState {
  const members = readRecord(value, where);
  const count = (name: string) => readInteger(members[name], `${where}.${name}`);
  const shape = readShape(members.shape, `${where}.shape`);
  const base = optional(members.base, (given) => readBoundaries(given, `${where}.base`));
  return {
    cluster: readText(members.cluster, `${where}.cluster`, MAX_CLUSTER_LENGTH),
    epoch: count('epoch'),
    revision: count('revision'),
    shape,
    caps: readCaps(members.caps, `${where}.caps`),
    protocolVersion: count('protocolVersion'),
    sentAtMs: count('sentAtMs'),
    ...withoutAbsent({
      term: optional(members.term, () => count('term')),
      base,
      coldMarks: optional(members.coldMarks, (given) => readMarks(given, shape, base, `${where}.coldMarks`)),
      equalWidth: optional(members.equalWidth, (given) => readFlag(given, `${where}.equalWidth`)),
      receiverTerm: optional(members.receiverTerm, () => count('receiverTerm')),
    }),
  };
}

function readShape(value: unknown, where: string): Shape {
  return restated('invalidShape', `${where}: `, () => parseShape(value));
}

function readMarks(value: unknown, shape: Shape, base: readonly number[] | undefined, where: string): ColdMarks {
  const { segments, buckets } = readRecord(value, where);
  const marked = readBoundaries(segments, `${where}.segments`);
  const siblings = new Set(marked.length === 0 ? [] : siblingBoundaries(shape, base));
  return {
    segments: marked.filter((boundary) => siblings.has(boundary)),
    buckets: readBucketMarks(buckets, `${where}.buckets`),
  };
}

function readBucketMarks(value: unknown, where: string): BucketMarks[] {
  if (!Array.isArray(value)) refuse(where, value, 'must be an array');
  let next = 0;
  return (value as unknown[]).map((member, i) => {
    const members = readRecord(member, `${where}[${i}]`);
    const range = restated('invalidState', '', () => parseRange(members.range, `${where}[${i}].range`));
    if (range.start < next) {
      refuse(`${where}[${i}].range`, members.range, `ranges ascend without overlap, so it starts at ${next} or later`);
    }
    next = range.end + 1;
    return { range, boundaries: readBoundaries(members.boundaries, `${where}[${i}].boundaries`) };
  });
}

function readCaps(value: unknown, where: string): Caps {
  const caps = readRecord(value, where);
  return {
    maxSegments: readInteger(caps.maxSegments, `${where}.maxSegments`, 1),
    maxEntryBucketsPerSegment: readInteger(
      caps.maxEntryBucketsPerSegment,
      `${where}.maxEntryBucketsPerSegment`,
      1,
      RING_END + 1,
    ),
  };
}

function readError(value: unknown, where: string): NonNullable<ExchangeResult['error']> {
  const { code, message } = readRecord(value, where);
  if (!isExchangeErrorCode(code)) {
    refuse(`${where}.code`, code, `must be one of ${Object.keys(ERROR_CODES).join(', ')}`);
  }
  if (typeof message !== 'string') refuse(`${where}.message`, message, 'must be text');
  return { code, message };
}

function readBoundaries(value: unknown, where: string): readonly number[] {
  return restated('invalidState', '', () => [...parseBoundaries(value, where)]);
}

function readRecord(value: unknown, where: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(where, value, 'must be an object');
  return value as Members;
}

function readText(value: unknown, where: string, maxLength: number): string {
  if (typeof value !== 'string' || value === '' || value.length > maxLength) {
    refuse(where, value, `must be text of 1..${maxLength} characters`);
  }
  return value;
}

/** Numbers beyond the safe integers have lost digits on their way and are refused (B46). */
function readInteger(value: unknown, where: string, least = 0, most = Number.MAX_SAFE_INTEGER): number {
  if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most) {
    refuse(where, value, `must be a safe integer of ${least}..${most}`);
  }
  return value as number;
}

function readFlag(value: unknown, where: string): boolean {
  if (typeof value !== 'boolean') refuse(where, value, 'must be true or false');
  return value;
}

function optional<T>(value: unknown, read: (given: unknown) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value);
}

/** The members that are there: an absent one is left out, not undefined. */
function withoutAbsent<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const present = Object.entries(members).filter(([, member]) => member !== undefined);
  return Object.fromEntries(present) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Runs a check of a room below and restates its refusal with a place before it. */
function restated<T>(code: 'invalidShape' | 'invalidState', place: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (cause instanceof IsthmusError) throw new IsthmusError(code, `${place}${cause.message}`, { cause });
    throw cause;
  }
}

function refuse(where: string, value: unknown, rule: string): never {
  throw new IsthmusError('invalidState', `${where} is ${show(value)}: ${rule}`);
}
