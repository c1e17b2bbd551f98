/**
 * What becomes of one entry under one remote layout: sends for remote segments, or the reason why there are none. Pure;
 * whoever asks has seen to it that the lanes it may need are open, and that what is stored of it already is in `done`.
 */
import {
  DEFAULT_MAX_UNCOMPRESSED_BYTES,
  type Entry,
  type EntryBuffers,
  type RestampOptions,
  restamp,
  type SourcePosition,
} from '../entry/index.js';
import { IsthmusError } from '../errors.js';
import {
  inspectBatch,
  type Path,
  type Rectangle,
  type RemoteLayout,
  rebatch,
  type SourceSegment,
} from '../rebatch/index.js';
import { slowPathBytes } from './budget.js';
import type { HoldReason } from './counters.js';
import type { SegmentOptions } from './segment-events.js';

/** One send of a plan. */
export interface PlannedSend {
  readonly segmentId: number;
  readonly rectangle: Rectangle | undefined;
  readonly position: SourcePosition;
  readonly lowestHash: number | undefined;
  readonly buffers: EntryBuffers;
  readonly bytes: number;
}

export type Plan =
  /** In the order of the segments, in each in ascending position. None: everything is stored already. */
  | {
      readonly kind: 'send';
      readonly sends: readonly PlannedSend[];
      readonly rebatched: boolean;
      readonly inspected: boolean;
    }
  | { readonly kind: 'hold'; readonly reason: HoldReason; readonly message: string };

export interface PlanInput {
  readonly entry: Entry;
  readonly position: SourcePosition;
  readonly path: Extract<Path, { kind: 'verbatim' | 'rebatch' | 'inspect' }>;
  readonly source: SourceSegment;
  readonly sourceCluster: string;
  readonly remote: RemoteLayout;
  readonly maxEntryBytes: number;
  readonly options: SegmentOptions;
  readonly done: readonly Rectangle[] | undefined;
  /** The remote's schema version; undefined: as it is. */
  readonly schemaVersion: Uint8Array | undefined;
}

const HOLD_REASONS: ReadonlySet<string> = new Set<HoldReason>([
  'malformedEntry',
  'undecodableBatch',
  'encryptedBatch',
  'codecUnavailable',
  'checksumMismatch',
  'tooLarge',
]);

/** The hold that an error of the entry room asks for; anything else is a defect and is thrown on. */
export function holdOf(error: unknown): Extract<Plan, { kind: 'hold' }> {
  if (!(error instanceof IsthmusError && HOLD_REASONS.has(error.code))) throw error;
  return { kind: 'hold', reason: error.code as HoldReason, message: error.message };
}

/** What opening an entry takes of the slow-path budget; 0 for what the limit refuses before anything is opened. */
export function slowPathCost({ bytes, metadata }: Entry, options: SegmentOptions): number {
  const limit = options.limits?.maxUncompressedBytes ?? DEFAULT_MAX_UNCOMPRESSED_BYTES;
  // A claim of gigabytes must not become a debt of minutes (B48).
  if ((metadata.uncompressedSize ?? 0) > limit) return 0;
  return slowPathBytes(bytes.length, metadata.uncompressedSize);
}

/** True when carrying out the path opens the payload. */
export function opensPayload(input: Pick<PlanInput, 'path' | 'entry' | 'maxEntryBytes'>): boolean {
  if (input.path.kind !== 'verbatim') return true;
  // A stamp can make an entry too large for the remote; a batch is then cut (R8b).
  return input.entry.bytes.length + MAX_STAMP_BYTES > input.maxEntryBytes && isCuttable(input.entry);
}

/** No stamp is larger: a cluster's name, a position, a schema version. */
const MAX_STAMP_BYTES = 4096;

/** Plans the sends. Opens the payload where `opensPayload` says so. */
export function planSends(input: PlanInput): Plan {
  try {
    const { path } = input;
    if (path.kind === 'rebatch') return partsOf(input, false);
    if (path.kind === 'verbatim') return whole(input, path.segmentId, false);
    const { entry, source, remote, options } = input;
    const seen = inspectBatch(entry, source, remote, { codecs: options.codecs, limits: options.limits });
    return seen.kind === 'rebatch' ? partsOf(input, true) : whole(input, seen.segmentId, true);
  } catch (error) {
    return holdOf(error);
  }
}

function stampOf({ sourceCluster, position, schemaVersion }: PlanInput): RestampOptions {
  return { replicatedFrom: sourceCluster, sourcePosition: position, schemaVersion };
}

function isCuttable({ metadata }: Entry): boolean {
  return metadata.numMessagesInBatch !== undefined && !metadata.encrypted;
}

function whole(input: PlanInput, segmentId: number, inspected: boolean): Plan {
  const { entry, position, maxEntryBytes } = input;
  const buffers = restamp(entry, stampOf(input));
  const bytes = buffers.head.length + buffers.payload.length;
  if (bytes > maxEntryBytes) {
    if (isCuttable(entry)) return partsOf(input, inspected);
    const message = `the entry has ${bytes} bytes with its stamp; the limit is ${maxEntryBytes}`;
    return { kind: 'hold', reason: 'tooLarge', message };
  }
  const { numMessagesInBatch, stamp } = entry.metadata;
  const lowestHash = numMessagesInBatch === undefined ? undefined : stamp?.min;
  const send = { segmentId, rectangle: undefined, position, lowestHash, buffers, bytes };
  return { kind: 'send', sends: [send], rebatched: false, inspected };
}

function partsOf(input: PlanInput, inspected: boolean): Plan {
  const { entry, source, remote, options, done, maxEntryBytes } = input;
  const parts = rebatch(entry, source, remote, {
    codecs: options.codecs,
    stamp: stampOf(input),
    done,
    keepCodec: options.keepCodec,
    limits: options.limits,
    maxEntryBytes,
  });
  const sends = parts.map(({ segmentId, rectangle, position, lowestHash, buffers }) => ({
    segmentId,
    rectangle,
    position,
    lowestHash,
    buffers,
    bytes: buffers.head.length + buffers.payload.length,
  }));
  return { kind: 'send', sends, rebatched: true, inspected };
}
