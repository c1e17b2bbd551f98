import * as crypto from 'node:crypto';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  createHttpExchangeHandler,
  type HttpExchangeHandlerOptions,
  nodeListener,
} from '../../src/adapters/http/index.js';
import { formatPeerState } from '../../src/convergence/parse-state.js';
import { IsthmusError } from '../../src/errors.js';
import { arbPeerState } from '../../src/testing/peer-states.js';
import { recordingHandler, requestFor, serve, stateOf } from '../support/http.js';

vi.mock('node:crypto', async (original) => {
  const real = await original<typeof crypto>();
  return { ...real, timingSafeEqual: vi.fn(real.timingSafeEqual) };
});

afterEach(() => vi.clearAllMocks());

const TOKEN = 'token-of-a.0123456789';
const OTHER = 'token-of-c.0123456789';
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

type Answers = Parameters<typeof recordingHandler>[0];

/** A server of cluster b for peers a and c, and a way to call it. */
async function cluster(answers: Answers = {}, options: Partial<HttpExchangeHandlerOptions> = {}) {
  const handler = recordingHandler(answers);
  const fetchStyle = createHttpExchangeHandler({
    cluster: 'b',
    handler,
    credentials: { a: TOKEN, c: [OTHER] },
    ...options,
  });
  const url = await serve(nodeListener(fetchStyle));
  const post = async (body: NonNullable<RequestInit['body']>, init: RequestInit = {}) => {
    const response = await fetch(url, { method: 'POST', headers: HEADERS, body, redirect: 'manual', ...init });
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
  };
  return { url, handler, post };
}

function callOf(...topics: unknown[]): string {
  return JSON.stringify({ cluster: 'a', requests: topics.map((topic) => json(topic)) });
}

const json = (topic: unknown): unknown => (typeof topic === 'string' ? requestFor(topic) : topic);

describe('a call about one topic', () => {
  it('200: hands the state to the host and answers with its state', async () => {
    const { handler, post } = await cluster();
    const { status, headers, body } = await post(callOf('t'));
    expect({ status, body }).toEqual({
      status: 200,
      body: { cluster: 'b', results: [{ topic: 't', state: stateOf('b') }] },
    });
    expect(headers.get('content-type')).toBe('application/json');
    expect(handler.calls).toEqual([{ from: 'a', requests: [requestFor('t')] }]);
  });

  it.each(['wrongTerm', 'foldLimit', 'failed'] as const)(
    '200: %s travels with the state that explains it',
    async (code) => {
      const error = { code, message: 'no' };
      const { post } = await cluster({ t: { state: stateOf('b', { term: 9 }), error } });
      const { status, body } = await post(callOf('t'));
      expect(status).toBe(200);
      expect(body.results).toEqual([{ topic: 't', state: stateOf('b', { term: 9 }), error }]);
    },
  );

  it.each([
    [403, 'notMember'],
    [404, 'unknownTopic'],
    [400, 'invalidState'],
    [503, 'notLeader'],
  ] as const)('%i for the host’s %s', async (status, code) => {
    const error = { code, message: 'no' };
    const { post } = await cluster({ t: { error } });
    const answer = await post(callOf('t'));
    expect(answer).toMatchObject({ status, body: { cluster: 'b', topic: 't', error } });
    expect(answer.headers.get('retry-after')).toBe(status === 503 ? '1' : null);
  });

  it('307 to the leader where it is known, 503 where it is not', async () => {
    const error = { code: 'notLeader', message: 'not here' } as const;
    const leaderUrl = (topic: string) => (topic === 't' ? 'http://leader.example/x' : undefined);
    const { post } = await cluster({ t: { error }, u: { error } }, { leaderUrl });
    const moved = await post(callOf('t'));
    expect([moved.status, moved.headers.get('location'), moved.body.error]).toEqual([
      307,
      'http://leader.example/x',
      error,
    ]);
    const lost = await post(callOf('u'));
    expect([lost.status, lost.headers.get('location')]).toEqual([503, null]);
  });

  it('500 without internals when the host fails; the host is told', async () => {
    const seen: unknown[] = [];
    const fault = new IsthmusError('invalidLayout', 'secret of the store');
    const { post } = await cluster(
      {},
      { handler: { exchange: () => Promise.reject(fault) }, onError: (e) => seen.push(e) },
    );
    const { status, body } = await post(callOf('t'));
    expect(status).toBe(500);
    expect(body.error.code).toBe('internal');
    expect(JSON.stringify(body)).not.toContain('secret');
    expect(seen).toEqual([fault]);
  });

  it.each([
    ['too few', []],
    ['of another topic', [{ topic: 'x', state: stateOf('b') }]],
  ])('500 when the host’s results are %s', async (_, results) => {
    const { post } = await cluster({}, { handler: { exchange: async () => results } });
    expect((await post(callOf('t'))).status).toBe(500);
  });
});

describe('C17: a call about several topics', () => {
  it('answers 200 with one result per topic, in order, failures among them', async () => {
    const error = { code: 'unknownTopic', message: 'no such topic' } as const;
    const { handler, post } = await cluster({ u: { error } });
    const invalid = { topic: 'v', state: { ...stateOf('a'), epoch: -1 } };
    const { status, body } = await post(callOf('t', 'u', invalid, 'w'));
    expect(status).toBe(200);
    expect(body.results).toEqual([
      { topic: 't', state: stateOf('b') },
      { topic: 'u', error },
      {
        topic: 'v',
        error: { code: 'invalidState', message: expect.stringContaining('requests[2].state.epoch is -1') },
      },
      { topic: 'w', state: stateOf('b') },
    ]);
    expect(handler.calls.map(({ requests }) => requests.map(({ topic }) => topic))).toEqual([['t', 'u', 'w']]);
  });

  it('does not ask the host when no state is valid', async () => {
    const { handler, post } = await cluster();
    const { status, body } = await post(callOf({ topic: 't', state: 1 }, { topic: 'u', state: 2 }));
    expect([status, body.results.length]).toEqual([200, 2]);
    expect(handler.calls).toEqual([]);
  });
});

describe('a call that is refused never reaches the host', () => {
  it.each<[number, string, string | Uint8Array, RequestInit | undefined, RegExp]>([
    [405, 'methodNotAllowed', callOf('t'), { method: 'PUT' }, /POST/],
    [401, 'unauthorized', callOf('t'), { headers: { 'content-type': 'application/json' } }, /token/],
    [401, 'unauthorized', callOf('t'), { headers: { ...HEADERS, authorization: `Basic ${TOKEN}` } }, /token/],
    [401, 'unauthorized', callOf('t'), { headers: { ...HEADERS, authorization: 'Bearer ' } }, /token/],
    [401, 'unauthorized', callOf('t'), { headers: { ...HEADERS, authorization: `Bearer ${TOKEN}x` } }, /token/],
    [
      401,
      'unauthorized',
      callOf('t'),
      { headers: { ...HEADERS, authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` } },
      /t/,
    ],
    [403, 'forbidden', callOf('t'), { headers: { ...HEADERS, authorization: `Bearer ${OTHER}` } }, /cluster is "a"/],
    [403, 'forbidden', callOf(requestFor('t', 'c')), undefined, /state of "t"/],
    [403, 'forbidden', callOf('s', requestFor('t', 'c')), undefined, /state of "t"/],
    [415, 'unsupportedMediaType', callOf('t'), { headers: { ...HEADERS, 'content-type': 'text/plain' } }, /json/],
    [415, 'unsupportedMediaType', callOf('t'), { headers: { authorization: HEADERS.authorization } }, /json/],
    [
      415,
      'unsupportedMediaType',
      callOf('t'),
      { headers: { ...HEADERS, 'content-type': 'application/json; charset=latin1' } },
      /UTF-8/,
    ],
    [415, 'unsupportedMediaType', callOf('t'), { headers: { ...HEADERS, 'content-encoding': 'gzip' } }, /encoding/],
    [400, 'invalidRequest', '', undefined, /body is not JSON/],
    [400, 'invalidRequest', '{"requests":[', undefined, /body is not JSON/],
    [400, 'invalidRequest', new Uint8Array([0x22, 0xff, 0x22]), undefined, /body is not UTF-8/],
    [400, 'invalidRequest', `${'['.repeat(200_000)}${']'.repeat(200_000)}`, undefined, /nested more than/],
    [400, 'invalidRequest', '[]', undefined, /body is \[\]/],
    [400, 'invalidRequest', 'null', undefined, /body is null/],
    [400, 'invalidRequest', '{}', undefined, /requests is undefined/],
    [400, 'invalidRequest', callOf(), undefined, /requests has 0 members/],
    [400, 'invalidRequest', callOf(...Array.from({ length: 6 }, (_, i) => `t${i}`)), undefined, /1\.\.5 topics/],
    [400, 'invalidRequest', callOf(null), undefined, /requests\[0\] is null/],
    [
      400,
      'invalidState',
      callOf({ topic: 't', state: { ...stateOf('a'), caps: null } }),
      undefined,
      /state\.caps is null/,
    ],
    [
      400,
      'invalidState',
      callOf({ topic: 't', state: { ...stateOf('a'), shape: { cells: [] } } }),
      undefined,
      /state\.shape/,
    ],
  ])('%i %s: %#', async (status, code, body, init, message) => {
    const { handler, post } = await cluster({}, { maxTopics: 5 });
    const answer = await post(body, init);
    expect([answer.status, answer.body.error.code]).toEqual([status, code]);
    expect(answer.body.error.message).toMatch(message);
    expect(handler.calls).toEqual([]);
    if (status === 405) expect(answer.headers.get('allow')).toBe('POST');
    if (status === 401) expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="isthmus"/);
    expect(JSON.stringify(answer.body)).not.toContain(TOKEN);
  });

  it('413: a body that says it is too long is not read, one that turns out to be is given up', async () => {
    const { handler, post } = await cluster({}, { maxRequestBytes: 2000 });
    expect((await post(callOf('t'))).status).toBe(200);
    const tooLong = callOf(...Array.from({ length: 50 }, (_, i) => `t${i}`));
    expect(await post(tooLong)).toMatchObject({ status: 413, body: { error: { code: 'tooLarge' } } });
    const streamed = new ReadableStream({
      start(controller) {
        for (const piece of tooLong.match(/.{1,500}/gs) ?? []) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    expect((await post(streamed, { duplex: 'half' })).status).toBe(413);
    expect(handler.calls).toHaveLength(1);
  });

  it('413 at exactly one byte more than the limit', async () => {
    const exact = callOf('t');
    const { post } = await cluster({}, { maxRequestBytes: exact.length });
    expect((await post(exact)).status).toBe(200);
    expect((await post(`${exact} `)).status).toBe(413);
  });

  it('mutated calls: never a 500, and never a foreign or broken state to the host', async () => {
    const handler = recordingHandler();
    const answer = createHttpExchangeHandler({ cluster: 'b', handler, credentials: { a: TOKEN } });
    const mutation = fc.record({
      at: fc.nat(),
      length: fc.nat({ max: 8 }),
      text: fc.oneof(
        fc.string({ maxLength: 6 }),
        fc.constantFrom('1e999', '-1', 'null', '"', '[', ']', '{', '}', ',', '\\', '9007199254740993'),
      ),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbPeerState({ cluster: 'a' }), { minLength: 1, maxLength: 3 }),
        fc.array(mutation, { minLength: 1, maxLength: 3 }),
        async (states, mutations) => {
          let body = JSON.stringify({
            cluster: 'a',
            requests: states.map((state, i) => ({ topic: `t${i}`, state: formatPeerState(state) })),
          });
          for (const { at, length, text } of mutations) {
            const start = at % body.length;
            body = body.slice(0, start) + text + body.slice(start + length);
          }
          handler.calls.length = 0;
          const response = await answer(new Request('http://b/', { method: 'POST', headers: HEADERS, body }));
          expect([200, 400, 403]).toContain(response.status);
          if (response.status !== 200) expect(handler.calls).toEqual([]);
          for (const { from, requests } of handler.calls) {
            expect(from).toBe('a');
            for (const { state } of requests) expect(state.cluster).toBe('a');
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('credentials', () => {
  it('two tokens of a peer are accepted while one replaces the other', async () => {
    const { handler, post } = await cluster({}, { credentials: { a: [TOKEN, 'next'], c: OTHER } });
    for (const token of [TOKEN, 'next']) {
      const init = { headers: { ...HEADERS, authorization: `bearer ${token}` } };
      expect((await post(callOf('t'), init)).status).toBe(200);
    }
    expect((await post(callOf('t'), { headers: { ...HEADERS, authorization: 'Bearer former' } })).status).toBe(401);
    expect(handler.calls.map(({ from }) => from)).toEqual(['a', 'a']);
  });

  it('every token is compared, in constant time, whatever is presented and of whatever length', async () => {
    const { post } = await cluster({}, { credentials: { a: [TOKEN, 'next'], c: OTHER } });
    const compare = vi.mocked(crypto.timingSafeEqual);
    for (const presented of [TOKEN, 'next', 'x', 'x'.repeat(5000), '']) {
      compare.mockClear();
      await post(callOf('t'), { headers: { ...HEADERS, authorization: `Bearer ${presented}` } });
      expect(compare.mock.calls.map(([a, b]) => [a.byteLength, b.byteLength])).toEqual([
        [32, 32],
        [32, 32],
        [32, 32],
      ]);
    }
  });

  it.each<[string, HttpExchangeHandlerOptions['credentials']]>([
    ['an empty token', { a: '' }],
    ['a token with a space', { a: 'se cret' }],
    ['a token with a line break', { a: ['se\ncret'] }],
    ['a token of two clusters', { a: 'secret', c: ['secret'] }],
    ['what is no text', { a: undefined as unknown as string }],
  ])('refuses %s without showing it', (_, credentials) => {
    const create = () => createHttpExchangeHandler({ cluster: 'b', handler: recordingHandler(), credentials });
    expect(create).toThrow(expect.objectContaining({ code: 'invalidArgument' }));
    expect(create).not.toThrow(/secret|se.cret/s);
  });

  it.each([{ maxRequestBytes: 0 }, { maxTopics: 1.5 }])('refuses the limit %o', (limit) => {
    const options = { cluster: 'b', handler: recordingHandler(), credentials: {}, ...limit };
    expect(() => createHttpExchangeHandler(options)).toThrow(expect.objectContaining({ code: 'invalidArgument' }));
  });
});
