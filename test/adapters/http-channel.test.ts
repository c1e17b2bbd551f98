import { getEventListeners } from 'node:events';
import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  createHttpExchangeHandler,
  createHttpPeerChannel,
  type HttpPeer,
  type HttpPeerChannelOptions,
  nodeListener,
} from '../../src/adapters/http/index.js';
import type { ExchangeReply } from '../../src/ports/index.js';
import { type RecordingHandler, recordingHandler, requestFor, serve, stateOf } from '../support/http.js';

const TOKEN = 'token-of-a.0123456789';
const never = new AbortController().signal;

type ChannelOptions = Partial<HttpPeerChannelOptions> & Partial<Pick<HttpPeer, 'allowedHosts'>>;

function channelTo(url: string, { allowedHosts, ...options }: ChannelOptions = {}) {
  const peer = { url, token: TOKEN, ...(allowedHosts && { allowedHosts }) };
  return createHttpPeerChannel({ cluster: 'a', peers: { b: peer }, ...options });
}

/** Calls peer b about topics, as cluster a. */
function call(url: string, options: ChannelOptions = {}, topics: readonly string[] = ['t']): Promise<ExchangeReply> {
  return channelTo(url, options).exchange(
    'b',
    topics.map((topic) => requestFor(topic)),
    never,
  );
}

/** A server of cluster b. */
function peer(handler: RecordingHandler, leaderUrl?: (topic: string) => string | undefined): Promise<string> {
  const options = { cluster: 'b', handler, credentials: { a: TOKEN }, ...(leaderUrl && { leaderUrl }) };
  return serve(nodeListener(createHttpExchangeHandler(options)));
}

/** A server that answers every call alike. */
function answering(status: number, body: unknown = '', headers: Record<string, string> = {}): Promise<string> {
  return serve((req, res) => {
    req.resume();
    res.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

/** A fetch that answers from a script, and what it was asked. */
function scripted(answer: (url: string, init: RequestInit) => Response | Promise<Response>) {
  const asked: { url: string; init: RequestInit }[] = [];
  const fetch = async (input: unknown, init: RequestInit = {}) => {
    asked.push({ url: String(input), init });
    return answer(String(input), init);
  };
  return { fetch: fetch as typeof globalThis.fetch, asked };
}

const redirectTo = (location: string, status = 307) => new Response(null, { status, headers: { location } });

describe('a call to a peer', () => {
  it('carries every state there and every result back, a failed topic among them (C17)', async () => {
    const error = { code: 'foldLimit', message: 'does not fit' } as const;
    const handler = recordingHandler({ u: { state: stateOf('b', { epoch: 7 }), error } });
    expect(await call(await peer(handler), {}, ['t', 'u', 'v'])).toEqual({
      type: 'answered',
      results: [
        { topic: 't', state: stateOf('b') },
        { topic: 'u', state: stateOf('b', { epoch: 7 }), error },
        { topic: 'v', state: stateOf('b') },
      ],
    });
    expect(handler.calls).toEqual([{ from: 'a', requests: ['t', 'u', 'v'].map((topic) => requestFor(topic)) }]);
  });

  it.each(['unknownTopic', 'notMember', 'invalidState', 'notLeader', 'wrongTerm', 'foldLimit', 'failed'] as const)(
    '%s reads the same whether one topic was asked or two',
    async (code) => {
      const result = { topic: 't', state: stateOf('b'), error: { code, message: 'no' } };
      const url = await peer(recordingHandler({ t: result }));
      expect(await call(url)).toEqual({ type: 'answered', results: [result] });
      const both = await call(url, {}, ['t', 'u']);
      expect(both).toEqual({ type: 'answered', results: [result, { topic: 'u', state: stateOf('b') }] });
    },
  );

  it('about nothing is answered without a call; to a peer without an address it fails', async () => {
    const { fetch, asked } = scripted(() => new Response());
    const channel = channelTo('http://b.example/', { fetch });
    expect(await channel.exchange('b', [], never)).toEqual({ type: 'answered', results: [] });
    for (const name of ['c', 'constructor', '__proto__']) {
      expect(await channel.exchange(name, [requestFor('t')], never)).toMatchObject({ type: 'failed' });
    }
    expect(asked).toEqual([]);
  });
});

describe('C19: a peer without an exchange', () => {
  const error = (code: unknown) => ({ error: { code, message: 'x' } });

  it.each<[string, unknown]>([
    ['an empty body', ''],
    ['a page', '<html>not found</html>'],
    ['another server’s JSON', { error: { code: 'NOT_FOUND', message: 'no such path' } }],
    ['a name of Object’s as the code', error('toString')],
    ['an error that is text', { error: 'unknownTopic' }],
    ['JSON null', null],
    ['a body longer than the limit', 'x'.repeat(5000)],
  ])('404 with %s: unsupported', async (_, body) => {
    const reply = await call(await answering(404, body), { maxResponseBytes: 4000 });
    expect(reply).toMatchObject({ type: 'unsupported' });
  });

  it('404 unknownTopic is the topic’s answer, or a failure where several were asked; never unsupported', async () => {
    const url = await answering(404, error('unknownTopic'));
    const result = { topic: 't', ...error('unknownTopic') };
    expect(await call(url)).toEqual({ type: 'answered', results: [result] });
    expect(await call(url, {}, ['t', 'u'])).toEqual({ type: 'failed', reason: 'answer 404 unknownTopic: x' });
  });

  it.each([401, 403, 405, 500, 502])('%i is a failure, ours or not', async (status) => {
    expect(await call(await answering(status, 'x'))).toEqual({ type: 'failed', reason: `answer ${status}` });
    const ours = await call(await answering(status, error('unauthorized')));
    expect(ours).toEqual({ type: 'failed', reason: `answer ${status} unauthorized: x` });
  });
});

describe('C21: an answer that breaks a rule', () => {
  it.each<[string, unknown, RegExp]>([
    ['is a page', '<html>', /body is not JSON/],
    ['is empty', '', /body is not JSON/],
    ['is a list', [], /results is undefined/],
    ['is nested without end', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, /nested/],
    ['has no results', { cluster: 'b' }, /results is undefined/],
    ['has too few results', { results: [] }, /0 members for 1 topics/],
    ['has another topic’s result', { results: [{ topic: 'u', state: stateOf('b') }] }, /in another order/],
    ['has a result that is no object', { results: [7] }, /results\[0\] is 7/],
    ['comes from another cluster', { cluster: 'c', results: [{ topic: 't', state: stateOf('c') }] }, /cluster "c"/],
  ])('fails as a whole when it %s', async (_, body, reason) => {
    const reply = await call(await answering(200, body));
    expect(reply).toEqual({ type: 'failed', reason: expect.stringMatching(reason) });
  });

  it.each<[string, object, RegExp]>([
    [
      'a broken state',
      { state: { ...stateOf('b'), epoch: 2 ** 53 } },
      /results\[0\]\.state\.epoch is 9007199254740992/,
    ],
    ['no state and no error', {}, /results\[0\]/],
    ['another cluster’s state', { state: stateOf('c') }, /the state is that of cluster "c"/],
    ['an unknown error', { error: { code: 'x', message: '' } }, /results\[0\]\.error\.code/],
  ])('costs only its topic when a result has %s', async (_, members, message) => {
    const results = [
      { topic: 't', ...members },
      { topic: 'u', state: stateOf('b') },
    ];
    expect(await call(await answering(200, { results }), {}, ['t', 'u'])).toEqual({
      type: 'answered',
      results: [
        { topic: 't', error: { code: 'failed', message: expect.stringMatching(message) } },
        { topic: 'u', state: stateOf('b') },
      ],
    });
  });

  it('is longer than the limit: declared or streamed, it is not read to its end', async () => {
    const declared = await answering(200, 'x'.repeat(5000));
    let closed: () => void;
    const cut = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const streamed = await serve((_, res) => {
      res.writeHead(200);
      const timer = setInterval(() => res.write('x'.repeat(1000)), 1);
      res.on('close', () => {
        clearInterval(timer);
        closed();
      });
    });
    for (const url of [declared, streamed]) {
      const reply = await call(url, { maxResponseBytes: 4000 });
      expect(reply).toEqual({ type: 'failed', reason: 'the answer is longer than 4000 bytes' });
    }
    await cut;
  });
});

describe('B75: redirects', () => {
  it('follows the leader’s address on a configured host, with method, body and credential', async () => {
    const leading = recordingHandler();
    const leader = await peer(leading);
    const following = recordingHandler({ t: { error: { code: 'notLeader', message: 'over there' } } });
    const follower = await peer(following, () => `${leader}/elsewhere`);
    const reply = await call(follower, { allowedHosts: [new URL(leader).host] });
    expect(reply).toEqual({ type: 'answered', results: [{ topic: 't', state: stateOf('b') }] });
    expect(leading.calls).toEqual([{ from: 'a', requests: [requestFor('t')] }]);
  });

  it('does not follow to another host or port, and sends nothing there', async () => {
    let reached = 0;
    const other = await serve((_, res) => {
      reached++;
      res.end();
    });
    const reply = await call(await answering(307, '', { location: other }), {
      allowedHosts: ['127.0.0.1', 'x.example'],
    });
    expect(reply).toEqual({
      type: 'failed',
      reason: expect.stringContaining(`${new URL(other).host} is not followed`),
    });
    expect(reached).toBe(0);
  });

  it.each<[string, string, number, RegExp]>([
    ['303', 'http://b.example/x', 303, /303 is not followed/],
    ['302 to the inside', 'http://169.254.169.254/', 302, /302 is not followed/],
    ['307 to the inside', 'http://169.254.169.254/', 307, /169\.254\.169\.254 is not followed/],
    ['another scheme', 'ftp://b.example/', 307, /to ftp: is not followed/],
    ['a credential in the URL', 'http://u:p@b.example/', 307, /credential/],
    ['what is no URL', 'http://[', 308, /no URL/],
    ['a host that begins like ours', 'http://b.example.evil.example/', 307, /not followed/],
    ['a user part that looks like ours', 'http://b.example@evil.example/', 307, /credential/],
  ])('does not follow %s', async (_, location, status, reason) => {
    const { fetch, asked } = scripted(() => redirectTo(location, status));
    const reply = await call('http://b.example/', { fetch });
    expect(reply).toEqual({ type: 'failed', reason: expect.stringMatching(reason) });
    expect(asked).toHaveLength(1);
  });

  it('a redirect without a location fails', async () => {
    expect(await call(await answering(308))).toEqual({ type: 'failed', reason: 'redirect 308 without a location' });
  });

  it('never from https to http; the other way round only to a configured host', async () => {
    const down = scripted(() => redirectTo('http://b.example/'));
    const reply = await call('https://b.example/', { fetch: down.fetch });
    expect(reply).toEqual({ type: 'failed', reason: expect.stringContaining('from https: to http: is not followed') });
    expect(down.asked).toHaveLength(1);

    const results = [{ topic: 't', state: stateOf('b') }];
    const up = scripted((url) =>
      url.startsWith('https') ? Response.json({ results }) : redirectTo('https://b.example/'),
    );
    expect(await call('http://b.example/', { fetch: up.fetch })).toEqual({ type: 'answered', results });
  });

  it('two steps never make a downgrade of what one may not', async () => {
    const { fetch, asked } = scripted((url) =>
      redirectTo(url === 'http://b.example/' ? 'https://b.example/' : 'http://b.example/2'),
    );
    expect(await call('http://b.example/', { fetch })).toMatchObject({ type: 'failed' });
    expect(asked.map(({ url }) => url)).toEqual(['http://b.example/', 'https://b.example/']);
  });

  it('takes relative locations, configured hosts in any spelling, and keeps every header', async () => {
    const results = [{ topic: 't', state: stateOf('b') }];
    const { fetch, asked } = scripted((url) => {
      if (url === 'http://b.example/x/exchange') return redirectTo('../leader', 308);
      return url === 'http://b.example/leader' ? redirectTo('http://B2.example:80/') : Response.json({ results });
    });
    const reply = await call('http://b.example/x/exchange', { fetch, allowedHosts: ['B2.EXAMPLE:80'] });
    expect(reply).toEqual({ type: 'answered', results });
    expect(asked.map(({ url }) => url)).toEqual([
      'http://b.example/x/exchange',
      'http://b.example/leader',
      'http://b2.example/',
    ]);
    const [first, ...later] = asked.map(({ init: { method, headers, body, redirect } }) => ({
      method,
      headers,
      body,
      redirect,
    }));
    expect(first).toMatchObject({ method: 'POST', headers: { authorization: `Bearer ${TOKEN}` }, redirect: 'manual' });
    expect(later).toEqual([first, first]);
  });

  it('a circle ends after the hops that are allowed', async () => {
    let hops = 0;
    const url = await serve((req, res) => {
      hops++;
      req.resume();
      res.writeHead(307, { location: `/${hops}` }).end();
    });
    const reply = await call(url, { maxRedirects: 4 });
    expect(reply).toEqual({ type: 'failed', reason: 'more than 4 redirects' });
    expect(hops).toBe(5);
    expect(await call(url, { maxRedirects: 0 })).toEqual({ type: 'failed', reason: 'more than 0 redirects' });
  });
});

describe('time', () => {
  const silent: RequestListener = () => undefined;
  const halting: RequestListener = (_, res) => {
    res.writeHead(200).write('{"results":[');
  };

  it.each<[string, RequestListener]>([
    ['never answers', silent],
    ['stops in the middle of its answer', halting],
  ])('a peer that %s has failed after timeoutMs', async (_, listener) => {
    const reply = await call(await serve(listener), { timeoutMs: 60 });
    expect(reply).toEqual({ type: 'failed', reason: 'no answer within 60 ms' });
  });

  it.each<[string, RequestListener]>([
    ['never answers', silent],
    ['stops in the middle of its answer', halting],
  ])('the caller’s signal ends a call to a peer that %s, with its reason', async (_, listener) => {
    const url = await serve(listener);
    const caller = new AbortController();
    const reply = channelTo(url).exchange('b', [requestFor('t')], caller.signal);
    setTimeout(() => caller.abort(new Error('leader lost')), 60);
    await expect(reply).rejects.toThrow('leader lost');
  });

  it('a caller’s signal that outlives many calls keeps no trace of them', async () => {
    const caller = new AbortController();
    const channel = channelTo(await peer(recordingHandler()));
    await channel.exchange('b', [requestFor('t')], caller.signal);
    await channel.exchange('b', [requestFor('u')], caller.signal);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('a signal that has aborted before: no call', async () => {
    const { fetch, asked } = scripted(() => new Response());
    const reply = channelTo('http://b.example/', { fetch }).exchange('b', [requestFor('t')], AbortSignal.abort());
    await expect(reply).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    expect(asked).toEqual([]);
  });

  it('redirects share one time limit', async () => {
    const url = await serve((req, res) => {
      req.resume();
      setTimeout(() => res.writeHead(307, { location: '/' }).end(), 40);
    });
    const reply = await call(url, { timeoutMs: 100, maxRedirects: 100 });
    expect(reply).toEqual({ type: 'failed', reason: 'no answer within 100 ms' });
  });

  it('a peer that is not there, or cuts the connection, has failed with the network’s reason', async () => {
    const cutting = await serve((req) => req.socket.destroy());
    expect(await call(cutting)).toEqual({ type: 'failed', reason: expect.stringMatching(/fetch failed: ./) });
    const nowhere = await call('http://127.0.0.1:1/');
    expect(nowhere).toEqual({
      type: 'failed',
      reason: expect.stringMatching(/fetch failed: .*(ECONNREFUSED|bad port)/),
    });
  });
});

describe('a token is never in what is reported', () => {
  const echo = `you sent Bearer ${TOKEN}!`;

  it.each<[string, number, unknown]>([
    ['a refusal of the call', 403, { error: { code: 'forbidden', message: echo } }],
    ['a refusal of the topic', 404, { error: { code: 'unknownTopic', message: echo } }],
    ['a result', 200, { results: [{ topic: 't', error: { code: 'failed', message: echo } }] }],
    [
      'a broken state, cut off within the token',
      200,
      {
        results: [
          {
            topic: 't',
            state: { ...stateOf('b'), cluster: 'x'.repeat(230) + TOKEN, epoch: `${'x'.repeat(110)}${TOKEN}` },
          },
        ],
      },
    ],
    ['a broken topic', 200, { results: [{ topic: { [TOKEN]: 1 } }] }],
    [
      'the state of a cluster of that name',
      200,
      { results: [{ topic: 't', state: stateOf(`${'x'.repeat(110)}${TOKEN}`) }] },
    ],
    ['the cluster', 200, { cluster: `${'x'.repeat(110)}${TOKEN}`, results: [] }],
  ])('echoed by a peer in %s', async (_, status, body) => {
    const reply = JSON.stringify(await call(await answering(status, body)));
    expect(reply).not.toContain(TOKEN.slice(0, 6));
    expect(reply).toMatch(/\[token\]|repeats the credential/);
  });

  it('thrown by fetch', async () => {
    const { fetch } = scripted(() => {
      throw new TypeError('odd', { cause: new Error(`header Bearer ${TOKEN}`) });
    });
    const reply = await call('http://b.example/', { fetch });
    expect(reply).toEqual({ type: 'failed', reason: 'odd: header Bearer [token]' });
  });

  it('a long message is cut, after the token has gone', async () => {
    const message = `${'x'.repeat(990)}${TOKEN}${'x'.repeat(5000)}`;
    const reply = await call(await answering(403, { error: { code: 'forbidden', message } }));
    expect(JSON.stringify(reply)).not.toContain('token-of');
    expect(JSON.stringify(reply).length).toBeLessThan(1100);
  });
});

describe('options', () => {
  const url = 'http://b.example/';
  it.each<[string, unknown, RegExp]>([
    ['no token', { url }, /peers\.b\.token/],
    ['an empty token', { url, token: '' }, /peers\.b\.token/],
    ['a token with a line break', { url, token: 'secret\n' }, /peers\.b\.token/],
    ['no URL', { url: '/secret', token: 't' }, /peers\.b\.url/],
    ['another scheme', { url: 'file:///secret', token: 't' }, /peers\.b\.url is of scheme file:/],
    ['a credential in the URL', { url: 'http://u:secret@b/', token: 't' }, /peers\.b\.url carries/],
    ['a path as allowed host', { url, token: 't', allowedHosts: ['x/y'] }, /peers\.b\.allowedHosts has "x\/y"/],
    ['an empty allowed host', { url, token: 't', allowedHosts: [''] }, /peers\.b\.allowedHosts/],
  ])('refuses %s without showing a secret', (_, b, message) => {
    const create = () => createHttpPeerChannel({ cluster: 'a', peers: { b: b as HttpPeer } });
    expect(create).toThrow(expect.objectContaining({ code: 'invalidArgument' }));
    expect(create).toThrow(message);
    expect(create).not.toThrow(/secret/);
  });

  it.each([{ timeoutMs: 0 }, { timeoutMs: 2 ** 31 }, { maxResponseBytes: 0 }, { maxRedirects: -1 }])(
    'refuses %o',
    (limit) => {
      expect(() => channelTo(url, limit)).toThrow(expect.objectContaining({ code: 'invalidArgument' }));
    },
  );
});
