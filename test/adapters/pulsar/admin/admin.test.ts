/** Calls of the admin REST against a server on loopback that answers as Pulsar 5.0.1 does. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { PulsarAdmin } from '../../../../src/adapters/pulsar/admin/index.js';
import { refusal } from '../../../support/expect.js';
import { serve } from '../../../support/http.js';

interface Seen {
  readonly call: string;
  readonly body: string;
  readonly authorization: string | undefined;
}

/** A server that gives the same answer to everything and writes down what it was asked. */
async function answering(status: number, body: unknown = '', headers: Record<string, string> = {}) {
  const seen: Seen[] = [];
  const url = await serve((request, response) => {
    void textOf(request).then((sent) => {
      const { method, url, headers: given } = request;
      seen.push({
        call: `${method} ${url?.replace('/admin/v2/', '')}`,
        body: sent,
        authorization: given.authorization,
      });
      answer(response, status, body, headers);
    });
  });
  return { url, seen };
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers);
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request) text += piece;
  return text;
}

const TRACE = '\n --- An unexpected error occurred in the server ---\n\nMessage: ';

/** A failure as the broker wraps it: the cause, and a stack trace behind it. */
function wrapped(message: string, cause = ''): object {
  const trace = `java.lang.RuntimeException: ${message}\n\tat a.B.c(B.java:1)${cause && `\nCaused by: a.E: ${cause}`}`;
  return { reason: `${TRACE}${message}\n\nStacktrace:\n\n${trace}\n` };
}

const UNAUTHORIZED = `<html>
<head><title>Error 401 Authentication required</title></head>
<body><h2>HTTP ERROR 401 Authentication required</h2></body>
</html>`;

describe('each call', () => {
  type Call = (admin: PulsarAdmin) => Promise<unknown>;
  const topic = 'topic://t/n/x';
  it.each<[string, string, string, Call]>([
    ['PUT scalable/t/n/x?numInitialSegments=4', 'layout', '{}', (a) => a.createScalable(topic, 4)],
    ['DELETE scalable/t/n/x', 'layout', '', (a) => a.deleteScalable(topic)],
    ['POST scalable/t/n/x/split/7', 'layout', '', (a) => a.split(topic, 7)],
    ['POST scalable/t/n/x/merge/2/3', 'layout', '', (a) => a.merge(topic, 2, 3)],
    ['POST scalable/t/n/x/rebucket/7?bucketCount=8', 'layout', '', (a) => a.rebucket(topic, 7, 8)],
    ['PUT scalable/t/n/x/subscriptions/a%2Fb?type=QUEUE', 'data', '', (a) => a.putSubscription(topic, 'a/b')],
    ['DELETE scalable/t/n/x/subscriptions/s', 'data', '', (a) => a.deleteSubscription(topic, 's')],
    ['POST scalable/t/n/x/subscriptions/s/skip-all', 'data', '', (a) => a.skipAll(topic, 's')],
    [
      'POST scalable/t/n/x/autoScalePolicy',
      'layout',
      '{"enabled":false}',
      (a) => a.setAutoScalePolicy(topic, { enabled: false }),
    ],
    ['PUT namespaces/t/isthmus', 'layout', '', (a) => a.createNamespace('t/isthmus')],
    [
      'PUT namespaces/t/n/compactionThreshold',
      'layout',
      '65536',
      (a) => a.setNamespacePolicy('t/n', 'compactionThreshold', 65536),
    ],
    ['POST namespaces/t/n/messageTTL', 'layout', '0', (a) => a.setNamespacePolicy('t/n', 'messageTTL', 0)],
    ['PUT persistent/t/n/p', 'layout', '', (a) => a.createPersistent('persistent://t/n/p')],
    [
      'PUT persistent/t/n/p/subscription/keep',
      'data',
      '',
      (a) => a.putPersistentSubscription('persistent://t/n/p', 'keep'),
    ],
    [
      'DELETE persistent/t/n/p/subscription/keep?force=true',
      'data',
      '',
      (a) => a.deletePersistentSubscription('persistent://t/n/p', 'keep'),
    ],
  ])('%s, with the %s token', async (call, token, body, make) => {
    const { url, seen } = await answering(204);
    const admin = new PulsarAdmin({ urls: [url], token: () => 'data', layoutToken: async () => 'layout\n' });
    expect(await make(admin)).toEqual({ type: 'ok', value: undefined });
    expect(seen).toEqual([{ call, body, authorization: `Bearer ${token}` }]);
  });

  it('goes without a token where there is none, and with the only one where there is one', async () => {
    const { url, seen } = await answering(204);
    await new PulsarAdmin({ urls: [url] }).split(topic, 0);
    await new PulsarAdmin({ urls: [url], token: () => 'only' }).split(topic, 0);
    expect(seen.map(({ authorization }) => authorization)).toEqual([undefined, 'Bearer only']);
  });

  it.each([['topic://t/n'], ['t/n/x/y'], ['topic:///n/x']])('refuses the topic %s', async (name) => {
    const { url } = await answering(204);
    await expect(new PulsarAdmin({ urls: [url] }).split(name, 0)).rejects.toThrow(/tenant\/namespace\/name/);
  });

  it.each([0, 1_025, 1.5])('refuses %s initial segments, which the broker would not', async (segments) => {
    const { url, seen } = await answering(204);
    await expect(new PulsarAdmin({ urls: [url] }).createScalable(topic, segments)).rejects.toThrow(/1\.\.1024/);
    expect(seen).toEqual([]);
  });
});

describe('answers', () => {
  const reading = async (body: unknown) => new PulsarAdmin({ urls: [(await answering(200, body)).url] });

  it('are layouts, with what isthmus does not know kept', async () => {
    const segment = (id: number, start: number, end: number) => ({
      ...{ segmentId: id, hashRange: { start, end }, state: 'ACTIVE', parentIds: [], childIds: [] },
      ...{ createdAtEpoch: 0, sealedAtEpoch: -1, createdAtMs: 1796026924695, sealedAtMs: -1 },
      ...{ entryBucketSplits: [32768], sealed: false, active: true, root: true, leaf: true, legacy: false },
    });
    const admin = await reading({
      ...{ epoch: 0, nextSegmentId: 2, properties: { k: 'v' }, deleted: false, autoScalePolicy: { enabled: false } },
      segments: { 0: segment(0, 0, 32767), 1: segment(1, 32768, 65535) },
    });
    const result = await admin.scalableLayout('t/n/x');
    const layout = result.type === 'ok' ? result.value : undefined;
    expect(layout?.active.map(({ segmentId }) => segmentId)).toEqual([0, 1]);
    expect(layout).toMatchObject({ properties: { k: 'v' }, unknownMembers: { autoScalePolicy: { enabled: false } } });
  });

  it('are subscriptions with their backlogs by segment', async () => {
    const subscriptions = {
      s1: {
        type: 'QUEUE',
        msgBacklog: 9,
        segments: { 0: { msgBacklog: 4 }, 2: { msgBacklog: 5 } },
        uncoveredSegmentIds: [3],
      },
    };
    const admin = await reading({ layout: {}, subscriptions });
    expect(await admin.subscriptions('t/n/x')).toEqual({
      type: 'ok',
      value: new Map([
        [
          's1',
          {
            type: 'QUEUE',
            backlogs: new Map([
              [0, 4],
              [2, 5],
            ]),
            uncovered: [3],
          },
        ],
      ]),
    });
  });

  it('are lists of names, and a policy that is not set is an empty answer', async () => {
    const names = ['topic://t/n/x'];
    expect(await (await reading(names)).scalableTopics('t/n')).toEqual({ type: 'ok', value: names });
    expect(await (await reading('')).autoScalePolicy('t/n/x')).toEqual({ type: 'ok', value: undefined });
    const policy = { enabled: true, minSegments: 2 };
    expect(await (await reading(policy)).autoScalePolicy('t/n/x')).toEqual({ type: 'ok', value: policy });
    expect(await (await reading('65536')).namespacePolicy('t/n', 'compactionThreshold')).toEqual({
      type: 'ok',
      value: 65536,
    });
  });

  it.each<[string, unknown, (admin: PulsarAdmin) => Promise<unknown>]>([
    ['a page', '<html></html>', (a) => a.scalableTopics('t/n')],
    ['another kind of value', { a: 1 }, (a) => a.scalableTopics('t/n')],
    ['a layout that breaks a rule', { epoch: -1 }, (a) => a.scalableLayout('t/n/x')],
    ['a backlog that is no number', { subscriptions: { s: { segments: { 0: {} } } } }, (a) => a.subscriptions('t/n/x')],
    ['a list for an object', [], (a) => a.namespacePolicies('t/n')],
  ])('that are %s prove nothing', async (_, body, make) => {
    expect(await make(await reading(body))).toMatchObject({ type: 'unavailable' });
  });
});

describe('failures', () => {
  it.each<[number, unknown, string, string]>([
    [401, UNAUTHORIZED, 'unauthorized', 'Error 401 Authentication required'],
    [401, '{\n"status":"401",\n"message":"Authentication required"\n}', 'unauthorized', 'Authentication required'],
    [403, { reason: 'Unauthorized to validate' }, 'unauthorized', 'Unauthorized to validate'],
    [404, { reason: 'Scalable topic not found: topic://t/n/x' }, 'notFound', 'Scalable topic not found: topic://t/n/x'],
    [409, { reason: 'Scalable topic already exists' }, 'conflict', 'Scalable topic already exists'],
    [412, { reason: 'bucketCount must be in [1, 1024]: 0' }, 'refused', 'bucketCount must be in [1, 1024]: 0'],
    [500, wrapped('Cannot split non-active segment: 0'), 'refused', 'Cannot split non-active segment: 0'],
    [
      500,
      wrapped('Failed to initialize controller for topic://t/n/x', 'Scalable topic not found: topic://t/n/x'),
      'notFound',
      'Scalable topic not found: topic://t/n/x',
    ],
    [
      500,
      wrapped('Failed to create: s needs to be prefixed by the authentication role'),
      'unauthorized',
      'Failed to create: s needs to be prefixed by the authentication role',
    ],
    [
      404,
      { reason: 'Not found: /loadbalance/brokers/127.0.0.1:8080' },
      'unavailable',
      'Not found: /loadbalance/brokers/127.0.0.1:8080',
    ],
    [503, { reason: 'no broker' }, 'unavailable', 'no broker'],
    [503, '', 'unavailable', 'status 503'],
    [418, 'short', 'refused', 'short'],
    [302, '', 'refused', 'status 302'],
  ])('%i %#', async (status, body, type, reason) => {
    const { url } = await answering(status, body);
    expect(await new PulsarAdmin({ urls: [url] }).split('t/n/x', 0)).toEqual({ type, reason });
  });

  it('a server that is not there is unavailable, and the next one is asked', async () => {
    const dead = 'http://127.0.0.1:1';
    const { url, seen } = await answering(204);
    expect(await new PulsarAdmin({ urls: [dead] }).split('t/n/x', 0)).toMatchObject({ type: 'unavailable' });
    const admin = new PulsarAdmin({ urls: [dead, url] });
    expect(await admin.split('t/n/x', 0)).toMatchObject({ type: 'ok' });
    expect(await admin.split('t/n/x', 1)).toMatchObject({ type: 'ok' });
    expect(seen.length).toBe(2);
  });

  it('an answer that does not come in time is unavailable', async () => {
    const url = await serve(() => undefined);
    const admin = new PulsarAdmin({ urls: [url], timeoutMs: 50 });
    expect(await admin.split('t/n/x', 0)).toMatchObject({
      type: 'unavailable',
      reason: expect.stringMatching(/in time/),
    });
  });

  it('a token that cannot be read is unavailable, and the call is not made', async () => {
    const { url, seen } = await answering(204);
    const token = () => Promise.reject(new Error('no such file'));
    const result = await new PulsarAdmin({ urls: [url], token }).split('t/n/x', 0);
    expect(result).toMatchObject({ type: 'unavailable', reason: expect.stringMatching(/no such file/) });
    expect(seen).toEqual([]);
  });

  it('a call that is given up rejects', async () => {
    const url = await serve(() => undefined);
    const admin = new PulsarAdmin({ urls: [url] });
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20);
    await expect(admin.scalableLayout('t/n/x', stop.signal)).rejects.toThrow();
  });
});

describe('redirects', () => {
  const follow = async (target: string, more: { readonly redirectUrls?: readonly string[] } = {}) => {
    const first = await answering(307, '', {
      location: `${target}/admin/v2/scalable/t/n/x/split/0?authoritative=true`,
    });
    const admin = new PulsarAdmin({ urls: [first.url], token: () => 'secret', ...more });
    return { first, result: await admin.split('t/n/x', 0) };
  };

  it('lead to a configured host, with method and token', async () => {
    const second = await answering(204);
    const { result } = await follow(second.url, { redirectUrls: [second.url] });
    expect(result).toMatchObject({ type: 'ok' });
    const call = 'POST scalable/t/n/x/split/0?authoritative=true';
    expect(second.seen).toEqual([{ call, body: '', authorization: 'Bearer secret' }]);
  });

  it('lead nowhere else', async () => {
    const second = await answering(204);
    const { result } = await follow(second.url);
    expect(result).toMatchObject({ type: 'unavailable', reason: expect.stringMatching(/is not configured/) });
    expect(second.seen).toEqual([]);
  });

  it('do not go in circles', async () => {
    const url = await serve((request, response) => answer(response, 307, '', { location: String(request.url) }));
    expect(await new PulsarAdmin({ urls: [url] }).split('t/n/x', 0)).toMatchObject({ type: 'unavailable' });
  });
});

describe('options', () => {
  it.each([
    [{ urls: [] }, /at least one/],
    [{ urls: ['pulsar://h:1'] }, /http/],
    [{ urls: ['http://h/path'] }, /without a path/],
    [{ urls: ['http://user:pass@h'] }, /credentials/],
    [{ urls: ['http://h'], redirectUrls: ['h'] }, /http/],
    [{ urls: ['http://h'], timeoutMs: 0 }, /timeoutMs/],
  ])('%j is refused', (options, rule) => {
    expect(refusal(() => new PulsarAdmin(options))).toBe('invalidArgument');
    expect(() => new PulsarAdmin(options)).toThrow(rule);
  });

  it('a credential in a URL is not shown', () => {
    expect(() => new PulsarAdmin({ urls: ['http://user:pass@h'] })).not.toThrow(/pass/);
  });
});
