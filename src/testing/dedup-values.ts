/**
 * Random values of what is sent, recognised and kept for a replicator: offers to a window and windows as stored, what of
 * an entry is done, answers of a remote, cursors.
 */
import fc from 'fast-check';
import { comparePositions, type DedupSnapshot, type Offer } from '../dedup/index.js';
import { formatSourcePosition, type SourcePosition, type Stamp } from '../entry/index.js';
import type { CursorRecord, SendResult } from '../ports/index.js';
import type { Rectangle } from '../rebatch/index.js';
import { RING_END } from '../ring/index.js';
import { arbSourcePosition } from './positions.js';
import { arbRange } from './remotes.js';

/** The lowest and highest bucket hash of an entry; shrinks to [0,0]. */
export function arbStamp(): fc.Arbitrary<Stamp> {
  const hash = fc.oneof(
    { withCrossShrink: true },
    fc.constantFrom(0, 0x3fff, 0x7fff, RING_END),
    fc.integer({ min: 0, max: RING_END }),
  );
  return fc.tuple(hash, hash).map(([a, b]) => ({ min: Math.min(a, b), max: Math.max(a, b) }));
}

/** What of an entry is stored already: a range of segments by a range of buckets, or a remainder of a classic topic. */
export function arbRectangle(): fc.Arbitrary<Rectangle> {
  const ranges = { range: arbRange(), buckets: arbRange() };
  const residue = fc
    .integer({ min: 1, max: 5 })
    .chain((modulus) => fc.record({ modulus: fc.constant(modulus), remainder: fc.nat({ max: modulus - 1 }) }));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 4, arbitrary: fc.record(ranges) },
    { weight: 1, arbitrary: fc.record({ ...ranges, residue, unkeyed: fc.boolean() }) },
  );
}

/** A send as a window judges it. `previous`, where there is one, lies before it; `completeTo` not behind it. */
export function arbOffer(): fc.Arbitrary<Offer> {
  return fc
    .record({
      places: fc.tuple(arbSourcePosition(), arbSourcePosition({ parts: 'never' })),
      hasPrevious: fc.boolean(),
      lowestHash: fc.option(fc.integer({ min: 0, max: RING_END }), { nil: undefined }),
      complete: fc.constantFrom('all', 'all', 'all', 'nothing', 'before'),
    })
    .map(({ places, hasPrevious, lowestHash, complete }): Offer => {
      const [first, last] = [...places].sort(comparePositions) as [SourcePosition, SourcePosition];
      const isApart = comparePositions(first, last) < 0;
      return {
        position: last,
        ...(hasPrevious && isApart ? { previous: first } : {}),
        ...(lowestHash === undefined ? {} : { lowestHash }),
        ...(complete === 'nothing' ? { completeTo: null } : {}),
        ...(complete === 'before' && isApart ? { completeTo: first } : {}),
      };
    });
}

/** A window as stored: what `DedupWindow.restore` takes. */
export function arbDedupSnapshot(): fc.Arbitrary<DedupSnapshot> {
  const producer = fc.constantFrom('pulsar.repl.a.0', 'pulsar.repl.a.1', 'isthmus.b.0', '');
  const place = arbSourcePosition().map(formatSourcePosition);
  const producers = fc.dictionary(producer, place, { maxKeys: 3, noNullPrototype: true });
  return producers.chain((watermarks) => {
    const incomplete = fc.subarray(Object.keys(watermarks)).chain((names) => {
      const before = fc.option(arbSourcePosition({ parts: 'never' }).map(formatSourcePosition), { nil: null });
      return fc
        .array(before, { minLength: names.length, maxLength: names.length })
        .map((places) => Object.fromEntries(names.map((name, i) => [name, places[i] ?? null])));
    });
    return incomplete.map((completeTo): DedupSnapshot => {
      return { producers: watermarks, ...(Object.keys(completeTo).length === 0 ? {} : { completeTo }) };
    });
  });
}

const REASONED = ['sealed', 'fenced', 'ambiguous', 'unavailable', 'throttled'] as const;
const FOR_OPERATORS = ['unauthorized', 'unsupported', 'rejected', 'tooLarge'] as const;

/** What a remote answers to a send: mostly that it is stored. */
export function arbSendResult(): fc.Arbitrary<SendResult> {
  const reasoned = fc.record({
    type: fc.oneof(fc.constantFrom(...REASONED), fc.constantFrom(...FOR_OPERATORS)),
    reason: fc.constantFrom('so it is', ''),
  });
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 4, arbitrary: fc.record({ type: fc.constant('stored' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('stored' as const), at: arbSourcePosition({ parts: 'never' }) }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('duplicate' as const, 'gap' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('partial' as const), partial: fc.integer({ min: 0, max: RING_END }) }),
    },
    { weight: 2, arbitrary: reasoned },
  );
}

/** What is durable of one segment and remote. What is skipped lies behind what is settled, and ascends. */
export function arbCursorRecord(): fc.Arbitrary<CursorRecord> {
  const place = arbSourcePosition({ parts: 'never' });
  return fc
    .record({
      session: fc.oneof(
        { withCrossShrink: true },
        fc.integer({ min: 1, max: 5 }),
        fc.constant(Number.MAX_SAFE_INTEGER),
      ),
      places: fc.uniqueArray(place, { maxLength: 4, selector: formatSourcePosition }),
      isSettled: fc.boolean(),
      drained: fc.boolean(),
      checkpoints: fc.uniqueArray(fc.tuple(fc.nat({ max: 9 }), place), { maxLength: 3, selector: ([id]) => id }),
    })
    .map(({ session, places, isSettled, drained, checkpoints }): CursorRecord => {
      const sorted = [...places].sort(comparePositions);
      const settled = isSettled ? sorted.shift() : undefined;
      return {
        session,
        ...(settled === undefined ? {} : { settled }),
        drained,
        // Nothing is left behind the end of what is drained.
        skipped: drained ? [] : sorted,
        checkpoints: new Map(checkpoints),
      };
    });
}
