/** What a destination segment answers to a send: R11 to R13, the reports behind them, and a model that forgets nothing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DedupWindow, type Offer, type OfferAnswer } from '../../src/dedup/index.js';
import { formatSourcePosition, parseSourcePosition, type SourcePosition } from '../../src/entry/index.js';
import type { HashRange } from '../../src/ring/index.js';
import { arbSourcePosition } from '../../src/testing/positions.js';
import { refusal } from '../support/expect.js';

const P = 'pulsar.repl.a.5';
const at = parseSourcePosition;

/** Offers in one line: `7:3:16383 after 7:2 from 0x1000`. */
function offer(window: DedupWindow, text: string, producer = P): OfferAnswer {
  const [, position = '', previous, lowest] = /^(\S+)(?: after (\S+))?(?: from (\S+))?$/.exec(text) ?? [];
  return window.offer(producer, {
    position: at(position),
    ...(previous === undefined ? {} : { previous: at(previous) }),
    ...(lowest === undefined ? {} : { lowestHash: Number(lowest) }),
  });
}

/** A window after these offers, all of them accepted. */
function windowAfter(...offers: readonly string[]): DedupWindow {
  const window = new DedupWindow();
  for (const text of offers) expect(offer(window, text), text).toBe('accept');
  return window;
}

const watermarkOf = (window: DedupWindow, producer = P): string | undefined => {
  const watermark = window.watermark(producer);
  return watermark === undefined ? undefined : formatSourcePosition(watermark);
};

describe('one lane and its destination', () => {
  it('B01, R12b: what follows a failed head is not stored, and the resend of the head is', () => {
    const window = windowAfter('7:2');
    // 7:3 is lost on the way.
    expect(offer(window, '7:4 after 7:3')).toBe('gap');
    expect(offer(window, '7:5 after 7:4')).toBe('gap');
    expect(watermarkOf(window)).toBe('7:2');
    expect(offer(window, '7:3')).toBe('accept');
    expect(offer(window, '7:4 after 7:3')).toBe('accept');
    expect(offer(window, '7:5 after 7:4')).toBe('accept');
    expect(offer(window, '7:3')).toBe('duplicate');
    expect(watermarkOf(window)).toBe('7:5');
  });

  it('B01, R12b: a failed head of a lane that has stored nothing yet is not overtaken either', () => {
    const window = new DedupWindow();
    expect(offer(window, '7:4 after 7:3')).toBe('gap');
    expect(window.watermark(P)).toBeUndefined();
    expect(offer(window, '7:3')).toBe('accept');
  });

  it('R12b: the first send of a lane names none before it, so that a restart is no endless gap', () => {
    const window = windowAfter('7:2');
    expect(offer(window, '9:0')).toBe('accept');
  });

  it('R12b: a previous send that was stored while its answer was lost is no gap', () => {
    const window = windowAfter('7:3', '7:4 after 7:3');
    expect(offer(window, '7:5 after 7:3')).toBe('accept');
  });

  it('B02: two parts of one entry in one segment are both stored, a resend of either is dropped', () => {
    const window = windowAfter('7:3:32767 from 0x0125', '7:3:65535 after 7:3:32767 from 0x8000');
    expect(offer(window, '7:3:32767 from 0x0125')).toBe('duplicate');
    expect(offer(window, '7:3:65535 after 7:3:32767 from 0x8000')).toBe('duplicate');
  });

  it('B02, B04: positions are compared as numbers', () => {
    expect(offer(windowAfter('7:9'), '7:10')).toBe('accept');
    expect(offer(windowAfter('9:99'), '10:0')).toBe('accept');
  });

  it('B03, R11: the same part under its segment-own number is a duplicate, the part that failed is not', () => {
    // D1 has two buckets. The first attempt stored the first and lost the second; in the meantime other segments changed.
    const window = windowAfter('7:3:32767 from 0x0125');
    expect(offer(window, '7:3:32767 from 0x0125')).toBe('duplicate');
    expect(offer(window, '7:3:65535 after 7:3:32767 from 0x8000')).toBe('accept');
  });

  it('R11: a coarser retry is told what is stored of it, stores nothing, and is taken without it', () => {
    const window = windowAfter('7:3:16383 from 0x0125');
    expect(offer(window, '7:3:65535 from 0x3fff')).toEqual({ partial: 0x3fff });
    expect(offer(window, '7:3 from 0x0125')).toEqual({ partial: 0x3fff });
    expect(watermarkOf(window)).toBe('7:3:16383');
    expect(offer(window, '7:3:65535 from 0x4000')).toBe('accept');
  });

  it('R11: a send that does not tell its lowest hash may hold any', () => {
    const window = windowAfter('7:3:16383 from 0x0125');
    expect(offer(window, '7:3:65535')).toEqual({ partial: 0x3fff });
    expect(offer(windowAfter('7:2'), '7:3:65535')).toBe('accept');
  });

  it('R11, R12b: behind a send that was answered partial there is a gap', () => {
    const window = windowAfter('7:3:16383 from 0x0125');
    expect(offer(window, '7:3 from 0x0125')).toEqual({ partial: 0x3fff });
    expect(offer(window, '7:4 after 7:3')).toBe('gap');
  });

  it('R11: a finer retry after the whole entry was stored is a duplicate in every part', () => {
    const window = windowAfter('7:3');
    for (const part of [0, 0x3fff, 0xffff]) expect(offer(window, `7:3:${part}`)).toBe('duplicate');
  });

  it('B04: positions that start lower are never taken for new, and the watermark shows why', () => {
    const window = windowAfter('900:12');
    expect(offer(window, '17:0')).toBe('duplicate');
    // R12c: who opens the lane sees a watermark beyond what its source ever wrote, and stops before it sends.
    expect(watermarkOf(window)).toBe('900:12');
  });

  it('B04: an ordinary replay is dropped up to the watermark and goes on behind it', () => {
    const window = windowAfter('7:3', '7:4 after 7:3', '7:5 after 7:4');
    const replay = ['7:4', '7:5 after 7:4', '7:6 after 7:5'].map((text) => offer(window, text));
    expect(replay).toEqual(['duplicate', 'duplicate', 'accept']);
  });

  it('B21: producers that replicate are told apart, and original sequence ids play no part', () => {
    const window = windowAfter('7:3');
    expect(offer(window, '7:3', 'pulsar.repl.a.6')).toBe('accept');
    expect(offer(window, '7:3', 'pulsar.repl.b.5')).toBe('accept');
    expect(offer(window, '7:3')).toBe('duplicate');
  });

  it('B31: entries sent again after a crash before the cursor was saved are duplicates, not copies', () => {
    const before = windowAfter('7:0', '7:1 after 7:0', '7:2 after 7:1');
    const window = DedupWindow.restore(JSON.parse(JSON.stringify(before.snapshot())));
    const replay = ['7:0', '7:1 after 7:0', '7:2 after 7:1', '7:3 after 7:2'].map((text) => offer(window, text));
    expect(replay).toEqual(['duplicate', 'duplicate', 'duplicate', 'accept']);
  });

  it('B46: neighbours beyond 2^53 are told apart', () => {
    const window = windowAfter('9007199254740992:9007199254740992');
    expect(offer(window, '9007199254740992:9007199254740993')).toBe('accept');
    expect(offer(window, '9007199254740993:0')).toBe('accept');
    expect(offer(window, '9007199254740992:9007199254740993')).toBe('duplicate');
  });

  it('B49: the chunks of one message are entries of their own, and a resend from the second is dropped', () => {
    const window = windowAfter('7:3', '7:4 after 7:3', '7:5 after 7:4');
    expect([offer(window, '7:4'), offer(window, '7:5 after 7:4')]).toEqual(['duplicate', 'duplicate']);
  });
});

/** A destination that keeps every position it ever stored, and looks through all of them. */
class Model {
  private readonly stored = new Map<string, SourcePosition[]>();

  offer(producer: string, { position, previous, lowestHash = 0 }: Offer): OfferAnswer {
    const list = this.stored.get(producer) ?? [];
    const reaches = (from: SourcePosition) => list.some((p) => rank(p) >= rank(from));
    if (reaches(position)) return 'duplicate';
    if (previous !== undefined && !reaches(previous)) return 'gap';
    const parts = list.filter((p) => p.ledgerId === position.ledgerId && p.entryId === position.entryId);
    const highest = Math.max(-1, ...parts.map(({ part = 0xffff }) => part));
    if (highest >= lowestHash) return { partial: highest };
    this.stored.set(producer, [...list, position]);
    return 'accept';
  }
}

const rank = ({ ledgerId, entryId, part = 0xffff }: SourcePosition) =>
  (ledgerId << 80n) + (entryId << 16n) + BigInt(part);

const arbOffer = fc.record({
  producer: fc.constantFrom('p1', 'p2'),
  // Few entries, so that sends rewind, repeat and come coarser.
  position: fc.oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(fc.bigInt(1n, 2n), fc.bigInt(0n, 4n), fc.constantFrom(undefined, 0x3fff, 0x7fff, 0xffff)),
    },
    { weight: 1, arbitrary: arbSourcePosition().map((p) => [p.ledgerId, p.entryId, p.part] as const) },
  ),
  lost: fc.nat({ max: 3 }).map((n) => n === 3),
  previous: fc.constantFrom('none' as const, 'last sent' as const, 'last stored' as const),
  lowestHash: fc.option(fc.constantFrom(0, 1, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xffff), { nil: undefined }),
});

describe('random histories', () => {
  it('R11, R12, R12b: a window answers as a model that keeps every position', () => {
    const answers = new Set<string>();
    fc.assert(
      fc.property(fc.array(arbOffer, { maxLength: 30 }), fc.nat({ max: 30 }), (offers, restartAt) => {
        let window = new DedupWindow();
        const model = new Model();
        const sent = new Map<string, SourcePosition>();
        const stored = new Map<string, SourcePosition>();
        for (const [i, { producer, position: parts, lost, previous: which, lowestHash }] of offers.entries()) {
          if (i === restartAt) window = DedupWindow.restore(JSON.parse(JSON.stringify(window.snapshot())));
          const [ledgerId, entryId, part] = parts;
          const position = { ledgerId, entryId, ...(part === undefined ? {} : { part }) };
          const previous = which === 'none' ? undefined : (which === 'last sent' ? sent : stored).get(producer);
          sent.set(producer, position);
          if (lost) continue;
          const answer = window.offer(producer, { position, previous, lowestHash });
          expect(answer).toEqual(model.offer(producer, { position, previous, lowestHash }));
          answers.add(typeof answer === 'string' ? answer : 'partial');
          if (answer === 'accept') stored.set(producer, position);
          expect(window.watermark(producer)).toEqual(stored.get(producer));
        }
      }),
      { numRuns: 500 },
    );
    expect([...answers].sort()).toEqual(['accept', 'duplicate', 'gap', 'partial']);
  });
});

describe('snapshot and restore', () => {
  it('are plain JSON, and exact for names and numbers of every kind', () => {
    const name = fc.oneof(fc.constantFrom('__proto__', 'constructor', '', '7', 'größe'), fc.string());
    fc.assert(
      fc.property(fc.dictionary(name, arbSourcePosition(), { noNullPrototype: true }), (watermarks) => {
        const window = new DedupWindow();
        for (const [producer, position] of Object.entries(watermarks)) window.offer(producer, { position });
        const snapshot = JSON.parse(JSON.stringify(window.snapshot())) as unknown;
        const restored = DedupWindow.restore(snapshot);
        for (const producer of Object.keys(watermarks)) {
          expect(restored.watermark(producer)).toEqual(window.watermark(producer));
        }
        expect(restored.snapshot()).toEqual(snapshot);
      }),
    );
  });

  it('a producer may be called __proto__', () => {
    const window = new DedupWindow();
    window.offer('__proto__', { position: at('7:3') });
    const restored = DedupWindow.restore(JSON.parse(JSON.stringify(window.snapshot())));
    expect(watermarkOf(restored, '__proto__')).toBe('7:3');
  });

  it.each([
    ['nothing', undefined, 'invalidArgument'],
    ['null', null, 'invalidArgument'],
    ['a text', '7:3', 'invalidArgument'],
    ['an object without producers', {}, 'invalidArgument'],
    ['a watermark that is no position', { producers: { p: '7' } }, 'invalidPosition'],
    ['a negative entry', { producers: { p: '7:-1' } }, 'invalidPosition'],
    ['a part beyond the ring', { producers: { p: '7:3:65536' } }, 'invalidPosition'],
  ])('refuses %s', (_, snapshot, code) => {
    expect(refusal(() => DedupWindow.restore(snapshot))).toBe(code);
  });
});

const LEFT: HashRange = { start: 0, end: 0x7fff };
const RIGHT: HashRange = { start: 0x8000, end: 0xffff };

describe('R13: what a sealed segment hands on', () => {
  it('a split or a rollover copies it, and parent and child go on apart', () => {
    const parent = windowAfter('7:3:32767 from 0x10');
    const children = [LEFT, RIGHT].map(() =>
      DedupWindow.inherit([{ window: parent, range: { start: 0, end: 0xffff } }]),
    );
    const [left, right] = children as [DedupWindow, DedupWindow];
    for (const child of children) expect(offer(child, '7:3:32767 from 0x10')).toBe('duplicate');
    expect(offer(left, '7:3:65535 after 7:3:32767 from 0x8000')).toBe('accept');
    expect(watermarkOf(right)).toBe('7:3:32767');
    expect(watermarkOf(parent)).toBe('7:3:32767');
  });

  const parents = (left: DedupWindow, right: DedupWindow) => [
    { window: left, range: LEFT },
    { window: right, range: RIGHT },
  ];

  it.each([
    ['7:5', '7:3', '7:3'],
    ['7:3', '7:5', '7:3'],
    ['7:3:32767', '7:3', '7:3:32767'],
    ['10:0', '9:99', '9:99'],
  ])('a merge of %s and %s knows %s, the lower of the two', (left, right, expected) => {
    expect(watermarkOf(DedupWindow.inherit(parents(windowAfter(left), windowAfter(right))))).toBe(expected);
  });

  it('a merge forgets a producer that one parent has not heard of', () => {
    expect(DedupWindow.inherit(parents(windowAfter('7:5'), new DedupWindow())).watermark(P)).toBeUndefined();
    expect(DedupWindow.inherit(parents(new DedupWindow(), windowAfter('7:5'))).watermark(P)).toBeUndefined();
  });

  it('unless the source of that producer does not touch that parent', () => {
    const merged = (sourceRange: HashRange | undefined) =>
      DedupWindow.inherit(parents(windowAfter('7:5'), new DedupWindow()), { sourceRange: () => sourceRange });
    expect(watermarkOf(merged({ start: 0x4000, end: 0x7fff }))).toBe('7:5');
    expect(watermarkOf(merged({ start: 0x4000, end: 0x8000 }))).toBeUndefined();
    expect(watermarkOf(merged(undefined))).toBeUndefined();
  });

  it('a parent that has received counts, whatever the range says', () => {
    const merged = DedupWindow.inherit(parents(windowAfter('7:5'), windowAfter('7:3')), { sourceRange: () => LEFT });
    expect(watermarkOf(merged)).toBe('7:3');
  });

  it('the minimum is never above what any parent that can have received has stored', () => {
    const arbWindow = fc.dictionary(fc.constantFrom('p1', 'p2', 'p3'), arbSourcePosition());
    fc.assert(
      fc.property(fc.array(arbWindow, { minLength: 1, maxLength: 4 }), (watermarks) => {
        const parents = watermarks.map((marks, i) => {
          const window = new DedupWindow();
          for (const [producer, position] of Object.entries(marks)) window.offer(producer, { position });
          return { window, range: { start: i * 0x100, end: i * 0x100 + 0xff } };
        });
        const child = DedupWindow.inherit(parents);
        for (const producer of ['p1', 'p2', 'p3']) {
          const ranks = watermarks.map((marks) => marks[producer]).map((p) => (p === undefined ? -1n : rank(p)));
          const lowest = ranks.toSorted((a, b) => Number(a > b) - Number(a < b))[0];
          const watermark = child.watermark(producer);
          expect(watermark === undefined ? -1n : rank(watermark)).toBe(lowest);
        }
      }),
    );
  });
});
