/** What the suites of `RemoteTopic` share: lanes that are opened, sends whose body is their position, and the reading of results. */
import {
  encodeMessage,
  formatSourcePosition,
  parseEntry,
  parseSourcePosition,
  SOURCE_POSITION_PROPERTY,
  type SourcePosition,
} from '../entry/index.js';
import type { RemoteProducer, RemoteTopic, RemoteTopicLayout, Send, SendResult } from '../ports/index.js';
import { check, type Eventually, type SuiteSetup } from './suite.js';

/** A fresh remote topic with two active segments or more, and nothing stored. */
export interface RemoteTopicSetup extends SuiteSetup {
  readonly remote: RemoteTopic;
  /** The same topic for the same source cluster, as another process has it. */
  another(): Promise<RemoteTopic> | RemoteTopic;
  /** The entries that a consumer of a segment gets, in order. */
  stored(segmentId: number): Promise<readonly Uint8Array[]> | readonly Uint8Array[];
  /** Splits an active segment, which seals it. */
  split(segmentId: number): Promise<void> | void;
  /** Removes a sealed segment and its entries. Without it the suite leaves out what it needs it for, as with the next two. */
  readonly prune?: (segmentId: number) => Promise<void> | void;
  /** Cuts the connections of all open producers. */
  readonly disconnect?: () => Promise<void> | void;
  /** Lets the remote trim a segment up to and including a position, as far as it may. */
  readonly trim?: (segmentId: number, upTo: SourcePosition) => Promise<void> | void;
}

/** Makes a fresh remote for one test. */
export type RemoteTopicFactory = () => Promise<RemoteTopicSetup> | RemoteTopicSetup;

/** The source segment that suites send for. */
export const SOURCE_SEGMENT = 5;

/** A producer and the results that it has told, in order. */
export interface OpenLane {
  readonly producer: RemoteProducer;
  readonly results: readonly SendResult[];
  /** In the form of E10; undefined when none was told. */
  readonly watermark: string | undefined;
  readonly failStop: boolean;
}

/** What a send names beside its position: all positions in the form of E10. */
export interface SendOptions {
  readonly after?: string | undefined;
  readonly lowestHash?: number;
  readonly completeTo?: string | null;
  /** Bytes of the body; else it is the position's text. */
  readonly size?: number;
}

/** One step of a lane: a position, and what the send names. */
export type Step = readonly [position: string, options?: SendOptions];

/** The present layout of a remote. */
export async function presentLayout(remote: RemoteTopic): Promise<RemoteTopicLayout> {
  const stop = new AbortController();
  try {
    for await (const layout of remote.layouts(stop.signal)) return layout;
  } finally {
    stop.abort();
  }
  throw new Error('the watch does not begin with the present layout');
}

/** Two active segments. */
export async function twoSegments(remote: RemoteTopic): Promise<readonly [number, number]> {
  const [first, second] = (await presentLayout(remote)).active;
  if (first === undefined || second === undefined) throw new Error('the setup of this suite has two active segments');
  return [first.segmentId, second.segmentId];
}

/** The children of a segment that was split, once the remote tells of them. */
export async function childrenOf(remote: RemoteTopic, segmentId: number, eventually: Eventually): Promise<number[]> {
  let children: number[] = [];
  await eventually(async () => {
    const { active } = await presentLayout(remote);
    children = active.filter(({ parentIds }) => parentIds.includes(segmentId)).map((child) => child.segmentId);
    return children.length > 0;
  }, 'the layout does not tell the children of a segment that was split');
  return children;
}

/** Opens a lane that nobody else has open; it may take a while until a name is free again. */
export async function openLane(
  remote: RemoteTopic,
  segmentId: number,
  eventually: Eventually,
  sourceSegmentId: number = SOURCE_SEGMENT,
): Promise<OpenLane> {
  const results: SendResult[] = [];
  let lane: OpenLane | undefined;
  await eventually(async () => {
    const opened = await remote.open(sourceSegmentId, segmentId, (result) => results.push(result));
    if (opened.type !== 'opened') return false;
    const { producer, watermark } = opened;
    lane = { producer, results, watermark: textOf(watermark), failStop: remote.supports.failStop };
    return true;
  }, 'a name that nobody holds cannot be opened on an active segment');
  if (lane === undefined) throw new Error('unreachable');
  check(results.length === 0, 'a result is told before anything was sent');
  return lane;
}

/** A send whose body, and source position, is its position. */
export function sendOf(...[text, { after, lowestHash, completeTo, size } = {}]: Step): Send {
  const body = size === undefined ? new TextEncoder().encode(text) : new Uint8Array(size);
  const outer = {
    producerName: 'suite',
    sequenceId: 0n,
    publishTimeMs: Date.now(),
    replicatedFrom: 'suite',
    properties: [[SOURCE_POSITION_PROPERTY, text]] as const,
  };
  return {
    position: parseSourcePosition(text),
    previous: after === undefined ? undefined : parseSourcePosition(after),
    lowestHash,
    ...(completeTo === undefined ? {} : { completeTo: completeTo === null ? null : parseSourcePosition(completeTo) }),
    buffers: encodeMessage(body, { outer }),
  };
}

/** Sends without waiting, or one by one where the remote asks for that, and returns how each ended, as text. */
export async function judge(lane: OpenLane, eventually: Eventually, ...steps: readonly Step[]): Promise<string[]> {
  const { producer, results, failStop } = lane;
  const before = results.length;
  for (const [i, step] of steps.entries()) {
    producer.send(sendOf(...step));
    if (!failStop) await eventually(() => results.length > before + i, 'a send gets no result');
  }
  await eventually(() => results.length >= before + steps.length, 'a send gets no result');
  check(results.length === before + steps.length, 'there are more results than sends');
  return results.slice(before).map(lineOf);
}

/** Sends that must all be stored. */
export async function store(lane: OpenLane, eventually: Eventually, ...steps: readonly Step[]): Promise<void> {
  for (const line of await judge(lane, eventually, ...steps))
    check(line === 'stored', `a new entry is answered ${line}`);
}

/** Positions of one ledger, each a send behind the one before it. */
export function chain(from: number, to: number, ledger = 7): Step[] {
  const at = (entry: number) => `${ledger}:${entry}`;
  return Array.from({ length: to - from + 1 }, (_, i): Step => {
    return [at(from + i), i === 0 ? {} : { after: at(from + i - 1) }];
  });
}

function lineOf(result: SendResult): string {
  return result.type === 'partial' ? `partial ${result.partial}` : result.type;
}

/** The bodies of entries in one line, which are their positions; markers are left out. */
export function bodiesOf(entries: readonly Uint8Array[]): string {
  return entries
    .map(parseEntry)
    .filter(({ metadata }) => metadata.markerType === undefined)
    .map(({ payload }) => new TextDecoder().decode(payload))
    .join(' ');
}

/** What consumers of a segment get must be these sends, in this order. */
export async function checkConsumed(
  { stored }: RemoteTopicSetup,
  segmentId: number,
  expected: string,
  rule: string,
): Promise<void> {
  const entries = await stored(segmentId);
  check(bodiesOf(entries) === expected, `${rule}: ${bodiesOf(entries)}`);
  const markers = entries.filter((bytes) => parseEntry(bytes).metadata.markerType !== undefined);
  check(markers.length === 0, 'consumers see a barrier');
}

export function textOf(position: SourcePosition | undefined): string | undefined {
  return position === undefined ? undefined : formatSourcePosition(position);
}
