/** Records as items of a request, and requests as large as they may be. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ByteCap,
  compressIfWorthwhile,
  cutChunk,
  fnv1a,
  isRawJson,
  laneCount,
  laneOf,
  type SourceRecord,
  sendItem,
} from '../../src/sender/index.js';
import { aroundIndex, halves, replan, without } from '../../src/sender/plan.js';
import { rawElements, rawMembers } from '../../src/testing/fake-target/json-parts.js';
import { codecs } from '../support/codecs.js';
import { recordOf } from './world.js';

const utf8 = (text: string) => Buffer.from(text, 'utf8');
const UNLIMITED = { maxMessages: 1_000, maxBytes: 1_000_000 };

/** The item of one record, as it is sent. */
function itemOf(key: Uint8Array | string, payload: Uint8Array | string, asBase64 = false): string {
  const bytes = (value: Uint8Array | string) => (typeof value === 'string' ? utf8(value) : value);
  const record = { offset: 0, key: bytes(key), payload: bytes(payload), storedAtMs: 0 };
  const body = Buffer.from(cutChunk([{ ...sendItem(record), asBase64 }], UNLIMITED).body).toString('utf8');
  expect(body.startsWith('{"messages":[') && body.endsWith(']}')).toBe(true);
  return body.slice(13, -2);
}

describe('lanes', () => {
  it.each<[string, Uint8Array, string, number, number]>([
    ['k0', utf8('k0'), '973d7f2e', 6, 2],
    ['k1', utf8('k1'), '983d80c1', 1, 1],
    ['key-1', utf8('key-1'), '57e03446', 6, 2],
    ['customer-42', utf8('customer-42'), 'fe68adbe', 6, 2],
    ['bad', utf8('bad'), '60b75a78', 0, 0],
    ['ключ', utf8('ключ'), '95c4e9e1', 1, 1],
    ['ff 00', Uint8Array.of(0xff, 0), '6e1e20ca', 2, 2],
  ])('the key %s', (_, key, hash, ofEight, ofFour) => {
    expect(fnv1a(key).toString(16).padStart(8, '0')).toBe(hash);
    expect([laneOf({ key, offset: 9 }, 8), laneOf({ key, offset: 7 }, 4), laneOf({ key, offset: 3 }, 1)]).toEqual([
      ofEight,
      ofFour,
      0,
    ]);
  });

  it('a record without a key goes by its offset; lanes are 1 to 8, and 1 when nothing is said', () => {
    const key = new Uint8Array();
    expect([0, 1, 7, 8, Number.MAX_SAFE_INTEGER].map((offset) => laneOf({ key, offset }, 8))).toEqual([0, 1, 7, 0, 7]);
    expect([undefined, -3, 0, 1, 5, 8, 9].map(laneCount)).toEqual([1, 1, 1, 1, 5, 8, 8]);
  });
});

describe('a record as an item', () => {
  it.each<[string, Uint8Array | string, Uint8Array | string, string]>([
    ['an object goes as it came', 'k', '{"a": 1, "a":2e400}', '{"key":"k","payload":{"a": 1, "a":2e400}}'],
    ['a scalar is JSON', '', 'null', '{"payload":null}'],
    ['a string is JSON', '', '"x"', '{"payload":"x"}'],
    ['text is none', '', 'x', '{"payload":"eA==","payload_encoding":"base64"}'],
    ['white space in front', '', ' {}', '{"payload":"IHt9","payload_encoding":"base64"}'],
    ['a newline behind', '', '{}\n', '{"payload":"e30K","payload_encoding":"base64"}'],
    [
      'a byte order mark',
      '',
      Uint8Array.of(0xef, 0xbb, 0xbf, 0x31),
      '{"payload":"77u/MQ==","payload_encoding":"base64"}',
    ],
    ['two values', '', '1 2', '{"payload":"MSAy","payload_encoding":"base64"}'],
    [
      'invalid UTF-8 in a string',
      '',
      Uint8Array.of(0x22, 0xff, 0x22),
      '{"payload":"Iv8i","payload_encoding":"base64"}',
    ],
    ['nothing at all: the target refuses it', 'k', '', '{"key":"k","payload":"","payload_encoding":"base64"}'],
    [
      'a key that needs escapes',
      '"\\\n\r\t\b\x00<&\u2028\u2029\x7f',
      '1',
      '{"key":"\\"\\\\\\n\\r\\t\\u0008\\u0000<&\\u2028\\u2029\x7f","payload":1}',
    ],
    ['a key in another script', 'ключ', '1', '{"key":"ключ","payload":1}'],
    ['a key of bytes', Uint8Array.of(0xff, 0), '1', '{"key":"/wA=","key_encoding":"base64","payload":1}'],
  ])('%s', (_, key, payload, item) => {
    expect(itemOf(key, payload)).toBe(item);
  });

  it('is base64 where the target refused it raw', () => {
    expect(itemOf('k', '{}', true)).toBe('{"key":"k","payload":"e30=","payload_encoding":"base64"}');
  });

  it('gives back its key and its payload, byte for byte, whatever they are', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.json().map(utf8),
      fc.string({ unit: 'binary' }).map(utf8),
    );
    fc.assert(
      fc.property(bytes, bytes, (key, payload) => {
        const record: SourceRecord = { offset: 0, key, payload, storedAtMs: 0 };
        const text = Buffer.from(cutChunk([sendItem(record)], UNLIMITED).body).toString('latin1');
        const members = rawMembers(rawElements(rawMembers(text).get('messages') ?? '')[0] ?? '');
        const decoded = (name: string, raw: string) => {
          if (members.has(`${name}_encoding`)) return Buffer.from(JSON.parse(raw) as string, 'base64');
          if (name === 'payload') return Buffer.from(raw, 'latin1');
          return utf8(JSON.parse(Buffer.from(raw, 'latin1').toString('utf8')) as string);
        };
        expect(Buffer.compare(decoded('key', members.get('key') ?? '""'), key)).toBe(0);
        expect(Buffer.compare(decoded('payload', members.get('payload') ?? ''), payload)).toBe(0);
      }),
      { seed: 1, numRuns: 1_000 },
    );
  });
});

describe('what goes raw', () => {
  it('agrees with JSON.parse on any text, of JSON and of JSON with a wrong byte', () => {
    const broken = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom(...'{}[]",:\\/0eE+-.ntu\x00 \x1f\xff'))
      .map(([text, at, letter]) => {
        const index = at % (text.length + 1);
        return text.slice(0, index) + letter + text.slice(index + (at % 2));
      });
    fc.assert(
      fc.property(fc.oneof(fc.json(), broken), (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        expect(isRawJson(utf8(text))).toBe(isJson && !/^[ \t\n\r]|[ \t\n\r]$/.test(text) && text.length > 0);
      }),
      { seed: 2, numRuns: 10_000 },
    );
  });

  it.each<[string, string, boolean]>([
    ['10,000 levels', `${'['.repeat(10_000)}${']'.repeat(10_000)}`, true],
    ['10,001 levels', `${'['.repeat(10_001)}${']'.repeat(10_001)}`, false],
    ['a lone surrogate as an escape', '"\\ud800"', true],
    ['a number with a zero in front', '01', false],
    ['a minus alone', '-', false],
    ['an exponent', '-0.5E+10', true],
    ['a cut literal', 'tru', false],
    ['a trailing comma', '[1,]', false],
    ['a name without quotes', '{a:1}', false],
  ])('%s', (_, text, isRaw) => {
    expect(isRawJson(utf8(text))).toBe(isRaw);
  });

  it.each<[string, number[], boolean]>([
    ['the last code point', [0xf4, 0x8f, 0xbf, 0xbf], true],
    ['one above it', [0xf4, 0x90, 0x80, 0x80], false],
    ['a surrogate in bytes', [0xed, 0xa0, 0x80], false],
    ['a long form', [0xc0, 0xaf], false],
    ['a cut sequence', [0xe2, 0x82], false],
  ])('in a string: %s', (_, bytes, isRaw) => {
    expect(isRawJson(Uint8Array.from([0x22, ...bytes, 0x22]))).toBe(isRaw);
  });
});

describe('cutting a request', () => {
  const records = (count: number, payload: string) =>
    Array.from({ length: count }, (_, n) => sendItem(recordOf(n, '', payload)));

  it('takes what fits into the whole body, closing included, and never more messages than the target takes', () => {
    // 15 bytes around, 13 an item, a comma between.
    const item = '{"payload":1}'.length;
    const sized = (count: number) => 15 + count * item + count - 1;
    const cut = (maxBytes: number, maxMessages = 100) => cutChunk(records(10, '1'), { maxBytes, maxMessages });
    expect(cut(sized(4))).toMatchObject({ count: 4 });
    expect(cut(sized(4)).body).toHaveLength(sized(4));
    expect(cut(sized(4) - 1).count).toBe(3);
    expect(cut(sized(10)).count).toBe(10);
    expect(cut(1_000, 7).count).toBe(7);
  });

  it('a record that is larger than the cap goes alone', () => {
    const items = [sendItem(recordOf(0, '', `"${'x'.repeat(500)}"`)), ...records(3, '1')];
    expect(cutChunk(items, { maxBytes: 100, maxMessages: 100 }).count).toBe(1);
  });

  it('is the same text as one item after the other, however it is cut', () => {
    const arbitrary = fc.array(fc.string({ maxLength: 60 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(arbitrary, fc.integer({ min: 20, max: 400 }), (payloads, maxBytes) => {
        const items = payloads.map((payload, n) => sendItem(recordOf(n, `k${n}`, payload)));
        const sent: string[] = [];
        for (let at = 0; at < items.length; ) {
          const { body, count } = cutChunk(items.slice(at), { maxBytes, maxMessages: 10 });
          expect(count === 1 || body.length <= maxBytes).toBe(true);
          sent.push(Buffer.from(body).toString('latin1').slice(13, -2));
          at += count;
        }
        const whole = cutChunk(items, { maxBytes: 1_000_000, maxMessages: 1_000 });
        expect(sent.join(',')).toBe(Buffer.from(whole.body).toString('latin1').slice(13, -2));
      }),
      { seed: 3, numRuns: 500 },
    );
  });

  it('halves to a floor, and doubles back after 20 accepted in a row', () => {
    const cap = new ByteCap();
    const shrunk = [1, 2, 3, 4, 5].map(() => {
      cap.shrink();
      return cap.bytes;
    });
    expect(shrunk).toEqual([491_520, 245_760, 122_880, 65_536, 65_536]);
    const accept = (times: number) => {
      for (let i = 0; i < times; i++) cap.accepted();
      return cap.bytes;
    };
    expect([accept(19), accept(1), accept(20), accept(20), accept(20), accept(20)]).toEqual([
      65_536, 131_072, 262_144, 524_288, 983_040, 983_040,
    ]);
    cap.shrink();
    accept(19);
    cap.shrink();
    expect(accept(1)).toBe(245_760);
  });

  it('is compressed where a tenth is saved', () => {
    const zstd = (body: Uint8Array) => codecs.zstd.compress(body);
    expect(compressIfWorthwhile(utf8('a'.repeat(1_000)), zstd)?.length).toBeLessThan(100);
    expect(compressIfWorthwhile(utf8('abc'), zstd)).toBeUndefined();
    const to = (share: number) => () => new Uint8Array(share);
    expect(compressIfWorthwhile(new Uint8Array(100), to(90))).toHaveLength(90);
    expect(compressIfWorthwhile(new Uint8Array(100), to(91))).toBeUndefined();
  });
});

describe('narrowing a refusal', () => {
  it.each<[string, readonly number[], readonly number[]]>([
    ['the one named in the middle', aroundIndex(10, 4), [4, 1, 5]],
    ['the first', aroundIndex(10, 0), [1, 9]],
    ['the last', aroundIndex(10, 9), [9, 1]],
    ['one that is not there: halves', aroundIndex(9, 9), [4, 5]],
    ['nothing named: halves', halves(10), [5, 5]],
    ['inside a plan, the rest stays', replan([4, 1, 5], 4, [2, 2]), [2, 2, 1, 5]],
    ['a part that was sent in two', replan([4, 1, 5], 3, [1, 2]), [1, 2, 1, 1, 5]],
    ['what is done comes off the front', without([4, 1, 5], 4), [1, 5]],
    ['in the middle of a part', without([4, 1, 5], 2), [2, 1, 5]],
    ['more than is planned', without([4], 9), []],
  ])('%s', (_, plan, expected) => {
    expect(plan).toEqual(expected);
  });
});
