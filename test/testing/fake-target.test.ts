/** The fake target over real HTTPS: its certificates, every fault, and going down and up again while it is in use. */
import { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { afterEach, describe, expect, it } from 'vitest';
import {
  createAuthority,
  edgeAnswer,
  errorAnswer,
  type FakeTarget,
  type FakeTargetOptions,
  startFakeTarget,
  type TargetFault,
} from '../../src/testing/index.js';
import { until } from '../support/until.js';

let target: FakeTarget;
let agent: Agent;
afterEach(async () => {
  agent.destroy();
  await target.close();
});

async function start(options: FakeTargetOptions = {}, { keepAlive = false } = {}): Promise<void> {
  target = await startFakeTarget(options);
  agent = new Agent({ keepAlive, ca: target.caPem });
}

interface Ask {
  readonly path?: string;
  readonly body?: string;
  readonly timeoutMs?: number;
}

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What a client sees: an answer, or the code of what went wrong before it. */
function ask({ path = '/v1/topics/orders/produce/batch', body, timeoutMs = 5_000 }: Ask = {}): Promise<Got | string> {
  const { username, password } = target.credential;
  return new Promise((resolve) => {
    const request = httpsRequest(`${target.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      agent,
      auth: `${username}:${password}`,
      headers: { 'content-type': 'application/json', 'x-narad-client': 'test/1' },
      signal: AbortSignal.timeout(timeoutMs),
    });
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.name));
    request.on('response', (response) => {
      let text = '';
      const { statusCode: status = 0, headers } = response;
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('error', (error: NodeJS.ErrnoException) => resolve(`${error.code} after ${status}: ${text}`));
      response.on('end', () => resolve({ status, headers, text }));
    });
    request.end(body);
  });
}

const BATCH = '{"messages":[{"key":"k","payload":{"n":1}},{"payload":2}]}';
const batch = (timeoutMs?: number) => ask({ body: BATCH, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
const statusOf = (got: Got | string) => (typeof got === 'string' ? got : got.status);

describe('a target that works', () => {
  it('takes a batch, keeps it, and notes the request without its credential', async () => {
    await start();
    expect(await batch()).toMatchObject({ status: 202, text: '{"accepted":2}\n', headers: { 'content-length': '15' } });
    expect(target.stored().map(({ payload }) => Buffer.from(payload).toString())).toEqual(['{"n":1}', '2']);
    expect(target.requests).toMatchObject([
      { method: 'POST', kind: 'batch', user: 'replicator', bodyBytes: BATCH.length, messages: 2, status: 202 },
    ]);
    expect(JSON.stringify(target.requests)).not.toContain(
      Buffer.from(`replicator:${target.credential.password}`).toString('base64'),
    );
    expect(target.requests[0]?.headers['x-narad-client']).toBe('test/1');
  });

  it('answers below its prefix only, on one connection', async () => {
    await start({ prefix: '/eu/1', topics: { a: {}, b: { id: '' } } }, { keepAlive: true });
    expect(target.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/eu\/1$/);
    expect(await ask({ path: '/v1/topics/b/children' })).toMatchObject({
      status: 200,
      text: expect.stringContaining('"parent_id":""'),
    });
    expect(statusOf(await ask({ path: '/v1/users' }))).toBe(403);
    expect(target.connections).toBe(1);
  });

  it('has certificates by the book, with an authority that targets can share', async () => {
    const authority = createAuthority();
    const issuer = new X509Certificate(authority.pem);
    const names = ['target.example', '10.1.2.3', 'fd00::1:2', '::'];
    const leaf = new X509Certificate(authority.issue({ names, toMs: Date.UTC(2055, 1, 3) }).certificatePem);
    expect([issuer.ca, leaf.ca, leaf.checkIssued(issuer), leaf.verify(issuer.publicKey)]).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(names.map((name) => leaf.checkHost(name) ?? leaf.checkIP(name))).toEqual(names);
    expect([leaf.checkIP('10.1.2.4'), new Date(leaf.validTo).getTime()]).toEqual([undefined, Date.UTC(2055, 1, 3)]);
    expect(() => authority.issue({ toMs: Number.NaN })).toThrow(/invalidArgument|time/);
    await start({ authority });
    expect(target.caPem).toBe(authority.pem);
    expect(statusOf(await batch())).toBe(202);
  });
});

describe('faults', () => {
  const proxy = edgeAnswer(503, { retryAfter: '7' });
  const rows: [what: string, fault: TargetFault, seen: unknown, stored: number][] = [
    ['a proxy answers', { type: 'answer', answer: proxy }, 503, 0],
    ['a proxy answers, though all is stored', { type: 'answer', answer: proxy, stores: true }, 503, 2],
    ['the target is draining', { type: 'answer', answer: errorAnswer(503, 'draining') }, 503, 0],
    ['a reset before it stores', { type: 'reset' }, 'ECONNRESET', 0],
    ['a reset after it stored', { type: 'reset', stores: true }, 'ECONNRESET', 2],
    ['silence', { type: 'silent' }, 'ABORT_ERR', 0],
    ['silence after it stored', { type: 'silent', stores: true }, 'ABORT_ERR', 2],
    ['slow', { type: 'slow', ms: 20 }, 202, 2],
    ['slower than the client waits', { type: 'slow', ms: 5_000, stores: true }, 'ABORT_ERR', 2],
    ['another count', { type: 'accepted', count: 7 }, 202, 2],
    ['a cut answer', { type: 'cutAnswer', bytes: 4 }, 'ECONNRESET after 202: {"ac', 2],
  ];
  it.each(rows)('%s', async (_, fault, seen, stored) => {
    await start();
    target.fault = fault;
    const got = await batch(seen === 'ABORT_ERR' ? 700 : undefined);
    expect(statusOf(got)).toBe(seen);
    if (fault.type === 'accepted') expect(got).toMatchObject({ text: '{"accepted":7}\n' });
    if (fault.type === 'answer' && fault.answer === proxy) {
      expect(got).toMatchObject({ headers: { 'content-type': 'text/html', 'retry-after': '7' } });
    }
    expect(target.stored()).toHaveLength(stored);
    expect(target.requests).toMatchObject([{ fault: fault.type, messages: 2 }]);
    target.fault = undefined;
    expect(statusOf(await batch())).toBe(202);
  });

  it('a slow request that nobody waits for any more is stored late; one that the target goes down under is not', async () => {
    await start();
    target.fault = { type: 'slow', ms: 1_500 };
    expect(await batch(700)).toBe('ABORT_ERR');
    expect(target.stored()).toHaveLength(0);
    await until(() => target.stored().length === 2);
    target.fault = { type: 'slow', ms: 10_000 };
    const lost = batch();
    await until(() => target.requests.length === 2);
    await target.down();
    expect(await lost).toBe('ECONNRESET');
    await target.up();
    expect(target.stored()).toHaveLength(2);
  });

  it('a rule picks requests by what they are', async () => {
    await start();
    target.fault = ({ kind, messages = 0 }) => (kind === 'batch' && messages > 0 ? { type: 'reset' } : undefined);
    expect(await ask({ body: '{"messages":[]}' })).toMatchObject({ status: 400 });
    expect(await batch()).toBe('ECONNRESET');
    expect(statusOf(await ask({ path: '/v1/topics/orders' }))).toBe(200);
  });

  it('a long upload is cut, and the answer to it arrives', async () => {
    await start();
    target.maxUploadBytes = 100_000;
    const body = `{"messages":[{"payload":"${'x'.repeat(900_000)}"}]}`;
    expect(await ask({ body })).toMatchObject({ status: 400, text: '{"error":"read body: i/o timeout"}\n' });
    expect([statusOf(await batch()), target.stored().length]).toEqual([202, 2]);
  });

  it('a body above the limit is refused before all of it is read, and one that is not welcome at all', async () => {
    await start({ settings: { maxBodyBytes: 1_000 } });
    const body = `{"messages":[{"payload":"${'x'.repeat(3_000_000)}"}]}`;
    expect(await ask({ body })).toMatchObject({ status: 413, text: '{"error":"request body too large"}\n' });
    target.broker.users.set('replicator', { password: 'another', isAdmin: false, grants: [] });
    const { password } = target.credential;
    Object.assign(target.broker.users.get('replicator') ?? {}, { password: `${password}!` });
    expect(statusOf(await batch())).toBe(403);
  });

  it('down: it refuses to be dialled, and comes back where it was, with what it had', async () => {
    await start();
    await batch();
    const { url } = target;
    await target.down();
    expect(await batch()).toBe('ECONNREFUSED');
    await target.up();
    expect([statusOf(await batch()), target.url, target.stored().length]).toEqual([202, url, 4]);
  });

  it.each([
    ['foreign', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['expired', 'CERT_HAS_EXPIRED'],
    ['otherName', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['plainHttp', 'EPROTO'],
  ] as const)('its certificate: %s', async (face, code) => {
    await start();
    await batch();
    await target.present(face);
    expect(await batch()).toBe(code);
    await target.present('own');
    expect(statusOf(await batch())).toBe(202);
  });

  it('refuses options that make no sense', async () => {
    await start();
    await expect(startFakeTarget({ prefix: 'eu/' })).rejects.toThrow(/prefix "eu\/": it must be a path/);
    await expect(startFakeTarget({ topics: { 'a b': {} } })).rejects.toThrow(/topic "a b"/);
    await expect(startFakeTarget({ topics: { a: { partitions: 0 } } })).rejects.toThrow(/partitions 0/);
  });
});
