/**
 * Random source positions for property tests: small ones that meet often, and the ids at which 64-bit numbers go
 * wrong in JavaScript.
 */
import fc from 'fast-check';
import type { SourcePosition } from '../entry/index.js';
import { RING_END } from '../ring/index.js';

export interface PositionOptions {
  /** Whether positions name a part of an entry: both kinds by default. */
  readonly parts?: 'never' | 'sometimes' | 'always';
}

/** Objects as everybody makes them. */
const PLAIN = { noNullPrototype: true } as const;

/** A position in a source segment. Ids are 0..2^63-1, often neighbours beyond 2^53; shrinks to 0:0. */
export function arbSourcePosition({ parts = 'sometimes' }: PositionOptions = {}): fc.Arbitrary<SourcePosition> {
  const whole = fc.record({ ledgerId: arbId(), entryId: arbId() }, PLAIN);
  if (parts === 'never') return whole;
  const part = fc.record({ ledgerId: arbId(), entryId: arbId(), part: arbPart() }, PLAIN);
  return parts === 'always' ? part : fc.oneof({ withCrossShrink: true }, whole, part);
}

/** The number of a part: the end hash of a bucket, mostly of equal-width ones. */
function arbPart(): fc.Arbitrary<number> {
  return fc.oneof(fc.constantFrom(0x3fff, 0x7fff, 0xbfff, RING_END, 0), fc.integer({ min: 0, max: RING_END }));
}

function arbId(): fc.Arbitrary<bigint> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 4, arbitrary: fc.bigInt({ min: 0n, max: 12n }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 2n, 2n ** 63n - 1n),
    },
    { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }) },
  );
}
