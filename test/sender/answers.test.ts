/** Every row of the answer table under its own name, and what of an answer is the target's. */
import { describe, expect, it } from 'vitest';
import { childrenListing, retryAfterMs } from '../../src/sender/answers.js';
import {
  ANSWER_TABLE,
  type ChunkOutcome,
  type HttpOutcome,
  judgeAnswer,
  readClass,
  type Verdict,
} from '../../src/sender/index.js';
import { answer, edge, failure, goNotFound, json } from './target.js';

const NOW_MS = 784_111_770_000;

const judged = (outcome: HttpOutcome, other: Partial<ChunkOutcome> = {}): Verdict =>
  judgeAnswer({ outcome, count: 10, compressed: false, ...other }, NOW_MS);

/** `action state class ...` of a verdict. */
function told({ action, state, class: name, shrinks, ambiguous, index, retryAfterMs: ms }: Verdict): string {
  const words = [
    action,
    state,
    name === state ? undefined : name,
    shrinks ? 'shrinks' : '',
    ambiguous ? 'ambiguous' : '',
  ];
  return [...words, index === undefined ? '' : `at ${index}`, ms > 0 ? `after ${ms}` : ''].filter(Boolean).join(' ');
}

type Sample = readonly [outcome: HttpOutcome, expected: string, other?: Partial<ChunkOutcome>];

const ROWS: Readonly<Record<string, readonly Sample[]>> = {
  'the guard refused the dial': [[{ type: 'refused' }, 'stall destination_refused']],
  'TLS failed': [[{ type: 'tls' }, 'gate tls_failed']],
  'another transport error': [
    [{ type: 'failed', timeout: false }, 'retry unavailable ambiguous'],
    [{ type: 'failed', timeout: true }, 'retry unavailable shrinks ambiguous'],
  ],
  '202 for all records': [[json(202, { accepted: 10 }), 'committed']],
  '202 otherwise, or another 2xx': [
    [json(202, { accepted: 9 }), 'retry unavailable ambiguous'],
    [json(202, { accepted: '10' }), 'retry unavailable ambiguous'],
    [answer(202, 'text/html', 'ok'), 'retry unavailable ambiguous'],
    [json(200, { accepted: 10 }), 'retry unavailable ambiguous'],
  ],
  '3xx': [
    [edge(301), 'stall redirect_refused'],
    [json(307, {}), 'stall redirect_refused'],
  ],
  "Go's bare 404": [[goNotFound(), 'resolveRoute no_batch_produce']],
  "400, 401, 403 or 404 that is not the target's": [
    [edge(400), 'retry unavailable edge'],
    [edge(401), 'retry unavailable edge'],
    [edge(403), 'retry unavailable edge'],
    [edge(404), 'retry unavailable edge'],
    [answer(404, 'text/plain', '404 page not found\n'), 'retry unavailable edge'],
    [answer(404, 'text/plain; charset=utf-8', '404 page not found'), 'retry unavailable edge'],
    [json(403, { message: 'no' }), 'retry unavailable edge'],
    [json(403, { error: null }), 'retry unavailable edge'],
    [answer(403, 'application/json', '{"error":"no"} more'), 'retry unavailable edge'],
    [answer(403, 'text/html', '{"error":"no"}'), 'retry unavailable edge'],
  ],
  '415 or invalid json to a compressed request': [
    [failure(415, 'unsupported'), 'uncompressed unavailable encoding', { compressed: true }],
    [edge(415), 'uncompressed unavailable encoding', { compressed: true }],
    [failure(400, 'invalid json: x'), 'uncompressed unavailable encoding', { compressed: true }],
  ],
  '413, from whomever': [
    [edge(413), 'splitTooLarge record_too_large'],
    [failure(413, 'request body too large'), 'splitTooLarge record_too_large'],
    [failure(413, 'message 3: message too large'), 'splitTooLarge record_too_large at 3'],
  ],
  '429, from whomever': [
    [edge(429), 'gate throttled'],
    [failure(429, 'slow down', { retryAfter: '7' }), 'gate throttled after 7000'],
  ],
  '400 too many messages': [
    [failure(400, 'too many messages: 101'), 'recapacity'],
    [failure(400, 'too many messages (at most 1000)'), 'recapacity'],
  ],
  '400 message N': [
    [failure(400, 'message 4: invalid payload'), 'resendPrefix rejected_record at 4'],
    [failure(400, 'message 123456789: x'), 'resendPrefix rejected_record at 123456789'],
  ],
  '400 read body': [[failure(400, 'read body: i/o timeout'), 'retry unavailable shrinks']],
  "another 400 of the target's": [
    [failure(400, 'invalid json: x'), 'bisect rejected_record'],
    [failure(400, 'message 1234567890: x'), 'bisect rejected_record'],
    [failure(400, 'message -1: x'), 'bisect rejected_record'],
  ],
  "the target's 401": [[failure(401, 'authentication required'), 'gate auth_failed']],
  "the target's 403": [[failure(403, 'produce not allowed'), 'stall forbidden']],
  "the target's 404": [[failure(404, 'topic not found'), 'stall target_missing']],
  '409, from whomever': [
    [edge(409), 'blockFront rejected_record'],
    [failure(409, 'topic is a delay child'), 'blockFront rejected_record'],
  ],
  '408 or 5xx, from whomever': [
    [edge(408), 'retry unavailable ambiguous'],
    [edge(502), 'retry unavailable ambiguous'],
    [failure(500, 'produce failed'), 'retry unavailable ambiguous'],
    [failure(504, 'x'), 'retry unavailable ambiguous'],
  ],
  '415 to an uncompressed request': [[failure(415, 'no content type'), 'retry unavailable edge']],
  "another 4xx of the target's": [
    [failure(422, 'no'), 'bisect rejected_record'],
    [failure(499, 'client gone'), 'bisect rejected_record'],
  ],
  'anything else': [
    [edge(405), 'retry unavailable edge'],
    [edge(451), 'retry unavailable edge'],
    [edge(101), 'retry unavailable edge'],
  ],
};

describe('the answer table', () => {
  it('has these rows, in this order', () => {
    expect(ANSWER_TABLE.map(({ name }) => name)).toEqual(Object.keys(ROWS));
  });

  it.each(Object.entries(ROWS))('%s', (name, samples) => {
    for (const [outcome, expected, other] of samples) {
      const verdict = judged(outcome, other);
      expect(`${verdict.row}: ${told(verdict)}`).toBe(`${name}: ${expected}`);
      expect(verdict.status).toBe(outcome.type === 'answer' ? outcome.status : undefined);
    }
  });

  it('an object in parameters of the media type, or in other letters, is the target’s', () => {
    expect(judged(answer(403, 'Application/JSON; charset=utf-8', '{"error":"no","more":1}')).action).toBe('stall');
  });

  it('nothing of the text of an answer is in a verdict', () => {
    expect(JSON.stringify(judged(failure(400, 'message 3: SECRET')))).not.toContain('SECRET');
  });
});

describe('Retry-After', () => {
  it.each<[string, string | undefined, number]>([
    ['whole seconds', '7', 7_000],
    ['at most a minute', '600', 60_000],
    ['none', undefined, 0],
    ['a fraction', '1.5', 0],
    ['a negative', '-3', 0],
    ['a word', 'soon', 0],
    ['a date', 'Sun, 06 Nov 1994 08:49:37 GMT', 7_000],
    ['a date that has passed', 'Sun, 06 Nov 1994 08:49:29 GMT', 0],
    ['a date far away', 'Mon, 07 Nov 1994 08:49:37 GMT', 60_000],
    ['a date on another weekday', 'Mon, 06 Nov 1994 08:49:37 GMT', 0],
    ['a date that no calendar has', 'Sun, 31 Nov 1994 08:49:37 GMT', 0],
    ['a date in an old form', 'Sunday, 06-Nov-94 08:49:37 GMT', 0],
  ])('%s', (_, header, waitMs) => {
    expect(retryAfterMs(header, NOW_MS)).toBe(waitMs);
  });

  it('dates are those of the calendar', () => {
    for (const ms of [0, 951_782_400_000, 1_709_164_800_000, 4_107_542_400_000, 1_783_000_000_000]) {
      expect(retryAfterMs(new Date(ms + 5_000).toUTCString(), ms)).toBe(5_000);
    }
  });
});

describe('reads', () => {
  it.each<[HttpOutcome, string | undefined]>([
    [json(200, {}), undefined],
    [edge(302), 'redirect_refused'],
    [edge(429), 'throttled'],
    [edge(503), 'unavailable'],
    [edge(408), 'unavailable'],
    [edge(403), 'edge'],
    [failure(401, 'x'), 'auth_failed'],
    [failure(403, 'x'), 'forbidden'],
    [failure(404, 'x'), 'target_missing'],
    [failure(400, 'x'), 'unknown'],
    [{ type: 'refused' }, 'destination_refused'],
    [{ type: 'tls' }, 'tls_failed'],
    [{ type: 'failed', timeout: true }, 'unavailable'],
  ])('%j', (outcome, name) => {
    expect(readClass(outcome)).toBe(name);
  });

  it('a listing is an object with a parent and children', () => {
    const listing = (value: object) => childrenListing(json(200, value));
    expect(listing({ parent: 'a', children: [] })).toEqual({ hasRemoteChild: false, topicId: undefined });
    expect(listing({ parent: 'a', parent_id: '', children: [{ remote: null }] })).toEqual({
      hasRemoteChild: false,
      topicId: '',
    });
    expect(listing({ parent: 'a', parent_id: 'x', children: [{}, { remote: {} }] })?.hasRemoteChild).toBe(true);
    expect([listing({ parent: 'a', children: null }), listing({ children: [] })]).toEqual([undefined, undefined]);
    expect(childrenListing(answer(200, 'text/html', '{"parent":"a","children":[]}'))).toBe(undefined);
  });
});
