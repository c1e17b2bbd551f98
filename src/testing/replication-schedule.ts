/**
 * Random schedules for a simulated world of replication: what kind of world, and what happens in it when. They shrink to
 * few happenings in a plain world. One schedule always takes the same course.
 */
import fc from 'fast-check';
import {
  type Layout,
  mergeSegments,
  rebucketSegment,
  rolloverSegments,
  type Segment,
  splitSegment,
} from '../layout/index.js';
import { equalWidthSplits } from '../ring/index.js';
import type { EntryKind } from './replication-producers.js';
import type { OnceFault } from './replication-run.js';
import { ReplicationWorld, type ReplicationWorldOptions } from './replication-world.js';

/** What is written, and how often. */
export const WRITES: { readonly [kind in EntryKind]: number } = {
  single: 10,
  batch: 8,
  wideBatch: 7,
  unstampedBatch: 2,
  unkeyedBatch: 1,
  zeroBatch: 1,
  mixedBatch: 2,
  unkeyed: 2,
  ordered: 1,
  orderedBatch: 2,
  encrypted: 1,
  encryptedBatch: 1,
  stray: 0,
  chunk: 14,
  chunkDies: 1,
  marker: 1,
  listed: 1,
  replicated: 1,
};

/** How layouts and stores change. */
export const CHANGES = {
  split: 4,
  splitAt: 2,
  merge: 3,
  rebucket: 2,
  rollover: 1,
  sealEarly: 2,
  coarsen: 2,
  migrate: 1,
  prune: 2,
  trim: 2,
};

/** What befalls processes and connections, and how often. */
export const FAULTS = {
  crash: 4,
  cut: 4,
  stall: 5,
  sealInFlight: 4,
  tear: 7,
  refuse: 4,
  once: 5,
  takeover: 2,
  endOld: 1,
  restart: 1,
  pause: 1,
  resume: 2,
  reject: 1,
  skip: 1,
  evict: 1,
  clock: 1,
  forgetAcks: 1,
  losePin: 1,
};

export type HappeningType = EntryKind | keyof typeof CHANGES | keyof typeof FAULTS;

const ONCE_FAULTS: readonly OnceFault[] = [
  'readFails',
  'openFails',
  'openAnswerLost',
  'recoverFails',
  'writeFailsBefore',
  'writeFailsAfter',
  'acknowledgementLost',
  'loadFails',
];

const REFUSALS = ['unavailable', 'throttled', 'unauthorized', 'unsupported'] as const;

export interface ReplicationHappening {
  readonly type: HappeningType;
  /** The cluster it happens on, or the one whose replicator it happens to. */
  readonly at: number;
  readonly pick: number;
  /** How much time passes before it. */
  readonly afterMs: number;
}

export interface ReplicationSchedule {
  readonly seed: number;
  readonly segments: readonly number[];
  readonly buckets: readonly number[];
  readonly directions: 'all' | 'first';
  readonly failStop: boolean;
  readonly tellsRanges: boolean;
  readonly tellsTogether: boolean;
  readonly tellsWatermarks: boolean;
  /** A cluster whose topic is a classic one at first. */
  readonly classic: 'none' | 'first' | 'second';
  /** How long the replicators have been running when the first thing happens. */
  readonly begunMs: number;
  /** The longest that a message takes. */
  readonly delayMs: number;
  /** 0: nothing expires. */
  readonly ttlMs: number;
  readonly happenings: readonly ReplicationHappening[];
}

export interface ScheduleOptions {
  readonly clusters?: number;
  readonly maxHappenings?: number;
}

export function arbReplicationSchedule({
  clusters = 2,
  maxHappenings = 60,
}: ScheduleOptions = {}): fc.Arbitrary<ReplicationSchedule> {
  const types = [...Object.entries(WRITES), ...Object.entries(CHANGES), ...Object.entries(FAULTS)] as [
    HappeningType,
    number,
  ][];
  const happening = fc.record({
    type: fc.oneof(...types.map(([type, weight]) => ({ weight, arbitrary: fc.constant(type) }))),
    at: fc.nat({ max: 5 }),
    pick: fc.nat({ max: 99 }),
    afterMs: fc.oneof({ weight: 3, arbitrary: fc.nat({ max: 6 }) }, { weight: 1, arbitrary: fc.nat({ max: 40 }) }),
  });
  const counts = (max: number) => fc.array(fc.integer({ min: 1, max }), { minLength: clusters, maxLength: clusters });
  return fc.record({
    seed: fc.integer(),
    segments: counts(3),
    buckets: counts(4),
    directions: fc.constantFrom('first' as const, 'all' as const),
    failStop: fc.boolean(),
    tellsRanges: fc.boolean(),
    tellsTogether: fc.boolean(),
    tellsWatermarks: fc.boolean(),
    classic: fc.constantFrom('none' as const, 'none' as const, 'none' as const, 'first' as const, 'second' as const),
    begunMs: fc.constantFrom(0, 60),
    delayMs: fc.constantFrom(12, 3, 40),
    ttlMs: fc.constantFrom(0, 0, 0, 400),
    happenings: fc.array(happening, { maxLength: maxHappenings, size: 'max' }),
  });
}

/** How long the last faults have to come to pass. */
export const LAST_MS = 150;

/** Longer than any message takes. */
const HEARD_MS = 200;

export type WorldSettings = Pick<ReplicationWorldOptions, 'dedup' | 'codecs'> & Partial<ReplicationWorldOptions>;

/** Lets a schedule happen to its end, and everything settle. Throws `BrokenInvariant`. */
export function runReplicationSchedule(schedule: ReplicationSchedule, settings: WorldSettings): ReplicationWorld {
  const {
    seed,
    segments,
    buckets,
    directions,
    failStop,
    tellsRanges,
    tellsTogether,
    tellsWatermarks,
    classic,
    delayMs,
    ttlMs,
  } = schedule;
  const world = new ReplicationWorld({
    seed,
    clusters: segments.map((count, i) => ({
      segments: count,
      buckets: buckets[i] ?? 1,
      classic: classic === ['first', 'second'][i],
    })),
    directions,
    failStop,
    tellsRanges,
    tellsTogether,
    tellsWatermarks,
    delayMs: [1, delayMs],
    options: { ttlMs },
    ...settings,
  });
  world.advance(schedule.begunMs);
  for (const happening of schedule.happenings) {
    world.advance(happening.afterMs);
    happen(world, happening, schedule);
  }
  world.advance(LAST_MS);
  world.calm();
  world.settle();
  world.checkComplete();
  world.meet();
  // Everybody hears of it.
  world.advance(HEARD_MS);
  world.settle();
  world.checkComplete();
  world.checkVerbatim();
  world.collectGarbage();
  return world;
}

/** Lets one thing happen. */
export function happen(
  world: ReplicationWorld,
  { type, at, pick }: Omit<ReplicationHappening, 'afterMs'>,
  schedule: Pick<ReplicationSchedule, 'ttlMs'>,
): void {
  const link = picked(world.links, at);
  switch (type) {
    case 'crash':
      link.diesIn = pick % 12;
      return;
    case 'cut':
      return link.cut(pick);
    case 'stall':
      return link.stall(pick);
    case 'sealInFlight':
      return link.sealInFlight(pick, (segmentId) => {
        world.change(world.topics.indexOf(link.remote), type, (layout, nowMs) => {
          if (layout.segments.get(segmentId)?.state !== 'active') return layout;
          if (layout.active.length < 6 && pick % 3 === 0) return splitSegment(layout, segmentId, { nowMs });
          const at = layout.active.findIndex((segment) => segment.segmentId === segmentId);
          const next = layout.active[at + 1] ?? layout.active[at - 1];
          if (pick % 3 === 1 && next !== undefined) return mergeSegments(layout, segmentId, next.segmentId, { nowMs });
          return rolloverSegments(layout, [segmentId], { nowMs });
        });
      });
    case 'refuse':
      link.refusals.push({ type: picked(REFUSALS, pick), reason: 'refused' });
      return;
    case 'once':
      link.faults.push(picked(ONCE_FAULTS, pick));
      return;
    case 'takeover':
      return link.takeOver();
    case 'endOld':
      return link.endOld();
    case 'restart':
      return link.restart();
    case 'pause':
      return link.setPaused(true);
    case 'resume':
      return link.setPaused(false);
    case 'reject':
      return link.poison(pick, pick % 3 === 0 ? 'tooLarge' : 'rejected');
    case 'skip':
      return link.skipHeld();
    case 'evict':
      return link.evict(pick);
    case 'clock':
      // Where entries expire, a clock that goes back would bring some to life again.
      return link.jump(schedule.ttlMs === 0 ? (pick - 40) * 10 : pick);
    case 'forgetAcks':
      return link.forgetAcks(pick);
    case 'losePin':
      return link.losePin(pick);
    case 'sealEarly':
      return world.sealEarly(at, pick);
    case 'trim':
      return world.trim(at);
    case 'migrate':
      return world.migrate(at, 1 + (pick % 2));
    case 'coarsen':
      return world.coarsen(at);
    case 'tear':
      return link.tear(() => world.coarsen(world.topics.indexOf(link.remote)));
    case 'split':
      return world.change(at, type, (layout, nowMs) => {
        if (layout.active.length > 5) return layout;
        return splitSegment(layout, picked(layout.active, pick).segmentId, { nowMs });
      });
    case 'splitAt':
      return world.change(at, type, (layout, nowMs) => {
        const { segmentId, range } = picked(layout.active, pick);
        if (layout.active.length > 5) return layout;
        const cut = range.start + 1 + ((pick * 0x1234) % (range.end - range.start));
        return splitSegment(layout, segmentId, { at: [cut], nowMs });
      });
    case 'merge':
      return world.change(at, type, (layout, nowMs) => {
        if (layout.active.length === 1) return layout;
        const left = picked(layout.active.slice(0, -1), pick);
        const right = layout.active[layout.active.indexOf(left) + 1] as Segment;
        return mergeSegments(layout, left.segmentId, right.segmentId, { nowMs });
      });
    case 'rebucket':
      return world.change(at, type, (layout, nowMs) => {
        const { segmentId } = picked(layout.active, pick);
        return rebucketSegment(layout, segmentId, equalWidthSplits(1 + (pick % 5)), { nowMs });
      });
    case 'rollover':
      return world.change(at, type, (layout: Layout, nowMs) => {
        return rolloverSegments(layout, [picked(layout.active, pick).segmentId], { nowMs });
      });
    case 'prune':
      return world.prune(at);
    default:
      return world.write(at, type, pick);
  }
}

function picked<T>(list: readonly T[], pick: number): T {
  return list[pick % list.length] as T;
}
