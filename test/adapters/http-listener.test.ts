import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createHttpExchangeHandler, nodeListener } from '../../src/adapters/http/index.js';
import { recordingHandler, serve } from '../support/http.js';

const echo = async (received: Request): Promise<Response> =>
  Response.json({
    method: received.method,
    url: received.url,
    headers: [...received.headers],
    body: received.body === null ? null : await received.text(),
  });

/** Sends bytes over a socket and reads all that comes back until the server closes. */
function raw(url: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

const textOf = async (message: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of message) text += chunk;
  return text;
};

describe('a handler as a listener of node:http', () => {
  it('passes on method, URL, headers and body', async () => {
    const url = await serve(nodeListener(echo));
    const response = await fetch(`${url}/x?y=1`, { method: 'POST', headers: { 'x-one': 'ü' }, body: 'größe' });
    const received = (await response.json()) as { readonly headers: [string, string][] };
    expect(received).toMatchObject({ method: 'POST', url: `${url}/x?y=1`, body: 'größe' });
    expect(Object.fromEntries(received.headers)).toMatchObject({ 'x-one': 'ü', 'content-length': '7' });
    expect(await (await fetch(url)).json()).toMatchObject({ method: 'GET', body: null });
  });

  it('passes on status and headers of the answer, repeated ones too', async () => {
    const headers = new Headers([
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-one', '1'],
    ]);
    const url = await serve(nodeListener(async () => new Response('body', { status: 418, headers })));
    const response = await fetch(url);
    expect([response.status, response.headers.get('x-one'), response.headers.getSetCookie()]).toEqual([
      418,
      '1',
      ['a=1', 'b=2'],
    ]);
    expect(await response.text()).toBe('body');
    expect(await (await fetch(url, { method: 'HEAD' })).text()).toBe('');
  });

  it('a rejection is a bare 500', async () => {
    const url = await serve(nodeListener(() => Promise.reject(new Error('secret'))));
    const response = await fetch(url, { method: 'POST', body: 'x' });
    expect([response.status, await response.text()]).toEqual([500, '']);
  });

  it('odd request lines and hosts reach the handler as some URL; TRACE, which fetch cannot say, is 405', async () => {
    const url = await serve(nodeListener(echo));
    const send = (line: string, host: string) =>
      raw(url, `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await send('GET /a', 'a b')).toContain('"url":"http://localhost/"');
    expect(await send('GET //', 'x')).toContain('HTTP/1.1 200');
    expect(await send('OPTIONS *', 'x')).toContain('HTTP/1.1 200');
    expect(await send('TRACE /', 'x')).toContain('HTTP/1.1 405');
  });

  it.each<[string, number]>([
    ['before any of it has come', 0],
    ['while some of it waits', 60],
  ])('a body that nobody reads: answered %s, the connection stays good for the next call', async (_, delayMs) => {
    const url = await serve(
      nodeListener(async () => {
        if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
        return new Response('no', { status: 401 });
      }),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (let i = 0; i < 3; i++) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const call = request(url, { method: 'POST', agent }, resolve).on('error', reject);
        call.on('socket', (socket) => {
          if (socket.localPort === undefined) socket.on('connect', () => ports.add(socket.localPort));
          else ports.add(socket.localPort);
        });
        call.end('x'.repeat(3_000_000));
      });
      expect([answer.statusCode, await textOf(answer)]).toEqual([401, 'no']);
    }
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  it('413 for a declared length alone: the answer does not wait for the body', async () => {
    const credentials = { a: 'token' };
    const url = await serve(
      nodeListener(createHttpExchangeHandler({ cluster: 'b', handler: recordingHandler(), credentials })),
    );
    const headers = { authorization: 'Bearer token', 'content-type': 'application/json', 'content-length': '99999999' };
    const call = request(url, { method: 'POST', headers });
    const answer = await new Promise<IncomingMessage>((resolve) => {
      call.on('response', resolve).on('error', () => undefined);
      call.flushHeaders();
    });
    expect(answer.statusCode).toBe(413);
    call.destroy();
  });

  it('a body that is given up half read: 413, and the connection stays good', async () => {
    const credentials = { a: 'token' };
    const options = { cluster: 'b', handler: recordingHandler(), credentials, maxRequestBytes: 1000 };
    const url = await serve(nodeListener(createHttpExchangeHandler(options)));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { authorization: 'Bearer token', 'content-type': 'application/json' };
    for (let i = 0; i < 3; i++) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const call = request(url, { method: 'POST', agent, headers }, resolve).on('error', reject);
        for (let piece = 0; piece < 30; piece++) call.write('x'.repeat(100_000));
        call.end();
      });
      expect(answer.statusCode).toBe(413);
      await textOf(answer);
    }
    agent.destroy();
  });

  it('takes from the socket only what the handler asks for', async () => {
    const taken: (number | undefined)[] = [];
    const url = await serve((req, res) =>
      nodeListener(async (received) => {
        const reader = received.body?.getReader();
        const first = (await reader?.read())?.value?.byteLength ?? 0;
        await new Promise((resolve) => setTimeout(resolve, 100));
        taken.push(req.socket.bytesRead);
        let length = first;
        for (let read = await reader?.read(); read?.value; read = await reader?.read()) length += read.value.byteLength;
        return Response.json(length);
      })(req, res),
    );
    const response = await fetch(url, { method: 'POST', body: 'x'.repeat(30_000_000) });
    expect(await response.json()).toBe(30_000_000);
    expect(taken[0]).toBeLessThan(1_000_000);
  });

  it('a client that goes away aborts the request’s signal and breaks its body', async () => {
    const outcome = new Promise<{ reason: unknown; body: unknown }>((resolve) => {
      void serve(
        nodeListener(async (received) => {
          const aborted = new Promise((settle) => received.signal.addEventListener('abort', settle));
          const body = await received.text().catch((error: unknown) => error);
          await aborted;
          resolve({ reason: received.signal.aborted, body });
          return new Response();
        }),
      ).then((url) => {
        const call = request(url, { method: 'POST', headers: { 'content-length': '100' } });
        call.on('error', () => undefined);
        call.write('x');
        setTimeout(() => call.destroy(), 60);
      });
    });
    expect(await outcome).toEqual({ reason: true, body: expect.any(Error) });
  });
});
