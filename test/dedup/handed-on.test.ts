/** What a segment has whole of a producer, and hands on when it is sealed: chunked messages stay together (R6, R13). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparePositions, DedupWindow, type OfferAnswer } from '../../src/dedup/index.js';
import { formatSourcePosition, parseSourcePosition, type SourcePosition } from '../../src/entry/index.js';
import { FULL_RANGE, type HashRange } from '../../src/ring/index.js';
import { arbSourcePosition } from '../../src/testing/positions.js';
import { refusal } from '../support/expect.js';

const P = 'pulsar.repl.a.5';

const at = (text: string): SourcePosition => parseSourcePosition(text);
const textOf = (position: SourcePosition | undefined) => position && formatSourcePosition(position);
const handedOn = (window: DedupWindow) => textOf(window.handedOn(P));

/** Offers a position; `completeTo` as in `Offer`. */
function offer(window: DedupWindow, position: string, completeTo?: string | null): OfferAnswer {
  if (completeTo === undefined) return window.offer(P, { position: at(position) });
  return window.offer(P, { position: at(position), completeTo: completeTo === null ? null : at(completeTo) });
}

function sealedAfter(...offers: readonly (readonly [position: string, completeTo?: string | null])[]): DedupWindow {
  const window = new DedupWindow();
  for (const [position, completeTo] of offers) expect(offer(window, position, completeTo)).toBe('accept');
  return window;
}

const childOf = (window: DedupWindow) => DedupWindow.inherit([{ window, range: FULL_RANGE }]);

describe('what a segment hands on', () => {
  it('R13: is its watermark while no chunked message is incomplete', () => {
    expect(handedOn(new DedupWindow())).toBeUndefined();
    expect(handedOn(sealedAfter(['7:1'], ['7:2:32767']))).toBe('7:2:32767');
  });

  it('R6, R13: is no more than precedes the first chunk of an incomplete message', () => {
    const window = sealedAfter(['7:1'], ['7:2', '7:1'], ['7:3', '7:1']);
    expect(handedOn(window)).toBe('7:1');
    expect(textOf(window.watermark(P))).toBe('7:3');
    expect(textOf(childOf(window).watermark(P))).toBe('7:1');
  });

  it('R6, R13: is nothing when nothing precedes that chunk', () => {
    const window = sealedAfter(['7:1', null], ['7:2', null]);
    expect(handedOn(window)).toBeUndefined();
    expect(childOf(window).watermark(P)).toBeUndefined();
  });

  it('R6: is the watermark again once the last chunk is stored, or the message was given up', () => {
    const window = sealedAfter(['7:1', null], ['7:2']);
    expect(handedOn(window)).toBe('7:2');
    expect(textOf(childOf(window).watermark(P))).toBe('7:2');
  });

  it('R6: moves to the next incomplete message when the first is whole', () => {
    const window = sealedAfter(['7:1', null], ['7:2', null], ['7:3', '7:1']);
    expect(handedOn(window)).toBe('7:1');
  });

  it('R6: is never above the watermark, even if the entry before the first chunk went to another segment', () => {
    const window = sealedAfter(['7:1'], ['7:4', '7:9']);
    expect(handedOn(window)).toBe('7:4');
  });

  it.each(['duplicate', 'gap', 'partial'])('R6: stays what it was behind a send that was answered %s', (answer) => {
    const window = sealedAfter(['7:1'], ['7:2:100', '7:1']);
    const offers = {
      duplicate: { position: at('7:1') },
      gap: { position: at('7:9'), previous: at('7:8') },
      partial: { position: at('7:2'), lowestHash: 0 },
    };
    const given = window.offer(P, offers[answer as keyof typeof offers]);
    expect(typeof given === 'string' ? given : 'partial').toBe(answer);
    expect(handedOn(window)).toBe('7:1');
  });

  it('R6: an active segment keeps its chunks: sent again, they are duplicates', () => {
    const window = sealedAfter(['7:1', null]);
    expect(offer(window, '7:1', null)).toBe('duplicate');
    expect(offer(childOf(window), '7:1', null)).toBe('accept');
  });

  it('R6: each producer has its own', () => {
    const window = sealedAfter(['7:2', '7:1']);
    window.offer('other', { position: at('7:3') });
    expect(handedOn(window)).toBe('7:1');
    expect(textOf(window.handedOn('other'))).toBe('7:3');
  });

  const LEFT: HashRange = { start: 0, end: 0x7fff };
  const RIGHT: HashRange = { start: 0x8000, end: 0xffff };
  const merged = (left: DedupWindow, right: DedupWindow, sourceRange?: HashRange) =>
    DedupWindow.inherit(
      [
        { window: left, range: LEFT },
        { window: right, range: RIGHT },
      ],
      {
        sourceRange: () => sourceRange,
      },
    );

  it('R6, R13: a merge takes the lowest of what its parents hand on', () => {
    const whole = sealedAfter(['7:5']);
    expect(textOf(merged(sealedAfter(['7:6', '7:3']), whole).watermark(P))).toBe('7:3');
    expect(textOf(merged(sealedAfter(['7:9', '7:8']), whole).watermark(P))).toBe('7:5');
  });

  it('R6, R13: a parent that has chunks alone counts as one that has nothing, whatever the range says', () => {
    expect(merged(sealedAfter(['7:5']), sealedAfter(['7:6', null]), LEFT).watermark(P)).toBeUndefined();
  });
});

/** Messages of 1 to 4 chunks, the chunks of some interleaved: for each entry the number of its message. */
const arbSource = fc
  .array(fc.record({ chunks: fc.integer({ min: 1, max: 4 }), order: fc.nat({ max: 3 }) }), {
    minLength: 1,
    maxLength: 6,
  })
  .map((messages) =>
    messages
      .flatMap(({ chunks, order }, message) =>
        Array.from({ length: chunks }, (_, chunk) => ({ message, place: message * 4 + chunk * (1 + order) })),
      )
      .sort((a, b) => a.place - b.place || a.message - b.message)
      .map(({ message }) => message),
  );

/** Before the first chunk of the first message that is incomplete behind entry `to`. */
function completeToOf(source: readonly number[], to: number): SourcePosition | null | undefined {
  const first = source.findIndex((message, i) => i <= to && source.lastIndexOf(message) > to);
  if (first < 0) return undefined;
  return first === 0 ? null : { ledgerId: 7n, entryId: BigInt(first - 1) };
}

/** Sends entries in order, and returns the numbers of those that are stored. */
function send(source: readonly number[], window: DedupWindow, to: number): number[] {
  return source.flatMap((_, i) => {
    if (i >= to) return [];
    const position = { ledgerId: 7n, entryId: BigInt(i) };
    return window.offer(P, { position, completeTo: completeToOf(source, i) }) === 'accept' ? [i] : [];
  });
}

describe('a seal at any time', () => {
  it('R6, R13: a message is whole in the sealed segment or in its child, and what was handed on is not sent twice', () => {
    let cut = 0;
    fc.assert(
      fc.property(arbSource, fc.nat({ max: 24 }), fc.boolean(), (source, sealAt, restart) => {
        let parent = new DedupWindow();
        const before = new Set(send(source, parent, sealAt));
        if (restart) parent = DedupWindow.restore(JSON.parse(JSON.stringify(parent.snapshot())));
        const child = childOf(parent);
        const behind = new Set(send(source, child, source.length));
        for (const message of new Set(source)) {
          const entries = source.flatMap((m, i) => (m === message ? [i] : []));
          const isIn = (stored: ReadonlySet<number>) => entries.every((entry) => stored.has(entry));
          expect(isIn(before) || isIn(behind)).toBe(true);
          if (entries.some((entry) => before.has(entry)) && !isIn(before)) cut++;
        }
        const known = parent.handedOn(P)?.entryId ?? -1n;
        for (const entry of behind) expect(BigInt(entry)).toBeGreaterThan(known);
      }),
      { numRuns: 500 },
    );
    expect(cut).toBeGreaterThan(50);
  });

  it('R6, R13: a window hands on the lower of the last accepted position and its completeTo, across restarts', () => {
    const arbOffers = fc.array(
      fc.record({
        producer: fc.constantFrom('p1', 'p2'),
        position: fc.oneof(
          fc.tuple(fc.bigInt(1n, 2n), fc.bigInt(0n, 5n)).map(([ledgerId, entryId]) => ({ ledgerId, entryId })),
          arbSourcePosition(),
        ),
        completeTo: fc.option(fc.option(arbSourcePosition(), { nil: null }), { nil: undefined }),
      }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(arbOffers, fc.nat({ max: 20 }), (offers, restartAt) => {
        let window = new DedupWindow();
        const last = new Map<string, (typeof offers)[number]>();
        for (const [i, sent] of offers.entries()) {
          if (i === restartAt) window = DedupWindow.restore(JSON.parse(JSON.stringify(window.snapshot())));
          if (window.offer(sent.producer, sent) === 'accept') last.set(sent.producer, sent);
          for (const [producer, { position, completeTo }] of last) {
            const isWhole = completeTo === undefined || (completeTo && comparePositions(position, completeTo) < 0);
            expect(window.handedOn(producer)).toEqual(isWhole ? position : (completeTo ?? undefined));
            expect(childOf(window).watermark(producer)).toEqual(window.handedOn(producer));
          }
        }
      }),
    );
  });
});

describe('the snapshot', () => {
  it('R6: keeps what is incomplete, as plain JSON', () => {
    const window = sealedAfter(['7:1'], ['7:2', '7:1']);
    window.offer('other', { position: at('9:0'), completeTo: null });
    const snapshot = JSON.parse(JSON.stringify(window.snapshot())) as unknown;
    expect(snapshot).toEqual({ producers: { [P]: '7:2', other: '9:0' }, completeTo: { [P]: '7:1', other: null } });
    const restored = DedupWindow.restore(snapshot);
    expect(handedOn(restored)).toBe('7:1');
    expect(restored.handedOn('other')).toBeUndefined();
    expect(restored.snapshot()).toEqual(snapshot);
  });

  it('of a window without chunks is as it was before there were any, and that form is read', () => {
    const snapshot = { producers: { [P]: '7:2' } };
    expect(sealedAfter(['7:2']).snapshot()).toEqual(snapshot);
    expect(sealedAfter(['7:1', null], ['7:2']).snapshot()).toEqual(snapshot);
    expect(handedOn(DedupWindow.restore(snapshot))).toBe('7:2');
  });

  it('a producer in the middle of a message may be called __proto__', () => {
    const window = new DedupWindow();
    window.offer('__proto__', { position: at('7:3'), completeTo: at('7:1') });
    const restored = DedupWindow.restore(JSON.parse(JSON.stringify(window.snapshot())));
    expect(textOf(restored.handedOn('__proto__'))).toBe('7:1');
  });

  it.each([
    ['a text', '7:3', 'invalidArgument'],
    ['null', null, 'invalidArgument'],
    ['what is no position', { [P]: '7' }, 'invalidPosition'],
    ['a negative entry', { [P]: '7:-1' }, 'invalidPosition'],
  ])('refuses %s in place of what is incomplete', (_, completeTo, code) => {
    expect(refusal(() => DedupWindow.restore({ producers: { [P]: '7:3' }, completeTo }))).toBe(code);
  });
});
