/**
 * Random events of the machine of one segment. With the effects that wait for an answer, events answer those; given effects
 * that were answered before, they come late and twice.
 */
import fc from 'fast-check';
import type { SourcePosition } from '../entry/index.js';
import type { RemoteSupport, RemoteTopicLayout, StoredEntry } from '../ports/index.js';
import type { SegmentEffect, SegmentEvent } from '../replication/index.js';
import { arbSendResult } from './dedup-values.js';
import { arbEntry } from './entries.js';
import {
  type ArbBytes,
  arbFailure,
  arbFound,
  arbKnown,
  arbLaneStop,
  arbPlace,
  arbReason,
  arbRecovery,
  arbRemoteTopicLayout,
  arbSchemaTranslation,
  seldom,
  storedAt,
} from './segment-values.js';

/** What fits the machine that is told. */
export interface SegmentEventOptions {
  /**
   * Effects of the machine: most events answer one of these. Those that wait for their answer are answered as a driver
   * does; those that had theirs are answered again. Default none.
   */
  readonly asked?: readonly SegmentEffect[];
  /** Also answers that nobody asked for, with ids of 0 to 9. Default true. */
  readonly unasked?: boolean;
  /** How the remote finds out what was sent twice, which says what an opening brings; default either. */
  readonly dedup?: RemoteSupport['dedup'];
  /** The layouts of the remote; default `arbRemoteTopicLayout()`. */
  readonly layouts?: fc.Arbitrary<RemoteTopicLayout>;
  /** What reads bring; default `arbEntry()`. */
  readonly entries?: ArbBytes;
}

/** Something that the machine of a segment may be told. Valid each by itself; shrinks to `wake`. */
export function arbSegmentEvent(options: SegmentEventOptions = {}): fc.Arbitrary<SegmentEvent> {
  const { asked = [], unasked = true } = options;
  const open = asked.filter(({ type }) => ANSWERED.has(type));
  const choices = [{ weight: 2, arbitrary: arbHappening(options) }];
  if (open.length > 0) {
    const answer = fc.constantFrom(...open).chain((effect) => arbAnswer(effect, options));
    choices.push({ weight: 8, arbitrary: answer });
  }
  if (unasked) {
    const answer = arbAnswered().chain((effect) => arbAnswer(effect, options));
    choices.push({ weight: open.length > 0 ? 1 : 8, arbitrary: answer });
  }
  return fc.oneof({ withCrossShrink: true }, ...choices);
}

const ANSWERED: ReadonlySet<SegmentEffect['type']> = new Set<SegmentEffect['type']>([
  'read',
  'open',
  'send',
  'recover',
  'acquire',
  'write',
  'translate',
]);

/** What happens by itself. */
function arbHappening({ layouts = arbRemoteTopicLayout() }: SegmentEventOptions): fc.Arbitrary<SegmentEvent> {
  const position = arbPlace();
  const plain = fc.constantFrom<SegmentEvent>({ type: 'wake' }, { type: 'resume' }, { type: 'start' });
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 8, arbitrary: plain },
    { weight: 1, arbitrary: fc.constantFrom<SegmentEvent>({ type: 'pause' }, { type: 'pause' }, { type: 'stop' }) },
    { weight: 1, arbitrary: position.map((acknowledged): SegmentEvent => ({ type: 'start', acknowledged })) },
    { weight: 1, arbitrary: position.map((at): SegmentEvent => ({ type: 'skip', position: at })) },
    { weight: 4, arbitrary: layouts.map((layout): SegmentEvent => ({ type: 'layout', layout })) },
    {
      weight: 2,
      arbitrary: fc.tuple(arbId(), position).map(([segmentId, at]): SegmentEvent => ({ type: 'end', segmentId, at })),
    },
  );
}

/** An effect that nobody has asked for, as far as an answer goes by it. */
function arbAnswered(): fc.Arbitrary<SegmentEffect> {
  const id = arbId();
  const read = { after: undefined, maxEntries: 3, maxBytes: 1_000 };
  const send = { position: { ledgerId: 0n, entryId: 0n }, previous: undefined, lowestHash: undefined };
  const buffers = { head: new Uint8Array(0), payload: new Uint8Array(0) };
  const record = { session: 1, drained: false, skipped: [], checkpoints: new Map() };
  return fc.oneof(
    { withCrossShrink: true },
    fc.constantFrom<SegmentEffect>({ type: 'acquire', bytes: 1 }, { type: 'write', record }),
    id.map((readId): SegmentEffect => ({ type: 'read', readId, ...read })),
    id.map((laneId): SegmentEffect => ({ type: 'open', laneId, segmentId: 0, checkpoint: undefined })),
    id.map((laneId): SegmentEffect => ({ type: 'send', laneId, send: { ...send, buffers } })),
    id.map((segmentId): SegmentEffect => ({ type: 'recover', segmentId, checkpoint: undefined })),
    fc.constantFrom('', '7631').map((version): SegmentEffect => {
      return { type: 'translate', version, bytes: new Uint8Array(0) };
    }),
  );
}

/** What may come of an effect. */
function arbAnswer(effect: SegmentEffect, options: SegmentEventOptions): fc.Arbitrary<SegmentEvent> {
  switch (effect.type) {
    case 'read':
      return arbReadAnswer(effect, options.entries ?? arbEntry());
    case 'open':
      return arbOpenAnswer(effect.laneId, options.dedup);
    case 'send':
      return arbSendResult().map((result) => ({ type: 'result', laneId: effect.laneId, result }));
    case 'recover':
      return arbRecovery(options.dedup).map((recovery) => {
        return { type: 'recovered', segmentId: effect.segmentId, recovery };
      });
    case 'write':
      return arbWriteAnswer();
    case 'translate':
      return arbSchemaTranslation().map((translation) => {
        return { type: 'translated', version: effect.version, translation };
      });
    default:
      return fc.constant({ type: 'granted' });
  }
}

function arbReadAnswer(
  { readId, after, maxEntries, maxBytes }: Extract<SegmentEffect, { type: 'read' }>,
  entries: ArbBytes,
): fc.Arbitrary<SegmentEvent> {
  const brought = fc
    .record({ some: arbEntriesBehind(after, Math.min(maxEntries, 3), entries), isEnd: seldom(), isNone: seldom() })
    .map(({ some, isEnd, isNone }): SegmentEvent => {
      const list = isEnd && isNone ? [] : some;
      let bytes = 0;
      const within = list.filter((entry, i) => {
        bytes += entry.bytes.length;
        return i === 0 || bytes <= maxBytes;
      });
      const ended = within.length === 0 || (isEnd && within.length === list.length);
      return { type: 'read', readId, entries: within, ended };
    });
  const failed = arbReason().map((reason): SegmentEvent => ({ type: 'readFailed', readId, reason }));
  return fc.oneof({ withCrossShrink: true }, { weight: 5, arbitrary: brought }, { weight: 1, arbitrary: failed });
}

/** What an opening brings, by how the remote finds out what was sent twice, or why there is none. */
function arbOpenAnswer(laneId: number, dedup: RemoteSupport['dedup'] | undefined): fc.Arbitrary<SegmentEvent> {
  const opened = { type: 'opened', laneId } as const;
  const known = arbKnown().map((what): SegmentEvent => ({ ...opened, ...what }));
  const found = arbFound().map((what): SegmentEvent => ({ ...opened, ...what }));
  const failed = fc
    .oneof({ weight: 6, arbitrary: arbFailure() }, { weight: 1, arbitrary: arbLaneStop() })
    .map((failure): SegmentEvent => ({ type: 'openFailed', laneId, failure }));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: dedup === 'readBack' ? 0 : 3, arbitrary: known },
    { weight: dedup === 'window' ? 0 : 3, arbitrary: found },
    { weight: 2, arbitrary: failed },
  );
}

function arbWriteAnswer(): fc.Arbitrary<SegmentEvent> {
  const fenced = fc.integer({ min: 2, max: 9 }).map((session): SegmentEvent => ({ type: 'writeFenced', session }));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 20, arbitrary: fc.constant<SegmentEvent>({ type: 'written' }) },
    { weight: 4, arbitrary: arbReason().map((reason): SegmentEvent => ({ type: 'writeFailed', reason })) },
    { weight: 1, arbitrary: fenced },
  );
}

/** Entries behind a position, ascending with holes; none behind the last one that there is. */
function arbEntriesBehind(
  after: SourcePosition | undefined,
  maxLength: number,
  entries: ArbBytes,
): fc.Arbitrary<StoredEntry[]> {
  const step = fc.record({
    entry: entries,
    hole: fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 3n })),
    isNew: seldom(),
  });
  return fc.array(step, { minLength: 1, maxLength }).map((steps) => {
    let { ledgerId, entryId } = after ?? { ledgerId: 0n, entryId: -1n };
    const list: StoredEntry[] = [];
    for (const { entry, hole, isNew } of steps) {
      [ledgerId, entryId] = isNew ? [ledgerId + 1n, hole] : [ledgerId, entryId + 1n + hole];
      if (ledgerId > LAST_ID || entryId > LAST_ID) break;
      list.push(storedAt({ ledgerId, entryId }, entry.bytes));
    }
    return list;
  });
}

const LAST_ID = 2n ** 63n - 1n;

function arbId(): fc.Arbitrary<number> {
  return fc.nat({ max: 9 });
}
