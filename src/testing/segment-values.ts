/**
 * Random values that the machine of a segment is told of and set to: layouts with their sealed segments, stored entries,
 * what a remote is found to have, failures, options.
 */
import fc from 'fast-check';
import { comparePositions } from '../dedup/index.js';
import type { Codecs, SourcePosition } from '../entry/index.js';
import type { Layout } from '../layout/index.js';
import type { RemoteSupport, RemoteTopicLayout, SchemaTranslation, StoredEntry } from '../ports/index.js';
import {
  FAILURES,
  type Failure,
  type FailureClass,
  type FoundCopy,
  type LaneStop,
  type Recovery,
  type SegmentOptions,
} from '../replication/index.js';
import { arbRectangle } from './dedup-values.js';
import { arbEntry } from './entries.js';
import { arbLayout, arbLayoutHistory, describeSegments, layoutAfter, printedAs } from './layouts.js';
import { arbSourcePosition } from './positions.js';
import { arbRemoteLayout, type RemoteLayoutOptions } from './remotes.js';

/** Bytes of an entry, as `arbEntry` makes them. */
export type ArbBytes = fc.Arbitrary<{ readonly bytes: Uint8Array }>;

/** What a sealed segment of the remote was found to have. */
export function arbRecovery(dedup?: RemoteSupport['dedup']): fc.Arbitrary<Recovery> {
  const watermark = arbMaybe(arbSourcePosition()).map(
    (at): Recovery => (at === undefined ? { type: 'watermark' } : { type: 'watermark', watermark: at }),
  );
  const failed = arbReason().map((reason): Recovery => ({ type: 'failed', reason }));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 1, arbitrary: fc.constant<Recovery>({ type: 'pruned' }) },
    { weight: dedup === 'readBack' ? 0 : 3, arbitrary: watermark },
    {
      weight: dedup === 'window' ? 0 : 3,
      arbitrary: arbFound().map((found): Recovery => ({ type: 'copies', ...found })),
    },
    { weight: 1, arbitrary: failed },
    { weight: 1, arbitrary: arbLaneStop() },
  );
}

/** A copy that was read back: of an entry, of a part of one, or of a chunk. */
export function arbFoundCopy(): fc.Arbitrary<FoundCopy> {
  const places = { position: arbPlace(), at: arbPlace() };
  const chunk = fc.integer({ min: 1, max: 3 }).chain((numChunks) => {
    return fc.record({
      uuid: fc.constant('p-7'),
      chunkId: fc.nat({ max: numChunks - 1 }),
      numChunks: fc.constant(numChunks),
    });
  });
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 3, arbitrary: fc.record(places) },
    { weight: 2, arbitrary: fc.record({ ...places, rectangle: arbRectangle() }) },
    { weight: 1, arbitrary: fc.record({ ...places, chunk }) },
  );
}

/** Why a send or an opening failed: every class of `FAILURES`. */
export function arbFailure(): fc.Arbitrary<Failure> {
  const type = fc.constantFrom(...(Object.keys(FAILURES) as FailureClass[]));
  return fc.record({ type, reason: arbReason() }) as fc.Arbitrary<Failure>;
}

/** Why a lane cannot go on before an operator acts. */
export function arbLaneStop(): fc.Arbitrary<LaneStop> {
  return fc.record({ type: fc.constantFrom('pinLost', 'superseded'), reason: arbReason() });
}

/** What a version of a schema is called on the remote, if it can be said. */
export function arbSchemaTranslation(): fc.Arbitrary<SchemaTranslation> {
  const version = fc.uint8Array({ maxLength: 8 });
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 3, arbitrary: version.map((bytes): SchemaTranslation => ({ type: 'translated', version: bytes })) },
    { weight: 2, arbitrary: arbReason().map((reason): SchemaTranslation => ({ type: 'unknown', reason })) },
    { weight: 1, arbitrary: arbReason().map((reason): SchemaTranslation => ({ type: 'incompatible', reason })) },
  );
}

/** A remote's layout with its sealed segments, pruned ones aside. */
export function arbRemoteTopicLayout(options: RemoteLayoutOptions = {}): fc.Arbitrary<RemoteTopicLayout> {
  const { maxSteps = 6 } = options;
  const withoutSealed = arbRemoteLayout(options).map((remote) => {
    return shown({ ...remote, segments: new Map(remote.active.map((segment) => [segment.segmentId, segment])) });
  });
  return fc.oneof(
    { weight: 3, arbitrary: arbLayout({ maxSteps }).map(topicLayoutOf) },
    { weight: 1, arbitrary: withoutSealed },
  );
}

/** The layouts that one remote goes through, one or more: each follows from the one before by one operation. */
export function arbRemoteTopicHistory(maxSteps = 6): fc.Arbitrary<RemoteTopicLayout[]> {
  return arbLayoutHistory({ maxSteps }).map(({ segments, steps }) => {
    return Array.from({ length: steps.length + 1 }, (_, i) => {
      return topicLayoutOf(layoutAfter({ segments, steps: steps.slice(0, i) }));
    });
  });
}

function topicLayoutOf({ epoch, active, segments }: Layout): RemoteTopicLayout {
  return shown({ cluster: 'b', epoch, active, segments });
}

function shown(remote: RemoteTopicLayout): RemoteTopicLayout {
  return printedAs(remote, `remote(epoch ${remote.epoch}: ${describeSegments([...remote.segments.values()])})`);
}

/** An entry as it is stored, and where. */
export function arbStoredEntry(entries: ArbBytes = arbEntry()): fc.Arbitrary<StoredEntry> {
  return fc.tuple(arbPlace(), entries).map(([position, { bytes }]) => storedAt(position, bytes));
}

/** Options of a segment, down to windows of one entry, so that limits are met. */
export function arbSegmentOptions(codecs: Codecs = {}): fc.Arbitrary<SegmentOptions> {
  const few = (usual: number) =>
    fc.oneof({ withCrossShrink: true }, fc.integer({ min: 1, max: 4 }), fc.constant(usual));
  const durationMs = (usual: number) => fc.constantFrom(usual, 1, 1_000);
  return fc
    .record(
      {
        ttlMs: fc.constantFrom(0, 1, 3_600_000),
        unkeyedBatches: fc.constantFrom('inspect', 'trust'),
        keepCodec: fc.boolean(),
        limits: fc.constantFrom({}, { maxUncompressedBytes: 100 }),
        translateSchemas: fc.boolean(),
        windowEntries: few(1_000),
        windowBytes: fc.constantFrom(64 * 1024 * 1024, 1, 300),
        maxReadEntries: few(100),
        cursorEntries: few(1_000),
        cursorDelayMs: fc.constantFrom(1_000, 0, 1),
        retryInitialMs: durationMs(100),
        retryMaxMs: fc.constantFrom(30_000, 1_000),
        chunkExpiryMs: durationMs(3_600_000),
        maxSpanEntries: few(100_000),
      },
      { requiredKeys: [] },
    )
    .map((options) => {
      const text = JSON.stringify({ codecs: Object.keys(codecs), ...options });
      return printedAs({ codecs, ...options }, `segmentOptions(${text})`);
    });
}

/** A watermark; the source has mostly written as much. */
export function arbKnown() {
  const place = arbPlace();
  return fc
    .record({ watermark: arbMaybe(arbSourcePosition()), last: place, isBehind: seldom() })
    .map(({ watermark, last, isBehind }) => {
      if (watermark === undefined) return { lastPosition: last };
      const { ledgerId, entryId } = watermark;
      const reached = comparePositions(watermark, last) < 0 || isBehind ? last : { ledgerId, entryId };
      return { watermark, lastPosition: reached };
    });
}

/** What was read back of a segment, in the order in which it lies there. */
export function arbFound() {
  const place = fc.option(arbPlace(), { nil: undefined });
  return fc
    .record({ copies: fc.array(arbFoundCopy(), { maxLength: 3 }), end: place, lastPosition: place })
    .map(({ copies, ...places }) => {
      return { copies: copies.sort((a, b) => comparePositions(a.at, b.at)), ...places };
    });
}

export function storedAt(position: SourcePosition, bytes: Uint8Array): StoredEntry {
  const text = `stored(${position.ledgerId}:${position.entryId}, bytes 0x${Buffer.from(bytes).toString('hex')})`;
  return printedAs({ position, bytes }, text);
}

export function arbPlace(): fc.Arbitrary<SourcePosition> {
  return arbSourcePosition({ parts: 'never' });
}

export function arbReason(): fc.Arbitrary<string> {
  return fc.constantFrom('so it is', '');
}

/** Absent two times in three. */
function arbMaybe<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary },
  );
}

/** True once in eight. */
export function seldom(): fc.Arbitrary<boolean> {
  return fc.nat({ max: 7 }).map((n) => n === 7);
}
