/**
 * The stored record of a layout: the JSON that Pulsar keeps per scalable topic. Reading checks every rule that the
 * rest of isthmus relies on and refuses with `invalidLayout`; writing gives back what was read, members that isthmus
 * does not know included (the auto-scale policy is one). A record says some things twice: `sealed`, `active`,
 * `root`, `leaf` and `legacy` follow from the rest, so they are ignored when read and written anew.
 */
import { IsthmusError, show } from '../errors.js';
import { equalBoundaries, formatRange, parseRange, RING_END } from '../ring/index.js';
import { assembleLayout } from './assemble.js';
import { deriveBase } from './base.js';
import { isRecord, readBoundaries, restated } from './checks.js';
import { isLegacy, type Layout, type Segment } from './segment.js';

const LAYOUT_MEMBERS = new Set(['epoch', 'nextSegmentId', 'segments', 'properties', 'deleted', 'base']);
const SEGMENT_MEMBERS = new Set([
  ...['segmentId', 'hashRange', 'state', 'parentIds', 'childIds', 'entryBucketSplits', 'legacyTopicName'],
  ...['createdAtEpoch', 'sealedAtEpoch', 'createdAtMs', 'sealedAtMs'],
  ...['sealed', 'active', 'root', 'leaf', 'legacy'],
]);

function refuse(what: string, rule: string): never {
  throw new IsthmusError('invalidLayout', `${what}: ${rule}`);
}

/**
 * Reads a stored record, already parsed from JSON. Lists and properties that are null or absent are empty, as
 * Pulsar reads them. Throws `invalidLayout` with the value and the rule that it breaks.
 */
export function parseLayout(record: unknown): Layout {
  if (!isRecord(record)) refuse(`record is ${show(record)}`, 'a layout is a JSON object');
  const epoch = readInteger(record.epoch, 'epoch', 0, Number.MAX_SAFE_INTEGER);
  const nextSegmentId = readInteger(record.nextSegmentId, 'nextSegmentId', 0, Number.MAX_SAFE_INTEGER);
  const segments = readSegments(record.segments, epoch, nextSegmentId);
  checkEdges(segments);
  checkTiling(segments);
  const base = readBase(record.base, segments);
  const unknownMembers = unknownIn(record, LAYOUT_MEMBERS);
  return assembleLayout({
    epoch,
    nextSegmentId,
    segments,
    ...(base === undefined ? {} : { base }),
    properties: readProperties(record.properties),
    deleted: readFlag(record.deleted, 'deleted'),
    ...(unknownMembers === undefined ? {} : { unknownMembers }),
  });
}

/** The stored record of a layout. `base` is written only where the segments do not prove it by themselves. */
export function formatLayout(layout: Layout): object {
  const segments = [...layout.segments.values()].map((segment) => [segment.segmentId, formatSegment(segment)] as const);
  const provenBase = deriveBase(layout.segments.values()) ?? [];
  const base = layout.base ?? [];
  return {
    epoch: layout.epoch,
    nextSegmentId: layout.nextSegmentId,
    segments: Object.fromEntries(segments),
    properties: { ...layout.properties },
    deleted: layout.deleted,
    ...(equalBoundaries(base, provenBase) ? {} : { base: [...base] }),
    ...layout.unknownMembers,
  };
}

function formatSegment(segment: Segment): object {
  const { segmentId, state, createdAtEpoch, sealedAtEpoch, createdAtMs, sealedAtMs, legacyTopicName } = segment;
  return {
    segmentId,
    hashRange: { start: segment.range.start, end: segment.range.end },
    state: state === 'active' ? 'ACTIVE' : 'SEALED',
    parentIds: [...segment.parentIds],
    childIds: [...segment.childIds],
    createdAtEpoch,
    sealedAtEpoch,
    createdAtMs,
    sealedAtMs,
    ...(legacyTopicName === undefined ? {} : { legacyTopicName }),
    entryBucketSplits: [...segment.entryBucketSplits],
    sealed: state === 'sealed',
    active: state === 'active',
    root: segment.parentIds.length === 0,
    leaf: segment.childIds.length === 0,
    legacy: isLegacy(segment),
    ...segment.unknownMembers,
  };
}

function readSegments(value: unknown, epoch: number, nextSegmentId: number): Map<number, Segment> {
  if (!isRecord(value)) refuse(`segments is ${show(value)}`, 'an object keyed by segment id is needed');
  const segments = new Map<number, Segment>();
  for (const [key, member] of Object.entries(value)) {
    const segment = readSegment(key, member, epoch);
    if (segment.segmentId >= nextSegmentId) {
      refuse(`segment ${segment.segmentId} with nextSegmentId ${nextSegmentId}`, 'ids in use are below nextSegmentId');
    }
    segments.set(segment.segmentId, segment);
  }
  return segments;
}

function readSegment(key: string, value: unknown, epoch: number): Segment {
  const where = `segments[${show(key)}]`;
  if (!isRecord(value)) refuse(`${where} is ${show(value)}`, 'a segment is a JSON object');
  const segmentId = readInteger(value.segmentId, `${where}.segmentId`, 0, Number.MAX_SAFE_INTEGER);
  // One spelling per id: a key such as "01" would otherwise smuggle in a second segment 1.
  if (key !== String(segmentId)) refuse(`${where}.segmentId is ${segmentId}`, 'key and segmentId must agree');
  const createdAtEpoch = readInteger(value.createdAtEpoch, `${where}.createdAtEpoch`, 0, epoch);
  const unknownMembers = unknownIn(value, SEGMENT_MEMBERS);
  return {
    segmentId,
    range: restated('invalidLayout', () => parseRange(value.hashRange, `${where}.hashRange`)),
    parentIds: readIds(value.parentIds, `${where}.parentIds`),
    childIds: readIds(value.childIds, `${where}.childIds`),
    entryBucketSplits: readBoundaries(value.entryBucketSplits ?? [], `${where}.entryBucketSplits`, 'invalidLayout'),
    createdAtEpoch,
    createdAtMs: readInteger(value.createdAtMs, `${where}.createdAtMs`, 0, Number.MAX_SAFE_INTEGER),
    ...readSeal(value, where, createdAtEpoch, epoch),
    ...readLegacyName(value.legacyTopicName, where),
    ...(unknownMembers === undefined ? {} : { unknownMembers }),
  };
}

function readSeal(value: Readonly<Record<string, unknown>>, where: string, createdAtEpoch: number, epoch: number) {
  const { state, sealedAtEpoch, sealedAtMs } = value;
  if (state === 'ACTIVE') {
    return {
      state: 'active' as const,
      sealedAtEpoch: readInteger(sealedAtEpoch, `${where}.sealedAtEpoch of an active segment`, -1, -1),
      sealedAtMs: readInteger(sealedAtMs, `${where}.sealedAtMs of an active segment`, -1, -1),
    };
  }
  if (state !== 'SEALED') refuse(`${where}.state is ${show(state)}`, 'a state is ACTIVE or SEALED');
  return {
    state: 'sealed' as const,
    sealedAtEpoch: readInteger(sealedAtEpoch, `${where}.sealedAtEpoch of a sealed segment`, createdAtEpoch, epoch),
    sealedAtMs: readInteger(sealedAtMs, `${where}.sealedAtMs of a sealed segment`, 0, Number.MAX_SAFE_INTEGER),
  };
}

function readLegacyName(value: unknown, where: string): { legacyTopicName?: string } {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'string') refuse(`${where}.legacyTopicName is ${show(value)}`, 'a topic name is text');
  return { legacyTopicName: value };
}

function readInteger(value: unknown, where: string, least: number, most: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  const rule = least === most ? `must be ${least}` : `must be a safe integer of ${least}..${most}`;
  return refuse(`${where} is ${show(value)}`, rule);
}

function readIds(value: unknown, where: string): readonly number[] {
  const ids = value ?? [];
  if (!Array.isArray(ids)) refuse(`${where} is ${show(ids)}`, 'an array of segment ids is needed');
  return ids.map((id: unknown) => readInteger(id, where, 0, Number.MAX_SAFE_INTEGER));
}

function readFlag(value: unknown, where: string): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') refuse(`${where} is ${show(value)}`, 'must be true or false');
  return value;
}

function readProperties(value: unknown): Readonly<Record<string, string>> {
  const properties = value ?? {};
  if (!isRecord(properties) || !Object.values(properties).every((text) => typeof text === 'string')) {
    refuse(`properties is ${show(properties)}`, 'a map of texts to texts is needed');
  }
  return { ...properties } as Record<string, string>;
}

function readBase(value: unknown, segments: ReadonlyMap<number, Segment>): readonly number[] | undefined {
  if (value === undefined || value === null) return deriveBase(segments.values());
  const base = readBoundaries(value, 'base', 'invalidLayout');
  return base.length === 0 ? undefined : base;
}

function unknownIn(value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>) {
  const unknown = Object.entries(value).filter(([name]) => !known.has(name));
  return unknown.length === 0 ? undefined : Object.fromEntries(unknown);
}

/**
 * Every edge stands at both of its ends: Pulsar strips a pruned id from the survivors' lists on both sides. A child
 * is younger than its parents, so the graph has no cycle.
 */
function checkEdges(segments: ReadonlyMap<number, Segment>): void {
  const parents = idSets(segments, 'parentIds');
  const children = idSets(segments, 'childIds');
  for (const { segmentId, state, parentIds, childIds } of segments.values()) {
    if (state === 'active' && childIds.length > 0) {
      refuse(`segment ${segmentId} is active with childIds ${show(childIds)}`, 'only sealed segments have children');
    }
    for (const id of parentIds) {
      if (id < segmentId && children.get(id)?.has(segmentId)) continue;
      refuse(
        `segment ${segmentId} has parent ${id}`,
        'a parent is an older segment of the record that lists the child',
      );
    }
    for (const id of childIds) {
      if (parents.get(id)?.has(segmentId)) continue;
      refuse(`segment ${segmentId} has child ${id}`, 'a child is a segment of the record that lists the parent');
    }
  }
}

function idSets(segments: ReadonlyMap<number, Segment>, member: 'parentIds' | 'childIds') {
  const sets = new Map<number, ReadonlySet<number>>();
  for (const segment of segments.values()) {
    const ids = new Set(segment[member]);
    if (ids.size !== segment[member].length) {
      refuse(`segment ${segment.segmentId} has ${member} ${show(segment[member])}`, 'an id is listed once');
    }
    sets.set(segment.segmentId, ids);
  }
  return sets;
}

/** Active segments tile the ring; those of a classic topic all claim it, and the two kinds are never active together. */
function checkTiling(segments: ReadonlyMap<number, Segment>): void {
  const active = [...segments.values()].filter((segment) => segment.state === 'active');
  const legacy = active.find(isLegacy);
  if (legacy !== undefined) {
    const ordinary = active.find((segment) => !isLegacy(segment));
    if (ordinary === undefined) return;
    refuse(
      `segment ${legacy.segmentId} is legacy and segment ${ordinary.segmentId} is not`,
      'active segments are all legacy or none is',
    );
  }
  active.sort((a, b) => a.range.start - b.range.start);
  let next = 0;
  for (const { segmentId, range } of active) {
    if (range.start !== next) {
      const fault = range.start < next ? 'an overlap' : 'a gap';
      refuse(
        `segment ${segmentId} (${formatRange(range)}) leaves ${fault} at ${next}`,
        'active segments tile the ring',
      );
    }
    next = range.end + 1;
  }
  if (next !== RING_END + 1) refuse(`no active segment holds ${next}..65535, a gap`, 'active segments tile the ring');
}
