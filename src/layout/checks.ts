/**
 * The questions that every operation asks before it changes anything: is this a time, a boundary list, an active
 * segment that may be replaced? Each refusal names the value and the rule.
 */
import { IsthmusError, type IsthmusErrorCode, show } from '../errors.js';
import { equalRanges, FULL_RANGE, parseBoundaries } from '../ring/index.js';
import { isLegacy, type Layout, type Segment } from './segment.js';

/** True for what JSON calls an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Runs a check of the ring room and restates its refusal under the code of the caller's kind of input. */
export function restated<T>(code: IsthmusErrorCode, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (cause instanceof IsthmusError) throw new IsthmusError(code, cause.message, { cause });
    throw cause;
  }
}

/** Reads a boundary list into an array of its own, so that a caller who changes theirs changes no layout. */
export function readBoundaries(value: unknown, where: string, code: IsthmusErrorCode): readonly number[] {
  return restated(code, () => [...parseBoundaries(value, where)]);
}

/** Refuses anything but whole milliseconds since the epoch, 0 or more. */
export function checkTime(nowMs: number): void {
  if (!Number.isSafeInteger(nowMs) || nowMs < 0) {
    throw new IsthmusError('invalidArgument', `nowMs is ${show(nowMs)}: a time is a safe integer of 0 or more ms`);
  }
}

/**
 * True when the active segments tile the ring, so that every hash has one home. False while the active segments
 * are those of a classic topic: each of them claims the whole ring, and the masked hash picks among them (E9).
 */
function hasShape(layout: Layout): boolean {
  const [first] = layout.active;
  if (first === undefined || !isLegacy(first)) return true;
  return layout.active.length === 1 && equalRanges(first.range, FULL_RANGE);
}

/** Refuses, as `invalidOperation`, a layout whose active segments do not tile the ring. */
export function requireShape(layout: Layout): void {
  if (hasShape(layout)) return;
  throw new IsthmusError(
    'invalidOperation',
    `active segments ${show(layout.active.map((segment) => segment.segmentId))} are legacy: they overlap and have no shape`,
  );
}

/** The active segment of that id. Throws `invalidOperation` when it is absent, sealed, or one of several legacy ones. */
export function requireActive(layout: Layout, segmentId: number): Segment {
  const segment = layout.segments.get(segmentId);
  if (segment === undefined) {
    throw new IsthmusError('invalidOperation', `segment ${show(segmentId)} does not exist in this layout`);
  }
  if (segment.state === 'sealed') {
    throw new IsthmusError('invalidOperation', `segment ${segmentId} is sealed: only active segments can be replaced`);
  }
  requireShape(layout);
  return segment;
}
