/** The status server: what it answers, whom it answers, and that it ends. */
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type StatusServer,
  type StatusServerOptions,
  startStatusServer,
  statusDocument,
} from '../../examples/pulsar-replicator/status/index.js';
import { convergedTopic, statusView } from './status-view.js';

const servers: StatusServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const document = statusDocument(statusView([convergedTopic('t')]));

async function started(options: Partial<StatusServerOptions> = {}): Promise<StatusServer> {
  const server = await startStatusServer({ port: 0, status: () => document, metrics: () => 'up 1\n', ...options });
  if (server.type === 'failed') throw new Error(server.reason);
  servers.push(server);
  return server;
}

/** fetch sets Host by itself, so this asks as a browser would that was led here under another name. */
function statusFor(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

describe('the status server', () => {
  it.each<[string, string, RegExp]>([
    ['', 'text/html; charset=utf-8', /^<!doctype html>/],
    ['status.json', 'application/json', /"topics":\[\{"topic":"t"/],
    ['status.json?again', 'application/json', /^\{/],
    ['metrics', 'text/plain; version=0.0.4; charset=utf-8', /^up 1\n$/],
    ['healthz', 'text/plain; charset=utf-8', /^ok\n$/],
  ])('answers /%s, and to HEAD the same without a body', async (path, type, body) => {
    const { url } = await started();
    const got = await fetch(url + path);
    expect([got.status, got.headers.get('content-type'), got.headers.get('cache-control')]).toEqual([
      200,
      type,
      'no-store',
    ]);
    const text = await got.text();
    expect(text).toMatch(body);
    const head = await fetch(url + path, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect(await head.text()).toBe('');
  });

  it('refuses other methods and paths, and survives a status that cannot be told', async () => {
    const { url } = await started({
      status: () => {
        throw new Error('no clusters');
      },
    });
    const post = await fetch(url, { method: 'POST', body: 'x' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await fetch(`${url}../etc/passwd`)).status).toBe(404);
    const broken = await fetch(`${url}status.json`);
    expect([broken.status, await broken.text()]).toEqual([500, 'the status could not be told: no clusters\n']);
    expect((await fetch(`${url}healthz`)).status).toBe(200);
  });

  it('lets only the parts of the page run, by their hash', async () => {
    const { url } = await started();
    const page = await fetch(url);
    const policy = page.headers.get('content-security-policy') ?? '';
    const html = await page.text();
    for (const [element, directive] of [
      ['script', 'script-src'],
      ['style', 'style-src'],
    ] as const) {
      const parts = [...html.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, 'g'))];
      expect(parts).toHaveLength(1);
      const hash = createHash('sha256')
        .update(parts[0]?.[1] ?? '')
        .digest('base64');
      expect(policy).toContain(`${directive} 'sha256-${hash}';`);
    }
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|\*/);
    expect(html).not.toMatch(/ (style|on[a-z]+)="|innerHTML|https?:/);
  });

  it.each<[string, number]>([
    ['localhost:80', 200],
    ['LOCALHOST', 200],
    ['127.0.0.1:9000', 200],
    ['[::1]:80', 200],
    ['status.example.org', 200],
    ['evil.example.org', 421],
    ['127.0.0.1.evil.example.org', 421],
    ['localhost.evil.example.org:80', 421],
    ['[evil]', 421],
    [':80', 421],
  ])('called as "%s" it answers %d', async (host, expected) => {
    const { url } = await started({ names: ['Status.example.org'] });
    expect(await statusFor(`${url}status.json`, host)).toBe(expected);
  });

  it('says as a value why it cannot listen', async () => {
    const { url } = await started();
    const second = await startStatusServer({
      port: Number(new URL(url).port),
      status: () => document,
      metrics: () => '',
    });
    expect(second).toMatchObject({ type: 'failed', reason: expect.stringContaining('EADDRINUSE') });
  });

  it('closes although connections are open, idle ones at once and others soon', async () => {
    const server = await started();
    await (await fetch(`${server.url}healthz`)).text();
    const half = connect(Number(new URL(server.url).port), '127.0.0.1');
    half.on('error', () => undefined);
    await new Promise((resolve) => half.write('GET / HTTP/1.1\r\n', resolve));
    const began = performance.now();
    await server.close();
    expect(performance.now() - began).toBeLessThan(3_000);
    await expect(fetch(server.url)).rejects.toThrow();
  });
});
