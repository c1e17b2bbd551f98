/**
 * The machine of a segment that is told anything: stale, doubled and unasked answers, layouts out of nowhere, stops and
 * starts. Whatever it is, the rules of the witness hold. That nothing is lost where all of it is true is told of in the
 * simulation.
 */
import fc from 'fast-check';
import {
  newCounters,
  type OuterFields,
  type RemoteTopicLayout,
  type SegmentEvent,
  type SegmentReplicatorStart,
} from 'isthmus';
import {
  arbCursorRecord,
  arbEntry,
  arbMessageFields,
  arbOuterFields,
  arbRemoteTopicHistory,
  arbSegmentEvent,
  arbSegmentOptions,
  arbSourceSegment,
  type SegmentEventOptions,
} from 'isthmus/testing';
import { it } from 'vitest';
import { codecs } from '../support/codecs.js';
import { Witness } from './segment-witness.js';

const START = fc
  .record({
    source: arbSourceSegment(),
    maxEntryBytes: fc.constantFrom(5 * 1024 * 1024, 200),
    dedup: fc.constantFrom('window' as const, 'readBack' as const),
    failStop: fc.boolean(),
    options: arbSegmentOptions(codecs),
    record: fc.oneof(
      { weight: 1, arbitrary: arbCursorRecord() },
      { weight: 9, arbitrary: arbCursorRecord().map((record) => ({ ...record, drained: false })) },
    ),
  })
  .map(({ dedup, failStop, ...start }): SegmentReplicatorStart => {
    return { ...start, supports: { dedup, failStop }, sourceCluster: 'a', counters: newCounters() };
  });

/** The number of an event; three times in four one that fits what is asked. */
const TURN = fc.record({ seed: fc.nat(), isStray: fc.nat({ max: 3 }).map((n) => n === 3) });
/** Most have begun, and know the remote. */
const GIVEN = fc.record({ start: START, isBegun: fc.boolean(), turns: fc.array(TURN, { maxLength: 60, size: 'max' }) });
type Given = typeof GIVEN extends fc.Arbitrary<infer Value> ? Value : never;

/** Entries that no rule lets pass unsent: no marker, no other's copy, no chunk, nothing compacted out. */
const PLAIN = arbEntry(codecs, {
  message: arbMessageFields().map((fields) => ({ ...fields, compactedOut: false })),
  outer: arbOuterFields().map(({ producerName, sequenceId, publishTimeMs, partitionKey, orderingKey }): OuterFields => {
    const keys = { ...(partitionKey === undefined ? {} : { partitionKey }), ...(orderingKey && { orderingKey }) };
    return { producerName, sequenceId, publishTimeMs, ...keys };
  }),
});

/** Tells a machine one event after the other; of a remote's layouts the one that it knows or the one that follows. */
function play({ start, isBegun, turns }: Given, layouts: readonly RemoteTopicLayout[], isPlain: boolean): void {
  const witness = new Witness(start, { isSteady: layouts.length > 0, isPlain });
  let known = 0;
  try {
    if (isBegun) witness.tell({ type: 'start' });
    for (const layout of isBegun ? layouts.slice(0, 1) : []) witness.tell({ type: 'layout', layout });
    for (const { seed, isStray } of turns) {
      const next = layouts.slice(known, known + 2);
      const event = drawn(seed, {
        asked: isStray ? witness.asked : witness.open,
        unasked: isStray,
        dedup: start.supports.dedup,
        ...(next.length > 0 ? { layouts: fc.constantFrom(...next) } : {}),
        ...(isPlain ? { entries: PLAIN } : {}),
      });
      if (event.type === 'layout' && event.layout !== layouts[known]) known++;
      witness.nowMs += seed % 3 === 0 ? seed % 40_000 : seed % 2;
      witness.tell(event);
    }
  } catch (error) {
    throw new Error(`after\n${witness.story.map((what) => fc.stringify(what)).join('\n')}`, { cause: error });
  }
}

function drawn(seed: number, options: SegmentEventOptions): SegmentEvent {
  const [event] = fc.sample(arbSegmentEvent(options), { seed, numRuns: 1 });
  if (event === undefined) throw new Error('nothing was drawn');
  return event;
}

it('holds its rules, whatever it is told, and never throws', () => {
  const property = fc.property(GIVEN, arbRemoteTopicHistory(), (given, layouts) => play(given, layouts, false));
  fc.assert(property, { seed: 1, numRuns: 150 });
});

it('settles nothing of which nobody has said that it is stored, and writes and acknowledges only what is settled', () => {
  const property = fc.property(GIVEN, arbRemoteTopicHistory(), (given, layouts) => {
    const { ttlMs: _, ...options } = given.start.options;
    play({ ...given, start: { ...given.start, options } }, layouts, true);
  });
  fc.assert(property, { seed: 1, numRuns: 300 });
});

it('R12: keeps its cursor under layouts out of nowhere, and refuses at most to let an entry be overtaken', () => {
  const property = fc.property(GIVEN, (given) => {
    try {
      play(given, [], false);
    } catch (error) {
      // A segment that another layout had in another place: what would come too late there would be lost.
      const { cause } = error as Error;
      if (!(cause instanceof Error && /^a send at .* behind one at/.test(cause.message))) throw error;
    }
  });
  fc.assert(property, { seed: 1, numRuns: 100 });
});
